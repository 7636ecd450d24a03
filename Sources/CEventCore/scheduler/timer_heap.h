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
 * Why not a timing wheel? Whatever is due while a coarse slot's timers are moved is late by all of them
 * (Documentation/Choices.md).
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
