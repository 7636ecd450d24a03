/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Pumps that move from thread to thread while producers race the arming: a wake-up gives the mailbox to one
 * of several drivers.
 *
 *     producers               drivers                          main
 *     post                    wait for a token
 *       (wake: a token)       inside++; pump; inside--
 *       post ...              more: go on; empty: next token
 *                             closed: end                      close after all posts
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <sched.h>

#define PRODUCERS 3u
#define DRIVERS 3u
#define POSTS SUITE_SCALE(30000u)

struct race {
	struct suite_receiver receiver;
	/* Wake-ups that no driver has taken yet. */
	_Atomic int tokens;
	_Atomic uint64_t wakes, overlaps, accepted;
	_Atomic bool over;
	uint64_t limit;
	/* Each driver pumps whenever it likes. */
	bool greedy;
	/* Written by pumps only: a race unless pumps are ordered. */
	uint64_t plain;
	/* If a handler finds it set, two pumps run at once. */
	_Atomic bool inside;
};

static void wake(void *context)
{
	struct race *race = context;

	atomic_fetch_add_explicit(&race->wakes, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&race->tokens, 1, memory_order_release);
}

static bool handle(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct race *race = context;

	(void)payload, (void)envelope, (void)owned;
	if (atomic_exchange_explicit(&race->inside, true, memory_order_relaxed))
		atomic_fetch_add_explicit(&race->overlaps, 1, memory_order_relaxed);
	race->plain++;
	atomic_store_explicit(&race->inside, false, memory_order_relaxed);
	return true;
}

static bool take_token(struct race *race)
{
	int tokens = atomic_load_explicit(&race->tokens, memory_order_relaxed);

	while (tokens > 0)
		/* Acquire: pairs with wake. */
		if (atomic_compare_exchange_weak_explicit(&race->tokens, &tokens, tokens - 1,
							  memory_order_acquire,
							  memory_order_relaxed))
			return true;
	return false;
}

static void *drive(void *context)
{
	struct race *race = context;

	while (!atomic_load_explicit(&race->over, memory_order_acquire)) {
		enum evc_status status;

		if (race->greedy)
			/* So that whoever pumps can go on. */
			sched_yield();
		else if (!take_token(race)) {
			sched_yield();
			continue;
		}
		do
			status = evc_mailbox_pump(race->receiver.mailbox, race->limit);
		while (status == EVC_OK);
		if (status == EVC_CLOSED)
			atomic_store_explicit(&race->over, true, memory_order_release);
	}
	return NULL;
}

static void *produce(void *context)
{
	struct race *race = context;

	for (uint64_t i = 0; i < POSTS; i++) {
		if (suite_post(&race->receiver, i % EVC_LANE_COUNT, i) != EVC_OK)
			return NULL;
		atomic_fetch_add_explicit(&race->accepted, 1, memory_order_release);
		/* Now and then lets the mailbox become empty. */
		if (i % 7 == 0)
			sched_yield();
	}
	return NULL;
}

static const char *race_with(uint64_t limit, bool cut_short, bool greedy)
{
	struct race race;
	struct evc_mailbox_options options = { .size = sizeof(options), .wake = wake, .context = &race };
	struct evc_mailbox_statistics statistics;
	pthread_t producers[PRODUCERS], drivers[DRIVERS];

	__builtin_memset(&race, 0, sizeof(race));
	race.limit = limit;
	race.greedy = greedy;
	EXPECT_NONE(suite_receiver_open(&race.receiver, &options));
	EXPECT_NONE(suite_receiver_add(&race.receiver, handle, &race, &race.receiver.subscription));
	for (unsigned i = 0; i < DRIVERS; i++)
		pthread_create(&drivers[i], NULL, drive, &race);
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_create(&producers[i], NULL, produce, &race);
	if (cut_short) {
		EXPECT(suite_await(&race.accepted, POSTS / 2), "nobody posts");
		evc_mailbox_close(race.receiver.mailbox);
	}
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	evc_mailbox_close_when_empty(race.receiver.mailbox);
	for (unsigned i = 0; i < DRIVERS; i++)
		pthread_join(drivers[i], NULL);
	if (!greedy)
		EXPECT_EQUAL(race.tokens, 0, "wake-ups that nobody answered");
	evc_mailbox_read_statistics(race.receiver.mailbox, &statistics);
	EXPECT_EQUAL(race.plain, statistics.taken, "handled, beside taken");
	EXPECT_EQUAL(statistics.taken + statistics.dropped, race.accepted,
		     "taken and dropped, beside accepted");
	if (!cut_short)
		EXPECT_EQUAL(race.plain, PRODUCERS * (uint64_t)POSTS, "delivered");
	EXPECT_EQUAL(race.overlaps, 0, "handlers that met another");
	EXPECT(race.wakes > 0, "no wake-up");
	evc_mailbox_release(race.receiver.mailbox);
	return NULL;
}

static const char *one_by_one(void)
{
	return race_with(1, false, false);
}

static const char *in_batches(void)
{
	return race_with(64, false, false);
}

static const char *closed(void)
{
	for (unsigned round = 0; round < 20; round++)
		EXPECT_NONE(race_with(1 + round, true, false));
	return NULL;
}

/* Against the rule: most pumps meet another, and are refused. */
static const char *against_the_rule(void)
{
	EXPECT_NONE(race_with(1, false, true));
	EXPECT_NONE(race_with(64, false, true));
	EXPECT_NONE(race_with(3, true, true));
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 pumps on changing threads deliver all, once, one pump at a time", one_by_one },
	{ "D4 the same in batches, without a lost or a doubled wake-up", in_batches },
	{ "D4 D10 a close that races posts and pumps ends both, once", closed },
	{ "D12 pumps that meet another are refused, and nothing is lost or doubled", against_the_rule },
};
SUITE_GROUP(suite_pump_race, tests);
#endif
