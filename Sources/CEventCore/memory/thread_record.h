/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What the core keeps for each thread that dispatches: its pools, its streams and its route cache.
 *
 * A record is made at the thread's first dispatch. When the thread ends, a pthread key's destructor
 * empties the route cache and leaves the record, with its pools, to the next thread that needs one;
 * the mutex of the orphan list orders the two. Records are never freed, so that a slot's slab can name
 * its pool for ever.
 */
#ifndef EVC_THREAD_RECORD_H
#define EVC_THREAD_RECORD_H

#include "memory/pool_private.h"

struct evc_route;
struct evc_snapshot;

#define EVC_ROUTE_CACHE_SIZE 16u

struct evc_route_cache_entry {
	/* 0 = empty: routers are counted from 1. */
	uint64_t router_number;
	uint64_t key;
	struct evc_route *route;
	/* With a reference, or NULL for a key that had no subscription. */
	struct evc_snapshot *snapshot;
	/*
	 * This thread's stream to the sink of the snapshot's only subscription, or NULL: there are others,
	 * the sink lends none, or nothing was dispatched yet. The snapshot keeps the sink, and so the stream.
	 */
	struct evc_stream *stream;
	/* The snapshot's only subscription has a sink that lends no stream. */
	bool is_pooled;
};

#define EVC_STREAM_CACHE_SIZE 16u

struct evc_stream_cache_entry {
	/* 0 = empty: mailboxes are counted from 1. */
	uint64_t mailbox_number;
	struct evc_stream *stream;
};

/* The streams of a thread, by mailbox. The thread only; streams of mailboxes that ended go at a sweep. */
struct evc_stream_table {
	struct evc_stream_cache_entry cache[EVC_STREAM_CACHE_SIZE];
	/* Lists, a power of two of them; NULL before the first. */
	struct evc_stream **lists;
	size_t list_count;
	size_t stream_count;
	/* Sweep when there are so many. */
	size_t sweep_at;
};

struct evc_thread_record {
	struct evc_pool pools[EVC_CLASS_COUNT];
	struct evc_route_cache_entry routes[EVC_ROUTE_CACHE_SIZE];
	struct evc_stream_table streams;
	/* Dispatches between begin and commit: their snapshots must not leave the cache. */
	uint32_t pins;
	/* Set before the record enters the list of all, never changed. */
	struct evc_thread_record *next;
	/* Guarded by the orphan mutex, which also guards `streams` while the record has no thread. */
	struct evc_thread_record *next_orphan;
	bool is_orphan;
};

extern _Thread_local struct evc_thread_record *evc_thread_record_current;

/* Makes or adopts a record for this thread. NULL = out of memory. */
struct evc_thread_record *evc_thread_record_attach(void);

static inline struct evc_thread_record *evc_thread_record(void)
{
	struct evc_thread_record *record = evc_thread_record_current;

	return evc_likely(record != NULL) ? record : evc_thread_record_attach();
}

/* The first of all records, for the trim. They are linked by `next`. */
struct evc_thread_record *evc_thread_record_first(void);

/*
 * Frees the streams to a mailbox that has ended, if the record has no thread, which would do it itself
 * sooner or later.
 */
void evc_thread_record_forget(struct evc_thread_record *record, uint64_t mailbox_number);

/* Drops what a thread that ends holds in its route cache (router.c). */
void evc_route_cache_clear(struct evc_thread_record *record);

#endif
