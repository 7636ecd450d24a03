/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "scheduler/timer.h"

#include "platform/allocator.h"

/* Increments the counter of the free list. */
#define FREE_COUNT (UINT64_C(1) << 32)

static size_t block_bytes(uint32_t block)
{
	return (size_t)evc_timer_block_size(block) *
	       (sizeof(struct evc_timer) + sizeof(struct evc_timer_entry));
}

/* Whole pages for a block that is larger than one, so that the default allocator maps it. */
static size_t block_alignment(uint32_t block)
{
	return block_bytes(block) < 4096 ? EVC_CACHE_LINE : 4096;
}

void evc_timer_store_close(struct evc_timer_store *store)
{
	for (uint32_t i = 0; i < EVC_TIMER_BLOCKS; i++) {
		/* Relaxed: no other thread uses the store any more. */
		struct evc_timer *timers =
			atomic_load_explicit(&store->blocks[i], memory_order_relaxed);

		if (timers != NULL)
			evc_deallocate(timers, block_bytes(i), block_alignment(i));
	}
}

/* Makes sure that a block exists. False = out of memory. */
static bool provide_block(struct evc_timer_store *store, uint32_t block)
{
	struct evc_timer *expected = NULL;
	struct evc_timer *timers;

	/* Acquire, also on failure: the caller passes on what it knows of the block (take_fresh). */
	if (evc_likely(atomic_load_explicit(&store->blocks[block], memory_order_acquire) != NULL))
		return true;
	/* Not written here: the system supplies its pages one by one, as the timers are used. */
	timers = evc_allocate(block_bytes(block), block_alignment(block));
	if (timers == NULL)
		return false;
	/* Release: pairs with the load above, and with this. */
	if (!atomic_compare_exchange_strong_explicit(&store->blocks[block], &expected, timers,
						     memory_order_acq_rel, memory_order_acquire))
		evc_deallocate(timers, block_bytes(block), block_alignment(block));
	return true;
}

static struct evc_timer *take_fresh(struct evc_timer_store *store)
{
	/* Relaxed: the exchange acquires. */
	uint32_t index = atomic_load_explicit(&store->fresh, memory_order_relaxed);
	struct evc_timer *timer;

	do {
		if (index - EVC_TIMER_FIRST >= EVC_TIMER_MAX ||
		    !provide_block(store, evc_timer_block(index)))
			return NULL;
		/*
		 * Release and acquire, pairs with this of each timer before: so the blocks up to a timer's own are
		 * known to whoever gets the timer, and thereby to the heap that it is in, whose entries are up to
		 * that index. Release, pairs with evc_scheduler_cancel too, which checks whether an id can exist.
		 */
	} while (!atomic_compare_exchange_weak_explicit(&store->fresh, &index, index + 1,
							memory_order_acq_rel, memory_order_relaxed));
	timer = evc_timer_at(store, index);
	/* Not atomic_init: a cancel of an arbitrary number may look at it. Relaxed: it needs to find nothing. */
	atomic_store_explicit(&timer->word, (uint64_t)index << 3, memory_order_relaxed);
	atomic_init(&timer->link, 0);
	timer->position = EVC_TIMER_NOWHERE;
	return timer;
}

struct evc_timer *evc_timer_take(struct evc_timer_store *store)
{
	/* Acquire: pairs with evc_timer_give_all: the fields that the last owner left. */
	uint64_t head = atomic_load_explicit(&store->free, memory_order_acquire);

	while ((uint32_t)head != 0) {
		struct evc_timer *timer = evc_timer_at(store, (uint32_t)head);
		/* Relaxed: if another thread has taken it meanwhile, the exchange fails. */
		uint64_t next = (uint32_t)atomic_load_explicit(&timer->link, memory_order_relaxed);

		next |= (head & ~(uint64_t)UINT32_MAX) + FREE_COUNT;
		if (atomic_compare_exchange_weak_explicit(&store->free, &head, next,
							  memory_order_acquire,
							  memory_order_acquire)) {
			/* The next free timer; if a million are pending it is in no cache. */
			if ((uint32_t)next != 0)
				__builtin_prefetch(evc_timer_at(store, (uint32_t)next), 1);
			return timer;
		}
	}
	return take_fresh(store);
}

void evc_timer_give_all(struct evc_timer_store *store, struct evc_timer *const *timers,
			uint32_t count)
{
	uint64_t head = atomic_load_explicit(&store->free, memory_order_relaxed);
	uint32_t behind = 0;
	uint64_t next;

	for (uint32_t i = count; i-- > 0;) {
		struct evc_timer *timer = timers[i];
		/* Relaxed: the giver owns the timer. */
		uint64_t word = atomic_load_explicit(&timer->word, memory_order_relaxed);

		/* A new generation: from here on every id of the timer is outdated. */
		word = evc_timer_with_state(word, EVC_TIMER_FREE) + EVC_TIMER_GENERATION;
		atomic_store_explicit(&timer->word, word, memory_order_relaxed);
		atomic_store_explicit(&timer->link, behind, memory_order_relaxed);
		behind = evc_timer_index(word);
	}
	do {
		atomic_store_explicit(&timers[count - 1]->link, (uint32_t)head,
				      memory_order_relaxed);
		next = ((head & ~(uint64_t)UINT32_MAX) + FREE_COUNT) | behind;
		/* Release: pairs with evc_timer_take. */
	} while (!atomic_compare_exchange_weak_explicit(&store->free, &head, next,
							memory_order_release,
							memory_order_relaxed));
}
#endif
