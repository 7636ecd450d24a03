/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Spares: slots that a thread has set aside before its first post, so that no post runs out of memory half
 * way: tokens of latest-only subscriptions, segments of shared queues; and the envelopes of evc_reserve. All of
 * it on the record's thread.
 */
#ifndef EVC_SPARES_H
#define EVC_SPARES_H

#include "memory/thread_record.h"

/* What a post to a sink may need (`evc_sink.needs`): a spare of these kinds. */
enum evc_spare_kind { EVC_SPARE_TOKEN, EVC_SPARE_SEGMENT, EVC_SPARE_ENVELOPE };
#define EVC_NEEDS_TOKEN (1u << EVC_SPARE_TOKEN)
#define EVC_NEEDS_SEGMENT (1u << EVC_SPARE_SEGMENT)
/* What evc_reserve sets aside; no sink needs it. */
#define EVC_NEEDS_ENVELOPE (1u << EVC_SPARE_ENVELOPE)
/* The slab pool's class of a segment. */
#define EVC_QUEUE_CLASS 6u

/* The slow path of evc_spares_provide: sets slots of a kind aside until there are `wanted`. False = out of memory. */
bool evc_spares_fill(struct evc_thread_record *record, enum evc_spare_kind kind, uint32_t wanted);

/*
 * Sets slots aside: `count` of each kind in `needs`, beside or including what is reserved. False = out of
 * memory.
 */
static inline bool evc_spares_provide(struct evc_thread_record *record, unsigned needs, uint32_t count,
				      bool beside_reserved)
{
	for (unsigned kind = 0; kind < EVC_SPARE_KINDS; kind++) {
		const struct evc_spares *spares = &record->spares[kind];
		uint32_t wanted = count + (beside_reserved ? spares->reserved : 0);

		if (evc_unlikely(((needs >> kind) & 1u) != 0 && spares->count < wanted) &&
		    !evc_spares_fill(record, kind, wanted))
			return false;
	}
	return true;
}

/* Reserves `count` spares of each kind in `needs`. False = out of memory: then nothing is reserved. */
static inline bool evc_spares_reserve(struct evc_thread_record *record, unsigned needs, uint32_t count)
{
	if (!evc_spares_provide(record, needs, count, true))
		return false;
	for (unsigned kind = 0; kind < EVC_SPARE_KINDS; kind++)
		record->spares[kind].reserved += ((needs >> kind) & 1u) * count;
	return true;
}

/* Ends a reservation: the posts are done, or will not be made. */
static inline void evc_spares_unreserve(struct evc_thread_record *record, unsigned needs, uint32_t count)
{
	for (unsigned kind = 0; kind < EVC_SPARE_KINDS; kind++)
		record->spares[kind].reserved -= ((needs >> kind) & 1u) * count;
}

/* A spare, or a fresh slot if none is set aside. NULL = out of memory. */
void *evc_spare_take(struct evc_thread_record *record, enum evc_spare_kind kind);
/* Returns a spare that was not needed. */
void evc_spare_give(struct evc_thread_record *record, enum evc_spare_kind kind, void *slot);

/* An envelope without the allocator or a system call, from what is at hand; NULL if nothing is. */
struct evc_envelope *evc_envelope_try_take(struct evc_thread_record *record, unsigned lane);

/* Returns all spares to their slab pools, at the end of the thread. */
void evc_spares_end(struct evc_thread_record *record);

#endif
