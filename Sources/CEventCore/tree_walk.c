/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A walk collects handlers chunk by chunk into its window, one after the other, and keeps those that were
 * called: 8 bytes each, in the order of the walk.
 *
 * The handlers on the path to the root are collected at the beginning, all at once. Propagating goes
 * on where the last chunk ended, if that node is still where it was: nothing has changed since (the clock
 * says so), or a climb to the root finds none but links from before the walk. Else it goes through the tree
 * once more and passes over what was called. Those are a prefix of what is to be met: what stays keeps its
 * order, and what came since the walk began is passed over by its stamp, also where it has taken the address of
 * something that was called. So one forward search in the window tells them, and the first handler that is
 * not there is where to go on. Chunks grow after that, up to a point, since it costs as much as was
 * called, while what a chunk holds cannot be freed.
 *
 * What a walk has collected stays in the window when it ends, and the next walk of this thread for the same node, key
 * and scope takes it up, chunk by chunk, as long as the clock says that no tree has changed since: one look
 * while collecting, as for the position. Only what was published is held, so that between two chunks nothing in
 * the window may be looked at but with the clock's word that it is all still there. Measured:
 * Benchmarks/README.md, "Choices".
 */
#ifdef EVC_URCU
#include "tree_reclaim.h"
#include "tree_walker.h"

/* The first chunk is small for events that the first handler consumes. */
#define FIRST_CHUNK 4u
#define CHUNK 64u
#define LARGEST_CHUNK 4096u
/* More handlers than this, and what they use, do not stay in a core's caches from one walk to the next. */
#define MANY 8192u

enum outcome { FULL, OVER, DERAILED, NO_MEMORY };

/* Where handlers are collected to. */
struct collector {
	struct evc_tree_walk *walk;
	struct evc_handler **handlers;
	uint32_t count;
	/* Up to where handlers are just put there; 0 while some are to be passed over. */
	uint32_t room;
	/* What of the window is to be passed over. */
	uint32_t called;
	uint32_t called_end;
	uint64_t key;
	uint64_t start;
	uint8_t phase;
};

static void use_window(struct collector *to)
{
	/* Relaxed: only this thread writes it. */
	struct evc_window *window = atomic_load_explicit(&to->walk->window, memory_order_relaxed);

	to->handlers = window->handlers;
	to->room = window->capacity;
}

/* Whether a handler was called before; they are asked for in their order. */
static bool was_called(struct collector *to, const struct evc_handler *handler)
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

/* Collects a handler where that is not all: some were called before, or the window is full. False = out of memory. */
static __attribute__((noinline, cold)) bool collect_slowly(struct collector *to,
							   struct evc_handler *handler)
{
	if (to->called != to->called_end && was_called(to, handler))
		return true;
	use_window(to);
	if (to->count == to->room) {
		if (!evc_tree_walk_grow(to->walk, to->count))
			return false;
		use_window(to);
	}
	__atomic_store_n(&to->handlers[to->count++], handler, __ATOMIC_RELAXED);
	return true;
}

/*
 * Collects the handlers of a node. False = out of memory. Inlined, and the collector copied for the rare call, so
 * that its fields are in registers: as memory which others may know of they would be read again after each
 * acquire, which takes half as long again.
 */
static inline __attribute__((always_inline)) bool visit(struct collector *to, const struct evc_node *node)
{
	/* Acquire, here and below: pairs with L. */
	struct evc_handler *handler =
		atomic_load_explicit(&node->first_handler, memory_order_acquire);

	for (; handler != NULL;
	     handler = atomic_load_explicit(&handler->next, memory_order_acquire)) {
		/*
		 * Relaxed: what is removed now gets a stamp after the start, too, and is seen by its state before
		 * the call at the latest.
		 */
		if (handler->key != to->key || !(handler->item.modes & to->phase) ||
		    atomic_load_explicit(&handler->item.stamp, memory_order_relaxed) > to->start)
			continue;
		if (evc_likely(to->count < to->room)) {
			__atomic_store_n(&to->handlers[to->count++], handler, __ATOMIC_RELAXED);
		} else {
			struct collector copy = *to;
			bool is_collected = collect_slowly(&copy, handler);

			*to = copy;
			if (!is_collected)
				return false;
		}
	}
	return true;
}

static inline bool came_later(const struct evc_link *link, uint64_t start)
{
	/* Relaxed, S: unlinked or not, what it leads to is there. */
	return atomic_load_explicit(&link->item.stamp, memory_order_relaxed) > start;
}

static inline bool may_match(const _Atomic uint64_t *mask, uint64_t bit)
{
	/* Relaxed, M: a walk that is to find a handler has seen it counted. */
	return (atomic_load_explicit(mask, memory_order_relaxed) & bit) != 0;
}

static void reverse(struct evc_handler **handlers, uint32_t from, uint32_t to)
{
	for (; from + 1 < to; from++) {
		struct evc_handler *other = handlers[--to];

		__atomic_store_n(&handlers[to], handlers[from], __ATOMIC_RELAXED);
		__atomic_store_n(&handlers[from], other, __ATOMIC_RELAXED);
	}
}

/* The link by which a node is a child, or NULL. */
static inline struct evc_link *find_link(const struct evc_node *node, uint64_t *stamp)
{
	/* L. */
	struct evc_link *link = atomic_load_explicit(&node->link, memory_order_acquire);

	while (link != NULL) {
		struct evc_link *old = link;

		/* Acquire: pairs with mark_unlinked and evc_tree_retire (tree.c, tree_reclaim.c). */
		*stamp = atomic_load_explicit(&link->item.stamp, memory_order_acquire);
		if (evc_likely(*stamp != EVC_UNLINKED))
			return link;
		/* Moved, not detached, if there is another. */
		link = atomic_load_explicit(&node->link, memory_order_acquire);
		if (link == old)
			return NULL;
	}
	return NULL;
}

/*
 * Collects from a node up to the root, and finds that. DERAILED: a link came after the start; the walk begins
 * anew, and with it.
 */
static inline __attribute__((always_inline)) enum outcome climb_in(struct collector *to, struct evc_node *node, uint8_t phase,
				    struct evc_node **top)
{
	uint32_t first = to->count;

	to->phase = phase;
	for (;;) {
		uint32_t group = to->count;
		struct evc_link *link;
		uint64_t stamp;

		if (phase != 0 && may_match(&node->own, to->walk->bit)) {
			if (!visit(to, node))
				return NO_MEMORY;
			if (phase == EVC_WALK_CAPTURE)
				reverse(to->handlers, group, to->count);
		}
		link = find_link(node, &stamp);
		if (link == NULL)
			break;
		if (evc_unlikely(stamp > to->start)) {
			/* All of that change can be seen, so its time is one to begin at. */
			to->start = stamp;
			return DERAILED;
		}
		node = link->parent;
	}
	if (phase == EVC_WALK_CAPTURE)
		reverse(to->handlers, first, to->count);
	*top = node;
	return OVER;
}

static enum outcome climb(struct collector *to, struct evc_node *node, uint8_t phase,
			  struct evc_node **top)
{
	struct collector copy = *to;
	enum outcome outcome = climb_in(&copy, node, phase, top);

	*to = copy;
	return outcome;
}

/* Whether a node is under `root` by links from before the walk. `*steps` counts the climb. */
static bool is_under(const struct evc_tree_walk *walk, struct evc_node *node,
		     const struct evc_node *root, const struct evc_node *known, uint32_t *steps)
{
	while (node != root && node != known) {
		/* L. */
		struct evc_link *link = atomic_load_explicit(&node->link, memory_order_acquire);

		if (link == NULL || came_later(link, walk->start))
			return false;
		node = link->parent;
		++*steps;
	}
	return true;
}

/*
 * Collects in preorder from what follows `link`, or from the root if that is NULL, until there are `until`; then
 * `*position` is where it stands. DERAILED: an ancestor was moved or detached under it.
 */
static inline __attribute__((always_inline)) enum outcome
propagate_in(struct collector *to, struct evc_link *link, uint32_t until,
	     struct evc_link **position)
{
	/* Relaxed: only this thread writes it. */
	struct evc_node *const root =
		atomic_load_explicit(&to->walk->root, memory_order_relaxed);
	const uint64_t bit = to->walk->bit, start = to->start;
	bool is_visited = link != NULL;

	to->phase = EVC_WALK_PROPAGATE;
	if (!is_visited)
		link = &root->first_link;
	for (;;) {
		struct evc_node *node = evc_link_node(link);
		struct evc_link *next;

		if (!is_visited) {
			if (may_match(&node->own, bit) && evc_unlikely(!visit(to, node)))
				return NO_MEMORY;
			if (to->count >= until) {
				*position = link;
				return FULL;
			}
		}
		is_visited = false;
		/* Acquire, here and below: L. */
		next = atomic_load_explicit(&node->first_child, memory_order_acquire);
		for (;;) {
			while (next == NULL) {
				if (node == root)
					return OVER;
				next = atomic_load_explicit(&link->next, memory_order_acquire);
				if (next != NULL)
					break;
				node = link->parent;
				if (node == root)
					return OVER;
				link = atomic_load_explicit(&node->link, memory_order_acquire);
				if (link == NULL || came_later(link, start))
					return DERAILED;
			}
			link = next;
			node = evc_link_node(link);
			if (evc_likely(!came_later(link, start) && may_match(&node->subtree, bit)))
				break;
			next = NULL;
		}
	}
}

static enum outcome propagate(struct collector *to, struct evc_link *link, uint32_t until,
			      struct evc_link **position)
{
	struct collector copy = *to;
	enum outcome outcome = propagate_in(&copy, link, until, position);

	*to = copy;
	return outcome;
}

/* Where the walk can go on: its position, if that is where it was, or NULL: from the root. */
static struct evc_link *find_position(struct evc_tree_walk *walk, uint64_t clock,
				      struct collector *to)
{
	/* Relaxed: only this thread writes them. */
	struct evc_link *position = atomic_load_explicit(&walk->position, memory_order_relaxed);
	struct evc_node *root = atomic_load_explicit(&walk->root, memory_order_relaxed);
	uint32_t steps = 0;

	to->called = to->called_end = 0;
	if (position == NULL || position == &root->first_link || clock == walk->position_clock)
		return position;
	/* The link is ours to look at. Its node is there as long as it is linked. */
	if (!came_later(position, walk->start) &&
	    is_under(walk, position->parent, root, root, &steps)) {
		/* A deep tree: so that the climbs do not cost more than the handlers. */
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

/* Collects the next chunk of propagating behind what the window has. While collecting. */
static enum outcome collect_chunk(struct evc_tree_walk *walk, struct collector *to)
{
	struct evc_link *position = NULL;
	enum outcome outcome;

	walk->chunk = to->count;
	do {
		/* Acquire, and after W2: if it is still the same, nothing was freed. */
		uint64_t clock = atomic_load_explicit(&evc_tree.clock, memory_order_acquire);
		struct evc_link *from = find_position(walk, clock, to);

		to->count = walk->chunk;
		outcome = propagate(to, from, walk->chunk + walk->limit, &position);
		if (outcome != DERAILED && outcome != NO_MEMORY)
			walk->position_clock = clock;
		/* As if nothing had been found, so that the next look is at the clock of now. */
		else
			walk->position_clock = 0;
	} while (evc_unlikely(outcome == DERAILED));
	if (evc_unlikely(outcome == NO_MEMORY)) {
		to->count = walk->chunk;
		walk->cached_clock = 0;
		return outcome;
	}
	walk->limit = walk->limit < CHUNK ? CHUNK : walk->limit;
	walk->is_over = outcome == OVER;
	/* W4. */
	atomic_store_explicit(&walk->position, position, memory_order_release);
	/* Only if all of it was collected at one time of the clock. */
	if (walk->position_clock != walk->cached_clock)
		walk->cached_clock = 0;
	walk->cached_end = to->count;
	walk->cached_position = position;
	walk->cached_is_all = walk->is_over;
	return outcome;
}

/* The objects of a chunk, and the handlers of the next: too many of them for the caches to have them still. */
static __attribute__((noinline)) void fetch_ahead(struct evc_handler *const *handlers, uint32_t from,
						  uint32_t to, uint32_t end)
{
	for (uint32_t i = from; i < to; i++) {
		if (i + CHUNK < end)
			__builtin_prefetch(handlers[i + CHUNK]);
		__builtin_prefetch(handlers[i]->item.object);
	}
}

/* The next chunk from the cache, from `from` on; returns its end. While collecting, if the clock is the cache's. */
static uint32_t take_cached(struct evc_tree_walk *walk, uint32_t from)
{
	/* Relaxed: only this thread writes it. */
	struct evc_handler **handlers =
		atomic_load_explicit(&walk->window, memory_order_relaxed)->handlers;
	struct evc_link *position = walk->cached_position;
	uint32_t end = from + CHUNK;

	/* Up to the last handler of a node, as a collected chunk. */
	while (end < walk->cached_end && handlers[end]->node == handlers[end - 1]->node)
		end++;
	if (end >= walk->cached_end) {
		end = walk->cached_end;
		walk->is_over = walk->cached_is_all;
	} else {
		struct evc_node *node = handlers[end - 1]->node;

		/* L. */
		position = node == walk->cached_root
				   ? &node->first_link
				   : atomic_load_explicit(&node->link, memory_order_acquire);
	}
	walk->position_clock = walk->cached_clock;
	if (evc_unlikely(walk->cached_end > MANY))
		fetch_ahead(handlers, from, end, walk->cached_end);
	/* W4. */
	atomic_store_explicit(&walk->position, position, memory_order_release);
	return end;
}

static bool has_cached(const struct evc_tree_walk *walk)
{
	/* Acquire, and after W2: if it is still the same, nothing was freed. */
	return walk->cached_clock ==
	       atomic_load_explicit(&evc_tree.clock, memory_order_acquire);
}

/* Hands a part of the window to the caller. */
static void show(struct evc_tree_walk *walk, uint32_t from, uint32_t to, uint32_t phase)
{
	struct evc_window *window = atomic_load_explicit(&walk->window, memory_order_relaxed);

	walk->chunk = from;
	walk->head.handlers = &window->handlers[from];
	walk->head.count = to - from;
	walk->head.phase = phase;
}

static void show_next(struct evc_tree_walk *walk)
{
	/* Relaxed: only this thread writes them. */
	uint32_t current = atomic_load_explicit(&walk->current, memory_order_relaxed);
	uint32_t published = atomic_load_explicit(&walk->published, memory_order_relaxed);

	if (current < walk->capture_end)
		show(walk, current, walk->capture_end, EVC_WALK_CAPTURE);
	else if (current < walk->raise_end)
		show(walk, current, walk->raise_end, EVC_WALK_RAISE);
	else
		show(walk, current, published, EVC_WALK_PROPAGATE);
}

/* Collects what a walk begins with. EVC_OK: some handlers, and the rest of the walk is set up. While collecting. */
static enum evc_status collect_first(struct evc_tree_walk *walk, struct evc_node *node,
				     uint32_t scope, struct collector *to)
{
	struct evc_node *top, *captured;
	enum outcome outcome;

	do {
		to->count = 0;
		outcome = OVER;
		top = captured = NULL;
		if (scope & EVC_WALK_CAPTURE)
			outcome = climb(to, node, EVC_WALK_CAPTURE, &captured);
		walk->capture_end = to->count;
		if (outcome == OVER && (scope & EVC_WALK_RAISE))
			outcome = climb(to, node, EVC_WALK_RAISE, &top);
		else if (outcome == OVER && captured == NULL && !(scope & EVC_WALK_FROM_HERE))
			outcome = climb(to, node, 0, &top);
		else
			top = captured;
		/* Detached between the two: once more. */
		if (outcome == OVER && captured != NULL && captured != top)
			outcome = DERAILED;
	} while (evc_unlikely(outcome == DERAILED));
	if (evc_unlikely(outcome == NO_MEMORY))
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
	/* W4. */
	atomic_store_explicit(&walk->top, top, memory_order_relaxed);
	atomic_store_explicit(&walk->root, node, memory_order_release);
	walk->cached_top = top;
	walk->cached_root = node;
	walk->cached_end = to->count;
	walk->cached_position = NULL;
	walk->cached_is_all = walk->is_over;
	if (to->count > 0)
		return EVC_OK;
	if (collect_chunk(walk, to) == NO_MEMORY)
		return EVC_OUT_OF_MEMORY;
	return to->count > 0 ? EVC_OK : EVC_EMPTY;
}

/* Begins with what the last walk found. As collect_first. */
static void begin_cached(struct evc_tree_walk *walk, struct collector *to)
{
	walk->start = walk->cached_clock;
	/* W4. */
	atomic_store_explicit(&walk->top, walk->cached_top, memory_order_relaxed);
	atomic_store_explicit(&walk->root, walk->cached_root, memory_order_release);
	walk->limit = CHUNK;
	to->count = walk->raise_end;
	walk->is_over = walk->cached_end == walk->raise_end && walk->cached_is_all;
	if (to->count == 0)
		to->count = take_cached(walk, 0);
}

/* Nothing of the walk is held any more. */
static void withdraw(struct evc_tree_walk *walk)
{
	/* All release: what the walk did with them, before they are freed (tree_reclaim.c). */
	atomic_store_explicit(&walk->calling, NULL, memory_order_release);
	atomic_store_explicit(&walk->current,
			      atomic_load_explicit(&walk->published, memory_order_relaxed),
			      memory_order_release);
	atomic_store_explicit(&walk->position, NULL, memory_order_release);
	atomic_store_explicit(&walk->top, NULL, memory_order_release);
	atomic_store_explicit(&walk->root, NULL, memory_order_release);
}

enum evc_status evc_walk_begin(struct evc_node *node, uint64_t key, uint32_t scope,
			       struct evc_walk **out)
{
	struct evc_walker *walker;
	struct evc_tree_walk *walk;
	struct collector to;
	enum evc_status status = EVC_OK;
	bool is_wanted, is_same;

	if (node == NULL || key == 0 || (scope & EVC_HANDLER_PHASES) == 0)
		return EVC_INVALID_ARGUMENT;
	walker = evc_walker();
	if (evc_unlikely(walker == NULL))
		return EVC_OUT_OF_MEMORY;
	/* Relaxed: this thread made them. */
	walk = atomic_load_explicit(walker->innermost != NULL ? &walker->innermost->inner
							      : &walker->outermost,
				    memory_order_relaxed);
	if (evc_unlikely(walk == NULL)) {
		walk = evc_walker_add_walk(walker, walker->innermost);
		if (walk == NULL)
			return EVC_OUT_OF_MEMORY;
	}
	/* In this order, pairs with those who go over. */
	atomic_store_explicit(&walk->published, 0, memory_order_release);
	atomic_store_explicit(&walk->current, 0, memory_order_release);
	is_same = walk->cached_node == node && walk->key == key && walk->cached_scope == scope;
	walk->key = key;
	walk->cached_node = node;
	walk->cached_scope = scope;
	walk->bit = evc_tree_bit(key);
	walk->limit = FIRST_CHUNK;
	walk->chunk = 0;
	walk->position_clock = 0;
	walk->verified_clock = 0;
	walk->lost = 0;
	walk->is_careful = !evc_walker_has_barrier;
	to = (struct collector){ .walk = walk, .key = key };
	use_window(&to);

	to.start = evc_walker_collect(walker);
	if (is_same && has_cached(walk)) {
		begin_cached(walk, &to);
	} else {
		/* Not with a later start than the clock of now: see climb. */
		walk->cached_clock = to.start;
		status = collect_first(walk, node, scope, &to);
		if (status != EVC_OK || walk->start != walk->cached_clock || !has_cached(walk))
			walk->cached_clock = 0;
	}
	/* W4. */
	if (status == EVC_OK)
		atomic_store_explicit(&walk->published, to.count, memory_order_release);
	else
		withdraw(walk);
	is_wanted = evc_walker_leave(walker);
	if (status == EVC_OK) {
		show_next(walk);
		walker->innermost = walk;
		*out = &walk->head;
	}
	if (evc_unlikely(is_wanted))
		evc_tree_go_over();
	return status;
}

enum evc_status evc_walk_next(struct evc_walk *head)
{
	struct evc_tree_walk *walk = (struct evc_tree_walk *)(void *)head;
	uint32_t published = atomic_load_explicit(&walk->published, memory_order_relaxed);
	uint32_t end = walk->chunk + head->count;
	enum outcome outcome = FULL;
	struct collector to;
	bool is_wanted;

	assert(walk->walker->innermost == walk);
	/* Release: the calls before, before their handlers are freed or a remover returns. */
	atomic_store_explicit(&walk->calling, NULL, memory_order_release);
	atomic_store_explicit(&walk->current, end, memory_order_release);
	if (end < published) {
		/* Of the other direction. */
		walk->verified_clock = 0;
		show_next(walk);
		return EVC_OK;
	}
	head->count = 0;
	walk->chunk = end;
	if (walk->is_over)
		return EVC_EMPTY;
	to = (struct collector){
		.walk = walk, .count = end, .key = walk->key, .start = walk->start
	};
	use_window(&to);

	(void)evc_walker_collect(walk->walker);
	walk->is_careful = !evc_walker_has_barrier;
	if (end < walk->cached_end && has_cached(walk))
		to.count = take_cached(walk, end);
	else
		outcome = collect_chunk(walk, &to);
	/* W4. */
	atomic_store_explicit(&walk->published, to.count, memory_order_release);
	is_wanted = evc_walker_leave(walk->walker);
	if (to.count > end)
		show_next(walk);
	if (evc_unlikely(evc_walker_has_let_go(walk->walker, is_wanted)))
		evc_tree_go_over();
	if (outcome == NO_MEMORY)
		return EVC_OUT_OF_MEMORY;
	return to.count > end ? EVC_OK : EVC_EMPTY;
}

/*
 * Of the handlers on the path, whose nodes are each above or below the next, those that have lost their place with
 * that of `handler`: up to where the path is cut, or all that is below. For good, since no link from before the walk
 * comes back. While collecting.
 */
static uint32_t find_lost(const struct evc_tree_walk *walk, const struct evc_handler *handler,
			  uint32_t index)
{
	/* Relaxed: only this thread writes them. */
	const struct evc_window *window = atomic_load_explicit(&walk->window, memory_order_relaxed);
	struct evc_node *node = handler->node;

	if (walk->head.phase == EVC_WALK_CAPTURE)
		return walk->capture_end;
	for (;;) {
		struct evc_link *link;

		while (index < walk->raise_end && window->handlers[index]->node == node)
			index++;
		/* L. */
		link = atomic_load_explicit(&node->link, memory_order_acquire);
		if (link == NULL || came_later(link, walk->start))
			return index;
		node = link->parent;
	}
}

/* Whether a handler's node is where it was when the walk began. While collecting, at the time `clock`. */
static bool is_where_it_was(struct evc_tree_walk *walk, struct evc_handler *handler,
			    const struct evc_node *root, uint64_t clock)
{
	/* Relaxed: only this thread writes it. */
	uint32_t index = atomic_load_explicit(&walk->current, memory_order_relaxed), steps = 0;
	const bool is_on_path = walk->head.phase != EVC_WALK_PROPAGATE;

	if (is_on_path && index < walk->lost)
		return false;
	if (clock != walk->verified_clock)
		walk->verified = NULL;
	walk->verified_clock = clock;
	/* Raising, `verified` was found by a climb through this node, or is it. */
	if ((walk->head.phase != EVC_WALK_RAISE || walk->verified == NULL) &&
	    !is_under(walk, handler->node, root,
		      walk->verified != NULL ? walk->verified : root, &steps)) {
		if (is_on_path)
			walk->lost = find_lost(walk, handler, index);
		return false;
	}
	walk->verified = handler->node;
	return true;
}

/*
 * The part of evc_walk_will_call after this thread has changed the tree: is the handler's node in its place? Its
 * exchange is the fence between V1 and V2, where one is needed.
 */
static __attribute__((noinline, cold)) bool is_in_place(struct evc_tree_walk *walk, struct evc_handler *handler)
{
	struct evc_walker *walker = walk->walker;
	const struct evc_node *root;
	uint64_t changes;
	bool is_there;

	root = atomic_load_explicit(walk->head.phase == EVC_WALK_PROPAGATE ? &walk->root
									   : &walk->top,
				    memory_order_relaxed);
	do {
		uint64_t clock;

		changes = walker->changes;
		(void)evc_walker_collect(walker);
		/* Acquire, and after W2: if it is still the same, `verified` is where it was. */
		clock = atomic_load_explicit(&evc_tree.clock, memory_order_acquire);
		/* If the handler is there, its node is, until we leave. */
		is_there = atomic_load_explicit(&handler->item.state, memory_order_acquire) == 0 &&
			   is_where_it_was(walk, handler, root, clock);
		if (evc_unlikely(evc_walker_leave(walker))) {
			/* What is released there is not inside of the handler. */
			atomic_store_explicit(&walk->calling, NULL, memory_order_release);
			evc_tree_go_over();
			/* V1; a fence before V2, which comes once more. */
			atomic_store_explicit(&walk->calling, handler, memory_order_release);
			atomic_thread_fence(memory_order_seq_cst);
		}
	} while (is_there && changes != walker->changes);
	/* V2. */
	return is_there && atomic_load_explicit(&handler->item.state, memory_order_acquire) == 0;
}

bool evc_walk_will_call(struct evc_walk *head, uint32_t index)
{
	struct evc_tree_walk *walk = (struct evc_tree_walk *)(void *)head;
	struct evc_handler *handler = head->handlers[index];

	/* Release, both: the calls before, before their handlers are freed or a remover returns. */
	atomic_store_explicit(&walk->current, walk->chunk + index, memory_order_release);
	/* V1. */
	atomic_store_explicit(&walk->calling, handler, memory_order_release);
	/* Before V2 for the compiler; for the processor: by the remover's barrier, or is_in_place. */
	atomic_signal_fence(memory_order_seq_cst);
	/* V2, R. */
	if (evc_likely(atomic_load_explicit(&handler->item.state, memory_order_acquire) == 0 &&
		       (!walk->is_careful || is_in_place(walk, handler))))
		return true;
	atomic_store_explicit(&walk->calling, NULL, memory_order_release);
	return false;
}

void evc_walk_end(struct evc_walk *head)
{
	struct evc_tree_walk *walk = (struct evc_tree_walk *)(void *)head;
	struct evc_walker *walker = walk->walker;
	bool is_wanted;

	assert(walker->innermost == walk);
	walker->innermost = walk->outer;
	/* W7, W8. */
	withdraw(walk);
	is_wanted = atomic_exchange_explicit(&walker->wanted, false, memory_order_seq_cst);
	if (evc_unlikely(evc_walker_has_let_go(walker, is_wanted)))
		evc_tree_go_over();
	if (evc_unlikely(atomic_load_explicit(&walk->window, memory_order_relaxed)->outgrown != NULL))
		evc_tree_walk_trim(walk);
}
#endif
