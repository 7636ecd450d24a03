/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What the core keeps for each thread that dispatches: its slab pools and its route cache.
 *
 * A record is made at the thread's first dispatch. When the thread ends, its route cache is emptied, and the
 * record goes to the next thread that needs one; the records' mutex orders the two. A record that no thread
 * needed is freed by the trim that has released its last slab, since each slab refers to its pool.
 */
#ifndef EVC_THREAD_RECORD_H
#define EVC_THREAD_RECORD_H

#include "eventcore/sink.h"
#include "memory/slab.h"

struct evc_route;
struct evc_snapshot;

#define EVC_ROUTE_CACHE_SIZE 16u
/* An envelope is a slot of the first class. */
#define EVC_ENVELOPE_SHIFT 6u

struct evc_route_cache_entry {
	/* 0 = empty: routers are numbered from 1. */
	uint64_t router_number;
	uint64_t key;
	struct evc_route *route;
	/* Holds a reference; NULL for a key without subscriptions. */
	struct evc_snapshot *snapshot;
};

/*
 * Where the observer of a cached route has dispatches of an origin counted; `tally` is NULL if it is told of each. Apart
 * from the routes, which every dispatch looks at.
 */
struct evc_route_counts {
	struct evc_tally *tally;
	uint64_t origin;
};

/* Slots of one kind that are set aside, linked by their first words: spares.h. */
#define EVC_SPARE_KINDS 3u
struct evc_spares {
	void *first;
	uint32_t count;
	uint32_t reserved;
};

/*
 * What overflow policies did with events of this thread's posts, which their sinks have ended: a dispatch looks
 * what was added by each of its posts. Whoever posts puts back what it found, since its post may lie inside of
 * another one: in user code that the other runs.
 */
struct evc_overflow_counts {
	uint32_t refused, dropped, displaced;
};

struct evc_thread_record {
	/*
	 * Where the next envelopes and boxes come from: a cursor for each lane, so that events that wait long lie
	 * together and do not keep segments of others.
	 */
	struct evc_cursor envelopes[EVC_LANE_COUNT];
	struct evc_cursor boxes[EVC_LANE_COUNT][EVC_CLASS_COUNT];
	struct evc_route_cache_entry routes[EVC_ROUTE_CACHE_SIZE];
	struct evc_route_counts counts[EVC_ROUTE_CACHE_SIZE];
	/* The number of dispatches between begin and commit: their snapshots must not leave the cache. */
	uint32_t pins;
	/* One for each evc_spare_kind. */
	struct evc_spares spares[EVC_SPARE_KINDS];
	/* The slot of an envelope that this thread has superseded (evc_envelope_keep); NULL: none. */
	struct evc_envelope *superseded;
	/* Bytes of evc_reserve. Written by the thread, read by the trim; relaxed, it only decides how much stays. */
	_Atomic size_t reserve_bytes;
	struct evc_overflow_counts overflow;
	struct evc_pool pools[EVC_CLASS_COUNT];
	/* Of the lists of all records, and of those without a thread; guarded by the records' mutex. */
	struct evc_thread_record *next, *next_orphan;
	/* The trim's. */
	bool is_claimed;
};

/* Mapped separately, so that it returns to the system when its thread has ended. */
#define EVC_THREAD_RECORD_SIZE ((size_t)4096)
#ifdef EVC_ADDRESS_SANITIZER
/* In the heap, where the leak checker finds what it refers to. */
#define EVC_THREAD_RECORD_ALIGNMENT ((size_t)EVC_CACHE_LINE)
#else
#define EVC_THREAD_RECORD_ALIGNMENT EVC_THREAD_RECORD_SIZE
#endif
static_assert(sizeof(struct evc_thread_record) <= EVC_THREAD_RECORD_SIZE, "a record is a page");

extern _Thread_local EVC_FOUND_AT_START struct evc_thread_record *evc_thread_record_current;
/* On whose behalf the thread dispatches (evc_thread_set_origin). */
extern _Thread_local EVC_FOUND_AT_START uint64_t evc_thread_origin;

/* A post by the user, who may be inside of a post: what its dispatch counts is left alone. */
static inline enum evc_status evc_sink_post(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_overflow_counts counts = record != NULL ? record->overflow : (struct evc_overflow_counts){ 0 };
	enum evc_status status = sink->accept(sink, chain);

	record = evc_thread_record_current;
	if (record != NULL)
		record->overflow = counts;
	return status;
}

/* Makes or adopts a record for this thread. NULL = out of memory. */
struct evc_thread_record *evc_thread_record_attach(void);

/* Gives up this thread's record, as the thread's end does. False: it is in the middle of a dispatch. */
bool evc_thread_record_detach(void);
/* For evc_shutdown, when no record is left. */
void evc_thread_records_end(void);

static inline struct evc_thread_record *evc_thread_record(void)
{
	struct evc_thread_record *record = evc_thread_record_current;

	return evc_likely(record != NULL) ? record : evc_thread_record_attach();
}

/* The findings of a trim. */
struct evc_trim {
	/* A slab pool was busy and was left alone. */
	bool is_busy;
	/* A slab pool has more than its floor. */
	bool has_surplus;
};

/* Trims the slab pools of all records, and frees records that no thread needs. One thread at a time. */
void evc_thread_records_trim(struct evc_trim *trim);

/* Releases what an ending thread holds in its route cache (route_cache.c). */
void evc_route_cache_clear(struct evc_thread_record *record);

/* The slow path of evc_envelope_take: the next segment, or what evc_reserve has set aside (spares.c). */
struct evc_envelope *evc_envelope_refill(struct evc_thread_record *record, unsigned lane);

/* A slot for an envelope of this lane. NULL = out of memory. The record's thread. */
static inline struct evc_envelope *evc_envelope_take(struct evc_thread_record *record, unsigned lane)
{
	struct evc_cursor *cursor = &record->envelopes[lane];
	/* Never under AddressSanitizer. */
	struct evc_envelope *envelope = evc_likely(cursor->free != 0) ? evc_cursor_take(cursor, EVC_ENVELOPE_SHIFT)
								      : evc_envelope_refill(record, lane);

	if (evc_likely(envelope != NULL))
		evc_slot_prefetch(envelope);
	return envelope;
}

/* True if evc_envelope_take calls no function. */
static inline bool evc_envelope_is_in_hand(struct evc_thread_record *record, unsigned lane)
{
	return record->envelopes[lane].free != 0;
}

/* Gives back a slot, mostly one that this thread has just taken; it is taken next. The record's thread. */
static inline void evc_envelope_untake(struct evc_thread_record *record, struct evc_envelope *envelope)
{
	struct evc_cursor *cursor = &record->envelopes[envelope->lane];
	uintptr_t offset = (uintptr_t)envelope - (uintptr_t)cursor->memory;

	/* Never under AddressSanitizer. */
	if (evc_likely(offset < (uintptr_t)1 << EVC_SEGMENT_SHIFT)) {
		cursor->free |= UINT64_C(1) << (offset / sizeof(*envelope));
		return;
	}
	evc_pool_give(envelope);
}

/*
 * Gives back the slot of an envelope that this thread has superseded, whichever segment it is from: the next dispatch to
 * a latest-only subscription takes it while it is in this processor's cache. The record's thread.
 */
static inline void evc_envelope_keep(struct evc_thread_record *record, struct evc_envelope *envelope)
{
#ifndef EVC_ADDRESS_SANITIZER
	if (evc_likely(record->superseded == NULL)) {
		record->superseded = envelope;
		return;
	}
#endif
	evc_envelope_untake(record, envelope);
}

/* As evc_envelope_take, but first what evc_envelope_keep has kept. */
static inline struct evc_envelope *evc_envelope_take_kept(struct evc_thread_record *record, unsigned lane)
{
	struct evc_envelope *envelope = record->superseded;

	if (envelope == NULL)
		return evc_envelope_take(record, lane);
	record->superseded = NULL;
	return envelope;
}

#endif
