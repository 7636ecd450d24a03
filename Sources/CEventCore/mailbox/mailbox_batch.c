/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "mailbox/mailbox_deliver.h"

struct evc_batch_walk {
	struct evc_mailbox *mailbox;
	struct evc_envelope *envelope;
	/* How many events have been delivered, and how many may be. */
	uint64_t count;
	uint64_t limit;
	/* Nothing more is taken in this walk. */
	bool is_over;
};

/*
 * Takes the next event of a batch if that is what evc_mailbox_next would take: the consumer relies on the alarm for
 * all lanes before it, the signal is down (C3), and the batch is still the first of its lane.
 */
static inline bool take_again(struct evc_mailbox *mailbox, struct evc_envelope *envelope)
{
	unsigned lane = envelope->lane;

	/* C3; as in evc_mailbox_next. */
	if (atomic_load_explicit(&mailbox->signal, memory_order_relaxed) != 0 ||
	    mailbox->relied != lane)
		return false;
	if (lane < EVC_LANE_FIRST_QUEUE)
		return evc_mailbox_take_first(mailbox, lane, envelope) != NULL;
	if (envelope->batch.left == 1)
		(void)evc_mailbox_take_listed(mailbox, lane);
	else
		evc_mailbox_count_left(mailbox, lane, 1);
	return true;
}

/* The payload of the next event, which is then taken, after the one before was delivered. */
static inline void *take_next(struct evc_batch_walk *walk)
{
	struct evc_batch *batch = &walk->envelope->batch;

	if (evc_unlikely(walk->is_over))
		return NULL;
	walk->count++;
	walk->is_over = true;
	if (batch->left == 0)
		return NULL;
	batch->payload += batch->step;
	if (walk->count == walk->limit || !take_again(walk->mailbox, walk->envelope))
		return NULL;
	walk->is_over = false;
	batch->left--;
	return batch->payload;
}

void *evc_batch_next(struct evc_batch_walk *walk)
{
	return take_next(walk);
}

/* A batch of a queue stays the first of its lane until its last event is taken; of a stack it was not taken off. */
static void put_back(struct evc_mailbox *mailbox, struct evc_envelope *envelope)
{
	struct evc_lane_list *list = &mailbox->lists[envelope->lane - EVC_LANE_FIRST_QUEUE];

	evc_slot_set_next(envelope, list->first);
	list->first = envelope;
	mailbox->occupied |= 1u << envelope->lane;
}

uint64_t evc_mailbox_deliver_batch(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
				   uint64_t limit)
{
	struct evc_subscription *subscription = envelope->subscription;
	struct evc_batch *batch = &envelope->batch;
	struct evc_batch_walk walk = { mailbox, envelope, 0, limit, false };
	void *payload = batch->payload;

	if (--batch->left > 0 && envelope->lane >= EVC_LANE_FIRST_QUEUE)
		put_back(mailbox, envelope);
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
