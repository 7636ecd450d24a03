/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The order of the deadlines: a heap with four children for each node, whose timers know their positions.
 *
 * J. W. J. Williams, "Algorithm 232: Heapsort", CACM 7 (1964), with four children, which lie together on one
 * cache line: A. LaMarca and R. E. Ladner, "The influence of caches on the performance of heaps", ACM JEA 1
 * (1996). The root is at position 3, the children of i at 4i - 8 ... 4i - 5, so that each group of four
 * begins at a multiple of four.
 *
 * Why not a timing wheel (G. Varghese and A. Lauck, "Hashed and hierarchical timing wheels", SOSP 1987)? One
 * of eleven levels of 64 slots, exact to the nanosecond (a radix heap: R. K. Ahuja et al., "Faster algorithms
 * for the shortest path problem", JACM 37, 1990), was measured beside it. A million timers pending, deadlines
 * spread over 100 s, nanoseconds:
 *
 *                     insert   cancel   fire   longest single step
 *     this heap         5-30   90-140    450      0.2-1.3 ms (the machine's noise)
 *     wheel             7-10    25-35    500   95-190 ms
 *
 * The wheel is cheaper until a coarse slot comes due. Then its timers, here a tenth to a half of all, are
 * moved to finer slots at once, and whatever is due meanwhile is that late. Exact order and lateness under a
 * millisecond are promised; an insert that is 20 ns faster is not.
 * Benchmarks/Sources/RawCore/choices_timers.c has both. Cancelled timers are removed sixteen at a time, so
 * that their lines are fetched together.
 *
 * All functions: under the scheduler's lock. O(log n), no allocation.
 */
#ifndef EVC_TIMER_HEAP_H
#define EVC_TIMER_HEAP_H

#include "scheduler/timer.h"

struct evc_timer_heap {
	/* The last position in use; EVC_TIMER_FIRST - 1 if there is none. */
	uint32_t last;
	/* The ordinal of the last timer that was put in. */
	uint64_t number;
};

static inline void evc_timer_heap_init(struct evc_timer_heap *heap)
{
	heap->last = EVC_TIMER_FIRST - 1;
	heap->number = 0;
}

/* The earliest timer, or NULL. */
static inline struct evc_timer *evc_timer_heap_first(const struct evc_timer_heap *heap,
						     struct evc_timer_store *store)
{
	return heap->last < EVC_TIMER_FIRST ? NULL : evc_timer_entry(store, EVC_TIMER_FIRST)->timer;
}

/* Inserts a timer behind all that have the same deadline. */
void evc_timer_heap_insert(struct evc_timer_heap *heap, struct evc_timer_store *store,
			   struct evc_timer *timer);
void evc_timer_heap_remove(struct evc_timer_heap *heap, struct evc_timer_store *store,
			   struct evc_timer *timer);
/* Prefetches what evc_timer_heap_remove needs for a timer that is removed after `before` others. */
void evc_timer_heap_prefetch(const struct evc_timer_heap *heap, struct evc_timer_store *store,
			     const struct evc_timer *timer, uint32_t before);

#endif
