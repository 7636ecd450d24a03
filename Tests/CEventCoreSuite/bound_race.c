/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Bounded mailboxes with several producers: under each overflow policy all events are accounted for, each
 * producer's are delivered in its order, no more wait than may, and whoever waits for a place is woken.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/mailbox_private.h"
#include "suite.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define PRODUCERS 3u
#define EVENTS SUITE_SCALE(100000u)

struct race {
	struct suite_receiver receiver;
	struct evc_router *router;
	uint64_t capacity, seed;
	/* Of the handler: the last number of each producer, and the events that came. */
	uint64_t last[PRODUCERS];
	_Atomic uint64_t delivered, drops;
	bool backwards;
	/* Set by the producers. */
	_Atomic uint64_t accepted, refused;
	_Atomic bool too_many;
};

static bool record(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct race *race = context;
	uint64_t value, *last;

	(void)envelope, (void)owned;
	memcpy(&value, payload, sizeof(value));
	last = &race->last[value >> 32];
	if ((uint32_t)value <= *last)
		race->backwards = true;
	*last = (uint32_t)value;
	atomic_fetch_add_explicit(&race->delivered, 1, memory_order_release);
	return true;
}

static void drop(void *context, void *payload)
{
	(void)payload;
	atomic_fetch_add_explicit(&((struct race *)context)->drops, 1, memory_order_relaxed);
}

struct producer {
	struct race *race;
	uint64_t index, events;
	pthread_t thread;
};

static void *produce(void *context)
{
	struct producer *producer = context;
	struct race *race = producer->race;
	uint64_t accepted = 0, random = race->seed + producer->index;

	for (uint64_t number = 1; number <= producer->events; number++) {
		uint64_t value = producer->index << 32 | number;
		uint32_t receivers = 0;

		if (evc_dispatch_bytes(race->router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value),
				       _Alignof(uint64_t), &receivers) != EVC_OK)
			return NULL;
		accepted += receivers;
		if (suite_random(&random) % 1000 == 0) {
			struct evc_mailbox_statistics statistics;

			evc_mailbox_read_statistics(race->receiver.mailbox, &statistics);
			if (statistics.high_water > race->capacity)
				atomic_store(&race->too_many, true);
		}
	}
	atomic_fetch_add(&race->accepted, accepted);
	atomic_fetch_add(&race->refused, producer->events - accepted);
	return NULL;
}

static void *consume(void *context)
{
	(void)evc_mailbox_run(((struct race *)context)->receiver.mailbox);
	return NULL;
}

static const char *open_race(struct race *race, enum evc_overflow policy, uint64_t capacity, uint64_t block_ns)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = capacity, .overflow = policy, .block_ns = block_ns };
	struct evc_subscription_options subscription = { .size = sizeof(subscription), .context = race, .deliver = record, .drop = drop };

	memset(race, 0, sizeof(*race));
	race->capacity = capacity;
	race->seed = suite_seed();
	EXPECT_NONE(suite_receiver_open(&race->receiver, &options));
	EXPECT_OK(evc_mailbox_add_subscription(race->receiver.mailbox, &subscription, &race->receiver.subscription));
	EXPECT_OK(evc_router_create(&race->router));
	EXPECT_OK(evc_router_subscribe(race->router, 1, race->receiver.subscription, 0, false));
	return NULL;
}

static void start(struct race *race, struct producer producers[PRODUCERS], uint64_t events)
{
	for (uint64_t i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){ race, i, events, 0 };
		pthread_create(&producers[i].thread, NULL, produce, &producers[i]);
	}
}

static const char *close_race(struct race *race)
{
	evc_router_destroy(race->router);
	evc_mailbox_release(race->receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

/* A flood of three producers; `drains` lets the consumer finish. */
static const char *flood(enum evc_overflow policy, uint64_t capacity, uint64_t block_ns, bool drains)
{
	struct evc_mailbox_statistics end;
	struct producer producers[PRODUCERS];
	pthread_t consumer;
	struct race race;
	/* A wait costs a thousand times as much as a post. */
	uint64_t events = policy == EVC_OVERFLOW_BLOCK ? EVENTS / 20 : EVENTS, all = PRODUCERS * events;

	EXPECT_NONE(open_race(&race, policy, capacity, block_ns));
	pthread_create(&consumer, NULL, consume, &race);
	start(&race, producers, events);
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i].thread, NULL);
	if (drains)
		evc_mailbox_close_when_empty(race.receiver.mailbox);
	else
		evc_mailbox_close(race.receiver.mailbox);
	pthread_join(consumer, NULL);
	evc_mailbox_read_statistics(race.receiver.mailbox, &end);
	EXPECT(!race.backwards, "out of order (seed %llu)", (unsigned long long)race.seed);
	EXPECT(!race.too_many && end.high_water <= capacity, "more than %llu waited (seed %llu)",
	       (unsigned long long)capacity, (unsigned long long)race.seed);
	EXPECT_EQUAL(end.accepted, race.accepted, "accepted");
	EXPECT_EQUAL(end.refused, race.refused, "refused");
	EXPECT_EQUAL(race.accepted + race.refused, all, "all events");
	EXPECT_EQUAL(end.taken, race.delivered, "taken");
	EXPECT_EQUAL(end.taken + end.dropped + end.overflowed, race.accepted, "taken, dropped and overflowed");
	EXPECT_EQUAL(end.waiting, 0, "waiting");
	EXPECT_EQUAL(race.drops, all - race.delivered, "payloads ended");
	if (drains)
		EXPECT_EQUAL(end.dropped, 0, "dropped");
	if (policy == EVC_OVERFLOW_DROP_NEWEST || policy == EVC_OVERFLOW_DROP_OLDEST)
		EXPECT_EQUAL(race.refused, 0, "refused");
	if (policy == EVC_OVERFLOW_BLOCK && block_ns == EVC_FOREVER)
		EXPECT_EQUAL(race.refused + end.overflowed, 0, "lost");
	return close_race(&race);
}

static const char *floods(void)
{
	static const uint64_t capacities[] = { 1, 2, 64, 1000 };

	for (unsigned i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		EXPECT_NONE(flood(EVC_OVERFLOW_REFUSE, capacities[i], 0, i % 2 == 0));
		EXPECT_NONE(flood(EVC_OVERFLOW_DROP_NEWEST, capacities[i], 0, i % 2 != 0));
		EXPECT_NONE(flood(EVC_OVERFLOW_DROP_OLDEST, capacities[i], 0, i % 2 == 0));
	}
	return NULL;
}

static const char *blocked_floods(void)
{
	static const uint64_t capacities[] = { 3, 64, 1000 };

	for (unsigned i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		EXPECT_NONE(flood(EVC_OVERFLOW_BLOCK, capacities[i], EVC_FOREVER, i % 2 == 0));
		EXPECT_NONE(flood(EVC_OVERFLOW_BLOCK, capacities[i], 1000, i % 2 != 0));
	}
	return NULL;
}

/* Capacity 1: each event waits for the one before, in a mailbox that is pumped one event at a time. */
static const char *one_by_one(void)
{
	struct producer producers[PRODUCERS];
	uint64_t start_ns = evc_clock_now(), handled = 0, all = PRODUCERS * 300;
	struct race race;

	EXPECT_NONE(open_race(&race, EVC_OVERFLOW_BLOCK, 1, EVC_FOREVER));
	start(&race, producers, 300);
	while (handled < all) {
		uint64_t now = 0;

		(void)!evc_mailbox_pump_until(race.receiver.mailbox, 1, EVC_FOREVER, &now);
		handled += now;
		EXPECT(evc_clock_now() - start_ns < SUITE_LIMIT_NS, "a producer is not woken (seed %llu)",
		       (unsigned long long)race.seed);
		if (now == 0)
			sched_yield();
	}
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i].thread, NULL);
	EXPECT_EQUAL(race.accepted, all, "accepted");
	EXPECT(!race.backwards, "out of order");
	return close_race(&race);
}

/* The limit passes, measured by the clock; and a close ends a wait that has none. */
static const char *limits_and_closes(void)
{
	for (unsigned closes = 0; closes < 2; closes++) {
		const uint64_t limit = 2000000;
		struct evc_mailbox_statistics end;
		struct producer producers[PRODUCERS];
		uint64_t since, value = 0;
		struct race race;

		EXPECT_NONE(open_race(&race, EVC_OVERFLOW_BLOCK, 2, closes ? EVC_FOREVER : limit));
		for (uint64_t i = 1; i <= 2; i++)
			EXPECT_OK(suite_post(&race.receiver, EVC_LANE_QUEUE_LOW, i));
		since = evc_clock_now();
		if (!closes) {
			EXPECT_STATUS(suite_post(&race.receiver, EVC_LANE_QUEUE_LOW, value), EVC_FULL);
			EXPECT(evc_clock_now() - since >= limit, "the post did not wait for its time");
		}
		start(&race, producers, 1);
		if (closes) {
			/* They wait, or come to a closed mailbox: either way none is accepted. */
			sched_yield();
			evc_mailbox_close(race.receiver.mailbox);
		}
		for (unsigned i = 0; i < PRODUCERS; i++)
			pthread_join(producers[i].thread, NULL);
		evc_mailbox_read_statistics(race.receiver.mailbox, &end);
		EXPECT_EQUAL(race.accepted, 0, "accepted");
		EXPECT_EQUAL(end.refused, closes ? 0 : 1 + PRODUCERS, "refused");
		EXPECT_NONE(close_race(&race));
	}
	return NULL;
}

/*
 * All places belong to posts that are under way, by producers that the system has taken away: a pump returns, although
 * others wait for a place, and a post that fails gives its place to one of them.
 */
static const char *places_under_way(void)
{
	uint64_t start_ns = evc_clock_now(), handled, all = 0;
	struct producer producers[PRODUCERS];
	struct evc_bound *bound;
	struct race race;

	EXPECT_NONE(open_race(&race, EVC_OVERFLOW_BLOCK, 2, EVC_FOREVER));
	bound = race.receiver.mailbox->bound;
	EXPECT_EQUAL(evc_bound_admit(bound, 2), 2, "places");
	start(&race, producers, 1);
	while (!(atomic_load(&race.receiver.mailbox->signal) & EVC_SIGNAL_BLOCKED)) {
		EXPECT(evc_clock_now() - start_ns < SUITE_LIMIT_NS, "nobody waits for a place");
		sched_yield();
	}
	EXPECT_STATUS(evc_mailbox_pump_until(race.receiver.mailbox, 10, EVC_FOREVER, &handled), EVC_EMPTY);
	EXPECT_EQUAL(handled, 0, "handled");
	EXPECT_STATUS(evc_mailbox_wait(race.receiver.mailbox, 1000), EVC_TIMED_OUT);
	evc_bound_give_back(bound, 2);
	while (all < PRODUCERS) {
		(void)!evc_mailbox_pump_until(race.receiver.mailbox, 10, EVC_FOREVER, &handled);
		all += handled;
		EXPECT(evc_clock_now() - start_ns < SUITE_LIMIT_NS, "a producer is not woken");
	}
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i].thread, NULL);
	EXPECT_EQUAL(race.accepted, PRODUCERS, "accepted");
	return close_race(&race);
}

static const struct evc_suite_test tests[] = {
	{ "D2 D4 floods of a bounded mailbox: all events are accounted for", floods },
	{ "D2 D4 D5 floods of a mailbox that blocks: nobody waits for ever, nothing is lost", blocked_floods },
	{ "a pump of one event at a time lets blocked producers on one by one", one_by_one },
	{ "D5 a consumer does not wait for places of posts that are under way", places_under_way },
	{ "D10 a blocked post ends at its time limit, or when the mailbox closes", limits_and_closes },
};
SUITE_GROUP(suite_bound_race, tests);
#endif
