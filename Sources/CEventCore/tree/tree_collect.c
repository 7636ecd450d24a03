/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* One file, though long: the ways up, down and on share one collector. */
#include "tree/tree_collect.h"

#define LARGEST_CHUNK 4096u
#define WAY 32u

void evc_collector_use_window(struct evc_collector *to)
{
	struct evc_window *window = evc_walk_window(to->walk);

	to->handlers = window->handlers;
	to->objects = evc_window_objects(window);
	to->room = window->capacity;
}

/* True if a handler was called before; handlers are asked for in their order. */
static bool was_called(struct evc_collector *to, const struct evc_handler *handler)
{
	for (uint32_t i = to->called; i < to->called_end; i++) {
		if (to->handlers[i] == handler) {
			to->called = i + 1;
			return true;
		}
	}
	to->called = to->called_end;
	return false;
}

static inline void put(struct evc_collector *to, struct evc_handler *handler)
{
	to->objects[to->count] = handler->item.object;
	__atomic_store_n(&to->handlers[to->count++], handler, __ATOMIC_RELAXED);
}

/* The slow path: some handlers were called before, or the window is full. False = out of memory. */
static __attribute__((noinline, cold)) bool collect_slowly(struct evc_collector *to,
							   struct evc_handler *handler)
{
	if (to->called != to->called_end && was_called(to, handler))
		return true;
	evc_collector_use_window(to);
	if (to->count == to->room) {
		if (!evc_tree_walk_grow(to->walk, to->count))
			return false;
		evc_collector_use_window(to);
	}
	put(to, handler);
	return true;
}

/*
 * Collects the handlers of a node. False = out of memory. Inlined, and the collector copied for the slow
 * path, so that its fields stay in registers: read again after each acquire, they take half as long again.
 */
static inline __attribute__((always_inline)) bool visit(struct evc_collector *to, const struct evc_node *node)
{
	/* Acquire, here and below: pairs with L. */
	struct evc_handler *handler =
		atomic_load_explicit(&node->first_handler, memory_order_acquire);

	for (; handler != NULL;
	     handler = atomic_load_explicit(&handler->next, memory_order_acquire)) {
		/* Relaxed: if it is being removed, its stamp or state is seen before the call. */
		if (handler->key != to->key || !(handler->item.modes & to->phase) ||
		    atomic_load_explicit(&handler->item.stamp, memory_order_relaxed) > to->start)
			continue;
		if (evc_likely(to->count < to->room)) {
			put(to, handler);
		} else {
			struct evc_collector copy = *to;
			bool is_collected = collect_slowly(&copy, handler);

			*to = copy;
			if (!is_collected)
				return false;
		}
	}
	return true;
}

static inline bool may_match(const _Atomic uint64_t *mask, uint64_t bit)
{
	/* Relaxed, M: a walk that must find a handler has seen it counted. */
	return (atomic_load_explicit(mask, memory_order_relaxed) & bit) != 0;
}

static void reverse(struct evc_collector *to, uint32_t from, uint32_t end)
{
	struct evc_handler **handlers = to->handlers;

	for (; from + 1 < end; from++) {
		struct evc_handler *other = handlers[--end];
		void *object = to->objects[end];

		__atomic_store_n(&handlers[end], handlers[from], __ATOMIC_RELAXED);
		__atomic_store_n(&handlers[from], other, __ATOMIC_RELAXED);
		to->objects[end] = to->objects[from];
		to->objects[from] = object;
	}
}

/*
 * Collects from a node up to its root, `*top`. EVC_COLLECT_AGAIN: a link was added or removed after the
 * start; the walk begins again, with the time of that.
 */
static inline __attribute__((always_inline)) enum evc_collected
climb_in(struct evc_collector *to, struct evc_node *node, uint8_t phase, struct evc_node **top)
{
	uint32_t first = to->count;

	to->phase = phase;
	for (;;) {
		uint32_t group = to->count;
		struct evc_link *link;
		uint64_t time;

		if (phase != 0 && may_match(&node->own, to->walk->bit)) {
			if (!visit(to, node))
				return EVC_COLLECT_NO_MEMORY;
			if (phase == EVC_WALK_CAPTURE)
				reverse(to, group, to->count);
		}
		link = evc_climb_link(node, &time);
		if (evc_unlikely(time > to->start)) {
			to->start = time;
			return EVC_COLLECT_AGAIN;
		}
		if (link == NULL)
			break;
		node = link->parent;
	}
	if (phase == EVC_WALK_CAPTURE)
		reverse(to, first, to->count);
	*top = node;
	return EVC_COLLECTED_ALL;
}

static enum evc_collected climb(struct evc_collector *to, struct evc_node *node, uint8_t phase,
			  struct evc_node **top)
{
	struct evc_collector copy = *to;
	enum evc_collected outcome = climb_in(&copy, node, phase, top);

	*to = copy;
	return outcome;
}

/*
 * The innermost links on the way from the root that had later siblings when the walk passed them, so that it
 * need not climb back node by node. A link without one gets none that the walk may find.
 */
struct way {
	struct evc_link *links[WAY];
	/* How many were added. */
	uint32_t end;
	/* How many of them are kept. */
	uint32_t count;
	/* True if none was dropped. */
	bool is_whole;
};

static inline __attribute__((always_inline)) void way_add(struct way *way, struct evc_link *link)
{
	way->links[way->end++ % WAY] = link;
	if (evc_likely(way->count < WAY))
		way->count++;
	else
		way->is_whole = false;
}

/*
 * Collects in preorder from the successor of `link`, or from the root if that is NULL, up to `until`
 * handlers; then it stands at `*position`. EVC_COLLECT_AGAIN: an ancestor was moved or detached meanwhile.
 */
static inline __attribute__((always_inline)) enum evc_collected
propagate_in(struct evc_collector *to, struct evc_link *link, uint32_t until,
	     struct evc_link **position)
{
	/* Relaxed: only this thread writes it. */
	struct evc_node *const root =
		atomic_load_explicit(&to->walk->root, memory_order_relaxed);
	const uint64_t bit = to->walk->bit, start = to->start;
	bool is_visited = link != NULL;
	struct way way;

	way.end = way.count = 0;
	way.is_whole = !is_visited;
	to->phase = EVC_WALK_PROPAGATE;
	if (!is_visited)
		link = &root->first_link;
	for (;;) {
		struct evc_node *node = evc_link_node(link);
		struct evc_link *next;

		if (!is_visited) {
			if (may_match(&node->own, bit) && evc_unlikely(!visit(to, node)))
				return EVC_COLLECT_NO_MEMORY;
			if (to->count >= until) {
				*position = link;
				return EVC_COLLECTED_CHUNK;
			}
		}
		is_visited = false;
		/* Acquire, here and below: L. */
		next = atomic_load_explicit(&node->first_child, memory_order_acquire);
		for (;;) {
			while (next == NULL) {
				if (way.count > 0) {
					way.count--;
					/* Its `next` leads back to the list, even if unlinked. */
					link = way.links[--way.end % WAY];
					next = atomic_load_explicit(&link->next,
								    memory_order_acquire);
					continue;
				}
				if (way.is_whole || link == &root->first_link)
					return EVC_COLLECTED_ALL;
				next = atomic_load_explicit(&link->next, memory_order_acquire);
				if (next != NULL)
					break;
				node = link->parent;
				if (node == root)
					return EVC_COLLECTED_ALL;
				link = atomic_load_explicit(&node->link, memory_order_acquire);
				if (link == NULL || evc_link_came_later(link, start))
					return EVC_COLLECT_AGAIN;
			}
			link = next;
			next = atomic_load_explicit(&link->next, memory_order_acquire);
			if (evc_likely(!evc_link_came_later(link, start) &&
				       may_match(&evc_link_node(link)->subtree, bit)))
				break;
		}
		if (next != NULL)
			way_add(&way, link);
	}
}

static enum evc_collected propagate(struct evc_collector *to, struct evc_link *link, uint32_t until,
			      struct evc_link **position)
{
	struct evc_collector copy = *to;
	enum evc_collected outcome = propagate_in(&copy, link, until, position);

	*to = copy;
	return outcome;
}

/* Where the walk can go on: its position if the link is still in place, or NULL: from the root. */
static struct evc_link *find_position(struct evc_tree_walk *walk, uint64_t clock,
				      struct evc_collector *to)
{
	/* Relaxed: only this thread writes them. */
	struct evc_link *position = atomic_load_explicit(&walk->position, memory_order_relaxed);
	struct evc_node *root = atomic_load_explicit(&walk->root, memory_order_relaxed);
	uint32_t steps = 0;

	to->called = to->called_end = 0;
	if (position == NULL || position == &root->first_link || clock == walk->position_clock)
		return position;
	/* The walk holds the link. Its node exists as long as it is linked. */
	if (!evc_link_came_later(position, walk->start) &&
	    evc_node_is_under(walk, position->parent, root, root, &steps)) {
		/* The tree is deep: larger chunks, so that the climbs do not cost more than the handlers. */
		if (walk->limit < steps)
			walk->limit = steps < LARGEST_CHUNK ? steps : LARGEST_CHUNK;
		return position;
	}
	to->called = walk->raise_end;
	to->called_end = walk->chunk;
	to->room = 0;
	if (walk->limit < LARGEST_CHUNK)
		walk->limit *= 2;
	return NULL;
}

enum evc_collected evc_collect_chunk(struct evc_tree_walk *walk, struct evc_collector *to)
{
	struct evc_link *position = NULL;
	enum evc_collected outcome;

	walk->chunk = to->count;
	do {
		/* Acquire, pairs with C. After W2: if it is the same next time, nothing was freed. */
		uint64_t clock = atomic_load_explicit(&evc_tree.clock, memory_order_acquire);
		struct evc_link *from = find_position(walk, clock, to);

		to->count = walk->chunk;
		outcome = propagate(to, from, walk->chunk + walk->limit, &position);
		if (outcome != EVC_COLLECT_AGAIN && outcome != EVC_COLLECT_NO_MEMORY)
			walk->position_clock = clock;
		/* As if no position had been found, so that the next look uses the current clock. */
		else
			walk->position_clock = 0;
	} while (evc_unlikely(outcome == EVC_COLLECT_AGAIN));
	if (evc_unlikely(outcome == EVC_COLLECT_NO_MEMORY)) {
		to->count = walk->chunk;
		walk->cached_clock = 0;
		return outcome;
	}
	walk->limit = walk->limit < EVC_CHUNK ? EVC_CHUNK : walk->limit;
	walk->is_over = outcome == EVC_COLLECTED_ALL;
	/* W4. Release: what was read of the previous link. */
	atomic_store_explicit(&walk->position, position, memory_order_release);
	/* Valid only if everything was collected at one time of the clock. */
	if (walk->position_clock != walk->cached_clock)
		walk->cached_clock = 0;
	walk->cached_end = to->count;
	walk->cached_position = position;
	walk->cached_is_all = walk->is_over;
	return outcome;
}

enum evc_status evc_collect_first(struct evc_tree_walk *walk, struct evc_node *node,
				     uint32_t scope, struct evc_collector *to)
{
	struct evc_node *top;
	enum evc_collected outcome;

	do {
		to->count = 0;
		outcome = EVC_COLLECTED_ALL;
		top = NULL;
		if (scope & EVC_WALK_CAPTURE)
			outcome = climb(to, node, EVC_WALK_CAPTURE, &top);
		walk->capture_end = to->count;
		/* A second climb with the same start comes by the same way. */
		if (outcome == EVC_COLLECTED_ALL &&
		    ((scope & EVC_WALK_RAISE) || (top == NULL && !(scope & EVC_WALK_FROM_HERE))))
			outcome = climb(to, node, scope & EVC_WALK_RAISE, &top);
	} while (evc_unlikely(outcome == EVC_COLLECT_AGAIN));
	if (evc_unlikely(outcome == EVC_COLLECT_NO_MEMORY))
		return EVC_OUT_OF_MEMORY;
	walk->start = to->start;
	walk->raise_end = to->count;
	if (top == NULL)
		top = node;
	if (!(scope & EVC_WALK_FROM_HERE))
		node = top;
	walk->is_over = !(scope & EVC_WALK_PROPAGATE) || !may_match(&node->subtree, walk->bit);
	if (to->count == 0 && walk->is_over)
		return EVC_EMPTY;
	/* W4. Release: what the last walk read of its own root. */
	atomic_store_explicit(&walk->root, node, memory_order_release);
	walk->cached_top = top;
	walk->cached_root = node;
	walk->cached_end = to->count;
	walk->cached_position = NULL;
	walk->cached_is_all = walk->is_over;
	if (to->count > 0)
		return EVC_OK;
	if (evc_collect_chunk(walk, to) == EVC_COLLECT_NO_MEMORY)
		return EVC_OUT_OF_MEMORY;
	return to->count > 0 ? EVC_OK : EVC_EMPTY;
}
#endif
