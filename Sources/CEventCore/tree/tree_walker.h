/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A walker: the walks of one thread, the innermost on top, and what other threads must know of them.
 *
 * Threads that change a tree look at the walkers that are present. A walker's first walk makes it present (J).
 * It becomes absent again when it is in no walk and EVC_WALKER_PATIENCE changes have been made since it last
 * looked at a tree (A). A change therefore costs nothing for threads that no longer walk, and a thread that
 * walks now and then does not join and leave each time.
 *
 * Synchronization (letters: tree_reclaim.h):
 *   field                     the thread                          others, under the mutex
 *   word                      W2 exchange (acquire), fence;       U3 load (acquire), U6 fetch-or (acquire),
 *                             W5, W8 exchange (release)           A compare-and-swap (release)
 *   tree.joined               J push (release), fence             load (relaxed), exchange (acquire)
 *   walk->root                W4 store (release)                  load (acquire)
 *   walk->position            W4 store (release)                  load (acquire)
 *   walk->window              store (release), before `published` load (acquire), after `published`
 *   walk->published           W4 store (release)                  load (acquire), after `current`
 *   walk->current             store (release), at each call       load (acquire)
 *   walk->calling             V1 store (release), at each call    V6 load (acquire)
 *   walk->attention           V3 load, fetch-and (relaxed)        V6 fetch-or (relaxed)
 *   the window's handlers     store (relaxed), before `published` load (relaxed)
 *   its objects, walk->seen   read, write                         -
 *   next                      before J; then not until A          read, write; before A of this walker
 *
 * A chunk is the part of the window from `current` to `published`. When a walk begins, `published` is reset
 * before `current` is, and a reader loads `current` first, so that no reader sees the old end with the new
 * start.
 *
 * Waiting until a handler does not run, and the letters V: tree_wait.h.
 *
 * Windows only grow, to four times their size. Replaced ones stay until the thread ends, since other threads
 * read them: a third of the memory of the last one.
 *
 * Progress: everything that the thread does is wait-free, except for allocating, and for J, which is
 * lock-free.
 *
 * Ownership: a walker, its walks and windows are freed when its thread ends.
 */
#ifndef EVC_TREE_WALKER_H
#define EVC_TREE_WALKER_H

#include "tree/tree_private.h"

/* The explorer has fewer. */
#ifndef EVC_WINDOW_FIRST
#define EVC_WINDOW_FIRST 64u
#endif

/* Bits of `attention`: why evc_walk_will_call must take its slow path. */
/* This thread has detached, moved or ended a node since the chunk was collected; or calls need a fence. */
#define EVC_WALK_CAREFUL 1u
/* A thread waits until the handler that is being called does not run. */
#define EVC_WALK_AWAITED 2u

/* Bits of a walker's word, and the unit of its epoch above them. */
#define EVC_WALKER_COLLECTS 1u
/* A walk is under way. */
#define EVC_WALKER_WALKS 2u
/* A thread wants the deferred items to be reclaimed when the chunk is released. */
#define EVC_WALKER_WANTED 4u
/* It is on no list. */
#define EVC_WALKER_ABSENT 8u
#define EVC_WALKER_EPOCH 16u

/* After this many changes since its last look at a tree a walker that is in no walk becomes absent. */
#define EVC_WALKER_PATIENCE 16u

struct evc_window {
	struct evc_window *outgrown;
	uint32_t capacity;
	/* All accessed atomically. They are followed by as many objects, which belong to the thread alone. */
	struct evc_handler *handlers[];
};

/* The objects of the window's handlers, side by side, so that a call need not read the handler. */
static inline void **evc_window_objects(struct evc_window *window)
{
	return (void **)(void *)&window->handlers[window->capacity];
}

struct evc_tree_walk {
	/* What the caller sees. */
	_Alignas(EVC_CACHE_LINE) struct evc_walk head;

	/* Others read these. */
	_Atomic uint32_t current;
	_Atomic uint32_t published;
	_Atomic(struct evc_handler *) calling;
	/* The thread's alone; here because Swift does by offset what evc_walk_will_call does. */
	/* The index in the window where the chunk begins. */
	uint32_t chunk;
	/* EVC_WALK_* bits. The thread's, but others set EVC_WALK_AWAITED, under the mutex. */
	_Atomic uint8_t attention;
	/* Swift's; the core neither reads nor writes it. */
	uint8_t scope;
	/* Where removals are announced; what it said before the chunk was collected (tree_wait.h). */
	const _Atomic uint64_t *last_removal;
	uint64_t seen;

	/* Others read these at each change: not on the line that the thread writes at each call. */
	_Atomic(struct evc_window *) window;
	/* Where the propagation begins; NULL if no walk is under way. */
	_Atomic(struct evc_node *) root;
	/* The last node that was visited: the link, or the root's first_link for the root. */
	_Atomic(struct evc_link *) position;
	_Atomic(struct evc_tree_walk *) inner;

	/* The thread's alone. */
	struct evc_walker *walker;
	struct evc_tree_walk *outer;
	uint64_t key;
	uint64_t bit;
	/* When the walk began. */
	uint64_t start;
	/* The clock when the position was found. */
	uint64_t position_clock;
	/*
	 * The cache: what was collected at `cached_clock` for this node, key and scope, in the window. The
	 * next walk finds the same as long as nothing has changed.
	 */
	uint64_t cached_clock;
	struct evc_node *cached_node;
	struct evc_node *cached_root;
	/*
	 * The root of its tree. Only compared, so that it may have ended: then its children have lost their
	 * links, and no older link leads to a node that has its address now.
	 */
	struct evc_node *cached_top;
	/* Where collecting goes on, if not everything is cached. */
	struct evc_link *cached_position;
	uint32_t cached_end;
	uint32_t cached_scope;
	bool cached_is_all;
	/* No handler was found at `cached_clock`; the fields about the window are then meaningless. */
	bool cached_is_none;
	/* A node that was under the root at `verified_clock`. */
	struct evc_node *verified;
	uint64_t verified_clock;
	/* The end of the part of the window whose handlers, on the path, have lost their places. */
	uint32_t lost;
	/* While it is the holder: no walk inside it searches before it has come to this index. */
	uint32_t pause;
	/* The ends of the window's parts: capture, raise; then propagate. */
	uint32_t capture_end;
	uint32_t raise_end;
	/* Roughly the number of handlers of the next chunk. */
	uint32_t limit;
	bool is_over;
};

/* The window, for the thread: only it writes the pointer, hence relaxed. */
static inline struct evc_window *evc_walk_window(const struct evc_tree_walk *walk)
{
	return atomic_load_explicit(&walk->window, memory_order_relaxed);
}

struct evc_walker {
	/* The clock when it last looked at a tree, and EVC_WALKER_* bits. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t word;
	/* The thread's alone: it may hold an item that another thread wants freed. */
	bool holds;
	/* The thread's alone: the innermost walk that holds an item which this thread wants freed. */
	struct evc_tree_walk *holder;
	/* The index in its window of the first such handler; UINT32_MAX: it holds its position or its root. */
	uint32_t held_at;
	/* The thread's alone: how often it has detached, moved or ended a node. */
	uint64_t changes;
	/* The innermost walk. */
	struct evc_tree_walk *innermost;
	/* The outermost walk, whether or not it is under way. */
	_Atomic(struct evc_tree_walk *) outermost;
	/* The next walker on its list, unless it is absent. */
	struct evc_walker *next;
};

static_assert(offsetof(struct evc_tree_walk, current) == 24, "Swift counts on it");
static_assert(offsetof(struct evc_tree_walk, calling) == 32, "Swift counts on it");
static_assert(offsetof(struct evc_tree_walk, chunk) == 40, "Swift counts on it");
static_assert(offsetof(struct evc_tree_walk, attention) == 44, "Swift counts on it");
static_assert(offsetof(struct evc_tree_walk, scope) == 45, "Swift counts on it");
static_assert(offsetof(struct evc_tree_walk, last_removal) == 48, "Swift counts on it");
static_assert(offsetof(struct evc_tree_walk, seen) == 56, "Swift counts on it");
static_assert(offsetof(struct evc_tree_walk, window) == EVC_CACHE_LINE, "a line of the thread's own");

extern _Thread_local EVC_FOUND_AT_START struct evc_walker *evc_walker_current;

/* False if V1 needs a fence after it (tree_wait.h). Set before the first walk. */
extern bool evc_walker_has_barrier;

/* Whether it does: evc_tree_knows_thread. */
extern _Thread_local EVC_FOUND_AT_START bool evc_tree_thread_is_known;

bool evc_tree_thread_introduce(void);
/* True if this thread's walker and the free slots that it keeps are given back when it ends. */
static inline bool evc_tree_knows_thread(void)
{
	return evc_likely(evc_tree_thread_is_known) || evc_tree_thread_introduce();
}
/* Gives both back, as the thread's end does. False: it is in a walk. */
bool evc_tree_thread_leaves(void);

/* Makes a walker for this thread. NULL = out of memory. */
struct evc_walker *evc_walker_attach(void);
/* For evc_shutdown, when no walker is left. */
void evc_walkers_end(void);

static inline struct evc_walker *evc_walker(void)
{
	struct evc_walker *walker = evc_walker_current;

	return evc_likely(walker != NULL) ? walker : evc_walker_attach();
}

/* Makes a walk inside `outer` (NULL: the outermost). NULL = out of memory. The thread. */
struct evc_tree_walk *evc_walker_add_walk(struct evc_walker *walker, struct evc_tree_walk *outer);

/* Makes room for more than `count` handlers and keeps those. False = out of memory. The thread. */
bool evc_tree_walk_grow(struct evc_tree_walk *walk, uint32_t count);

/* All present walkers, then also in evc_tree.walkers. Under the mutex, after a full barrier. */
struct evc_walker *evc_walkers(void);

/* After W2, if it has found more than the last epoch: J, or notes that an item is wanted. The thread. */
void evc_walker_attend(struct evc_walker *walker, uint64_t before);

/* W1, W2. */
static inline uint64_t evc_walker_collect(struct evc_walker *walker)
{
	/* Relaxed, and before the barrier: pairs with evc_tree_count_change: what was unlinked before. */
	uint64_t epoch = atomic_load_explicit(&evc_tree.clock, memory_order_relaxed);
	/* Acquire: pairs with A. W5 and W8 before this have released what the walk did. */
	uint64_t before = atomic_exchange_explicit(&walker->word,
						   epoch * EVC_WALKER_EPOCH | EVC_WALKER_COLLECTS,
						   memory_order_acquire);

	evc_fence_after_exchange();
	if (evc_unlikely((before & (EVC_WALKER_ABSENT | EVC_WALKER_WANTED)) != 0))
		evc_walker_attend(walker, before);
	return epoch;
}

/* Notes the last removal. While collecting, before the chunk is looked for, also in the cache. The thread. */
static inline void evc_walk_see_removals(struct evc_tree_walk *walk)
{
	/* Acquire, pairs with E: what was removed then is not in the chunk (tree_wait.h). */
	walk->seen = atomic_load_explicit(&evc_tree.last_removal, memory_order_acquire);
}

/* W5, W8: ends the section. True if a thread wants the deferred items to be reclaimed (W6). */
static inline bool evc_walker_leave(struct evc_walker *walker)
{
	/* Relaxed: reads the epoch, which only this thread writes. */
	uint64_t epoch = atomic_load_explicit(&walker->word, memory_order_relaxed) &
			 ~(uint64_t)(EVC_WALKER_EPOCH - 1);
	uint64_t before;

	/* Release: pairs with threads that reclaim: all reads of the section, before they free. */
	before = atomic_exchange_explicit(&walker->word,
					  walker->innermost != NULL ? epoch | EVC_WALKER_WALKS : epoch,
					  memory_order_release);
	return (before & EVC_WALKER_WANTED) != 0;
}

/* Notes that this thread has detached, moved or ended a node. */
static inline void evc_walker_note_change(void)
{
	struct evc_walker *walker = evc_walker_current;

	if (walker == NULL)
		return;
	walker->changes++;
	for (struct evc_tree_walk *walk = walker->innermost; walk != NULL; walk = walk->outer)
		/* Relaxed: this thread reads it. */
		atomic_fetch_or_explicit(&walk->attention, EVC_WALK_CAREFUL, memory_order_relaxed);
}

/* Forgets this thread's changes: a chunk is being collected, or the walk is over. The thread. */
static inline void evc_walk_forget_changes(struct evc_tree_walk *walk)
{
	/* Relaxed: only this thread writes that bit. */
	if (evc_unlikely(atomic_load_explicit(&walk->attention, memory_order_relaxed) &
			 EVC_WALK_CAREFUL) &&
	    evc_walker_has_barrier)
		atomic_fetch_and_explicit(&walk->attention, (uint8_t)~EVC_WALK_CAREFUL,
					  memory_order_relaxed);
}

#endif
