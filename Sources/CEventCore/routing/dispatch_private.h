/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The steps that the paths of a dispatch share. */
#ifndef EVC_DISPATCH_PRIVATE_H
#define EVC_DISPATCH_PRIVATE_H

#include "memory/consumed.h"
#include "memory/envelope.h"
#include "memory/spares.h"
#include "routing/router_private.h"

/*
 * Posts a chain to the sink of its envelopes. Returns how many were accepted; the others have ended. `outcome` may
 * be NULL. (A direct call of the mailbox would save 1 ns, which does not justify that a router knows mailboxes.)
 */
static inline uint32_t evc_dispatch_post(const struct evc_chain *chain, struct evc_thread_record *record,
					 struct evc_dispatch_outcome *outcome)
{
	struct evc_sink *sink = chain->first->subscription->sink;
	struct evc_overflow_counts before = record->overflow, after;
	uint32_t count = chain->count, refused;
	enum evc_status status = sink->accept(sink, chain);

	after = record->overflow;
	/* A dispatch inside another one, in user code that the post runs, leaves the other's counts as they are. */
	record->overflow = before;
	if (evc_unlikely(status != EVC_OK)) {
		evc_chain_end(chain);
		if (outcome != NULL)
			*(status == EVC_CLOSED ? &outcome->closed : &outcome->refused) += count;
		return 0;
	}
	refused = after.refused - before.refused;
	if (evc_unlikely(outcome != NULL)) {
		uint32_t dropped = after.dropped - before.dropped;

		outcome->refused += refused;
		outcome->dropped += dropped;
		outcome->displaced += after.displaced - before.displaced;
		outcome->accepted += count - refused - dropped;
	}
	return count - refused;
}

/* Writes the header of an envelope for the receiver. */
static inline void evc_dispatch_address(struct evc_envelope *envelope,
					const struct evc_snapshot_entry *receiver, struct evc_stamp stamp,
					unsigned lane, unsigned flags)
{
	evc_envelope_init(envelope, receiver->subscription, stamp.time, receiver->generation | stamp.mark, lane, flags);
}

#endif
