/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A mailbox: post against take, sleep and wake, close, the end of a thread.
 */
#include "mailbox.h"

/*
 * Two producers, one queue lane: each event once, each producer's in order (D2, D4), and the consumer does
 * not sleep while one waits.
 */
SCENARIO(mailbox_post_take)
{
	pthread_t threads[2];

	set_up(NULL);
	explorer_forbid_idling(true);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	take_until(mailbox, 4);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	for (unsigned i = 0; i < 2; i++)
		tally_check_order(i * 4, 2);
	tear_down();
}

/* Stack lanes too: the events of one producer on a stack and a queue are each taken once. */
SCENARIO(mailbox_stacks)
{
	pthread_t threads[2];

	set_up(NULL);
	producers[0].count = 3;
	producers[0].lanes[0] = producers[0].lanes[1] = EVC_LANE_STACK_NORMAL;
	producers[1].lanes[1] = EVC_LANE_STACK_NORMAL;
	explorer_forbid_idling(true);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	/* All posts have returned: the stack before the queue (D1), a producer's last event first (D3). */
	take_until(mailbox, 5);
	CHECK(tally.handled_at[1] < tally.handled_at[0]);
	CHECK(tally.handled_at[0] < tally.handled_at[2] && tally.handled_at[5] < tally.handled_at[2]);
	CHECK(tally.handled_at[0] < tally.handled_at[4] && tally.handled_at[1] < tally.handled_at[4]);
	tear_down();
}

/* The consumer sleeps before each event, if the schedule lets it: none is slept through. */
static void sleep_and_wake(enum evc_wait_strategy strategy)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .strategy = strategy, .spin_ns = 300 };
	pthread_t thread;

	set_up(&options);
	producers[0].count = 4;
	thread = explorer_start(produce, &producers[0]);
	explorer_forbid_idling(true);
	for (uint32_t i = 1; i <= 4; i++) {
		while (take_one(mailbox) < 0)
			CHECK(evc_mailbox_wait(mailbox, EVC_FOREVER) == EVC_OK);
		CHECK(tally_count_handled() == i);
	}
	explorer_join(thread);
	tally_check_order(0, 4);
	tear_down();
}

SCENARIO(mailbox_park)
{
	sleep_and_wake(EVC_WAIT_PARK);
}

SCENARIO(mailbox_spin_then_park)
{
	sleep_and_wake(EVC_WAIT_SPIN_THEN_PARK);
}

SCENARIO(mailbox_yield)
{
	sleep_and_wake(EVC_WAIT_YIELD);
}

/* A wait that ends by its time limit, against the post: the event can be taken afterwards. */
SCENARIO(mailbox_wait_limit)
{
	pthread_t thread;

	set_up(NULL);
	producers[0].count = 1;
	thread = explorer_start(produce, &producers[0]);
	(void)evc_mailbox_wait(mailbox, 1000);
	explorer_join(thread);
	CHECK(evc_mailbox_wait(mailbox, 1000) == EVC_OK);
	CHECK(take_one(mailbox) == 0);
	CHECK(evc_mailbox_wait(mailbox, 1000) == EVC_TIMED_OUT);
	tear_down();
}

/* The post has returned before the mailbox is closed. */
#define BEFORE 11u

/*
 * Close against post: accepted events are handled or dropped, once; a refused one still belongs to its
 * producer.
 */
static void close_against_post(void (*close)(struct evc_mailbox *))
{
	pthread_t consumer, threads[2];

	set_up(NULL);
	explorer_forbid_idling(true);
	consumer = explorer_start(run_mailbox, NULL);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	(void)post(router, BEFORE, EVC_LANE_QUEUE_LOW);
	close(mailbox);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	explorer_join(consumer);
	for (unsigned i = 0; i < 2; i++)
		tally_check_order(i * 4, 2);
	CHECK(post(router, 12, EVC_LANE_QUEUE_NORMAL) == 0);
	tear_down();
}

SCENARIO(mailbox_close)
{
	close_against_post(evc_mailbox_close);
}

SCENARIO(mailbox_close_when_empty)
{
	close_against_post(evc_mailbox_close_when_empty);
	CHECK(tally_was_handled(BEFORE));
}

static _Atomic bool has_ended;

static void *run_to_the_end(void *unused)
{
	(void)run_mailbox(NULL);
	/* A fence, since a sanitizer does not see that either. */
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&has_ended, true, memory_order_relaxed);
	return unused;
}

/* The last reference is released after the consumer's end, by an order that a sanitizer does not see: Swift counts so. */
SCENARIO(mailbox_end_unseen)
{
	pthread_t consumer;

	/* Without an event, whose end would be such an order that it sees. */
	mailbox = make_mailbox(NULL);
	consumer = explorer_start(run_to_the_end, NULL);
	evc_mailbox_close(mailbox);
	while (!atomic_load_explicit(&has_ended, memory_order_relaxed))
		sched_yield();
	atomic_thread_fence(memory_order_acquire);
	evc_mailbox_release(mailbox);
	explorer_join(consumer);
}

/* A producer's thread ends while its events wait, and another takes its place: nothing is lost. */
SCENARIO(mailbox_end_of_thread)
{
	pthread_t thread;

	set_up(NULL);
	thread = explorer_start(produce, &producers[0]);
	explorer_forbid_idling(true);
	CHECK(take_one(mailbox) <= 0);
	explorer_join(thread);
	thread = explorer_start(produce, &producers[1]);
	take_until(mailbox, 4);
	explorer_join(thread);
	for (unsigned i = 0; i < 2; i++)
		tally_check_order(i * 4, 2);
	tear_down();
}

/* The mailbox is freed while a thread that has posted ends: its memory is freed once. */
SCENARIO(mailbox_end_of_both)
{
	pthread_t threads[2];

	set_up(NULL);
	threads[0] = explorer_start(produce, &producers[0]);
	threads[1] = explorer_start(produce, &producers[1]);
	(void)take_one(mailbox);
	evc_mailbox_close(mailbox);
	evc_mailbox_release(mailbox);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	evc_router_destroy(router);
	explorer_settle();
	tally_check_once(0, EVENTS);
}

/* Chains against single events: a chain stays together (D2). */
static void *post_three(void *unused)
{
	post_together(router, 8, 3, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

SCENARIO(mailbox_together)
{
	pthread_t threads[2];

	set_up(NULL);
	explorer_forbid_idling(true);
	threads[0] = explorer_start(post_three, NULL);
	threads[1] = explorer_start(produce, &producers[0]);
	take_until(mailbox, 5);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tally_check_order(0, 2);
	CHECK(tally.handled_at[9] == tally.handled_at[8] + 1 && tally.handled_at[10] == tally.handled_at[8] + 2);
	tear_down();
}

/* So many that the producer's memory is used up, and slots of taken events are used again. */
SCENARIO(mailbox_end_of_segment)
{
	pthread_t thread;

	set_up(NULL);
	producers[0].count = 70;
	explorer_forbid_idling(true);
	thread = explorer_start(produce, &producers[0]);
	take_until(mailbox, 70);
	explorer_join(thread);
	tally_check_order(0, 70);
	tear_down();
}

/* A close, without a post, reaches a consumer that is about to sleep. */
SCENARIO(mailbox_close_of_sleeper)
{
	pthread_t consumer;

	set_up(NULL);
	explorer_forbid_idling(true);
	consumer = explorer_start(run_mailbox, NULL);
	evc_mailbox_close(mailbox);
	explorer_join(consumer);
	tear_down();
}

/* A thread that is detached while it ends: the second of the two frees it, and nobody uses it after that. */
SCENARIO(thread_detach)
{
	struct evc_mailbox *mailbox = make_mailbox(NULL);
	struct evc_thread *thread;

	CHECK(evc_thread_start(NULL, mailbox, &thread) == EVC_OK);
	evc_thread_cancel(thread);
	CHECK(evc_thread_detach(thread) == EVC_OK);
	evc_mailbox_release(mailbox);
	explorer_settle();
}
