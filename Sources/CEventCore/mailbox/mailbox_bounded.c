/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/* The producer's side of a bounded mailbox: admission (bound.h), then a post as to any other mailbox. */
#include "mailbox/mailbox_own.h"
#include "memory/spares.h"

static uint64_t taken(void *owner)
{
	struct evc_mailbox *mailbox = owner;
	uint64_t sum = 0;

	/* Acquire, pairs with evc_mailbox_count_taken; seq_cst: B2. */
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		sum += atomic_load_explicit(&mailbox->left[lane], memory_order_seq_cst);
	return sum - atomic_load_explicit(&mailbox->exempt, memory_order_relaxed);
}

/* B1. Wakes nobody: if B2 finds the mailbox full, its consumer has something to do. */
static void raise_blocked(void *owner)
{
	struct evc_mailbox *mailbox = owner;

	atomic_fetch_or_explicit(&mailbox->signal, EVC_SIGNAL_BLOCKED, memory_order_seq_cst);
}

static void clear_blocked(void *owner)
{
	struct evc_mailbox *mailbox = owner;

	atomic_fetch_and_explicit(&mailbox->signal, ~EVC_SIGNAL_BLOCKED, memory_order_seq_cst);
}

static bool is_closed(void *owner)
{
	/* Relaxed: as in mailbox_post.c; in evc_bound_wait the mutex orders it. */
	return atomic_load_explicit(&((struct evc_mailbox *)owner)->attention, memory_order_relaxed) &
	       EVC_ATTENTION_CLOSED;
}

void evc_mailbox_unblock(struct evc_mailbox *mailbox, uint64_t places)
{
	struct evc_bound *bound = mailbox->bound;
	uint64_t half = (bound->capacity + 1) / 2;

	if (evc_bound_free(bound) >= (places < half ? places : half))
		(void)evc_bound_begin_round(bound, clear_blocked);
}

void evc_mailbox_drop_by_policy(struct evc_mailbox *mailbox, struct evc_envelope *envelope, bool is_own)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_overflow_counts counts = record != NULL ? record->overflow : (struct evc_overflow_counts){ 0 };

	atomic_fetch_add_explicit(&mailbox->bound->overflowed, 1, memory_order_relaxed);
	/* User code, whose own dispatches are not counted here. */
	evc_envelope_release(envelope, false);
	/* What was posted was made on some thread; this one may never have dispatched, and reports nothing then. */
	if (record == NULL)
		return;
	record->overflow = counts;
	*(is_own ? &record->overflow.dropped : &record->overflow.displaced) += 1;
}

/* An event found no place. EVC_FULL: it is the caller's; `*is_admitted`: post it. */
static enum evc_status overflow(struct evc_mailbox *mailbox, struct evc_envelope *envelope, bool *is_admitted)
{
	struct evc_bound *bound = mailbox->bound;
	enum evc_status status = EVC_FULL;

	switch (bound->policy) {
	case EVC_OVERFLOW_REFUSE:
		break;
	case EVC_OVERFLOW_DROP_NEWEST:
		evc_mailbox_drop_by_policy(mailbox, envelope, true);
		return EVC_OK;
	case EVC_OVERFLOW_DROP_OLDEST:
		/* Its posts go another way: mailbox_displace.c. */
		break;
	case EVC_OVERFLOW_BLOCK:
		/* Nobody else would free a place. */
		if (evc_consumed_current == &mailbox->own)
			break;
		status = evc_bound_wait(bound);
		*is_admitted = status == EVC_OK;
	}
	return status;
}

static void count_refused(struct evc_bound *bound, uint32_t events)
{
	atomic_fetch_add_explicit(&bound->refused, events, memory_order_relaxed);
}

static enum evc_status accept_one(struct evc_sink *sink, struct evc_envelope *envelope)
{
	struct evc_mailbox *mailbox = evc_container_of(sink, struct evc_mailbox, sink);

	if (evc_unlikely(is_closed(mailbox)))
		return EVC_CLOSED;
	if (evc_unlikely(evc_bound_admit(mailbox->bound, 1) == 0)) {
		bool is_admitted = false;
		enum evc_status status = overflow(mailbox, envelope, &is_admitted);

		if (status == EVC_FULL)
			count_refused(mailbox->bound, 1);
		if (!is_admitted)
			return status;
	}
	evc_mailbox_post_one(mailbox, envelope->lane, envelope, 1);
	return EVC_OK;
}

/* Ends the rest of a chain of which a part was accepted: it counts as refused. */
static void refuse_rest(struct evc_mailbox *mailbox, struct evc_envelope *envelope, uint32_t count)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_overflow_counts counts = record != NULL ? record->overflow : (struct evc_overflow_counts){ 0 };
	struct evc_chain rest = { envelope, NULL, count, 0 };

	count_refused(mailbox->bound, count);
	evc_chain_end(&rest);
	if (record == NULL)
		return;
	record->overflow = counts;
	record->overflow.refused += count;
}

/* Several envelopes: the first ones that find places are posted together. */
static enum evc_status accept_chain(struct evc_mailbox *mailbox, const struct evc_chain *chain)
{
	struct evc_envelope *envelope = chain->first, *next;
	uint32_t left = chain->count, admitted;

	while (left > 0) {
		admitted = evc_bound_admit(mailbox->bound, left);
		if (admitted > 0) {
			struct evc_chain part = { envelope, envelope, admitted, 0 };

			for (uint32_t i = 1; i < admitted; i++)
				part.last = evc_slot_next(part.last);
			next = evc_slot_next(part.last);
			evc_slot_set_next(part.last, NULL);
			evc_mailbox_push_chain(mailbox, &part);
			left -= admitted;
		} else {
			bool is_admitted = false;
			enum evc_status status;

			next = evc_slot_next(envelope);
			status = overflow(mailbox, envelope, &is_admitted);
			if (status != EVC_OK) {
				if (left < chain->count)
					refuse_rest(mailbox, envelope, left);
				else if (status == EVC_FULL)
					count_refused(mailbox->bound, left);
				return left < chain->count ? EVC_OK : status;
			}
			if (is_admitted)
				evc_mailbox_post_one(mailbox, envelope->lane, envelope, 1);
			left--;
		}
		envelope = next;
	}
	return EVC_OK;
}

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_mailbox *mailbox = evc_container_of(sink, struct evc_mailbox, sink);

	if (evc_unlikely(chain->first == NULL))
		return EVC_INVALID_ARGUMENT;
	if (evc_likely(chain->first == chain->last))
		return accept_one(sink, chain->first);
	if (evc_unlikely(is_closed(mailbox)))
		return EVC_CLOSED;
	return accept_chain(mailbox, chain);
}

bool evc_mailbox_bound_open(struct evc_mailbox *mailbox)
{
	struct evc_bound *bound = evc_bound_create(&mailbox->options, mailbox);

	if (bound == NULL)
		return false;
	bound->taken = taken;
	bound->raise = raise_blocked;
	bound->is_closed = is_closed;
	mailbox->bound = bound;
	mailbox->sink.takes_batches = false;
	mailbox->displaces = bound->lanes != NULL;
	if (mailbox->displaces) {
		mailbox->sink.accept = evc_mailbox_accept_displacing;
		mailbox->sink.accept_one = NULL;
		mailbox->sink.needs = EVC_NEEDS_SEGMENT;
	} else {
		mailbox->sink.accept = accept;
		mailbox->sink.accept_one = accept_one;
	}
	return true;
}
#endif
