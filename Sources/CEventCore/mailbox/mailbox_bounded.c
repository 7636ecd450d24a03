/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* What a latest-only subscription or a bound does to a mailbox (latest.h); the functions of a bounded one's sinks. */
#include "mailbox/mailbox_own.h"
#include "memory/spares.h"

static bool is_closed(struct evc_sink *sink)
{
	return evc_mailbox_is_closed(evc_mailbox_of(sink));
}

static void put_token(struct evc_sink *sink, unsigned lane, struct evc_envelope *token)
{
	evc_mailbox_put(evc_mailbox_of(sink), lane, token, token, 1);
}

static void tell(struct evc_sink *sink, unsigned lane)
{
	evc_mailbox_tell(evc_mailbox_of(sink), lane);
}

/* B1. Wakes nobody: if B2 finds the mailbox full, its consumer has something to do. */
static void raise_blocked(struct evc_sink *sink)
{
	atomic_fetch_or_explicit(&evc_mailbox_of(sink)->signal, EVC_SIGNAL_BLOCKED, memory_order_relaxed);
	/* Pairs with evc_mailbox_order_taken: a consumer that misses the bit has been seen to take by B2. */
	atomic_thread_fence(memory_order_seq_cst);
}

static void clear_blocked(struct evc_sink *sink)
{
	/* Relaxed: C2 releases it to B0. */
	atomic_fetch_and_explicit(&evc_mailbox_of(sink)->signal, ~EVC_SIGNAL_BLOCKED, memory_order_relaxed);
}

static bool is_consumer(struct evc_sink *sink)
{
	return atomic_load_explicit(&evc_mailbox_of(sink)->bound->consumer, memory_order_relaxed) ==
	       (uintptr_t)pthread_self();
}

static enum evc_status post(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_mailbox *mailbox = evc_mailbox_of(sink);

	if (chain->first == chain->last)
		evc_mailbox_post_one(mailbox, chain->first->lane, chain->first, 1);
	else
		evc_mailbox_push_chain(mailbox, chain, evc_mailbox_push);
	return EVC_OK;
}

const struct evc_mailbox_kind evc_mailbox_kind_private = {
	.needs = EVC_NEEDS_TOKEN, .is_closed = is_closed, .put = put_token, .tell = tell, .raise = raise_blocked,
	.clear = clear_blocked, .is_consumer = is_consumer, .post = post
};

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	return evc_bound_accept(evc_mailbox_of(sink)->bound, chain);
}

static enum evc_status accept_one(struct evc_sink *sink, struct evc_envelope *envelope)
{
	struct evc_mailbox *mailbox = evc_mailbox_of(sink);

	if (evc_unlikely(evc_mailbox_is_closed(mailbox)))
		return EVC_CLOSED;
	if (evc_unlikely(evc_bound_admit(mailbox->bound, 1) == 0)) {
		bool is_admitted;
		uint64_t end = 0;
		/* Nobody asks, and a dispatch around this one, whose post runs user code, keeps its counts. */
		struct evc_thread_record *record = evc_thread_record_current;
		struct evc_overflow_counts counts = record->overflow;
		enum evc_status status = evc_bound_overflow(mailbox->bound, envelope, &end, &is_admitted);

		record->overflow = counts;
		if (status == EVC_FULL)
			atomic_fetch_add_explicit(&mailbox->bound->refused, 1, memory_order_relaxed);
		if (!is_admitted)
			return status;
	}
	evc_mailbox_post_one(mailbox, envelope->lane, envelope, 1);
	return EVC_OK;
}

/* The way in for unbounded subscriptions: a post without an admission, whose envelopes have no place. */

static struct evc_mailbox *mailbox_of_unbounded(struct evc_sink *sink)
{
	return evc_mailbox_of(evc_container_of(sink, struct evc_bound, unbounded)->mailbox);
}

static void set_exempt(const struct evc_chain *chain, uint8_t mark)
{
	struct evc_envelope *envelope = chain->first;

	for (uint32_t i = 0; i < chain->count; i++, envelope = evc_slot_next(envelope))
		envelope->flags = (uint8_t)((envelope->flags & ~EVC_ENVELOPE_EXEMPT) | mark);
}

static enum evc_status accept_unbounded(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_mailbox *mailbox = mailbox_of_unbounded(sink);
	enum evc_status status;

	set_exempt(chain, EVC_ENVELOPE_EXEMPT);
	status = evc_mailbox_accept(&mailbox->sink, chain);
	if (evc_unlikely(status != EVC_OK))
		/* A balancer posts the chain to another mailbox, where it takes places. */
		set_exempt(chain, 0);
	return status;
}

struct evc_sink *evc_mailbox_way_in(struct evc_mailbox *mailbox, const struct evc_chain *chain)
{
	struct evc_sink *unbounded = &mailbox->bound->unbounded;
	struct evc_envelope *envelope = chain->first;
	uint32_t exempt = 0;

	for (uint32_t i = 0; i < chain->count; i++, envelope = evc_slot_next(envelope))
		exempt += envelope->subscription->sink == unbounded;
	if (exempt == 0)
		return &mailbox->sink;
	return exempt == chain->count ? unbounded : NULL;
}

static void retain_unbounded(struct evc_sink *sink)
{
	evc_mailbox_retain(mailbox_of_unbounded(sink));
}

static void release_unbounded(struct evc_sink *sink)
{
	evc_mailbox_release(mailbox_of_unbounded(sink));
}

bool evc_mailbox_bound_open(struct evc_mailbox *mailbox, const struct evc_mailbox_options *options)
{
	if (options->capacity == 0)
		return true;
	mailbox->bound = evc_bound_create(options->capacity, options->overflow, options->block_ns,
					  &evc_mailbox_kind_private, &mailbox->sink);
	if (mailbox->bound == NULL)
		return false;
	mailbox->displaces = mailbox->bound->lanes != NULL;
	mailbox->sink.accept = accept;
	/* A post that may need memory is a chain. */
	mailbox->sink.accept_one = mailbox->displaces ? NULL : accept_one;
	mailbox->sink.takes_batches = false;
	mailbox->sink.needs = mailbox->displaces ? EVC_NEEDS_SEGMENT : 0;
	mailbox->bound->unbounded = (struct evc_sink){
		accept_unbounded, retain_unbounded, release_unbounded, false, 0, NULL, NULL, NULL,
	};
	return true;
}

/* EVC_OVERFLOW_DROP_OLDEST: events wait in the lanes of the bound, from where the consumer takes as a worker does. */

struct evc_envelope *evc_mailbox_take_displaceable(struct evc_mailbox *mailbox, unsigned limit)
{
	struct evc_envelope *envelope = evc_shared_lanes_take(mailbox->bound->lanes, limit);

	if (envelope == NULL)
		return NULL;
	/*
	 * Counted as if it had come from the inbox, so that the inbox's depth stays what it is. Not by
	 * evc_mailbox_count_left: after the mailbox has ended several threads do this. Release, pairs with posted_to: who
	 * sees it come sees that it has left.
	 */
	atomic_fetch_add_explicit(&mailbox->left[envelope->lane], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&mailbox->lists[envelope->lane].drained, 1, memory_order_release);
	/* T1. Release, as evc_bound_count_taken. */
	atomic_fetch_add_explicit(&mailbox->bound->taken, 1, memory_order_release);
	return envelope;
}
#endif
