/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* The producer's side of a mailbox. P1 to P3 are the steps in mailbox_private.h. */
#include "mailbox/mailbox_own.h"

#include "eventcore/realtime.h"

/* P3: skipped if the alarm is up, since it will be cleared by a later C4. */
static inline void raise_alarm(struct evc_mailbox *mailbox, uint32_t attention, uint32_t lanes)
{
	if ((attention & lanes) != 0 &&
	    !(atomic_load_explicit(&mailbox->signal, memory_order_seq_cst) & EVC_SIGNAL_ALARM))
		/* Relaxed: the load before it is what comes before C4 in the single order. */
		atomic_fetch_or_explicit(&mailbox->signal, EVC_SIGNAL_ALARM, memory_order_relaxed);
}

void evc_mailbox_attend_to_post(struct evc_mailbox *mailbox, uint32_t attention, uint32_t lanes)
{
	raise_alarm(mailbox, attention, lanes);
	if (attention & EVC_ATTENTION_SLEEP)
		evc_mailbox_wake_consumer(mailbox);
	if (attention & EVC_ATTENTION_ENDED)
		evc_mailbox_drop_posted(mailbox, NULL);
}

void evc_mailbox_count_posted(struct evc_mailbox *mailbox, unsigned lane, uintptr_t events)
{
	struct evc_inbox *inbox = &mailbox->inboxes[lane >= EVC_LANE_FIRST_QUEUE];

	/* Release, pairs with evc_mailbox_depths: they were subtracted from the head's count before. */
	atomic_fetch_add_explicit(&inbox->posted[lane % EVC_LANE_FIRST_QUEUE],
				  (uint32_t)(events / (EVC_HEAD_COUNT + 1)), memory_order_release);
}

/* As evc_mailbox_push without what may wait: nobody sleeps, and what comes late is freed with the rest. */
static void try_push(struct evc_mailbox *mailbox, unsigned lane, struct evc_envelope *newest,
		     struct evc_envelope *oldest, uint32_t events)
{
	evc_mailbox_put(mailbox, lane, newest, oldest, events);
	/* P2, P3. */
	raise_alarm(mailbox, atomic_load_explicit(&mailbox->attention, memory_order_seq_cst), 1u << lane);
}

__attribute__((noinline)) void evc_mailbox_push_chain(struct evc_mailbox *mailbox, const struct evc_chain *chain,
						      evc_mailbox_push_part *push)
{
	struct {
		struct evc_envelope *newest, *oldest;
		uint32_t events;
	} parts[EVC_LANE_COUNT];
	struct evc_envelope *envelope = chain->first, *next;
	uint32_t lanes = 0;

	for (; envelope != NULL; envelope = next) {
		unsigned lane = envelope->lane;

		next = evc_slot_next(envelope);
		if ((lanes >> lane) & 1u) {
			evc_slot_set_next(envelope, parts[lane].newest);
		} else {
			lanes |= 1u << lane;
			parts[lane].oldest = envelope;
			parts[lane].events = 0;
		}
		parts[lane].newest = envelope;
		parts[lane].events += envelope->events;
	}
	for (; lanes != 0; lanes &= lanes - 1) {
		unsigned lane = (unsigned)__builtin_ctz(lanes);

		push(mailbox, lane, parts[lane].newest, parts[lane].oldest, parts[lane].events);
	}
}

enum evc_status evc_mailbox_accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_mailbox *mailbox = evc_mailbox_of(sink);
	struct evc_envelope *first = chain->first;

	if (evc_unlikely(first == NULL))
		return EVC_INVALID_ARGUMENT;
	if (evc_unlikely(evc_mailbox_is_closed(mailbox)))
		return EVC_CLOSED;
	if (evc_likely(first == chain->last))
		evc_mailbox_post_one(mailbox, first->lane, first, first->events);
	else
		evc_mailbox_push_chain(mailbox, chain, evc_mailbox_push);
	return EVC_OK;
}

enum evc_status evc_mailbox_post(struct evc_mailbox *mailbox, const struct evc_chain *chain)
{
	struct evc_sink *sink;

	if (mailbox == NULL || chain == NULL)
		return EVC_INVALID_ARGUMENT;
	sink = evc_likely(mailbox->bound == NULL) ? &mailbox->sink : evc_mailbox_way_in(mailbox, chain);
	return sink != NULL ? evc_sink_post(sink, chain) : EVC_INVALID_ARGUMENT;
}

enum evc_status evc_mailbox_try_accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_mailbox *mailbox = evc_mailbox_of(sink);
	struct evc_envelope *first = chain->first;

	if (first == NULL)
		return EVC_INVALID_ARGUMENT;
	if (evc_mailbox_is_closed(mailbox))
		return EVC_CLOSED;
	/* Through the inbox also on the consumer's own thread: to append may mean to make a batch. */
	if (first == chain->last)
		try_push(mailbox, first->lane, first, first, first->events);
	else
		evc_mailbox_push_chain(mailbox, chain, try_push);
	return EVC_OK;
}

enum evc_status evc_try_post(struct evc_mailbox *mailbox, const struct evc_chain *chain)
{
	if (mailbox == NULL || chain == NULL)
		return EVC_INVALID_ARGUMENT;
	return mailbox->options.polled ? evc_mailbox_try_accept(&mailbox->sink, chain) : EVC_UNSUPPORTED;
}

enum evc_status evc_mailbox_accept_one(struct evc_sink *sink, struct evc_envelope *envelope)
{
	struct evc_mailbox *mailbox = evc_mailbox_of(sink);

	if (evc_unlikely(evc_mailbox_is_closed(mailbox)))
		return EVC_CLOSED;
	/* 1 event, by the contract of accept_one. Not read from the envelope, whose line was just written. */
	evc_mailbox_post_one(mailbox, envelope->lane, envelope, 1);
	return EVC_OK;
}
#endif
