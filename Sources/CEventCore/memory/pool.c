/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "memory/pool_private.h"

#include "memory/memory.h"
#include "memory/slab.h"
#include "memory/stream.h"

#ifdef EVC_ADDRESS_SANITIZER
#include "platform/domain.h"
#include <sanitizer/asan_interface.h>
#endif

/* A grab of `returned` keeps this many chains for the owner; the rest waits in `reserve`. */
#define GRAB_CHAINS 128u

void evc_pool_init(struct evc_pool *pool, size_t class_index, uint32_t number)
{
	pool->chain = NULL;
	pool->chains = NULL;
	pool->bump = NULL;
	pool->bump_end = NULL;
	pool->slot_size = class_index == EVC_CLASS_SEGMENT	   ? EVC_SEGMENT_SIZE
			  : class_index == EVC_CLASS_FIRST_SEGMENT ? EVC_FIRST_SEGMENT_SIZE
								   : 64u << class_index;
	pool->holds_segments = class_index >= EVC_CLASS_FIRST_SEGMENT;
	pool->chain_length = pool->holds_segments ? EVC_SEGMENT_CHAIN_LENGTH : EVC_CHAIN_LENGTH;
	pool->number = number;
	atomic_init(&pool->taken, 0);
	atomic_init(&pool->returned, NULL);
	atomic_init(&pool->reserve, NULL);
}

#ifdef EVC_ADDRESS_SANITIZER

/*
 * Every slot is a block of its own here, freed for good when it is given back. evc_mailbox_depths may
 * still look at the link of an envelope that is being freed, so the block itself waits for a grace
 * period; its payload is poisoned at once.
 */
#define HEADER 64u

static void reclaim_block(struct evc_domain_head *head)
{
	char *block = (char *)head - 8;
	struct evc_pool *pool = *(struct evc_pool **)(void *)block;
	size_t size = pool->slot_size;

	__asan_unpoison_memory_region(block, HEADER + size);
	evc_deallocate(block, HEADER + size, 64);
}

struct evc_envelope *evc_pool_refill(struct evc_pool *pool)
{
	char *block = evc_allocate(HEADER + pool->slot_size, 64);

	if (block == NULL)
		return NULL;
	*(struct evc_pool **)(void *)block = pool;
	if (pool->holds_segments)
		evc_segment_prepare(block + HEADER, pool->slot_size);
	return (struct evc_envelope *)(void *)(block + HEADER);
}

struct evc_pool *evc_pool_of(const void *slot)
{
	return *(struct evc_pool *const *)(const void *)((const char *)slot - HEADER);
}

void evc_pool_give(void *slot)
{
	struct evc_pool *pool = evc_pool_of(slot);
	char *block = (char *)slot - HEADER;

	/* A segment's slots are poisoned as they end (stream.h); their first half may still be looked at. */
	if (!pool->holds_segments)
		__asan_poison_memory_region((char *)slot + 32, pool->slot_size - 32);
	evc_domain_retire((struct evc_domain_head *)(void *)(block + 8), reclaim_block);
}

void evc_pool_untake(struct evc_pool *pool, struct evc_envelope *slot)
{
	(void)pool;
	evc_pool_give(slot);
}

void evc_return_cache_give(struct evc_return_cache *cache, void *slot)
{
	(void)cache;
	evc_pool_give(slot);
}

void evc_return_cache_flush(struct evc_return_cache *cache)
{
	evc_stream_flush(cache);
}

#else

/* Takes one chain of the list and makes its first slot the result. */
static struct evc_envelope *start_chain(struct evc_pool *pool, struct evc_envelope *chain)
{
	/* Relaxed: only the owner adds; the trim may reset it between, which loses a count. */
	uint64_t taken = atomic_load_explicit(&pool->taken, memory_order_relaxed);

	atomic_store_explicit(&pool->taken, taken + chain->chain_count, memory_order_relaxed);
	pool->chains = chain->next_chain;
	pool->chain = evc_slot_next(chain);
	return chain;
}

static struct evc_envelope *bump(struct evc_pool *pool)
{
	struct evc_envelope *slot;

	if (pool->bump == pool->bump_end) {
		struct evc_slab *slab = evc_slab_create(pool);

		if (slab == NULL)
			return NULL;
		pool->bump = (char *)slab + evc_slab_first(pool->slot_size);
		pool->bump_end = pool->bump + (size_t)slab->capacity * pool->slot_size;
		atomic_fetch_add_explicit(&pool->taken, slab->capacity, memory_order_relaxed);
	}
	slot = (struct evc_envelope *)(void *)pool->bump;
	pool->bump += pool->slot_size;
	if (pool->holds_segments)
		evc_segment_prepare(slot, pool->slot_size);
	return slot;
}

struct evc_envelope *evc_pool_refill(struct evc_pool *pool)
{
	struct evc_envelope *list, *chain, *oldest_first = NULL;

	if (pool->chains != NULL)
		return start_chain(pool, pool->chains);
	/* Looked at first: an exchange would take the line from the givers even when there is nothing. */
	if (atomic_load_explicit(&pool->reserve, memory_order_relaxed) != NULL) {
		/* Pairs with the store below through the trim, which may have taken and given on. */
		list = atomic_exchange_explicit(&pool->reserve, NULL, memory_order_acquire);
		if (list != NULL)
			goto cut;
	}
	if (atomic_load_explicit(&pool->returned, memory_order_relaxed) == NULL)
		return bump(pool);
	/* Pairs with push_chains: the links of the chains before their appearance. */
	list = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
	if (list == NULL)
		return bump(pool);
cut:
	/* They come newest first; reversed, slots go round in one order, and addresses stay sorted. */
	for (unsigned chains = 0; chains < GRAB_CHAINS && list != NULL; chains++) {
		chain = list;
		list = chain->next_chain;
		chain->next_chain = oldest_first;
		oldest_first = chain;
	}
	/*
	 * What the owner does not need soon stays where a trim can reach it. `reserve` is empty: only the
	 * owner fills it, and it found it so or emptied it above. Pairs with the exchange in trim_pool.
	 */
	if (list != NULL)
		atomic_store_explicit(&pool->reserve, list, memory_order_release);
	return start_chain(pool, oldest_first);
}

void evc_pool_push_chains(struct evc_pool *pool, struct evc_envelope *first,
			  struct evc_envelope *last)
{
	struct evc_envelope *head = atomic_load_explicit(&pool->returned, memory_order_relaxed);

	do {
		last->next_chain = head;
		/* Pairs with the exchanges in evc_pool_refill and the trim. */
	} while (!atomic_compare_exchange_weak_explicit(&pool->returned, &head, first,
							memory_order_release,
							memory_order_relaxed));
}

static void flush_way(struct evc_return_cache *cache, unsigned way)
{
	struct evc_envelope *head = cache->ways[way].head;

	if (head == NULL)
		return;
	evc_slot_set_next(cache->ways[way].tail, NULL);
	head->chain_count = cache->ways[way].count;
	evc_pool_push_chains(cache->ways[way].pool, head, head);
	cache->ways[way].head = NULL;
	cache->ways[way].count = 0;
}

void evc_return_cache_give(struct evc_return_cache *cache, void *memory)
{
	struct evc_envelope *slot = memory;
	struct evc_pool *pool = evc_pool_of(slot);
	unsigned way = pool->number % EVC_RETURN_WAYS;

	if (evc_unlikely(cache->ways[way].pool != pool)) {
		flush_way(cache, way);
		cache->ways[way].pool = pool;
	}
	/*
	 * Behind the others, so that slots are taken again in the order of their last use, which is for
	 * the most part the order of their addresses: the processors' prefetchers follow that.
	 */
	if (cache->ways[way].head == NULL)
		cache->ways[way].head = slot;
	else
		evc_slot_set_next(cache->ways[way].tail, slot);
	cache->ways[way].tail = slot;
	if (++cache->ways[way].count == pool->chain_length) {
		cache->given += pool->chain_length * (pool->slot_size / 64);
		flush_way(cache, way);
	}
}

void evc_return_cache_flush(struct evc_return_cache *cache)
{
	evc_stream_flush(cache);
	for (unsigned way = 0; way < EVC_RETURN_WAYS; way++)
		flush_way(cache, way);
}

void evc_pool_give(void *memory)
{
	struct evc_envelope *slot = memory;

	evc_slot_set_next(slot, NULL);
	slot->chain_count = 1;
	evc_pool_push_chains(evc_pool_of(slot), slot, slot);
}

#endif
#endif
