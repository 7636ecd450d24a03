/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The steps that the paths of a dispatch (dispatch.c, dispatch_batch.c, dispatch_any.c) share. */
#ifndef EVC_DISPATCH_PRIVATE_H
#define EVC_DISPATCH_PRIVATE_H

#include "memory/consumed.h"
#include "memory/envelope.h"
#include "memory/spares.h"
#include "routing/router_private.h"

/*
 * Posts a chain to the sink of its envelopes. False: the receiver has closed, and the envelopes have ended.
 * (A direct call of the mailbox would save 1 ns, which does not justify that a router knows mailboxes.)
 */
static inline bool evc_dispatch_post(const struct evc_chain *chain)
{
	struct evc_sink *sink = chain->first->subscription->sink;

	if (evc_likely(sink->accept(sink, chain) == EVC_OK))
		return true;
	evc_chain_end(chain);
	return false;
}

/* Writes the header of an envelope for the receiver. */
static inline void evc_dispatch_address(struct evc_envelope *envelope,
					const struct evc_snapshot_entry *receiver, uint64_t time,
					unsigned lane, unsigned flags)
{
	envelope->subscription = receiver->subscription;
	envelope->time = time;
	envelope->generation = receiver->generation;
	envelope->lane = (uint8_t)lane;
	envelope->flags = (uint8_t)flags;
	envelope->events = 1;
}

#endif
