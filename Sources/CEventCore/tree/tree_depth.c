/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree/tree_reclaim.h"
#include "tree/tree_walker.h"

/*
 * The number of nodes above this one at one moment since `start`. In a section, or under the mutex.
 *
 * Each link on the way was added before `start` and in place when it was read: all of them were in place when
 * the first one was read. Where the way ends, the node has had no parent since `start`. If a link was added
 * or removed later, all of that change is visible, and the climb begins again with its time.
 */
static size_t climb(const struct evc_node *from, uint64_t start)
{
	const struct evc_node *node = from;
	size_t depth = 0;

	for (;;) {
		/* L. */
		struct evc_link *link = atomic_load_explicit(&node->link, memory_order_acquire);
		uint64_t stamp, time;

		/* Relaxed: visible together with its link's stamp (evc_node_end). */
		if (link == NULL ||
		    (node == from &&
		     atomic_load_explicit(&from->first_link.item.state, memory_order_relaxed) != 0))
			return depth;
		/* Acquire: pairs with mark_unlinked and evc_tree_retire (tree.c, tree_reclaim.c). */
		stamp = atomic_load_explicit(&link->item.stamp, memory_order_acquire);
		time = stamp & ~EVC_UNLINKED;
		if (evc_unlikely(time > start)) {
			start = time;
			node = from;
			depth = 0;
		} else if (stamp & EVC_UNLINKED) {
			return depth;
		} else {
			node = link->parent;
			depth++;
		}
	}
}

size_t evc_node_depth(const struct evc_node *node)
{
	struct evc_walker *walker = evc_walker();
	size_t depth;

	if (evc_unlikely(walker == NULL)) {
		evc_tree_lock();
		depth = climb(node, evc_tree_now());
		evc_tree_unlock();
		return depth;
	}
	depth = climb(node, evc_walker_collect(walker));
	if (evc_unlikely(evc_walker_leave(walker)))
		evc_tree_reclaim();
	return depth;
}
#endif
