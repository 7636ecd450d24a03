/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Timers and their memory: blocks of doubling size, found by an index, never moved, freed together.
 *
 * Beside each timer lies room for one entry of the heap (timer_heap.h), so that a timer that was allocated
 * can always be put into the heap.
 *
 * `word` of a timer: generation (32 bits) | index (29) | state (3). The id that the user holds is the word as
 * it was when the timer was pending. A cancel is therefore one compare-and-swap, which fails for an id of an
 * earlier generation.
 *
 *   FREE ──take──► PENDING ──runner──► FIRING ──set again──► PENDING
 *                    │ cancel             │ cancel
 *                    ▼                    ▼
 *                 CANCELLED            LAST (fires for the last time)
 *   and from any of the last four, under the lock, to FREE of the next generation.
 *
 * Taking is lock-free: a list of free timers with a counter against the ABA problem (R. K. Treiber, "Systems
 * programming: coping with parallelism", IBM RJ 5118, 1986), then unused ones by a counter.
 */
#ifndef EVC_TIMER_H
#define EVC_TIMER_H

#include "platform/compiler.h"
#include "eventcore/scheduler.h"

#include <assert.h>
#include <stdatomic.h>

enum evc_timer_state {
	EVC_TIMER_FREE = 0,
	EVC_TIMER_PENDING = 1,
	EVC_TIMER_FIRING = 2,
	EVC_TIMER_CANCELLED = 3,
	EVC_TIMER_LAST = 4
};

#define EVC_TIMER_STATE_MASK UINT64_C(7)
#define EVC_TIMER_GENERATION (UINT64_C(1) << 32)
/* Positions in the heap begin at 3 (timer_heap.h), and so do indices: one entry for each timer. */
#define EVC_TIMER_FIRST 3u
#define EVC_TIMER_NOWHERE 0u
/*
 * The first two blocks have so many timers, a power of two and at least four, and each further one twice as many as
 * the one before. The explorer has fewer.
 */
#ifndef EVC_TIMER_FIRST_BLOCK
#define EVC_TIMER_FIRST_BLOCK 128u
#endif
/* Enough for EVC_TIMER_MAX timers if the first block has four. */
#define EVC_TIMER_BLOCKS 28u
static_assert(EVC_TIMER_FIRST_BLOCK >= 4 && (EVC_TIMER_FIRST_BLOCK & (EVC_TIMER_FIRST_BLOCK - 1)) == 0,
	      "the first block has a power of two of timers, four at least");

struct evc_timer {
	/* Written by the adding thread before it publishes the timer, afterwards under the lock. */
	uint64_t deadline;
	/* The order among equal deadlines. Under the lock. */
	uint64_t number;
	const struct evc_timer_ops *ops;
	void *context;
	_Atomic uint64_t word;
	/* The next in the list of added timers (a pointer) or of free ones (an index). */
	_Atomic uintptr_t link;
	/* Written by the cancelling thread before it publishes the timer in the list of cancelled ones. */
	struct evc_timer *next_cancelled;
	/* In the heap, or EVC_TIMER_NOWHERE. Under the lock. */
	uint32_t position;
};
static_assert(sizeof(struct evc_timer) == 64, "a timer is a cache line");

/* A heap entry; see timer_heap.h. */
struct evc_timer_entry {
	uint64_t deadline;
	struct evc_timer *timer;
};

struct evc_timer_store {
	/* Each is written once, by the thread that needs the block first; read by all. */
	_Atomic(struct evc_timer *) blocks[EVC_TIMER_BLOCKS];
	/* Counter (32 bits) | index of the first free timer, 0 = none. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t free;
	/* The first index that was never used; EVC_TIMER_FIRST at the beginning. */
	_Atomic uint32_t fresh;
};

static inline enum evc_timer_state evc_timer_state(uint64_t word)
{
	return (enum evc_timer_state)(word & EVC_TIMER_STATE_MASK);
}

static inline uint64_t evc_timer_with_state(uint64_t word, enum evc_timer_state state)
{
	return (word & ~EVC_TIMER_STATE_MASK) | (uint64_t)state;
}

static inline uint32_t evc_timer_index(uint64_t word)
{
	return (uint32_t)word >> 3;
}

/* Block of an index: 0 for those of the first block, then one for each power of two. */
static inline uint32_t evc_timer_block(uint32_t index)
{
	const uint32_t last = EVC_TIMER_FIRST_BLOCK - 1;

	return (uint32_t)__builtin_clz(last) - (uint32_t)__builtin_clz(index | last);
}

static inline uint32_t evc_timer_block_start(uint32_t block)
{
	return block == 0 ? 0 : EVC_TIMER_FIRST_BLOCK / 2 << block;
}

static inline uint32_t evc_timer_block_size(uint32_t block)
{
	return block == 0 ? EVC_TIMER_FIRST_BLOCK : EVC_TIMER_FIRST_BLOCK / 2 << block;
}

/* The timer of an index that is in use. */
static inline struct evc_timer *evc_timer_at(struct evc_timer_store *store, uint32_t index)
{
	uint32_t block = evc_timer_block(index);

	/* Relaxed: the index came with the block (take_fresh). */
	return atomic_load_explicit(&store->blocks[block], memory_order_relaxed) +
	       (index - evc_timer_block_start(block));
}

/* The heap entry of a position, which the index of a timer in the heap has reached. Under the lock. */
static inline struct evc_timer_entry *evc_timer_entry(struct evc_timer_store *store, uint32_t position)
{
	uint32_t block = evc_timer_block(position);
	/* Relaxed: that timer came with the block (take_fresh). */
	struct evc_timer *timers =
		atomic_load_explicit(&store->blocks[block], memory_order_relaxed);

	return (struct evc_timer_entry *)(void *)(timers + evc_timer_block_size(block)) +
	       (position - evc_timer_block_start(block));
}

/* Frees the blocks. No thread uses the store any more. */
void evc_timer_store_close(struct evc_timer_store *store);

/* Takes a timer in the state FREE; NULL = out of memory. Any thread; lock-free. */
struct evc_timer *evc_timer_take(struct evc_timer_store *store);
/* Frees timers, in any state; the first is taken again first. Any thread that owns them; lock-free. */
void evc_timer_give_all(struct evc_timer_store *store, struct evc_timer *const *timers,
			uint32_t count);

static inline void evc_timer_give(struct evc_timer_store *store, struct evc_timer *timer)
{
	evc_timer_give_all(store, &timer, 1);
}

#endif
