/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The scheduler: a timer fires once or is cancelled, never early, and the thread sleeps past no deadline. */
#include "scheduler.h"

static _Atomic int stage;

static void *cancel_first_two(void *unused)
{
	(void)cancel(0);
	(void)cancel(1);
	return unused;
}

/* Two are cancelled while the thread fires: each context has one owner at a time. */
SCENARIO(scheduler_cancel)
{
	pthread_t thread;

	set_up(false);
	add(0, 500);
	add(1, 1000);
	add(2, 1500);
	thread = explorer_start(cancel_first_two, NULL);
	explorer_join(thread);
	tear_down();
}

static void *cancel_arbitrary(void *unused)
{
	/* What the first timer's id would be in its sixth generation. */
	CHECK(evc_scheduler_cancel(scheduler, UINT64_C(5) << 32 | 3u << 3 | 1u) == EVC_NOT_FOUND);
	return unused;
}

/* An arbitrary number cancels nothing, while the first block of timers comes into being. */
SCENARIO(scheduler_cancel_arbitrary)
{
	pthread_t thread;

	set_up(true);
	thread = explorer_start(cancel_arbitrary, NULL);
	add(0, 1000);
	explorer_join(thread);
	tear_down();
}

/* As add, and it has to fire in time. */
static void add_expected(unsigned which, uint64_t after)
{
	uint64_t deadline = evc_clock_now() + after;

	CHECK(evc_scheduler_add(scheduler, deadline, &ops, &contexts[which], &ids[which]) == EVC_OK);
	if (!has_fired(which))
		expect(which, deadline);
}

static void *add_two(void *unused)
{
	add_expected(0, 300000);
	add_expected(1, 100000);
	return unused;
}

/*
 * Earlier and earlier deadlines from two threads: the sleeping thread learns of each, and sleeps past none.
 */
SCENARIO(scheduler_add)
{
	struct timespec long_enough = { 1, 0 };
	pthread_t thread;

	set_up(false);
	thread = explorer_start(add_two, NULL);
	add_expected(2, 200000);
	add_expected(3, 50000);
	explorer_join(thread);
	for (unsigned i = 0; i < 4; i++)
		while (!has_fired(i))
			nanosleep(&long_enough, NULL);
	tear_down();
}

static void *add_late(void *unused)
{
	for (unsigned i = 2; i < 4; i++) {
		enum evc_status status = evc_scheduler_add(scheduler, evc_clock_now() + 100, &ops,
							   &contexts[i], &ids[i]);

		if (status == EVC_CLOSED)
			ids[i] = 0;
		else
			CHECK(status == EVC_OK);
	}
	return unused;
}

/* Close against add: fired, dropped or refused. */
SCENARIO(scheduler_close)
{
	pthread_t thread;

	set_up(false);
	add(0, 100);
	add(1, 1000000);
	thread = explorer_start(add_late, NULL);
	evc_scheduler_close(scheduler);
	explorer_join(thread);
	tear_down();
}

/* The same for a driven scheduler, which the closing thread ends itself. */
SCENARIO(scheduler_close_driven)
{
	pthread_t thread;

	set_up(true);
	add(0, 1000000);
	thread = explorer_start(add_late, NULL);
	evc_scheduler_close(scheduler);
	explorer_join(thread);
	/* Nothing is left to the scheduler's own end. */
	for (unsigned i = 0; i < 4; i++)
		CHECK(ids[i] == 0 || contexts[i].fired + contexts[i].dropped + contexts[i].cancelled == 1);
	tear_down();
}

/* One timer is always pending, whatever others are added and end. */
static void *read_pending(void *unused)
{
	struct evc_scheduler_statistics statistics;

	evc_scheduler_read_statistics(scheduler, &statistics);
	CHECK(statistics.pending >= 1);
	return unused;
}

SCENARIO(scheduler_pending)
{
	pthread_t thread;
	uint64_t next;

	set_up(true);
	add(0, 1000000);
	thread = explorer_start(read_pending, NULL);
	add(1, 1000000);
	CHECK(cancel(1) == EVC_OK);
	add(2, 0);
	CHECK(evc_scheduler_run_due(scheduler, evc_clock_now(), &next) == 1);
	explorer_join(thread);
	explorer_forbid_idling(false);
	evc_scheduler_close(scheduler);
	evc_scheduler_release(scheduler);
}

/* A timer that is set again by its fire, against its cancel. */
SCENARIO(scheduler_again)
{
	pthread_t thread;

	set_up(false);
	contexts[0].again = evc_clock_now() + 2000;
	add(0, 500);
	add(1, 1000);
	thread = explorer_start(cancel_first_two, NULL);
	explorer_join(thread);
	explorer_forbid_idling(false);
	evc_scheduler_close(scheduler);
	CHECK(evc_scheduler_join(scheduler) == EVC_OK);
	evc_scheduler_release(scheduler);
	explorer_settle();
	/* It may have fired before it was cancelled, dropped or fired for good. */
	CHECK(contexts[0].dropped + contexts[0].cancelled <= 1);
	CHECK(contexts[0].fired + contexts[0].dropped + contexts[0].cancelled >= 1);
	CHECK(contexts[0].fired <= 2);
	CHECK(contexts[1].fired + contexts[1].dropped + contexts[1].cancelled == 1);
}

/*
 * Driven: two threads run it at once, one of them fires; a close that finds it running leaves the rest to it.
 */
SCENARIO(scheduler_driven)
{
	pthread_t threads[2];

	set_up(true);
	add(0, 0);
	add(1, 0);
	add(2, 1000000);
	threads[0] = explorer_start(run_due, NULL);
	threads[1] = explorer_start(cancel_first_two, NULL);
	(void)run_due(NULL);
	evc_scheduler_close(scheduler);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	/* The close has dropped it, or the run that was under way has. */
	CHECK(contexts[2].dropped == 1);
	tear_down();
}

static uint64_t sooner;

static void *add_sooner(void *next)
{
	sooner = evc_clock_now() + 500000;
	CHECK(evc_scheduler_add(scheduler, sooner, &ops, &contexts[0], &ids[0]) == EVC_OK);
	(void)evc_scheduler_run_due(scheduler, evc_clock_now(), next);
	return NULL;
}

/* Driven by two threads, one of which adds an earlier timer and may be refused: one of them learns its deadline. */
SCENARIO(scheduler_driven_two)
{
	uint64_t mine, theirs;
	pthread_t thread;

	set_up(true);
	add(1, 1000000);
	thread = explorer_start(add_sooner, &theirs);
	(void)evc_scheduler_run_due(scheduler, evc_clock_now(), &mine);
	explorer_join(thread);
	CHECK(contexts[0].fired == 1 || mine <= sooner || theirs <= sooner);
	tear_down();
}

/* Driven, with `wake`: adding a timer that is due before the known one calls it. */
static void wake(void *unused)
{
	(void)unused;
	atomic_fetch_add_explicit(&stage, 1, memory_order_release);
}

static void *add_one(void *unused)
{
	add(0, 0);
	return unused;
}

SCENARIO(scheduler_driven_wake)
{
	struct evc_scheduler_options options = { .size = sizeof(options), .driven = true, .wake = wake };
	pthread_t thread;
	uint64_t next;

	ops = (struct evc_timer_ops){ fire, drop, true };
	CHECK(evc_scheduler_create(&options, &scheduler) == EVC_OK);
	thread = explorer_start(add_one, NULL);
	(void)evc_scheduler_run_due(scheduler, evc_clock_now(), &next);
	explorer_join(thread);
	/* It has fired, or its deadline is known, or `wake` was called for it. */
	CHECK(contexts[0].fired == 1 || next != EVC_FOREVER ||
	      atomic_load_explicit(&stage, memory_order_acquire) > 0);
	tear_down();
}

static void *run_until(void *next)
{
	(void)evc_scheduler_run_due(scheduler, evc_clock_now(), next);
	return NULL;
}

static void *cancel_sooner(void *unused)
{
	(void)cancel(0);
	return unused;
}

/* Two threads run while the earliest timer is cancelled. What is known afterwards is no later than what `wake` goes by. */
SCENARIO(scheduler_driven_cancelled)
{
	struct evc_scheduler_options options = { .size = sizeof(options), .driven = true, .wake = wake };
	uint64_t mine, theirs, now;
	pthread_t runner, canceller;

	ops = (struct evc_timer_ops){ fire, drop, true };
	CHECK(evc_scheduler_create(&options, &scheduler) == EVC_OK);
	now = evc_clock_now();
	for (unsigned i = 0; i < 2; i++)
		CHECK(evc_scheduler_add(scheduler, now + (1 + 2 * i) * 100000000, &ops, &contexts[i], &ids[i]) == EVC_OK);
	runner = explorer_start(run_until, &theirs);
	canceller = explorer_start(cancel_sooner, NULL);
	(void)evc_scheduler_run_due(scheduler, now, &mine);
	explorer_join(runner);
	explorer_join(canceller);
	atomic_store_explicit(&stage, 0, memory_order_relaxed);
	CHECK(evc_scheduler_add(scheduler, now + 200000000, &ops, &contexts[2], &ids[2]) == EVC_OK);
	CHECK(mine <= now + 200000000 || theirs <= now + 200000000 ||
	      atomic_load_explicit(&stage, memory_order_relaxed) > 0);
	tear_down();
}
