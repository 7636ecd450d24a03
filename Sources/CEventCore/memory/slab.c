/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "memory/slab.h"

#include "platform/allocator.h"

#ifdef EVC_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

void evc_pool_init(struct evc_pool *pool, unsigned class_index)
{
	*pool = (struct evc_pool){
		.slot_shift = (uint8_t)(6 + class_index),
		.segment_shift = class_index < EVC_CLASS_LARGE ? EVC_SEGMENT_SHIFT : EVC_LARGE_SEGMENT_SHIFT,
	};
}

void evc_segment_list_add(struct evc_segment_list *list, struct evc_segment *first, struct evc_segment *last)
{
	struct evc_segment *head = atomic_load_explicit(&list->added, memory_order_relaxed);

	do {
		last->next = head;
		/*
		 * Release, pairs with the exchanges of take and of the trim: the links. Acquire: a
		 * segment that the trim has missed finds the timer's flag cleared (slab_trim.c).
		 */
	} while (!atomic_compare_exchange_weak_explicit(&list->added, &head, first,
							memory_order_acq_rel,
							memory_order_relaxed));
}

void evc_segment_give(struct evc_segment *segment, uint64_t slots)
{
	struct evc_pool *pool = evc_slab_of(segment)->pool;
	/* Read before G1, after which the pool may be gone. */
	uint64_t all = evc_pool_all_free(pool);
	/*
	 * G1. Release, pairs with G3 and the trim: all uses of the slots. Acquire: the last holder is done
	 * with the listing (G3); and as in evc_segment_list_add.
	 */
	uint64_t before = atomic_fetch_or_explicit(&segment->free, slots, memory_order_acq_rel);

	if (before == 0)
		evc_segment_list_add(&pool->warm, segment, segment);
	/* Also if the segment was listed earlier, when only a part of it was free and it could not go. */
	if (before == 0 || (before | slots) == all)
		evc_pool_note_return();
}

/* The next segment of the slab whose segments are used for the first time, as a cold one. NULL = out of memory. */
static struct evc_segment *take_fresh(struct evc_pool *pool)
{
	struct evc_slab *slab = pool->fresh;

	if (slab == NULL) {
		slab = evc_allocate(EVC_SLAB_SIZE, EVC_SLAB_SIZE);
		if (slab == NULL)
			return NULL;
		*slab = (struct evc_slab){
			.pool = pool, .segment_shift = pool->segment_shift, .slot_shift = pool->slot_shift
		};
		for (unsigned i = 1; i <= evc_slab_capacity(slab); i++)
			*evc_slab_segment(slab, i) =
				(struct evc_segment){ .free = evc_pool_all_free(pool), .is_released = true };
		pool->fresh = slab;
		pool->fresh_used = 0;
		evc_pool_grow(pool, 1, 0);
	}
	/* From here on the trim may unmap the slab: it is as if all of its segments were in use. */
	if (++pool->fresh_used == evc_slab_capacity(slab))
		pool->fresh = NULL;
	return evc_slab_segment(slab, pool->fresh_used);
}

/* The segment of a pointer into its memory. */
static struct evc_segment *segment_of(const void *memory)
{
	struct evc_slab *slab = evc_slab_of(memory);

	return evc_slab_segment(slab, ((uintptr_t)memory & (EVC_SLAB_SIZE - 1)) >> slab->segment_shift);
}

static void flush(struct evc_return_cache *cache, unsigned way)
{
	if (cache->ways[way].given != 0)
		evc_segment_give(segment_of((void *)cache->ways[way].memory), cache->ways[way].given);
	cache->ways[way].given = 0;
}

#ifdef EVC_ADDRESS_SANITIZER

/*
 * A taker of a shared mailbox may still read the link of a slot that is being freed: the block waits for a
 * grace period. The payload is poisoned at once.
 */
#define HEADER 64u

struct block {
	size_t size;
	struct evc_domain_head retired;
};

static void reclaim_block(struct evc_domain_head *head)
{
	struct block *block = evc_container_of(head, struct block, retired);
	size_t size = block->size;

	__asan_unpoison_memory_region(block, size);
	evc_deallocate(block, size, HEADER);
}

void *evc_pool_refill(struct evc_pool *pool, struct evc_cursor *cursor)
{
	size_t size = HEADER + ((size_t)1 << pool->slot_shift);
	struct block *block;

	(void)cursor;
	block = evc_allocate(size, HEADER);
	if (block == NULL)
		return NULL;
	block->size = size;
	return (char *)block + HEADER;
}

bool evc_pool_try_refill(struct evc_pool *pool, struct evc_cursor *cursor)
{
	(void)pool, (void)cursor;
	return false;
}

void evc_return_cache_give_any(struct evc_return_cache *cache, void *slot)
{
	struct block *block = (struct block *)(void *)((char *)slot - HEADER);

	(void)cache;
	__asan_poison_memory_region((char *)slot + 32, block->size - HEADER - 32);
	evc_domain_retire(&block->retired, block->size, reclaim_block);
}

#else

/* Takes a segment off a list, with its listing. NULL = none. */
static struct evc_segment *take(struct evc_segment_list *list)
{
	struct evc_segment *segment = NULL;

	/* Read first: an exchange would take the line from the givers even if there is nothing to take. */
	if (atomic_load_explicit(&list->rest, memory_order_relaxed) != NULL)
		/* Relaxed: the owner itself stored what is there, below. */
		segment = atomic_exchange_explicit(&list->rest, NULL, memory_order_relaxed);
	if (segment == NULL &&
	    atomic_load_explicit(&list->added, memory_order_relaxed) != NULL)
		/* Acquire, pairs with evc_segment_list_add, also through the trim. */
		segment = atomic_exchange_explicit(&list->added, NULL, memory_order_acquire);
	if (segment != NULL && segment->next != NULL)
		/* The others stay for the trim. Release, pairs with its exchange: their links. */
		atomic_store_explicit(&list->rest, segment->next, memory_order_release);
	return segment;
}

/* G3: the cursor goes on with the free slots of a segment whose listing is the caller's. */
static void move_to(struct evc_pool *pool, struct evc_cursor *cursor, struct evc_segment *segment)
{
	if (cursor->memory == NULL)
		atomic_fetch_add_explicit(&pool->cursors, 1, memory_order_relaxed);
	/* Release, for the next holder of the listing: `next` and `is_released`. */
	cursor->free = atomic_exchange_explicit(&segment->free, 0, memory_order_acq_rel);
	cursor->memory = evc_segment_memory(segment);
	/* Relaxed: a statistic, which the trim resets. */
	atomic_fetch_add_explicit(&pool->taken, 1, memory_order_relaxed);
}

bool evc_pool_try_refill(struct evc_pool *pool, struct evc_cursor *cursor)
{
	/* The pages of the cold ones would have to come back, and the trim to be armed. */
	struct evc_segment *segment = take(&pool->warm);

	if (segment != NULL)
		move_to(pool, cursor, segment);
	return segment != NULL;
}

void *evc_pool_refill(struct evc_pool *pool, struct evc_cursor *cursor)
{
	struct evc_segment *segment = take(&pool->warm);

	if (segment == NULL) {
		segment = take(&pool->cold);
		if (segment == NULL)
			segment = take_fresh(pool);
		if (segment == NULL)
			return NULL;
		segment->is_released = false;
		evc_pool_grow(pool, 0, (size_t)1 << pool->segment_shift);
	}
	move_to(pool, cursor, segment);
	return evc_pool_take(pool, cursor);
}

void evc_return_cache_give_any(struct evc_return_cache *cache, void *slot)
{
	struct evc_segment *segment = segment_of(slot);
	uintptr_t memory = (uintptr_t)evc_segment_memory(segment);
	const struct evc_slab *slab = evc_slab_of(slot);
	size_t number = ((uintptr_t)slot - memory) >> slab->slot_shift;
	unsigned way = (unsigned)(memory >> EVC_SEGMENT_SHIFT) % EVC_RETURN_WAYS;

	if (cache == NULL) {
		evc_segment_give(segment, UINT64_C(1) << number);
		return;
	}
	if (cache->ways[way].memory != memory)
		flush(cache, way);
	cache->ways[way].memory = memory;
	cache->ways[way].given |= UINT64_C(1) << number;
	if (number + 1 == (size_t)1 << (slab->segment_shift - slab->slot_shift))
		flush(cache, way);
}

#endif

void evc_pool_give(void *slot)
{
	evc_return_cache_give_any(NULL, slot);
}

void evc_return_cache_flush(struct evc_return_cache *cache)
{
	if (cache == NULL)
		return;
	for (unsigned way = 0; way < EVC_RETURN_WAYS; way++)
		flush(cache, way);
}

void evc_cursor_end(struct evc_cursor *cursor)
{
	if (cursor->free != 0)
		evc_segment_give(segment_of(cursor->memory), cursor->free);
	*cursor = (struct evc_cursor){ NULL, 0 };
}

void evc_pool_end(struct evc_pool *pool)
{
	atomic_store_explicit(&pool->cursors, 0, memory_order_relaxed);
	/* No page of those that were never used is there yet. */
	while (pool->fresh != NULL) {
		struct evc_segment *segment = take_fresh(pool);

		evc_segment_list_add(&pool->cold, segment, segment);
	}
}
#endif
