/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Slots that a thread has set aside, so that a post has what it may need and cannot run out of memory half way: the
 * token of a latest-only subscription, the next segment of a shared queue. A dispatch reserves them before it posts
 * to anybody. All of it on the record's thread.
 */
#ifndef EVC_SPARES_H
#define EVC_SPARES_H

#include "memory/thread_record.h"

/* What a post to a sink may need (`evc_sink.needs`): a spare of these classes. */
#define EVC_NEEDS_TOKEN 1u
#define EVC_NEEDS_SEGMENT 2u
#define EVC_TOKEN_CLASS 0u
#define EVC_QUEUE_CLASS 6u

/* Reserves `count` of what is needed. False = out of memory: then nothing is. */
bool evc_spares_reserve(struct evc_thread_record *record, unsigned needs, uint32_t count);
/* Ends a reservation: the posts are done, or will not be. */
void evc_spares_unreserve(struct evc_thread_record *record, unsigned needs, uint32_t count);

/* The part of evc_spares_ready that takes slots. */
bool evc_spares_provide(struct evc_thread_record *record, unsigned needs);

/* True if there is one of what is needed, for a post that is about to begin. False = out of memory. */
static inline bool evc_spares_ready(struct evc_thread_record *record, unsigned needs)
{
	if (evc_likely((!(needs & EVC_NEEDS_TOKEN) || record->tokens.count > 0) &&
		       (!(needs & EVC_NEEDS_SEGMENT) || record->segments.count > 0)))
		return true;
	return evc_spares_provide(record, needs);
}

/* A spare, or, for who has reserved none, a fresh slot. NULL = out of memory. */
void *evc_spare_take(struct evc_thread_record *record, unsigned class_index);
/* Gives one back that was not needed. */
void evc_spare_give(struct evc_thread_record *record, unsigned class_index, void *slot);

/* Gives all back to their pools: the end of the thread. */
void evc_spares_end(struct evc_thread_record *record);

#endif
