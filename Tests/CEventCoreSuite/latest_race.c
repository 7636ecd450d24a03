/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Latest-only and conflated subscriptions of a mailbox or a shared mailbox with several producers: each producer's events
 * of a key are handled in order, the last of each key is handled, keys are neither merged nor doubled, and memory does
 * not grow. A latest-only subscription has one key.
 *
 *     producers                          consumer, or workers        main
 *     dispatch 1..n, whose keys repeat   handle                      join the producers
 *     count accepted                     end                         close, or close_when_empty; join; add up
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "dispatchers.h"
#include "keys.h"
#include "shared.h"

#include <string.h>

#define EVENTS SUITE_SCALE(100000u)
#define ROUNDS SUITE_SCALE(100u)
#define KEYS_MOST 1000u
#define WORKERS 3u

/* What races: a mailbox or a shared one with so many consumers, and the subscription. */
struct setup {
	bool is_shared, is_latest;
	unsigned consumers, producers;
	struct keys keys;
};

static struct setup latest_of(bool is_shared, unsigned consumers)
{
	return (struct setup){ .is_shared = is_shared, .is_latest = true, .consumers = consumers,
			       .producers = DISPATCHERS_MOST, .keys = { .count = 1 } };
}

struct race {
	struct keys keys;
	struct suite_receiver receiver;
	struct shared_receiver shared;
	struct setup setup;
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
	if ((uint32_t)value <= before && !race->setup.is_shared)
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

static enum evc_status add(struct race *race, struct evc_subscription **out)
{
	const struct evc_conflation conflation = keys_conflation(&race->keys);
	const struct evc_shared_subscription_options shared = {
		.size = sizeof(shared), .context = race, .deliver = deliver_by_worker, .finalize = finalize
	};
	const struct evc_subscription_options own = {
		.size = sizeof(own), .context = race, .deliver = deliver, .finalize = finalize
	};

	if (race->setup.is_shared)
		return race->setup.is_latest
			       ? evc_shared_mailbox_add_latest_subscription(race->shared.mailbox, &shared, out)
			       : evc_shared_mailbox_add_conflated_subscription(race->shared.mailbox, &shared,
									       &conflation, out);
	return race->setup.is_latest
		       ? evc_mailbox_add_latest_subscription(race->receiver.mailbox, &own, out)
		       : evc_mailbox_add_conflated_subscription(race->receiver.mailbox, &own, &conflation, out);
}

static const char *begin(struct race *race, struct setup setup, uint64_t events, int lane)
{
	memset(race, 0, sizeof(*race));
	race->setup = setup;
	race->keys = setup.keys;
	if (setup.is_shared) {
		EXPECT_NONE(shared_open(&race->shared));
		EXPECT_NONE(shared_start(&race->workers, &race->shared, setup.consumers, NULL, NULL));
	} else {
		EXPECT_NONE(suite_receiver_open(&race->receiver, NULL));
		if (setup.consumers > 0)
			EXPECT_OK(evc_thread_start(NULL, race->receiver.mailbox, &race->consumer));
	}
	EXPECT_OK(add(race, &race->subscription));
	EXPECT_OK(evc_router_create(&race->router));
	EXPECT_OK(evc_router_subscribe(race->router, 1, race->subscription, 0, false));
	dispatchers_start(&race->dispatchers, race->router, 1, setup.producers, events, lane);
	return NULL;
}

static void close_mailbox(struct race *race, bool drain)
{
	if (race->setup.is_shared)
		(drain ? evc_shared_mailbox_close_when_empty : evc_shared_mailbox_close)(race->shared.mailbox);
	else
		(drain ? evc_mailbox_close_when_empty : evc_mailbox_close)(race->receiver.mailbox);
}

/* Without a consumer, the mailbox, which has closed, is emptied here. */
static const char *join_consumers(struct race *race)
{
	struct evc_envelope *envelope;
	struct evc_worker *late;

	if (race->setup.consumers > 0) {
		EXPECT_NONE(shared_join(&race->workers));
		if (!race->setup.is_shared)
			EXPECT_OK(evc_thread_join(race->consumer));
	} else if (race->setup.is_shared) {
		EXPECT_OK(evc_worker_create(race->shared.mailbox, NULL, &late));
		EXPECT_STATUS(evc_worker_take(late, &envelope), EVC_CLOSED);
		evc_worker_destroy(late);
	} else {
		EXPECT_STATUS(evc_mailbox_take(race->receiver.mailbox, &envelope), EVC_CLOSED);
	}
	return NULL;
}

static const char *end(struct race *race, uint64_t accepted, uint64_t subscriptions)
{
	struct evc_mailbox_statistics statistics;

	if (race->setup.is_shared)
		evc_shared_mailbox_read_statistics(race->shared.mailbox, &statistics);
	else
		evc_mailbox_read_statistics(race->receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, race->handled, "taken, beside handled");
	if (subscriptions == 1)
		EXPECT_EQUAL(evc_latest_subscription_superseded(race->subscription), statistics.superseded, "superseded");
	EXPECT_NONE(dispatchers_expect_all(&race->dispatchers, &statistics, accepted));
	EXPECT(!race->backwards, "a producer's events of a key came out of its order (seed %llu)",
	       (unsigned long long)race->dispatchers.seed);
	evc_latest_subscription_release(race->subscription);
	evc_router_destroy(race->router);
	EXPECT(suite_settle(), "the router is held up");
	/* Before the mailbox ends what a race has left in it. */
	EXPECT_EQUAL(race->finalized, subscriptions, "calls of finalize");
	EXPECT_EQUAL(race->keys.ended, race->keys.kept, "keys that ended, beside kept ones");
	if (race->setup.is_shared)
		evc_shared_mailbox_release(race->shared.mailbox);
	else
		evc_mailbox_release(race->receiver.mailbox);
	EXPECT(suite_quiesce(), "what was retired is held up");
	return NULL;
}

static const char *race_with(struct setup setup, int lane)
{
	/* Too large for a stack; one test at a time. */
	static struct race race;
	const struct keys keys = setup.keys;
	uint64_t accepted;

	EXPECT_NONE(begin(&race, setup, EVENTS, lane));
	EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
	EXPECT_EQUAL(accepted, (uint64_t)EVENTS * setup.producers, "accepted");
	if (keys.hashes > 0)
		EXPECT_EQUAL(race.keys.kept - race.keys.ended, keys.count, "kept keys");
	/* Every dispatch has returned: what waits is handled by a drain (D10). */
	close_mailbox(&race, true);
	EXPECT_NONE(join_consumers(&race));
	for (uint64_t key = 0; key < keys.count; key++) {
		/* The last event of the key. */
		const uint64_t newest = (EVENTS - key) / keys.count * keys.count + key;
		bool found = false;

		for (unsigned i = 0; i < setup.producers; i++)
			found |= race.last[i][key] == newest;
		EXPECT(found, "nobody's last event of key %llu was handled (seed %llu)", (unsigned long long)key,
		       (unsigned long long)race.dispatchers.seed);
	}
	return end(&race, accepted, 1);
}

static const char *latest_of_one(void)
{
	struct setup setup = latest_of(false, 1);

	for (setup.producers = 1; setup.producers <= DISPATCHERS_MOST; setup.producers++)
		EXPECT_NONE(race_with(setup, EVC_LANE_QUEUE_NORMAL));
	setup.producers = DISPATCHERS_MOST;
	return race_with(setup, -1);
}

static const char *latest_of_workers(void)
{
	static const int lanes[] = { EVC_LANE_QUEUE_NORMAL, EVC_LANE_STACK_NORMAL, -1 };

	EXPECT_NONE(race_with(latest_of(true, 1), -1));
	for (unsigned i = 0; i < 3; i++)
		EXPECT_NONE(race_with(latest_of(true, WORKERS), lanes[i]));
	return NULL;
}

static const char *all_keys(bool is_shared)
{
	static const uint64_t counts[] = { 1, 2, 3, 17, 256, KEYS_MOST };
	struct setup setup = { .is_shared = is_shared, .consumers = is_shared ? WORKERS : 1, .producers = DISPATCHERS_MOST };

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		setup.keys = (struct keys){ .count = counts[i] };
		EXPECT_NONE(race_with(setup, EVC_LANE_QUEUE_NORMAL));
		setup.keys.hashes = 100;
		EXPECT_NONE(race_with(setup, -1));
	}
	return NULL;
}

static const char *one_consumer(void)
{
	return all_keys(false);
}

static const char *some_workers(void)
{
	return all_keys(true);
}

/* All producers add the same keys at the same time, again and again. */
static const char *first_events(void)
{
	static struct race race;

	for (unsigned round = 0; round < ROUNDS; round++) {
		const struct setup setup = { .consumers = 1, .producers = DISPATCHERS_MOST,
					     .keys = { .count = 64, .hashes = round % 3 == 0 ? 1 : round % 3 == 1 ? 7 : 64 } };
		uint64_t accepted;

		EXPECT_NONE(begin(&race, setup, 64, EVC_LANE_QUEUE_LOW));
		EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
		EXPECT_EQUAL(race.keys.kept - race.keys.ended, 64, "kept keys");
		close_mailbox(&race, true);
		EXPECT_NONE(join_consumers(&race));
		EXPECT_NONE(end(&race, accepted, 1));
	}
	return NULL;
}

static const char *closing(bool drains, bool has_consumers)
{
	static struct race race;

	/* Each kind of mailbox with each kind of subscription. */
	for (unsigned round = 0; round < 4 * ROUNDS; round++) {
		const unsigned lap = round / 4;
		const bool is_shared = round % 2, is_latest = round / 2 % 2, consumers_first = lap % 2;
		const struct setup setup = {
			.is_shared = is_shared, .is_latest = is_latest,
			.consumers = !has_consumers ? 0 : is_shared ? WORKERS : 1, .producers = DISPATCHERS_MOST,
			.keys = { .count = is_latest ? 1 : 1 + round % 100, .hashes = is_latest ? 0 : lap / 2 % 4 }
		};
		uint64_t accepted;

		EXPECT_NONE(begin(&race, setup, 0, -1));
		EXPECT(suite_await(&race.dispatchers.each[lap % DISPATCHERS_MOST].accepted, lap % 37),
		       "nobody dispatches");
		close_mailbox(&race, drains);
		/* So that late dispatches find them gone. */
		if (has_consumers && consumers_first)
			EXPECT_NONE(join_consumers(&race));
		EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
		if (!has_consumers || !consumers_first)
			EXPECT_NONE(join_consumers(&race));
		EXPECT_NONE(end(&race, accepted, 1));
	}
	return NULL;
}

static const char *close_it(void)
{
	return closing(false, true);
}

static const char *drain_it(void)
{
	return closing(true, true);
}

static const char *nobody(void)
{
	return closing(false, false);
}

/* There is no consumer. */
static const char *memory(void)
{
	for (unsigned is_shared = 0; is_shared < 2; is_shared++) {
		static struct race race;
		uint64_t accepted;

		EXPECT_NONE(begin(&race, latest_of(is_shared, 0), 1000, -1));
		EXPECT_NONE(dispatchers_flood(&race.dispatchers, &accepted));
		EXPECT_EQUAL(evc_latest_subscription_superseded(race.subscription), accepted - 1, "superseded");
		close_mailbox(&race, false);
		EXPECT_NONE(join_consumers(&race));
		EXPECT_NONE(end(&race, accepted, 1));
	}
	return NULL;
}

/* Workers are made and retired while events are dispatched: no event is lost with them. */
static const char *changing_workers(void)
{
	static struct race race;
	uint64_t accepted;

	EXPECT_NONE(begin(&race, latest_of(true, 1), EVENTS, -1));
	for (unsigned round = 0; round < SUITE_SCALE(200u); round++) {
		struct evc_worker *worker;
		struct evc_thread *thread;

		EXPECT_OK(evc_worker_create(race.shared.mailbox, NULL, &worker));
		EXPECT_OK(evc_thread_start_worker(NULL, worker, &thread));
		evc_mailbox_close_when_empty(evc_worker_mailbox(worker));
		EXPECT_OK(evc_thread_join(thread));
		evc_worker_destroy(worker);
	}
	EXPECT_NONE(dispatchers_join(&race.dispatchers, &accepted));
	close_mailbox(&race, true);
	EXPECT_NONE(join_consumers(&race));
	return end(&race, accepted, 1);
}

/* Subscriptions are made and removed while producers dispatch to them: their keys end with them. */
static const char *churn(bool is_latest)
{
	const struct setup setup = { .is_latest = is_latest, .consumers = 1, .producers = DISPATCHERS_MOST,
				     .keys = { .count = is_latest ? 1 : 50, .hashes = is_latest ? 0 : 10 } };
	static struct race race;
	uint64_t accepted;

	EXPECT_NONE(begin(&race, setup, EVENTS, -1));
	for (unsigned round = 0; round < SUITE_SCALE(1000u); round++) {
		struct evc_subscription *other;

		EXPECT_OK(add(&race, &other));
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

static const char *churns(void)
{
	EXPECT_NONE(churn(true));
	return churn(false);
}

static const struct evc_suite_test tests[] = {
	{ "D4 the last event of one producer, and of some, is handled, the others are handled or counted", latest_of_one },
	{ "D4 the same by one worker and several", latest_of_workers },
	{ "D4 the same while workers come and go", changing_workers },
	{ "D4 conflation: the last event of each key is handled, the others are handled or counted", one_consumer },
	{ "D4 conflation: the same by several workers", some_workers },
	{ "conflation: producers that meet a key first at once make one cell for it", first_events },
	{ "D4 D10 dispatches that race close are superseded, taken or dropped, once", close_it },
	{ "D4 D10 dispatches that race close_when_empty likewise", drain_it },
	{ "D4 D10 dispatches that race close without a consumer likewise", nobody },
	{ "a flood without a consumer takes no memory", memory },
	{ "D6 latest-only and conflated subscriptions come and go while events pass", churns },
};
SUITE_GROUP(suite_latest_race, tests);
#endif
