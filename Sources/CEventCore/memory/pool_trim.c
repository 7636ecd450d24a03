/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * Giving memory back after a burst, by the rule in include/eventcore/pool.h.
 *
 * The trim takes the free lists that owners do not work on (`returned`, `reserve`) by exchange, so that
 * it is for a moment the only holder of those slots; counts them per slab; keeps what the rule keeps,
 * sends it back, and retires slabs that are free as a whole. A slab's memory is touched by nobody then,
 * but for a reader of depths that still walks a stale link: hence the grace period.
 */
#include "platform/domain.h"
#include "eventcore/pool.h"
#include "memory/slab.h"
#include "memory/thread_record.h"

#include <pthread.h>

void evc_slab_destroy(struct evc_domain_head *head);
size_t evc_slab_bytes(size_t *peak);

static _Atomic uint64_t trims;

void evc_pool_read_statistics(struct evc_pool_statistics *out)
{
	out->slab_bytes = evc_slab_bytes(&out->slab_bytes_peak);
	out->trims = atomic_load_explicit(&trims, memory_order_relaxed);
}

#ifdef EVC_ADDRESS_SANITIZER

void evc_pool_trim(void)
{
}

bool evc_pool_request_trim(uint64_t interval)
{
	(void)interval;
	return false;
}

#else

/* Held by the one thread that trims; others do not wait for it. */
static pthread_mutex_t trim_mutex = PTHREAD_MUTEX_INITIALIZER;
/* Claimed by compare-and-swap: when the last trim was asked for, in nanoseconds. */
static _Atomic uint64_t last_request;
/* Written by the trim, read by consumers going to sleep: a pool kept more than its floor. */
static _Atomic bool surplus;
static _Atomic bool requested;
static struct evc_domain_head request;

static size_t count_slots(struct evc_envelope *chains)
{
	size_t count = 0;

	for (struct evc_envelope *chain = chains; chain != NULL; chain = chain->next_chain) {
		for (struct evc_envelope *slot = chain; slot != NULL; slot = evc_slot_next(slot)) {
			evc_slab_of(slot)->held++;
			count++;
		}
	}
	return count;
}

static struct evc_envelope *join(struct evc_envelope *a, struct evc_envelope *b)
{
	struct evc_envelope *last = a;

	if (a == NULL)
		return b;
	while (last->next_chain != NULL)
		last = last->next_chain;
	last->next_chain = b;
	return a;
}

/* Dooms whole slabs while more than `keep` slots remain. */
static void doom(struct evc_envelope *chains, size_t held, size_t keep)
{
	for (struct evc_envelope *chain = chains; chain != NULL; chain = chain->next_chain) {
		for (struct evc_envelope *slot = chain; slot != NULL; slot = evc_slot_next(slot)) {
			struct evc_slab *slab = evc_slab_of(slot);

			if (!slab->doomed && slab->held == slab->capacity &&
			    held >= keep + slab->capacity) {
				slab->doomed = true;
				held -= slab->capacity;
			}
		}
	}
}

/* Rebuilds chains from the slots that stay, and retires each doomed slab at its last slot. */
static void send_back(struct evc_envelope *chains)
{
	struct evc_return_cache cache = { 0 };
	struct evc_envelope *next_chain, *next;

	for (struct evc_envelope *chain = chains; chain != NULL; chain = next_chain) {
		next_chain = chain->next_chain;
		for (struct evc_envelope *slot = chain; slot != NULL; slot = next) {
			struct evc_slab *slab = evc_slab_of(slot);

			next = evc_slot_next(slot);
			slab->held--;
			if (!slab->doomed)
				evc_return_cache_give(&cache, slot);
			else if (slab->held == 0)
				evc_domain_retire(&slab->retired, evc_slab_destroy);
		}
	}
	evc_return_cache_flush(&cache);
}

static bool trim_pool(struct evc_pool *pool)
{
	size_t floor = EVC_POOL_FLOOR_BYTES / pool->slot_size;
	size_t taken = atomic_exchange_explicit(&pool->taken, 0, memory_order_relaxed);
	struct evc_envelope *chains;

	/*
	 * A busy pool is left alone: its owner would find its lists empty for as long as the trim counts,
	 * and map new slabs meanwhile, more each time. Its memory goes back when it is quiet.
	 */
	if (taken > floor)
		return true;
	/* Both pair with the release operations of evc_pool_refill and evc_pool_push_chains. */
	chains = join(atomic_exchange_explicit(&pool->reserve, NULL, memory_order_acquire),
		     atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire));
	if (chains == NULL)
		return false;
	doom(chains, count_slots(chains), floor);
	send_back(chains);
	return false;
}

void evc_pool_trim(void)
{
	bool more = false;

	if (pthread_mutex_trylock(&trim_mutex) != 0)
		return;
	for (struct evc_thread_record *record = evc_thread_record_first(); record != NULL;
	     record = record->next)
		for (size_t i = 0; i < EVC_CLASS_COUNT; i++)
			more |= trim_pool(&record->pools[i]);
	atomic_store_explicit(&surplus, more, memory_order_relaxed);
	atomic_fetch_add_explicit(&trims, 1, memory_order_relaxed);
	pthread_mutex_unlock(&trim_mutex);
}

static void trim_on_callback_thread(struct evc_domain_head *head)
{
	(void)head;
	evc_pool_trim();
	/* Pairs with evc_pool_request_trim: the head is free again. */
	atomic_store_explicit(&requested, false, memory_order_release);
}

bool evc_pool_request_trim(uint64_t interval)
{
	uint64_t now = evc_clock_now();
	uint64_t last = atomic_load_explicit(&last_request, memory_order_relaxed);

	if (now - last < interval)
		return true;
	/* Acquire, pairs with trim_on_callback_thread. */
	if (!atomic_exchange_explicit(&requested, true, memory_order_acquire)) {
		atomic_store_explicit(&last_request, now, memory_order_relaxed);
		atomic_store_explicit(&surplus, true, memory_order_relaxed);
		evc_domain_retire(&request, trim_on_callback_thread);
	}
	return atomic_load_explicit(&surplus, memory_order_relaxed);
}

#endif
#endif
