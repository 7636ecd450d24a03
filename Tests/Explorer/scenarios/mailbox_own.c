/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A mailbox whose consumer posts to itself, beside a producer: its events go straight into the list, and keep
 * the order of all posts (D1, D2).
 */
#include "mailbox.h"

static _Atomic int flag;

/* Events 0 and 1 of the queue, then an urgent one. */
static void *post_and_tell(void *urgent)
{
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	(void)post(router, 1, EVC_LANE_QUEUE_NORMAL);
	if (urgent != NULL)
		(void)post(router, 8, EVC_LANE_STACK_HIGHEST);
	atomic_store_explicit(&flag, 1, memory_order_release);
	return urgent;
}

/* Events 20 to 25, of which some join a batch, between pumps of one event each. */
static void post_own(bool batches, void *urgent)
{
	const struct evc_mailbox_options options = { .size = sizeof(options), .batches = batches };
	struct evc_mailbox *before;
	pthread_t thread;
	uint32_t count = urgent != NULL ? 9 : 8;

	set_up(&options);
	before = evc_mailbox_enter(mailbox);
	thread = explorer_start(post_and_tell, urgent);
	for (uint32_t i = 20; i < 26; i++) {
		bool is_known = atomic_load_explicit(&flag, memory_order_acquire) != 0;
		bool is_due = is_known && urgent != NULL && !tally_was_handled(8);

		(void)post(router, i, EVC_LANE_QUEUE_NORMAL);
		if (i % 3 != 2)
			continue;
		(void)!evc_mailbox_pump(mailbox, 1);
		if (is_due)
			CHECK(tally_was_handled(8));
		/* What happened before a post of the same lane comes first. */
		if (is_known && tally_was_handled(i))
			CHECK(tally_was_handled(1));
	}
	explorer_join(thread);
	while (evc_mailbox_pump(mailbox, 3) == EVC_OK)
		;
	CHECK(tally_count_handled() == count);
	tally_check_order(0, 2);
	tally_check_order(20, 6);
	evc_mailbox_leave(before);
	tear_down();
}

SCENARIO(mailbox_own)
{
	post_own(false, NULL);
}

SCENARIO(mailbox_own_batches)
{
	post_own(true, NULL);
}

SCENARIO(mailbox_own_urgent)
{
	post_own(true, &flag);
}

/* Depths while it posts to itself, so many events at a time: none is more than what waits at one time. */
static uint64_t most;

static void *read_depth(void *unused)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_mailbox_depths(mailbox, depths);
	if (depths[EVC_LANE_QUEUE_NORMAL] > most)
		explorer_fail("a depth of %lu where at most %lu events were", depths[EVC_LANE_QUEUE_NORMAL], most);
	return unused;
}

static void read_while_posting(bool batches, uint32_t events)
{
	const struct evc_mailbox_options options = { .size = sizeof(options), .batches = batches };
	struct evc_mailbox *before;
	pthread_t thread;

	set_up(&options);
	thread = explorer_start(read_depth, NULL);
	before = evc_mailbox_enter(mailbox);
	for (uint32_t i = 1; i < most; i++)
		(void)post(router, i, EVC_LANE_QUEUE_NORMAL);
	for (uint32_t i = most; i <= events; i++) {
		(void)post(router, i, EVC_LANE_QUEUE_NORMAL);
		CHECK(evc_mailbox_pump(mailbox, 1) == EVC_OK);
	}
	while (tally_count_handled() < events)
		(void)!evc_mailbox_pump(mailbox, 1);
	evc_mailbox_leave(before);
	explorer_join(thread);
	tear_down();
}

SCENARIO(mailbox_own_depth)
{
	most = 1;
	read_while_posting(false, 3);
}

/* The third event joins the batch that the second one has opened. */
SCENARIO(mailbox_own_depth_of_batch)
{
	most = 2;
	read_while_posting(true, 3);
}
