/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The scheduler's own thread: when it sleeps and wakes, and what happens when several threads add, cancel
 * and close.
 */
#ifdef EVC_URCU
#include "scheduler_private.h"
#include "suite.h"

#include <sched.h>
#include <stdlib.h>

/* A clock that the test moves; the thread sleeps until it is woken, whatever the deadline. */
static struct {
	_Atomic uint64_t time;
	/* Written by the scheduler's thread before it counts the sleep. */
	_Atomic uint64_t deadline;
	_Atomic(struct evc_parker *) parker;
	_Atomic uint64_t sleeps;
	/* How often a sleep comes back at once for no reason. */
	_Atomic uint64_t restless;
	_Atomic uint64_t wakes;
} fake;

static uint64_t fake_now(void *context)
{
	(void)context;
	return atomic_load(&fake.time);
}

static void fake_sleep(void *context, struct evc_parker *parker, uint32_t ticket, uint64_t deadline)
{
	(void)context;
	if (atomic_load(&fake.restless) > 0) {
		atomic_fetch_sub(&fake.restless, 1);
		return;
	}
	fake.parker = parker;
	atomic_store(&fake.deadline, deadline);
	atomic_fetch_add_explicit(&fake.sleeps, 1, memory_order_release);
	(void)evc_parker_wait(parker, ticket, EVC_FOREVER);
}

static const struct evc_scheduler_clock fake_clock = { NULL, fake_now, fake_sleep };

/* The system's parker, with its wake-ups counted. */
static const struct evc_parker_ops *base(void)
{
	return evc_parker_futex() != NULL ? evc_parker_futex() : evc_parker_posix();
}

static void *count_open(void)
{
	return base()->open != NULL ? base()->open() : &fake;
}

static void count_close(void *state)
{
	if (base()->close != NULL)
		base()->close(state);
}

static void count_wait(void *state, const uint32_t *word, uint32_t expected, uint64_t timeout)
{
	base()->wait(state, word, expected, timeout);
}

static void count_wake(void *state, const uint32_t *word)
{
	atomic_fetch_add(&fake.wakes, 1);
	base()->wake(state, word);
}

static const struct evc_parker_ops counting = { count_open, count_close, count_wait, count_wake };

static _Atomic uint64_t fired, dropped, early, disorder;
static _Atomic uint64_t last_deadline;

static uint64_t note(void *context, uint64_t deadline)
{
	(void)context;
	if (atomic_load(&fake.time) < deadline)
		atomic_fetch_add(&early, 1);
	if (atomic_exchange(&last_deadline, deadline) > deadline)
		atomic_fetch_add(&disorder, 1);
	atomic_fetch_add_explicit(&fired, 1, memory_order_release);
	return 0;
}

static void note_drop(void *context)
{
	(void)context;
	atomic_fetch_add(&dropped, 1);
}

static const struct evc_timer_ops noting = { .fire = note, .drop = note_drop };

static void reset(void)
{
	atomic_store(&fake.time, 1000);
	atomic_store(&fake.sleeps, 0);
	atomic_store(&fake.restless, 0);
	atomic_store(&fake.wakes, 0);
	atomic_store(&fired, 0);
	atomic_store(&dropped, 0);
	atomic_store(&early, 0);
	atomic_store(&disorder, 0);
	atomic_store(&last_deadline, 0);
}

static const char *wakes_for_earlier(void)
{
	struct evc_scheduler_options options = { .clock = &fake_clock, .parker = &counting };
	struct evc_scheduler *scheduler;
	uint64_t wakes;

	reset();
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	EXPECT(suite_await(&fake.sleeps, 1), "it never sleeps");
	EXPECT(atomic_load(&fake.deadline) == EVC_FOREVER, "it sleeps for nothing until a time");
	EXPECT_OK(evc_scheduler_add(scheduler, 5000, &noting, NULL, NULL));
	EXPECT(suite_await(&fake.sleeps, 2), "the first timer does not wake it");
	EXPECT_EQUAL(atomic_load(&fake.deadline), 5000, "sleeps until");
	/* It sleeps: none of these is a system call. */
	wakes = atomic_load(&fake.wakes);
	for (unsigned i = 0; i < 1000; i++)
		EXPECT_OK(evc_scheduler_add(scheduler, 5000 + i, &noting, NULL, NULL));
	EXPECT_EQUAL(atomic_load(&fake.wakes), wakes, "wakes by timers that are not earlier");
	EXPECT_EQUAL(atomic_load(&fake.sleeps), 2, "sleeps after timers that are not earlier");
	EXPECT_OK(evc_scheduler_add(scheduler, 4000, &noting, NULL, NULL));
	EXPECT(suite_await(&fake.sleeps, 3), "an earlier timer does not wake it");
	EXPECT_EQUAL(atomic_load(&fake.deadline), 4000, "sleeps until");
	/* Back for no reason, again and again: nothing fires before its time. */
	atomic_store(&fake.restless, 100);
	(void)evc_parker_wake(fake.parker);
	EXPECT(suite_await(&fake.sleeps, 4), "it never sleeps again");
	EXPECT_EQUAL(atomic_load(&fired), 0, "fired before its time");
	atomic_store(&fake.time, 4000);
	(void)evc_parker_wake(fake.parker);
	EXPECT(suite_await(&fired, 1), "it does not fire");
	EXPECT(suite_await(&fake.sleeps, 5), "it never sleeps again");
	EXPECT_EQUAL(atomic_load(&fired), 1, "fired at 4000");
	EXPECT_EQUAL(atomic_load(&fake.deadline), 5000, "sleeps until");
	atomic_store(&fake.time, 6000);
	(void)evc_parker_wake(fake.parker);
	EXPECT(suite_await(&fired, 1002), "not all fire");
	evc_scheduler_close(scheduler);
	EXPECT_OK(evc_scheduler_join(scheduler));
	evc_scheduler_release(scheduler);
	EXPECT_EQUAL(atomic_load(&early), 0, "early calls");
	EXPECT_EQUAL(atomic_load(&disorder), 0, "calls out of order");
	return NULL;
}

static const char *closes_asleep(void)
{
	struct evc_scheduler_options options = { .clock = &fake_clock };
	struct evc_scheduler *scheduler;
	uint64_t id;

	reset();
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	EXPECT_OK(evc_scheduler_add(scheduler, 5000, &noting, NULL, &id));
	EXPECT_OK(evc_scheduler_add(scheduler, 5000, &noting, NULL, NULL));
	EXPECT(suite_await(&fake.sleeps, 1), "it never sleeps");
	evc_scheduler_close(scheduler);
	evc_scheduler_close(scheduler);
	EXPECT_OK(evc_scheduler_join(scheduler));
	EXPECT_EQUAL(atomic_load(&dropped), 2, "drops");
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, id), EVC_NOT_FOUND);
	EXPECT_STATUS(evc_scheduler_add(scheduler, 5000, &noting, NULL, NULL), EVC_CLOSED);
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
	static const struct evc_timer_ops releasing = { .fire = release_inside, .drop = NULL };

	reset();
	joined = EVC_OK;
	EXPECT_OK(evc_scheduler_create(NULL, &own));
	/* First, since the other may fire while this thread is still here. */
	EXPECT_OK(evc_scheduler_add(own, EVC_FOREVER, &noting, NULL, NULL));
	EXPECT_OK(evc_scheduler_add(own, evc_clock_now() + 1000000, &releasing, NULL, NULL));
	EXPECT(suite_await(&dropped, 1), "the thread does not end");
	EXPECT_STATUS(joined, EVC_NOT_PERMITTED);
	return NULL;
}

static uint64_t check_real(void *context, uint64_t deadline)
{
	(void)context;
	if (evc_clock_now() < deadline)
		atomic_fetch_add(&early, 1);
	if (atomic_exchange(&last_deadline, deadline) > deadline)
		atomic_fetch_add(&disorder, 1);
	atomic_fetch_add_explicit(&fired, 1, memory_order_release);
	return 0;
}

static const char *on_the_real_clock(void)
{
	static const struct evc_timer_ops checking = { .fire = check_real, .drop = NULL };
	struct evc_scheduler *scheduler;
	uint64_t random = suite_seed(), base_time, added = 0;

	reset();
	EXPECT_OK(evc_scheduler_create(NULL, &scheduler));
	base_time = evc_clock_now() + 2000000;
	for (unsigned i = 0; i < 1000; i++) {
		enum evc_status status = evc_scheduler_add(
			scheduler, base_time + suite_random(&random) % 20000000, &checking, NULL, NULL);

		EXPECT(status == EVC_OK || status == EVC_TIMED_OUT, "refused");
		added += status == EVC_OK;
	}
	EXPECT(suite_await(&fired, added), "not all fire");
	EXPECT_EQUAL(atomic_load(&early), 0, "early calls");
	EXPECT_EQUAL(atomic_load(&disorder), 0, "calls out of order");
	evc_scheduler_close(scheduler);
	EXPECT_OK(evc_scheduler_join(scheduler));
	evc_scheduler_release(scheduler);
	return NULL;
}

/*
 * Several threads add timers due within twenty microseconds and cancel what they can: each is either
 * cancelled or fired or dropped, and nothing fires after its cancel.
 */
enum { RACERS = 3, ROUNDS = 50000, OPEN = 64 };

struct racer {
	pthread_t thread;
	uint64_t seed;
	struct evc_scheduler *scheduler;
	/* Goes on until the scheduler refuses. */
	bool until_closed;
	struct {
		uint64_t id;
		/* 0 nothing, 1 added, 2 fired, 3 dropped, 4 cancelled. */
		_Atomic int state;
	} timers[OPEN];
	uint64_t added, cancelled, late, closed;
	_Atomic uint64_t ended, after_cancel;
	const char *message;
};

struct racing_timer {
	struct racer *racer;
	_Atomic int *state;
};
static struct racing_timer racing[RACERS][OPEN];

static void finish(void *context, int state)
{
	struct racing_timer *timer = context;
	struct racer *racer = timer->racer;
	int expected = 1;

	if (!atomic_compare_exchange_strong(timer->state, &expected, state))
		atomic_fetch_add(&racer->after_cancel, 1);
	atomic_fetch_add_explicit(&racer->ended, 1, memory_order_release);
}

static uint64_t race_fire(void *context, uint64_t deadline)
{
	if (evc_clock_now() < deadline)
		atomic_fetch_add(&early, 1);
	finish(context, 2);
	return 0;
}

static void race_drop(void *context)
{
	finish(context, 3);
}

static void *race(void *argument)
{
	static const struct evc_timer_ops ops = { .fire = race_fire, .drop = race_drop };
	struct racer *racer = argument;
	uint64_t random = racer->seed;

	for (unsigned round = 0;
	     racer->until_closed ? racer->closed < 100 : round < SUITE_SCALE(ROUNDS); round++) {
		unsigned place = (unsigned)(suite_random(&random) % OPEN);
		_Atomic int *state = &racer->timers[place].state;
		enum evc_status status;

		if (atomic_load(state) == 1) {
			status = evc_scheduler_cancel(racer->scheduler, racer->timers[place].id);
			if (status == EVC_OK) {
				racer->cancelled++;
				atomic_store(state, 4);
			}
			continue;
		}
		atomic_store(state, 1);
		status = evc_scheduler_add(racer->scheduler,
					   evc_clock_now() + suite_random(&random) % 20000, &ops,
					   &racing[racer->seed % RACERS][place],
					   &racer->timers[place].id);
		if (status == EVC_OK) {
			racer->added++;
		} else {
			atomic_store(state, 0);
			racer->late += status == EVC_TIMED_OUT;
			racer->closed += status == EVC_CLOSED;
		}
	}
	return NULL;
}

static const char *races(bool close_meanwhile)
{
	struct evc_scheduler_statistics statistics;
	static struct racer racers[RACERS];
	struct evc_scheduler *scheduler;
	uint64_t seed = suite_seed() / RACERS * RACERS;
	uint64_t added = 0, ended = 0, cancelled = 0;

	reset();
	EXPECT_OK(evc_scheduler_create(NULL, &scheduler));
	for (unsigned i = 0; i < RACERS; i++) {
		__builtin_memset(&racers[i], 0, sizeof(racers[i]));
		racers[i].seed = seed + i + RACERS;
		racers[i].scheduler = scheduler;
		racers[i].until_closed = close_meanwhile;
		for (unsigned t = 0; t < OPEN; t++)
			racing[racers[i].seed % RACERS][t] =
				(struct racing_timer){ &racers[i], &racers[i].timers[t].state };
		EXPECT(pthread_create(&racers[i].thread, NULL, race, &racers[i]) == 0, "no thread");
	}
	if (close_meanwhile) {
		EXPECT(suite_await(&racers[0].ended, 50), "nothing fires");
		evc_scheduler_close(scheduler);
	}
	for (unsigned i = 0; i < RACERS; i++)
		pthread_join(racers[i].thread, NULL);
	for (unsigned i = 0; i < RACERS; i++) {
		added += racers[i].added;
		cancelled += racers[i].cancelled;
		if (!close_meanwhile)
			EXPECT(suite_await(&racers[i].ended, racers[i].added - racers[i].cancelled),
			       "seed %llu: a timer neither fired nor was cancelled",
			       (unsigned long long)seed);
	}
	evc_scheduler_close(scheduler);
	EXPECT_OK(evc_scheduler_join(scheduler));
	for (unsigned i = 0; i < RACERS; i++) {
		ended += atomic_load(&racers[i].ended);
		EXPECT_EQUAL(atomic_load(&racers[i].after_cancel), 0, "ends after a cancel in time");
	}
	EXPECT_EQUAL(ended, added - cancelled, "timers that ended otherwise than by a cancel");
	EXPECT_EQUAL(atomic_load(&early), 0, "early calls");
	evc_scheduler_read_statistics(scheduler, &statistics);
	EXPECT_EQUAL(statistics.pending, 0, "pending");
	EXPECT_EQUAL(statistics.cancelled, cancelled, "cancelled");
	EXPECT_EQUAL(statistics.fired + statistics.dropped, ended, "fired and dropped");
	evc_scheduler_release(scheduler);
	return NULL;
}

static const char *race_to_the_end(void)
{
	return races(false);
}

static const char *race_with_close(void)
{
	return races(true);
}

/* Threads that add with equal deadlines: each one's own timers fire in its order. */
struct orderly {
	pthread_t thread;
	struct evc_scheduler *scheduler;
	uint64_t deadline;
	uint64_t last;
	uint64_t wrong;
};
enum { EACH = 20000 };

struct numbered {
	struct orderly *orderly;
	uint64_t number;
};
static struct numbered numbers[RACERS][EACH];

static uint64_t in_order(void *context, uint64_t deadline)
{
	struct numbered *numbered = context;

	(void)deadline;
	numbered->orderly->wrong += numbered->number != ++numbered->orderly->last;
	atomic_fetch_add_explicit(&fired, 1, memory_order_release);
	return 0;
}

static void *add_all(void *argument)
{
	static const struct evc_timer_ops ops = { .fire = in_order, .drop = NULL };
	struct orderly *orderly = argument;
	struct numbered *mine = orderly->scheduler == NULL ? NULL : numbers[orderly->last];

	orderly->last = 0;
	for (uint64_t i = 0; i < SUITE_SCALE(EACH); i++) {
		mine[i] = (struct numbered){ orderly, i + 1 };
		if (evc_scheduler_add(orderly->scheduler, orderly->deadline, &ops, &mine[i], NULL) !=
		    EVC_OK)
			orderly->wrong++;
	}
	return NULL;
}

static const char *ties_of_many(void)
{
	struct evc_scheduler_options options = { .clock = &fake_clock };
	struct orderly orderly[RACERS];
	struct evc_scheduler *scheduler;

	reset();
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	EXPECT(suite_await(&fake.sleeps, 1), "it never sleeps");
	for (unsigned i = 0; i < RACERS; i++) {
		orderly[i] = (struct orderly){ .scheduler = scheduler, .deadline = 5000, .last = i };
		EXPECT(pthread_create(&orderly[i].thread, NULL, add_all, &orderly[i]) == 0,
		       "no thread");
	}
	for (unsigned i = 0; i < RACERS; i++)
		pthread_join(orderly[i].thread, NULL);
	EXPECT_EQUAL(atomic_load(&fired), 0, "fired early");
	atomic_store(&fake.time, 5000);
	(void)evc_parker_wake(fake.parker);
	EXPECT(suite_await(&fired, RACERS * SUITE_SCALE(EACH)), "not all fire");
	for (unsigned i = 0; i < RACERS; i++)
		EXPECT_EQUAL(orderly[i].wrong, 0, "timers out of their thread's order");
	evc_scheduler_close(scheduler);
	EXPECT_OK(evc_scheduler_join(scheduler));
	evc_scheduler_release(scheduler);
	return NULL;
}

/* A million: in, half of them out again, the rest in order. */
static const char *a_million(void)
{
	const uint64_t count = SUITE_SCALE(UINT64_C(1000000));
	struct evc_scheduler_options options = { .clock = &fake_clock, .driven = true };
	uint64_t *ids = malloc(count * sizeof(*ids));
	uint64_t random = suite_seed(), next;
	struct evc_scheduler_statistics statistics;
	struct evc_scheduler *scheduler;

	EXPECT(ids != NULL, "no memory");
	reset();
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	for (uint64_t i = 0; i < count; i++)
		EXPECT_OK(evc_scheduler_add(scheduler, 2000 + suite_random(&random) % 100000000,
					    &noting, NULL, &ids[i]));
	for (uint64_t i = 0; i < count; i += 2)
		EXPECT_OK(evc_scheduler_cancel(scheduler, ids[i]));
	evc_scheduler_read_statistics(scheduler, &statistics);
	EXPECT_EQUAL(statistics.pending, count / 2, "pending");
	atomic_store(&fake.time, 200000000);
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, 200000000, &next), count / 2, "fired");
	EXPECT_EQUAL(atomic_load(&disorder), 0, "calls out of order");
	evc_scheduler_close(scheduler);
	evc_scheduler_release(scheduler);
	free(ids);
	return NULL;
}

struct hasty {
	pthread_t thread;
	struct evc_scheduler *scheduler;
	_Atomic uint64_t done;
	bool refused;
};

static void *hurry(void *argument)
{
	struct hasty *hasty = argument;

	for (unsigned i = 0; i < EVC_SCHEDULER_BACKLOG; i++) {
		uint64_t id;

		/* Two changes a round, the second of which is left only once the first is dealt or left. */
		hasty->refused |= evc_scheduler_add(hasty->scheduler, 5000, &noting, NULL, &id) != EVC_OK;
		hasty->refused |= evc_scheduler_cancel(hasty->scheduler, id) != EVC_OK;
		atomic_fetch_add_explicit(&hasty->done, 2, memory_order_release);
	}
	return NULL;
}

static const char *bounded_backlog(void)
{
	struct evc_scheduler_options options = { .clock = &fake_clock, .driven = true };
	struct evc_scheduler_statistics statistics;
	static struct hasty hasty;
	struct evc_scheduler *scheduler;
	uint64_t done;

	reset();
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	hasty = (struct hasty){ .scheduler = scheduler };
	/* Somebody is in the heap, for long. */
	EXPECT(evc_scheduler_try_lock(scheduler), "held by nobody");
	EXPECT(pthread_create(&hasty.thread, NULL, hurry, &hasty) == 0, "no thread");
	EXPECT(suite_await(&hasty.done, EVC_SCHEDULER_BACKLOG - 2), "it does not go on");
	for (unsigned i = 0; i < 1000; i++)
		sched_yield();
	done = atomic_load(&hasty.done);
	EXPECT(done < EVC_SCHEDULER_BACKLOG, "%llu changes are left", (unsigned long long)done);
	evc_scheduler_unlock(scheduler);
	pthread_join(hasty.thread, NULL);
	EXPECT(!hasty.refused, "refused");
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, 6000, NULL), 0, "fired");
	EXPECT_EQUAL(atomic_load(&scheduler->backlog), 0, "left when all is dealt");
	evc_scheduler_read_statistics(scheduler, &statistics);
	EXPECT_EQUAL(statistics.cancelled, EVC_SCHEDULER_BACKLOG, "cancelled");
	EXPECT_EQUAL(statistics.pending, 0, "pending");
	evc_scheduler_close(scheduler);
	evc_scheduler_release(scheduler);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "changes that wait to be dealt are bounded: who leaves one too many waits or deals",
	  bounded_backlog },
	{ "a scheduler sleeps until the earliest deadline, wakes for an earlier one alone, and "
	  "never fires early",
	  wakes_for_earlier },
	{ "D10 a closed scheduler wakes at once, drops what is pending and ends", closes_asleep },
	{ "a timer may close and release its own scheduler, not join it", released_by_its_thread },
	{ "on the real clock timers fire in order and never early", on_the_real_clock },
	{ "timers that several threads add and cancel end once, and not after their cancel",
	  race_to_the_end },
	{ "the same while the scheduler closes", race_with_close },
	{ "equal deadlines keep the order of each of the threads that add them", ties_of_many },
	{ "a million timers, half of them cancelled, fire in order", a_million },
};
SUITE_GROUP(suite_scheduler_live, tests);
#endif
