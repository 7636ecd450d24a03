/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The workers of a shared mailbox come and go, and have mailboxes of their own. */
#include "shared.h"

/* A worker retires while events are posted: the other one takes them. */
SCENARIO(shared_retire)
{
	pthread_t threads[3];

	set_up(false);
	explorer_forbid_idling(true);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(run_worker, workers[i]);
	threads[2] = explorer_start(produce, &producers[0]);
	evc_mailbox_close_when_empty(evc_worker_mailbox(workers[0]));
	explorer_join(threads[0]);
	explorer_join(threads[2]);
	evc_shared_mailbox_close_when_empty(mailbox);
	explorer_join(threads[1]);
	CHECK(tally_count_handled() == 2);
	tear_down();
}

/* What is posted to the worker's own mailbox wakes it as well. */
static void *post_own(void *unused)
{
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

SCENARIO(shared_own_mailbox)
{
	struct evc_subscription_options options = tally_options();
	struct evc_subscription *own;
	pthread_t threads[2];

	set_up(false);
	CHECK(evc_mailbox_add_subscription(evc_worker_mailbox(workers[0]), &options, &own) == EVC_OK);
	CHECK(evc_router_unsubscribe(router, KEY, subscription) == EVC_OK);
	subscribe(router, own);
	explorer_forbid_idling(true);
	threads[0] = explorer_start(run_worker, workers[0]);
	threads[1] = explorer_start(post_own, NULL);
	explorer_join(threads[1]);
	evc_shared_mailbox_close_when_empty(mailbox);
	explorer_join(threads[0]);
	CHECK(tally_count_handled() == 1);
	CHECK(evc_router_unsubscribe(router, KEY, own) == EVC_OK);
	tear_down();
}

/* A worker is held, then admitted. */
SCENARIO(shared_hold)
{
	pthread_t threads[2];

	set_up(false);
	evc_worker_hold(workers[0]);
	explorer_forbid_idling(true);
	threads[0] = explorer_start(run_worker, workers[0]);
	threads[1] = explorer_start(produce, &producers[0]);
	evc_worker_admit(workers[0]);
	explorer_join(threads[1]);
	evc_shared_mailbox_close_when_empty(mailbox);
	explorer_join(threads[0]);
	CHECK(tally_count_handled() == 2);
	tear_down();
}
