/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "memory/slab.h"

#include "eventcore/pool.h"
#include "memory/memory.h"

/* Statistics: written with relaxed read-modify-writes, read by anybody; they order nothing. */
static _Atomic size_t slab_bytes;
static _Atomic size_t slab_bytes_peak;

struct evc_slab *evc_slab_create(struct evc_pool *pool)
{
	struct evc_slab *slab = evc_allocate(EVC_SLAB_SIZE, EVC_SLAB_SIZE);
	size_t bytes, peak;

	if (slab == NULL)
		return NULL;
	static_assert(sizeof(struct evc_slab) <= 128, "the first slot lies 128 bytes in");
	slab->pool = pool;
	slab->capacity = (uint32_t)((EVC_SLAB_SIZE - evc_slab_first(pool->slot_size)) /
				    pool->slot_size);
	slab->held = 0;
	slab->doomed = false;
	/* Relaxed, here and below: statistics. */
	bytes = atomic_fetch_add_explicit(&slab_bytes, EVC_SLAB_SIZE, memory_order_relaxed) +
		EVC_SLAB_SIZE;
	peak = atomic_load_explicit(&slab_bytes_peak, memory_order_relaxed);
	while (peak < bytes &&
	       !atomic_compare_exchange_weak_explicit(&slab_bytes_peak, &peak, bytes,
						      memory_order_relaxed, memory_order_relaxed))
		;
	return slab;
}

void evc_slab_destroy(struct evc_domain_head *head)
{
	atomic_fetch_sub_explicit(&slab_bytes, EVC_SLAB_SIZE, memory_order_relaxed);
	evc_deallocate(evc_container_of(head, struct evc_slab, retired), EVC_SLAB_SIZE,
		       EVC_SLAB_SIZE);
}

size_t evc_slab_bytes(size_t *peak)
{
	*peak = atomic_load_explicit(&slab_bytes_peak, memory_order_relaxed);
	return atomic_load_explicit(&slab_bytes, memory_order_relaxed);
}
#endif
