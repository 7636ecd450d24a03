/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A shared mailbox: several workers, each event goes to one of them, and none sleeps while an event waits. */
#include "shared.h"

SCENARIO(shared_queue)
{
	set_up(false);
	run_two(evc_shared_mailbox_close_when_empty, false);
	CHECK(tally_count_handled() == 4);
	tear_down();
}

SCENARIO(shared_stack)
{
	set_up(false);
	for (unsigned i = 0; i < 2; i++)
		producers[i].lanes[0] = producers[i].lanes[1] = EVC_LANE_STACK_NORMAL;
	run_two(evc_shared_mailbox_close_when_empty, false);
	CHECK(tally_count_handled() == 4);
	tear_down();
}

SCENARIO(shared_close)
{
	set_up(false);
	producers[1].lanes[1] = EVC_LANE_STACK_LOW;
	run_two(evc_shared_mailbox_close, true);
	tear_down();
}

SCENARIO(shared_close_when_empty)
{
	set_up(false);
	producers[1].lanes[1] = EVC_LANE_STACK_LOW;
	run_two(evc_shared_mailbox_close_when_empty, true);
	tear_down();
}

/* Each producer's events in one queue lane come to one worker in their order (D2). */
static void *take_two(void *worker)
{
	int last[2] = { -1, -1 };

	for (unsigned taken = 0; taken < 2;) {
		int number = take_as(worker);

		if (number < 0) {
			(void)evc_worker_wait(worker, EVC_FOREVER);
			continue;
		}
		CHECK(number > last[number / 4]);
		last[number / 4] = number;
		taken++;
	}
	return NULL;
}

/*
 * A post that sees a worker `looking` (P4) relies on the look that follows its W7. Without the fence there,
 * which keeps the loads of the take behind it, a worker took one event, missed the next, and all slept.
 */
SCENARIO(shared_take)
{
	pthread_t threads[3];

	set_up(false);
	explorer_forbid_idling(true);
	threads[0] = explorer_start(take_two, workers[0]);
	for (unsigned i = 0; i < 2; i++)
		threads[1 + i] = explorer_start(produce, &producers[i]);
	(void)take_two(workers[1]);
	for (unsigned i = 0; i < 3; i++)
		explorer_join(threads[i]);
	tear_down();
}

/* One worker, which sleeps before each event if the schedule lets it: none is slept through. */
SCENARIO(shared_park)
{
	pthread_t thread;

	set_up(false);
	explorer_forbid_idling(true);
	thread = explorer_start(produce, &producers[0]);
	(void)take_two(workers[1]);
	explorer_join(thread);
	tally_check_order(0, 2);
	tear_down();
}

/* A chain, taken one by one by two workers, while another thread counts what waits. */
static void *post_three(void *unused)
{
	post_together(router, 8, 3, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

static void *count_waiting(void *unused)
{
	struct evc_mailbox_statistics statistics;
	uint64_t depths[EVC_LANE_COUNT];

	evc_shared_mailbox_depths(mailbox, depths);
	CHECK(depths[EVC_LANE_QUEUE_NORMAL] <= 5);
	evc_shared_mailbox_read_statistics(mailbox, &statistics);
	CHECK(statistics.taken <= 5 && statistics.dropped == 0);
	return unused;
}

SCENARIO(shared_queue_together)
{
	pthread_t threads[5];

	set_up(false);
	explorer_forbid_idling(true);
	threads[0] = explorer_start(post_three, NULL);
	threads[1] = explorer_start(produce, &producers[0]);
	threads[2] = explorer_start(count_waiting, NULL);
	for (unsigned i = 0; i < 2; i++)
		threads[3 + i] = explorer_start(run_worker, workers[i]);
	for (unsigned i = 0; i < 3; i++)
		explorer_join(threads[i]);
	evc_shared_mailbox_close_when_empty(mailbox);
	for (unsigned i = 3; i < 5; i++)
		explorer_join(threads[i]);
	CHECK(tally_count_handled() == 5);
	tear_down();
}

/* Latest-only for several workers: the last event is handled, whichever worker takes it. */
static void latest(bool early)
{
	set_up(true);
	run_two(early ? evc_shared_mailbox_close : evc_shared_mailbox_close_when_empty, early);
	if (!early)
		CHECK(tally_was_handled(1) || tally_was_handled(5));
	CHECK(evc_router_unsubscribe(router, KEY, subscription) == EVC_OK);
	evc_latest_subscription_release(subscription);
	tear_down();
}

SCENARIO(shared_latest)
{
	latest(false);
}

SCENARIO(shared_latest_close)
{
	latest(true);
}
