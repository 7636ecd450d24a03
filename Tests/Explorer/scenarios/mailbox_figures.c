/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A mailbox: depths and statistics while events are posted and taken. None is more than possible. */
#include "mailbox.h"

/* Depths are read while events are posted and taken, and their memory is reused. */
static void *read_depths(void *unused)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_mailbox_depths(mailbox, depths);
	for (unsigned i = 0; i < EVC_LANE_COUNT; i++)
		CHECK(depths[i] <= 4);
	return unused;
}

SCENARIO(mailbox_depths)
{
	pthread_t threads[2];
	uint64_t depths[EVC_LANE_COUNT];

	set_up(NULL);
	producers[0].count = 4;
	threads[0] = explorer_start(produce, &producers[0]);
	threads[1] = explorer_start(read_depths, NULL);
	take_until(mailbox, 2);
	explorer_join(threads[0]);
	explorer_join(threads[1]);
	evc_mailbox_depths(mailbox, depths);
	CHECK(depths[EVC_LANE_QUEUE_NORMAL] == 2);
	take_until(mailbox, 4);
	tear_down();
}

/* Never more than was there, wherever events are counted: in the heads, beside them, or as drained. */
static uint64_t most;

static void *read_most(void *unused)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_mailbox_depths(mailbox, depths);
	if (depths[EVC_LANE_QUEUE_NORMAL] > most)
		explorer_fail("a depth of %lu where at most %lu events were", depths[EVC_LANE_QUEUE_NORMAL], most);
	return unused;
}

SCENARIO(mailbox_depth_of_one)
{
	pthread_t thread;

	set_up(NULL);
	most = 1;
	thread = explorer_start(read_most, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		(void)post(router, i, EVC_LANE_QUEUE_NORMAL);
		CHECK(take_one(mailbox) == (int)i);
	}
	explorer_join(thread);
	tear_down();
}

/* The same where events wait in the lanes of a bound, whose taking is counted in two steps. */
SCENARIO(bound_depth_of_one)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 2, .overflow = EVC_OVERFLOW_DROP_OLDEST };
	pthread_t thread;

	set_up(&options);
	most = 1;
	thread = explorer_start(read_most, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(post(router, i, EVC_LANE_QUEUE_NORMAL) == 1);
		CHECK(take_one(mailbox) == (int)i);
	}
	explorer_join(thread);
	tear_down();
}

/* Who gets a place knows that the event which had it before has left: it never counts more than the capacity. */
static void *post_and_read(void *number)
{
	(void)post(router, *(uint32_t *)number, EVC_LANE_QUEUE_NORMAL);
	return read_most(NULL);
}

static void depth_of_capacity(enum evc_overflow policy)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 2, .overflow = policy };
	static uint32_t numbers[2] = { 2, 3 };
	pthread_t threads[2];

	set_up(&options);
	most = 2;
	for (uint32_t i = 0; i < 2; i++)
		CHECK(post(router, i, EVC_LANE_QUEUE_NORMAL) == 1);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(post_and_read, &numbers[i]);
	for (unsigned i = 0; i < 2; i++)
		(void)take_one(mailbox);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	while (take_one(mailbox) >= 0)
		continue;
	tear_down();
}

SCENARIO(bound_depth_of_capacity)
{
	depth_of_capacity(EVC_OVERFLOW_REFUSE);
}

SCENARIO(bound_depth_of_capacity_displacing)
{
	depth_of_capacity(EVC_OVERFLOW_DROP_OLDEST);
}

/* The same for one who is admitted by the limit that another producer has raised. */
SCENARIO(bound_depth_by_limit)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 2, .overflow = EVC_OVERFLOW_REFUSE };
	static uint32_t number = 3;
	pthread_t thread;

	set_up(&options);
	most = 2;
	for (uint32_t i = 0; i < 2; i++)
		CHECK(post(router, i, EVC_LANE_QUEUE_NORMAL) == 1);
	thread = explorer_start(post_and_read, &number);
	for (unsigned i = 0; i < 2; i++)
		(void)take_one(mailbox);
	(void)post(router, 2, EVC_LANE_QUEUE_NORMAL);
	explorer_join(thread);
	while (take_one(mailbox) >= 0)
		continue;
	tear_down();
}

SCENARIO(mailbox_depth_of_many)
{
	pthread_t thread;

	set_up(NULL);
	most = 80;
	thread = explorer_start(read_most, NULL);
	post_together(router, 0, 40, EVC_LANE_QUEUE_NORMAL);
	post_together(router, 40, 40, EVC_LANE_QUEUE_NORMAL);
	CHECK(take_one(mailbox) == 0);
	explorer_join(thread);
	evc_mailbox_close(mailbox);
	CHECK(take_one(mailbox) < 0);
	tear_down();
}

SCENARIO(mailbox_depth_beside_head)
{
	pthread_t thread;

	set_up(NULL);
	most = 80;
	thread = explorer_start(read_most, NULL);
	post_together(router, 0, 40, EVC_LANE_QUEUE_NORMAL);
	post_together(router, 40, 40, EVC_LANE_QUEUE_NORMAL);
	explorer_join(thread);
	evc_mailbox_close(mailbox);
	CHECK(take_one(mailbox) < 0);
	tear_down();
}

/* The count of taken events never exceeds that of posts, while a close drops the rest. */
static void *read_statistics(void *unused)
{
	struct evc_mailbox_statistics statistics;

	evc_mailbox_read_statistics(mailbox, &statistics);
	if (statistics.taken > 3)
		explorer_fail("%lu events of 3 were taken", statistics.taken);
	return unused;
}

SCENARIO(mailbox_statistics)
{
	pthread_t threads[2];

	set_up(NULL);
	most = 3;
	threads[0] = explorer_start(read_statistics, NULL);
	threads[1] = explorer_start(read_most, NULL);
	for (uint32_t i = 0; i < 3; i++)
		(void)post(router, i, EVC_LANE_QUEUE_NORMAL);
	evc_mailbox_close(mailbox);
	CHECK(take_one(mailbox) < 0);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down();
}

SCENARIO(mailbox_depth_of_dropped)
{
	pthread_t thread;

	set_up(NULL);
	most = 3;
	thread = explorer_start(read_most, NULL);
	for (uint32_t i = 0; i < 3; i++)
		(void)post(router, i, EVC_LANE_QUEUE_NORMAL);
	evc_mailbox_close(mailbox);
	CHECK(take_one(mailbox) < 0);
	explorer_join(thread);
	tear_down();
}
