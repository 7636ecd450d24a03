/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A walk collects handlers chunk by chunk into its window, one after the other, and keeps those that were
 * called: 16 bytes each, with its object, in the order of the walk.
 *
 * The handlers on the path to the root are collected at the beginning, all at once. The propagation goes on
 * where the last chunk ended if that node is still where it was: nothing has changed since, or a climb to the
 * root finds only links that are older than the walk. Otherwise it goes through the tree again and skips the
 * handlers that were called, which are a prefix of those that it meets, by one forward search in the window.
 * Chunks grow after that, up to a limit, since the repetition costs as much as was called, while the handlers
 * of a chunk cannot be freed.
 *
 * What a walk has collected stays in the window when it ends, also if it is nothing. The thread's next walk
 * with the same node, key and scope uses it again, chunk by chunk, as long as the clock says that no tree has
 * changed since; only what is published is held in between. Measured: Documentation/Choices.md.
 * One file, though long: beginning, going on and ending keep the same window and what it publishes.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "platform/require.h"
#include "tree/tree_collect.h"
#include "tree/tree_reclaim.h"
#include "tree/tree_wait.h"

/* More handlers than a core's caches keep from one walk to the next, with what they use. */
#define MANY 8192u

/* Prefetches the objects of the next chunk, and what take_cached reads at its end. */
static __attribute__((noinline)) void fetch_ahead(struct evc_window *window, uint32_t from, uint32_t end)
{
	void *const *objects = evc_window_objects(window);
	const uint32_t next = from + EVC_CACHED_CHUNK, after = next + EVC_CACHED_CHUNK;
	const uint32_t last = after + EVC_CACHED_CHUNK;

	for (uint32_t i = next; i < after && i < end; i++)
		__builtin_prefetch(objects[i]);
	if (last >= end)
		return;
	__builtin_prefetch(&window->handlers[after - 1]->node->link);
	__builtin_prefetch(&window->handlers[last - 1]->node);
	__builtin_prefetch(&window->handlers[last]->node);
}

/* Takes the next chunk from the cache, from `from` on; returns its end. While collecting, if it is valid. */
static uint32_t take_cached(struct evc_tree_walk *walk, uint32_t from)
{
	struct evc_window *window = evc_walk_window(walk);
	struct evc_handler **handlers = window->handlers;
	struct evc_link *position = walk->cached_position;
	uint32_t end = from + EVC_CACHED_CHUNK;

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
		fetch_ahead(window, from, walk->cached_end);
	/* W4. Relaxed: the previous link was not read in this section. */
	atomic_store_explicit(&walk->position, position, memory_order_relaxed);
	return end;
}

/* True if no tree has changed since the cached walk. While collecting, if the result will be used. */
static bool has_cached(const struct evc_tree_walk *walk)
{
	/* After W2: if it is the same, nothing was freed. Relaxed: acquired when it was cached. */
	return walk->cached_clock ==
	       atomic_load_explicit(&evc_tree.clock, memory_order_relaxed);
}

/* Shows the caller what is next of the chunk, up to the end of its phase. */
static void show_next(struct evc_tree_walk *walk)
{
	struct evc_window *window = evc_walk_window(walk);
	/* Relaxed: only this thread writes them. */
	uint32_t from = atomic_load_explicit(&walk->current, memory_order_relaxed);
	uint32_t end = atomic_load_explicit(&walk->published, memory_order_relaxed);

	walk->head.phase = EVC_WALK_PROPAGATE;
	if (from < walk->capture_end) {
		walk->head.phase = EVC_WALK_CAPTURE;
		end = walk->capture_end;
	} else if (from < walk->raise_end) {
		walk->head.phase = EVC_WALK_RAISE;
		end = walk->raise_end;
	}
	walk->chunk = from;
	walk->head.handlers = &window->handlers[from];
	walk->head.objects = &evc_window_objects(window)[from];
	walk->head.count = end - from;
}

/* Begins with what the last walk found; returns the end of the first chunk. While collecting. */
static inline uint32_t begin_cached(struct evc_tree_walk *walk)
{
	walk->start = walk->cached_clock;
	/*
	 * W4. Relaxed: it is that of the last walk. Whoever has ended it has counted that, and either saw W2, or
	 * the cache is not used.
	 */
	atomic_store_explicit(&walk->root, walk->cached_root, memory_order_relaxed);
	walk->limit = EVC_CHUNK;
	walk->is_over = walk->cached_end == walk->raise_end && walk->cached_is_all;
	return walk->raise_end > 0 ? walk->raise_end : take_cached(walk, 0);
}

/* Begins by collecting, as evc_collect_first. Out of line: a walk from the cache prepares nothing for it. */
static __attribute__((noinline)) enum evc_status begin_anew(struct evc_tree_walk *walk,
							    uint64_t start, uint32_t *count)
{
	struct evc_collector to = { .walk = walk, .key = walk->key, .start = start };
	enum evc_status status;

	walk->limit = EVC_FIRST_CHUNK;
	evc_collector_use_window(&to);
	/* Not with a later start than the current clock: see climb. */
	walk->cached_clock = start;
	status = evc_collect_first(walk, walk->cached_node, walk->cached_scope, &to);
	walk->cached_is_none = status == EVC_EMPTY;
	if ((status != EVC_OK && status != EVC_EMPTY) || walk->start != walk->cached_clock ||
	    !has_cached(walk))
		walk->cached_clock = 0;
	*count = to.count;
	return status;
}

/* The walk holds nothing any more. */
static void withdraw(struct evc_tree_walk *walk)
{
	/* Release: what the walk did with them, before they are freed. */
	atomic_store_explicit(&walk->calling, NULL, memory_order_release);
	atomic_store_explicit(&walk->current,
			      atomic_load_explicit(&walk->published, memory_order_relaxed),
			      memory_order_release);
	atomic_store_explicit(&walk->position, NULL, memory_order_release);
	atomic_store_explicit(&walk->root, NULL, memory_order_release);
}

/* Called when a walk has released its chunk: tells whether to reclaim the deferred items. The thread. */
static bool has_let_go(struct evc_walker *walker, const struct evc_tree_walk *walk, bool is_wanted)
{
	struct evc_tree_walk *holder = walker->holder;
	uint32_t current, published;

	if (evc_likely(!is_wanted && !walker->holds && holder == NULL))
		return false;
	if (holder != walk && !is_wanted && !walker->holds) {
		/* Relaxed, both: this thread's. */
		current = atomic_load_explicit(&holder->current, memory_order_relaxed);
		published = atomic_load_explicit(&holder->published, memory_order_relaxed);
		if (current <= walker->held_at || current < holder->pause)
			return false;
		/* Each search is of what is left: so there are few of a large chunk, whatever each of its handlers removes. */
		holder->pause = current + (published - current) / 64;
	}
	walker->holds = false;
	walker->holder = NULL;
	return true;
}

enum evc_status evc_walk_begin(struct evc_node *node, uint64_t key, uint32_t scope,
			       struct evc_walk **out)
{
	struct evc_walker *walker;
	struct evc_tree_walk *walk;
	enum evc_status status = EVC_OK;
	bool is_wanted, is_same;
	uint64_t start;
	uint32_t count;

	if (node == NULL || key == 0 || (scope & EVC_HANDLER_PHASES) == 0 || out == NULL)
		return EVC_INVALID_ARGUMENT;
	walker = evc_walker();
	if (evc_unlikely(walker == NULL))
		return EVC_OUT_OF_MEMORY;
	/* Relaxed: this thread made them. */
	if (evc_likely(walker->innermost == NULL))
		walk = atomic_load_explicit(&walker->outermost, memory_order_relaxed);
	else
		walk = atomic_load_explicit(&walker->innermost->inner, memory_order_relaxed);
	if (evc_unlikely(walk == NULL)) {
		walk = evc_walker_add_walk(walker, walker->innermost);
		if (walk == NULL)
			return EVC_OUT_OF_MEMORY;
	}
	is_same = walk->cached_node == node && walk->key == key && walk->cached_scope == scope;
	/*
	 * The last walk found no handler, and no tree has changed since: no section is needed. A node with
	 * the address of one that has ended gets its first handler, or a parent, by a change.
	 */
	if (is_same && walk->cached_is_none && has_cached(walk))
		return EVC_EMPTY;
	/*
	 * In this order, pairs with threads that reclaim: who sees the new start does not see the old end,
	 * and who sees no chunk sees everything that was called before.
	 */
	atomic_store_explicit(&walk->published, 0, memory_order_release);
	atomic_store_explicit(&walk->current, 0, memory_order_release);
	if (!is_same) {
		walk->key = key;
		walk->bit = evc_tree_bit(key);
		walk->cached_node = node;
		walk->cached_scope = scope;
	}
	walk->chunk = 0;
	walk->position_clock = 0;
	walk->verified_clock = 0;
	walk->lost = 0;
	walk->pause = 0;

	start = evc_walker_collect(walker);
	evc_walk_see_removals(walk);
	if (is_same && has_cached(walk))
		count = begin_cached(walk);
	else
		status = begin_anew(walk, start, &count);
	if (status == EVC_OK) {
		/* W4. */
		atomic_store_explicit(&walk->published, count, memory_order_release);
		walker->innermost = walk;
	} else {
		withdraw(walk);
	}
	is_wanted = evc_walker_leave(walker);
	if (status == EVC_OK) {
		show_next(walk);
		*out = &walk->head;
	}
	if (evc_unlikely(is_wanted))
		evc_tree_reclaim();
	return status;
}

enum evc_status evc_walk_next(struct evc_walk *head)
{
	struct evc_tree_walk *walk = (struct evc_tree_walk *)(void *)head;
	enum evc_collected outcome = EVC_COLLECTED_CHUNK;
	uint32_t published, end;
	struct evc_collector to;
	bool is_wanted;

	if (evc_unlikely(head == NULL))
		return EVC_INVALID_ARGUMENT;
	published = atomic_load_explicit(&walk->published, memory_order_relaxed);
	end = walk->chunk + head->count;
	EVC_REQUIRE(walk->walker->innermost == walk,
		    "evc_walk_next: only the walk that its thread has begun last goes on, and this is another one, or was ended: "
		    "end the inner walks first.");
	/* Release: the earlier calls, before their handlers are freed or a remover returns. */
	atomic_store_explicit(&walk->calling, NULL, memory_order_release);
	atomic_store_explicit(&walk->current, end, memory_order_release);
	evc_walk_went_on(walk);
	if (end < published) {
		/* The handlers of the next phase are collected already. */
		walk->verified_clock = 0;
		show_next(walk);
		return EVC_OK;
	}
	head->count = 0;
	walk->chunk = end;
	if (walk->is_over)
		return EVC_EMPTY;
	to = (struct evc_collector){
		.walk = walk, .count = end, .key = walk->key, .start = walk->start
	};
	evc_collector_use_window(&to);

	(void)evc_walker_collect(walk->walker);
	evc_walk_see_removals(walk);
	evc_walk_forget_changes(walk);
	if (end < walk->cached_end && has_cached(walk))
		to.count = take_cached(walk, end);
	else
		outcome = evc_collect_chunk(walk, &to);
	/* W4. */
	atomic_store_explicit(&walk->published, to.count, memory_order_release);
	is_wanted = evc_walker_leave(walk->walker);
	if (to.count > end)
		show_next(walk);
	if (evc_unlikely(has_let_go(walk->walker, walk, is_wanted)))
		evc_tree_reclaim();
	if (outcome == EVC_COLLECT_NO_MEMORY)
		return EVC_OUT_OF_MEMORY;
	return to.count > end ? EVC_OK : EVC_EMPTY;
}

struct evc_node *evc_walk_top(const struct evc_walk *head)
{
	const struct evc_tree_walk *walk = (const struct evc_tree_walk *)(const void *)head;

	/* Relaxed: this thread wrote it. */
	return atomic_load_explicit(&walk->root, memory_order_relaxed);
}

void evc_walk_end(struct evc_walk *head)
{
	struct evc_tree_walk *walk = (struct evc_tree_walk *)(void *)head;
	struct evc_walker *walker;
	bool is_wanted;

	if (evc_unlikely(head == NULL))
		return;
	walker = walk->walker;
	EVC_REQUIRE(walker->innermost == walk,
		    "evc_walk_end: only the walk that its thread has begun last ends, and this is another one, or was ended: "
		    "end the inner walks first.");
	walker->innermost = walk->outer;
	/* W7, W8. */
	withdraw(walk);
	is_wanted = evc_walker_leave(walker);
	if (evc_unlikely(atomic_load_explicit(&walk->attention, memory_order_relaxed) != 0)) {
		evc_walk_tell(walk);
		evc_walk_forget_changes(walk);
	}
	if (evc_unlikely(has_let_go(walker, walk, is_wanted)))
		evc_tree_reclaim();
}
#endif
