/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Spares: slots that a thread has set aside, so that a post has what it may need and cannot run out of memory
 * half way: the token of a latest-only subscription, the next segment of a shared queue. A dispatch reserves
 * spares before its first post. Everything here runs on the record's thread.
 */
#ifndef EVC_SPARES_H
#define EVC_SPARES_H

#include "memory/thread_record.h"

/* What a post to a sink may need (`evc_sink.needs`): a spare of these classes. */
#define EVC_NEEDS_TOKEN 1u
#define EVC_NEEDS_SEGMENT 2u
#define EVC_TOKEN_CLASS 0u
#define EVC_QUEUE_CLASS 6u

/* Sets slots aside until there are this many. False = out of memory. */
bool evc_spares_fill(struct evc_thread_record *record, uint32_t tokens, uint32_t segments);

/* Reserves `count` spares of each kind in `needs`, if that many are set aside. */
static inline bool evc_spares_reserve_there(struct evc_thread_record *record, unsigned needs,
					    uint32_t count)
{
	uint32_t tokens = record->tokens.reserved + (needs & EVC_NEEDS_TOKEN ? count : 0);
	uint32_t segments = record->segments.reserved + (needs & EVC_NEEDS_SEGMENT ? count : 0);

	if (evc_unlikely(record->tokens.count < tokens || record->segments.count < segments))
		return false;
	record->tokens.reserved = tokens;
	record->segments.reserved = segments;
	return true;
}

/* Reserves `count` spares of each kind in `needs`. False = out of memory: then nothing is reserved. */
static inline bool evc_spares_reserve(struct evc_thread_record *record, unsigned needs, uint32_t count)
{
	return evc_likely(evc_spares_reserve_there(record, needs, count)) ||
	       (evc_spares_fill(record,
				record->tokens.reserved + (needs & EVC_NEEDS_TOKEN ? count : 0),
				record->segments.reserved + (needs & EVC_NEEDS_SEGMENT ? count : 0)) &&
		evc_spares_reserve_there(record, needs, count));
}

/* Ends a reservation: the posts are done, or will not be made. */
static inline void evc_spares_unreserve(struct evc_thread_record *record, unsigned needs,
					uint32_t count)
{
	record->tokens.reserved -= needs & EVC_NEEDS_TOKEN ? count : 0;
	record->segments.reserved -= needs & EVC_NEEDS_SEGMENT ? count : 0;
}

/* Sets aside one spare of each kind in `needs`, for a post that is about to begin. False = out of memory. */
static inline bool evc_spares_ready(struct evc_thread_record *record, unsigned needs)
{
	uint32_t tokens = needs & EVC_NEEDS_TOKEN ? 1 : 0, segments = needs & EVC_NEEDS_SEGMENT ? 1 : 0;

	return evc_likely(record->tokens.count >= tokens && record->segments.count >= segments) ||
	       evc_spares_fill(record, tokens, segments);
}

/* A spare, or a fresh slot if the caller has reserved none. NULL = out of memory. */
void *evc_spare_take(struct evc_thread_record *record, unsigned class_index);
/* Returns a spare that was not needed. */
void evc_spare_give(struct evc_thread_record *record, unsigned class_index, void *slot);

/* Returns all spares to their slab pools, at the end of the thread. */
void evc_spares_end(struct evc_thread_record *record);

#endif
