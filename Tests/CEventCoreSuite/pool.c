/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Slab pools: nothing is allocated once warm (D5), they outlive their threads, and they shrink.
 *
 * Under AddressSanitizer slots are not recycled, so that there is nothing to test.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <sched.h>
#include <string.h>

#ifndef SUITE_ADDRESS_SANITIZER

#define BURST 500u

static const char *burst(struct evc_router *router, struct suite_receiver *receiver, size_t size)
{
	unsigned char payload[4000] = { 0 };
	uint64_t before = atomic_load(&receiver->delivered);

	for (unsigned i = 0; i < BURST; i++)
		EXPECT_OK(evc_dispatch_bytes(router, 1, (enum evc_lane)(i % 10), payload, size, 8,
					     NULL));
	EXPECT(suite_await(&receiver->delivered, before + BURST), "the consumer got stuck");
	return NULL;
}

/*
 * Calls `run` until it has asked the allocator for nothing. Only a trim excuses one that has: it holds free slots and
 * the records of ended threads for a moment, and gives slabs back by its rule.
 *
 * `trims` are those before the last run that asked for nothing, or before what made the pools warm: what a trim took
 * since then is asked for again.
 */
static const char *run_without_allocations(const char *(*run)(void *context), void *context, uint64_t *trims)
{
	uint64_t calls = 0;

	for (unsigned i = 0; i < 20; i++) {
		struct evc_pool_statistics before, after;

		evc_pool_read_statistics(&before);
		calls = suite_allocator_read().calls;
		EXPECT_NONE(run(context));
		calls = suite_allocator_read().calls - calls;
		if (calls == 0) {
			*trims = before.trims;
			return NULL;
		}
		/* A trim counts itself when it ends. */
		EXPECT(suite_quiesce(), "the callback thread got stuck");
		evc_pool_read_statistics(&after);
		EXPECT(after.trims != *trims, "%llu allocations once warm, without a trim",
		       (unsigned long long)calls);
		*trims = before.trims;
	}
	EXPECT(false, "every run had a trim in it, and the last one %llu allocations", (unsigned long long)calls);
	return NULL;
}

static uint64_t trims_now(void)
{
	struct evc_pool_statistics statistics;

	evc_pool_read_statistics(&statistics);
	return statistics.trims;
}

static const size_t sizes[] = { 8, 32, 100, 1000, 4000 };

struct warm {
	struct suite_receiver receiver;
	struct evc_router *router;
};

static const char *warm_run(void *context)
{
	struct warm *warm = context;

	for (unsigned i = 0; i < SUITE_SCALE(300u); i++)
		for (unsigned s = 0; s < 5; s++)
			EXPECT_NONE(burst(warm->router, &warm->receiver, sizes[s]));
	return NULL;
}

static const char *warm_body(void)
{
	static const unsigned char payload[4000];
	struct warm warm;
	struct evc_thread *thread;
	uint64_t trims;

	EXPECT_NONE(suite_receiver_open(&warm.receiver, NULL));
	EXPECT_OK(evc_router_create(&warm.router));
	EXPECT_OK(evc_router_subscribe(warm.router, 1, warm.receiver.subscription, 0, false));
	/*
	 * Warm means as many slots as can be in use at once: a burst, if the consumer is held up meanwhile,
	 * and a chain on its way back for each class. There is no consumer yet, so that all of them are in
	 * use now, whatever the system schedules.
	 */
	for (unsigned s = 0; s < 5; s++)
		for (unsigned i = 0; i < BURST + 10 * 32; i++)
			EXPECT_OK(evc_dispatch_bytes(warm.router, 1, (enum evc_lane)(i % 10), payload,
						     sizes[s], 8, NULL));
	EXPECT_OK(evc_thread_start(NULL, warm.receiver.mailbox, &thread));
	EXPECT(suite_await(&warm.receiver.delivered, 5 * (BURST + 10 * 32)), "the consumer got stuck");
	trims = trims_now();
	for (unsigned i = 0; i < 20; i++)
		for (unsigned s = 0; s < 5; s++)
			EXPECT_NONE(burst(warm.router, &warm.receiver, sizes[s]));
	EXPECT(suite_allocator_read().calls > 0, "the allocator was not asked at all");
	EXPECT_NONE(run_without_allocations(warm_run, &warm, &trims));
	evc_thread_cancel(thread);
	EXPECT_OK(evc_thread_join(thread));
	evc_router_destroy(warm.router);
	evc_mailbox_release(warm.receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static const char *warm(void)
{
	const char *message;

	suite_allocator_install(0, 0);
	message = warm_body();
	suite_allocator_restore();
	return message;
}

struct poster {
	struct suite_receiver receiver;
	unsigned count;
	enum evc_status status;
};

static void *post_some(void *context)
{
	struct poster *poster = context;

	for (unsigned i = 0; i < poster->count && poster->status == EVC_OK; i++)
		poster->status = suite_post(&poster->receiver, 7, i);
	return NULL;
}

/* Posts on a thread that ends, then takes everything on this one. */
static const char *post_and_take(void *context)
{
	struct poster *poster = context;
	pthread_t thread;
	uint64_t value;
	unsigned lane;

	pthread_create(&thread, NULL, post_some, poster);
	pthread_join(thread, NULL);
	EXPECT_OK(poster->status);
	for (unsigned i = 0; i < poster->count; i++)
		EXPECT_OK(suite_take(&poster->receiver, &lane, &value));
	return NULL;
}

static const char *adopted_body(void)
{
	struct poster poster = { .count = 10000 };
	uint64_t trims = trims_now();

	EXPECT_NONE(suite_receiver_open(&poster.receiver, NULL));
	EXPECT_NONE(post_and_take(&poster));
	for (unsigned i = 0; i < 20; i++)
		EXPECT_NONE(run_without_allocations(post_and_take, &poster, &trims));
	evc_mailbox_release(poster.receiver.mailbox);
	return NULL;
}

static const char *adopted(void)
{
	const char *message;

	suite_allocator_install(0, 0);
	message = adopted_body();
	suite_allocator_restore();
	return message;
}

static size_t slab_bytes(void)
{
	struct evc_pool_statistics statistics;

	evc_pool_read_statistics(&statistics);
	return statistics.slab_bytes;
}

/*
 * Bursts of the floor's size, with the pauses that a program makes between them: whatever trims a pause brings, the next
 * burst maps nothing, and asks the system for no page back. Without the counting allocator, under which no page goes.
 */
static const char *pauses_body(void)
{
	/* The slots in hand of each lane are beside the floor. */
	const unsigned events = EVC_POOL_FLOOR_BYTES / 64 - 10 * 64;
	struct suite_receiver receiver;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	for (unsigned i = 0, clean = 0; clean < 6; i++) {
		uint64_t trims, value;
		unsigned lane;
		size_t before;

		EXPECT(i < 60, "every burst had a trim in it");
		EXPECT(suite_quiesce(), "the callback thread got stuck");
		before = slab_bytes();
		trims = trims_now();
		for (unsigned j = 0; j < events; j++)
			EXPECT_OK(suite_post(&receiver, j % 10, j));
		/* A trim that runs meanwhile holds free slots for a moment. It counts itself when it ends. */
		EXPECT(suite_quiesce(), "the callback thread got stuck");
		if (trims_now() == trims) {
			/* The first burst makes warm. */
			EXPECT(clean == 0 || slab_bytes() == before, "a burst maps %zu bytes once warm",
			       slab_bytes() - before);
			clean++;
		}
		for (unsigned j = 0; j < events; j++)
			EXPECT_OK(suite_take(&receiver, &lane, &value));
		EXPECT_STATUS(evc_mailbox_wait(receiver.mailbox, 0), EVC_TIMED_OUT);
		/* The first trim leaves alone what was used before it; and another one may be running. */
		trims = trims_now();
		while (trims_now() < trims + 3) {
			EXPECT(suite_quiesce(), "the callback thread got stuck");
			evc_pool_trim();
		}
	}
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

/* In a thread of its own, which has nothing from before. */
static void *make_pauses(void *context)
{
	(void)context;
	return (void *)(uintptr_t)pauses_body();
}

static const char *bursts_with_pauses(void)
{
	pthread_t thread;
	void *message;

	pthread_create(&thread, NULL, make_pauses, NULL);
	pthread_join(thread, &message);
	return message;
}

/* 64 MB in flight at once, of which nothing remains in the end. */
static const char *shrinks(void)
{
	struct poster poster = { .count = 1000000 };
	struct evc_pool_statistics before, full, after;

	EXPECT_NONE(suite_receiver_open(&poster.receiver, NULL));
	evc_pool_read_statistics(&before);
	EXPECT_NONE(post_and_take(&poster));
	evc_pool_read_statistics(&full);
	EXPECT(full.slab_bytes_peak >= 64000000, "a million envelopes in flight took %zu bytes only",
	       full.slab_bytes_peak);
	evc_mailbox_release(poster.receiver.mailbox);
	/*
	 * The slab pools of the ended thread are given back entirely. If a trim is running on the callback
	 * thread, ours returns at once: then try again.
	 */
	for (unsigned i = 0; i < 100; i++) {
		EXPECT(suite_quiesce(), "the callback thread got stuck");
		evc_pool_trim();
		evc_pool_read_statistics(&after);
		if (after.slab_bytes <= before.slab_bytes + ((size_t)1 << 20) &&
		    after.trims >= before.trims + 2)
			break;
	}
	EXPECT(after.trims >= before.trims + 2, "%llu trims before, %llu after two more",
	       (unsigned long long)before.trims, (unsigned long long)after.trims);
	EXPECT(after.slab_bytes_peak >= full.slab_bytes, "the peak is below what was read");
	EXPECT(after.slab_bytes <= before.slab_bytes + ((size_t)1 << 20),
	       "%zu bytes before the burst, %zu in it, %zu after trims", before.slab_bytes,
	       full.slab_bytes, after.slab_bytes);
	return NULL;
}

#define CHURNS SUITE_SCALE(50u)
#define BATCH 40000u

struct churn {
	struct suite_receiver receiver;
	_Atomic uint64_t trims;
	_Atomic uint64_t done;
};

static void *keep_posting(void *context)
{
	struct churn *churn = context;
	uint64_t value;
	unsigned lane;

	/* More than the floor, half of it free while the other half is in flight: whole slabs go. */
	for (unsigned i = 0; i < CHURNS; i++) {
		for (unsigned j = 0; j < BATCH; j++)
			(void)suite_post(&churn->receiver, 7, j);
		for (unsigned j = 0; suite_take(&churn->receiver, &lane, &value) == EVC_OK; j++) {
			atomic_fetch_add(&churn->receiver.sum, value + 1);
			if (j == BATCH / 2)
				(void)suite_await(&churn->trims, atomic_load(&churn->trims) + 2);
		}
	}
	atomic_store(&churn->done, 1);
	return NULL;
}

/* A slot that a trim lost or gave twice would change the sum, or a link. */
static const char *trims_live(void)
{
	static struct churn churn;
	pthread_t thread;

	churn.done = 0;
	churn.trims = 0;
	EXPECT_NONE(suite_receiver_open(&churn.receiver, NULL));
	pthread_create(&thread, NULL, keep_posting, &churn);
	while (!atomic_load(&churn.done)) {
		evc_pool_trim();
		atomic_fetch_add(&churn.trims, 1);
	}
	pthread_join(thread, NULL);
	EXPECT_EQUAL(atomic_load(&churn.receiver.sum), CHURNS * (BATCH * (BATCH + 1ull) / 2),
		     "the sum of all payloads");
	evc_mailbox_release(churn.receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D5 dispatch and delivery allocate nothing once warm", warm },
	{ "D5 a burst of the floor's size finds its memory after any pause", bursts_with_pauses },
	{ "the pools of a thread that ended serve the next one", adopted },
	{ "pools give the memory of a burst of a million back", shrinks },
	{ "a trim loses and doubles no slot while its owner works", trims_live },
};

#else

static const char *nothing(void)
{
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "pools do not recycle under AddressSanitizer", nothing },
};

#endif
SUITE_GROUP(suite_pool, tests);
#endif
