/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree/tree_walker.h"

#include "platform/allocator.h"
#include "tree/tree_memory.h"
#include "tree/tree_wait.h"

#include <string.h>

_Thread_local EVC_FOUND_AT_START struct evc_walker *evc_walker_current;
_Thread_local EVC_FOUND_AT_START bool evc_tree_thread_is_known;
bool evc_walker_has_barrier;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_available;

static size_t window_size(uint32_t capacity)
{
	return sizeof(struct evc_window) +
	       capacity * (sizeof(struct evc_handler *) + sizeof(void *));
}

/* A walk and its first window are one block of whole cache lines, which some allocators require. */
static size_t walk_size(void)
{
	const size_t size = sizeof(struct evc_tree_walk) + window_size(EVC_WINDOW_FIRST);

	return (size + EVC_CACHE_LINE - 1) / EVC_CACHE_LINE * EVC_CACHE_LINE;
}

static struct evc_window *first_window(struct evc_tree_walk *walk)
{
	return (struct evc_window *)(void *)(walk + 1);
}

/* True if it is on a list. The walker's thread. */
static bool is_present(const struct evc_walker *walker)
{
	/* Acquire, pairs with A: the thread that made it absent is done with it. */
	return !(atomic_load_explicit(&walker->word, memory_order_acquire) & EVC_WALKER_ABSENT);
}

static void destroy(struct evc_walker *walker)
{
	struct evc_tree_walk *walk, *inner;

	evc_walker_current = NULL;
	if (is_present(walker)) {
		evc_tree_lock();
		/* It may have become absent meanwhile. */
		if (is_present(walker)) {
			struct evc_walker **place = &evc_tree.walkers;

			(void)evc_walkers();
			while (*place != walker)
				place = &(*place)->next;
			*place = walker->next;
		}
		/* A thread that ended inside a walk held something. */
		atomic_store_explicit(&evc_tree.is_requested, true, memory_order_relaxed);
		evc_tree_unlock();
		/* And threads that wait for the handler that it was calling look again and do not find it. */
		evc_tree_wake_waiters();
	}
	/* Relaxed: this thread made them. */
	walk = atomic_load_explicit(&walker->outermost, memory_order_relaxed);
	for (; walk != NULL; walk = inner) {
		struct evc_window *window = evc_walk_window(walk), *outgrown;

		inner = atomic_load_explicit(&walk->inner, memory_order_relaxed);
		for (; window != first_window(walk); window = outgrown) {
			outgrown = window->outgrown;
			evc_deallocate(window, window_size(window->capacity), _Alignof(struct evc_window));
		}
		evc_deallocate(walk, walk_size(), _Alignof(struct evc_tree_walk));
	}
	evc_deallocate(walker, sizeof(*walker), EVC_CACHE_LINE);
}

/* The thread ends. A later destructor of it may walk or end nodes; then this is called again. */
static void at_thread_end(void *unused)
{
	(void)unused;
	evc_tree_thread_is_known = false;
	if (evc_walker_current != NULL)
		destroy(evc_walker_current);
	evc_tree_give_back();
}

/*
 * A child of fork has only this thread: no handler is being called by another one. The other walkers' memory
 * stays, as their stacks do. No lock: no thread was inside the core (eventcore.h).
 */
static void after_fork_child(void)
{
	struct evc_walker *walker = evc_walker_current;

	/* Relaxed: alone. */
	atomic_store_explicit(&evc_tree.joined, NULL, memory_order_relaxed);
	evc_tree.walkers = NULL;
	if (walker != NULL && is_present(walker)) {
		walker->next = NULL;
		evc_tree.walkers = walker;
	}
	evc_tree_forget_waiters();
	/* Reclaims what they held. */
	atomic_store_explicit(&evc_tree.is_requested, true, memory_order_relaxed);
}

bool evc_tree_thread_leaves(void)
{
	struct evc_walker *walker = evc_walker_current;
	/* Relaxed, both: this thread's. */
	struct evc_tree_walk *walk =
		walker != NULL ? atomic_load_explicit(&walker->outermost, memory_order_relaxed) : NULL;

	if (walk != NULL && atomic_load_explicit(&walk->root, memory_order_relaxed) != NULL)
		return false;
	at_thread_end(NULL);
	/* Unless a `release` has walked. */
	if (evc_walker_current == NULL && evc_tree_thread_is_known) {
		evc_tree_thread_is_known = false;
		(void)pthread_setspecific(key, NULL);
	}
	return true;
}

void evc_walkers_end(void)
{
	if (key_available)
		pthread_key_delete(key);
	key_available = false;
	key_once = (pthread_once_t)PTHREAD_ONCE_INIT;
}

static void prepare_fork(void)
{
	pthread_atfork(NULL, NULL, after_fork_child);
}

static void make_key(void)
{
	static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

	pthread_once(&fork_once, prepare_fork);
	key_available = pthread_key_create(&key, at_thread_end) == 0;
	evc_walker_has_barrier = evc_barrier_everywhere();
}

bool evc_tree_thread_introduce(void)
{
	pthread_once(&key_once, make_key);
	evc_tree_thread_is_known = key_available && pthread_setspecific(key, &key) == 0;
	return evc_tree_thread_is_known;
}

struct evc_walker *evc_walker_attach(void)
{
	struct evc_walker *walker;

	/* Without it the walker would leak at the thread's end: refuse. */
	if (!evc_tree_knows_thread())
		return NULL;
	walker = evc_allocate(sizeof(*walker), EVC_CACHE_LINE);
	if (walker == NULL)
		return NULL;
	*walker = (struct evc_walker){ .word = EVC_WALKER_ABSENT };
	evc_walker_current = walker;
	return walker;
}

void evc_walker_attend(struct evc_walker *walker, uint64_t before)
{
	if (before & EVC_WALKER_WANTED)
		walker->holds = true;
	if (before & EVC_WALKER_ABSENT) {
		/* Relaxed: only the address is used. */
		struct evc_walker *first =
			atomic_load_explicit(&evc_tree.joined, memory_order_relaxed);

		do {
			walker->next = first;
			/* J: release, pairs with evc_walkers; and with the fence a full barrier, as W2. */
		} while (!atomic_compare_exchange_weak_explicit(&evc_tree.joined, &first, walker,
								memory_order_release,
								memory_order_relaxed));
		evc_fence_after_exchange();
	}
}

struct evc_walker *evc_walkers(void)
{
	struct evc_walker *first, *last;

	/* Saves the exchange. Relaxed: after the caller's barrier, it sees J, or J's walk sees U1. */
	if (atomic_load_explicit(&evc_tree.joined, memory_order_relaxed) != NULL) {
		/* Acquire: pairs with J. */
		first = atomic_exchange_explicit(&evc_tree.joined, NULL, memory_order_acquire);
		for (last = first; last->next != NULL; last = last->next)
			;
		last->next = evc_tree.walkers;
		evc_tree.walkers = first;
	}
	return evc_tree.walkers;
}

struct evc_tree_walk *evc_walker_add_walk(struct evc_walker *walker, struct evc_tree_walk *outer)
{
	struct evc_tree_walk *walk = evc_allocate(walk_size(), _Alignof(struct evc_tree_walk));
	struct evc_window *window;

	if (walk == NULL)
		return NULL;
	window = first_window(walk);
	window->outgrown = NULL;
	window->capacity = EVC_WINDOW_FIRST;
	*walk = (struct evc_tree_walk){
		.head = { window->handlers, evc_window_objects(window), 0, 0 },
		.attention = evc_walker_has_barrier ? 0 : EVC_WALK_CAREFUL,
		.last_removal = &evc_tree.last_removal,
		.window = window,
		.walker = walker,
		.outer = outer,
	};
	/* Release, pairs with walker_holds and first_walk: the walk's fields before its pointer. */
	atomic_store_explicit(outer == NULL ? &walker->outermost : &outer->inner, walk,
			      memory_order_release);
	return walk;
}

bool evc_tree_walk_grow(struct evc_tree_walk *walk, uint32_t count)
{
	struct evc_window *window = evc_walk_window(walk), *larger;

	if (count > UINT32_MAX / 4)
		return false;
	larger = evc_allocate(window_size(window->capacity * 4), _Alignof(struct evc_window));
	if (larger == NULL)
		return false;
	larger->outgrown = window;
	larger->capacity = window->capacity * 4;
	memcpy(larger->handlers, window->handlers, count * sizeof(larger->handlers[0]));
	memcpy(evc_window_objects(larger), evc_window_objects(window), count * sizeof(void *));
	/* Release, pairs with threads that reclaim: the handlers before the pointer. */
	atomic_store_explicit(&walk->window, larger, memory_order_release);
	return true;
}
#endif
