/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "mailbox_deliver.h"

/*
 * Whether the next event of a batch, which is the first of its lane, is what evc_mailbox_next would take:
 * RELYING, the signal is down (C3), and no lane before it holds anything. Nothing was dealt since it was
 * the first, so that it still is.
 */
static inline bool goes_on(struct evc_mailbox *mailbox, uint32_t lane_bit)
{
	uint32_t occupied = mailbox->lanes.occupied;

	/* C3; as in evc_mailbox_next. */
	return atomic_load_explicit(&mailbox->signal, memory_order_acquire) == 0 &&
	       (occupied & -occupied & mailbox->covered) == lane_bit;
}

uint64_t evc_mailbox_deliver_batch(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
				   uint64_t limit)
{
	struct evc_subscription *subscription = envelope->subscription;
	struct evc_batch *batch = &envelope->batch;
	const unsigned lane = evc_slot_lane(envelope);
	uint64_t count = 0;

	if (--batch->left > 0)
		evc_lanes_put_back(&mailbox->lanes, envelope);
	for (;;) {
		if (!subscription->deliver(subscription->context, batch->payload, envelope, true) &&
		    subscription->drop != NULL)
			subscription->drop(subscription->context, batch->payload);
		count++;
		if (batch->left == 0)
			break;
		batch->payload += batch->step;
		if (count == limit || !goes_on(mailbox, 1u << lane))
			return count;
		if (--batch->left > 0)
			evc_mailbox_count_take(mailbox, lane);
		else
			(void)evc_mailbox_take_from(mailbox, lane);
	}
	evc_envelope_end(envelope, true, &mailbox->returns);
	return count;
}
#endif
