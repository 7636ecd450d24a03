/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The scheduler's own thread: when it sleeps and wakes, and how it ends; the real clock, and many timers.
 */
#include "platform/config.h"

#ifdef EVC_URCU
/* For the processors of a thread. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "live.h"
#if defined(__linux__) && defined(__GLIBC__)
#include "corner.h"
#endif
#include "scheduler/scheduler_private.h"

#include <sched.h>
#include <stdlib.h>
#if defined(__linux__)
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

static const char *wakes_for_earlier(void)
{
	struct evc_scheduler_options options = { .size = sizeof(options), .clock = &fake_clock_ops, .parker = &fake_clock_parker };
	struct evc_scheduler *scheduler;
	uint64_t wakes;

	live_reset();
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	EXPECT(suite_await(&fake.sleeps, 1), "it never sleeps");
	EXPECT(atomic_load(&fake.deadline) == EVC_FOREVER, "it sleeps for nothing until a time");
	EXPECT_OK(evc_scheduler_add(scheduler, 5000, &live_noting, NULL, NULL));
	EXPECT(suite_await(&fake.sleeps, 2), "the first timer does not wake it");
	EXPECT_EQUAL(atomic_load(&fake.deadline), 5000, "sleeps until");
	/* It sleeps: none of these makes a system call. */
	wakes = atomic_load(&fake.wakes);
	for (unsigned i = 0; i < 1000; i++)
		EXPECT_OK(evc_scheduler_add(scheduler, 5000 + i, &live_noting, NULL, NULL));
	EXPECT_EQUAL(atomic_load(&fake.wakes), wakes, "wakes by timers that are not earlier");
	EXPECT_EQUAL(atomic_load(&fake.sleeps), 2, "sleeps after timers that are not earlier");
	EXPECT_OK(evc_scheduler_add(scheduler, 4000, &live_noting, NULL, NULL));
	EXPECT(suite_await(&fake.sleeps, 3), "an earlier timer does not wake it");
	EXPECT_EQUAL(atomic_load(&fake.deadline), 4000, "sleeps until");
	/* It wakes again and again without a reason: nothing fires early. */
	atomic_store(&fake.restless, 100);
	(void)evc_parker_wake(fake.parker);
	EXPECT(suite_await(&fake.sleeps, 4), "it never sleeps again");
	EXPECT_EQUAL(atomic_load(&live.fired), 0, "fired before its time");
	atomic_store(&fake.time, 4000);
	(void)evc_parker_wake(fake.parker);
	EXPECT(suite_await(&live.fired, 1), "it does not fire");
	EXPECT(suite_await(&fake.sleeps, 5), "it never sleeps again");
	EXPECT_EQUAL(atomic_load(&live.fired), 1, "fired at 4000");
	EXPECT_EQUAL(atomic_load(&fake.deadline), 5000, "sleeps until");
	atomic_store(&fake.time, 6000);
	(void)evc_parker_wake(fake.parker);
	EXPECT(suite_await(&live.fired, 1002), "not all fire");
	evc_scheduler_close(scheduler);
	EXPECT_OK(evc_scheduler_join(scheduler));
	evc_scheduler_release(scheduler);
	EXPECT_EQUAL(atomic_load(&live.early), 0, "early calls");
	EXPECT_EQUAL(atomic_load(&live.disorder), 0, "calls out of order");
	return NULL;
}

#if defined(__linux__) && !defined(SUITE_THREAD_SANITIZER)
/*
 * In a child process, which ends if it makes a forbidden system call. Writes '1' if all went well, '0' if the
 * system cannot tell.
 */
static void cancel_without_system_calls(int channel)
{
	struct evc_scheduler *scheduler;
	static uint64_t ids[1000];
	char result = '1';

	alarm(20);
	if (evc_scheduler_create(NULL, &scheduler) != EVC_OK)
		_exit(1);
	for (unsigned i = 0; i < 1000; i++)
		if (evc_scheduler_add(scheduler, EVC_FOREVER - 1, &live_noting, NULL, &ids[i]) != EVC_OK)
			_exit(1);
	/* The thread has applied what it found, and sleeps until then. */
	while (atomic_load(&scheduler->sleeps_until) != EVC_FOREVER - 1)
		sched_yield();
	/* From here on this thread can only read, write and exit. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
		result = '0';
	for (unsigned i = 0; i < 1000; i++)
		if (evc_scheduler_cancel(scheduler, ids[i]) != EVC_OK)
			result = '2';
	(void)!write(channel, &result, 1);
	syscall(SYS_exit, 0);
}

static const char *cancels_alone(void)
{
	char result = 'x';
	int channel[2];
	pid_t child;

	EXPECT(pipe(channel) == 0, "pipe failed");
	child = fork();
	EXPECT(child >= 0, "fork failed");
	if (child == 0)
		cancel_without_system_calls(channel[1]);
	close(channel[1]);
	(void)!read(channel[0], &result, 1);
	close(channel[0]);
	/* Its scheduler's thread is still there. */
	kill(child, SIGKILL);
	EXPECT(waitpid(child, NULL, 0) == child, "waitpid failed");
	EXPECT(result == '1' || result == '0', "a cancel made a system call, or failed: %c", result);
	return NULL;
}
#else
static const char *cancels_alone(void)
{
	return NULL;
}
#endif

static const char *closes_asleep(void)
{
	struct evc_scheduler_options options = { .size = sizeof(options), .clock = &fake_clock_ops };
	struct evc_scheduler *scheduler;
	uint64_t id;

	live_reset();
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	EXPECT_OK(evc_scheduler_add(scheduler, 5000, &live_noting, NULL, &id));
	EXPECT_OK(evc_scheduler_add(scheduler, 5000, &live_noting, NULL, NULL));
	EXPECT(suite_await(&fake.sleeps, 1), "it never sleeps");
	evc_scheduler_close(scheduler);
	evc_scheduler_close(scheduler);
	EXPECT_OK(evc_scheduler_join(scheduler));
	EXPECT_EQUAL(atomic_load(&live.dropped), 2, "drops");
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, id), EVC_NOT_FOUND);
	EXPECT_STATUS(evc_scheduler_add(scheduler, 5000, &live_noting, NULL, NULL), EVC_CLOSED);
	evc_scheduler_release(scheduler);
	return NULL;
}

static struct evc_scheduler *own;
static enum evc_status joined;

static uint64_t release_inside(void *context, uint64_t deadline)
{
	(void)context, (void)deadline;
	joined = evc_scheduler_join(own);
	evc_scheduler_close(own);
	evc_scheduler_release(own);
	return 0;
}

static const char *released_by_its_thread(void)
{
	static const struct evc_timer_ops releasing = {
		.fire = release_inside, .drop = NULL, .takes_late = true };

	live_reset();
	joined = EVC_OK;
	EXPECT_OK(evc_scheduler_create(NULL, &own));
	/* First, since the other one may fire while this thread still needs a reference. */
	EXPECT_OK(evc_scheduler_add(own, EVC_FOREVER, &live_noting, NULL, NULL));
	evc_scheduler_retain(own);
	EXPECT_OK(evc_scheduler_add(own, evc_clock_now() + 1000000, &releasing, NULL, NULL));
	evc_scheduler_release(own);
	EXPECT(suite_await(&live.dropped, 1), "the thread does not end");
	EXPECT_STATUS(joined, EVC_NOT_PERMITTED);
	return NULL;
}

static uint64_t check_real(void *context, uint64_t deadline)
{
	(void)context;
	if (evc_clock_now() < deadline)
		atomic_fetch_add(&live.early, 1);
	if (atomic_exchange(&live.last_deadline, deadline) > deadline)
		atomic_fetch_add(&live.disorder, 1);
	atomic_fetch_add_explicit(&live.fired, 1, memory_order_release);
	return 0;
}

/* Timers from `lead` nanoseconds on. `in_time`: all were added before the first was due. */
static const char *fire_after(uint64_t lead, bool *in_time)
{
	static const struct evc_timer_ops checking = { .fire = check_real, .drop = NULL };
	struct evc_scheduler *scheduler;
	uint64_t random = suite_seed(), base_time, added = 0;

	live_reset();
	EXPECT_OK(evc_scheduler_create(NULL, &scheduler));
	base_time = evc_clock_now() + lead;
	for (unsigned i = 0; i < 1000; i++) {
		enum evc_status status = evc_scheduler_add(
			scheduler, base_time + suite_random(&random) % 20000000, &checking, NULL, NULL);

		EXPECT(status == EVC_OK || status == EVC_TIMED_OUT, "refused");
		added += status == EVC_OK;
	}
	*in_time = evc_clock_now() < base_time;
	EXPECT(suite_await(&live.fired, added), "not all fire");
	evc_scheduler_close(scheduler);
	EXPECT_OK(evc_scheduler_join(scheduler));
	evc_scheduler_release(scheduler);
	EXPECT_EQUAL(atomic_load(&live.early), 0, "early calls");
	return NULL;
}

/* A timer that is added when a later one is due may fire after that. On a slow machine they are due later. */
static const char *on_the_real_clock(void)
{
	uint64_t lead = 2000000;
	bool in_time = false;

	for (; !in_time && lead < SUITE_LIMIT_NS; lead *= 4)
		EXPECT_NONE(fire_after(lead, &in_time));
	EXPECT(in_time, "a thousand timers are not added within %llu ns", (unsigned long long)lead);
	EXPECT_EQUAL(atomic_load(&live.disorder), 0, "calls out of order");
	return NULL;
}

/* A million: added, half of them cancelled, the rest fires in order. */
static const char *a_million(void)
{
	const uint64_t count = SUITE_SCALE(UINT64_C(1000000));
	struct evc_scheduler_options options = { .size = sizeof(options), .clock = &fake_clock_ops, .driven = true };
	uint64_t *ids = malloc(count * sizeof(*ids));
	uint64_t random = suite_seed(), next;
	struct evc_scheduler_statistics statistics;
	struct evc_scheduler *scheduler;

	EXPECT(ids != NULL, "no memory");
	live_reset();
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	for (uint64_t i = 0; i < count; i++)
		EXPECT_OK(evc_scheduler_add(scheduler, 2000 + suite_random(&random) % 100000000,
					    &live_noting, NULL, &ids[i]));
	for (uint64_t i = 0; i < count; i += 2)
		EXPECT_OK(evc_scheduler_cancel(scheduler, ids[i]));
	evc_scheduler_read_statistics(scheduler, &statistics);
	EXPECT_EQUAL(statistics.pending, count / 2, "pending");
	atomic_store(&fake.time, 200000000);
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, 200000000, &next), count / 2, "fired");
	EXPECT_EQUAL(atomic_load(&live.disorder), 0, "calls out of order");
	evc_scheduler_close(scheduler);
	evc_scheduler_release(scheduler);
	free(ids);
	return NULL;
}

#if defined(__linux__) && defined(__GLIBC__)
static struct {
	struct evc_scheduler *scheduler;
	struct suite_corner maker, corner;
	struct suite_gate gate;
	bool is_in_corner;
	enum evc_status status;
} looked;

static uint64_t look(void *context, uint64_t deadline)
{
	(void)context, (void)deadline;
	suite_corner_look(&looked.corner);
	suite_gate_open(&looked.gate);
	return 0;
}

static void *schedule_from_a_corner(void *unused)
{
	static const struct evc_timer_ops looking = { .fire = look, .takes_late = true };

	looked.is_in_corner = suite_corner_enter();
	suite_corner_look(&looked.maker);
	looked.status = evc_scheduler_create(NULL, &looked.scheduler);
	if (looked.status == EVC_OK)
		looked.status = evc_scheduler_add(looked.scheduler, evc_clock_now(), &looking, NULL, NULL);
	return unused;
}

static const char *not_in_a_corner(void)
{
	static const struct suite_gate shut = SUITE_GATE;
	pthread_t corner;

	looked.gate = shut;
	EXPECT_EQUAL(pthread_create(&corner, NULL, schedule_from_a_corner, NULL), 0, "a thread");
	(void)pthread_join(corner, NULL);
	EXPECT_OK(looked.status);
	EXPECT(suite_gate_pass(&looked.gate), "the timer did not fire");
	evc_scheduler_close(looked.scheduler);
	evc_scheduler_release(looked.scheduler);
	EXPECT(looked.is_in_corner, "the thread that made the scheduler could not be set as the test wants it");
	EXPECT_EQUAL(looked.corner.takes_signals, looked.maker.takes_signals, "whether it takes signals, as its maker does");
	return suite_corner_is_left(&looked.corner, sched_getscheduler(getpid()));
}
#endif

static const struct evc_suite_test tests[] = {
#if defined(__linux__) && defined(__GLIBC__)
	{ "a scheduler's thread does not stay where the thread stays that made it", not_in_a_corner },
#endif
	{ "a scheduler sleeps until the earliest deadline, wakes for an earlier one alone, and "
	  "never fires early",
	  wakes_for_earlier },
	{ "a cancel, in a child of fork, makes no system call while the scheduler's thread sleeps",
	  cancels_alone },
	{ "D10 a closed scheduler wakes at once, drops what is pending and ends", closes_asleep },
	{ "a timer may close and release its own scheduler, not join it", released_by_its_thread },
	{ "on the real clock timers fire in order and never early", on_the_real_clock },
	{ "a million timers, half of them cancelled, fire in order", a_million },
};
SUITE_GROUP(suite_scheduler_live, tests);
#endif
