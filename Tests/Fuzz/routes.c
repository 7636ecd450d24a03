/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A router beside a model of it: who is subscribed, with which generation, and what an observer says. Memory runs out
 * now and then.
 */
#include "routes.h"

/* The first key of a crowd. */
enum { CROWD = 100 };

struct evc_router *routes;
struct observed observed;

static uint64_t read_route_time(void *context)
{
	CHECK(context == &observed);
	return observed.now;
}

static void observe(void *context, uint64_t key, uint32_t count, bool timed, struct evc_note *note)
{
	CHECK(context == &observed && (key == observed.key || key >= CROWD));
	CHECK(note->time == 0 && note->tally == NULL && !note->marks);
	observed.is_told = true;
	observed.events = count;
	observed.time = timed || draw() % 4 == 0 ? ++observed.now : 0;
	observed.marks = draw() % 2 == 0;
	*note = (struct evc_note){ .time = observed.time, .marks = observed.marks };
	if (observed.counts) {
		observed.tally.left = draw() % 4;
		note->tally = &observed.tally;
	}
}

void forget_count(void)
{
	observed.counted = observed.tally.events;
	memset(observed.must_tell, 0, sizeof(observed.must_tell));
}

static void forget_tallies(void)
{
	evc_thread_forget_tallies();
	for (unsigned key = 1; key <= ROUTE_KEYS; key++)
		observed.must_tell[key] = true;
}

static bool make_routes(void)
{
	const struct evc_clock clock = { &observed, rarely() ? NULL : read_route_time };

	if (routes != NULL)
		return true;
	if (evc_router_create(&routes) != EVC_OK)
		return false;
	CHECK(evc_router_version(routes) != NULL);
	if (clock.now != NULL) {
		observed.now = 1;
		CHECK(evc_router_set_clock(routes, &clock) == EVC_OK);
		return true;
	}
	CHECK(evc_router_set_clock(routes, &clock) == EVC_INVALID_ARGUMENT);
	evc_router_destroy(routes);
	routes = NULL;
	return false;
}

uint32_t subscribed(unsigned key)
{
	uint32_t count = 0;

	for (unsigned at = 0; at < SINKS; at++)
		count += sinks[at].keys[key].is_subscribed;
	return count;
}

static uint32_t some_generation(void)
{
	return rarely() ? EVC_GENERATION_MAX + draw() % 2 : draw();
}

static void subscribe(unsigned at, unsigned key)
{
	const unsigned other = draw() % (SINKS + 1);
	const struct evc_subscription *raised = other < SINKS ? sinks[other].keys[key].made : NULL;
	const uint32_t generation = some_generation(), raised_generation = some_generation();
	const bool timed = draw() % 4 == 0, raises = draw() % 2 == 0;
	enum evc_status status, expected = EVC_OK;

	if (generation > EVC_GENERATION_MAX ||
	    (raises && (raised_generation > EVC_GENERATION_MAX || raised == sinks[at].keys[key].made)))
		expected = EVC_INVALID_ARGUMENT;
	status = raises ? evc_router_subscribe_raising(routes, key, sinks[at].keys[key].made, generation, timed, raised,
						       raised_generation)
			: evc_router_subscribe(routes, key, sinks[at].keys[key].made, generation, timed);
	CHECK(is_status(status, expected));
	CHECK(evc_router_subscribe_raising(routes, rarely() ? 0 : key, rarely() ? sinks[at].keys[key].made : NULL, 1,
					   timed, sinks[at].keys[key].made, 1) == EVC_INVALID_ARGUMENT);
	if (status != EVC_OK)
		return;
	sinks[at].keys[key].is_subscribed = true;
	sinks[at].keys[key].is_timed = timed;
	sinks[at].keys[key].generation = generation;
	if (raises && raised != NULL)
		sinks[other].keys[key].generation = raised_generation;
}

static void unsubscribe(unsigned at, unsigned key)
{
	const enum evc_status status = evc_router_unsubscribe(routes, key, sinks[at].keys[key].made);

	if (memory_lacked() && status == EVC_OUT_OF_MEMORY)
		return;
	CHECK(status == (sinks[at].keys[key].is_subscribed ? EVC_OK : EVC_NOT_FOUND));
	sinks[at].keys[key].is_subscribed = false;
}

static void set_observer(void)
{
	const struct evc_observer observer = { &observed, rarely() ? NULL : observe };
	const bool sets = draw() % 4 != 0;
	enum evc_status status = evc_router_set_observer(routes, sets ? &observer : NULL);

	/* Some keys may have the one before then. */
	while (memory_lacked() && status == EVC_OUT_OF_MEMORY)
		status = evc_router_set_observer(routes, sets ? &observer : NULL);
	CHECK(status == (sets && observer.note == NULL ? EVC_INVALID_ARGUMENT : EVC_OK));
	if (status == EVC_OK)
		observed.is_set = sets;
	observed.counts = draw() % 2 == 0;
	forget_tallies();
}

static void receive(unsigned at)
{
	struct evc_envelope *envelope;
	unsigned key;

	if (sinks[at].is_busy)
		return;
	sinks[at].is_busy = true;
	if (at != BATCHED && draw() % 2 == 0) {
		if (evc_mailbox_take(sinks[at].made, &envelope) == EVC_OK) {
			for (key = 1; sinks[at].keys[key].made != evc_envelope_subscription(envelope); key++)
				CHECK(key < ROUTE_KEYS);
			check_arrival(at, key, evc_envelope_payload(envelope), envelope);
			evc_mailbox_recycle(sinks[at].made, envelope, false);
		}
	} else {
		(void)!evc_mailbox_pump(sinks[at].made, 1 + draw() % 16);
	}
	sinks[at].is_busy = false;
}

/* More keys than a first table or a thread's cache has. */
static void crowd(unsigned at)
{
	const uint64_t first = CROWD + 16 * (draw() % 4);
	struct evc_dispatch dispatch;

	for (uint64_t key = first; key < first + 16; key++) {
		struct evc_subscription *subscription = sinks[at].keys[1].made;
		enum evc_status status = evc_router_subscribe(routes, key, subscription, 1, false);

		CHECK(status == EVC_OK || memory_lacked());
		if (evc_dispatch_begin(routes, key, EVC_LANE_QUEUE_LOW, 8, 8, 1, &dispatch) == EVC_OK) {
			CHECK(dispatch.receivers == (status == EVC_OK));
			evc_dispatch_abandon(&dispatch);
		}
		while (evc_router_unsubscribe(routes, key, subscription) == EVC_OUT_OF_MEMORY)
			CHECK(memory_lacked());
		CHECK(evc_router_count(routes, key) == 0);
	}
	forget_count();
}

static void check_counts(void)
{
	const struct evc_clock clock = { &observed, read_route_time };
	struct evc_mailbox_statistics statistics;
	uint64_t superseded = 0;

	if (subscribed(1) + subscribed(2) > 0)
		CHECK(evc_router_set_clock(routes, &clock) == EVC_NOT_PERMITTED);
	for (unsigned key = 1; key <= ROUTE_KEYS; key++) {
		CHECK(evc_router_count(routes, key) == subscribed(key));
		CHECK(evc_router_count(routes, key + ROUTE_KEYS) == 0);
		superseded += evc_latest_subscription_superseded(sinks[LATEST].keys[key].made);
	}
	evc_mailbox_read_statistics(sinks[LATEST].made, &statistics);
	CHECK(statistics.superseded == superseded && statistics.waiting <= 1 + 3);
	for (unsigned at = 0; at < SINKS; at++) {
		CHECK(evc_mailbox_consumed(sinks[at].made) != NULL);
		evc_mailbox_read_statistics(sinks[at].made, &statistics);
		CHECK(sinks[at].is_busy ||
		      statistics.accepted == statistics.taken + statistics.dropped + statistics.superseded +
						     statistics.overflowed + statistics.waiting);
	}
}

void call_routes(unsigned choice)
{
	const unsigned at = draw() % SINKS, key = 1 + draw() % ROUTE_KEYS;

	/* What a mailbox that closed or refused did not get stays expected; nothing is reused within an input. */
	if (event_count > EVENTS - 32)
		return;
	if (draw() % 8 == 0)
		lack_memory(draw());
	observed.key = key;
	for (unsigned i = 0; i < SINKS; i++)
		if (!make_sink(i))
			goto lacking;
	if (!make_routes())
		goto lacking;
	switch (choice) {
	case 0:
		subscribe(at, key);
		break;
	case 1:
		unsubscribe(at, key);
		break;
	case 2:
		set_observer();
		break;
	case 3:
		observed.now += draw();
		if (draw() % 4 == 0)
			forget_tallies();
		CHECK(evc_thread_set_origin(observed.origin) == observed.origin);
		(void)evc_thread_set_origin(observed.origin = draw() % 3);
		break;
	case 4:
		send_one(key);
		break;
	case 5:
		send_by_sink(at, key);
		break;
	case 6:
		have_memory();
		receive(at);
		break;
	case 7:
		check_counts();
		if (rarely()) {
			evc_mailbox_close(sinks[at].made);
			sinks[at].is_closed = true;
		}
		break;
	case 8:
		send_inside(at, key);
		break;
	case 9:
		if (draw() % 8 == 0)
			crowd(at);
		break;
	default:
		send_some(key);
	}
lacking:
	have_memory();
}

/* What is left arrives, each event once (D4). */
static void drain(unsigned at)
{
	(void)!evc_mailbox_pump(sinks[at].made, EVC_FOREVER);
	for (unsigned i = 0; i < event_count; i++)
		CHECK(!events[i].at[at].is_coming || sinks[at].is_closed || at == BOUNDED || at == LATEST);
}

void end_routes(void)
{
	for (unsigned at = 0; at < SINKS; at++)
		if (sinks[at].made != NULL)
			drain(at);
	evc_router_destroy(routes);
	routes = NULL;
	for (unsigned at = 0; at < SINKS; at++) {
		for (unsigned key = 1; at == LATEST && key <= ROUTE_KEYS; key++)
			evc_latest_subscription_release(sinks[at].keys[key].made);
		if (sinks[at].made != NULL) {
			evc_mailbox_retain(sinks[at].made);
			evc_mailbox_release(sinks[at].made);
		}
		evc_mailbox_release(sinks[at].made);
	}
	(void)evc_thread_set_origin(0);
	evc_thread_forget_tallies();
	/* All references are gone, but a thread's of the routes that it has cached. */
	CHECK(evc_unregister_thread() == EVC_OK);
	while (evc_reclaim(EVC_FOREVER) != EVC_OK)
		;
	CHECK(kept == 0);
	memset(sinks, 0, sizeof(sinks));
	memset(&observed, 0, sizeof(observed));
	event_count = 0;
}
