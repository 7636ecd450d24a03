/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Lanes of more than a segment of a shared mailbox: segments are appended, left and reclaimed while other threads put,
 * take, look and count.
 */
#include "post.h"

/* By build.sh. */
#define SEGMENT EVC_QUEUE_CELLS

static struct evc_router *router;
static struct evc_shared_mailbox *mailbox;
static struct evc_subscription *subscription;
static struct evc_worker *workers[2];

static uint32_t seen[SEGMENT + 4];

UNSEEN static void note_seen(uint32_t number)
{
	seen[number]++;
}

static bool deliver_many(void *worker, void *context, void *payload, struct evc_envelope *envelope,
			 bool owned)
{
	struct event *event = payload;

	(void)worker;
	(void)context;
	(void)envelope;
	(void)owned;
	note_seen(event->number);
	return false;
}

static void post_many(uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		struct event event = { i, i };

		CHECK(evc_dispatch_bytes(router, KEY, EVC_LANE_QUEUE_NORMAL, &event, sizeof(event),
					 _Alignof(struct event), NULL) == EVC_OK);
	}
}

/* How many of `count` attempts took an event. */
static uint32_t take_some(struct evc_worker *worker, uint32_t count)
{
	struct evc_envelope *envelope;
	uint32_t taken = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (evc_worker_take(worker, &envelope) != EVC_OK)
			continue;
		note_seen(((struct event *)evc_envelope_payload(envelope))->number);
		evc_worker_recycle(worker, envelope, true);
		taken++;
	}
	return taken;
}

static void set_up(void)
{
	struct evc_shared_subscription_options options = { .size = sizeof(options), .deliver = deliver_many };

	router = make_router();
	CHECK(evc_shared_mailbox_create(&mailbox) == EVC_OK);
	CHECK(evc_shared_mailbox_add_subscription(mailbox, &options, &subscription) == EVC_OK);
	subscribe(router, subscription);
	for (unsigned i = 0; i < 2; i++)
		CHECK(evc_worker_create(mailbox, NULL, &workers[i]) == EVC_OK);
}

static void tear_down(uint32_t count)
{
	explorer_forbid_idling(false);
	for (uint32_t i = 0; i < count; i++)
		CHECK(seen[i] == 1);
	for (unsigned i = 0; i < 2; i++)
		evc_worker_destroy(workers[i]);
	evc_router_destroy(router);
	evc_shared_mailbox_release(mailbox);
	explorer_settle();
}

static void *post_three(void *first)
{
	post_many(*(uint32_t *)first, 3);
	return NULL;
}

static void *take_four(void *worker)
{
	(void)take_some(worker, 4);
	return NULL;
}

SCENARIO(shared_segments)
{
	static uint32_t first[2] = { SEGMENT - 2, SEGMENT + 1 };
	pthread_t threads[3];

	set_up();
	post_many(0, SEGMENT - 2);
	(void)take_some(workers[1], SEGMENT - 4);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(post_three, &first[i]);
	threads[2] = explorer_start(take_four, workers[0]);
	(void)take_some(workers[1], 4);
	for (unsigned i = 0; i < 3; i++)
		explorer_join(threads[i]);
	(void)take_some(workers[1], 8);
	tear_down(SEGMENT + 4);
}

/* Two producers need the next segment at once: one of them appends its own, the other finds that. */
static void *post_one_more(void *first)
{
	post_many(*(uint32_t *)first, 1);
	return NULL;
}

SCENARIO(shared_segments_append)
{
	static uint32_t first[2] = { SEGMENT, SEGMENT + 1 };
	pthread_t threads[2];

	set_up();
	post_many(0, SEGMENT);
	(void)take_some(workers[1], SEGMENT);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(post_one_more, &first[i]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	CHECK(take_some(workers[1], 2) == 2);
	tear_down(SEGMENT + 2);
}

/* A worker that sleeps at the end of a segment learns of the next one. */
static void *take_one_more(void *worker)
{
	while (take_some(worker, 1) == 0)
		(void)evc_worker_wait(worker, EVC_FOREVER);
	return NULL;
}

SCENARIO(shared_segments_park)
{
	pthread_t thread;

	set_up();
	post_many(0, SEGMENT);
	(void)take_some(workers[1], SEGMENT);
	explorer_forbid_idling(true);
	thread = explorer_start(take_one_more, workers[0]);
	post_many(SEGMENT, 1);
	explorer_join(thread);
	tear_down(SEGMENT + 1);
}

/* Threads that count and look while segments are appended and reclaimed. */
static void *count_and_look(void *unused)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_shared_mailbox_depths(mailbox, depths);
	if (depths[EVC_LANE_QUEUE_NORMAL] > 3)
		explorer_fail("a depth of %ld", (long)depths[EVC_LANE_QUEUE_NORMAL]);
	(void)evc_worker_wait(workers[0], 1);
	return unused;
}

SCENARIO(shared_segments_count)
{
	pthread_t thread;

	set_up();
	post_many(0, SEGMENT);
	(void)take_some(workers[1], SEGMENT);
	thread = explorer_start(count_and_look, NULL);
	post_many(SEGMENT, 3);
	CHECK(take_some(workers[1], 3) == 3);
	explorer_join(thread);
	tear_down(SEGMENT + 3);
}

/* One event at a time: a count that sees a later one sees that the earlier ones were taken. */
static void *count_one(void *unused)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_shared_mailbox_depths(mailbox, depths);
	if (depths[EVC_LANE_QUEUE_NORMAL] > 1)
		explorer_fail("a depth of %ld where one event was", (long)depths[EVC_LANE_QUEUE_NORMAL]);
	return unused;
}

SCENARIO(shared_segments_depth_of_one)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(count_one, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		post_many(i, 1);
		CHECK(take_some(workers[1], 1) == 1);
	}
	explorer_join(thread);
	tear_down(3);
}
