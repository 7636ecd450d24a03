/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Schedulers to which several threads add and in which they cancel, while the scheduler runs and while it
 * closes.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "live.h"
#include "scheduler/scheduler_private.h"

#include <sched.h>

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
		atomic_fetch_add(&live.early, 1);
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

	live_reset();
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
	EXPECT_EQUAL(atomic_load(&live.early), 0, "early calls");
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
	atomic_fetch_add_explicit(&live.fired, 1, memory_order_release);
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
	struct evc_scheduler_options options = { .size = sizeof(options), .clock = &fake_clock_ops };
	struct orderly orderly[RACERS];
	struct evc_scheduler *scheduler;

	live_reset();
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	EXPECT(suite_await(&fake.sleeps, 1), "it never sleeps");
	for (unsigned i = 0; i < RACERS; i++) {
		orderly[i] = (struct orderly){ .scheduler = scheduler, .deadline = 5000, .last = i };
		EXPECT(pthread_create(&orderly[i].thread, NULL, add_all, &orderly[i]) == 0,
		       "no thread");
	}
	for (unsigned i = 0; i < RACERS; i++)
		pthread_join(orderly[i].thread, NULL);
	EXPECT_EQUAL(atomic_load(&live.fired), 0, "fired early");
	atomic_store(&fake.time, 5000);
	(void)evc_parker_wake(fake.parker);
	EXPECT(suite_await(&live.fired, RACERS * SUITE_SCALE(EACH)), "not all fire");
	for (unsigned i = 0; i < RACERS; i++)
		EXPECT_EQUAL(orderly[i].wrong, 0, "timers out of their thread's order");
	evc_scheduler_close(scheduler);
	EXPECT_OK(evc_scheduler_join(scheduler));
	evc_scheduler_release(scheduler);
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

		/* Two changes in each round; the second is left only after the first was applied or left. */
		hasty->refused |= evc_scheduler_add(hasty->scheduler, 5000, &live_noting, NULL, &id) != EVC_OK;
		hasty->refused |= evc_scheduler_cancel(hasty->scheduler, id) != EVC_OK;
		atomic_fetch_add_explicit(&hasty->done, 2, memory_order_release);
	}
	return NULL;
}

static const char *bounded_backlog(void)
{
	struct evc_scheduler_options options = { .size = sizeof(options), .clock = &fake_clock_ops, .driven = true };
	struct evc_scheduler_statistics statistics;
	static struct hasty hasty;
	struct evc_scheduler *scheduler;
	uint64_t done;

	live_reset();
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	hasty = (struct hasty){ .scheduler = scheduler };
	/* A thread holds the heap for long. */
	EXPECT(pthread_mutex_trylock(&scheduler->heap_mutex) == 0, "held by nobody");
	EXPECT(pthread_create(&hasty.thread, NULL, hurry, &hasty) == 0, "no thread");
	EXPECT(suite_await(&hasty.done, EVC_SCHEDULER_BACKLOG - 2), "it does not go on");
	for (unsigned i = 0; i < 1000; i++)
		sched_yield();
	done = atomic_load(&hasty.done);
	EXPECT(done < EVC_SCHEDULER_BACKLOG, "%llu changes are left", (unsigned long long)done);
	pthread_mutex_unlock(&scheduler->heap_mutex);
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
	{ "changes that wait to be applied are bounded: a thread that leaves one too many waits and applies them",
	  bounded_backlog },
	{ "timers that several threads add and cancel end once, and not after their cancel",
	  race_to_the_end },
	{ "the same while the scheduler closes", race_with_close },
	{ "equal deadlines keep the order of each of the threads that add them", ties_of_many },
};
SUITE_GROUP(suite_scheduler_race, tests);
#endif
