/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Many producers and many workers on one shared mailbox: each event exactly once (D4), and the order of a
 * queue lane as far as several takers can observe it (D2): of two events of one producer and lane, the take
 * of the later one has not ended before the take of the earlier one began.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "shared.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PRODUCERS 4u
#define EACH SUITE_SCALE(30000u)

struct ticks {
	uint64_t begin, end;
};

static struct world {
	struct shared_receiver receiver;
	unsigned producers, workers;
	uint64_t seed;
	_Atomic uint64_t tick;
	_Atomic uint64_t taken;
	/* By the event's number; used by the worker that took it, until it is joined. */
	struct ticks ticks[MOST_PRODUCERS][30000];
	uint8_t lanes[MOST_PRODUCERS][30000];
	_Atomic uint8_t seen[MOST_PRODUCERS][30000];
	_Atomic uint64_t failures;
} world;

static void *produce(void *context)
{
	uint64_t number = (uint64_t)(uintptr_t)context;
	uint64_t state = world.seed + number + 1;

	for (uint64_t i = 0; i < EACH;) {
		uint64_t random = suite_random(&state);
		/* Runs of one lane alternate with random lanes; now and then a chain. */
		unsigned lane = i / 500 % 2 ? EVC_LANE_QUEUE_NORMAL : random % EVC_LANE_COUNT;
		unsigned count = random % 16 == 0 ? (unsigned)(random >> 8) % 20 + 1 : 1;

		if (count > EACH - i)
			count = (unsigned)(EACH - i);
		for (unsigned j = 0; j < count; j++)
			world.lanes[number][i + j] = (uint8_t)lane;
		if (shared_post_chain(&world.receiver, lane, number << 32 | i, count) != EVC_OK)
			atomic_fetch_add(&world.failures, 1);
		i += count;
	}
	return NULL;
}

static void *take(void *context)
{
	struct evc_worker *worker = context;

	while (atomic_load(&world.taken) < (uint64_t)world.producers * EACH) {
		uint64_t begin = atomic_fetch_add(&world.tick, 1), value;
		unsigned lane;

		if (shared_take(worker, &lane, &value) != EVC_OK) {
			(void)evc_worker_wait(worker, 1000000);
			continue;
		}
		world.ticks[value >> 32][(uint32_t)value] =
			(struct ticks){ begin, atomic_fetch_add(&world.tick, 1) };
		if (atomic_fetch_add(&world.seen[value >> 32][(uint32_t)value], 1) != 0 ||
		    world.lanes[value >> 32][(uint32_t)value] != lane)
			atomic_fetch_add(&world.failures, 1);
		atomic_fetch_add(&world.taken, 1);
	}
	return NULL;
}

/* How many takes ended before that of an earlier event of the same producer and queue lane began. */
static uint64_t inversions(unsigned producer)
{
	uint64_t earliest_end[EVC_LANE_COUNT], count = 0;

	memset(earliest_end, 0xFF, sizeof(earliest_end));
	for (unsigned i = EACH; i-- > 0;) {
		unsigned lane = world.lanes[producer][i];
		const struct ticks *ticks = &world.ticks[producer][i];

		if (lane < EVC_LANE_FIRST_QUEUE)
			continue;
		count += earliest_end[lane] < ticks->begin;
		if (ticks->end < earliest_end[lane])
			earliest_end[lane] = ticks->end;
	}
	return count;
}

static const char *with(unsigned producers, unsigned workers, enum evc_wait_strategy strategy)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .strategy = strategy, .spin_ns = 20000 };
	pthread_t producing[MOST_PRODUCERS], working[SHARED_MOST_WORKERS];
	struct evc_worker *made[SHARED_MOST_WORKERS];
	struct evc_mailbox_statistics statistics;
	uint64_t depths[EVC_LANE_COUNT];

	memset(&world, 0, sizeof(world));
	world.producers = producers;
	world.workers = workers;
	world.seed = suite_seed();
	EXPECT_NONE(shared_open(&world.receiver));
	for (unsigned i = 0; i < workers; i++) {
		EXPECT_OK(evc_worker_create(world.receiver.mailbox, &options, &made[i]));
		pthread_create(&working[i], NULL, take, made[i]);
	}
	for (unsigned i = 0; i < producers; i++)
		pthread_create(&producing[i], NULL, produce, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < producers; i++)
		pthread_join(producing[i], NULL);
	for (unsigned i = 0; i < workers; i++)
		pthread_join(working[i], NULL);
	evc_shared_mailbox_read_statistics(world.receiver.mailbox, &statistics);
	evc_shared_mailbox_depths(world.receiver.mailbox, depths);
	EXPECT_EQUAL(statistics.taken, (uint64_t)producers * EACH, "envelopes taken");
	EXPECT_EQUAL(world.failures, 0, "posts that failed, envelopes twice or on another lane");
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		EXPECT_EQUAL(depths[lane], 0, "depth of an empty lane");
	for (unsigned i = 0; i < producers; i++)
		EXPECT_EQUAL(inversions(i), 0, "takes that were over before an older one began");
	for (unsigned i = 0; i < workers; i++)
		evc_worker_destroy(made[i]);
	evc_shared_mailbox_read_statistics(world.receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, (uint64_t)producers * EACH, "taken by workers that are gone");
	evc_shared_mailbox_release(world.receiver.mailbox);
	EXPECT_EQUAL(world.receiver.finalized, 1, "calls of finalize");
	return NULL;
}

static const char *seeded(unsigned producers, unsigned workers, enum evc_wait_strategy strategy)
{
	const char *message = with(producers, workers, strategy);
	char copy[256];

	if (message == NULL)
		return NULL;
	strncpy(copy, message, sizeof(copy) - 1);
	copy[sizeof(copy) - 1] = '\0';
	return suite_fail("%u producers, %u workers, seed %llu: %s", producers, workers,
			  (unsigned long long)world.seed, copy);
}

static const char *one_and_two(void)
{
	EXPECT_NONE(seeded(1, 2, EVC_WAIT_PARK));
	return seeded(1, 2, EVC_WAIT_YIELD);
}

static const char *two_and_two(void)
{
	EXPECT_NONE(seeded(2, 2, EVC_WAIT_PARK));
	return seeded(2, 2, EVC_WAIT_SPIN_THEN_PARK);
}

static const char *four_and_five(void)
{
	EXPECT_NONE(seeded(4, 5, EVC_WAIT_PARK));
	return seeded(4, 5, EVC_WAIT_SPIN_THEN_PARK);
}

static const char *three_and_one(void)
{
	return seeded(3, 1, EVC_WAIT_PARK);
}

/*
 * Stack lanes on which the same few envelopes are put again and again: a compare-and-swap of single width
 * would fail here.
 */
static struct {
	struct shared_receiver receiver;
	_Atomic uint64_t sum;
	_Atomic uint64_t lost;
} churn;

#define CHURNS SUITE_SCALE(200000u)

static void *churn_stack(void *context)
{
	struct evc_worker *worker = context;

	for (uint64_t i = 1; i <= CHURNS; i++) {
		unsigned lane;
		uint64_t value;

		if (shared_post(&churn.receiver, EVC_LANE_STACK_NORMAL, i) != EVC_OK)
			atomic_fetch_add(&churn.lost, 1);
		/* Each thread puts one before it takes one, so that the stack is never empty. */
		if (shared_take(worker, &lane, &value) != EVC_OK)
			atomic_fetch_add(&churn.lost, 1);
		else
			atomic_fetch_add(&churn.sum, value);
	}
	return NULL;
}

static const char *stack_churn(void)
{
	struct evc_worker *workers[4];
	pthread_t threads[4];

	memset(&churn, 0, sizeof(churn));
	EXPECT_NONE(shared_open(&churn.receiver));
	for (unsigned i = 0; i < 4; i++) {
		EXPECT_OK(evc_worker_create(churn.receiver.mailbox, NULL, &workers[i]));
		pthread_create(&threads[i], NULL, churn_stack, workers[i]);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQUAL(churn.lost, 0, "posts and takes that failed");
	EXPECT_EQUAL(churn.sum, 4 * (CHURNS * (CHURNS + 1ull) / 2), "the sum of all values");
	for (unsigned i = 0; i < 4; i++)
		evc_worker_destroy(workers[i]);
	evc_shared_mailbox_release(churn.receiver.mailbox);
	return NULL;
}

/*
 * D1 with several workers that wait in their handlers:
 *
 *     workers              main
 *     each waits in a      post one event to every lane, most urgent last
 *     handler              release one worker: it takes the most urgent
 *     notes what it took   release the next ...
 *     and waits again
 */
struct standing {
	struct suite_gate gates[EVC_LANE_COUNT + 1];
	_Atomic uint64_t taken;
	unsigned lanes[EVC_LANE_COUNT + 1];
};
static struct standing standing[3];

static void stand(void *worker_context, uint64_t value, unsigned lane)
{
	struct standing *self = worker_context;
	uint64_t round = atomic_load(&self->taken);

	(void)value;
	self->lanes[round] = lane;
	atomic_store_explicit(&self->taken, round + 1, memory_order_release);
	(void)suite_gate_pass(&self->gates[round]);
}

static const char *priority(void)
{
	struct suite_gate shut = SUITE_GATE;
	void *contexts[3] = { &standing[0], &standing[1], &standing[2] };
	struct shared_receiver receiver;
	struct shared_workers workers;

	for (unsigned i = 0; i < 3; i++) {
		memset(&standing[i], 0, sizeof(standing[i]));
		for (unsigned j = 0; j <= EVC_LANE_COUNT; j++)
			standing[i].gates[j] = shut;
	}
	EXPECT_NONE(shared_open(&receiver));
	receiver.hear = stand;
	for (unsigned i = 0; i < 3; i++)
		EXPECT_OK(shared_post(&receiver, EVC_LANE_QUEUE_LOWEST, i));
	EXPECT_NONE(shared_start(&workers, &receiver, 3, NULL, contexts));
	for (unsigned i = 0; i < 3; i++)
		EXPECT(suite_await(&standing[i].taken, 1), "worker %u took nothing", i);
	for (unsigned lane = EVC_LANE_COUNT; lane-- > 0;)
		EXPECT_OK(shared_post(&receiver, lane, lane));
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		struct standing *one = &standing[lane % 3];
		uint64_t round = one->taken;

		suite_gate_open(&one->gates[round - 1]);
		EXPECT(suite_await(&one->taken, round + 1), "lane %u was not taken", lane);
		EXPECT_EQUAL(one->lanes[round], lane, "the lane that was taken");
	}
	evc_shared_mailbox_close(receiver.mailbox);
	for (unsigned i = 0; i < 3; i++)
		suite_gate_open(&standing[i].gates[standing[i].taken - 1]);
	EXPECT_NONE(shared_join(&workers));
	evc_shared_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.delivered, 13, "envelopes handled");
	return NULL;
}

static void wake(void *context)
{
	(void)context;
}

/*
 * A worker sleeps on its own: with a `wake` its thread would not be woken, not even by a cancel. And a bound of its own
 * mailbox is not left out without a word.
 */
static const char *no_wake(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .wake = wake };
	struct evc_mailbox_options bounded = { .size = sizeof(bounded), .capacity = 4 };
	struct shared_receiver receiver;
	struct evc_worker *worker = NULL;

	EXPECT_NONE(shared_open(&receiver));
	EXPECT_STATUS(evc_worker_create(receiver.mailbox, &options, &worker), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_worker_create(receiver.mailbox, &bounded, &worker), EVC_INVALID_ARGUMENT);
	EXPECT(worker == NULL, "a worker was made");
	evc_shared_mailbox_release(receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D1 shared: whichever worker is free takes the most urgent", priority },
	{ "D2 D4 shared: three producers, one worker: order kept, each once", three_and_one },
	{ "D2 D4 shared: one producer, two workers: order kept, each once", one_and_two },
	{ "D2 D4 shared: two producers, two workers: order kept, each once", two_and_two },
	{ "D2 D4 shared: four producers, five workers: order kept, each once", four_and_five },
	{ "D3 D4 shared: four threads on one stack lose and double nothing", stack_churn },
	{ "D10 shared: a worker whose thread nobody could wake is refused", no_wake },
};
SUITE_GROUP(suite_shared_workers, tests);
#endif
