/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* The producer's side of a bound: admission, the overflow policies, and parts of chains. */
#include "mailbox/bound.h"
#include "memory/envelope.h"

/* Ends an event that the mailbox has accepted: the new one, or one that is displaced in its favour. */
static void drop(struct evc_bound *bound, struct evc_envelope *envelope, bool is_new)
{
	struct evc_thread_record *record = evc_thread_record_current;
	/* It lives as long as the mailbox. */
	struct evc_subscription *subscription = envelope->subscription;
	bool was_promised = !is_new && (envelope->flags & EVC_ENVELOPE_PROMISED);

	atomic_fetch_add_explicit(&bound->overflowed, 1, memory_order_relaxed);
	/*
	 * A thread that has never dispatched has nobody to report to. Before the user's code, which may end the record; what
	 * it dispatches is not counted here.
	 */
	if (record != NULL)
		*(is_new ? &record->overflow.dropped : &record->overflow.displaced) += 1;
	evc_envelope_release(envelope, false);
	if (was_promised)
		evc_subscription_lose(subscription);
}

enum evc_status evc_bound_overflow(struct evc_bound *bound, struct evc_envelope *envelope, uint64_t *end,
				   bool *is_admitted)
{
	enum evc_status status = EVC_FULL;

	*is_admitted = false;
	switch (bound->policy) {
	case EVC_OVERFLOW_DROP_NEWEST:
		drop(bound, envelope, true);
		return EVC_OK;
	case EVC_OVERFLOW_BLOCK:
		/* Nobody else would free a place. */
		if (bound->how->is_consumer(bound->mailbox))
			break;
		status = evc_bound_wait(bound, end);
		*is_admitted = status == EVC_OK;
		break;
	case EVC_OVERFLOW_REFUSE:
	case EVC_OVERFLOW_DROP_OLDEST:
		break;
	}
	return status;
}

/* Ends the rest of a chain of which a part was accepted: it counts as refused. */
static void refuse_rest(struct evc_bound *bound, struct evc_envelope *envelope, uint32_t count)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_chain rest = { envelope, NULL, count, 0 };

	atomic_fetch_add_explicit(&bound->refused, count, memory_order_relaxed);
	/* As in drop. */
	if (record != NULL)
		record->overflow.refused += count;
	evc_chain_end(&rest);
}

/* Posts the first `count` envelopes, which have places, and returns the one behind them by `*next`. */
static enum evc_status post_part(struct evc_bound *bound, struct evc_envelope *first, uint32_t count,
				 struct evc_envelope **next)
{
	struct evc_chain part = { first, first, count, 1u << first->lane };
	enum evc_status status;

	for (uint32_t i = 1; i < count; i++) {
		part.last = evc_slot_next(part.last);
		part.lanes |= 1u << part.last->lane;
	}
	*next = evc_slot_next(part.last);
	evc_slot_set_next(part.last, NULL);
	status = bound->how->post(bound->mailbox, &part);
	if (evc_likely(status == EVC_OK))
		return EVC_OK;
	/* The chain is whole again. */
	evc_bound_give_back(bound, count);
	evc_slot_set_next(part.last, *next);
	*next = first;
	return status;
}

/* Finds a place for an event of this lane. False: there is none. `*victim`: the event that had the place. */
static bool find_place(struct evc_bound *bound, unsigned lane, struct evc_envelope **victim)
{
	*victim = NULL;
	if (evc_likely(evc_bound_admit(bound, 1) > 0))
		return true;
	*victim = evc_shared_lanes_take_last(bound->lanes, lane);
	if (*victim == NULL)
		/* The consumer may have taken all of them meanwhile. */
		return evc_bound_admit_by_look(bound, 1) > 0;
	return true;
}

static void drop_all(struct evc_bound *bound, struct evc_envelope *envelope, bool are_new)
{
	for (struct evc_envelope *next; envelope != NULL; envelope = next) {
		next = evc_slot_next(envelope);
		drop(bound, envelope, are_new);
	}
}

/*
 * Sets the segment aside that one put to any of these lanes may need. Before each put: how many a chain needs depends on
 * what others put between its events.
 */
static bool provide(struct evc_thread_record *record, uint32_t lanes)
{
	return lanes >> EVC_LANE_FIRST_QUEUE == 0 || evc_spares_provide(record, EVC_NEEDS_SEGMENT, 1, false);
}

static enum evc_status accept_displacing(struct evc_bound *bound, const struct evc_chain *chain)
{
	struct evc_thread_record *record = evc_thread_record();
	struct evc_chain dropped = EVC_CHAIN_EMPTY, displaced = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope = chain->first, *next, *victim;

	if (evc_unlikely(record == NULL || !provide(record, chain->lanes)))
		return EVC_OUT_OF_MEMORY;
	for (uint32_t left = chain->count; left > 0; left--, envelope = next) {
		unsigned lane = envelope->lane;

		next = evc_slot_next(envelope);
		/* A part has been accepted: without memory the rest is dropped. */
		if (evc_unlikely(!provide(record, 1u << lane) || !find_place(bound, lane, &victim))) {
			evc_chain_append(&dropped, envelope);
			continue;
		}
		evc_slot_set_next(envelope, NULL);
		evc_shared_lanes_put(bound->lanes, lane, envelope, 1);
		if (evc_unlikely(victim != NULL))
			evc_chain_append(&displaced, victim);
	}
	/* Behind all puts: a wake and the end of a payload are user code, whose own posts may use up what was set aside. */
	for (uint32_t lanes = chain->lanes; lanes != 0; lanes &= lanes - 1)
		bound->how->tell(bound->mailbox, (unsigned)__builtin_ctz(lanes));
	drop_all(bound, dropped.first, true);
	drop_all(bound, displaced.first, false);
	return EVC_OK;
}

enum evc_status evc_bound_accept(struct evc_bound *bound, const struct evc_chain *chain)
{
	struct evc_envelope *envelope = chain->first, *next = NULL;
	uint32_t left = chain->count;
	enum evc_status status;
	uint64_t end = 0;

	if (evc_unlikely(envelope == NULL))
		return EVC_INVALID_ARGUMENT;
	if (evc_unlikely(bound->how->is_closed(bound->mailbox)))
		return EVC_CLOSED;
	if (bound->lanes != NULL)
		return accept_displacing(bound, chain);
	while (left > 0) {
		uint32_t admitted = evc_bound_admit(bound, left), done = 1;

		if (evc_likely(admitted > 0)) {
			status = post_part(bound, envelope, admitted, &next);
			done = admitted;
		} else {
			bool is_admitted;

			next = evc_slot_next(envelope);
			status = evc_bound_overflow(bound, envelope, &end, &is_admitted);
			if (is_admitted)
				status = post_part(bound, envelope, 1, &next);
		}
		if (evc_unlikely(status != EVC_OK)) {
			if (left < chain->count) {
				refuse_rest(bound, envelope, left);
				return EVC_OK;
			}
			if (status == EVC_FULL)
				atomic_fetch_add_explicit(&bound->refused, left, memory_order_relaxed);
			return status;
		}
		left -= done;
		envelope = next;
	}
	return EVC_OK;
}
#endif
