/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "mailbox/mailbox_deliver.h"

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

struct evc_batch_walk {
	struct evc_mailbox *mailbox;
	struct evc_batch *batch;
	unsigned lane;
	/* How many events have been delivered, and how many may be. */
	uint64_t count;
	uint64_t limit;
	/* Nothing more is taken in this walk. */
	bool is_over;
};

/* The payload of the next event, which is then taken, after the one before was delivered. */
static inline void *take_next(struct evc_batch_walk *walk)
{
	struct evc_batch *batch = walk->batch;

	if (evc_unlikely(walk->is_over))
		return NULL;
	walk->count++;
	walk->is_over = true;
	if (batch->left == 0)
		return NULL;
	batch->payload += batch->step;
	if (walk->count == walk->limit || !goes_on(walk->mailbox, 1u << walk->lane))
		return NULL;
	walk->is_over = false;
	if (--batch->left > 0)
		evc_mailbox_count_take(walk->mailbox, walk->lane);
	else
		(void)evc_mailbox_take_from(walk->mailbox, walk->lane);
	return batch->payload;
}

void *evc_batch_next(struct evc_batch_walk *walk)
{
	return take_next(walk);
}

uint64_t evc_mailbox_deliver_batch(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
				   uint64_t limit)
{
	struct evc_subscription *subscription = envelope->subscription;
	struct evc_batch *batch = &envelope->batch;
	struct evc_batch_walk walk = { mailbox, batch, evc_slot_lane(envelope), 0, limit, false };
	void *payload = batch->payload;

	if (--batch->left > 0)
		evc_lanes_put_back(&mailbox->lanes, envelope);
	do {
		if (subscription->deliver_batch != NULL)
			subscription->deliver_batch(subscription->context, payload, envelope, &walk);
		else if (!subscription->deliver(subscription->context, payload, envelope, true) &&
			 subscription->drop != NULL)
			subscription->drop(subscription->context, payload);
		/* For who has not walked to the end, too. */
	} while ((payload = take_next(&walk)) != NULL);
	if (batch->left == 0)
		evc_envelope_end(envelope, true, &mailbox->returns);
	return walk.count;
}
#endif
