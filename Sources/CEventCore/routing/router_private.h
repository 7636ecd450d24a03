/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A router: key → route → current snapshot.
 *
 * Synchronization:
 *   field            readers (any thread)          writers (under `mutex`)       order
 *   table            load                          replace by a larger one       acquire, release
 *   table->slots     load                          NULL → route, once            acquire, release
 *   route->current   load, in a section if new     exchange                      acquire, release
 * Routes and outgrown tables stay until the router ends, so that only the snapshots need RCU. A reader whose
 * cache misses loads `current` in a section and takes a reference there. A reader whose cache hits compares
 * `current` with the snapshot it holds: the address of an object that it holds a reference of cannot have
 * been reused, so that equality means "still current".
 *
 * The state of a router has a version: a number that no state of this or another router had before, or CHANGING while a
 * route is being changed; never 0, which is the version of a batch that is not open. A dispatcher that remembers what
 * it found in a state needs no route, nor a reference, to know that it is still so (consumed.h).
 *
 *   writer, under `mutex`                         dispatcher
 *   V0 version = CHANGING      relaxed            V2 load version; CHANGING: remember nothing    acquire
 *   V1 exchange `current`      release            V3 the route is current, and remember both   relaxed
 *      version = a new number  release            V4 the version is the remembered one    relaxed
 * - What is remembered is what the version stands for, or newer: if V2 reads the number that follows a V1, V3 sees
 *   what that V1 wrote. It may be newer only while a writer is between V0 and the new number, and then V4 fails.
 * - A dispatch misses no change that happened before it: V4 reads by coherence the CHANGING of that V0 or what came later,
 *   and no number comes twice. So it is, too, for who has seen a change through another dispatch (V1 releases).
 *
 * Lock order: `mutex`, then a sink's own locks (retain and release take none).
 */
#ifndef EVC_ROUTER_PRIVATE_H
#define EVC_ROUTER_PRIVATE_H

#include "eventcore/router.h"
#include "routing/snapshot.h"
#include "memory/thread_record.h"

#include <pthread.h>

/* V0. No number gets that far. */
#define EVC_VERSION_CHANGING UINT64_MAX

struct evc_route {
	evc_current_snapshot current;
	uint64_t key;
};

struct evc_route_table {
	struct evc_route_table *outgrown;
	/* A power of two; at most half of the slots are used. */
	size_t capacity;
	_Atomic(struct evc_route *) slots[];
};

struct evc_router {
	/* Unique in the process: distinguishes a cached route of a freed router from one of a new router. */
	uint64_t number;
	/* Constant from the first route on. `now` is NULL for evc_clock_now. */
	struct evc_clock clock;
	/* Of the state of the routes. Written under `mutex`, read by every dispatch of a consumer; seldom changes. */
	_Atomic uint64_t version;
	/* Guarded by `mutex`; the snapshots have copies. */
	struct evc_observer observer;
	_Atomic(struct evc_route_table *) table;
	pthread_mutex_t mutex;
	/* Guarded by `mutex`. */
	size_t route_count;
};

/* The route of a key, which is made if it is new. Outside of sections. NULL = out of memory. */
struct evc_route *evc_router_route(struct evc_router *router, uint64_t key);

/*
 * route_cache.c: the current snapshot of a key whose route the cache does not hit, or NULL if it has none. With
 * `*owned` the caller must release it after use; otherwise `entry` of the record's cache holds it.
 */
enum evc_status evc_router_look_up(struct evc_router *router, uint64_t key,
				   struct evc_thread_record *record,
				   struct evc_route_cache_entry *entry,
				   struct evc_snapshot **snapshot, bool *owned);

/* The current snapshot of a key, or NULL; valid in the caller's section. */
const struct evc_snapshot *evc_router_peek(struct evc_router *router, uint64_t key);

/* Where a key belongs among so many places, a power of two from 2 on. */
static inline size_t evc_route_hash(uint64_t key, size_t places)
{
	/*
	 * Fibonacci hashing (Knuth, TAOCP 3, 6.4): metadata pointers differ in their middle bits. In the highest bits of
	 * the product all bits of the key take part.
	 */
	return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> (__builtin_clzll(places) + 1));
}

static inline struct evc_route_cache_entry *evc_route_cache_entry_for(struct evc_router *router,
								     uint64_t key,
								     struct evc_thread_record *record)
{
	return &record->routes[evc_route_hash(key ^ router->number, EVC_ROUTE_CACHE_SIZE)];
}

/* Where dispatches to a cached route are counted. */
static inline struct evc_route_counts *evc_route_counts_of(struct evc_thread_record *record,
							   const struct evc_route_cache_entry *entry)
{
	return &record->counts[entry - record->routes];
}

static inline bool evc_route_cache_hits(const struct evc_route_cache_entry *entry,
					struct evc_router *router, uint64_t key)
{
	/* Relaxed: if equal, that snapshot is ours and was acquired; through NULL nothing is read. */
	return entry->router_number == router->number && entry->key == key &&
	       atomic_load_explicit(&entry->route->current, memory_order_relaxed) ==
		       entry->snapshot;
}

#endif
