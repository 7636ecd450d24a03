/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Nodes, the links by which they are children, and handlers. All trees of a process share one mutex for
 * changes, one clock, and one list of walking threads (tree_walker.h), since trees can be joined.
 *
 * The clock counts changes. A link and a handler carry the time at which they were added (`stamp`), so that a
 * walk skips what was added after it began. What is removed gets the time of its removal, which tells which
 * walks may still use it (tree_reclaim.h).
 *
 * Synchronization:
 *   field                      writers (under the mutex)          walks, while they collect
 *   clock                      C  exchange (release), after the   load, when a walk begins (relaxed, W2 comes
 *                                 change that it counts             behind it) and when it collects (acquire)
 *   link->stamp                set before the link is linked;     S  load (relaxed)
 *                                 EVC_UNLINKED and the time     a climb acquire
 *                                 (release) when it leaves, in
 *                                 a move after L of the new link
 *   link->next                 L  store (release)                 load (acquire)
 *   link->parent, ->node       before the link is linked          read
 *   node->first_child          L  store (release)                 load (acquire)
 *   node->link                 L  store (release)                 load (acquire)
 *   node->subtree, ->own       M  store (relaxed), before the C   load (relaxed)
 *                                 of what they are for
 *   node->first_handler        L  store (release)                 load (acquire)
 *   handler->next              L  store (release)                 load (acquire)
 *   handler->stamp             before L; time of leaving later    load (relaxed)
 *   handler->state             R  store (release), before C       load (relaxed), before a call if E
 *                                                                 is not as it was (tree_wait.h)
 *   last_removal               E  store (relaxed), after the C    load (acquire), before it is collected,
 *                                 of a change that removed          (relaxed) before each call
 *                                 handlers
 *   handler->parts             fetch-or (acq_rel), any thread     -
 *   all else of node, link     read, write                        -
 *
 * Why a walk misses nothing that stays in place: new siblings and handlers are added last, so that the others
 * keep their order. What is removed keeps its `next`, so that a walk that stands on it, or went down by it,
 * comes back to the list and to everything that followed; to a link without `next` it need not come back,
 * since what is added behind it is later than the walk. A node that is attached again gets another link, so
 * that a walk on the old one is not led into another list. Where the walk has not noted its way (it goes on
 * from the last chunk, or there were too many links), it climbs by node->link. If a link there is later than
 * the walk, or unlinked, an ancestor was moved or detached meanwhile, and this part is repeated.
 *
 * Why it finds nothing too early: C follows L in the writer. A walk that read the clock before C skips the
 * link by S; one that read it afterwards sees all of the change, masks included.
 *
 * Masks: a bit for each hash of a key. `own` covers all handlers of the node, `subtree` the propagate
 * handlers of the node and of all below it; a superfluous bit only costs time. Bits are added upwards at once,
 * and removed where that is cheap: up to EVC_MASK_LEVELS levels, of nodes with up to EVC_MASK_CHILDREN
 * children. Measured: Documentation/Choices.md.
 *
 * Lock order: the mutex is innermost; only the C library is called under it.
 */
#ifndef EVC_TREE_PRIVATE_H
#define EVC_TREE_PRIVATE_H

#include "platform/compiler.h"
#include "eventcore/tree.h"
#include "tree/tree_memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

/* In a link's stamp: it was removed, at the time in the other bits. */
#define EVC_UNLINKED (UINT64_C(1) << 63)
#define EVC_MASK_CHILDREN 8u
#define EVC_MASK_LEVELS 16u
#define EVC_HANDLER_PHASES (EVC_HANDLER_RAISE | EVC_HANDLER_PROPAGATE | EVC_HANDLER_CAPTURE)

/* The memory of a handler has two owners: the tree, and the caller that keeps the pointer from adding it. */
#define EVC_PART_TREE 1u
#define EVC_PART_CALLER 2u

enum evc_tree_item_kind { EVC_ITEM_HANDLER, EVC_ITEM_LINK, EVC_ITEM_NODE };

/*
 * The common head of links, nodes and handlers: what can be retired. Swift reads `state` and `object` of a
 * handler by offset, and both of its cores have this layout; tests compare.
 */
struct evc_tree_item {
	/*
	 * 0 until the item is removed. Of handlers: written by R, read before a call if E has changed (tree_wait.h). Of
	 * nodes and links: under the mutex, but for a climb (tree_depth.c).
	 */
	_Atomic uint32_t state;
	/* Handlers: evc_handler_mode. Constant. */
	uint8_t modes;
	/* evc_tree_item_kind. Constant. */
	uint8_t kind;
	/* Handlers: EVC_PART_*, the owners that have released it. */
	_Atomic uint8_t parts;
	/* Reclaiming; under the mutex. */
	bool is_pinned;
	/* Handlers: what the caller calls. Links: the node. Constant. */
	void *object;
	/* The time when it was added; once it is retired, when it was removed. */
	_Atomic uint64_t stamp;
	/* Under the mutex: its predecessor in its list; once it is retired, the next retired item. */
	struct evc_tree_item *previous;
};

struct evc_link {
	struct evc_tree_item item;
	_Atomic(struct evc_link *) next;
	/* Constant while it is linked. */
	struct evc_node *parent;
};

/* The first 64 bytes are what a walk reads of a node without matching handlers. */
struct evc_node {
	/* The link to its first parent. Its item stands for the node when that is retired. */
	struct evc_link first_link;
	_Atomic uint64_t subtree;
	_Atomic(struct evc_link *) first_child;
	_Atomic uint64_t own;
	_Atomic(struct evc_handler *) first_handler;
	/* The link by which it is a child, or was one (EVC_UNLINKED); NULL if it never was. */
	_Atomic(struct evc_link *) link;
	/* Under the mutex. */
	struct evc_link *last_child;
	struct evc_handler *last_handler;
	/* Constant. */
	void *owner;
	void (*release)(void *object);
};

struct evc_handler {
	struct evc_tree_item item;
	uint64_t key;
	_Atomic(struct evc_handler *) next;
	/* Constant. Valid while the handler exists, for readers that follow tree_walker.h. */
	struct evc_node *node;
	void (*release)(void *object);
};

/* The mutex of all trees, the clock, and what waits to be freed. */
struct evc_tree_domain {
	/* Read by every walk, written by every change: a line of its own. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t clock;
	/* The last removal of a handler. Read before every call, so not on a line of other changes. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t last_removal;
	_Alignas(EVC_CACHE_LINE) pthread_mutex_t mutex;
	/* A thread wants the deferred items to be reclaimed and did not get the mutex (tree_reclaim.h). */
	_Atomic bool is_requested;
	/* Under the mutex: what this change retired, and what a walk may still use. */
	struct evc_tree_item *fresh;
	struct evc_tree_item *deferred;
	/* Under the mutex: the walkers that may be in a walk; those that joined since (tree_walker.h). */
	struct evc_walker *walkers;
	_Atomic(struct evc_walker *) joined;
};

extern struct evc_tree_domain evc_tree;

/* The time of the change that is being made. Under the mutex. */
static inline uint64_t evc_tree_now(void)
{
	/* Relaxed: only holders of the mutex write it. */
	return atomic_load_explicit(&evc_tree.clock, memory_order_relaxed) + 1;
}

/*
 * C: counts the change: release, pairs with walks that find the same time twice (tree_collect.c); and a full
 * barrier (tree_reclaim.h). Under the mutex.
 */
static inline void evc_tree_count_change(uint64_t now)
{
	atomic_exchange_explicit(&evc_tree.clock, now, memory_order_release);
	evc_fence_after_exchange();
}

/* E: announces a counted removal of handlers to walks. Under the mutex, before it is unlocked. */
static inline void evc_tree_tell_removal(uint64_t now)
{
	/* Relaxed, behind C's barrier: a walk that sees this finds the removed handlers nowhere. */
	atomic_store_explicit(&evc_tree.last_removal, now, memory_order_relaxed);
}

static inline uint64_t evc_tree_bit(uint64_t key)
{
	/* As evc_route_hash: metadata pointers differ in their middle bits. */
	return UINT64_C(1) << ((key * UINT64_C(0x9E3779B97F4A7C15)) >> 58);
}

static inline struct evc_node *evc_link_node(struct evc_link *link)
{
	/* Mostly the node's own link. A branch, instead of a load that the next one depends on. */
	if (evc_likely(link->item.kind == EVC_ITEM_NODE))
		return (struct evc_node *)(void *)link;
	return link->item.object;
}

static inline void evc_tree_init_item(struct evc_tree_item *item, enum evc_tree_item_kind kind, void *object)
{
	*item = (struct evc_tree_item){ .kind = (uint8_t)kind, .object = object, .stamp = EVC_UNLINKED };
}

/* Adds bits to the masks of a node and of all above it. Under the mutex. */
void evc_tree_add_bits(struct evc_node *node, uint64_t bits);
/* Removes bits that a node and the nodes above it need no more, where that is cheap. Under the mutex. */
void evc_tree_drop_bits(struct evc_node *node);
/* Removes and retires all handlers of a node. False if there are none. Under the mutex. */
bool evc_node_retire_handlers(struct evc_node *node, uint64_t now);

static_assert(sizeof(struct evc_handler) <= EVC_TREE_SMALL, "one cache line");
static_assert(sizeof(struct evc_node) <= EVC_TREE_LARGE, "two cache lines");
static_assert(offsetof(struct evc_handler, item.state) == 0, "Swift counts on it");
static_assert(offsetof(struct evc_handler, item.modes) == 4, "Swift counts on it");
static_assert(offsetof(struct evc_handler, item.object) == 8, "Swift counts on it");
static_assert(offsetof(struct evc_walk, handlers) == 0, "Swift counts on it");
static_assert(offsetof(struct evc_walk, objects) == 8, "Swift counts on it");
static_assert(offsetof(struct evc_walk, count) == 16, "Swift counts on it");
static_assert(offsetof(struct evc_walk, phase) == 20, "Swift counts on it");

#endif
