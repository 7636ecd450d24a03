/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Whether a collected handler may still be called: it exists, and this thread has not moved its node. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree/tree_collect.h"
#include "tree/tree_reclaim.h"
#include "tree/tree_wait.h"

/*
 * The handlers on the path that have lost their places together with `handler`. Each node on the path is
 * above or below the next one, so that these are all up to the point where the path is cut, or all below it.
 * This is final, since no link that is older than the walk comes back. While collecting.
 */
static uint32_t find_lost(const struct evc_tree_walk *walk, const struct evc_handler *handler,
			  uint32_t index)
{
	const struct evc_window *window = evc_walk_window(walk);
	struct evc_node *node = handler->node;

	if (walk->head.phase == EVC_WALK_CAPTURE)
		return walk->capture_end;
	for (;;) {
		struct evc_link *link;

		while (index < walk->raise_end && window->handlers[index]->node == node)
			index++;
		/* L. */
		link = atomic_load_explicit(&node->link, memory_order_acquire);
		if (link == NULL || evc_link_came_later(link, walk->start))
			return index;
		node = link->parent;
	}
}

/* True if a handler's node is where it was when the walk began. While collecting, at the time `clock`. */
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
	/* In the raise phase `verified` was found by a climb through this node, or is this node. */
	if ((walk->head.phase != EVC_WALK_RAISE || walk->verified == NULL) &&
	    !evc_node_is_under(walk, handler->node, root,
		      walk->verified != NULL ? walk->verified : root, &steps)) {
		if (is_on_path)
			walk->lost = find_lost(walk, handler, index);
		return false;
	}
	walk->verified = handler->node;
	return true;
}

/* The part of evc_walk_will_call for a thread that has changed the tree. */
static __attribute__((noinline, cold)) bool is_in_place(struct evc_tree_walk *walk, struct evc_handler *handler)
{
	struct evc_walker *walker = walk->walker;
	const struct evc_node *root;
	uint64_t changes;
	bool is_there;

	/* Relaxed: this thread wrote it. */
	root = walk->head.phase == EVC_WALK_PROPAGATE
		       ? atomic_load_explicit(&walk->root, memory_order_relaxed)
		       : walk->cached_top;
	do {
		uint64_t clock;

		changes = walker->changes;
		(void)evc_walker_collect(walker);
		/*
		 * Relaxed, after W2: if the clock is the same, this thread has not moved `verified`. A node
		 * that others move meanwhile may be found at either place.
		 */
		clock = atomic_load_explicit(&evc_tree.clock, memory_order_relaxed);
		/* If the handler exists, so does its node in this section. Relaxed: behind W2. */
		is_there = atomic_load_explicit(&handler->item.state, memory_order_relaxed) == 0 &&
			   is_where_it_was(walk, handler, root, clock);
		if (evc_unlikely(evc_walker_leave(walker))) {
			/* A `release` that runs there is not inside the handler. */
			atomic_store_explicit(&walk->calling, NULL, memory_order_release);
			evc_walk_went_on(walk);
			evc_tree_reclaim();
			/* V1, and a fence before V2, which is repeated. */
			atomic_store_explicit(&walk->calling, handler, memory_order_release);
			atomic_thread_fence(memory_order_seq_cst);
		}
	} while (is_there && changes != walker->changes);
	/* V2. Relaxed, as in evc_walk_will_call. */
	return is_there && atomic_load_explicit(&handler->item.state, memory_order_relaxed) == 0;
}

/* The slow path of evc_walk_will_call. */
static __attribute__((noinline, cold)) bool will_call_with_attention(struct evc_tree_walk *walk,
								     struct evc_handler *handler)
{
	/* V3; before it a fence, where V1 needs one. */
	evc_walk_tell(walk);
	/* V2, R. Relaxed, as in evc_walk_will_call. */
	if (atomic_load_explicit(&handler->item.state, memory_order_relaxed) != 0)
		return false;
	/* Relaxed: the bit is this thread's. */
	return !(atomic_load_explicit(&walk->attention, memory_order_relaxed) & EVC_WALK_CAREFUL) ||
	       is_in_place(walk, handler);
}

bool evc_walk_will_call(struct evc_walk *head, uint32_t index)
{
	struct evc_tree_walk *walk = (struct evc_tree_walk *)(void *)head;
	struct evc_handler *handler = head->handlers[index];

	/* Release, both: the calls before, before their handlers are freed or a remover returns. */
	atomic_store_explicit(&walk->current, walk->chunk + index, memory_order_release);
	/* V1. */
	atomic_store_explicit(&walk->calling, handler, memory_order_release);
	/* Before V2 and V3 for the compiler; for the processor V4 and V7 do this, or a fence. */
	atomic_signal_fence(memory_order_seq_cst);
	/*
	 * V3, relaxed: ordered as just said. V2, E and R, relaxed: who knows of the removal has R before it
	 * and passes that on to this thread; V4 orders the rest.
	 */
	if (evc_likely(atomic_load_explicit(&walk->attention, memory_order_relaxed) == 0)) {
		if (evc_likely(atomic_load_explicit(&evc_tree.last_removal, memory_order_relaxed) ==
			       walk->seen) ||
		    atomic_load_explicit(&handler->item.state, memory_order_relaxed) == 0)
			return true;
	} else if (will_call_with_attention(walk, handler)) {
		return true;
	}
	/* V3 is left to the next call, or step, which follows at once. */
	atomic_store_explicit(&walk->calling, NULL, memory_order_release);
	return false;
}
#endif
