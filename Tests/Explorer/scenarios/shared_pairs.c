/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A shared mailbox with two threads at a time, so that the search gets far: one that sleeps against one that
 * posts or closes, two that take, one that reads counts.
 */
#include "shared_pair.h"

static bool deliver(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	(void)worker, (void)context, (void)envelope, (void)owned;
	take_over(payload);
	return true;
}

static void set_up(unsigned count, const struct evc_mailbox_options *options, bool latest)
{
	open_pair(count, options, latest, deliver);
}

/* A close, without a post, reaches a worker that is about to sleep. */
static void close_of_sleeper(void (*close)(struct evc_shared_mailbox *))
{
	pthread_t thread;

	set_up(1, NULL, false);
	explorer_forbid_idling(true);
	thread = explorer_start(run_worker, workers[0]);
	close(mailbox);
	explorer_join(thread);
	tear_down(1);
}

SCENARIO(shared_close_of_sleeper)
{
	close_of_sleeper(evc_shared_mailbox_close);
}

SCENARIO(shared_close_when_empty_of_sleeper)
{
	close_of_sleeper(evc_shared_mailbox_close_when_empty);
}

/* So does a post, and a second one while the worker is awake; both are handled before the close. */
SCENARIO(shared_park_one)
{
	pthread_t thread;

	set_up(1, NULL, false);
	explorer_forbid_idling(true);
	thread = explorer_start(run_worker, workers[0]);
	CHECK(post(router, 0, EVC_LANE_QUEUE_NORMAL) == 1);
	CHECK(post(router, 1, EVC_LANE_STACK_NORMAL) == 1);
	evc_shared_mailbox_close_when_empty(mailbox);
	explorer_join(thread);
	CHECK(tally_count_handled() == 2);
	tear_down(1);
}

/* A post against the close, whose worker ends: it is handled or dropped, or it was refused. */
static void *post_one(void *unused)
{
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

static void *post_low(void *unused)
{
	(void)post(router, 1, EVC_LANE_QUEUE_LOW);
	return unused;
}

static void post_against_end(void (*close)(struct evc_shared_mailbox *))
{
	struct evc_envelope *envelope;
	pthread_t thread;

	set_up(1, NULL, false);
	/* Not by this thread, whose cached route would keep the mailbox, and with it what its end drops. */
	explorer_join(explorer_start(post_low, NULL));
	thread = explorer_start(post_one, NULL);
	close(mailbox);
	while (evc_worker_take(workers[0], &envelope) == EVC_OK) {
		tally_handled(evc_envelope_payload(envelope));
		evc_worker_recycle(workers[0], envelope, true);
	}
	explorer_join(thread);
	tear_down(1);
}

SCENARIO(shared_post_against_close)
{
	post_against_end(evc_shared_mailbox_close);
}

SCENARIO(shared_post_against_close_when_empty)
{
	post_against_end(evc_shared_mailbox_close_when_empty);
	CHECK(tally_was_handled(1));
}

/* Two workers take from a chain, while one more event is posted. */
static void *take_all(void *worker)
{
	struct evc_envelope *envelope;

	for (unsigned i = 0; i < 3; i++) {
		struct event *event;

		if (evc_worker_take(worker, &envelope) != EVC_OK)
			continue;
		event = evc_envelope_payload(envelope);
		tally_handled(event);
		event->number = event->again = EVENTS;
		evc_worker_recycle(worker, envelope, true);
	}
	return NULL;
}

static void take_by_two(enum evc_lane lane)
{
	pthread_t thread;

	set_up(2, NULL, false);
	(void)post(router, 0, lane);
	post_together(router, 1, 3, lane);
	thread = explorer_start(take_all, workers[0]);
	(void)take_all(workers[1]);
	(void)post(router, 4, lane);
	(void)post(router, 5, lane);
	explorer_join(thread);
	(void)take_all(workers[1]);
	(void)take_all(workers[1]);
	CHECK(tally_count_handled() == 6);
	tear_down(2);
}

SCENARIO(shared_take_by_two)
{
	take_by_two(EVC_LANE_QUEUE_NORMAL);
}

SCENARIO(shared_take_by_two_from_stack)
{
	take_by_two(EVC_LANE_STACK_NORMAL);
}

/*
 * Counts while events are posted, taken and dropped: none falls below zero; and `if_plain`, no event is counted twice. A
 * token may be seen to be dropped before it is seen that it stood for nothing.
 */
static void *read_figures(void *if_plain)
{
	struct evc_mailbox_statistics statistics;
	uint64_t depths[EVC_LANE_COUNT];

	evc_shared_mailbox_read_statistics(mailbox, &statistics);
	if (statistics.taken > 3 || statistics.dropped > 3)
		explorer_fail("%ld taken, %ld dropped", (long)statistics.taken, (long)statistics.dropped);
	if (if_plain != NULL && statistics.accepted > 3)
		explorer_fail("%ld accepted of 3", (long)statistics.accepted);
	evc_shared_mailbox_depths(mailbox, depths);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		if (depths[lane] > 3)
			explorer_fail("a depth of %ld", (long)depths[lane]);
	return if_plain;
}

static void figures(bool latest, bool close, enum evc_lane first, enum evc_lane second)
{
	pthread_t thread;

	set_up(1, NULL, latest);
	thread = explorer_start(read_figures, latest ? NULL : mailbox);
	(void)post(router, 0, first);
	(void)post(router, 1, second);
	(void)post(router, 2, first);
	if (close)
		evc_shared_mailbox_close(mailbox);
	(void)take_all(workers[0]);
	explorer_join(thread);
	if (latest) {
		CHECK(evc_router_unsubscribe(router, KEY, subscription) == EVC_OK);
		evc_latest_subscription_release(subscription);
	}
	tear_down(1);
}

SCENARIO(shared_figures)
{
	figures(false, false, EVC_LANE_QUEUE_NORMAL, EVC_LANE_STACK_NORMAL);
}

SCENARIO(shared_figures_of_dropped)
{
	figures(false, true, EVC_LANE_QUEUE_NORMAL, EVC_LANE_STACK_NORMAL);
}

SCENARIO(shared_latest_figures)
{
	figures(true, false, EVC_LANE_QUEUE_NORMAL, EVC_LANE_STACK_NORMAL);
}

SCENARIO(shared_latest_figures_of_dropped)
{
	figures(true, true, EVC_LANE_QUEUE_NORMAL, EVC_LANE_STACK_NORMAL);
}

/* The `control` of a worker, which closes its mailbox: it is called once for it, and ends. */
static void close_own(void *unused)
{
	(void)unused;
	evc_mailbox_close(evc_worker_mailbox(workers[0]));
}

SCENARIO(shared_control)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .control = close_own };
	pthread_t thread;

	set_up(1, &options, false);
	explorer_forbid_idling(true);
	thread = explorer_start(run_worker, workers[0]);
	evc_mailbox_interrupt(evc_worker_mailbox(workers[0]));
	explorer_join(thread);
	tear_down(1);
}

/*
 * A post has found a worker that sleeps, which then wakes by itself, and another one is made and sleeps: that one is woken
 * instead.
 */
SCENARIO(shared_park_in_turn)
{
	pthread_t thread;

	set_up(1, NULL, false);
	thread = explorer_start(post_one, NULL);
	(void)evc_worker_wait(workers[0], 1000);
	CHECK(evc_worker_create(mailbox, NULL, &workers[1]) == EVC_OK);
	(void)evc_worker_wait(workers[1], 1000);
	explorer_join(thread);
	(void)take_all(workers[1]);
	CHECK(tally_count_handled() == 1);
	tear_down(2);
}

/*
 * A post wakes a worker, which ends instead of taking, since another one takes the event before that sleeps. The next post
 * may rely on the first worker, which then wakes the other one.
 */
static void *wait_and_end(void *worker)
{
	(void)evc_worker_wait(worker, 1000);
	evc_worker_destroy(worker);
	return NULL;
}

SCENARIO(shared_park_and_end)
{
	pthread_t threads[2];

	set_up(2, NULL, false);
	threads[0] = explorer_start(wait_and_end, workers[1]);
	threads[1] = explorer_start(post_low, NULL);
	CHECK(post(router, 0, EVC_LANE_QUEUE_NORMAL) == 1);
	for ((void)take_all(workers[0]); tally_count_handled() < 2; (void)take_all(workers[0]))
		(void)evc_worker_wait(workers[0], EVC_FOREVER);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down(1);
}
