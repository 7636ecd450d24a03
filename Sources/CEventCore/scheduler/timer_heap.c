/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "scheduler/timer_heap.h"

static inline uint32_t parent_of(uint32_t position)
{
	return position / 4 + 2;
}

/* Positions are below 2^29, so that this fits. */
static inline uint32_t first_child_of(uint32_t position)
{
	return 4 * position - 8;
}

static inline bool is_before(const struct evc_timer_entry *a, const struct evc_timer_entry *b)
{
	if (a->deadline != b->deadline)
		return a->deadline < b->deadline;
	return a->timer->number < b->timer->number;
}

static inline void put(struct evc_timer_store *store, uint32_t position,
		       struct evc_timer_entry entry)
{
	*evc_timer_entry(store, position) = entry;
	entry.timer->position = position;
}

/* Fills the hole at `position`, or one above it, with `entry`. */
static void sift_up(struct evc_timer_store *store, uint32_t position, struct evc_timer_entry entry)
{
	while (position > EVC_TIMER_FIRST) {
		uint32_t parent = parent_of(position);
		struct evc_timer_entry above = *evc_timer_entry(store, parent);

		if (!is_before(&entry, &above))
			break;
		put(store, position, above);
		position = parent;
	}
	put(store, position, entry);
}

/* Fills the hole at `position`, or one below it, with `entry`. */
static void sift_down(struct evc_timer_heap *heap, struct evc_timer_store *store, uint32_t position,
		      struct evc_timer_entry entry)
{
	for (;;) {
		uint32_t child = first_child_of(position);
		/* Four children never lie in two blocks: blocks begin at multiples of four. */
		struct evc_timer_entry *children;
		uint32_t count, least = 0;

		if (child > heap->last)
			break;
		children = evc_timer_entry(store, child);
		count = heap->last - child + 1;
		for (uint32_t i = 1; i < 4 && i < count; i++)
			if (is_before(&children[i], &children[least]))
				least = i;
		if (!is_before(&children[least], &entry))
			break;
		put(store, position, children[least]);
		position = child + least;
	}
	put(store, position, entry);
}

void evc_timer_heap_insert(struct evc_timer_heap *heap, struct evc_timer_store *store,
			   struct evc_timer *timer)
{
	timer->number = ++heap->number;
	sift_up(store, ++heap->last, (struct evc_timer_entry){ timer->deadline, timer });
}

void evc_timer_heap_prefetch(const struct evc_timer_heap *heap, struct evc_timer_store *store,
			     const struct evc_timer *timer, uint32_t before)
{
	uint32_t position = timer->position;

	if (position == EVC_TIMER_NOWHERE)
		return;
	__builtin_prefetch(evc_timer_entry(store, position), 1);
	if (position > EVC_TIMER_FIRST)
		__builtin_prefetch(evc_timer_entry(store, parent_of(position)), 0);
	if (first_child_of(position) <= heap->last)
		__builtin_prefetch(evc_timer_entry(store, first_child_of(position)), 0);
	/* The timer of the last entry, which will move. */
	if (heap->last >= EVC_TIMER_FIRST + before)
		__builtin_prefetch(evc_timer_entry(store, heap->last - before)->timer, 1);
}

void evc_timer_heap_remove(struct evc_timer_heap *heap, struct evc_timer_store *store,
			   struct evc_timer *timer)
{
	uint32_t position = timer->position;
	struct evc_timer_entry last = *evc_timer_entry(store, heap->last--);

	timer->position = EVC_TIMER_NOWHERE;
	if (last.timer == timer)
		return;
	/* Its position will be written; with a million timers it is in no cache. */
	__builtin_prefetch(last.timer, 1);
	/* The last entry fills the hole. It may be earlier than the hole's parent, or later than a child. */
	if (position > EVC_TIMER_FIRST && is_before(&last, evc_timer_entry(store, parent_of(position))))
		sift_up(store, position, last);
	else
		sift_down(heap, store, position, last);
}
#endif
