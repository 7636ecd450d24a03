/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What a thread consumes, and where the next event for it alone may be written: a dispatch by the consumer
 * itself need not make an envelope for each event, nor post it. Only the consumer touches the structure, so
 * that nothing here has an order. A router knows no more of it than this; mailbox/mailbox_own.c has the rest.
 */
#ifndef EVC_CONSUMED_H
#define EVC_CONSUMED_H

#include "memory/slot.h"
#include "memory/subscription.h"

struct evc_consumed {
	/* Constant. */
	struct evc_sink *sink;
	/*
	 * Makes a place for an event of `sink`, if it need not have an envelope of its own; otherwise NULL. Not
	 * while there is a place.
	 */
	void *(*begin)(struct evc_consumed *consumed, struct evc_subscription *subscription,
		       uint32_t generation, unsigned lane, size_t size, size_t alignment);
	/* Ends the dispatch of the event in `place`. False: the receiver has closed, and the event has ended. */
	bool (*commit)(struct evc_consumed *consumed);

	/* Where an event is being written, from `begin` to `commit`; otherwise NULL. */
	void *place;
	/* Places at hand, for events of this subscription, generation and form. None if both are equal. */
	unsigned char *next, *end;
	struct evc_subscription *subscription;
	uint64_t form;
	uint32_t generation;
	/* They are usable while nothing is in this inbox, which is while it is at most EVC_HEAD_COUNT. */
	const _Atomic uintptr_t *inbox;
	struct evc_envelope *batch;
};

/* The low bits of the head of an inbox, which count. */
#define EVC_HEAD_COUNT ((uintptr_t)63)

/* Of the calling thread; NULL: nothing. */
extern _Thread_local EVC_FOUND_AT_START struct evc_consumed *evc_consumed_current;

/* Lane, size and alignment of an event that fits into an envelope. */
static inline uint64_t evc_consumed_form(unsigned lane, size_t size, size_t alignment)
{
	return (uint64_t)size << 32 | (uint64_t)alignment << 16 | lane;
}

/* Takes a place at hand for an event of a subscription; NULL if there is none. Not while there is a place. */
static inline void *evc_consumed_begin(struct evc_consumed *consumed,
				       const struct evc_subscription *subscription, uint32_t generation,
				       uint64_t form)
{
	/* Relaxed: by coherence not older than what happened before; nothing is read through it. */
	if (consumed->subscription != subscription || consumed->generation != generation ||
	    consumed->form != form || consumed->next == consumed->end ||
	    atomic_load_explicit(consumed->inbox, memory_order_relaxed) > EVC_HEAD_COUNT)
		return NULL;
	consumed->place = consumed->next;
	return consumed->place;
}

#endif
