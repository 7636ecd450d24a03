/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Memory of a shared mailbox: none is allocated once warm, it stays constant, that of a burst is given back,
 * and every allocation may fail.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "shared.h"

#include "shared/shared_mailbox_private.h"

#include <string.h>

#define FOR_EVER UINT64_MAX

/*
 * A complete life with one allocation after the other failing. On a thread of its own, so that the slab pools
 * of this thread are not used; a record that it adopts may be warm, and then fewer sites are reached.
 */
#ifdef SUITE_ADDRESS_SANITIZER
/* Every envelope is an allocation there. */
#define LIFE_EVENTS 5u
#else
#define LIFE_EVENTS (3 * EVC_QUEUE_CELLS)
#endif

struct life {
	unsigned patience, failures;
	const char *message;
	char text[256];
	struct shared_receiver receiver;
};

#define TRY(call)                                                                                  \
	do {                                                                                       \
		enum evc_status status_;                                                           \
		while ((status_ = (call)) == EVC_OUT_OF_MEMORY && life->failures < life->patience) \
			life->failures++;                                                          \
		EXPECT(status_ == EVC_OK, "%s: found \"%s\"", #call, evc_status_text(status_));    \
	} while (0)

static bool deliver(void *worker_context, void *context, void *payload,
		    struct evc_envelope *envelope, bool owned)
{
	(void)worker_context, (void)payload, (void)envelope, (void)owned;
	atomic_fetch_add(&((struct shared_receiver *)context)->delivered, 1);
	return true;
}

static void finalize(void *context)
{
	atomic_fetch_add(&((struct shared_receiver *)context)->finalized, 1);
}

static const char *live(struct life *life)
{
	struct shared_receiver *receiver = &life->receiver;
	struct evc_shared_subscription_options options = { sizeof(options), receiver, deliver, NULL, finalize };
	struct evc_mailbox_options posix = { .size = sizeof(posix), .parker = evc_parker_posix() };
	struct evc_worker *workers[2];
	struct evc_thread *thread;
	struct evc_router *router;
	unsigned posted = 0;
	uint64_t payload = 1;

	TRY(evc_router_create(&router));
	TRY(evc_shared_mailbox_create(&receiver->mailbox));
	TRY(evc_shared_mailbox_add_subscription(receiver->mailbox, &options,
						&receiver->subscription));
	TRY(evc_worker_create(receiver->mailbox, NULL, &workers[0]));
	TRY(evc_worker_create(receiver->mailbox, &posix, &workers[1]));
	TRY(evc_router_subscribe(router, 1, receiver->subscription, 0, false));
	for (unsigned i = 0; i < LIFE_EVENTS; i++) {
		uint32_t receivers;

		/* What the sink needs was set aside before. */
		TRY(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_LOW, &payload, 8, 8, &receivers));
		EXPECT_EQUAL(receivers, 1, "receivers of a dispatch that was not refused");
		posted++;
	}
	for (unsigned i = 0; i < EVC_LANE_COUNT; i++, posted++)
		TRY(shared_post(receiver, i, 1));
	TRY(evc_thread_start_worker(NULL, workers[0], &thread));
	evc_shared_mailbox_close_when_empty(receiver->mailbox);
	EXPECT_STATUS(evc_worker_run(workers[1]), EVC_CLOSED);
	EXPECT_OK(evc_thread_join(thread));
	TRY(evc_router_unsubscribe(router, 1, receiver->subscription));
	evc_router_destroy(router);
	evc_worker_destroy(workers[0]);
	evc_worker_destroy(workers[1]);
	evc_shared_mailbox_release(receiver->mailbox);
	EXPECT_EQUAL(receiver->delivered, posted, "envelopes handled");
	return NULL;
}

static void *live_on_thread(void *context)
{
	struct life *life = context;
	const char *message = live(life);

	if (message != NULL) {
		strncpy(life->text, message, sizeof(life->text) - 1);
		life->message = life->text;
	}
	return NULL;
}

static const char *each_site(uint64_t fail_count)
{
	bool over = false;
	uint64_t fail_at = 0;

	for (; !over; fail_at++) {
		static struct life life;
		struct suite_allocations counts;
		pthread_t thread;

		EXPECT(fail_at < 200, "still failing after 200 lives");
		memset(&life, 0, sizeof(life));
		life.patience = (unsigned)fail_count;
		suite_allocator_install(fail_at, fail_count);
		EXPECT(pthread_create(&thread, NULL, live_on_thread, &life) == 0, "no thread");
		pthread_join(thread, NULL);
		EXPECT(life.message == NULL, "allocation %llu failing: %s",
		       (unsigned long long)fail_at, life.text);
		EXPECT(suite_quiesce() && suite_quiesce(), "the callback thread got stuck");
		counts = suite_allocator_read();
		EXPECT_EQUAL(counts.live, 0, "blocks that were not freed");
		EXPECT_EQUAL(life.receiver.finalized, 1, "calls of finalize");
		over = counts.failed == 0;
	}
	EXPECT(fail_at > 12, "only %llu sites were reached", (unsigned long long)fail_at);
	return NULL;
}

static const char *failing(void)
{
	const char *message = each_site(1);

	if (message == NULL)
		message = each_site(3);
	suite_allocator_restore();
	return message;
}

#ifndef SUITE_ADDRESS_SANITIZER

struct pair {
	struct shared_receiver receiver;
	struct evc_worker *workers[2];
	_Atomic uint64_t taken;
	_Atomic uint64_t failures;
	uint64_t count;
};

/* Posts to every lane, two takers at once, in bursts that span several segments. */
static void *post_bursts(void *context)
{
	struct pair *pair = context;

	for (uint64_t i = 0; i < pair->count; i++) {
		if (shared_post(&pair->receiver, (unsigned)(i % EVC_LANE_COUNT), i) != EVC_OK)
			atomic_fetch_add(&pair->failures, 1);
		/* At most 5,000 in flight. */
		if (i % 5000 == 0 && !suite_await(&pair->taken, i))
			atomic_fetch_add(&pair->failures, 1);
	}
	return NULL;
}

static void *take_bursts(void *context)
{
	struct pair *pair = context;
	/* Each of the two takers takes the worker that is left. */
	static _Atomic unsigned next;
	struct evc_worker *worker = pair->workers[atomic_fetch_add(&next, 1) % 2];

	while (atomic_load(&pair->taken) < pair->count) {
		unsigned lane;
		uint64_t value;

		if (shared_take(worker, &lane, &value) == EVC_OK)
			atomic_fetch_add(&pair->taken, 1);
	}
	return NULL;
}

static const char *bursts(struct pair *pair, uint64_t count)
{
	pthread_t threads[3];

	pair->count = count;
	pair->taken = 0;
	pthread_create(&threads[0], NULL, post_bursts, pair);
	pthread_create(&threads[1], NULL, take_bursts, pair);
	pthread_create(&threads[2], NULL, take_bursts, pair);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQUAL(pair->failures, 0, "posts that failed");
	return NULL;
}

static const char *flat(void)
{
	static struct pair pair;
	struct evc_pool_statistics warm, after;

	memset(&pair, 0, sizeof(pair));
	EXPECT_NONE(shared_open(&pair.receiver));
	for (unsigned i = 0; i < 2; i++)
		EXPECT_OK(evc_worker_create(pair.receiver.mailbox, NULL, &pair.workers[i]));
	for (unsigned i = 0; i < 5; i++)
		EXPECT_NONE(bursts(&pair, SUITE_SCALE(200000u)));
	evc_pool_read_statistics(&warm);
	for (unsigned i = 0; i < 20; i++)
		EXPECT_NONE(bursts(&pair, SUITE_SCALE(200000u)));
	evc_pool_read_statistics(&after);
	/* Segments wait for grace periods of unknown length: allow some slack. */
	EXPECT(after.slab_bytes <= warm.slab_bytes + ((size_t)4 << 20),
	       "%zu bytes once warm, %zu after four times as much", warm.slab_bytes,
	       after.slab_bytes);
	for (unsigned i = 0; i < 2; i++)
		evc_worker_destroy(pair.workers[i]);
	evc_shared_mailbox_release(pair.receiver.mailbox);
	return NULL;
}

/* Alternately, on one thread: nothing is allocated after the segments' first round. */
static const char *warm_body(void)
{
	struct shared_receiver receiver;
	struct evc_worker *worker;
	struct suite_allocations first;
	unsigned lane;
	uint64_t value;

	EXPECT_NONE(shared_open(&receiver));
	EXPECT_OK(evc_worker_create(receiver.mailbox, NULL, &worker));
	for (unsigned i = 0; i < 40 * EVC_QUEUE_CELLS; i++) {
		EXPECT_OK(shared_post(&receiver, i % EVC_LANE_COUNT, i));
		EXPECT_OK(shared_take(worker, &lane, &value));
	}
	first = suite_allocator_read();
	for (unsigned round = 0; round < 20; round++) {
		/* The segments of the last round are reclaimed: a rate at which grace periods keep up. */
		EXPECT(suite_quiesce(), "the callback thread got stuck");
		for (unsigned i = 0; i < 20 * EVC_QUEUE_CELLS; i++) {
			EXPECT_OK(shared_post(&receiver, i % EVC_LANE_COUNT, i));
			EXPECT_OK(shared_take(worker, &lane, &value));
		}
	}
	EXPECT_EQUAL(suite_allocator_read().calls, first.calls, "allocations once warm");
	evc_worker_destroy(worker);
	evc_shared_mailbox_release(receiver.mailbox);
	return NULL;
}

static const char *warm(void)
{
	const char *message;

	suite_allocator_install(FOR_EVER, 0);
	message = warm_body();
	suite_allocator_restore();
	return message;
}

static void *burst_on_thread(void *context)
{
	struct pair *pair = context;

	for (uint64_t i = 0; i < pair->count; i++)
		if (shared_post(&pair->receiver, (unsigned)(i % EVC_LANE_COUNT), i) != EVC_OK)
			atomic_fetch_add(&pair->failures, 1);
	return NULL;
}

static const char *shrinks(void)
{
	static struct pair pair;
	struct evc_pool_statistics before, full, after;
	uint64_t depths[EVC_LANE_COUNT], value;
	pthread_t thread;
	unsigned lane;

	memset(&pair, 0, sizeof(pair));
	pair.count = 1000000;
	EXPECT_NONE(shared_open(&pair.receiver));
	EXPECT_OK(evc_worker_create(pair.receiver.mailbox, NULL, &pair.workers[0]));
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	evc_pool_trim();
	evc_pool_trim();
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	evc_pool_read_statistics(&before);
	pthread_create(&thread, NULL, burst_on_thread, &pair);
	pthread_join(thread, NULL);
	EXPECT_EQUAL(pair.failures, 0, "posts that failed");
	evc_shared_mailbox_depths(pair.receiver.mailbox, depths);
	for (unsigned l = 0; l < EVC_LANE_COUNT; l++)
		EXPECT_EQUAL(depths[l], pair.count / EVC_LANE_COUNT, "depth of a lane");
	for (uint64_t i = 0; i < pair.count; i++)
		EXPECT_OK(shared_take(pair.workers[0], &lane, &value));
	evc_pool_read_statistics(&full);
	EXPECT(full.slab_bytes_peak >= 64000000, "a million envelopes in flight took %zu bytes only",
	       full.slab_bytes_peak);
	evc_worker_destroy(pair.workers[0]);
	/* The mailbox still exists: it is not its end that gives the memory back. */
	/* If a trim is running on the callback thread, ours returns at once: then try again. */
	for (unsigned i = 0; i < 100; i++) {
		EXPECT(suite_quiesce(), "the callback thread got stuck");
		evc_pool_trim();
		evc_pool_read_statistics(&after);
		if (after.slab_bytes <= before.slab_bytes + ((size_t)1 << 20))
			break;
	}
	EXPECT(after.slab_bytes <= before.slab_bytes + ((size_t)1 << 20),
	       "%zu bytes before the burst, %zu in it, %zu after trims", before.slab_bytes,
	       full.slab_bytes, after.slab_bytes);
	evc_shared_mailbox_release(pair.receiver.mailbox);
	return NULL;
}
#endif

static const char *errors(void)
{
	struct evc_shared_subscription_options options = { .size = sizeof(options) };
	struct evc_mailbox_options strategy = { .size = sizeof(strategy), .strategy = (enum evc_wait_strategy)9 };
	static struct evc_worker *workers[EVC_WORKERS_MAX];
	struct evc_chain empty = EVC_CHAIN_EMPTY;
	struct evc_subscription *subscription;
	struct shared_receiver receiver;
	struct evc_thread *thread;
	struct evc_worker *worker;

	EXPECT_STATUS(evc_shared_mailbox_create(NULL), EVC_INVALID_ARGUMENT);
	EXPECT_NONE(shared_open(&receiver));
	EXPECT_STATUS(evc_shared_mailbox_add_subscription(receiver.mailbox, &options, &subscription),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_shared_mailbox_post(receiver.mailbox, &empty), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_worker_create(NULL, NULL, &worker), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_worker_create(receiver.mailbox, &strategy, &worker), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_thread_start_worker(NULL, NULL, &thread), EVC_INVALID_ARGUMENT);
	for (unsigned i = 0; i < EVC_WORKERS_MAX; i++)
		EXPECT_OK(evc_worker_create(receiver.mailbox, NULL, &workers[i]));
	EXPECT_STATUS(evc_worker_create(receiver.mailbox, NULL, &worker), EVC_NOT_PERMITTED);
	evc_worker_destroy(workers[100]);
	EXPECT_OK(evc_worker_create(receiver.mailbox, NULL, &workers[100]));
	for (unsigned i = 0; i < EVC_WORKERS_MAX; i++)
		evc_worker_destroy(workers[i]);
	evc_shared_mailbox_release(receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D12 shared: every allocation may fail: a status, and nothing is lost", failing },
	{ "D12 shared: wrong arguments and one worker too many are refused", errors },
#ifndef SUITE_ADDRESS_SANITIZER
	{ "D5 shared: post and take allocate nothing once warm", warm },
	{ "shared: memory stays flat while segments go round", flat },
	{ "shared: a burst of a million gives its memory back", shrinks },
#endif
};
SUITE_GROUP(suite_shared_memory, tests);
#endif
