/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A mailbox: interrupts, and pumps in place of a consumer that sleeps.
 */
#include "mailbox.h"

static _Atomic uint32_t controls;
/* What the interrupt is about. */
static uint32_t asked;

static void control(void *unused)
{
	(void)unused;
	CHECK(asked == 1);
	atomic_fetch_add_explicit(&controls, 1, memory_order_relaxed);
	evc_mailbox_close_when_empty(mailbox);
}

/* An interrupt reaches a consumer that sleeps, and one that works. */
SCENARIO(mailbox_interrupt)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .control = control };
	pthread_t consumer, producer;

	set_up(&options);
	explorer_forbid_idling(true);
	consumer = explorer_start(run_mailbox, NULL);
	producer = explorer_start(produce, &producers[0]);
	asked = 1;
	evc_mailbox_interrupt(mailbox);
	explorer_join(consumer);
	explorer_join(producer);
	CHECK(atomic_load_explicit(&controls, memory_order_relaxed) >= 1);
	tear_down();
}

/* A mailbox that is pumped: `wake` starts the next pump, and is never forgotten. */
static _Atomic uint32_t wanted;
static _Atomic int is_over;

static void wake(void *unused)
{
	(void)unused;
	atomic_fetch_add_explicit(&wanted, 1, memory_order_release);
}

static void *pump(void *unused)
{
	uint32_t done = 0;

	for (;;) {
		int over = atomic_load_explicit(&is_over, memory_order_acquire);

		if (atomic_load_explicit(&wanted, memory_order_acquire) == done) {
			if (over)
				return unused;
			sched_yield();
			continue;
		}
		done++;
		while (evc_mailbox_pump(mailbox, 2) == EVC_OK)
			;
	}
}

SCENARIO(mailbox_pump)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .wake = wake };
	pthread_t consumer, threads[2];

	set_up(&options);
	explorer_forbid_idling(true);
	consumer = explorer_start(pump, NULL);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	atomic_store_explicit(&is_over, 1, memory_order_release);
	explorer_join(consumer);
	CHECK(tally_count_handled() == 4);
	for (unsigned i = 0; i < 2; i++)
		tally_check_order(i * 4, 2);
	tear_down();
}

/* Two threads pump alternately: whichever takes the wake-up. What the last pump did is visible, and none is refused. */
static bool is_against_the_rule;

static void *pump_if_wanted(void *unused)
{
	enum evc_status status;

	for (;;) {
		int over = atomic_load_explicit(&is_over, memory_order_acquire);
		uint32_t there = atomic_load_explicit(&wanted, memory_order_relaxed);

		if (there == 0 && over)
			return unused;
		if (there == 0 || !atomic_compare_exchange_strong_explicit(&wanted, &there, there - 1,
									    memory_order_acquire,
									    memory_order_relaxed)) {
			sched_yield();
			continue;
		}
		do
			status = evc_mailbox_pump(mailbox, 2);
		while (status == EVC_OK);
		CHECK(status != EVC_NOT_PERMITTED || is_against_the_rule);
	}
}

static void pump_in_turn(bool close)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .wake = wake };
	pthread_t threads[3];

	set_up(&options);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(pump_if_wanted, NULL);
	threads[2] = explorer_start(produce, &producers[0]);
	if (close)
		evc_mailbox_interrupt(mailbox);
	explorer_join(threads[2]);
	if (close)
		evc_mailbox_close_when_empty(mailbox);
	atomic_store_explicit(&is_over, 1, memory_order_release);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	CHECK(tally_count_handled() == 2);
	tally_check_order(0, 2);
	tear_down();
}

SCENARIO(mailbox_pump_in_turn)
{
	pump_in_turn(false);
}

SCENARIO(mailbox_pump_closes)
{
	pump_in_turn(true);
}

/* Two threads post, and pump when their post wakes: what the last pump has given back is not refused to the next. */
static _Thread_local bool is_asked;

static void ask(void *unused)
{
	(void)unused;
	is_asked = true;
}

static void post_and_pump(uint32_t number)
{
	enum evc_status status = EVC_OK;

	(void)post(router, number, EVC_LANE_QUEUE_NORMAL);
	while (is_asked && status == EVC_OK)
		status = evc_mailbox_pump(mailbox, 2);
	is_asked = false;
	CHECK(status != EVC_NOT_PERMITTED);
}

static void *post_and_pump_twice(void *unused)
{
	post_and_pump(1);
	post_and_pump(2);
	return unused;
}

SCENARIO(mailbox_pump_asked)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .wake = ask };
	pthread_t thread;

	set_up(&options);
	thread = explorer_start(post_and_pump_twice, NULL);
	post_and_pump(0);
	explorer_join(thread);
	CHECK(tally_count_handled() == 3);
	tear_down();
}

/* An interrupt while a pump arms the mailbox: this pump sees it, or the next one. */
static void note_control(void *unused)
{
	(void)unused;
	atomic_fetch_add_explicit(&controls, 1, memory_order_relaxed);
}

SCENARIO(mailbox_pump_interrupt)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .wake = wake, .control = note_control };
	pthread_t thread;

	set_up(&options);
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	thread = explorer_start(pump_if_wanted, NULL);
	evc_mailbox_interrupt(mailbox);
	atomic_store_explicit(&is_over, 1, memory_order_release);
	explorer_join(thread);
	CHECK(atomic_load_explicit(&controls, memory_order_relaxed) == 1);
	tear_down();
}

/* A thread that pumps without being asked: it is refused, or whoever was asked is, and nothing is lost. */
static void *pump_unasked(void *unused)
{
	for (unsigned i = 0; i < 2; i++)
		while (evc_mailbox_pump(mailbox, 2) == EVC_OK)
			;
	return unused;
}

static void pump_against_the_rule(void (*wake_or_null)(void *context))
{
	struct evc_mailbox_options options = { .size = sizeof(options), .wake = wake_or_null };
	pthread_t threads[3];

	is_against_the_rule = true;
	set_up(&options);
	threads[0] = explorer_start(pump_unasked, NULL);
	threads[1] = explorer_start(wake_or_null != NULL ? pump_if_wanted : pump_unasked, NULL);
	threads[2] = explorer_start(produce, &producers[0]);
	explorer_join(threads[2]);
	atomic_store_explicit(&is_over, 1, memory_order_release);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	/* Without a wake-up nobody needs to have come after the posts. */
	while (wake_or_null == NULL && evc_mailbox_pump(mailbox, 2) == EVC_OK)
		;
	CHECK(tally_count_handled() == 2);
	tally_check_order(0, 2);
	tear_down();
}

SCENARIO(mailbox_pump_unasked)
{
	pump_against_the_rule(wake);
}

SCENARIO(mailbox_pump_at_once)
{
	pump_against_the_rule(NULL);
}
