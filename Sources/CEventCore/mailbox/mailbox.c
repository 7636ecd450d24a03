/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/mailbox_own.h"

#include "latest/latest.h"
#include "platform/allocator.h"
#include "platform/options.h"
#include "platform/references.h"

/* How often a depth is read again because the consumer has taken something meanwhile. */
#define DEPTH_ATTEMPTS 8u
/* The count of posted events has 32 bits, in units of 64 events. */
#define POSTED_BITS 38

static void retain(struct evc_sink *sink)
{
	evc_mailbox_retain(evc_mailbox_of(sink));
}

static void release(struct evc_sink *sink)
{
	evc_mailbox_release(evc_mailbox_of(sink));
}

static void look_again(struct evc_sink *sink)
{
	evc_mailbox_interrupt(evc_mailbox_of(sink));
}

struct evc_return_cache *evc_mailbox_by_hand(struct evc_mailbox *mailbox)
{
	if (evc_unlikely(mailbox->by_hand == NULL)) {
		mailbox->by_hand = evc_allocate(sizeof(*mailbox->by_hand), _Alignof(struct evc_return_cache));
		if (mailbox->by_hand != NULL)
			*mailbox->by_hand = (struct evc_return_cache){ 0 };
	}
	return mailbox->by_hand;
}

static void end_by_hand(struct evc_mailbox *mailbox)
{
	if (mailbox->by_hand != NULL)
		evc_deallocate(mailbox->by_hand, sizeof(*mailbox->by_hand), _Alignof(struct evc_return_cache));
}

enum evc_status evc_mailbox_create(const struct evc_mailbox_options *options,
				   struct evc_mailbox **out)
{
	struct evc_mailbox_options own;
	struct evc_mailbox *mailbox;
	enum evc_status status = EVC_OPTIONS_READ(&own, struct evc_mailbox_options, options, block_ns);

	if (out == NULL || (status == EVC_OK && ((unsigned)own.strategy > EVC_WAIT_SPIN ||
						 (unsigned)own.overflow > EVC_OVERFLOW_BLOCK ||
						 own.capacity > EVC_BOUND_MAX ||
						 (own.clock != NULL && own.clock->now == NULL) ||
						 (own.polled && (own.wake != NULL || own.capacity != 0)))))
		return EVC_INVALID_ARGUMENT;
	if (status != EVC_OK)
		return status;
	mailbox = evc_allocate(sizeof(*mailbox), _Alignof(struct evc_mailbox));
	if (mailbox == NULL)
		return EVC_OUT_OF_MEMORY;
	*mailbox = (struct evc_mailbox){
		.sink = { evc_mailbox_accept, retain, release, own.batches, 0, evc_mailbox_accept_one,
			  own.polled ? evc_mailbox_try_accept : NULL, look_again },
		.options = { own.strategy, own.polled, own.spin_ns, own.control, own.idle, own.wake, own.finalize,
			     own.context },
		.batches = own.batches,
	};
	if (own.clock != NULL)
		mailbox->clock = *own.clock;
	/* A new mailbox is armed: its first post calls `wake`. */
	if (own.wake != NULL)
		atomic_init(&mailbox->attention, EVC_ATTENTION_SLEEP);
	status = evc_parker_init(&mailbox->parker, own.parker);
	if (status != EVC_OK)
		goto no_parker;
	/* The consumer of a polled mailbox may be a thread that must not allocate. */
	if (own.polled && evc_mailbox_by_hand(mailbox) == NULL)
		goto no_memory;
	if (!evc_mailbox_bound_open(mailbox, &own))
		goto no_memory;
	evc_mailbox_own_init(mailbox);
	atomic_init(&mailbox->references, 1);
	*out = mailbox;
	return EVC_OK;

no_memory:
	end_by_hand(mailbox);
	evc_parker_close(&mailbox->parker);
	status = EVC_OUT_OF_MEMORY;
no_parker:
	evc_deallocate(mailbox, sizeof(*mailbox), _Alignof(struct evc_mailbox));
	return status;
}

void evc_mailbox_retain(struct evc_mailbox *mailbox)
{
	evc_reference_add(&mailbox->references);
}

void evc_mailbox_release(struct evc_mailbox *mailbox)
{
	if (mailbox == NULL || !evc_reference_drop(&mailbox->references))
		return;
	/*
	 * No other thread knows the mailbox any more, so that this thread is its consumer now. Acquires what the last consumer
	 * did, for a sanitizer that does not understand how its end comes before this, as with Swift's references.
	 */
	(void)evc_mailbox_claim(mailbox);
	atomic_fetch_or_explicit(&mailbox->signal, EVC_SIGNAL_CLOSE, memory_order_relaxed);
	(void)evc_mailbox_end(mailbox);
	evc_subscription_list_close(&mailbox->subscriptions);
	evc_bound_destroy(mailbox->bound);
	evc_parker_close(&mailbox->parker);
	end_by_hand(mailbox);
	if (mailbox->options.finalize != NULL)
		mailbox->options.finalize(mailbox->options.context);
	evc_deallocate(mailbox, sizeof(*mailbox), _Alignof(struct evc_mailbox));
}

struct evc_sink *evc_mailbox_sink(struct evc_mailbox *mailbox)
{
	return &mailbox->sink;
}

/* Adds a subscription: an ordinary one without a conflation; otherwise as evc_latest_create. */
static enum evc_status add(struct evc_mailbox *mailbox, const struct evc_subscription_options *options,
			   const struct evc_conflation *conflation, struct evc_subscription **out)
{
	struct evc_subscription_options own;
	enum evc_status status = EVC_OPTIONS_READ(&own, struct evc_subscription_options, options, deliver_batch);
	struct evc_subscription as;

	if (status != EVC_OK)
		return status;
	if (mailbox == NULL || own.deliver == NULL || out == NULL)
		return EVC_INVALID_ARGUMENT;
	as = (struct evc_subscription){
		.sink = &mailbox->sink,
		.deliver = own.deliver,
		.drop = own.drop,
		.deliver_batch = own.deliver_batch,
		.context = own.context,
		.finalize = own.finalize,
	};
	if (conflation != NULL)
		return evc_latest_create(&as, &mailbox->subscriptions, &evc_mailbox_kind_private, conflation, out);
	if (own.unbounded && mailbox->bound != NULL)
		as.sink = &mailbox->bound->unbounded;
	return evc_subscription_list_add(&mailbox->subscriptions, &as, out);
}

enum evc_status evc_mailbox_add_subscription(struct evc_mailbox *mailbox,
					     const struct evc_subscription_options *options,
					     struct evc_subscription **out)
{
	return add(mailbox, options, NULL, out);
}

enum evc_status evc_mailbox_add_latest_subscription(struct evc_mailbox *mailbox,
						    const struct evc_subscription_options *options,
						    struct evc_subscription **out)
{
	return add(mailbox, options, &evc_latest_only, out);
}

enum evc_status evc_mailbox_add_conflated_subscription(struct evc_mailbox *mailbox,
						       const struct evc_subscription_options *options,
						       const struct evc_conflation *conflation,
						       struct evc_subscription **out)
{
	return conflation != NULL ? add(mailbox, options, conflation, out) : EVC_INVALID_ARGUMENT;
}

struct evc_envelope *evc_mailbox_take_latest(struct evc_mailbox *mailbox, struct evc_envelope *token)
{
	struct evc_envelope *envelope = evc_latest_take(token, mailbox->returns);

	if (envelope == NULL)
		/* Release, pairs with evc_mailbox_read_statistics: it was counted as taken before. */
		atomic_fetch_add_explicit(&mailbox->empty, 1, memory_order_release);
	return envelope;
}

void evc_mailbox_recycle(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
			 bool payload_moved)
{
	evc_envelope_end(envelope, payload_moved,
			 mailbox->returns != NULL ? mailbox->returns : evc_mailbox_by_hand(mailbox));
}

/* The number of events that were posted to a lane. */
static uint64_t posted_to(struct evc_mailbox *mailbox, unsigned lane)
{
	struct evc_inbox *inbox = &mailbox->inboxes[lane >= EVC_LANE_FIRST_QUEUE];
	/*
	 * Nothing is counted twice: what moves to one of these two has left the head's count. Acquire,
	 * pairs with `drain` and evc_mailbox_count_posted; and `left`, read next, is not older.
	 */
	uint64_t drained = atomic_load_explicit(&mailbox->lists[lane].drained, memory_order_acquire);
	uint64_t posted = atomic_load_explicit(&inbox->posted[lane % EVC_LANE_FIRST_QUEUE],
					       memory_order_acquire);
	uintptr_t head = atomic_load_explicit(evc_mailbox_head(mailbox, lane), memory_order_acquire);

	return posted * (EVC_HEAD_COUNT + 1) + drained + (head & EVC_HEAD_COUNT);
}

/* The depth of a lane at one moment; too low rather than too high if the consumer takes meanwhile. */
static int64_t depth_of(struct evc_mailbox *mailbox, unsigned lane)
{
	/* Relaxed: the acquire loads of posted_to order it. */
	uint64_t before, left = atomic_load_explicit(&mailbox->left[lane], memory_order_relaxed);
	uint64_t posted;

	for (unsigned attempt = 0; attempt < DEPTH_ATTEMPTS; attempt++) {
		before = left;
		posted = posted_to(mailbox, lane);
		left = atomic_load_explicit(&mailbox->left[lane], memory_order_relaxed);
		if (left == before)
			break;
	}
	/* An event may be counted out before it is counted in. */
	return (int64_t)((posted - left) << (64 - POSTED_BITS)) >> (64 - POSTED_BITS);
}

void evc_mailbox_depths(struct evc_mailbox *mailbox, uint64_t depths[EVC_LANE_COUNT])
{
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		int64_t depth = depth_of(mailbox, lane);

		depths[lane] = depth > 0 ? (uint64_t)depth : 0;
	}
	if (mailbox->displaces)
		evc_shared_lanes_add_depths(mailbox->bound->lanes, depths);
	evc_latest_discount(&mailbox->subscriptions, depths);
}

void evc_mailbox_read_statistics(struct evc_mailbox *mailbox, struct evc_mailbox_statistics *out)
{
	const struct evc_latest_figures latest = evc_latest_read(&mailbox->subscriptions);
	uint64_t depths[EVC_LANE_COUNT];
	/* What is subtracted is read first, so that the difference does not fall below 0. */
	uint64_t empty = atomic_load_explicit(&mailbox->empty, memory_order_acquire);

	*out = (struct evc_mailbox_statistics){ .superseded = latest.superseded };
	out->dropped = atomic_load_explicit(&mailbox->dropped, memory_order_acquire);
	out->taken = 0 - out->dropped - empty;
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		out->taken += atomic_load_explicit(&mailbox->left[lane], memory_order_relaxed);
	out->dropped += latest.refused;
	evc_mailbox_depths(mailbox, depths);
	evc_bound_read(mailbox->bound, depths, out);
}
#endif
