/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Collecting handlers into a walk's window, while its walker is inside a section (tree_reclaim.h). */
#ifndef EVC_TREE_COLLECT_H
#define EVC_TREE_COLLECT_H

#include "tree/tree_walker.h"

/* The first chunk is small for events that the first handler consumes. */
#define EVC_FIRST_CHUNK 4u
#define EVC_CHUNK 64u
/* The same of a chunk that is taken from the cache, where nothing has to be collected for it. The explorer has fewer. */
#ifndef EVC_CACHED_CHUNK
#define EVC_CACHED_CHUNK 256u
#endif

enum evc_collected { EVC_COLLECTED_CHUNK, EVC_COLLECTED_ALL, EVC_COLLECT_AGAIN, EVC_COLLECT_NO_MEMORY };

/* The destination of collected handlers. */
struct evc_collector {
	struct evc_tree_walk *walk;
	struct evc_handler **handlers;
	void **objects;
	uint32_t count;
	/* Handlers are simply appended up to this count; 0 while some must be skipped. */
	uint32_t room;
	/* The part of the window whose handlers must be skipped. */
	uint32_t called;
	uint32_t called_end;
	uint64_t key;
	uint64_t start;
	uint8_t phase;
};

/* Called before handlers are collected, and when the window has grown. */
void evc_collector_use_window(struct evc_collector *to);
/* Collects the first handlers of a walk. EVC_OK: there are some, and the walk is set up. */
enum evc_status evc_collect_first(struct evc_tree_walk *walk, struct evc_node *node, uint32_t scope,
			      struct evc_collector *to);
/* Collects the next chunk of the propagation behind the handlers in the window. While collecting. */
enum evc_collected evc_collect_chunk(struct evc_tree_walk *walk, struct evc_collector *to);

static inline bool evc_link_came_later(const struct evc_link *link, uint64_t start)
{
	/* Relaxed, S: whether or not it is unlinked, what it leads to exists. */
	return atomic_load_explicit(&link->item.stamp, memory_order_relaxed) > start;
}

/*
 * The link by which a node is a child, or NULL, and the time since when that is so.
 *
 * A climb that finds no later time than `start` comes by the way of that moment: each of its links was added
 * before and in place when it was read, and where the way ends, the node has had no parent since. Otherwise all
 * of that change is visible, and the climb begins again with its time as the start.
 */
static inline struct evc_link *evc_climb_link(const struct evc_node *node, uint64_t *time)
{
	/* L. */
	struct evc_link *link = atomic_load_explicit(&node->link, memory_order_acquire);
	/* Acquire: pairs with mark_unlinked and evc_tree_retire (tree.c, tree_reclaim.c). */
	uint64_t stamp = link != NULL ? atomic_load_explicit(&link->item.stamp, memory_order_acquire)
				      : EVC_UNLINKED;

	*time = stamp & ~EVC_UNLINKED;
	return evc_likely(!(stamp & EVC_UNLINKED)) ? link : NULL;
}

/* True if a node is under `root` by links older than the walk. Adds the climb's length to `*steps`. */
static inline bool evc_node_is_under(const struct evc_tree_walk *walk, struct evc_node *node,
				     const struct evc_node *root, const struct evc_node *known,
				     uint32_t *steps)
{
	while (node != root && node != known) {
		/* L. */
		struct evc_link *link = atomic_load_explicit(&node->link, memory_order_acquire);

		if (link == NULL || evc_link_came_later(link, walk->start))
			return false;
		node = link->parent;
		++*steps;
	}
	return true;
}

#endif
