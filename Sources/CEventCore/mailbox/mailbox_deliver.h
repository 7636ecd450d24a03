/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What a consumer that delivers does with an envelope it has taken: evc_mailbox_run and evc_mailbox_pump.
 */
#ifndef EVC_MAILBOX_DELIVER_H
#define EVC_MAILBOX_DELIVER_H

#include "mailbox/mailbox_private.h"

/*
 * Delivers the events of a batch, of which the first was taken by evc_mailbox_next: one by one, for as long
 * as they are what comes next, and up to `limit` of them. Returns how many.
 */
uint64_t evc_mailbox_deliver_batch(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
				   uint64_t limit);

/* Delivers what evc_mailbox_next has taken. Returns how many events that were, at most `limit`. */
static inline uint64_t evc_mailbox_deliver(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
					   uint64_t limit)
{
	struct evc_subscription *subscription = envelope->subscription;
	void *payload = envelope->bytes;
	bool owned = true, moved;

	if (evc_unlikely(envelope->flags & EVC_ENVELOPE_BOXED)) {
		if (envelope->flags & EVC_ENVELOPE_BATCH)
			return evc_mailbox_deliver_batch(mailbox, envelope, limit);
		payload = evc_box_payload(envelope->box);
		owned = evc_envelope_owns_payload(envelope);
	}
	moved = subscription->deliver(subscription->context, payload, envelope, owned);
	evc_envelope_end(envelope, moved, &mailbox->returns);
	return 1;
}

/*
 * The loop of a consumer that delivers: until it has delivered `*limit` events, from which it counts down: EVC_OK;
 * or the mailbox has ended: EVC_CLOSED; or nothing is left, and it has said so by `idle`: EVC_EMPTY.
 */
static inline enum evc_status evc_mailbox_deliver_all(struct evc_mailbox *mailbox, uint64_t *limit)
{
	for (;;) {
		struct evc_envelope *envelope = evc_mailbox_next(mailbox);

		if (evc_likely(envelope != NULL)) {
			*limit -= evc_mailbox_deliver(mailbox, envelope, *limit);
			if (evc_unlikely(*limit == 0))
				return EVC_OK;
			continue;
		}
		if (evc_likely(!evc_mailbox_closes(mailbox))) {
			evc_mailbox_say_idle(mailbox);
			return EVC_EMPTY;
		}
		if (evc_mailbox_end(mailbox))
			return EVC_CLOSED;
	}
}

#endif
