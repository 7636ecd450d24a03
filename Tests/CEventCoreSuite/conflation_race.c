/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Conflated subscriptions of a mailbox or a shared mailbox with several producers: each producer's events of a key are
 * handled in order, the last of each key is handled, and keys are neither merged nor doubled.
 *
 *     producers                          consumer, or workers        main
 *     dispatch 1..n, whose keys repeat   handle                      join the producers
 *     count accepted                     end                         close, or close_when_empty; join; add up
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "keys.h"
#include "place.h"

#include <string.h>

#define EVENTS SUITE_SCALE(100000u)
#define ROUNDS SUITE_SCALE(100u)
#define KEYS_MOST 1000u

struct race {
	struct keys keys;
	struct suite_receiver receiver;
	struct shared_receiver shared;
	bool is_shared;
	struct evc_thread *consumer;
	struct shared_workers workers;
	struct evc_subscription *subscription;
	struct evc_router *router;
	struct dispatchers dispatchers;
	_Atomic uint64_t handled, finalized;
	_Atomic bool backwards;
	/* The number of the event that was handled last. */
	_Atomic uint64_t last[DISPATCHERS_MOST][KEYS_MOST];
};

static void handle(struct race *race, const void *payload)
{
	uint64_t value, before;
	_Atomic uint64_t *last;

	memcpy(&value, payload, sizeof(value));
	last = &race->last[value >> 32][keys_of(&race->keys, payload)];
	before = atomic_load(last);
	/* Workers that have taken events run concurrently. */
	if ((uint32_t)value <= before && !race->is_shared)
		race->backwards = true;
	while ((uint32_t)value > before && !atomic_compare_exchange_weak(last, &before, (uint32_t)value))
		;
	atomic_fetch_add_explicit(&race->handled, 1, memory_order_release);
}

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)envelope, (void)owned;
	handle(context, payload);
	return true;
}

static bool deliver_by_worker(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	(void)worker;
	return deliver(context, payload, envelope, owned);
}

static void finalize(void *context)
{
	atomic_fetch_add(&((struct race *)context)->finalized, 1);
}

static const char *add(struct race *race, struct evc_subscription **out)
{
	const struct evc_conflation conflation = keys_conflation(&race->keys);

	if (race->is_shared) {
		struct evc_shared_subscription_options options = {
			.size = sizeof(options),
			.context = race, .deliver = deliver_by_worker, .finalize = finalize
		};

		EXPECT_OK(evc_shared_mailbox_add_conflated_subscription(race->shared.mailbox, &options,
									&conflation, out));
	} else {
		struct evc_subscription_options options = {
			.size = sizeof(options),
			.context = race, .deliver = deliver, .finalize = finalize
		};

		EXPECT_OK(evc_mailbox_add_conflated_subscription(race->receiver.mailbox, &options, &conflation,
								 out));
	}
	return NULL;
}

/* `workers` 0: a mailbox with its own consumer. */
static const char *begin(struct race *race, unsigned workers, struct keys keys, uint64_t events, int lane)
{
	memset(race, 0, sizeof(*race));
	race->keys = keys;
	race->is_shared = workers > 0;
	if (race->is_shared) {
		EXPECT_NONE(shared_open(&race->shared));
		EXPECT_NONE(shared_start(&race->workers, &race->shared, workers, NULL, NULL));
	} else {
		EXPECT_NONE(suite_receiver_open(&race->receiver, NULL));
		EXPECT_OK(evc_thread_start(NULL, race->receiver.mailbox, &race->consumer));
	}
	EXPECT_NONE(add(race, &race->subscription));
	EXPECT_OK(evc_router_create(&race->router));
	EXPECT_OK(evc_router_subscribe(race->router, 1, race->subscription, 0, false));
	dispatchers_start(&race->dispatchers, race->router, 1, DISPATCHERS_MOST, events, lane);
	return NULL;
}

static void close_mailbox(struct race *race, bool drain)
{
	if (race->is_shared)
		(drain ? evc_shared_mailbox_close_when_empty : evc_shared_mailbox_close)(race->shared.mailbox);
	else
		(drain ? evc_mailbox_close_when_empty : evc_mailbox_close)(race->receiver.mailbox);
}

static const char *join_consumers(struct race *race)
{
	if (race->is_shared)
		return shared_join(&race->workers);
	EXPECT_OK(evc_thread_join(race->consumer));
	return NULL;
}

static const char *end(struct race *race, uint64_t accepted, uint64_t subscriptions)
{
	struct evc_mailbox_statistics statistics;

	if (race->is_shared)
		evc_shared_mailbox_read_statistics(race->shared.mailbox, &statistics);
	else
		evc_mailbox_read_statistics(race->receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, race->handled, "taken, beside handled");
	EXPECT_NONE(dispatchers_expect_all(&race->dispatchers, &statistics, accepted));
	EXPECT(!race->backwards, "a producer's events of a key came out of its order (seed %llu)",
	       (unsigned long long)race->dispatchers.seed);
	evc_latest_subscription_release(race->subscription);
	evc_router_destroy(race->router);
	EXPECT(suite_settle(), "the router is held up");
	if (race->is_shared)
		evc_shared_mailbox_release(race->shared.mailbox);
	else
		evc_mailbox_release(race->receiver.mailbox);
	EXPECT(suite_quiesce(), "what was retired is held up");
	EXPECT_EQUAL(race->finalized, subscriptions, "calls of finalize");
	EXPECT_EQUAL(race->keys.ended, race->keys.kept, "keys that ended, beside kept ones");
	return NULL;
}

static const char *race_with(unsigned workers, struct keys keys, int lane)
{
	/* Too large for a stack; one test at a time. */
	static struct race race;
	uint64_t accepted;

	EXPECT_NONE(begin(&race, workers, keys, EVENTS, lane));
	EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
	EXPECT_EQUAL(accepted, (uint64_t)EVENTS * DISPATCHERS_MOST, "accepted");
	if (keys.hashes > 0)
		EXPECT_EQUAL(race.keys.kept - race.keys.ended, keys.count, "kept keys");
	/* Every dispatch has returned: what waits is handled by a drain (D10). */
	close_mailbox(&race, true);
	EXPECT_NONE(join_consumers(&race));
	for (uint64_t key = 0; key < keys.count; key++) {
		/* The last event of the key. */
		const uint64_t newest = (EVENTS - key) / keys.count * keys.count + key;
		bool found = false;

		for (unsigned i = 0; i < DISPATCHERS_MOST; i++)
			found |= race.last[i][key] == newest;
		EXPECT(found, "nobody's last event of key %llu was handled (seed %llu)", (unsigned long long)key,
		       (unsigned long long)race.dispatchers.seed);
	}
	return end(&race, accepted, 1);
}

static const char *all_keys(unsigned workers)
{
	static const uint64_t counts[] = { 1, 2, 3, 17, 256, KEYS_MOST };

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		EXPECT_NONE(race_with(workers, (struct keys){ .count = counts[i] }, EVC_LANE_QUEUE_NORMAL));
		EXPECT_NONE(race_with(workers, (struct keys){ .count = counts[i], .hashes = 100 }, -1));
	}
	return NULL;
}

static const char *one_consumer(void)
{
	return all_keys(0);
}

static const char *some_workers(void)
{
	return all_keys(3);
}

/* All producers add the same keys at the same time, again and again. */
static const char *first_events(void)
{
	static struct race race;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct keys keys = { .count = 64, .hashes = round % 3 == 0 ? 1 : round % 3 == 1 ? 7 : 64 };
		uint64_t accepted;

		EXPECT_NONE(begin(&race, 0, keys, 64, EVC_LANE_QUEUE_LOW));
		EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
		EXPECT_EQUAL(race.keys.kept - race.keys.ended, 64, "kept keys");
		close_mailbox(&race, true);
		EXPECT_NONE(join_consumers(&race));
		EXPECT_NONE(end(&race, accepted, 1));
	}
	return NULL;
}

static const char *closing(bool drain)
{
	static struct race race;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct keys keys = { .count = 1 + round % 100, .hashes = round % 4 };
		uint64_t accepted;

		EXPECT_NONE(begin(&race, round % 2 ? 3 : 0, keys, 0, -1));
		EXPECT(suite_await(&race.dispatchers.each[round % DISPATCHERS_MOST].accepted, round % 40),
		       "nobody dispatches");
		close_mailbox(&race, drain);
		EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
		EXPECT_NONE(join_consumers(&race));
		EXPECT_NONE(end(&race, accepted, 1));
	}
	return NULL;
}

static const char *close_it(void)
{
	return closing(false);
}

static const char *drain_it(void)
{
	return closing(true);
}

/* Subscriptions are made and removed while producers dispatch to them: their keys end with them. */
static const char *churn(void)
{
	static struct race race;
	struct keys keys = { .count = 50, .hashes = 10 };
	uint64_t accepted;

	EXPECT_NONE(begin(&race, 0, keys, EVENTS, -1));
	for (unsigned round = 0; round < SUITE_SCALE(1000u); round++) {
		struct evc_subscription *other;

		EXPECT_NONE(add(&race, &other));
		EXPECT_OK(evc_router_subscribe(race.router, 1, other, 0, false));
		if (round % 3 == 0) {
			uint64_t now = race.dispatchers.each[0].accepted;

			EXPECT(suite_await(&race.dispatchers.each[0].accepted, now < EVENTS / 2 ? now + 1 : 0),
			       "nobody dispatches");
		}
		EXPECT_OK(evc_router_unsubscribe(race.router, 1, other));
		evc_latest_subscription_release(other);
	}
	EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
	close_mailbox(&race, true);
	EXPECT_NONE(join_consumers(&race));
	/* The handlers of two subscriptions share the figures. */
	race.backwards = false;
	return end(&race, accepted, 1 + SUITE_SCALE(1000u));
}

static const struct evc_suite_test tests[] = {
	{ "D4 conflation: the last event of each key is handled, the others are handled or counted", one_consumer },
	{ "D4 conflation: the same by several workers", some_workers },
	{ "conflation: producers that meet a key first at once make one cell for it", first_events },
	{ "D4 D10 conflation: dispatches that race close are superseded, taken or dropped, once", close_it },
	{ "D4 D10 conflation: dispatches that race close_when_empty likewise", drain_it },
	{ "D6 conflation: subscriptions come and go while events pass", churn },
};
SUITE_GROUP(suite_conflation_race, tests);
#endif
