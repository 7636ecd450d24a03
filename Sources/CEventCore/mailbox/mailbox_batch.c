/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/mailbox_private.h"

/* How many events ahead of the one that is handled a line is prefetched. */
#define BATCH_AHEAD 8

struct evc_batch_walk {
	struct evc_mailbox *mailbox;
	struct evc_envelope *envelope;
	/* Events that may be taken without checks: all but the last, on the queue `relied`; else 0. */
	uint32_t at_hand;
	/* How many more may be taken. */
	uint64_t limit;
	/* No more events are taken in this walk. */
	bool is_over;
};

/* These are taken as evc_mailbox_next would: with the signal down (C3) `relied` changes only in takes. */
static void count_at_hand(struct evc_batch_walk *walk)
{
	const struct evc_envelope *envelope = walk->envelope;
	uint32_t left = envelope->batch.left;

	walk->at_hand = 0;
	if (envelope->lane < EVC_LANE_FIRST_QUEUE || walk->mailbox->relied != envelope->lane || left < 2)
		return;
	walk->at_hand = left - 1 < walk->limit ? left - 1 : (uint32_t)walk->limit;
	walk->limit -= walk->at_hand;
}

/*
 * Takes the next event of a batch if evc_mailbox_next would: the consumer relies on the alarm for all earlier
 * lanes, the signal is down (C3), and the batch is still the first of its lane.
 */
static bool take_again(struct evc_mailbox *mailbox, struct evc_envelope *envelope)
{
	unsigned lane = envelope->lane;

	/* C3; as in evc_mailbox_next. */
	if (atomic_load_explicit(&mailbox->signal, memory_order_relaxed) != 0 ||
	    mailbox->relied != lane)
		return false;
	if (mailbox->lists[lane].first != envelope || !evc_mailbox_first_is_next(mailbox, lane))
		return false;
	if (envelope->batch.left == 1)
		(void)evc_mailbox_take_listed(mailbox, lane);
	else
		evc_mailbox_count_left(mailbox, lane, 1);
	return true;
}

static inline void advance(struct evc_batch *batch)
{
	batch->payload += batch->step;
	/* Another processor wrote it: fetched while the events before it are handled. */
	__builtin_prefetch(batch->payload + BATCH_AHEAD * batch->step);
}

static __attribute__((noinline)) void *take_carefully(struct evc_batch_walk *walk)
{
	struct evc_batch *batch = &walk->envelope->batch;
	bool is_over = walk->is_over;

	walk->is_over = true;
	if (is_over || batch->left == 0)
		return NULL;
	/* These were not taken, since the signal may be up. */
	walk->limit += walk->at_hand;
	walk->at_hand = 0;
	advance(batch);
	if (walk->limit == 0 || !take_again(walk->mailbox, walk->envelope))
		return NULL;
	walk->limit--;
	walk->is_over = false;
	batch->left--;
	return batch->payload;
}

/* Takes the next event, after the one before was delivered, and returns its payload. */
static inline void *take_next(struct evc_batch_walk *walk)
{
	struct evc_mailbox *mailbox = walk->mailbox;
	struct evc_batch *batch = &walk->envelope->batch;

	/* C3; as in evc_mailbox_next. */
	if (evc_unlikely(walk->at_hand == 0 ||
			 atomic_load_explicit(&mailbox->signal, memory_order_relaxed) != 0))
		return take_carefully(walk);
	walk->at_hand--;
	advance(batch);
	evc_mailbox_count_left(mailbox, walk->envelope->lane, 1);
	batch->left--;
	return batch->payload;
}

void *evc_batch_next(struct evc_batch_walk *walk)
{
	return take_next(walk);
}

/* Puts a batch back as the first of its lane, until its last event is taken. */
static void put_back(struct evc_mailbox *mailbox, struct evc_envelope *envelope)
{
	struct evc_lane_list *list = &mailbox->lists[envelope->lane];

	evc_slot_set_next(envelope, list->first);
	list->first = envelope;
	mailbox->occupied |= 1u << envelope->lane;
}

uint64_t evc_mailbox_deliver_batch(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
				   uint64_t limit)
{
	struct evc_subscription *subscription = envelope->subscription;
	struct evc_batch *batch = &envelope->batch;
	/* The first event is taken. */
	struct evc_batch_walk walk = { mailbox, envelope, 0, limit - 1, false };
	void *payload = batch->payload;

	if (--batch->left > 0)
		put_back(mailbox, envelope);
	count_at_hand(&walk);
	do {
		if (subscription->deliver_batch != NULL)
			subscription->deliver_batch(subscription->context, payload, envelope, &walk);
		else if (!subscription->deliver(subscription->context, payload, envelope, true) &&
			 subscription->drop != NULL)
			subscription->drop(subscription->context, payload);
		/* Also for a deliver_batch that did not take all of them. */
	} while ((payload = take_next(&walk)) != NULL);
	if (batch->left == 0)
		evc_envelope_end(envelope, true, &mailbox->returns);
	/* Not from `left`, to which handlers may have added (mailbox_own.h). */
	return limit - walk.limit - walk.at_hand;
}
#endif
