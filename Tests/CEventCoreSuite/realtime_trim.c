/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The reserve of a thread that must not wait, beside trims and on all lanes: while no more is under way than was
 * reserved, nothing is refused, and no page is missing.
 */
#include "platform/config.h"

#ifdef EVC_URCU
/* RUSAGE_THREAD. */
#define _GNU_SOURCE 1
#include "eventcore/pool.h"
#include "memory/thread_record.h"
#include "platform/compiler.h"
#include "suite.h"

#include <sys/resource.h>

#define KEY 1u
#define KEPT_KEY 2u
/* What a receiver may keep of free slots. */
#define CACHED 1024u
#define SLOTS_OF_A_SLAB 4032u

struct world {
	struct evc_router *router;
	/* The second one's events wait, and keep their slabs. */
	struct evc_mailbox *mailboxes[2];
	struct evc_subscription *subscriptions[2];
	uint64_t delivered;
};

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	++*(uint64_t *)context;
	return false;
}

static const char *open_world(struct world *world)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .polled = true };
	struct evc_subscription_options handler = {
		.size = sizeof(handler), .context = &world->delivered, .deliver = deliver
	};

	world->delivered = 0;
	EXPECT_OK(evc_router_create(&world->router));
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_OK(evc_mailbox_create(&options, &world->mailboxes[i]));
		EXPECT_OK(evc_mailbox_add_subscription(world->mailboxes[i], &handler, &world->subscriptions[i]));
		EXPECT_OK(evc_router_subscribe(world->router, i == 0 ? KEY : KEPT_KEY, world->subscriptions[i], 0, false));
	}
	return NULL;
}

static const char *close_world(struct world *world)
{
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_OK(evc_router_unsubscribe(world->router, i == 0 ? KEY : KEPT_KEY, world->subscriptions[i]));
		evc_mailbox_release(world->mailboxes[i]);
	}
	evc_router_destroy(world->router);
	return NULL;
}

static enum evc_status send(struct world *world, enum evc_lane lane)
{
	uint64_t number = 0;

#ifdef EVC_ADDRESS_SANITIZER
	/* There every slot is a block of its own, and none is used again. */
	(void)!evc_reserve(1);
#endif
	return evc_try_dispatch(world->router, KEY, lane, &number, sizeof(number), 8, NULL);
}

/* Of most slabs one slot stays in use, so that a trim releases pages and no slab. */
static const char *after_a_burst_alone(void)
{
	const uint64_t number = 0;
	struct world world;

	EXPECT_NONE(open_world(&world));
	for (unsigned i = 0; i < 30 * SLOTS_OF_A_SLAB; i++)
		EXPECT_OK(evc_dispatch_bytes(world.router, i % SLOTS_OF_A_SLAB == 2000 ? KEPT_KEY : KEY,
					     EVC_LANE_QUEUE_NORMAL, &number, sizeof(number), 8, NULL));
	EXPECT_STATUS(evc_mailbox_pump(world.mailboxes[0], UINT64_MAX), EVC_EMPTY);
	for (unsigned i = 0; i < 3; i++)
		evc_pool_trim();
	EXPECT_OK(evc_reserve(1 + CACHED));
	for (unsigned i = 0; i < 100000; i++) {
		EXPECT_OK(send(&world, EVC_LANE_QUEUE_NORMAL));
		EXPECT_OK(evc_mailbox_pump(world.mailboxes[0], 1));
	}
	return close_world(&world);
}

static const char *after_a_burst(void)
{
	return suite_alone(after_a_burst_alone);
}

/* Each lane has taken a segment of its own, of which it uses one slot. */
static const char *on_all_lanes_alone(void)
{
	const uint64_t most = 2000;
	struct world world;
	uint64_t sent = 0;

	EXPECT_NONE(open_world(&world));
	EXPECT_OK(evc_reserve((uint32_t)most + CACHED));
	for (unsigned round = 0; round < 20; round++)
		for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
			const uint64_t count = lane == EVC_LANE_QUEUE_LOWEST ? most : round % 3 == 0 ? 65 : 1;

			for (uint64_t i = 0; i < count; i++) {
				if (sent - world.delivered == most)
					EXPECT_OK(evc_mailbox_pump(world.mailboxes[0], 1));
				EXPECT_OK(send(&world, (enum evc_lane)lane));
				sent++;
			}
		}
	return close_world(&world);
}

static const char *on_all_lanes(void)
{
	return suite_alone(on_all_lanes_alone);
}

static _Atomic bool trims_end;

static void *trim(void *unused)
{
	while (!atomic_load(&trims_end))
		evc_pool_trim();
	return unused;
}

/* A trim that held the segments of the thread would leave it none for that time. */
static const char *beside_trims_from(uint32_t reserve, unsigned burst)
{
	const unsigned most = 64;
	const char *message = NULL;
	struct world world;
	pthread_t thread;

	EXPECT_NONE(open_world(&world));
	EXPECT_OK(evc_reserve(reserve));
	for (unsigned i = 0; i < burst; i++)
		EXPECT_OK(evc_dispatch_bytes(world.router, KEY, EVC_LANE_QUEUE_NORMAL, &(uint64_t){ i }, 8, 8, NULL));
	EXPECT_STATUS(evc_mailbox_pump(world.mailboxes[0], UINT64_MAX), EVC_EMPTY);
	for (unsigned i = 0; i < 3; i++)
		evc_pool_trim();
	atomic_store(&trims_end, false);
	EXPECT(pthread_create(&thread, NULL, trim, NULL) == 0, "no thread");
	for (unsigned i = 0; i < 500000 && message == NULL; i++) {
		if (send(&world, EVC_LANE_QUEUE_NORMAL) != EVC_OK)
			message = suite_fail("post %u was refused", i);
		if (i % most == most - 1 && evc_mailbox_pump(world.mailboxes[0], UINT64_MAX) != EVC_EMPTY)
			message = suite_fail("events were left");
	}
	atomic_store(&trims_end, true);
	pthread_join(thread, NULL);
	EXPECT_NONE(message);
	return close_world(&world);
}

static const char *beside_trims_alone(void)
{
	struct evc_thread_record *record = evc_thread_record();

	EXPECT(record != NULL, "no record");
	/* That of a thread before, whose events wait elsewhere: a trim may look through it. The next thread gets another. */
	if (atomic_load_explicit(&record->pools[0].bytes, memory_order_relaxed) > EVC_POOL_FLOOR_BYTES / 2)
		return suite_alone(beside_trims_alone);
	return beside_trims_from(64 + CACHED, 0);
}

static const char *beside_trims(void)
{
	return suite_alone(beside_trims_alone);
}

#ifndef EVC_ADDRESS_SANITIZER
/*
 * What it has after them is what a trim leaves: the headers of slabs, and the segments that it takes from, are no surplus.
 * The reserve is no whole number of segments.
 */
static const char *beside_trims_after_a_burst_alone(void)
{
	return beside_trims_from(65 + CACHED, 25 * SLOTS_OF_A_SLAB);
}

static const char *beside_trims_after_a_burst(void)
{
	return suite_alone(beside_trims_after_a_burst_alone);
}

static const char *beside_trims_with_much_alone(void)
{
	return beside_trims_from(100 * SLOTS_OF_A_SLAB, 100 * SLOTS_OF_A_SLAB);
}

static const char *beside_trims_with_much(void)
{
	return suite_alone(beside_trims_with_much_alone);
}
#endif

#ifndef EVC_ADDRESS_SANITIZER
/* A library in the program that reserves for itself takes nothing of what the program has reserved. */
static const char *after_a_smaller_one_alone(void)
{
	const uint32_t most = 4 * SLOTS_OF_A_SLAB;
	struct world world;

	EXPECT_NONE(open_world(&world));
	EXPECT_OK(evc_reserve(most + CACHED));
	EXPECT_OK(evc_reserve(16));
	for (unsigned round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < most; i++)
			EXPECT(send(&world, EVC_LANE_QUEUE_NORMAL) == EVC_OK, "post %u of %u was refused in round %u", i, most,
			       round);
		EXPECT_STATUS(evc_mailbox_pump(world.mailboxes[0], UINT64_MAX), EVC_EMPTY);
		/* A slab that is free in two trims goes. */
		for (unsigned i = 0; i < 3; i++)
			evc_pool_trim();
	}
	return close_world(&world);
}

static const char *after_a_smaller_one(void)
{
	return suite_alone(after_a_smaller_one_alone);
}
#endif

/* The pages of memory are counted where the sanitizers have no memory of their own beside it. */
#if defined(RUSAGE_THREAD) && !defined(SUITE_ADDRESS_SANITIZER) && !defined(SUITE_THREAD_SANITIZER)
/* Some may be of code that the system has let go. A slab with a single segment in use has 62 others without pages. */
#define FAULTS_OF_OTHERS 8

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

static struct world touched;

static const char *use_one_segment(void)
{
	EXPECT_OK(evc_dispatch_bytes(touched.router, KEY, EVC_LANE_QUEUE_NORMAL, &(uint64_t){ 1 }, 8, 8, NULL));
	return NULL;
}

static const char *count_faults(void)
{
	uint64_t sent = 0;
	long before;

	EXPECT_OK(evc_reserve(CACHED));
	EXPECT_OK(send(&touched, EVC_LANE_QUEUE_NORMAL));
	before = faults();
	while (send(&touched, EVC_LANE_QUEUE_NORMAL) == EVC_OK)
		sent++;
	EXPECT(sent + 1 >= CACHED, "%llu sent", (unsigned long long)sent);
	EXPECT(faults() - before < FAULTS_OF_OTHERS, "%ld page faults in %llu posts", faults() - before,
	       (unsigned long long)sent);
	return NULL;
}

/* The second thread takes over the memory of the first, of which most was never used. */
static const char *untouched(void)
{
	EXPECT_NONE(open_world(&touched));
	EXPECT_NONE(suite_alone(use_one_segment));
	EXPECT_NONE(suite_alone(count_faults));
	EXPECT_STATUS(evc_mailbox_pump(touched.mailboxes[0], UINT64_MAX), EVC_EMPTY);
	return close_world(&touched);
}
#endif

static const struct evc_suite_test tests[] = {
#ifndef EVC_ADDRESS_SANITIZER
	{ "D5 a smaller reserve takes nothing of a larger one", after_a_smaller_one },
#endif
	{ "D5 a reserve suffices after a burst, whatever pages a trim has given back", after_a_burst },
	{ "D5 a reserve suffices on all lanes", on_all_lanes },
#ifdef FAULTS_OF_OTHERS
	{ "D5 a post that must not wait has no page fault, also after another thread that has ended", untouched },
#endif
	{ "D5 a trim takes nothing of a reserve, not even for a moment", beside_trims },
#ifndef EVC_ADDRESS_SANITIZER
	{ "D5 nor after a burst that trims have given back", beside_trims_after_a_burst },
	{ "D5 nor of a reserve of many slabs", beside_trims_with_much },
#endif
};
SUITE_GROUP(suite_realtime_trim, tests);
#endif
