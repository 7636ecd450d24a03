/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Urgent events of a shared mailbox (D1). */
#include "shared.h"

static _Atomic int flag;

/* Between a worker's take and its note: another worker may miss what it has taken. */
static bool is_taking[2];

UNSEEN static void note_taking(struct evc_worker *worker, bool is)
{
	is_taking[worker == workers[1]] = is;
}

UNSEEN static bool other_is_taking(struct evc_worker *worker)
{
	return is_taking[worker != workers[1]];
}

/* They overtake, whichever worker takes them; each sees what happened before its take. */
static void *urgent_then_low(void *unused)
{
	(void)post(router, 8, EVC_LANE_STACK_HIGHEST);
	atomic_store_explicit(&flag, 1, memory_order_release);
	(void)post(router, 9, EVC_LANE_QUEUE_LOWEST);
	return unused;
}

static void take_checked(struct evc_worker *worker)
{
	bool is_due = atomic_load_explicit(&flag, memory_order_acquire) != 0 && !tally_was_handled(8);
	int number;

	note_taking(worker, true);
	number = take_as(worker);
	note_taking(worker, false);
	/* Another worker may have taken it meanwhile. */
	if (is_due && number != 8)
		CHECK(tally_was_handled(8) || other_is_taking(worker));
	if (number < 0)
		sched_yield();
}

static void *take_some(void *worker)
{
	for (unsigned i = 0; i < 2; i++)
		take_checked(worker);
	return NULL;
}

SCENARIO(shared_alarm)
{
	pthread_t threads[2];

	set_up(false);
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	(void)post(router, 1, EVC_LANE_QUEUE_NORMAL);
	threads[0] = explorer_start(urgent_then_low, NULL);
	threads[1] = explorer_start(take_some, workers[0]);
	while (!tally_was_handled(9))
		take_checked(workers[1]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	while (take_as(workers[1]) >= 0)
		;
	CHECK(tally_count_handled() == 4);
	tear_down();
}
