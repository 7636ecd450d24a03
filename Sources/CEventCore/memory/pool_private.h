/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Pools of slots: one per thread and size class. The owning thread takes, any thread gives back.
 *
 * Synchronization:
 *   field       owner thread     giving threads    trim                  order
 *   chain       read, write      -                 -                     owner only
 *   chains      read, write      -                 -                     owner only
 *   bump        read, write      -                 -                     owner only
 *   taken       write            -                 exchange to 0         relaxed: a statistic
 *   reserve     exchange, store  -                 exchange to NULL      acquire, release
 *   returned    exchange         compare-and-swap  both                  acquire, release
 * Only the owner stores a list into `reserve`, and only after it has emptied it, so that a plain store
 * loses nothing. `returned` is pushed to by compare-and-swap and taken as a whole by exchange: with no
 * pop of single elements there is no ABA (R. K. Treiber 1986; the same pattern is technique 3 of
 * liburcu's lfstack). Tests/Models/pool.pml models evc_pool_refill, evc_chain_give and the trim.
 *
 * Progress: take is wait-free while the pool is warm; giving is lock-free, one compare-and-swap for 32
 * slots. Ownership: a slot has one holder: a pool, a return cache, a chain on its way, or the user.
 */
#ifndef EVC_POOL_PRIVATE_H
#define EVC_POOL_PRIVATE_H

#include "memory/slot.h"

#define EVC_SLAB_SIZE ((size_t)256 * 1024)
/*
 * Class 0 holds envelopes; class n holds boxes of 64 << n bytes: 128 to 4096. Segments of streams have
 * classes of their own, since evc_mailbox_depths follows the links at their beginning: that memory must
 * never hold anything else.
 */
#define EVC_CLASS_FIRST_SEGMENT 7u
#define EVC_CLASS_SEGMENT 8u
#define EVC_CLASS_COUNT 9u
#define EVC_FIRST_SEGMENT_SIZE 512u
#define EVC_SEGMENT_SIZE 4096u
/* How many slots go back at once: few enough to be in the cache, enough to share out the cost. */
#define EVC_CHAIN_LENGTH 32u
#define EVC_SEGMENT_CHAIN_LENGTH 2u

struct evc_pool {
	struct evc_envelope *chain;
	struct evc_envelope *chains;
	char *bump;
	char *bump_end;
	uint32_t slot_size;
	/* How many slots go back at once. */
	uint32_t chain_length;
	bool holds_segments;
	/* Tells the pools of a return cache apart. */
	uint32_t number;
	_Atomic uint64_t taken;

	/* On a line of its own: consumers write here while the owner works above. */
	_Alignas(EVC_CACHE_LINE) _Atomic(struct evc_envelope *) returned;
	_Atomic(struct evc_envelope *) reserve;
};

/* Free slots on their way back, sorted by the pool they belong to. One holder, no atomics. */
#define EVC_RETURN_WAYS 8u
struct evc_return_cache {
	struct {
		struct evc_pool *pool;
		struct evc_envelope *head;
		struct evc_envelope *tail;
		uint32_t count;
	} ways[EVC_RETURN_WAYS];
	/* The segment whose slots ended last, and how many of them it has not been told of. */
	struct evc_segment *segment;
	uint32_t segment_ended;
	/* Given since the last flush that asked for a trim, in units of 64 bytes. */
	uint64_t given;
};

void evc_pool_init(struct evc_pool *pool, size_t class_index, uint32_t number);

/* The part of take that finds the next chain, or a fresh slot. NULL = out of memory. */
struct evc_envelope *evc_pool_refill(struct evc_pool *pool);

/* Takes a slot. Owner only. NULL = out of memory. */
static inline struct evc_envelope *evc_pool_take(struct evc_pool *pool)
{
	struct evc_envelope *slot = pool->chain;

	if (evc_likely(slot != NULL)) {
		pool->chain = evc_slot_next(slot);
		evc_slot_prefetch(slot);
		return slot;
	}
	return evc_pool_refill(pool);
}

struct evc_slab;

/* A slab is aligned to its size. */
static inline struct evc_slab *evc_slab_of(const void *slot)
{
	return (struct evc_slab *)((uintptr_t)slot & ~(uintptr_t)(EVC_SLAB_SIZE - 1));
}

#ifdef EVC_ADDRESS_SANITIZER
/* The pool that a slot came from. */
struct evc_pool *evc_pool_of(const void *slot);

/* Gives one slot back to its own pool by the owner. */
void evc_pool_untake(struct evc_pool *pool, struct evc_envelope *slot);
#else
static inline struct evc_pool *evc_pool_of(const void *slot)
{
	/* What a slab begins with (slab.h). */
	return *(struct evc_pool **)(void *)evc_slab_of(slot);
}

static inline void evc_pool_untake(struct evc_pool *pool, struct evc_envelope *slot)
{
	evc_slot_set_next(slot, pool->chain);
	pool->chain = slot;
}
#endif

/* Gives one slot back through a cache. The cache's holder only. */
void evc_return_cache_give(struct evc_return_cache *cache, void *slot);

/* Sends all chains of a cache home. The cache's holder only. */
void evc_return_cache_flush(struct evc_return_cache *cache);

/* Gives one slot back without a cache. Any thread. */
void evc_pool_give(void *slot);

/*
 * Asks the callback thread for a trim if the last one is `interval` nanoseconds ago. True if there may
 * still be something to trim, so that the caller should ask again.
 */
bool evc_pool_request_trim(uint64_t interval);

#endif
