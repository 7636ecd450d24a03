/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree/tree_memory.h"
#include "tree/tree_reclaim.h"

#include "tree/tree_walker.h"

/* Up to this many items are compared one by one with what a walk holds, without reading the handlers. */
#define FEW 4u

struct items {
	struct evc_tree_item *first;
	/* How many are not marked yet: once there are none, the search in a walk that holds one can stop. */
	unsigned unmarked;
	bool are_few;
	bool has_nodes;
	/* Only links: of a walk only its position may be one of them. */
	bool are_links;
};

void evc_tree_retire(struct evc_tree_item *item, uint64_t now)
{
	/* A handler's state is set already. Relaxed: of the others only holders of the mutex read it. */
	if (item->kind != EVC_ITEM_HANDLER)
		atomic_store_explicit(&item->state, 1, memory_order_relaxed);
	/* Release, pairs with climb (tree_collect.c): the node's new link before this one's stamp. */
	atomic_store_explicit(&item->stamp, now, memory_order_release);
	item->previous = evc_tree.fresh;
	evc_tree.fresh = item;
}

static void mark(struct items *items, struct evc_tree_item *item)
{
	if (!item->is_pinned) {
		item->is_pinned = true;
		items->unmarked--;
	}
}

/*
 * True if an item that a walk holds is one of these. If there are several, a retired one counts as one of
 * them, and is marked if `marks`.
 */
static bool hold(struct items *items, struct evc_tree_item *held, bool marks)
{
	struct evc_tree_item *item = held;

	if (held == NULL)
		return false;
	if (items->are_few) {
		for (item = items->first; item != NULL && item != held; item = item->previous)
			;
		if (item == NULL)
			return false;
	} else if (atomic_load_explicit(&held->state, memory_order_relaxed) == 0) {
		/* Relaxed: written and read under the mutex. */
		return false;
	}
	if (marks)
		mark(items, item);
	return true;
}

/* True if a walk holds any of these. `*at` gets the index in its window of the first of its handlers that it holds. */
static bool walk_holds(struct evc_tree_walk *walk, struct evc_node *root, struct items *items, bool marks, uint32_t *at)
{
	/* Acquire: pairs with W4, all reads of the link that the walk stood on before. */
	struct evc_link *position = atomic_load_explicit(&walk->position, memory_order_acquire);
	struct evc_window *window;
	uint32_t current, published;
	bool any = false;

	if (position != NULL)
		any |= hold(items, &position->item, marks);
	/* Attaching and detaching do not read the line that the walk writes at each call. */
	if (items->are_links)
		return any;
	any |= hold(items, &root->first_link.item, marks);
	/* Acquire: the calls before `current`, the handlers before `published`. In this order: see tree_walker.h. */
	current = atomic_load_explicit(&walk->current, memory_order_acquire);
	published = atomic_load_explicit(&walk->published, memory_order_acquire);
	window = atomic_load_explicit(&walk->window, memory_order_acquire);
	/* A handler that removes itself, or ends its node, is the first of its chunk, however long that is. */
	for (; current < published && !(any && (!marks || items->unmarked == 0)); current++) {
		struct evc_handler *handler =
			__atomic_load_n(&window->handlers[current], __ATOMIC_RELAXED);
		bool is_held = hold(items, &handler->item, marks);

		/* The caller may ask for the node, which exists as long as it was held. */
		if (items->has_nodes)
			is_held |= hold(items, &handler->node->first_link.item, marks);
		if (is_held && current < *at)
			*at = current;
		any |= is_held;
	}
	return any;
}

/* U4, U5: true if a walker with this word holds any of these items; marks those if `marks`. */
static bool walker_holds(struct evc_walker *walker, uint64_t word, struct items *items, bool marks)
{
	struct evc_tree_walk *walk;
	struct evc_node *root;
	uint32_t unused = 0;
	bool any = false;

	if (word & EVC_WALKER_COLLECTS) {
		for (struct evc_tree_item *item = items->first; item != NULL; item = item->previous) {
			if (atomic_load_explicit(&item->stamp, memory_order_relaxed) >
			    word / EVC_WALKER_EPOCH) {
				if (marks)
					mark(items, item);
				any = true;
			}
		}
	}
	/* Acquire: pairs with evc_walker_add_walk, which may come after J. */
	walk = atomic_load_explicit(&walker->outermost, memory_order_acquire);
	/* Without it no inner walk is under way. Acquire: pairs with the end of a walk, which read it. */
	while (walk != NULL &&
	       (root = atomic_load_explicit(&walk->root, memory_order_acquire)) != NULL) {
		any |= walk_holds(walk, root, items, marks, &unused);
		/* Acquire: pairs with evc_walker_add_walk. */
		walk = atomic_load_explicit(&walk->inner, memory_order_acquire);
	}
	return any;
}

/*
 * This thread itself, in a handler: what it holds is reclaimed when the innermost walk that holds any steps on, or has
 * called the first handler that it holds, since no walk of this thread lets go of any before. Walks inside do not search
 * until then.
 */
static void look_at_own(struct evc_walker *walker, struct items *items)
{
	struct evc_tree_walk *holder = NULL;
	struct evc_node *root;
	uint32_t held_at = 0;

	/* Relaxed, all: this thread's. */
	for (struct evc_tree_walk *walk = atomic_load_explicit(&walker->outermost, memory_order_relaxed);
	     walk != NULL && (root = atomic_load_explicit(&walk->root, memory_order_relaxed)) != NULL;
	     walk = atomic_load_explicit(&walk->inner, memory_order_relaxed)) {
		uint32_t at = walk == walker->holder ? walker->held_at : UINT32_MAX;

		if (walk_holds(walk, root, items, true, &at) || walk == walker->holder) {
			holder = walk;
			held_at = at;
		}
	}
	walker->holder = holder;
	walker->held_at = held_at;
}

/* U3 to U6: marks what a walker holds. */
static void look_at(struct evc_walker *walker, uint64_t word, struct items *items)
{
	if (walker == evc_walker_current) {
		look_at_own(walker, items);
		return;
	}
	if (evc_likely(!walker_holds(walker, word, items, false)))
		return;
	/* U6. Acquire: pairs with W5 and W8, one of which it has read or will be read by. */
	word = atomic_fetch_or_explicit(&walker->word, EVC_WALKER_WANTED, memory_order_acquire);
	(void)walker_holds(walker, word, items, true);
}

/* A: makes a walker absent that is in no walk and has not looked at a tree for long. False if it stays. */
static bool becomes_absent(struct evc_walker *walker, uint64_t word)
{
	/* Release: pairs with W2 (what was done with it, before J), and with its thread's end. */
	return evc_tree_now() - word / EVC_WALKER_EPOCH > EVC_WALKER_PATIENCE &&
	       atomic_compare_exchange_strong_explicit(&walker->word, &word, EVC_WALKER_ABSENT,
						       memory_order_release, memory_order_relaxed);
}

/* Defers the items of a list that a walk may use, and adds the others to `dead`. After a full barrier. */
static struct evc_tree_item *sift(struct evc_tree_item *first, struct evc_tree_item *dead)
{
	struct items items = {
		.first = first, .are_few = true, .are_links = true
	};
	struct evc_walker *walker, **place = &evc_tree.walkers;

	if (first == NULL)
		return dead;
	for (struct evc_tree_item *item = first; item != NULL; item = item->previous) {
		item->is_pinned = false;
		items.are_few &= ++items.unmarked <= FEW;
		items.has_nodes |= item->kind == EVC_ITEM_NODE;
		items.are_links &= item->kind == EVC_ITEM_LINK;
	}
	(void)evc_walkers();
	while ((walker = *place) != NULL) {
		/* U3. Acquire: pairs with W5 and W8. After the barrier of U2, so that W2 is seen or sees U1. */
		uint64_t word = atomic_load_explicit(&walker->word, memory_order_acquire);
		struct evc_walker *next = walker->next;

		if (word & (EVC_WALKER_COLLECTS | EVC_WALKER_WALKS)) {
			look_at(walker, word, &items);
		} else if (becomes_absent(walker, word)) {
			*place = next;
			continue;
		}
		place = &walker->next;
	}
	while (first != NULL) {
		struct evc_tree_item *item = first;
		struct evc_tree_item **list = item->is_pinned ? &evc_tree.deferred : &dead;

		first = item->previous;
		item->previous = *list;
		*list = item;
	}
	return dead;
}

/* Outside of all locks and sections: `release` is the user's. */
static void free_items(struct evc_tree_item *dead)
{
	while (dead != NULL) {
		struct evc_tree_item *item = dead;
		struct evc_handler *handler = (struct evc_handler *)item;

		dead = item->previous;
		if (item->kind != EVC_ITEM_HANDLER) {
			evc_tree_free(item, item->kind == EVC_ITEM_LINK ? sizeof(struct evc_link)
									: sizeof(struct evc_node));
			continue;
		}
		if (handler->release != NULL)
			handler->release(item->object);
		/* Pairs with evc_handler_drop: both owners' reads before the memory is freed. */
		if (atomic_fetch_or_explicit(&item->parts, EVC_PART_TREE, memory_order_acq_rel) & EVC_PART_CALLER)
			evc_tree_free(handler, sizeof(*handler));
	}
}

void evc_tree_lock(void)
{
	pthread_mutex_lock(&evc_tree.mutex);
}

void evc_tree_unlock(void)
{
	/* The fresh items were followed by a full barrier: evc_tree_count_change. */
	struct evc_tree_item *dead = sift(evc_tree.fresh, NULL);

	evc_tree.fresh = NULL;
	do {
		/* Relaxed, both: U6 sees what the requesting thread has released at the latest. */
		while (atomic_load_explicit(&evc_tree.is_requested, memory_order_relaxed) &&
		       atomic_exchange_explicit(&evc_tree.is_requested, false,
						memory_order_relaxed)) {
			struct evc_tree_item *deferred = evc_tree.deferred;

			/* Each was followed by the barrier of its U2, in a thread that held the mutex before. */
			evc_tree.deferred = NULL;
			dead = sift(deferred, dead);
		}
		pthread_mutex_unlock(&evc_tree.mutex);
		/*
		 * A thread that made a request while this one had the mutex relies on this look
		 * (tree_reclaim.h). Unlocking is an exchange where that matters here.
		 */
		evc_fence_after_exchange();
	} while (evc_unlikely(atomic_load_explicit(&evc_tree.is_requested,
						   memory_order_relaxed)) &&
		 pthread_mutex_trylock(&evc_tree.mutex) == 0);
	free_items(dead);
}

void evc_tree_reclaim(void)
{
	atomic_store_explicit(&evc_tree.is_requested, true, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	/* Otherwise the holder of the mutex does it. */
	if (pthread_mutex_trylock(&evc_tree.mutex) == 0)
		evc_tree_unlock();
}
#endif
