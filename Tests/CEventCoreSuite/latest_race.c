/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Latest-only subscriptions with several producers: no event is lost or delivered twice, each producer's
 * events are delivered in order, its last event is delivered unless another producer's superseded it, and
 * memory does not grow.
 *
 *     producers                          consumer thread      main
 *     dispatch 1..n on random lanes      deliver              join the producers
 *     count accepted                     end                  close, or close_when_empty; join; add up
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "dispatchers.h"

#include <string.h>

#define EVENTS SUITE_SCALE(100000u)
#define ROUNDS SUITE_SCALE(100u)

/* What the handler saw: a payload is producer * 2^32 + number. */
struct log {
	uint64_t last[DISPATCHERS_MOST];
	_Atomic uint64_t delivered;
	bool backwards;
};

static bool record(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct log *log = context;
	uint64_t value;
	uint64_t *last;

	(void)envelope, (void)owned;
	memcpy(&value, payload, sizeof(value));
	last = &log->last[value >> 32];
	if ((uint32_t)value <= *last)
		log->backwards = true;
	*last = (uint32_t)value;
	atomic_fetch_add_explicit(&log->delivered, 1, memory_order_release);
	return true;
}

struct race {
	struct suite_receiver receiver;
	struct evc_subscription *latest;
	struct evc_router *router;
	struct log log;
	struct dispatchers dispatchers;
};

static const char *begin(struct race *race, unsigned producers, uint64_t events, int lane)
{
	struct evc_subscription_options options = { .size = sizeof(options), .context = &race->log, .deliver = record };

	memset(race, 0, sizeof(*race));
	EXPECT_NONE(suite_receiver_open(&race->receiver, NULL));
	EXPECT_OK(evc_mailbox_add_latest_subscription(race->receiver.mailbox, &options,
						      &race->latest));
	EXPECT_OK(evc_router_create(&race->router));
	EXPECT_OK(evc_router_subscribe(race->router, 1, race->latest, 0, false));
	dispatchers_start(&race->dispatchers, race->router, 1, producers, events, lane);
	return NULL;
}

static const char *end(struct race *race, uint64_t accepted)
{
	struct evc_mailbox_statistics statistics;

	evc_mailbox_read_statistics(race->receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, race->log.delivered, "taken, beside delivered");
	EXPECT_NONE(dispatchers_expect_all(&race->dispatchers, &statistics, accepted));
	EXPECT(!race->log.backwards, "a producer's events came out of its order (seed %llu)",
	       (unsigned long long)race->dispatchers.seed);
	evc_latest_subscription_release(race->latest);
	evc_router_destroy(race->router);
	EXPECT(suite_settle(), "the router is held up");
	evc_mailbox_release(race->receiver.mailbox);
	EXPECT(suite_quiesce(), "what was retired is held up");
	return NULL;
}

static const char *race_with(unsigned producers, int lane)
{
	struct evc_thread *consumer;
	struct race race;
	uint64_t accepted;
	bool last = false;

	EXPECT_NONE(begin(&race, producers, EVENTS, lane));
	EXPECT_OK(evc_thread_start(NULL, race.receiver.mailbox, &consumer));
	EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
	EXPECT_EQUAL(accepted, EVENTS * producers, "accepted");
	/* Every dispatch has returned: what waits is handled by a drain (D10). */
	evc_mailbox_close_when_empty(race.receiver.mailbox);
	EXPECT_OK(evc_thread_join(consumer));
	for (unsigned i = 0; i < producers; i++)
		last |= race.log.last[i] == EVENTS;
	EXPECT(last, "nobody's last event was delivered (seed %llu)",
	       (unsigned long long)race.dispatchers.seed);
	return end(&race, accepted);
}

static const char *one_producer(void)
{
	return race_with(1, EVC_LANE_QUEUE_NORMAL);
}

static const char *some_producers(void)
{
	return race_with(DISPATCHERS_MOST, EVC_LANE_QUEUE_NORMAL);
}

static const char *any_lanes(void)
{
	return race_with(DISPATCHERS_MOST, -1);
}

static const char *close_race(bool drain, bool consumed)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct evc_thread *consumer = NULL;
		struct race race;
		uint64_t accepted;

		EXPECT_NONE(begin(&race, DISPATCHERS_MOST, 0, -1));
		if (consumed)
			EXPECT_OK(evc_thread_start(NULL, race.receiver.mailbox, &consumer));
		EXPECT(suite_await(&race.dispatchers.each[round % DISPATCHERS_MOST].accepted, round % 40),
		       "nobody dispatches");
		if (drain)
			evc_mailbox_close_when_empty(race.receiver.mailbox);
		else
			evc_mailbox_close(race.receiver.mailbox);
		if (consumed && round % 2)
			EXPECT_OK(evc_thread_join(consumer));
		EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
		if (consumed && round % 2 == 0)
			EXPECT_OK(evc_thread_join(consumer));
		if (!consumed) {
			struct evc_envelope *envelope;

			EXPECT_STATUS(evc_mailbox_take(race.receiver.mailbox, &envelope), EVC_CLOSED);
		}
		EXPECT_NONE(end(&race, accepted));
	}
	return NULL;
}

static const char *close_it(void)
{
	return close_race(false, true);
}

static const char *drain_it(void)
{
	return close_race(true, true);
}

static const char *nobody(void)
{
	return close_race(false, false);
}

/* There is no consumer. */
static const char *memory(void)
{
	struct evc_envelope *envelope;
	struct race race;
	uint64_t accepted;

	EXPECT_NONE(begin(&race, DISPATCHERS_MOST, 1000, -1));
	EXPECT_NONE(dispatchers_flood(&race.dispatchers, &accepted));
	EXPECT_EQUAL(evc_latest_subscription_superseded(race.latest), accepted - 1, "superseded");
	evc_mailbox_close(race.receiver.mailbox);
	EXPECT_STATUS(evc_mailbox_take(race.receiver.mailbox, &envelope), EVC_CLOSED);
	return end(&race, accepted);
}

/* Subscribes and ends subscriptions while others dispatch to them. */
static const char *churn(void)
{
	struct evc_mailbox_statistics statistics;
	struct evc_thread *consumer;
	struct race race;
	uint64_t accepted;

	EXPECT_NONE(begin(&race, DISPATCHERS_MOST, EVENTS, -1));
	EXPECT_OK(evc_thread_start(NULL, race.receiver.mailbox, &consumer));
	for (unsigned round = 0; round < SUITE_SCALE(1000u); round++) {
		struct evc_subscription *latest;

		EXPECT_NONE(suite_receiver_latest(&race.receiver, &latest));
		EXPECT_OK(evc_router_subscribe(race.router, 1, latest, 0, false));
		EXPECT_OK(evc_router_unsubscribe(race.router, 1, latest));
		evc_latest_subscription_release(latest);
	}
	EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
	evc_mailbox_close_when_empty(race.receiver.mailbox);
	EXPECT_OK(evc_thread_join(consumer));
	EXPECT(suite_settle(), "the router is held up");
	EXPECT_EQUAL(race.receiver.finalized, SUITE_SCALE(1000u), "calls of finalize");
	evc_mailbox_read_statistics(race.receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken + statistics.superseded, accepted,
		     "taken and superseded, beside accepted");
	EXPECT_EQUAL(statistics.taken, race.log.delivered + race.receiver.delivered,
		     "taken, beside delivered");
	evc_latest_subscription_release(race.latest);
	evc_router_destroy(race.router);
	EXPECT(suite_settle(), "the router is held up");
	evc_mailbox_release(race.receiver.mailbox);
	EXPECT(suite_quiesce(), "what was retired is held up");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 one producer's last event is delivered, the others are delivered or counted", one_producer },
	{ "D4 the same for some producers on one lane", some_producers },
	{ "D4 the same for some producers on any lanes", any_lanes },
	{ "D4 D10 dispatches that race close are superseded, taken or dropped, once", close_it },
	{ "D4 D10 dispatches that race close_when_empty likewise", drain_it },
	{ "D4 D10 dispatches that race close without a consumer likewise", nobody },
	{ "a flood without a consumer takes no memory", memory },
	{ "latest-only subscriptions come and go while events pass", churn },
};
SUITE_GROUP(suite_latest_race, tests);
#endif
