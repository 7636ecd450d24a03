/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Order and times of timers, on a driven scheduler with a clock that the test moves.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "driven.h"

/* All orders of up to six timers over three deadlines. */
static const char *every_order(void)
{
	for (unsigned length = 0; length <= 6; length++) {
		unsigned orders = 1;

		for (unsigned i = 0; i < length; i++)
			orders *= 3;
		for (unsigned order = 0; order < orders; order++) {
			struct evc_scheduler *scheduler;
			uint64_t next;
			unsigned rest = order;

			EXPECT_NONE(driven_open(&scheduler));
			for (unsigned i = 0; i < length; i++, rest /= 3)
				EXPECT_OK(driven_add(scheduler, 2000 + rest % 3, i, NULL));
			fake.time = 3000;
			EXPECT_EQUAL(evc_scheduler_run_due(scheduler, 3000, &next), length, "fired");
			EXPECT(next == EVC_FOREVER, "a deadline is left");
			for (unsigned i = 1; i < length; i++)
				EXPECT(driven.times[i - 1] < driven.times[i] ||
					       (driven.times[i - 1] == driven.times[i] &&
						driven.values[i - 1] < driven.values[i]),
				       "order %u of %u: %u and %u are the wrong way round", order, length,
				       i - 1, i);
			driven_close(scheduler);
		}
	}
	return NULL;
}

/* A model: a plain array in which the least (deadline, number) is searched. */
static const char *against_model(void)
{
	enum { MOST = 300 };
	struct { uint64_t deadline, value, id; bool in; } model[MOST];
	uint64_t random = suite_seed(), seed = random, value = 0, next;
	struct evc_scheduler *scheduler;

	EXPECT_NONE(driven_open(&scheduler));
	__builtin_memset(model, 0, sizeof(model));
	for (unsigned step = 0; step < SUITE_SCALE(200000u); step++) {
		unsigned place = (unsigned)(suite_random(&random) % MOST);

		if (step % 50 == 49) {
			driven.count = 0;
			fake.time += suite_random(&random) % 60;
			(void)evc_scheduler_run_due(scheduler, fake.time, &next);
			for (size_t i = 0; i < driven.count; i++) {
				unsigned least = MOST;

				for (unsigned m = 0; m < MOST; m++)
					if (model[m].in && (least == MOST ||
							    model[m].deadline < model[least].deadline ||
							    (model[m].deadline == model[least].deadline &&
							     model[m].value < model[least].value)))
						least = m;
				EXPECT(least != MOST && model[least].value == driven.values[i] &&
					       model[least].deadline <= fake.time,
				       "step %u, seed %llu: the wrong timer fired", step,
				       (unsigned long long)seed);
				model[least].in = false;
			}
			for (unsigned m = 0; m < MOST; m++)
				EXPECT(!model[m].in || model[m].deadline > fake.time,
				       "step %u, seed %llu: a timer did not fire", step,
				       (unsigned long long)seed);
			next = EVC_FOREVER;
			for (unsigned m = 0; m < MOST; m++)
				if (model[m].in && model[m].deadline < next)
					next = model[m].deadline;
			EXPECT_EQUAL(evc_scheduler_next(scheduler), next, "the earliest deadline");
		} else if (model[place].in) {
			EXPECT_OK(evc_scheduler_cancel(scheduler, model[place].id));
			model[place].in = false;
			EXPECT_STATUS(evc_scheduler_cancel(scheduler, model[place].id), EVC_NOT_FOUND);
		} else {
			model[place].in = true;
			model[place].deadline = fake.time + 1 + suite_random(&random) % 200;
			model[place].value = ++value;
			EXPECT_OK(driven_add(scheduler, model[place].deadline, value, &model[place].id));
		}
	}
	driven_close(scheduler);
	return NULL;
}

static const char *never_early(void)
{
	struct evc_scheduler *scheduler;
	uint64_t next;

	EXPECT_NONE(driven_open(&scheduler));
	EXPECT_OK(driven_add(scheduler, 1500, 1, NULL));
	EXPECT_OK(driven_add(scheduler, EVC_FOREVER, 2, NULL));
	for (fake.time = 1000; fake.time < 1500; fake.time++)
		EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time, &next), 0, "fired early");
	EXPECT_EQUAL(next, 1500, "the next deadline");
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time, &next), 1, "fired in time");
	EXPECT(next == EVC_FOREVER, "the deadline that never comes came");
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, EVC_FOREVER, &next), 0, "fired, of what never comes");
	EXPECT(next == EVC_FOREVER, "a deadline is left");
	EXPECT_EQUAL(driven.early, 0, "calls before the deadline");
	driven_close(scheduler);
	EXPECT_EQUAL(driven.drops, 1, "drops");
	return NULL;
}

static const char *late_is_a_value(void)
{
	static const struct evc_timer_ops patient = { .fire = driven_note,
						      .drop = driven_drop,
						      .takes_late = true };
	struct evc_scheduler_statistics statistics;
	struct evc_scheduler *scheduler;

	EXPECT_NONE(driven_open(&scheduler));
	EXPECT_STATUS(driven_add(scheduler, 0, 1, NULL), EVC_TIMED_OUT);
	EXPECT_STATUS(driven_add(scheduler, 999, 1, NULL), EVC_TIMED_OUT);
	EXPECT_STATUS(driven_add(scheduler, 1000, 1, NULL), EVC_TIMED_OUT);
	EXPECT_OK(driven_add(scheduler, 1001, 1, NULL));
	EXPECT_STATUS(evc_scheduler_add(scheduler, 2000, NULL, NULL, NULL), EVC_INVALID_ARGUMENT);
	evc_scheduler_read_statistics(scheduler, &statistics);
	EXPECT_EQUAL(statistics.pending, 1, "pending");
	EXPECT_OK(evc_scheduler_add(scheduler, 5, &patient, (void *)7, NULL));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, 1000, NULL), 1, "fired");
	EXPECT_EQUAL(driven.values[0], 7, "which one");
	driven_close(scheduler);
	EXPECT_EQUAL(driven.drops, 1, "drops");
	return NULL;
}

static unsigned wakes;

static void count_wake(void *context)
{
	(void)context;
	wakes++;
}

static const char *tells_when_earlier(void)
{
	struct evc_scheduler_options options = { .size = sizeof(options), .clock = &fake_clock_ops,
						 .driven = true,
						 .wake = count_wake };
	struct evc_scheduler *scheduler;
	uint64_t next;

	__builtin_memset(&driven, 0, sizeof(driven));
	fake.time = 1000;
	wakes = 0;
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	EXPECT_OK(driven_add(scheduler, 5000, 1, NULL));
	EXPECT_EQUAL(wakes, 1, "wakes by the first timer");
	(void)evc_scheduler_run_due(scheduler, fake.time, &next);
	EXPECT_EQUAL(next, 5000, "the next deadline");
	for (unsigned i = 0; i < 100; i++)
		EXPECT_OK(driven_add(scheduler, 5000 + i, 1, NULL));
	EXPECT_EQUAL(wakes, 1, "wakes by timers that are not earlier");
	EXPECT_OK(driven_add(scheduler, 4999, 1, NULL));
	EXPECT_EQUAL(wakes, 2, "wakes by an earlier timer");
	driven_close(scheduler);
	return NULL;
}

/* Everything is free again, whichever allocation failed. */
static const char *out_of_memory(void)
{
	struct suite_allocations counts;
	uint64_t fail_at = 0;

	EXPECT(suite_quiesce(), "the callback thread got stuck");
	do {
		struct evc_scheduler_options options = { .size = sizeof(options), .clock = &fake_clock_ops, .driven = true };
		struct evc_scheduler *scheduler = NULL;
		enum evc_status status;
		uint64_t refused = 0;

		suite_allocator_install(fail_at, 1);
		__builtin_memset(&driven, 0, sizeof(driven));
		fake.time = 1000;
		while ((status = evc_scheduler_create(&options, &scheduler)) == EVC_OUT_OF_MEMORY)
			refused++;
		EXPECT_STATUS(status, EVC_OK);
		/* More than three blocks hold. */
		for (uint64_t i = 0; i < 700; i++) {
			while ((status = driven_add(scheduler, 2000 + i % 7, i, NULL)) ==
			       EVC_OUT_OF_MEMORY)
				refused++;
			EXPECT_STATUS(status, EVC_OK);
		}
		EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 2003, NULL), 400,
			     "fired");
		/* Warm: the same number again needs no memory. */
		counts = suite_allocator_read();
		for (uint64_t i = 0; i < 400; i++)
			EXPECT_OK(driven_add(scheduler, 3000, i, NULL));
		EXPECT_EQUAL(suite_allocator_read().calls, counts.calls, "allocations once warm");
		driven_close(scheduler);
		EXPECT_EQUAL(driven.drops, 700, "drops");
		counts = suite_allocator_read();
		EXPECT_EQUAL(refused, counts.failed, "statuses, beside failed allocations");
		EXPECT_EQUAL(counts.live, 0, "blocks that were not freed");
		suite_allocator_restore();
		fail_at++;
	} while (counts.failed != 0);
	EXPECT(fail_at > 6, "only %llu sites were reached", (unsigned long long)fail_at);
	return NULL;
}

static const char *wrong_arguments(void)
{
	struct evc_scheduler_clock half = { NULL, fake_clock_ops.now, NULL };
	struct evc_scheduler_options options = { .size = sizeof(options), .clock = &half };
	struct evc_scheduler *scheduler;

	EXPECT_STATUS(evc_scheduler_create(NULL, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_scheduler_create(&options, &scheduler), EVC_INVALID_ARGUMENT);
	return NULL;
}

/* A driven scheduler has no thread that would sleep. */
static const char *driven_without_sleep(void)
{
	struct evc_scheduler_clock clock = { NULL, fake_clock_ops.now, NULL };
	struct evc_scheduler_options options = { .size = sizeof(options), .clock = &clock, .driven = true };
	struct evc_scheduler *scheduler;

	__builtin_memset(&driven, 0, sizeof(driven));
	fake.time = 1000;
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	EXPECT_OK(driven_add(scheduler, 2000, 1, NULL));
	EXPECT_OK(driven_add(scheduler, 3000, 2, NULL));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 2000, NULL), 1, "fired");
	driven_close(scheduler);
	EXPECT_EQUAL(driven.drops, 1, "drops");
	clock.now = NULL;
	EXPECT_STATUS(evc_scheduler_create(&options, &scheduler), EVC_INVALID_ARGUMENT);
	return NULL;
}

/* The owner of the scheduler ends inside of one of its functions. */
static uint64_t release_all(void *context, uint64_t deadline)
{
	(void)deadline;
	evc_scheduler_close(context);
	evc_scheduler_release(context);
	return 0;
}

static const char *released_inside(void)
{
	static const struct evc_timer_ops ops = { .fire = release_all };
	struct evc_scheduler *scheduler;
	uint64_t next = 0, id;

	EXPECT_NONE(driven_open(&scheduler));
	EXPECT_OK(driven_add(scheduler, 3000, 1, NULL));
	EXPECT_OK(evc_scheduler_add(scheduler, 2000, &ops, scheduler, &id));
	/* AddressSanitizer would find the scheduler used after its end. */
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, 2500, &next), 1, "timers that fired");
	EXPECT_EQUAL(next, EVC_FOREVER, "the next deadline");
	EXPECT_EQUAL(driven.drops, 1, "timers that were dropped");
	return NULL;
}

/* The one reference of the scheduler is that of its timer. */
static void release_one(void *context)
{
	evc_scheduler_release(context);
}

static const char *released_by_a_drop(void)
{
	static const struct evc_timer_ops ops = { .fire = driven_note, .drop = release_one };
	struct evc_scheduler *scheduler;
	uint64_t id;

	EXPECT_NONE(driven_open(&scheduler));
	EXPECT_OK(evc_scheduler_add(scheduler, 2000, &ops, scheduler, &id));
	EXPECT_OK(driven_add(scheduler, 3000, 1, NULL));
	/* As above. */
	evc_scheduler_close(scheduler);
	EXPECT_EQUAL(driven.drops, 1, "other timers that were dropped");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "timers fire by deadline, and by the order of their adding if it is equal", every_order },
	{ "timers added, cancelled and fired at random agree with a sorted list", against_model },
	{ "a timer never fires early", never_early },
	{ "D12 a deadline that has passed is a value, or due at once, as the timer says", late_is_a_value },
	{ "a driven scheduler tells of a timer that is earlier, and of no other", tells_when_earlier },
	{ "D12 every allocation of a scheduler may fail; once warm there is none", out_of_memory },
	{ "D12 a clock without a sleep is refused for a scheduler with a thread", wrong_arguments },
	{ "D12 a driven scheduler takes a clock without a sleep", driven_without_sleep },
	{ "D9 a driven scheduler may be released by a function of its own", released_inside },
	{ "D9 a driven scheduler may be released by the end of a timer that its close drops", released_by_a_drop },
};
SUITE_GROUP(suite_scheduler, tests);
#endif
