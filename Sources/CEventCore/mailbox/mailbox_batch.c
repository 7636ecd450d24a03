/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/mailbox_private.h"

/* How many events ahead of the one that is handled a line is prefetched. */
#define BATCH_AHEAD 8

struct evc_batch_walk {
	/* The first payload that must not be taken without checks. Only take_carefully changes it. */
	unsigned char *unchecked;
	/* Constant: what take_next reads and writes. */
	const _Atomic uint32_t *signal;
	_Atomic uint64_t *left;
	struct evc_batch *batch;
	/* Constant. */
	struct evc_mailbox *mailbox;
	struct evc_envelope *envelope;
	/* How many more may be taken; `left` is without those that need no checks. */
	struct evc_stretch *stretch;
	/* No more events are taken in this walk. */
	bool is_over;
};

/* A Swift loop takes most events without a call: Sources/EventCore/Consumers/EventBatch.swift. */
static_assert(offsetof(struct evc_batch_walk, unchecked) == 0, "see EventBatch.swift");
static_assert(offsetof(struct evc_batch_walk, signal) == 8, "see EventBatch.swift");
static_assert(offsetof(struct evc_batch_walk, left) == 16, "see EventBatch.swift");
static_assert(offsetof(struct evc_batch_walk, batch) == 24, "see EventBatch.swift");
static_assert(offsetof(struct evc_batch, payload) == 8, "see EventBatch.swift");
static_assert(offsetof(struct evc_batch, step) == 24, "see EventBatch.swift");

/*
 * Finds which events behind the one that is delivered need no checks: all but the last, on the queue `relied`. They
 * are taken as evc_mailbox_next would: with the signal down (C3) `relied` changes only in takes.
 */
static void look_ahead(struct evc_batch_walk *walk)
{
	const struct evc_envelope *envelope = walk->envelope;
	const struct evc_batch *batch = &envelope->batch;
	struct evc_stretch *stretch = walk->stretch;
	uint64_t count = 0, left = stretch->left;

	if (envelope->lane >= EVC_LANE_FIRST_QUEUE && walk->mailbox->relied == envelope->lane &&
	    !evc_batch_is_last(batch)) {
		size_t bytes = (size_t)(batch->end - batch->payload);

		/* A short stretch needs no division. */
		count = left <= EVC_STRETCH_MOST && (left + 2) * (size_t)batch->step <= bytes
				? left
				: evc_batch_left(batch) - 2;
	}
	if (count > left)
		count = left;
	stretch->left = left - count;
	walk->unchecked = batch->payload + (int64_t)(count + 1) * batch->step;
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
	if (evc_batch_is_last(&envelope->batch))
		(void)evc_mailbox_take_listed(mailbox, lane);
	else
		evc_mailbox_count_left(mailbox, lane, 1);
	return true;
}

static __attribute__((noinline)) void *take_carefully(struct evc_batch_walk *walk)
{
	struct evc_batch *batch = &walk->envelope->batch;
	struct evc_stretch *stretch = walk->stretch;

	if (walk->is_over)
		return NULL;
	batch->payload += batch->step;
	/* These were not taken, since the signal may be up. */
	if (walk->unchecked != batch->payload)
		stretch->left += (uint64_t)((walk->unchecked - batch->payload) / batch->step);
	/* The walk goes on over the ends of stretches, since to begin it anew costs as much as the look at the clock. */
	if (batch->payload == batch->end || (stretch->left == 0 && !evc_stretch_next(stretch)) ||
	    !take_again(walk->mailbox, walk->envelope)) {
		walk->unchecked = batch->payload + batch->step;
		walk->is_over = true;
		return NULL;
	}
	stretch->left--;
	/* Handlers may have added to it. */
	look_ahead(walk);
	return batch->payload;
}

/*
 * Takes the next event, after the one at `payload` was delivered, and returns its payload. The others are the walk's:
 * what a loop passes of them it keeps in registers.
 */
static inline void *take_next(struct evc_batch_walk *walk, unsigned char *payload, struct evc_batch *batch, int64_t step,
			      const _Atomic uint32_t *signal, _Atomic uint64_t *left)
{
	payload += step;
	/* C3; as in evc_mailbox_next. */
	if (evc_unlikely(payload == walk->unchecked || atomic_load_explicit(signal, memory_order_relaxed) != 0))
		return take_carefully(walk);
	batch->payload = payload;
	/* Another processor wrote it: fetched while the events before it are handled. */
	__builtin_prefetch(payload + BATCH_AHEAD * step);
	/* As evc_mailbox_count_left. */
	atomic_store_explicit(left, atomic_load_explicit(left, memory_order_relaxed) + 1, memory_order_relaxed);
	return payload;
}

void *evc_batch_next(struct evc_batch_walk *walk)
{
	struct evc_batch *batch = walk->batch;

	return take_next(walk, batch->payload, batch, batch->step, walk->signal, walk->left);
}

static inline void deliver_each(struct evc_batch_walk *walk)
{
	/* The subscription's functions are constant, and the walk's members but one. */
	const struct evc_envelope *envelope = walk->envelope;
	const struct evc_subscription *subscription = envelope->subscription;
	bool (*const deliver)(void *, void *, const struct evc_envelope *, bool) = subscription->deliver;
	void *const context = subscription->context;
	const _Atomic uint32_t *const signal = walk->signal;
	_Atomic uint64_t *const left = walk->left;
	struct evc_batch *const batch = walk->batch;
	const int64_t step = batch->step;
	unsigned char *payload = batch->payload;

	do
		if (!deliver(context, payload, envelope, true) && subscription->drop != NULL)
			subscription->drop(context, payload);
	while ((payload = take_next(walk, payload, batch, step, signal, left)) != NULL);
}

void evc_mailbox_deliver_batch(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
			       struct evc_stretch *stretch)
{
	struct evc_subscription *subscription = envelope->subscription;
	struct evc_batch *batch = &envelope->batch;
	struct evc_batch_walk walk = {
		.signal = &mailbox->signal, .left = &mailbox->left[envelope->lane], .batch = batch,
		.mailbox = mailbox, .envelope = envelope, .stretch = stretch
	};
	void *payload = batch->payload;

	/* The first event is taken. */
	stretch->left--;
	if (!evc_batch_is_last(batch)) {
		struct evc_lane_list *list = &mailbox->lists[envelope->lane];

		/* It is the first of its lane again, until its last event is taken. */
		evc_slot_set_next(envelope, list->first);
		list->first = envelope;
		mailbox->occupied |= 1u << envelope->lane;
	}
	look_ahead(&walk);
	if (subscription->deliver_batch != NULL)
		/* Again if it did not take all of them. */
		do
			subscription->deliver_batch(subscription->context, payload, envelope, &walk);
		while ((payload = evc_batch_next(&walk)) != NULL);
	else
		deliver_each(&walk);
	if (batch->payload == batch->end)
		evc_envelope_end(envelope, true, mailbox->returns);
}
#endif
