/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file tree.h
 * Trees of nodes with handlers, through which an event is raised to the root and then propagated.
 *
 *     capture    root ─► node       handlers with EVC_HANDLER_CAPTURE     (only if asked for)
 *     raise      node ─► root       handlers with EVC_HANDLER_RAISE       (the node itself first)
 *     propagate  root ─► all        handlers with EVC_HANDLER_PROPAGATE   (parents before children,
 *                                                                          siblings as they joined)
 * Within a node: as the handlers were added.
 *
 * A walk finds the handlers, and the caller calls them, since only the caller knows what an event is:
 *
 *     struct evc_walk *walk;
 *     if (evc_walk_begin(node, key, EVC_WALK_RAISE | EVC_WALK_PROPAGATE, &walk) == EVC_OK) {
 *             do {
 *                     for (uint32_t i = 0; i < walk->count; i++)
 *                             if (evc_walk_will_call(walk, i))
 *                                     ... call what evc_handler_object(walk->handlers[i]) is ...
 *             } while (evc_walk_next(walk) == EVC_OK);
 *             evc_walk_end(walk);
 *     }
 *
 * A walk belongs to the moment it began. It finds every handler that was there at that moment, in
 * order, each once; but not one that was removed since, whose node has ended since, or whose node this
 * thread has detached or moved since (but the one from which EVC_WALK_FROM_HERE goes down, wherever it is).
 * What comes meanwhile is for the next walk. A node that another thread detaches meanwhile is either found
 * or not.
 *
 * Threads: any thread may call any function at any time, also inside a handler and inside `release`,
 * but for those that say otherwise. Walks take no lock and wait for nobody, but for a short lock to wake
 * those who wait for a handler (evc_handler_remove_and_wait); changes take one mutex for all trees of the
 * process. Handlers run outside of every lock and of every section.
 *
 * Who calls `release(object)`, always outside of all locks and sections, exactly once for each handler
 * that was added:
 *   a handler that no walk holds      whoever removes it or ends its node, before that call returns
 *   a handler that a walk holds       whoever finds it free: the thread of that walk, in evc_walk_next
 *     (it is being called, or is        or evc_walk_end, or a thread that changes a tree at that moment,
 *     one of the next)                  before its call returns
 */
#ifndef EVENTCORE_TREE_H
#define EVENTCORE_TREE_H

#include "base.h"

EVC_BEGIN_DECLS

/** A node of a tree. */
struct evc_node;
/** A handler at a node. */
struct evc_handler;

/** What a handler is for: bits of its modes. The core reads the three phases only. */
enum evc_handler_mode {
	EVC_HANDLER_RAISE = 1,
	EVC_HANDLER_PROPAGATE = 2,
	/** For the caller: the event ends with this handler. */
	EVC_HANDLER_CONSUME = 4,
	EVC_HANDLER_CAPTURE = 8,
	/** For the caller: the handler says how the event goes on. */
	EVC_HANDLER_CHOICE = 16
};

/** Where a walk goes: bits, in the order of the phases whatever their values. */
enum evc_walk_scope {
	/** From the node to the root. */
	EVC_WALK_RAISE = EVC_HANDLER_RAISE,
	/** From the root to all nodes below it. */
	EVC_WALK_PROPAGATE = EVC_HANDLER_PROPAGATE,
	/** From the root to the node, before anything else. */
	EVC_WALK_CAPTURE = EVC_HANDLER_CAPTURE,
	/** With EVC_WALK_PROPAGATE: from the node itself to all below it, instead of from the root. */
	EVC_WALK_FROM_HERE = 32
};

/** How a node is made. */
struct evc_node_options {
	/** Handed back by evc_node_owner; never read by the core. */
	void *owner;
	/** Ends an object that was given to evc_node_add_handler of this node. NULL: nothing to end. */
	void (*release)(void *object);
};

/**
 * Makes a node without parent.
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller ends it with `evc_node_end`.
 * Errors: EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_node_create(const struct evc_node_options *options,
						     struct evc_node **out);

/**
 * Ends a node: takes it out of its tree and removes its handlers. Children that it still has are
 * detached. Walks that are under way go on without it.
 *
 * @return the owner of the parent that it had, or NULL; see evc_node_attach
 *
 * Threads: any, once; no other call with this node as argument runs or follows, but for walks that have
 * begun. Progress: blocking (the mutex). Ownership: the node is the core's until the last walk that
 * may look at it is past it. Errors: none.
 */
EVC_API void *evc_node_end(struct evc_node *node);

/**
 * Makes `node` the last child of `parent`, taking it away from the parent that it has.
 *
 * @param former_owner receives the owner of the parent that it had, or NULL; may be NULL. So an owner
 *                     whose nodes hold their parents takes a reference of the new parent before the
 *                     call, and afterwards drops that of the former one, or, with an error, the new one.
 * @return EVC_NOT_PERMITTED if `parent` is `node` or is below it (that would be a cycle); the node stays
 *         where it is then, also with EVC_OUT_OF_MEMORY. A child of `parent` already: it becomes the last
 *         one.
 *
 * Threads: any. Progress: blocking (the mutex); allocates unless the node never had a parent. Costs a
 * climb from `parent` to its root if the node has children. Errors: as above.
 */
EVC_API EVC_MUST_USE enum evc_status evc_node_attach(struct evc_node *node, struct evc_node *parent,
						     void **former_owner);

/**
 * Takes a node, with all below it, away from its parent.
 *
 * @return the owner of the parent that it had, or NULL if it had none
 *
 * Threads: any. Progress: blocking (the mutex); no allocation. Errors: none.
 */
EVC_API void *evc_node_detach(struct evc_node *node);

/**
 * Adds a handler as the node's last.
 *
 * @param key    of the events that it is for; not 0
 * @param modes  evc_handler_mode, at least one phase
 * @param object what the caller calls
 * @param out    receives the handler, valid until evc_handler_drop whatever becomes of the node; NULL if
 *               the caller will not need it
 *
 * Threads: any. Progress: blocking (the mutex, and the allocator). Ownership: `object` is the tree's
 * until `release(object)`; with an error it stays the caller's. Errors: EVC_OUT_OF_MEMORY,
 * EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_node_add_handler(struct evc_node *node, uint64_t key,
							  uint8_t modes, void *object,
							  struct evc_handler **out);

/**
 * Removes the handlers of a node whose key is `key` (0: any) and whose modes have one of the bits of `modes`
 * (0: any): with EVC_HANDLER_RAISE all that would be called on the way up, also those that consume or that have
 * other phases as well.
 *
 * @return how many there were
 *
 * Threads: any. Progress: blocking (the mutex). Order: no call of them begins after the return; one may
 * still be running. Errors: none.
 */
EVC_API size_t evc_node_remove_handlers(struct evc_node *node, uint64_t key, uint8_t modes);

/** The owner that the node was made with. Threads: any. Progress: wait-free. Errors: none. */
EVC_API void *evc_node_owner(const struct evc_node *node);

/**
 * How many nodes are above a node: at one moment during the call, whatever others move meanwhile. 0 for one that has
 * ended, of a walk's handler.
 *
 * Threads: any; not inside of evc_tree_lock. Progress: lock-free, without allocation once the thread has walked; begins
 * anew only when a node on the way was moved meanwhile. May call `release` of removed handlers. Errors: none.
 */
EVC_API size_t evc_node_depth(const struct evc_node *node);

/**
 * Removes a handler.
 *
 * Threads: any, also inside it. Progress: blocking (the mutex). Order: no call of it begins after the
 * return (D6); one may still be running. Errors: EVC_NOT_FOUND if it was removed before, or its node has
 * ended.
 */
EVC_API enum evc_status evc_handler_remove(struct evc_handler *handler);

/**
 * Whether a handler may still be called. Once this is false no call of it begins any more (D6).
 *
 * Threads: any that may remove it. Progress: wait-free. Errors: none.
 */
EVC_API bool evc_handler_is_active(const struct evc_handler *handler);

/**
 * Removes a handler and returns when no call of it is running (D6).
 *
 * Threads: any but inside the handler itself; and two handlers that wait for each other wait for ever.
 * Progress: blocking; woken by the walk that goes on from it. Errors: EVC_NOT_PERMITTED inside the handler itself,
 * then it was not removed; EVC_NOT_FOUND if it was removed before, then it waited too.
 */
EVC_API EVC_MUST_USE enum evc_status evc_handler_remove_and_wait(struct evc_handler *handler);

/**
 * Gives up the handler that evc_node_add_handler returned. It goes on handling.
 *
 * Threads: any, once. Progress: wait-free. Ownership: ends here. Errors: none.
 */
EVC_API void evc_handler_drop(struct evc_handler *handler);

/** The object that the handler was added with. Threads: those that hold it: a walk's, before its next
 * step, or one that did not drop it and knows that it was not removed. Progress: wait-free. Ownership: the
 * handler's. Errors: none. */
EVC_API void *evc_handler_object(const struct evc_handler *handler);

/**
 * The node that the handler was added to. Threads: as evc_handler_object; a walk's may have ended
 * (evc_node_has_ended), and stays until the walk's next step. Progress: wait-free. Errors: none.
 */
EVC_API struct evc_node *evc_handler_node(const struct evc_handler *handler);

/**
 * The modes that the handler was added with. Threads: as evc_handler_object. Progress: wait-free. Errors: none.
 */
EVC_API uint8_t evc_handler_modes(const struct evc_handler *handler);

/** A walk under way. The caller reads these fields, the rest belongs to the core. */
struct evc_walk {
	/** The next handlers, in order; valid until evc_walk_next or evc_walk_end. */
	struct evc_handler *const *handlers;
	/** Their objects, as evc_handler_object would give them. */
	void *const *objects;
	/** How many; at least one. */
	uint32_t count;
	/** Their phase: EVC_WALK_CAPTURE, EVC_WALK_RAISE or EVC_WALK_PROPAGATE. */
	uint32_t phase;
};

/**
 * Begins a walk and finds its first handlers.
 *
 * @param key   of the event; not 0
 * @param scope evc_walk_scope, at least one phase
 *
 * Threads: any; the walk belongs to this thread. Inside a handler it is a walk of its own, which ends
 * before the outer one goes on. `node` must not end before the return. Progress: lock-free once warm,
 * without allocation: climbs from the node to the root; a part is done again only when a node on the way was
 * moved meanwhile. Ownership: the caller ends `*out` with evc_walk_end. Errors: EVC_EMPTY: no handler
 * matches, and there is no walk; EVC_OUT_OF_MEMORY: there is no walk; EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_walk_begin(struct evc_node *node, uint64_t key,
						    uint32_t scope, struct evc_walk **out);

/**
 * To be asked right before each call, with growing indices. Not after the call that ended the event.
 *
 * @return false if the handler was removed meanwhile, or this thread has detached its node
 *
 * Threads: the walk's. Progress: wait-free; lock-free after this thread has detached something.
 * Errors: none.
 */
EVC_API bool evc_walk_will_call(struct evc_walk *walk, uint32_t index);

/**
 * Finds the next handlers. The ones before are done with.
 *
 * Threads: the walk's, and only its innermost walk. Progress: as evc_walk_begin. May call `release`
 * of removed handlers. Errors: EVC_EMPTY: there are none any more, `count` is 0; EVC_OUT_OF_MEMORY: the
 * same, but a further call tries again.
 */
EVC_API EVC_MUST_USE enum evc_status evc_walk_next(struct evc_walk *walk);

/**
 * The node at which a walk's ways down begin and its way up ends: the root as it was, or with
 * EVC_WALK_FROM_HERE the node itself. It may have ended (evc_node_has_ended), and stays until the walk ends.
 *
 * Threads: the walk's. Progress: wait-free. Ownership: the walk's. Errors: none.
 */
EVC_API struct evc_node *evc_walk_top(const struct evc_walk *walk);

/**
 * Ends a walk, whether it is over or not. May call `release` of removed handlers.
 *
 * Threads: the walk's, and only its innermost walk. Progress: lock-free. Ownership: ends here. Errors: none.
 */
EVC_API void evc_walk_end(struct evc_walk *walk);

/**
 * Holds all trees of the process still, to read them with the functions below. No other function of this
 * file may be called between the two; no user code may run there.
 *
 * Threads: any; both on one thread. Progress: blocking (the mutex); walks go on. Errors: none.
 */
EVC_API void evc_tree_lock(void);
/**
 * Lets go. May call `release` of removed handlers. Threads: the one that has the lock. Progress: wait-free but for
 * those calls. Errors: none.
 */
EVC_API void evc_tree_unlock(void);
/** The parent, or NULL. Threads: between evc_tree_lock and evc_tree_unlock. Progress: wait-free. Errors: none. */
EVC_API struct evc_node *evc_node_parent(const struct evc_node *node);
/** The first child, or NULL. Threads: between evc_tree_lock and evc_tree_unlock. Progress: wait-free. Errors: none. */
EVC_API struct evc_node *evc_node_first_child(const struct evc_node *node);
/**
 * The next child of the same parent, or NULL. Threads: between evc_tree_lock and evc_tree_unlock. Progress:
 * wait-free. Errors: none.
 */
EVC_API struct evc_node *evc_node_next_sibling(const struct evc_node *node);
/**
 * Whether evc_node_end was called, of the node of a walk's handler. Threads: between evc_tree_lock and
 * evc_tree_unlock. Progress: wait-free. Errors: none.
 */
EVC_API bool evc_node_has_ended(const struct evc_node *node);
/**
 * How many children a node has. Threads: between evc_tree_lock and evc_tree_unlock. Progress: O(children).
 * Errors: none.
 */
EVC_API size_t evc_node_child_count(const struct evc_node *node);
/**
 * The first handler of a node, or NULL. Threads: between evc_tree_lock and evc_tree_unlock. Progress: wait-free.
 * Errors: none.
 */
EVC_API struct evc_handler *evc_node_first_handler(const struct evc_node *node);
/**
 * The next handler of the same node, or NULL. Threads: between evc_tree_lock and evc_tree_unlock. Progress:
 * wait-free. Errors: none.
 */
EVC_API struct evc_handler *evc_handler_next(const struct evc_handler *handler);
/** The key that the handler was added with. Threads: as evc_handler_object. Progress: wait-free. Errors: none. */
EVC_API uint64_t evc_handler_key(const struct evc_handler *handler);

EVC_END_DECLS
#endif
