/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The ways to dispatch to the router of routes.c, and what each of them says. */
#include "routes.h"

/* What the mailboxes have accepted and refused. */
static void count(uint64_t *accepted, uint64_t *refused)
{
	struct evc_mailbox_statistics statistics;

	*accepted = *refused = 0;
	for (unsigned at = 0; at < SINKS; at++) {
		if (sinks[at].made == NULL)
			continue;
		evc_mailbox_read_statistics(sinks[at].made, &statistics);
		*accepted += statistics.accepted;
		*refused += statistics.refused;
	}
}

static struct {
	const struct evc_subscription *skipped;
	uint32_t calls, events;
	struct evc_dispatch_outcome sum;
} noted;

static void take_note(void *context, const struct evc_subscription *subscription,
		      const struct evc_dispatch_outcome *outcome)
{
	const uint32_t all = outcome->accepted + outcome->refused + outcome->dropped + outcome->closed;

	CHECK(context == &noted && subscription != noted.skipped && all == noted.events && outcome->displaced == 0);
	noted.calls++;
	noted.sum.accepted += outcome->accepted;
	noted.sum.dropped += outcome->dropped;
	noted.sum.refused += outcome->refused;
	noted.sum.closed += outcome->closed;
}

/* Enters events into the model, as of now, with what the observer was asked since `observed.is_told` was unset. */
static void expect(unsigned key, enum evc_lane lane, uint32_t of, const struct evc_subscription *skipped)
{
	const uint64_t untold = observed.now;
	bool timed = false;

	for (unsigned at = 0; at < SINKS; at++)
		timed |= sinks[at].keys[key].is_subscribed && sinks[at].keys[key].is_timed;
	CHECK(!observed.is_told || (observed.is_set && observed.events == of));
	CHECK(observed.is_told || !observed.is_set || observed.counts || subscribed(key) == 0);
	if (observed.is_set && subscribed(key) > 0) {
		CHECK(observed.is_told || !observed.must_tell[key]);
		observed.must_tell[key] = false;
		observed.counted += observed.is_told ? 0 : of;
	}
	CHECK(observed.tally.events == observed.counted);
	for (uint32_t i = 0; i < of; i++, event_count++) {
		events[event_count].key = key;
		events[event_count].lane = lane;
		events[event_count].is_marked = observed.is_told && observed.marks;
		events[event_count].time = observed.is_told ? observed.time : timed ? untold : 0;
		for (unsigned at = 0; at < SINKS; at++)
			events[event_count].at[at] = (struct expected){
				sinks[at].keys[key].generation,
				sinks[at].keys[key].is_subscribed && sinks[at].keys[key].made != skipped,
			};
	}
}

static void commit(struct evc_dispatch *dispatch, uint32_t receivers, uint32_t of)
{
	struct evc_dispatch_outcome outcome;
	uint64_t accepted, refused, accepted_after, refused_after;
	uint32_t got;

	has_refused = false;
	count(&accepted, &refused);
	switch (draw() % 3) {
	case 0:
		got = evc_dispatch_commit(dispatch);
		break;
	case 1:
		got = evc_dispatch_commit_reporting(dispatch, &outcome);
		CHECK(got == outcome.accepted + outcome.dropped && outcome.displaced == 0);
		CHECK(got + outcome.refused + outcome.closed == receivers * of);
		break;
	default:
		noted.calls = 0;
		noted.events = of;
		noted.sum = (struct evc_dispatch_outcome){ 0 };
		got = evc_dispatch_commit_each(dispatch, take_note, &noted);
		CHECK(noted.calls == receivers && got == noted.sum.accepted + noted.sum.dropped);
	}
	count(&accepted_after, &refused_after);
	/* What a conflated subscription had no memory for, for its key, counts as dropped. */
	if (!memory_lacked() && !has_refused)
		CHECK(accepted_after - accepted == got && got + refused_after - refused <= receivers * of);
}

void send_some(unsigned key)
{
	const enum evc_lane lane = (enum evc_lane)(draw() % EVC_LANE_COUNT);
	const size_t size = (const size_t[]){ 8, 24, 40, 100, LARGEST }[draw() % 5];
	const uint32_t of = 1 + draw() % 8, first = event_count;
	const bool together = draw() % 2 == 0;
	uint32_t receivers = subscribed(key);
	struct evc_envelope *envelope;
	struct evc_dispatch dispatch;
	enum evc_status status;

	observed.is_told = false;
	status = (together ? evc_dispatch_begin_batch : evc_dispatch_begin)(routes, key, lane, size, 8, of, &dispatch);
	CHECK(is_status(status, EVC_OK));
	if (status != EVC_OK) {
		forget_count();
		return;
	}
	CHECK(dispatch.receivers == receivers && (!dispatch.shared || dispatch.payloads == (receivers > 0 ? of : 0)));
	noted.skipped = NULL;
	if (draw() % 4 == 0) {
		const unsigned at = draw() % SINKS;
		const bool is_receiver = sinks[at].keys[key].is_subscribed && dispatch.array == NULL;

		CHECK(evc_dispatch_skip(&dispatch, sinks[at].keys[key].made) == is_receiver);
		CHECK(!is_receiver || !evc_dispatch_skip(&dispatch, sinks[at].keys[key].made));
		noted.skipped = is_receiver ? sinks[at].keys[key].made : NULL;
		receivers -= is_receiver;
	}
	CHECK(dispatch.receivers == receivers);
	if (rarely()) {
		evc_dispatch_abandon(&dispatch);
		forget_count();
		return;
	}
	CHECK(dispatch.payloads ==
	      (receivers == 0 ? 0 : dispatch.shared || dispatch.array != NULL ? of : of * receivers));
	expect(key, lane, of, noted.skipped);
	envelope = dispatch.first;
	for (uint32_t i = 0; i < dispatch.payloads; i++) {
		void *place = dispatch.array != NULL ? (char *)dispatch.array + i * ((size + 7) / 8 * 8)
						     : evc_envelope_payload(envelope);

		write_number(key, place, first + i % of);
		if (dispatch.array == NULL)
			envelope = evc_dispatch_next(envelope);
	}
	commit(&dispatch, receivers, of);
}

void send_one(unsigned key)
{
	const enum evc_lane lane = (enum evc_lane)(draw() % EVC_LANE_COUNT);
	const uint32_t receivers = subscribed(key);
	unsigned char bytes[40] = { 0 };
	uint32_t got = 0;
	void *place;

	observed.is_told = false;
	if (key != 1 && draw() % 2 == 0) {
		const size_t size = draw() % 2 == 0 ? 8 : sizeof(bytes);

		write_number(key, bytes, event_count);
		/* Before the call, whose receivers cannot look before it returns. */
		if (evc_dispatch_bytes(routes, key, lane, bytes, size, 8, &got) != EVC_OK) {
			CHECK(memory_lacked());
			forget_count();
			return;
		}
		CHECK(got <= receivers);
		expect(key, lane, 1, NULL);
		return;
	}
	place = evc_dispatch_begin_one(routes, key, lane, 8, 8);
	if (place == NULL)
		return;
	CHECK(receivers == 1);
	write_number(key, place, event_count);
	expect(key, lane, 1, NULL);
	CHECK(evc_dispatch_commit_one(place) <= 1);
}

void send_by_sink(unsigned at, unsigned key)
{
	struct evc_sink *sink = evc_mailbox_sink(sinks[at].made);
	struct evc_subscription *subscription = sinks[at].keys[key].made;
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope;
	enum evc_status status;

	/* A sink in front of the mailbox has those of a latest-only one. */
	if (at == LATEST ||
	    evc_envelope_create(subscription, EVC_LANE_STACK_HIGH, draw() % 2 == 0 ? 8 : 100, 8, &envelope) != EVC_OK)
		return;
	CHECK(evc_envelope_time(envelope) == 0 && evc_envelope_generation(envelope) == 0 &&
	      !evc_envelope_is_marked(envelope) && evc_envelope_subscription(envelope) == subscription);
	write_number(key, evc_envelope_payload(envelope), event_count);
	events[event_count] = (struct event){
		.key = key,
		.lane = EVC_LANE_STACK_HIGH,
		.time = draw(),
	};
	events[event_count].at[at].is_coming = true;
	evc_envelope_set_time(envelope, events[event_count++].time);
	evc_chain_append(&chain, envelope);
	CHECK(sink->takes_batches == (at == BATCHED));
	sink->retain(sink);
	status = draw() % 2 == 0 && sink->accept_one != NULL ? sink->accept_one(sink, envelope)
							     : sink->accept(sink, &chain);
	sink->release(sink);
	CHECK(status == EVC_OK || (at == BOUNDED && status == EVC_FULL) ||
	      (sinks[at].is_closed && status == EVC_CLOSED));
	if (status != EVC_OK)
		evc_envelope_release(envelope, false);
}

void send_inside(unsigned at, unsigned key)
{
	struct evc_mailbox *before;

	if (sinks[at].is_busy)
		return;
	before = evc_mailbox_enter(sinks[at].made);
	for (unsigned i = 1 + draw() % 8; i > 0; i--)
		send_one(key);
	evc_mailbox_leave(before);
}
