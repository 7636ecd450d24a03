/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Bounded shared mailboxes: the policies at the edges, and floods with several producers and workers. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <string.h>

#define PRODUCERS 2u
#define WORKERS 2u
#define EVENTS SUITE_SCALE(50000u)

struct pool {
	struct evc_shared_mailbox *mailbox;
	struct evc_subscription *subscription;
	struct evc_router *router;
	struct evc_worker *workers[WORKERS];
	_Atomic uint64_t delivered, drops, accepted, own_accepted, own_refused;
	uint64_t events;
	/* Every so many events a handler dispatches one itself; 0: never. */
	uint64_t own_each;
};

static uint32_t dispatch(struct pool *pool, unsigned lane, uint64_t value)
{
	uint32_t receivers = 0;

	(void)!evc_dispatch_bytes(pool->router, 1, (enum evc_lane)lane, &value, sizeof(value), _Alignof(uint64_t),
				  &receivers);
	return receivers;
}

static bool handle(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	struct pool *pool = context;
	uint64_t value;

	(void)worker, (void)envelope, (void)owned;
	memcpy(&value, payload, sizeof(value));
	atomic_fetch_add_explicit(&pool->delivered, 1, memory_order_release);
	if (pool->own_each != 0 && value != 0 && value % pool->own_each == 0)
		atomic_fetch_add(dispatch(pool, EVC_LANE_QUEUE_NORMAL, 0) > 0 ? &pool->own_accepted : &pool->own_refused,
				 1);
	return true;
}

static void drop(void *context, void *payload)
{
	(void)payload;
	atomic_fetch_add_explicit(&((struct pool *)context)->drops, 1, memory_order_relaxed);
}

static const char *open_pool(struct pool *pool, enum evc_overflow policy, uint64_t capacity, uint64_t block_ns)
{
	struct evc_shared_subscription_options options = { .size = sizeof(options), .context = pool, .deliver = handle, .drop = drop };

	memset(pool, 0, sizeof(*pool));
	EXPECT_OK(evc_shared_mailbox_create_bounded(capacity, policy, block_ns, &pool->mailbox));
	EXPECT_OK(evc_shared_mailbox_add_subscription(pool->mailbox, &options, &pool->subscription));
	EXPECT_OK(evc_router_create(&pool->router));
	EXPECT_OK(evc_router_subscribe(pool->router, 1, pool->subscription, 0, false));
	for (unsigned i = 0; i < WORKERS; i++)
		EXPECT_OK(evc_worker_create(pool->mailbox, NULL, &pool->workers[i]));
	return NULL;
}

static const char *close_pool(struct pool *pool)
{
	evc_router_destroy(pool->router);
	for (unsigned i = 0; i < WORKERS; i++)
		evc_worker_destroy(pool->workers[i]);
	evc_shared_mailbox_release(pool->mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

/* What one thread sees: what is accepted, what is taken in which order, and all counters. */
static const char *at_the_edges(void)
{
	static const enum evc_overflow policies[] = { EVC_OVERFLOW_REFUSE, EVC_OVERFLOW_DROP_NEWEST,
						      EVC_OVERFLOW_DROP_OLDEST, EVC_OVERFLOW_BLOCK };

	for (unsigned i = 0; i < 4; i++) {
		for (uint64_t n = 1; n < 10; n++) {
			bool refuses = policies[i] == EVC_OVERFLOW_REFUSE || policies[i] == EVC_OVERFLOW_BLOCK;
			bool is_oldest = policies[i] == EVC_OVERFLOW_DROP_OLDEST;
			struct evc_mailbox_statistics end;
			struct evc_envelope *envelope;
			struct pool pool;
			uint64_t value;

			EXPECT_NONE(open_pool(&pool, policies[i], n, 1000));
			for (uint64_t v = 1; v <= 3 * n; v++)
				EXPECT_EQUAL(dispatch(&pool, EVC_LANE_QUEUE_LOW, v), v <= n || !refuses, "accepted");
			evc_shared_mailbox_read_statistics(pool.mailbox, &end);
			EXPECT_EQUAL(end.waiting, n, "waiting");
			EXPECT_EQUAL(end.accepted, refuses ? n : 3 * n, "accepted");
			EXPECT_EQUAL(end.refused, refuses ? 2 * n : 0, "refused");
			EXPECT_EQUAL(end.overflowed, refuses ? 0 : 2 * n, "overflowed");
			EXPECT_EQUAL(end.high_water, n, "high-water mark");
			/* One more urgent, on a stack, which an equal one displaces. */
			for (uint64_t v = 100; v < 102 && is_oldest && n == 1; v++)
				EXPECT_EQUAL(dispatch(&pool, EVC_LANE_STACK_LOW, v), 1, "accepted");
			for (uint64_t v = 1; v <= n; v++) {
				EXPECT_OK(evc_worker_take(pool.workers[v % WORKERS], &envelope));
				memcpy(&value, evc_envelope_payload(envelope), sizeof(value));
				EXPECT_EQUAL(value, !is_oldest ? v : n == 1 ? 101 : 2 * n + v, "the value");
				evc_worker_recycle(pool.workers[v % WORKERS], envelope, true);
			}
			EXPECT_STATUS(evc_worker_take(pool.workers[0], &envelope), EVC_EMPTY);
			EXPECT_EQUAL(dispatch(&pool, EVC_LANE_STACK_HIGH, 7), 1, "accepted");
			evc_shared_mailbox_read_statistics(pool.mailbox, &end);
			EXPECT_EQUAL(end.taken, n, "taken");
			EXPECT_EQUAL(end.waiting, 1, "waiting");
			EXPECT_NONE(close_pool(&pool));
		}
	}
	return NULL;
}

static void *produce(void *context)
{
	struct pool *pool = context;
	uint64_t accepted = 0;

	for (uint64_t value = 1; value <= pool->events; value++)
		accepted += dispatch(pool, EVC_LANE_QUEUE_NORMAL + value % 2, value);
	atomic_fetch_add(&pool->accepted, accepted);
	return NULL;
}

static const char *flood(enum evc_overflow policy, uint64_t capacity, uint64_t block_ns, bool drains)
{
	struct evc_thread *threads[WORKERS];
	pthread_t producers[PRODUCERS];
	struct evc_mailbox_statistics end;
	struct pool pool;
	uint64_t all;

	EXPECT_NONE(open_pool(&pool, policy, capacity, block_ns));
	pool.events = policy == EVC_OVERFLOW_BLOCK ? EVENTS / 20 : EVENTS;
	pool.own_each = 10;
	all = PRODUCERS * pool.events;
	for (unsigned i = 0; i < WORKERS; i++)
		EXPECT_OK(evc_thread_start_worker(NULL, pool.workers[i], &threads[i]));
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_create(&producers[i], NULL, produce, &pool);
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	if (drains)
		evc_shared_mailbox_close_when_empty(pool.mailbox);
	else
		evc_shared_mailbox_close(pool.mailbox);
	for (unsigned i = 0; i < WORKERS; i++)
		EXPECT_OK(evc_thread_join(threads[i]));
	evc_shared_mailbox_read_statistics(pool.mailbox, &end);
	EXPECT(end.high_water <= capacity, "more waited than may");
	EXPECT_EQUAL(end.accepted, pool.accepted + pool.own_accepted, "accepted");
	EXPECT_EQUAL(end.taken, pool.delivered, "taken");
	EXPECT_EQUAL(end.waiting, 0, "waiting");
	EXPECT_EQUAL(end.taken + end.dropped + end.overflowed, end.accepted, "accepted, by what became of it");
	/* Handlers after the close are refused too, but not for want of a place. */
	EXPECT(end.refused >= all - pool.accepted && end.refused <= all - pool.accepted + pool.own_refused, "refused");
	if (policy == EVC_OVERFLOW_BLOCK && block_ns == EVC_FOREVER)
		EXPECT_EQUAL(pool.accepted, all, "accepted of those who wait");
	return close_pool(&pool);
}

static const char *floods(void)
{
	static const uint64_t capacities[] = { 1, 3, 64, 600 };

	for (unsigned i = 0; i < 4; i++) {
		EXPECT_NONE(flood(EVC_OVERFLOW_REFUSE, capacities[i], 0, i % 2 == 0));
		EXPECT_NONE(flood(EVC_OVERFLOW_DROP_NEWEST, capacities[i], 0, i % 2 != 0));
		EXPECT_NONE(flood(EVC_OVERFLOW_DROP_OLDEST, capacities[i], 0, i % 2 == 0));
		EXPECT_NONE(flood(EVC_OVERFLOW_BLOCK, capacities[i], EVC_FOREVER, i % 2 != 0));
		EXPECT_NONE(flood(EVC_OVERFLOW_BLOCK, capacities[i], 1000, i % 2 == 0));
	}
	return NULL;
}

/* A close ends waits that have no limit. */
static const char *close_ends_waits(void)
{
	pthread_t producers[PRODUCERS];
	struct pool pool;

	EXPECT_NONE(open_pool(&pool, EVC_OVERFLOW_BLOCK, 1, EVC_FOREVER));
	EXPECT_EQUAL(dispatch(&pool, EVC_LANE_QUEUE_LOW, 1), 1, "accepted");
	pool.events = 1;
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_create(&producers[i], NULL, produce, &pool);
	evc_shared_mailbox_close(pool.mailbox);
	for (unsigned i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	EXPECT_EQUAL(pool.accepted, 0, "accepted");
	return close_pool(&pool);
}

static const struct evc_suite_test tests[] = {
	{ "D1 D2 shared: a bounded mailbox under each overflow policy", at_the_edges },
	{ "D4 D5 D7 shared: floods of a bounded mailbox: all events are accounted for", floods },
	{ "D10 shared: a close ends the waits for a place", close_ends_waits },
};
SUITE_GROUP(suite_bound_shared, tests);
#endif
