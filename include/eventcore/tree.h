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
 * Within a node: in the order in which the handlers were added.
 *
 * A walk finds the handlers; the caller calls them, since only the caller knows what an event is:
 *
 *     struct evc_walk *walk;
 *     if (evc_walk_begin(node, key, EVC_WALK_RAISE | EVC_WALK_PROPAGATE, &walk) == EVC_OK) {
 *             do {
 *                     for (uint32_t i = 0; i < walk->count; i++)
 *                             if (evc_walk_will_call(walk, i))
 *                                     ... call evc_handler_object(walk->handlers[i]) ...
 *             } while (evc_walk_next(walk) == EVC_OK);
 *             evc_walk_end(walk);
 *     }
 *
 * A walk shows the trees as they were when it began. It finds every handler that existed then, in order, each
 * once. It leaves out a handler that was removed since, whose node has ended since, or whose node this thread
 * has detached or moved since (but never the node from which EVC_WALK_FROM_HERE goes down). Handlers and
 * nodes that are added meanwhile are left to the next walk. A node that another thread detaches meanwhile is
 * either found or not.
 *
 * Threads: unless a function says otherwise, any thread may call it at any time, also inside a handler and
 * inside `release`. Walks take no lock and wait for no other thread, except for a short lock with which they
 * wake those who wait for a handler (evc_handler_remove_and_wait). Changes take one mutex for all trees of
 * the process. Handlers run outside of every lock and read section.
 *
 * Who calls `release(object)`, always outside of all locks and read sections, and exactly once for each
 * handler that was added:
 *   a handler that no walk holds      the thread that removes it or ends its node, before that call returns
 *   a handler that a walk holds       the thread that finds it free: one that walks (evc_walk_begin,
 *     (it is being called, or is        evc_walk_will_call, evc_walk_next, evc_walk_end, evc_node_depth), or
 *     one of the next)                  one that changes a tree at that moment, before its call returns
 */
#ifndef EVENTCORE_TREE_H
#define EVENTCORE_TREE_H

#include "base.h"

EVC_BEGIN_DECLS

/** A node of a tree. */
struct evc_node;
/** A handler at a node. */
struct evc_handler;

/** The phases and properties of a handler, as bits. The core itself uses the three phases only. */
enum evc_handler_mode {
	EVC_HANDLER_RAISE = 1,
	EVC_HANDLER_PROPAGATE = 2,
	/** For the caller: the event ends with this handler. */
	EVC_HANDLER_CONSUME = 4,
	EVC_HANDLER_CAPTURE = 8,
	/** For the caller: the handler decides whether and how the event goes on. */
	EVC_HANDLER_CHOICE = 16
};

/** The phases of a walk, as bits. The order of the phases is fixed: capture, raise, propagate. */
enum evc_walk_scope {
	/** From the node to the root. */
	EVC_WALK_RAISE = EVC_HANDLER_RAISE,
	/** From the root to all nodes below it. */
	EVC_WALK_PROPAGATE = EVC_HANDLER_PROPAGATE,
	/** From the root to the node, before the other phases. */
	EVC_WALK_CAPTURE = EVC_HANDLER_CAPTURE,
	/** With EVC_WALK_PROPAGATE: from the node itself to all nodes below it, instead of from the root. */
	EVC_WALK_FROM_HERE = 32
};

/** Options of a node. */
struct evc_node_options {
	/** sizeof of this structure, which tells the library which members the caller knows. */
	size_t size;
	/** Returned by evc_node_owner; the core never reads it. */
	void *owner;
	/** Ends an object that was passed to evc_node_add_handler. NULL: objects need no ending. */
	void (*release)(void *object);
};

/**
 * Makes a node without parent.
 *
 * @param options NULL: the defaults
 * @param out receives the node
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller ends it with `evc_node_end`. Errors:
 * EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_node_create(const struct evc_node_options *options,
						     struct evc_node **out);

/**
 * Ends a node: takes it out of its tree, removes its handlers, and detaches its children. Walks that are
 * under way go on without it.
 *
 * @return the owner of the parent that it had, or NULL; see evc_node_attach
 *
 * Threads: any, once; no other call with this node as an argument may run or follow, except for walks that
 * have begun. Progress: blocking (the mutex). Ownership: the core frees the node when no walk can reach it
 * any more.
 */
EVC_API void *evc_node_end(struct evc_node *node);

/**
 * Makes `node` the last child of `parent`, and takes it away from the parent that it has. If it is a child of
 * `parent` already, it becomes the last one.
 *
 * @param former_owner receives the owner of the parent that it had, or NULL; may be NULL. An owner whose
 *         nodes keep their parents alive takes a reference of the new parent before this call; afterwards it
 *         releases the former one, or, after an error, the new one.
 * @return EVC_NOT_PERMITTED if `parent` is `node` or lies below it, which would make a cycle. After an error
 *         the node stays where it is.
 *
 * Threads: any. Progress: blocking (the mutex); allocates unless the node never had a parent. If the node has
 * children, it climbs from `parent` to the root. Errors: EVC_NOT_PERMITTED, EVC_OUT_OF_MEMORY,
 * EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_node_attach(struct evc_node *node, struct evc_node *parent,
						     void **former_owner);

/**
 * Takes a node, with all nodes below it, away from its parent.
 *
 * @return the owner of the parent that it had, or NULL if it had none
 *
 * Threads: any. Progress: blocking (the mutex); no allocation.
 */
EVC_API void *evc_node_detach(struct evc_node *node);

/**
 * Adds a handler, behind the node's other handlers.
 *
 * @param key of the events that it is for; not 0
 * @param modes evc_handler_mode bits, at least one phase
 * @param object what the caller calls
 * @param out receives the handler, which stays valid until evc_handler_drop, even if the node ends; NULL if
 *         the caller does not need it
 *
 * Threads: any. Progress: blocking (the mutex, and the allocator). Ownership: `object` is the tree's until
 * `release(object)`; after an error it is still the caller's. Errors: EVC_OUT_OF_MEMORY,
 * EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_node_add_handler(struct evc_node *node, uint64_t key,
							  uint8_t modes, void *object,
							  struct evc_handler **out);

/**
 * Removes all handlers of a node whose key is `key` (0: any key) and that have at least one of the bits of
 * `modes` (0: any). With EVC_HANDLER_RAISE, for example, it removes every handler that would be called on the
 * way up, also those that consume or belong to further phases.
 *
 * @return how many were removed
 *
 * Threads: any. Progress: blocking (the mutex). Order: after the return no call of them begins; one may still
 * be running.
 */
EVC_API size_t evc_node_remove_handlers(struct evc_node *node, uint64_t key, uint8_t modes);

/** Returns the owner that the node was made with. Threads: any. Progress: wait-free. */
EVC_API void *evc_node_owner(const struct evc_node *node);

/**
 * Returns how many nodes are above a node, as of one moment during the call, whatever other threads move
 * meanwhile. 0 for a node that has ended, which a walk's handler may still name.
 *
 * Threads: any, but not between evc_tree_lock and evc_tree_unlock. Progress: lock-free, without allocation
 * once the thread has walked; starts again only if a node on the way was moved meanwhile. May call `release`
 * of removed handlers.
 */
EVC_API size_t evc_node_depth(const struct evc_node *node);

/**
 * Removes a handler.
 *
 * Threads: any, also inside the handler. Progress: blocking (the mutex). Order: after the return no call of
 * it begins (D6); one may still be running. Errors: EVC_NOT_FOUND if it was removed before, or its node has
 * ended; EVC_INVALID_ARGUMENT.
 */
EVC_API enum evc_status evc_handler_remove(struct evc_handler *handler);

/**
 * Tells whether a handler may still be called. After this returned false no call of it begins (D6).
 *
 * Threads: any that may remove it. Progress: wait-free.
 */
EVC_API bool evc_handler_is_active(const struct evc_handler *handler);

/**
 * Removes a handler and returns when no call of it is running (D6).
 *
 * Threads: any, but not inside the handler itself. Two handlers that wait for each other wait for ever.
 * Progress: blocking; the walk that leaves the handler wakes it. Errors: EVC_NOT_PERMITTED inside the handler
 * itself: it was not removed; EVC_NOT_FOUND if it was removed before: this call has waited nevertheless;
 * EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_handler_remove_and_wait(struct evc_handler *handler);

/**
 * Gives up the pointer that evc_node_add_handler returned; the handler is still called. Threads: any, once.
 * Progress: wait-free. Ownership: ends here.
 */
EVC_API void evc_handler_drop(struct evc_handler *handler);

/**
 * Returns the object that the handler was added with.
 *
 * Threads: those that hold the handler: its walk's, before the next step, or one that has not dropped it and
 * knows that it was not removed. Progress: wait-free. Ownership: the handler's.
 */
EVC_API void *evc_handler_object(const struct evc_handler *handler);

/**
 * Returns the node that the handler was added to. Threads: as evc_handler_object. The node of a walk's
 * handler may have ended (evc_node_has_ended); it stays valid until the walk's next step. Progress:
 * wait-free.
 */
EVC_API struct evc_node *evc_handler_node(const struct evc_handler *handler);

/** Returns the modes that the handler was added with. Threads: as evc_handler_object. Progress: wait-free. */
EVC_API uint8_t evc_handler_modes(const struct evc_handler *handler);

/** A walk that is under way. The caller reads these fields; the rest is private. */
struct evc_walk {
	/** The handlers to call next, in order; valid until evc_walk_next or evc_walk_end. */
	struct evc_handler *const *handlers;
	/** Their objects, as evc_handler_object returns them. */
	void *const *objects;
	/** How many; at least one. */
	uint32_t count;
	/** Their phase: EVC_WALK_CAPTURE, EVC_WALK_RAISE or EVC_WALK_PROPAGATE. */
	uint32_t phase;
};

/**
 * Begins a walk and finds its first handlers.
 *
 * @param key of the event; not 0
 * @param scope evc_walk_scope bits, at least one phase
 * @param out receives the walk
 *
 * Threads: any; the walk belongs to this thread. A walk that begins inside a handler must end before the
 * outer walk goes on. `node` must not end before this call returns. Progress: lock-free once warm, without
 * allocation: it climbs from the node to the root, and repeats that only if a node on the way was moved or
 * detached meanwhile. May call `release` of removed handlers. Ownership: the caller ends `*out` with evc_walk_end.
 * Errors: EVC_EMPTY if no handler matches; EVC_OUT_OF_MEMORY; EVC_INVALID_ARGUMENT. After an error there is no walk.
 */
EVC_API EVC_MUST_USE enum evc_status evc_walk_begin(struct evc_node *node, uint64_t key,
						    uint32_t scope, struct evc_walk **out);

/**
 * Announces that the caller is about to call a handler, and tells whether it may. Call it right before each
 * call, with growing indices, but not after the call that ended the event.
 *
 * @param index of the handler in `walk->handlers`
 * @return false if the handler was removed meanwhile, or this thread has detached its node: do not call it
 *
 * Threads: the walk's. Progress: wait-free, but for a short lock if a thread waits for the handler that is left
 * (evc_handler_remove_and_wait); lock-free after this thread has detached something, and it may then call
 * `release` of removed handlers.
 */
EVC_API bool evc_walk_will_call(struct evc_walk *walk, uint32_t index);

/**
 * Finds the next handlers; the former ones are finished.
 *
 * Threads: the walk's, and only its innermost walk; another one ends the process. Progress: as evc_walk_begin. May
 * call `release` of removed handlers. Errors: EVC_EMPTY if there are no more, `count` is then 0; EVC_OUT_OF_MEMORY
 * likewise, but a further call tries again; EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_walk_next(struct evc_walk *walk);

/**
 * Returns the node where a walk's way up ends and its ways down begin: the root as it was when the walk
 * began, or with EVC_WALK_FROM_HERE the node itself. It may have ended (evc_node_has_ended); it stays valid
 * until the walk ends.
 *
 * Threads: the walk's. Progress: wait-free. Ownership: the walk's.
 */
EVC_API struct evc_node *evc_walk_top(const struct evc_walk *walk);

/**
 * Ends a walk, whether or not all of its handlers were found. May call `release` of removed handlers.
 *
 * Threads: the walk's, and only its innermost walk; another one ends the process. Progress: lock-free, but for a short
 * lock as in evc_walk_will_call. Ownership: ends here.
 */
EVC_API void evc_walk_end(struct evc_walk *walk);

/**
 * Locks all trees of the process, to read them with the functions below. Until evc_tree_unlock call no other
 * function of this file and no user code.
 *
 * Threads: any; both calls on one thread. Progress: blocking (the mutex); walks go on.
 */
EVC_API void evc_tree_lock(void);
/**
 * Unlocks the trees. May call `release` of removed handlers. Threads: the one that has the lock. Progress:
 * wait-free except for those calls.
 */
EVC_API void evc_tree_unlock(void);
/** Returns the parent, or NULL. Threads: between evc_tree_lock and evc_tree_unlock. Progress: wait-free. */
EVC_API struct evc_node *evc_node_parent(const struct evc_node *node);
/** Returns the first child, or NULL. Threads: as evc_node_parent. Progress: wait-free. */
EVC_API struct evc_node *evc_node_first_child(const struct evc_node *node);
/** Returns the next child of the same parent, or NULL. Threads: as evc_node_parent. Progress: wait-free. */
EVC_API struct evc_node *evc_node_next_sibling(const struct evc_node *node);
/**
 * Tells whether evc_node_end was called, for a node of a walk. Threads: as evc_node_parent. Progress:
 * wait-free.
 */
EVC_API bool evc_node_has_ended(const struct evc_node *node);
/** Returns the number of children. Threads: as evc_node_parent. Progress: O(children). */
EVC_API size_t evc_node_child_count(const struct evc_node *node);
/** Returns the first handler of a node, or NULL. Threads: as evc_node_parent. Progress: wait-free. */
EVC_API struct evc_handler *evc_node_first_handler(const struct evc_node *node);
/** Returns the next handler of the same node, or NULL. Threads: as evc_node_parent. Progress: wait-free. */
EVC_API struct evc_handler *evc_handler_next(const struct evc_handler *handler);
/** Returns the key that the handler was added with. Threads: as evc_handler_object. Progress: wait-free. */
EVC_API uint64_t evc_handler_key(const struct evc_handler *handler);

EVC_END_DECLS
#endif
