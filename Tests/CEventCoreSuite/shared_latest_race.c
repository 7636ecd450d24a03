/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Latest-only subscriptions of a shared mailbox with several producers and several workers at once.
 *
 *     producers                          workers              main
 *     dispatch 1..n on random lanes      deliver              join the producers
 *     count accepted                     end                  close, or close_when_empty; join; add up
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "place.h"

#include <string.h>

#define WORKERS 3u
#define EVENTS SUITE_SCALE(100000u)
#define ROUNDS SUITE_SCALE(100u)

struct race {
	struct place place;
	struct shared_workers workers;
	struct dispatchers dispatchers;
};

static const char *begin(struct race *race, unsigned workers, uint64_t events, int lane)
{
	memset(race, 0, sizeof(*race));
	EXPECT_NONE(place_open(&race->place));
	EXPECT_NONE(shared_start(&race->workers, &race->place.receiver, workers, NULL, NULL));
	dispatchers_start(&race->dispatchers, race->place.router, PLACE_LATEST, DISPATCHERS_MOST,
			  events, lane);
	return NULL;
}

/* The workers have ended. */
static const char *end(struct race *race, uint64_t accepted)
{
	struct evc_mailbox_statistics statistics;

	evc_shared_mailbox_read_statistics(race->place.receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, race->place.handled, "taken, beside handled");
	EXPECT_NONE(dispatchers_expect_all(&race->dispatchers, &statistics, accepted));
	return place_close(&race->place, statistics.superseded);
}

static const char *race_with(unsigned workers, int lane)
{
	struct race race;
	uint64_t accepted;
	bool last = false;

	EXPECT_NONE(begin(&race, workers, EVENTS, lane));
	EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
	EXPECT_EQUAL(accepted, EVENTS * DISPATCHERS_MOST, "accepted");
	/* Every dispatch has returned: what waits is handled by a drain (D10). */
	evc_shared_mailbox_close_when_empty(race.place.receiver.mailbox);
	EXPECT_NONE(shared_join(&race.workers));
	for (unsigned i = 0; i < DISPATCHERS_MOST; i++)
		last |= race.place.last[i] == EVENTS;
	EXPECT(last, "nobody's last event was handled (seed %llu)",
	       (unsigned long long)race.dispatchers.seed);
	return end(&race, accepted);
}

static const char *one_worker(void)
{
	return race_with(1, -1);
}

static const char *one_lane(void)
{
	return race_with(WORKERS, EVC_LANE_QUEUE_NORMAL);
}

static const char *one_stack(void)
{
	return race_with(WORKERS, EVC_LANE_STACK_NORMAL);
}

static const char *any_lanes(void)
{
	return race_with(WORKERS, -1);
}

static const char *close_race(bool drain, unsigned workers)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct race race;
		uint64_t accepted;

		EXPECT_NONE(begin(&race, workers, 0, -1));
		EXPECT(suite_await(&race.dispatchers.each[round % DISPATCHERS_MOST].accepted, round % 40),
		       "nobody dispatches");
		if (drain)
			evc_shared_mailbox_close_when_empty(race.place.receiver.mailbox);
		else
			evc_shared_mailbox_close(race.place.receiver.mailbox);
		if (round % 2)
			EXPECT_NONE(shared_join(&race.workers));
		EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
		if (round % 2 == 0)
			EXPECT_NONE(shared_join(&race.workers));
		if (workers == 0) {
			struct evc_envelope *envelope;
			struct evc_worker *late;

			EXPECT_OK(evc_worker_create(race.place.receiver.mailbox, NULL, &late));
			EXPECT_STATUS(evc_worker_take(late, &envelope), EVC_CLOSED);
			evc_worker_destroy(late);
		}
		EXPECT_NONE(end(&race, accepted));
	}
	return NULL;
}

static const char *close_it(void)
{
	return close_race(false, WORKERS);
}

static const char *drain_it(void)
{
	return close_race(true, WORKERS);
}

static const char *nobody(void)
{
	return close_race(false, 0);
}

/* Workers are made and retired while events are dispatched: no event is lost with them. */
static const char *changing_workers(void)
{
	struct race race;
	uint64_t accepted;

	EXPECT_NONE(begin(&race, 1, EVENTS, -1));
	for (unsigned round = 0; round < SUITE_SCALE(200u); round++) {
		struct evc_worker *worker;
		struct evc_thread *thread;

		EXPECT_OK(evc_worker_create(race.place.receiver.mailbox, NULL, &worker));
		EXPECT_OK(evc_thread_start_worker(NULL, worker, &thread));
		evc_mailbox_close_when_empty(evc_worker_mailbox(worker));
		EXPECT_OK(evc_thread_join(thread));
		evc_worker_destroy(worker);
	}
	EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
	evc_shared_mailbox_close_when_empty(race.place.receiver.mailbox);
	EXPECT_NONE(shared_join(&race.workers));
	return end(&race, accepted);
}

/* There is no worker. */
static const char *memory(void)
{
	struct evc_envelope *envelope;
	struct evc_worker *late;
	struct race race;
	uint64_t accepted;

	EXPECT_NONE(begin(&race, 0, 1000, -1));
	EXPECT_NONE(dispatchers_flood(&race.dispatchers, &accepted));
	EXPECT_EQUAL(evc_latest_subscription_superseded(race.place.latest), accepted - 1,
		     "superseded");
	evc_shared_mailbox_close(race.place.receiver.mailbox);
	EXPECT_OK(evc_worker_create(race.place.receiver.mailbox, NULL, &late));
	EXPECT_STATUS(evc_worker_take(late, &envelope), EVC_CLOSED);
	evc_worker_destroy(late);
	return end(&race, accepted);
}

static const struct evc_suite_test tests[] = {
	{ "D4 producers on any lanes, one worker: the last is handled, the others too or counted", one_worker },
	{ "D4 the same for some workers and one queue", one_lane },
	{ "D4 the same for some workers and one stack", one_stack },
	{ "D4 the same for some workers and any lanes", any_lanes },
	{ "D4 the same while workers come and go", changing_workers },
	{ "D4 D10 dispatches that race close are superseded, taken or dropped, once", close_it },
	{ "D4 D10 dispatches that race close_when_empty likewise", drain_it },
	{ "D4 D10 dispatches that race close without a worker likewise", nobody },
	{ "a flood without a consumer takes no memory", memory },
};
SUITE_GROUP(suite_shared_latest_race, tests);
#endif
