/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree/tree_collect.h"
#include "tree/tree_reclaim.h"

/* The number of nodes above this one at one moment since `start`. In a section, or under the mutex. */
static size_t climb(const struct evc_node *from, uint64_t start)
{
	const struct evc_node *node = from;
	size_t depth = 0;

	for (;;) {
		struct evc_link *link;
		uint64_t time;

		/*
		 * Then its link may be gone. Relaxed: whoever sees the end during the climb finds a later time
		 * of the link (evc_node_end), and this when it begins again.
		 */
		if (node == from &&
		    atomic_load_explicit(&from->first_link.item.state, memory_order_relaxed) != 0)
			return 0;
		link = evc_climb_link(node, &time);
		if (evc_unlikely(time > start)) {
			start = time;
			node = from;
			depth = 0;
		} else if (link == NULL) {
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
