/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* The second step of a dispatch on the general path (dispatch_any.c): the posts, and what becomes of the events. */
#include "routing/dispatch_private.h"

void evc_dispatch_end(struct evc_dispatch *dispatch)
{
	struct evc_thread_record *record = dispatch->record;

	if (record != NULL) {
		record->pins--;
		evc_spares_unreserve(record, dispatch->needs, dispatch->needing);
	}
	if (dispatch->snapshot != NULL)
		evc_snapshot_release(dispatch->snapshot);
	*dispatch = (struct evc_dispatch){ 0 };
}

/* Posts to all receivers; with a `note`, to one subscription after the other. */
static inline uint32_t commit(struct evc_dispatch *dispatch, struct evc_dispatch_outcome *outcome,
			      evc_dispatch_note *note, void *context)
{
	struct evc_envelope *next = dispatch->first;
	uint32_t accepted = 0, left = dispatch->receivers;
	/* The events of an envelope. */
	uint32_t events = dispatch->array != NULL ? dispatch->payloads : 1;

	while (left > 0) {
		struct evc_chain chain = { next, next, 0, 1u << dispatch->lane };
		const struct evc_subscription *subscription = next->subscription;
		struct evc_dispatch_outcome each = { 0 };
		uint32_t receivers = 0;

		/* One post for all receivers with the same sink; they are adjacent (snapshot.c). */
		do {
			for (uint32_t e = 0; e < dispatch->events; e++) {
				chain.last = next;
				next = evc_slot_next(next);
			}
			receivers++;
		} while (note == NULL && receivers < left && next->subscription->sink == subscription->sink);
		chain.count = receivers * dispatch->events;
		left -= receivers;
		evc_slot_set_next(chain.last, NULL);
		accepted += evc_dispatch_post(&chain, dispatch->record, note != NULL ? &each : outcome);
		if (note == NULL)
			continue;
		/* A batch is accepted as a whole, or not at all. */
		each.accepted *= events;
		each.closed *= events;
		note(context, subscription, &each);
	}
	evc_dispatch_end(dispatch);
	return accepted * events;
}

uint32_t evc_dispatch_commit(struct evc_dispatch *dispatch)
{
	return commit(dispatch, NULL, NULL, NULL);
}

uint32_t evc_dispatch_commit_reporting(struct evc_dispatch *dispatch, struct evc_dispatch_outcome *outcome)
{
	uint32_t events = dispatch->array != NULL ? dispatch->payloads : 1, accepted;

	*outcome = (struct evc_dispatch_outcome){ 0 };
	accepted = commit(dispatch, outcome, NULL, NULL);
	/* A batch is accepted as a whole, or not at all. */
	outcome->accepted *= events;
	outcome->closed *= events;
	return accepted;
}

uint32_t evc_dispatch_commit_each(struct evc_dispatch *dispatch, evc_dispatch_note *note, void *context)
{
	return commit(dispatch, NULL, note, context);
}
#endif
