/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * Gives memory back after a burst, by the rule in include/eventcore/pool.h.
 *
 * A trim takes the lists of a slab pool, so that for a moment it holds the listing of each segment in them,
 * and no other thread knows their free slots. It retires slabs that are entirely free: a taker of a shared
 * mailbox may still read a stale link there, hence the grace period. Of other slabs it gives the pages of
 * free segments to the system, which supplies new, zeroed ones when they are used. The rest goes back on the
 * list.
 *
 * When: on the callback thread, every EVC_POOL_REST_NS, from the moment that a slab is mapped, or that a
 * segment is returned while there is more than the floors, until a trim finds nothing that can be released
 * later. An idle program has no timer. Tests/Models/trim.pml models the requests.
 */
#include "eventcore/pool.h"
#include "memory/slab.h"
#include "memory/thread_record.h"
#include "platform/allocator.h"

#include <pthread.h>

/* Statistics: relaxed, they order nothing. */
static _Atomic size_t bytes, bytes_peak;
static _Atomic uint64_t trims;

void evc_pool_read_statistics(struct evc_pool_statistics *out)
{
	out->slab_bytes = atomic_load_explicit(&bytes, memory_order_relaxed);
	out->slab_bytes_peak = atomic_load_explicit(&bytes_peak, memory_order_relaxed);
	out->trims = atomic_load_explicit(&trims, memory_order_relaxed);
}

/*
 * Not 0 if a slab pool has more than its floor, or has grown since the last trim. A trim resets it only if
 * none has grown meanwhile, so that what is returned while it runs is not forgotten.
 */
static _Atomic uint64_t surplus;
/*
 * Schedules a trim, unless one is. A thread that lists or fills a segment after the trim's look acquires that (take_all,
 * is_free), and finds that none is scheduled any more; a pool that has grown unnoticed has left `surplus` not 0.
 */
static void arm(void)
{
	evc_domain_call_later(EVC_POOL_REST_NS, evc_pool_trim);
}

void evc_pool_note_end(void)
{
	/*
	 * There may be a surplus now, since the thread's floor no longer counts. Relaxed: a trim that sees
	 * this has yet to take the mutex under which the thread has ended.
	 */
	atomic_fetch_add_explicit(&surplus, 1, memory_order_relaxed);
	arm();
}

void evc_pool_note_return(void)
{
	/* Relaxed: memory whose return is too early to see the flag is trimmed with the next return. */
	if (evc_unlikely(atomic_load_explicit(&surplus, memory_order_relaxed) != 0))
		arm();
}

void evc_pool_grow(struct evc_pool *pool, size_t slabs, size_t segment_bytes)
{
	const size_t change = slabs * EVC_SLAB_HEADER + segment_bytes;
	size_t now, peak;

	atomic_fetch_add_explicit(&pool->slabs, slabs, memory_order_relaxed);
	/* Acquire, pairs with evc_pool_let_go, for `arm`. */
	atomic_fetch_add_explicit(&pool->bytes, segment_bytes, memory_order_acquire);
	now = atomic_fetch_add_explicit(&bytes, change, memory_order_relaxed) + change;
	peak = atomic_load_explicit(&bytes_peak, memory_order_relaxed);
	while (peak < now && !atomic_compare_exchange_weak_explicit(&bytes_peak, &peak, now,
								    memory_order_relaxed,
								    memory_order_relaxed))
		;
	/* Release, pairs with evc_pool_trim: the bytes. */
	atomic_fetch_add_explicit(&surplus, 1, memory_order_release);
	arm();
}

static void destroy(struct evc_domain_head *head)
{
	evc_deallocate(evc_container_of(head, struct evc_slab, retired), EVC_SLAB_SIZE, EVC_SLAB_SIZE);
}

static struct evc_segment *take_all(_Atomic(struct evc_segment *) *list)
{
	/*
	 * Acquire, pairs with those who list segments (slab.c). Release, pairs with evc_segment_list_add: what
	 * it lists later finds that this trim is not scheduled any more.
	 */
	return atomic_exchange_explicit(list, NULL, memory_order_acq_rel);
}

static struct evc_segment *join(struct evc_segment *a, struct evc_segment *b)
{
	struct evc_segment *last = a;

	if (a == NULL)
		return b;
	while (last->next != NULL)
		last = last->next;
	last->next = b;
	return a;
}

static struct evc_segment *take_list(struct evc_segment_list *list)
{
	return join(take_all(&list->rest), take_all(&list->added));
}

static bool is_free(const struct evc_pool *pool, struct evc_segment *segment)
{
	/*
	 * Acquire, pairs with G1: all uses of the slots. A read-modify-write with release: a G1 that it
	 * does not see comes after it, and finds that this trim is not scheduled any more.
	 */
	return atomic_fetch_or_explicit(&segment->free, 0, memory_order_acq_rel) == evc_pool_all_free(pool);
}

static void shrink(struct evc_pool *pool, size_t slabs, size_t segment_bytes)
{
	atomic_fetch_sub_explicit(&pool->slabs, slabs, memory_order_relaxed);
	atomic_fetch_sub_explicit(&pool->bytes, segment_bytes, memory_order_relaxed);
	atomic_fetch_sub_explicit(&bytes, slabs * EVC_SLAB_HEADER + segment_bytes, memory_order_relaxed);
}

static size_t segment_size(const struct evc_pool *pool)
{
	return (size_t)1 << pool->segment_shift;
}

/* The segments that the trim holds, and how many of their bytes go: what is free and not released, beyond the floor. */
struct holding {
	struct evc_pool *pool;
	struct evc_segment *first;
	size_t surplus;
};

static void count(struct holding *holding, size_t floor)
{
	size_t free_bytes = 0;

	for (struct evc_segment *segment = holding->first; segment != NULL; segment = segment->next) {
		if (!is_free(holding->pool, segment))
			continue;
		evc_slab_of(segment)->held++;
		if (!segment->is_released) {
			free_bytes += segment_size(holding->pool);
			evc_slab_of(segment)->held_bytes += segment_size(holding->pool);
		}
	}
	holding->surplus = free_bytes > floor ? free_bytes - floor : 0;
}

/* True if the whole slab is freed: all of its segments were free when they were counted. */
static bool is_doomed(struct holding *holding, struct evc_slab *slab)
{
	size_t size = slab->held_bytes;

	if (!slab->is_doomed && slab->held == evc_slab_capacity(slab) && holding->surplus >= size) {
		slab->is_doomed = true;
		holding->surplus -= size;
	}
	return slab->is_doomed;
}

static void let_go_of_slab_segment(struct evc_pool *pool, struct evc_segment *segment)
{
	struct evc_slab *slab = evc_slab_of(segment);

	if (!segment->is_released)
		shrink(pool, 0, segment_size(pool));
	if (--slab->held > 0)
		return;
	shrink(pool, 1, 0);
	evc_domain_retire(&slab->retired, EVC_SLAB_SIZE, destroy);
}

/* Segments that go back on a list, in their order. */
struct chain {
	struct evc_segment *first, *last;
};

static void append(struct chain *chain, struct evc_segment *segment)
{
	if (chain->first == NULL)
		chain->first = segment;
	else
		chain->last->next = segment;
	chain->last = segment;
	segment->next = NULL;
}

static void list_again(struct evc_segment_list *list, const struct chain *chain)
{
	for (struct evc_segment *segment = chain->first; segment != NULL; segment = segment->next) {
		evc_slab_of(segment)->held = 0;
		evc_slab_of(segment)->held_bytes = 0;
	}
	if (chain->first != NULL)
		evc_segment_list_add(list, chain->first, chain->last);
}

/* Releases what the floor does not need of the held segments, and lists the others again. */
static void let_go(struct holding *holding)
{
	const size_t size = segment_size(holding->pool);
	struct chain warm = { NULL, NULL }, cold = { NULL, NULL };
	struct evc_segment *next;

	for (struct evc_segment *segment = holding->first; segment != NULL; segment = next) {
		next = segment->next;
		if (is_free(holding->pool, segment)) {
			if (is_doomed(holding, evc_slab_of(segment))) {
				let_go_of_slab_segment(holding->pool, segment);
				continue;
			}
			if (holding->surplus >= size && !segment->is_released &&
			    evc_release_pages(evc_segment_memory(segment), size)) {
				segment->is_released = true;
				shrink(holding->pool, 0, size);
				holding->surplus -= size;
			}
		}
		append(segment->is_released ? &cold : &warm, segment);
	}
	list_again(&holding->pool->warm, &warm);
	list_again(&holding->pool->cold, &cold);
}

bool evc_pool_exceeds(const struct evc_pool *pool, size_t floor)
{
	const size_t size = segment_size(pool);
	const size_t kept = floor + atomic_load_explicit(&pool->cursors, memory_order_relaxed) * size;

	return atomic_load_explicit(&pool->bytes, memory_order_relaxed) > kept ||
	       atomic_load_explicit(&pool->slabs, memory_order_relaxed) * size > kept;
}

bool evc_pool_let_go(struct evc_pool *pool, size_t floor)
{
	struct holding holding = { .pool = pool };
	bool is_busy;

	/*
	 * Then nothing can go, and a thread that must not wait may look for its segments at this moment. A
	 * read-modify-write with release, pairs with evc_pool_grow: growth that it does not see comes after it, and
	 * finds that this trim is not scheduled any more.
	 */
	atomic_fetch_or_explicit(&pool->bytes, 0, memory_order_release);
	if (!evc_pool_exceeds(pool, floor))
		return false;
	is_busy = atomic_exchange_explicit(&pool->taken, 0, memory_order_relaxed) != 0;
	/* A busy slab pool would map new slabs while the trim holds its lists. */
	if (!is_busy) {
		holding.first = join(take_list(&pool->warm), take_list(&pool->cold));
		count(&holding, floor);
		let_go(&holding);
	}
	return is_busy;
}

/* Held by the one thread that trims; others do not wait for it. */
static pthread_mutex_t trim_mutex = PTHREAD_MUTEX_INITIALIZER;

void evc_pool_trim(void)
{
	struct evc_trim trim = { false, false };
	uint64_t before;

	if (pthread_mutex_trylock(&trim_mutex) != 0)
		return;
	/* Acquire, pairs with evc_pool_grow: what grew before is seen below, later growth by `surplus`. */
	before = atomic_load_explicit(&surplus, memory_order_acquire);
	evc_thread_records_trim(&trim);
	atomic_fetch_add_explicit(&trims, 1, memory_order_relaxed);
	pthread_mutex_unlock(&trim_mutex);
	if (!trim.has_surplus)
		atomic_compare_exchange_strong_explicit(&surplus, &before, 0, memory_order_relaxed,
							memory_order_relaxed);
	if (trim.is_busy)
		arm();
}
#endif
