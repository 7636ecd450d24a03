/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A shared mailbox: several workers, each event goes to one of them, and none sleeps while an event waits. */
#include "post.h"

static struct evc_router *router;
static struct evc_shared_mailbox *mailbox;
static struct evc_subscription *subscription;
static struct evc_worker *workers[2];
static struct producer producers[2];
static _Atomic int flag;

static bool deliver(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	struct event *event = payload;

	(void)worker;
	(void)context;
	(void)envelope;
	(void)owned;
	CHECK(event->number == event->again && event->number < EVENTS);
	tally_handled(event);
	return false;
}

static void drop_unhandled(void *context, void *payload)
{
	const struct event *event = payload;

	/* Also for events that were handled and not moved out. */
	if (!tally_was_handled(event->number))
		tally_options().drop(context, payload);
}

static void set_up_bounded(uint64_t capacity, bool latest)
{
	struct evc_shared_subscription_options options = { .size = sizeof(options), .deliver = deliver, .drop = drop_unhandled };

	router = make_router();
	CHECK(evc_shared_mailbox_create_bounded(capacity, EVC_OVERFLOW_BLOCK, EVC_FOREVER, &mailbox) == EVC_OK);
	if (latest)
		CHECK(evc_shared_mailbox_add_latest_subscription(mailbox, &options, &subscription) ==
		      EVC_OK);
	else
		CHECK(evc_shared_mailbox_add_subscription(mailbox, &options, &subscription) == EVC_OK);
	subscribe(router, subscription);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(evc_worker_create(mailbox, NULL, &workers[i]) == EVC_OK);
		producers[i] = (struct producer){ router, i * 4, 2,
						  { EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL,
						    EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL } };
	}
}

static void set_up(bool latest)
{
	set_up_bounded(0, latest);
}

static void *run_worker(void *worker)
{
	CHECK(evc_worker_run(worker) == EVC_CLOSED);
	return NULL;
}

static void tear_down(void)
{
	explorer_forbid_idling(false);
	for (unsigned i = 0; i < 2; i++)
		evc_worker_destroy(workers[i]);
	evc_router_destroy(router);
	evc_shared_mailbox_release(mailbox);
	explorer_settle();
	tally_check_once(0, EVENTS);
}

/* Two producers, two workers that run; then the mailbox closes once all is handled. */
static void run_two(void (*close)(struct evc_shared_mailbox *), bool early)
{
	pthread_t threads[4];

	explorer_forbid_idling(true);
	for (unsigned i = 0; i < 2; i++)
		threads[2 + i] = explorer_start(run_worker, workers[i]);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	if (early)
		close(mailbox);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	if (!early)
		close(mailbox);
	for (unsigned i = 2; i < 4; i++)
		explorer_join(threads[i]);
}

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

/* Takes one as a worker; its number, or -1. */
static int take_as(struct evc_worker *worker)
{
	struct evc_envelope *envelope;
	struct event event;

	if (evc_worker_take(worker, &envelope) != EVC_OK)
		return -1;
	event = *(struct event *)evc_envelope_payload(envelope);
	CHECK(event.number == event.again && event.number < EVENTS);
	tally_handled(&event);
	evc_worker_recycle(worker, envelope, true);
	return (int)event.number;
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

/* Urgent events overtake (D1), whichever worker takes them; each sees what happened before its take. */
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

/* Whoever waits for a place is woken: by a worker that goes on to take, and by one that is about to sleep. */
SCENARIO(shared_block)
{
	set_up_bounded(1, false);
	run_two(evc_shared_mailbox_close_when_empty, false);
	CHECK(tally_count_handled() == 4);
	tear_down();
}

SCENARIO(shared_block_close)
{
	set_up_bounded(1, false);
	run_two(evc_shared_mailbox_close, true);
	tear_down();
}
