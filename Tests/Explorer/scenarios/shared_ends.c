/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The ends of a shared mailbox and of its workers, and their beginnings: late events are not left behind, and
 * what was done before an end, or before a worker was admitted, is visible after it.
 */
#include "shared_pair.h"

/* Not atomic: its readers come after. */
static uint32_t said;
static bool is_said;

static bool deliver(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	(void)worker, (void)context, (void)envelope, (void)owned;
	if (is_said)
		CHECK(said == 1);
	take_over(payload);
	return true;
}

static void set_up(unsigned count)
{
	open_pair(count, NULL, false, deliver);
}

static void *post_one(void *unused)
{
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

static void *post_one_to_stack(void *unused)
{
	(void)post(router, 0, EVC_LANE_STACK_NORMAL);
	return unused;
}

/* Nothing waits any more: each event was handled, dropped or refused, and not kept for the last release. */
static void check_nothing_waits(void)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_shared_mailbox_depths(mailbox, depths);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		CHECK(depths[lane] == 0);
	tally_check_once(0, EVENTS);
}

/* A post against the end of the only worker. */
static void post_against_end(void (*close)(struct evc_shared_mailbox *), void *(*post)(void *))
{
	struct evc_envelope *envelope;
	pthread_t thread;

	set_up(1);
	thread = explorer_start(post, NULL);
	close(mailbox);
	while (evc_worker_take(workers[0], &envelope) == EVC_OK) {
		tally_handled(evc_envelope_payload(envelope));
		evc_worker_recycle(workers[0], envelope, true);
	}
	explorer_join(thread);
	check_nothing_waits();
	tear_down(1);
}

SCENARIO(shared_close_leaves_nothing)
{
	post_against_end(evc_shared_mailbox_close, post_one);
}

SCENARIO(shared_close_when_empty_leaves_nothing)
{
	post_against_end(evc_shared_mailbox_close_when_empty, post_one);
}

SCENARIO(shared_close_when_empty_leaves_no_stack)
{
	post_against_end(evc_shared_mailbox_close_when_empty, post_one_to_stack);
}

/* The same if all workers are gone already. */
static void drop_against_post(void *(*post)(void *))
{
	pthread_t thread;

	set_up(0);
	thread = explorer_start(post, NULL);
	evc_shared_mailbox_close_when_empty(mailbox);
	evc_shared_mailbox_drop(mailbox);
	explorer_join(thread);
	check_nothing_waits();
	tear_down(0);
}

SCENARIO(shared_drop)
{
	drop_against_post(post_one);
}

SCENARIO(shared_drop_from_stack)
{
	drop_against_post(post_one_to_stack);
}

/* To a thread that reads the counts, a dropped event was posted before. */
static void *count(void *unused)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_shared_mailbox_depths(mailbox, depths);
	if (depths[EVC_LANE_STACK_NORMAL] > 1)
		explorer_fail("a depth of %ld", (long)depths[EVC_LANE_STACK_NORMAL]);
	return unused;
}

SCENARIO(shared_drop_and_count)
{
	pthread_t threads[2];

	set_up(0);
	threads[0] = explorer_start(post_one_to_stack, NULL);
	threads[1] = explorer_start(count, NULL);
	evc_shared_mailbox_close_when_empty(mailbox);
	evc_shared_mailbox_drop(mailbox);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down(0);
}

/* What was done before the close is visible to the workers that it ends. */
static void *run_and_read(void *worker)
{
	CHECK(evc_worker_run(worker) == EVC_CLOSED);
	CHECK(said == 1);
	return NULL;
}

static void say_before(void (*close)(struct evc_shared_mailbox *))
{
	pthread_t thread;

	set_up(1);
	thread = explorer_start(run_and_read, workers[0]);
	said = 1;
	close(mailbox);
	explorer_join(thread);
	tear_down(1);
}

SCENARIO(shared_close_after_words)
{
	say_before(evc_shared_mailbox_close);
}

SCENARIO(shared_close_when_empty_after_words)
{
	say_before(evc_shared_mailbox_close_when_empty);
}

/* What was done before a worker was admitted is visible when it handles shared events. */
SCENARIO(shared_hold_after_words)
{
	pthread_t threads[2];

	set_up(1);
	is_said = true;
	evc_worker_hold(workers[0]);
	threads[0] = explorer_start(post_one, NULL);
	threads[1] = explorer_start(run_worker, workers[0]);
	said = 1;
	evc_worker_admit(workers[0]);
	explorer_join(threads[0]);
	evc_shared_mailbox_close_when_empty(mailbox);
	explorer_join(threads[1]);
	CHECK(tally_count_handled() == 1);
	tear_down(1);
}

/* A worker that is made while others post: the thread that wakes it finds it. */
static void *join_and_take(void *unused)
{
	struct evc_envelope *envelope;

	CHECK(evc_worker_create(mailbox, NULL, &workers[0]) == EVC_OK);
	while (evc_worker_take(workers[0], &envelope) != EVC_OK)
		(void)evc_worker_wait(workers[0], EVC_FOREVER);
	tally_handled(evc_envelope_payload(envelope));
	evc_worker_recycle(workers[0], envelope, true);
	return unused;
}

SCENARIO(shared_park_of_late)
{
	pthread_t thread;

	set_up(0);
	explorer_forbid_idling(true);
	thread = explorer_start(join_and_take, NULL);
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	explorer_join(thread);
	tear_down(1);
}

/* A worker ends as soon as it is woken: the thread that wakes it still counts that, on the worker. */
static void *wait_and_end(void *worker)
{
	(void)evc_worker_wait(worker, EVC_FOREVER);
	evc_worker_destroy(worker);
	return NULL;
}

SCENARIO(shared_end_while_woken)
{
	struct evc_envelope *envelope;
	pthread_t thread;

	set_up(2);
	thread = explorer_start(wait_and_end, workers[1]);
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	explorer_join(thread);
	CHECK(evc_worker_take(workers[0], &envelope) == EVC_OK);
	tally_handled(evc_envelope_payload(envelope));
	evc_worker_recycle(workers[0], envelope, true);
	tear_down(1);
}

/*
 * One worker wakes because its time limit has passed, while a post relies on its looking: another one must
 * wake. That one ends with the one event that it takes, and there is no close.
 */
static void *take_last(void *worker)
{
	struct evc_envelope *envelope;

	while (evc_worker_take(worker, &envelope) != EVC_OK)
		(void)evc_worker_wait(worker, EVC_FOREVER);
	tally_handled(evc_envelope_payload(envelope));
	evc_worker_recycle(worker, envelope, true);
	return NULL;
}

SCENARIO(shared_park_until_late)
{
	struct evc_envelope *envelope;
	pthread_t threads[2];

	set_up(2);
	threads[0] = explorer_start(take_last, workers[1]);
	threads[1] = explorer_start(post_one, NULL);
	if (evc_worker_wait(workers[0], 10) != EVC_TIMED_OUT &&
	    evc_worker_take(workers[0], &envelope) == EVC_OK) {
		tally_handled(evc_envelope_payload(envelope));
		evc_worker_recycle(workers[0], envelope, true);
		(void)post(router, 1, EVC_LANE_QUEUE_NORMAL);
	}
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down(2);
}

/*
 * A post behind that of another producer which is held up: its event can be taken when the post has returned
 * (D1). The lane has no gap before it for any thread that knows of the post.
 */
static _Atomic bool has_returned;

static void *post_behind(void *unused)
{
	(void)post(router, 1, EVC_LANE_QUEUE_NORMAL);
	atomic_store_explicit(&has_returned, true, memory_order_release);
	return unused;
}

SCENARIO(shared_take_behind)
{
	struct evc_envelope *envelope;
	pthread_t threads[2];

	set_up(1);
	threads[0] = explorer_start(post_one, NULL);
	threads[1] = explorer_start(post_behind, NULL);
	while (!atomic_load_explicit(&has_returned, memory_order_acquire))
		sched_yield();
	if (evc_worker_take(workers[0], &envelope) != EVC_OK)
		explorer_fail("a post has returned, and nothing is there (D1)");
	tally_handled(evc_envelope_payload(envelope));
	evc_worker_recycle(workers[0], envelope, true);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down(1);
}

/* Envelopes that are used again while another taker still reads them on the stack. */
static _Atomic bool has_posted;

static void *take_and_post_again(void *unused)
{
	struct evc_envelope *envelope;

	(void)post(router, 0, EVC_LANE_STACK_NORMAL);
	(void)post(router, 1, EVC_LANE_STACK_NORMAL);
	atomic_store_explicit(&has_posted, true, memory_order_release);
	for (uint32_t i = 2; i < 4; i++) {
		if (evc_worker_take(workers[0], &envelope) == EVC_OK) {
			tally_handled(evc_envelope_payload(envelope));
			evc_worker_recycle(workers[0], envelope, true);
		}
	}
	(void)post(router, 2, EVC_LANE_STACK_NORMAL);
	(void)post(router, 3, EVC_LANE_STACK_NORMAL);
	return unused;
}

SCENARIO(shared_stack_again)
{
	struct evc_envelope *envelope;
	pthread_t thread;

	set_up(2);
	thread = explorer_start(take_and_post_again, NULL);
	while (!atomic_load_explicit(&has_posted, memory_order_acquire))
		sched_yield();
	for (unsigned i = 0; i < 2; i++) {
		if (evc_worker_take(workers[1], &envelope) == EVC_OK) {
			tally_handled(evc_envelope_payload(envelope));
			evc_worker_recycle(workers[1], envelope, true);
		}
	}
	explorer_join(thread);
	while (evc_worker_take(workers[1], &envelope) == EVC_OK) {
		tally_handled(evc_envelope_payload(envelope));
		evc_worker_recycle(workers[1], envelope, true);
	}
	CHECK(tally_count_handled() == 4);
	tear_down(2);
}
