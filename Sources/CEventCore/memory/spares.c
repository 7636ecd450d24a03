/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "memory/spares.h"

#include "eventcore/realtime.h"

/*
 * Atomic because a token's slot may have been an envelope of a shared stack, whose link a late taker may
 * still read here (shared_stack.h, U2); its CAS then fails. Relaxed: the list belongs to one thread.
 */
struct spare {
	_Atomic(struct spare *) next;
};

static void *take_fresh(struct evc_thread_record *record, enum evc_spare_kind kind)
{
	const unsigned class_index = kind == EVC_SPARE_SEGMENT ? EVC_QUEUE_CLASS : 0;

	/* Of the lane that is used most, so that segments share with its boxes. */
	return evc_pool_take(&record->pools[class_index], &record->boxes[EVC_LANE_QUEUE_NORMAL][class_index]);
}

void *evc_spare_take(struct evc_thread_record *record, enum evc_spare_kind kind)
{
	struct evc_spares *spares = &record->spares[kind];
	struct spare *spare = spares->first;

	if (spare == NULL)
		return take_fresh(record, kind);
	spares->first = atomic_load_explicit(&spare->next, memory_order_relaxed);
	spares->count--;
	return spare;
}

void evc_spare_give(struct evc_thread_record *record, enum evc_spare_kind kind, void *slot)
{
	struct evc_spares *spares = &record->spares[kind];
	struct spare *spare = slot;

	atomic_store_explicit(&spare->next, spares->first, memory_order_relaxed);
	spares->first = spare;
	spares->count++;
}

bool evc_spares_fill(struct evc_thread_record *record, enum evc_spare_kind kind, uint32_t wanted)
{
	while (record->spares[kind].count < wanted) {
		void *slot = take_fresh(record, kind);

		if (slot == NULL)
			return false;
		evc_spare_give(record, kind, slot);
	}
	return true;
}

struct evc_envelope *evc_envelope_try_take(struct evc_thread_record *record, unsigned lane)
{
	struct evc_cursor *cursor = &record->envelopes[lane];

	if (cursor->free != 0 || evc_pool_try_refill(&record->pools[0], cursor))
		return evc_cursor_take(cursor, EVC_ENVELOPE_SHIFT);
	if (record->spares[EVC_SPARE_ENVELOPE].first != NULL)
		return evc_spare_take(record, EVC_SPARE_ENVELOPE);
	/* What is at hand for another lane. */
	for (unsigned other = 0; other < EVC_LANE_COUNT; other++)
		if (record->envelopes[other].free != 0)
			return evc_cursor_take(&record->envelopes[other], EVC_ENVELOPE_SHIFT);
	return NULL;
}

struct evc_envelope *evc_envelope_refill(struct evc_thread_record *record, unsigned lane)
{
	/* No sooner than the allocator: a post that must not wait finds neither a fresh segment nor that. */
	if (record->spares[EVC_SPARE_ENVELOPE].first != NULL && !evc_pool_has_segments(&record->pools[0]))
		return evc_spare_take(record, EVC_SPARE_ENVELOPE);
	return evc_pool_take(&record->pools[0], &record->envelopes[lane]);
}

enum evc_status evc_reserve(uint32_t envelopes)
{
	struct evc_thread_record *record = evc_thread_record();
	size_t bytes;

	if (record == NULL)
		return EVC_OUT_OF_MEMORY;
	/* The first section of a thread registers it with liburcu. */
	evc_domain_enter();
	evc_domain_leave();
	if (!evc_spares_provide(record, EVC_NEEDS_ENVELOPE, envelopes, false))
		return EVC_OUT_OF_MEMORY;
	/* Whole segments, since a trim keeps no part of one (evc_pool_exceeds). */
	bytes = ((((size_t)envelopes << EVC_ENVELOPE_SHIFT) + ((size_t)1 << EVC_SEGMENT_SHIFT) - 1) >> EVC_SEGMENT_SHIFT)
		<< EVC_SEGMENT_SHIFT;
	/* A smaller one, perhaps a library's, takes nothing of one before. Relaxed: only this thread writes it. */
	if (bytes > atomic_load_explicit(&record->reserve_bytes, memory_order_relaxed))
		atomic_store_explicit(&record->reserve_bytes, bytes, memory_order_relaxed);
	return EVC_OK;
}

void evc_spares_end(struct evc_thread_record *record)
{
	for (unsigned kind = 0; kind < EVC_SPARE_KINDS; kind++) {
		struct evc_spares *spares = &record->spares[kind];

		while (spares->first != NULL)
			evc_pool_give(evc_spare_take(record, kind));
		spares->reserved = 0;
	}
	if (record->superseded != NULL)
		evc_pool_give(record->superseded);
	record->superseded = NULL;
}
#endif
