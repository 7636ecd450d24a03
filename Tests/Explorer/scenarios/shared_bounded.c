/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A bounded shared mailbox: whoever waits for a place is woken when one is free. */
#include "shared.h"

/* Whoever waits for a place is woken: by a worker that goes on to take, and by one that is about to sleep. */
SCENARIO(shared_block)
{
	set_up_bounded(1, EVC_OVERFLOW_BLOCK, false);
	run_two(evc_shared_mailbox_close_when_empty, false);
	CHECK(tally_count_handled() == 4);
	tear_down();
}

SCENARIO(shared_block_close)
{
	set_up_bounded(1, EVC_OVERFLOW_BLOCK, false);
	run_two(evc_shared_mailbox_close, true);
	tear_down();
}

/*
 * One event fills the mailbox, one producer wants its place, and one worker takes both: either the producer sees the
 * place (B2), or the worker sees that it is waited for (T2).
 */
SCENARIO(shared_block_one)
{
	pthread_t thread;

	set_up_bounded(1, EVC_OVERFLOW_BLOCK, false);
	CHECK(post(router, 4, EVC_LANE_QUEUE_NORMAL) == 1);
	producers[0].count = 1;
	explorer_forbid_idling(true);
	thread = explorer_start(produce, &producers[0]);
	while (tally_count_handled() < 2)
		if (take_as(workers[0]) < 0)
			(void)evc_worker_wait(workers[0], EVC_FOREVER);
	explorer_join(thread);
	tear_down();
}

/* A worker that ends before half of the places are free wakes for those that it has freed. */
static bool retire(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	evc_mailbox_close_when_empty(evc_worker_mailbox(workers[0]));
	return deliver(worker, context, payload, envelope, owned);
}

SCENARIO(shared_block_retire)
{
	pthread_t thread;

	deliver_to = retire;
	set_up_bounded(3, EVC_OVERFLOW_BLOCK, false);
	for (uint32_t i = 4; i < 7; i++)
		CHECK(post(router, i, EVC_LANE_QUEUE_NORMAL) == 1);
	producers[0].count = 1;
	thread = explorer_start(produce, &producers[0]);
	explorer_forbid_idling(true);
	(void)run_worker(workers[0]);
	explorer_join(thread);
	while (take_as(workers[1]) >= 0)
		;
	CHECK(tally_count_handled() == 4);
	tear_down();
}

/* Depths and statistics while a producer displaces: none is below 0, which would be huge. */
static void *read_figures(void *unused)
{
	struct evc_mailbox_statistics statistics;

	evc_shared_mailbox_read_statistics(mailbox, &statistics);
	if (statistics.waiting > 3)
		explorer_fail("%ld events of 3 wait", (long)statistics.waiting);
	return unused;
}

SCENARIO(shared_displace_figures)
{
	pthread_t thread;

	set_up_bounded(1, EVC_OVERFLOW_DROP_OLDEST, false);
	thread = explorer_start(read_figures, NULL);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(post(router, i, EVC_LANE_STACK_NORMAL) == 1);
	explorer_join(thread);
	CHECK(take_as(workers[0]) == 2);
	tear_down();
}
