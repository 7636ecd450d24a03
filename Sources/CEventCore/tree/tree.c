/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* One file, though long: every change of a tree is a few steps on the same links, under one mutex. */
#include "tree/tree_private.h"

#include "platform/options.h"
#include "tree/tree_memory.h"
#include "tree/tree_reclaim.h"
#include "tree/tree_walker.h"

struct evc_tree_domain evc_tree = {
	/* A cached time of 0 means that nothing is cached, so the clock never has that value. */
	.clock = 1,
	.mutex = PTHREAD_MUTEX_INITIALIZER,
};

static struct evc_link *link_of(const struct evc_node *node)
{
	/* Relaxed: under the mutex. */
	return atomic_load_explicit(&node->link, memory_order_relaxed);
}

static struct evc_link *first_child(const struct evc_node *node)
{
	return atomic_load_explicit(&node->first_child, memory_order_relaxed);
}

static struct evc_link *next_link(const struct evc_link *link)
{
	return atomic_load_explicit(&link->next, memory_order_relaxed);
}

static struct evc_node *parent_of(const struct evc_node *node)
{
	struct evc_link *link = link_of(node);

	/* A node that has ended may have outlived its link, if a walk holds it. */
	if (link == NULL || evc_node_has_ended(node) ||
	    (atomic_load_explicit(&link->item.stamp, memory_order_relaxed) & EVC_UNLINKED))
		return NULL;
	return link->parent;
}

enum evc_status evc_node_create(const struct evc_node_options *options, struct evc_node **out)
{
	struct evc_node_options own;
	enum evc_status status = EVC_OPTIONS_READ(&own, struct evc_node_options, options, release);
	struct evc_node *node;

	if (out == NULL)
		return EVC_INVALID_ARGUMENT;
	if (status != EVC_OK)
		return status;
	node = evc_tree_allocate(sizeof(*node));
	if (node == NULL)
		return EVC_OUT_OF_MEMORY;
	*node = (struct evc_node){ .owner = own.owner, .release = own.release };
	evc_tree_init_item(&node->first_link.item, EVC_ITEM_NODE, node);
	*out = node;
	return EVC_OK;
}

void evc_tree_add_bits(struct evc_node *node, uint64_t bits)
{
	for (; node != NULL && bits != 0; node = parent_of(node)) {
		/* Relaxed, M: seen by walks that see the change counted. */
		uint64_t mask = atomic_load_explicit(&node->subtree, memory_order_relaxed);

		if ((mask & bits) == bits)
			return;
		atomic_store_explicit(&node->subtree, mask | bits, memory_order_relaxed);
	}
}

/* The bits of the node's own handlers; false if there are too many to look at. */
static bool handler_bits(const struct evc_node *node, uint64_t *own, uint64_t *subtree)
{
	struct evc_handler *handler = evc_node_first_handler(node);
	unsigned count = 0;

	for (*own = *subtree = 0; handler != NULL; count++) {
		if (count == EVC_MASK_CHILDREN)
			return false;
		*own |= evc_tree_bit(handler->key);
		if (handler->item.modes & EVC_HANDLER_PROPAGATE)
			*subtree |= evc_tree_bit(handler->key);
		handler = evc_handler_next(handler);
	}
	return true;
}

void evc_tree_drop_bits(struct evc_node *node)
{
	for (unsigned level = 0; node != NULL && level < EVC_MASK_LEVELS; level++) {
		uint64_t own, subtree;
		unsigned count = 0;

		if (!handler_bits(node, &own, &subtree))
			return;
		/* Relaxed, like all of these: the handler that needed the bit has left before. */
		atomic_store_explicit(&node->own, own, memory_order_relaxed);
		for (struct evc_link *child = first_child(node); child != NULL;
		     child = next_link(child)) {
			if (count++ == EVC_MASK_CHILDREN)
				return;
			subtree |= atomic_load_explicit(&evc_link_node(child)->subtree,
							memory_order_relaxed);
		}
		if (subtree == atomic_load_explicit(&node->subtree, memory_order_relaxed))
			return;
		atomic_store_explicit(&node->subtree, subtree, memory_order_relaxed);
		node = parent_of(node);
	}
}

/* Removes a link from its list. Walks that stand on it go on by its `next`. Followed by mark_unlinked. */
static void take_from_list(struct evc_link *link)
{
	struct evc_link *previous = (struct evc_link *)link->item.previous;
	struct evc_link *next = next_link(link);

	/* L: pairs with walks; what follows was there already. */
	atomic_store_explicit(previous != NULL ? &previous->next : &link->parent->first_child,
			      next, memory_order_release);
	if (next != NULL)
		next->item.previous = link->item.previous;
	else
		link->parent->last_child = previous;
}

/*
 * A walk that does not see this goes on as if the change came later. In a move the node's new link comes
 * first: release, S, pairs with a climb, which takes a node for a root only if its link is still this one.
 */
static void mark_unlinked(struct evc_link *link, uint64_t now)
{
	atomic_store_explicit(&link->item.stamp, EVC_UNLINKED | now, memory_order_release);
}

static void link_last(struct evc_link *link, struct evc_node *node, struct evc_node *parent,
		      uint64_t now)
{
	struct evc_link *last = parent->last_child;

	/* Relaxed: published by L. */
	atomic_store_explicit(&link->next, NULL, memory_order_relaxed);
	atomic_store_explicit(&link->item.stamp, now, memory_order_relaxed);
	link->item.previous = last != NULL ? &last->item : NULL;
	link->parent = parent;
	/*
	 * L: pairs with walks. First for those that come from above, then for those that climb: a walk that
	 * takes its start from a link that it climbs by must find all of the change.
	 */
	atomic_store_explicit(last != NULL ? &last->next : &parent->first_child, link,
			      memory_order_release);
	parent->last_child = link;
	atomic_store_explicit(&node->link, link, memory_order_release);
}

/* Removes a node from its parent's list, if any. Under the mutex; the caller then marks its link. */
static struct evc_node *leave_list(struct evc_node *node)
{
	struct evc_node *parent = parent_of(node);

	if (parent == NULL)
		return NULL;
	take_from_list(link_of(node));
	if (atomic_load_explicit(&node->subtree, memory_order_relaxed) != 0)
		evc_tree_drop_bits(parent);
	evc_walker_note_change();
	return parent;
}

/* Detaches a node from its parent, if it has one. Under the mutex. */
static struct evc_node *leave_parent(struct evc_node *node, uint64_t now)
{
	struct evc_node *parent = leave_list(node);

	if (parent != NULL)
		mark_unlinked(link_of(node), now);
	return parent;
}

static bool is_at_or_above(const struct evc_node *node, const struct evc_node *other)
{
	/* A node without children is above no other. */
	if (first_child(node) == NULL)
		return node == other;
	while (other != NULL && other != node)
		other = parent_of(other);
	return other == node;
}

static void retire_link(struct evc_link *link, uint64_t now)
{
	/* The first link is part of its node. */
	if (link != NULL && link->item.kind == EVC_ITEM_LINK)
		evc_tree_retire(&link->item, now);
}

/* Attaches a node. Under the mutex. A node that had a parent before needs `*spare`, and takes it. */
static enum evc_status attach(struct evc_node *node, struct evc_node *parent,
			      struct evc_link **spare, struct evc_node **former)
{
	struct evc_link *before = link_of(node), *link = &node->first_link;
	uint64_t now = evc_tree_now();

	if (is_at_or_above(node, parent))
		return EVC_NOT_PERMITTED;
	if (before != NULL) {
		/* Not by the same link again: a walk may stand on it. */
		if (*spare == NULL)
			return EVC_OUT_OF_MEMORY;
		link = *spare;
		*spare = NULL;
		evc_tree_init_item(&link->item, EVC_ITEM_LINK, node);
	}
	*former = leave_list(node);
	evc_tree_add_bits(parent, atomic_load_explicit(&node->subtree, memory_order_relaxed));
	link_last(link, node, parent, now);
	/* Only now: a walk that climbs meanwhile comes to one of the two parents. */
	if (before != NULL)
		mark_unlinked(before, now);
	retire_link(before, now);
	evc_tree_count_change(now);
	return EVC_OK;
}

enum evc_status evc_node_attach(struct evc_node *node, struct evc_node *parent,
				void **former_owner)
{
	struct evc_node *former = NULL;
	struct evc_link *spare = NULL;
	enum evc_status status;

	if (node == NULL || parent == NULL)
		return EVC_INVALID_ARGUMENT;
	evc_tree_lock();
	status = attach(node, parent, &spare, &former);
	if (status == EVC_OUT_OF_MEMORY) {
		/* Not under the mutex: the allocator is the user's. */
		evc_tree_unlock();
		spare = evc_tree_allocate(sizeof(*spare));
		if (spare == NULL)
			return EVC_OUT_OF_MEMORY;
		evc_tree_lock();
		status = attach(node, parent, &spare, &former);
	}
	if (former_owner != NULL)
		*former_owner = former != NULL ? former->owner : NULL;
	evc_tree_unlock();
	if (spare != NULL)
		evc_tree_free(spare, sizeof(*spare));
	return status;
}

void *evc_node_detach(struct evc_node *node)
{
	struct evc_node *former;
	void *owner = NULL;
	uint64_t now;

	evc_tree_lock();
	now = evc_tree_now();
	former = leave_parent(node, now);
	if (former != NULL) {
		owner = former->owner;
		evc_tree_count_change(now);
	}
	evc_tree_unlock();
	return owner;
}

void *evc_node_end(struct evc_node *node)
{
	struct evc_node *former;
	void *owner = NULL;
	bool had_handlers;
	uint64_t now;

	if (node == NULL)
		return NULL;
	evc_tree_lock();
	now = evc_tree_now();
	had_handlers = evc_node_retire_handlers(node, now);
	for (struct evc_link *child = first_child(node); child != NULL; child = first_child(node)) {
		take_from_list(child);
		mark_unlinked(child, now);
		evc_walker_note_change();
	}
	former = leave_parent(node, now);
	if (former != NULL)
		owner = former->owner;
	/* In this order: whoever climbs and finds the link retired finds the node ended (tree_depth.c). */
	evc_tree_retire(&node->first_link.item, now);
	retire_link(link_of(node), now);
	evc_tree_count_change(now);
	if (had_handlers)
		evc_tree_tell_removal(now);
	evc_tree_unlock();
	return owner;
}

bool evc_node_has_ended(const struct evc_node *node)
{
	/* Relaxed: written and read under the mutex. */
	return atomic_load_explicit(&node->first_link.item.state, memory_order_relaxed) != 0;
}

void *evc_node_owner(const struct evc_node *node)
{
	return node->owner;
}

struct evc_node *evc_node_parent(const struct evc_node *node)
{
	return parent_of(node);
}

struct evc_node *evc_node_first_child(const struct evc_node *node)
{
	struct evc_link *link = first_child(node);

	return link != NULL ? evc_link_node(link) : NULL;
}

struct evc_node *evc_node_next_sibling(const struct evc_node *node)
{
	struct evc_link *link = parent_of(node) != NULL ? next_link(link_of(node)) : NULL;

	return link != NULL ? evc_link_node(link) : NULL;
}

size_t evc_node_child_count(const struct evc_node *node)
{
	size_t count = 0;

	for (struct evc_link *link = first_child(node); link != NULL; link = next_link(link))
		count++;
	return count;
}
#endif
