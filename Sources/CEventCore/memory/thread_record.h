/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What the core keeps for each thread that dispatches: its pools and its route cache.
 *
 * A record is made at the thread's first dispatch. When the thread ends, a pthread key's destructor empties the
 * route cache and leaves the record, with its pools, to the next thread that needs one; the mutex of the records
 * orders the two. A record that nobody needed is freed by the trim that has given the last of its slabs back:
 * until then each slab names its pool.
 */
#ifndef EVC_THREAD_RECORD_H
#define EVC_THREAD_RECORD_H

#include "memory/slab.h"

struct evc_route;
struct evc_snapshot;

#define EVC_ROUTE_CACHE_SIZE 16u
/* An envelope is a slot of the first class. */
#define EVC_ENVELOPE_SHIFT 6u

struct evc_route_cache_entry {
	/* 0 = empty: routers are counted from 1. */
	uint64_t router_number;
	uint64_t key;
	struct evc_route *route;
	/* With a reference, or NULL for a key that had no subscription. */
	struct evc_snapshot *snapshot;
};

/* Slots set aside, by their first words: spares.h. */
struct evc_spares {
	void *first;
	uint32_t count;
	uint32_t reserved;
};

struct evc_thread_record {
	/*
	 * Where its next envelopes come from: for each lane, so that what waits on a less urgent one lies together
	 * and keeps no segment of what has long been handled.
	 */
	struct evc_cursor envelopes[EVC_LANE_COUNT];
	struct evc_cursor boxes[EVC_CLASS_COUNT];
	struct evc_route_cache_entry routes[EVC_ROUTE_CACHE_SIZE];
	/* Dispatches between begin and commit: their snapshots must not leave the cache. */
	uint32_t pins;
	struct evc_spares tokens, segments;
	struct evc_pool pools[EVC_CLASS_COUNT];
	/* Of the list of all. The rest is guarded by the records' mutex. */
	struct evc_thread_record *next;
	struct evc_thread_record *next_orphan, **orphan_link;
};

/* Mapped by itself, so that it goes back to the system when its thread is gone. */
#define EVC_THREAD_RECORD_SIZE ((size_t)4096)
#ifdef EVC_ADDRESS_SANITIZER
/* In the heap, where the leak checker finds what it refers to. */
#define EVC_THREAD_RECORD_ALIGNMENT ((size_t)EVC_CACHE_LINE)
#else
#define EVC_THREAD_RECORD_ALIGNMENT EVC_THREAD_RECORD_SIZE
#endif
static_assert(sizeof(struct evc_thread_record) <= EVC_THREAD_RECORD_SIZE, "a record is a page");

extern _Thread_local EVC_FOUND_AT_START struct evc_thread_record *evc_thread_record_current;

/* Makes or adopts a record for this thread. NULL = out of memory. */
struct evc_thread_record *evc_thread_record_attach(void);

static inline struct evc_thread_record *evc_thread_record(void)
{
	struct evc_thread_record *record = evc_thread_record_current;

	return evc_likely(record != NULL) ? record : evc_thread_record_attach();
}

/* What a trim has found out. */
struct evc_trim {
	/* A pool was in use, and left alone. */
	bool is_busy;
	/* A pool has more than its floor. */
	bool has_surplus;
};

/* Trims the pools of all records, and frees those that nobody needs. One thread at a time. */
void evc_thread_records_trim(struct evc_trim *trim);

/* Drops what a thread that ends holds in its route cache (router.c). */
void evc_route_cache_clear(struct evc_thread_record *record);

/* The slot of an envelope for this lane. NULL = out of memory. The record's thread. */
static inline struct evc_envelope *evc_envelope_take(struct evc_thread_record *record, unsigned lane)
{
	struct evc_envelope *envelope = evc_pool_take(&record->pools[0], &record->envelopes[lane]);

	if (evc_likely(envelope != NULL))
		evc_slot_prefetch(envelope);
	return envelope;
}

/* The same without a call, if evc_envelope_is_in_hand. */
static inline struct evc_envelope *evc_envelope_take_in_hand(struct evc_thread_record *record,
							     unsigned lane)
{
	struct evc_envelope *envelope =
		evc_cursor_take(&record->envelopes[lane], EVC_ENVELOPE_SHIFT);

	evc_slot_prefetch(envelope);
	return envelope;
}

static inline bool evc_envelope_is_in_hand(struct evc_thread_record *record, unsigned lane)
{
	return record->envelopes[lane].free != 0;
}

/*
 * Gives a slot back that the thread took, most likely a moment ago: then it is the next that is taken. The record's
 * thread.
 */
static inline void evc_envelope_untake(struct evc_thread_record *record, struct evc_envelope *envelope)
{
#ifndef EVC_ADDRESS_SANITIZER
	struct evc_cursor *cursor = &record->envelopes[envelope->lane];
	uintptr_t offset = (uintptr_t)envelope - (uintptr_t)cursor->memory;

	if (evc_likely(offset < (uintptr_t)1 << EVC_SEGMENT_SHIFT)) {
		cursor->free |= UINT64_C(1) << (offset / sizeof(*envelope));
		return;
	}
#else
	(void)record;
#endif
	evc_pool_give(envelope);
}

#endif
