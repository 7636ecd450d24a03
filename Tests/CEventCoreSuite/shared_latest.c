/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Latest-only subscriptions of a shared mailbox: which envelope is taken, by whom, and what is counted; then
 * several producers and several workers at once.
 *
 *     producers                          workers              main
 *     dispatch 1..n on random lanes      deliver              join the producers
 *     count accepted                     end                  close, or close_when_empty; join; add up
 */
#ifdef EVC_URCU
#include "shared.h"

#include "shared_queue.h"
#include "subscription.h"

#include <eventcore/pool.h>

#include <string.h>

#define PRODUCERS 3u
#define WORKERS 3u
#define EVENTS SUITE_SCALE(100000u)
#define ROUNDS SUITE_SCALE(100u)

/* A shared mailbox with one ordinary and one latest-only subscription, each with a route of its own. */
struct place {
	struct shared_receiver receiver;
	struct evc_subscription *latest;
	struct evc_router *router;
	_Atomic uint64_t handled;
	_Atomic uint64_t drops;
	_Atomic uint64_t finalized;
	/* The highest number of each producer that was handled. */
	_Atomic uint64_t last[PRODUCERS];
};

enum { PLAIN = 1, LATEST = 2 };

static bool hear(void *worker_context, void *context, void *payload, struct evc_envelope *envelope,
		 bool owned)
{
	struct place *place = context;
	_Atomic uint64_t *last;
	uint64_t value, before;

	(void)worker_context, (void)envelope, (void)owned;
	memcpy(&value, payload, sizeof(value));
	last = &place->last[(value >> 32) % PRODUCERS];
	before = atomic_load(last);
	while (before < (uint32_t)value &&
	       !atomic_compare_exchange_weak(last, &before, (uint32_t)value))
		;
	atomic_fetch_add_explicit(&place->handled, 1, memory_order_release);
	return true;
}

static void drop(void *context, void *payload)
{
	(void)payload;
	atomic_fetch_add(&((struct place *)context)->drops, 1);
}

static void finalize(void *context)
{
	atomic_fetch_add(&((struct place *)context)->finalized, 1);
}

static const char *open_place(struct place *place)
{
	struct evc_shared_subscription_options options = { place, hear, drop, finalize };

	memset(place, 0, sizeof(*place));
	EXPECT_NONE(shared_open(&place->receiver));
	EXPECT_OK(evc_shared_mailbox_add_latest_subscription(place->receiver.mailbox, &options,
							     &place->latest));
	EXPECT_OK(evc_router_create(&place->router));
	EXPECT_OK(evc_router_subscribe(place->router, PLAIN, place->receiver.subscription, 0, false));
	EXPECT_OK(evc_router_subscribe(place->router, LATEST, place->latest, 0, false));
	return NULL;
}

static const char *close_place(struct place *place, uint64_t superseded)
{
	struct evc_mailbox_statistics statistics;

	EXPECT_EQUAL(evc_shared_latest_subscription_superseded(place->latest), superseded,
		     "superseded of the subscription");
	evc_router_destroy(place->router);
	EXPECT(suite_settle(), "the router is held up");
	evc_shared_latest_subscription_release(place->latest);
	EXPECT_EQUAL(place->finalized, 1, "calls of finalize");
	evc_shared_mailbox_read_statistics(place->receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.superseded, superseded, "superseded of the mailbox");
	evc_shared_mailbox_release(place->receiver.mailbox);
	EXPECT(suite_quiesce(), "the end of a subscription is held up");
	return NULL;
}

static const char *dispatch(struct place *place, uint64_t key, unsigned lane, uint64_t value)
{
	uint32_t receivers = 0;

	EXPECT_OK(evc_dispatch_bytes(place->router, key, (enum evc_lane)lane, &value, sizeof(value),
				     _Alignof(uint64_t), &receivers));
	EXPECT_EQUAL(receivers, 1, "receivers");
	return NULL;
}

static const char *expect_take(struct evc_worker *worker, unsigned lane, uint64_t value)
{
	unsigned found_lane;
	uint64_t found;

	EXPECT_OK(shared_take(worker, &found_lane, &found));
	EXPECT_EQUAL(found, value, "the event that was taken");
	EXPECT_EQUAL(found_lane, lane, "its lane");
	return NULL;
}

static const char *expect_empty(struct evc_worker *worker)
{
	unsigned lane;
	uint64_t value;

	EXPECT_STATUS(shared_take(worker, &lane, &value), EVC_EMPTY);
	return NULL;
}

static const char *expect_taken(struct place *place, uint64_t taken, uint64_t dropped)
{
	struct evc_mailbox_statistics statistics;

	evc_shared_mailbox_read_statistics(place->receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, taken, "taken");
	EXPECT_EQUAL(statistics.dropped, dropped, "dropped");
	return NULL;
}

static const char *newest_of_some(void)
{
	static const unsigned counts[] = { 0, 1, 2, 3, 4, 5, 64, 1000 };

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct evc_worker *one, *two;
		struct place place;
		uint64_t superseded = counts[i] > 1 ? counts[i] - 1 : 0;

		EXPECT_NONE(open_place(&place));
		EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &one));
		EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &two));
		for (unsigned value = 1; value <= counts[i]; value++)
			EXPECT_NONE(dispatch(&place, LATEST, EVC_LANE_QUEUE_NORMAL, value));
		if (counts[i] > 0)
			EXPECT_NONE(expect_take(i % 2 ? one : two, EVC_LANE_QUEUE_NORMAL, counts[i]));
		EXPECT_NONE(expect_empty(one));
		EXPECT_NONE(expect_empty(two));
		EXPECT_EQUAL(place.drops, superseded, "calls of drop");
		EXPECT_NONE(expect_taken(&place, counts[i] > 0, 0));
		evc_worker_destroy(one);
		evc_worker_destroy(two);
		EXPECT_NONE(close_place(&place, superseded));
	}
	return NULL;
}

/* Every order of three posts on any lanes, with an ordinary event on each lane beside them; two workers in turn. */
static const char *every_three_lanes(void)
{
	for (unsigned code = 0; code < EVC_LANE_COUNT * EVC_LANE_COUNT * EVC_LANE_COUNT; code++) {
		unsigned lanes[3] = { code % EVC_LANE_COUNT, code / EVC_LANE_COUNT % EVC_LANE_COUNT,
				      code / EVC_LANE_COUNT / EVC_LANE_COUNT };
		struct evc_worker *workers[2];
		struct place place;
		unsigned turn = 0;

		EXPECT_NONE(open_place(&place));
		for (unsigned i = 0; i < 2; i++)
			EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &workers[i]));
		for (unsigned i = 0; i < 3; i++)
			EXPECT_NONE(dispatch(&place, LATEST, lanes[i], 100 + i));
		for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
			EXPECT_NONE(dispatch(&place, PLAIN, lane, lane));
		for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
			bool stack = lane < EVC_LANE_FIRST_QUEUE;

			if (stack)
				EXPECT_NONE(expect_take(workers[turn++ % 2], lane, lane));
			if (lane == lanes[2])
				EXPECT_NONE(expect_take(workers[turn++ % 2], lane, 102));
			if (!stack)
				EXPECT_NONE(expect_take(workers[turn++ % 2], lane, lane));
		}
		EXPECT_NONE(expect_empty(workers[turn % 2]));
		EXPECT_NONE(expect_taken(&place, 1 + EVC_LANE_COUNT, 0));
		for (unsigned i = 0; i < 2; i++)
			evc_worker_destroy(workers[i]);
		EXPECT_NONE(close_place(&place, 2));
	}
	return NULL;
}

/* The token is posted anew as soon as it was taken, while the first event is still being handled. */
static const char *next_while_handled(void)
{
	struct evc_envelope *first, *second;
	struct evc_worker *one, *two;
	struct place place;

	EXPECT_NONE(open_place(&place));
	EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &one));
	EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &two));
	EXPECT_NONE(dispatch(&place, LATEST, EVC_LANE_STACK_HIGH, 1));
	EXPECT_OK(evc_worker_take(one, &first));
	EXPECT_NONE(dispatch(&place, LATEST, EVC_LANE_STACK_HIGH, 2));
	EXPECT_NONE(dispatch(&place, LATEST, EVC_LANE_STACK_HIGH, 3));
	EXPECT_OK(evc_worker_take(two, &second));
	EXPECT_EQUAL(*(uint64_t *)evc_envelope_payload(first), 1, "the first");
	EXPECT_EQUAL(*(uint64_t *)evc_envelope_payload(second), 3, "the second");
	evc_worker_recycle(one, first, true);
	EXPECT_NONE(expect_empty(one));
	/* The subscription outlives its owner and its routes for what is being handled. */
	EXPECT_OK(evc_router_unsubscribe(place.router, LATEST, place.latest));
	EXPECT(suite_settle(), "the router is held up");
	evc_shared_latest_subscription_release(place.latest);
	EXPECT_EQUAL(place.finalized, 0, "calls of finalize");
	evc_worker_recycle(two, second, true);
	EXPECT_EQUAL(place.finalized, 1, "calls of finalize");
	evc_worker_destroy(one);
	evc_worker_destroy(two);
	evc_router_destroy(place.router);
	EXPECT(suite_settle(), "the router is held up");
	evc_shared_mailbox_release(place.receiver.mailbox);
	EXPECT(suite_quiesce(), "the end of a subscription is held up");
	return NULL;
}

static bool count(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	atomic_fetch_add(&((struct place *)context)->handled, 1);
	return true;
}

/* A latest-only subscription of a worker's own mailbox has a slot of its own. */
static const char *own_slot(void)
{
	struct evc_subscription *own;
	struct evc_worker *worker;
	struct place place;
	struct evc_subscription_options options = { &place, count, drop, NULL };

	EXPECT_NONE(open_place(&place));
	EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &worker));
	EXPECT_OK(evc_mailbox_add_latest_subscription(evc_worker_mailbox(worker), &options, &own));
	EXPECT_OK(evc_router_subscribe(place.router, 3, own, 0, false));
	EXPECT_NONE(dispatch(&place, LATEST, EVC_LANE_QUEUE_NORMAL, 1));
	for (unsigned value = 2; value <= 4; value++)
		EXPECT_NONE(dispatch(&place, 3, EVC_LANE_QUEUE_NORMAL, value));
	EXPECT_NONE(dispatch(&place, 3, EVC_LANE_QUEUE_HIGH, 5));
	EXPECT_NONE(dispatch(&place, 3, EVC_LANE_QUEUE_LOW, 6));
	EXPECT_NONE(dispatch(&place, LATEST, EVC_LANE_QUEUE_NORMAL, 7));
	EXPECT_NONE(expect_take(worker, EVC_LANE_QUEUE_NORMAL, 7));
	EXPECT_NONE(expect_take(worker, EVC_LANE_QUEUE_LOW, 6));
	EXPECT_NONE(expect_empty(worker));
	EXPECT_EQUAL(evc_latest_subscription_superseded(own), 4, "superseded of the worker's");
	evc_latest_subscription_release(own);
	evc_router_destroy(place.router);
	EXPECT(suite_settle(), "the router is held up");
	EXPECT_EQUAL(evc_shared_latest_subscription_superseded(place.latest), 1, "superseded");
	evc_worker_destroy(worker);
	evc_shared_latest_subscription_release(place.latest);
	evc_shared_mailbox_release(place.receiver.mailbox);
	EXPECT(suite_quiesce(), "the end of a subscription is held up");
	return NULL;
}

static const char *refused(void)
{
	struct evc_shared_subscription_options options = { NULL, NULL, NULL, NULL };
	struct evc_subscription *made;
	struct place place;
	uint32_t receivers = 7;
	uint64_t value = 1;

	EXPECT_NONE(open_place(&place));
	EXPECT_STATUS(evc_shared_mailbox_add_latest_subscription(place.receiver.mailbox, &options,
								 &made),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_shared_mailbox_add_latest_subscription(NULL, &options, &made),
		      EVC_INVALID_ARGUMENT);
	EXPECT_NONE(dispatch(&place, LATEST, EVC_LANE_QUEUE_NORMAL, 1));
	evc_shared_mailbox_close(place.receiver.mailbox);
	EXPECT_OK(evc_dispatch_bytes(place.router, LATEST, EVC_LANE_QUEUE_NORMAL, &value,
				     sizeof(value), _Alignof(uint64_t), &receivers));
	EXPECT_EQUAL(receivers, 0, "receivers of a closed mailbox");
	/* The one that waits goes with the last reference. */
	evc_router_destroy(place.router);
	EXPECT(suite_settle(), "the router is held up");
	evc_shared_latest_subscription_release(place.latest);
	EXPECT_EQUAL(place.finalized, 0, "calls of finalize");
	evc_shared_mailbox_release(place.receiver.mailbox);
	/* The refused one is the dispatch's to end, by the same function. */
	EXPECT_EQUAL(place.drops, 2, "calls of drop");
	EXPECT_EQUAL(place.finalized, 1, "calls of finalize");
	EXPECT(suite_quiesce(), "the end of a subscription is held up");
	return NULL;
}

/* Several at once */

struct producer {
	struct evc_router *router;
	uint64_t index;
	/* 0 = until nobody accepts. */
	uint64_t events;
	/* One lane alone; -1 = any. */
	int lane;
	uint64_t random;
	_Atomic uint64_t accepted;
	enum evc_status status;
};

static void *produce(void *context)
{
	struct producer *producer = context;

	for (uint64_t i = 1; producer->events == 0 || i <= producer->events; i++) {
		uint64_t value = producer->index << 32 | i;
		unsigned lane = producer->lane >= 0
					? (unsigned)producer->lane
					: suite_random(&producer->random) % EVC_LANE_COUNT;
		uint32_t receivers = 0;

		producer->status = evc_dispatch_bytes(producer->router, LATEST, (enum evc_lane)lane,
						      &value, sizeof(value), _Alignof(uint64_t),
						      &receivers);
		if (producer->status != EVC_OK || (producer->events == 0 && receivers == 0))
			break;
		atomic_fetch_add_explicit(&producer->accepted, receivers, memory_order_release);
	}
	return NULL;
}

struct race {
	struct place place;
	struct shared_workers workers;
	struct producer producers[PRODUCERS];
	pthread_t threads[PRODUCERS];
	uint64_t seed;
};

static const char *begin(struct race *race, unsigned workers, uint64_t events, int lane)
{
	memset(race, 0, sizeof(*race));
	race->seed = suite_seed();
	EXPECT_NONE(open_place(&race->place));
	EXPECT_NONE(shared_start(&race->workers, &race->place.receiver, workers, NULL, NULL));
	for (unsigned i = 0; i < PRODUCERS; i++) {
		race->producers[i] = (struct producer){
			.router = race->place.router,
			.index = i,
			.events = events,
			.lane = lane,
			.random = race->seed + i,
		};
		pthread_create(&race->threads[i], NULL, produce, &race->producers[i]);
	}
	return NULL;
}

static const char *join_producers(struct race *race, uint64_t *accepted)
{
	*accepted = 0;
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(race->threads[i], NULL);
		EXPECT_OK(race->producers[i].status);
		*accepted += race->producers[i].accepted;
	}
	return NULL;
}

/* The workers have ended. */
static const char *end(struct race *race, uint64_t accepted)
{
	struct evc_mailbox_statistics statistics;

	evc_shared_mailbox_read_statistics(race->place.receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, race->place.handled, "taken, beside handled");
	EXPECT(statistics.taken + statistics.superseded + statistics.dropped == accepted,
	       "accepted %llu, but %llu taken, %llu superseded, %llu dropped (seed %llu)",
	       (unsigned long long)accepted, (unsigned long long)statistics.taken,
	       (unsigned long long)statistics.superseded, (unsigned long long)statistics.dropped,
	       (unsigned long long)race->seed);
	return close_place(&race->place, statistics.superseded);
}

static const char *race_with(unsigned workers, int lane)
{
	struct race race;
	uint64_t accepted;
	bool last = false;

	EXPECT_NONE(begin(&race, workers, EVENTS, lane));
	EXPECT_NONE(join_producers(&race, &accepted));
	EXPECT_EQUAL(accepted, EVENTS * PRODUCERS, "accepted");
	/* Every dispatch has returned: what waits is handled by a drain (D10). */
	evc_shared_mailbox_close_when_empty(race.place.receiver.mailbox);
	EXPECT_NONE(shared_join(&race.workers));
	for (unsigned i = 0; i < PRODUCERS; i++)
		last |= race.place.last[i] == EVENTS;
	EXPECT(last, "nobody's last event was handled (seed %llu)", (unsigned long long)race.seed);
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
		EXPECT(suite_await(&race.producers[round % PRODUCERS].accepted, round % 40),
		       "nobody dispatches");
		if (drain)
			evc_shared_mailbox_close_when_empty(race.place.receiver.mailbox);
		else
			evc_shared_mailbox_close(race.place.receiver.mailbox);
		if (round % 2)
			EXPECT_NONE(shared_join(&race.workers));
		EXPECT_NONE(join_producers(&race, &accepted));
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

/* Workers come and go while events pass: none of the events goes with them. */
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
	EXPECT_NONE(join_producers(&race, &accepted));
	evc_shared_mailbox_close_when_empty(race.place.receiver.mailbox);
	EXPECT_NONE(shared_join(&race.workers));
	return end(&race, accepted);
}

/* Nobody consumes. A flood of more events than the pools could hold in what they have mapped now. */
static const char *memory(void)
{
	struct evc_pool_statistics before, after;
	struct race race;
	uint64_t accepted;

	EXPECT_NONE(begin(&race, 0, 1000, -1));
	EXPECT_NONE(join_producers(&race, &accepted));
	evc_pool_read_statistics(&before);
	for (unsigned i = 0; i < PRODUCERS; i++) {
		race.producers[i].events = SUITE_SCALE(1000000u);
		pthread_create(&race.threads[i], NULL, produce, &race.producers[i]);
	}
	EXPECT_NONE(join_producers(&race, &accepted));
	evc_pool_read_statistics(&after);
	/* A producer that was held up may have had a few of its slots in others' hands. */
	EXPECT(after.slab_bytes <= before.slab_bytes + PRODUCERS * 256 * 1024,
	       "the pools grew from %zu to %zu bytes", before.slab_bytes, after.slab_bytes);
	EXPECT_EQUAL(evc_shared_latest_subscription_superseded(race.place.latest), accepted - 1,
		     "superseded");
	evc_shared_mailbox_close(race.place.receiver.mailbox);
	{
		struct evc_envelope *envelope;
		struct evc_worker *late;

		EXPECT_OK(evc_worker_create(race.place.receiver.mailbox, NULL, &late));
		EXPECT_STATUS(evc_worker_take(late, &envelope), EVC_CLOSED);
		evc_worker_destroy(late);
	}
	return end(&race, accepted);
}

/* Without memory for a token nothing is accepted, and nothing is superseded. */
static const char *no_memory(void)
{
	static struct evc_queue_segment *segments[8192];
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope;
	struct evc_worker *worker;
	struct place place;
	enum evc_status status;
	unsigned count = 0;
	bool is_out;

	EXPECT_NONE(open_place(&place));
	EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &worker));
	/* One that waits, and has its token. */
	EXPECT_NONE(dispatch(&place, LATEST, EVC_LANE_QUEUE_HIGH, 1));
	EXPECT_OK(evc_envelope_create(place.latest, EVC_LANE_QUEUE_LOW, sizeof(uint64_t),
				      _Alignof(uint64_t), &envelope));
	memcpy(evc_envelope_payload(envelope), &(uint64_t){ 2 }, sizeof(uint64_t));
	evc_chain_append(&chain, envelope);
	suite_allocator_install(0, UINT64_MAX);
	while (count < 8192 && (segments[count] = evc_queue_segment_create()) != NULL)
		count++;
	is_out = count < 8192;
	status = place.latest->sink->accept(place.latest->sink, &chain);
	while (count > 0)
		evc_queue_segment_untake(segments[--count]);
	suite_allocator_restore();
	EXPECT(is_out, "memory is not out");
	EXPECT_STATUS(status, EVC_OUT_OF_MEMORY);
	EXPECT_NONE(expect_take(worker, EVC_LANE_QUEUE_HIGH, 1));
	EXPECT_NONE(expect_empty(worker));
	/* It is still the caller's, who may try again. */
	EXPECT_OK(place.latest->sink->accept(place.latest->sink, &chain));
	EXPECT_NONE(expect_take(worker, EVC_LANE_QUEUE_LOW, 2));
	EXPECT_NONE(expect_taken(&place, 2, 0));
	evc_worker_destroy(worker);
	return close_place(&place, 0);
}

static const struct evc_suite_test tests[] = {
	{ "D4 of the waiting events the newest is taken, by whichever worker comes first", newest_of_some },
	{ "D1 the newest is on its own lane, whatever lanes the others were on", every_three_lanes },
	{ "a worker may take the next while another handles the one before", next_while_handled },
	{ "D1 a latest-only subscription of one worker has a slot of its own", own_slot },
	{ "D12 a closed mailbox refuses, and a wrong argument is a status", refused },
	{ "D4 producers on any lanes, one worker: the last is handled, the others too or counted", one_worker },
	{ "D4 the same for some workers and one queue", one_lane },
	{ "D4 the same for some workers and one stack", one_stack },
	{ "D4 the same for some workers and any lanes", any_lanes },
	{ "D4 the same while workers come and go", changing_workers },
	{ "D4 D10 dispatches that race close are superseded, taken or dropped, once", close_it },
	{ "D4 D10 dispatches that race close_when_empty likewise", drain_it },
	{ "D4 D10 dispatches that race close without a worker likewise", nobody },
	{ "a flood that nobody consumes takes no memory", memory },
	{ "D12 without memory a dispatch is refused, and nothing is lost", no_memory },
};
SUITE_GROUP(suite_shared_latest, tests);
#endif
