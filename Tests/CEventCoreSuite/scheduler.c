/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Order, cancelling and ending of timers, on a driven scheduler with a clock that the test moves.
 */
#ifdef EVC_URCU
#include "suite.h"

#include <stdlib.h>

static uint64_t fake_time;

static uint64_t fake_now(void *context)
{
	(void)context;
	return fake_time;
}

static void fake_sleep(void *context, struct evc_parker *parker, uint32_t ticket, uint64_t deadline)
{
	(void)context, (void)parker, (void)ticket, (void)deadline;
}

static const struct evc_scheduler_clock fake_clock = { NULL, fake_now, fake_sleep };

/* What became of the timers, in order: the value of each, and the time. */
static struct {
	uint64_t values[4096];
	uint64_t times[4096];
	size_t count;
	size_t drops;
	uint64_t early;
	/* What a timer does, and the interval of one that repeats. */
	struct evc_scheduler *scheduler;
	uint64_t id;
	uint64_t interval;
	enum evc_status status;
	unsigned nested;
} seen;

static uint64_t note(void *context, uint64_t deadline)
{
	if (seen.count < 4096) {
		seen.values[seen.count] = (uint64_t)(uintptr_t)context;
		seen.times[seen.count] = deadline;
	}
	seen.count++;
	seen.early += fake_time < deadline;
	return 0;
}

static void note_drop(void *context)
{
	(void)context;
	seen.drops++;
}

static const struct evc_timer_ops noting = { .fire = note, .drop = note_drop };

static const char *open_driven(struct evc_scheduler **out)
{
	struct evc_scheduler_options options = { .clock = &fake_clock, .driven = true };

	__builtin_memset(&seen, 0, sizeof(seen));
	fake_time = 1000;
	EXPECT_OK(evc_scheduler_create(&options, out));
	seen.scheduler = *out;
	return NULL;
}

static void close_driven(struct evc_scheduler *scheduler)
{
	evc_scheduler_close(scheduler);
	evc_scheduler_release(scheduler);
}

static enum evc_status add(struct evc_scheduler *scheduler, uint64_t deadline, uint64_t value,
			   uint64_t *id)
{
	return evc_scheduler_add(scheduler, deadline, &noting, (void *)(uintptr_t)value, id);
}

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

			EXPECT_NONE(open_driven(&scheduler));
			for (unsigned i = 0; i < length; i++, rest /= 3)
				EXPECT_OK(add(scheduler, 2000 + rest % 3, i, NULL));
			fake_time = 3000;
			EXPECT_EQUAL(evc_scheduler_run_due(scheduler, 3000, &next), length, "fired");
			EXPECT(next == EVC_FOREVER, "a deadline is left");
			for (unsigned i = 1; i < length; i++)
				EXPECT(seen.times[i - 1] < seen.times[i] ||
					       (seen.times[i - 1] == seen.times[i] &&
						seen.values[i - 1] < seen.values[i]),
				       "order %u of %u: %u and %u are the wrong way round", order, length,
				       i - 1, i);
			close_driven(scheduler);
		}
	}
	return NULL;
}

/* A model: a plain array, searched for the least (deadline, number). */
static const char *against_model(void)
{
	enum { MOST = 300 };
	struct { uint64_t deadline, value, id; bool in; } model[MOST];
	uint64_t random = suite_seed(), seed = random, value = 0, next;
	struct evc_scheduler *scheduler;

	EXPECT_NONE(open_driven(&scheduler));
	__builtin_memset(model, 0, sizeof(model));
	for (unsigned step = 0; step < SUITE_SCALE(200000u); step++) {
		unsigned place = (unsigned)(suite_random(&random) % MOST);

		if (step % 50 == 49) {
			seen.count = 0;
			fake_time += suite_random(&random) % 60;
			(void)evc_scheduler_run_due(scheduler, fake_time, &next);
			for (size_t i = 0; i < seen.count; i++) {
				unsigned least = MOST;

				for (unsigned m = 0; m < MOST; m++)
					if (model[m].in && (least == MOST ||
							    model[m].deadline < model[least].deadline ||
							    (model[m].deadline == model[least].deadline &&
							     model[m].value < model[least].value)))
						least = m;
				EXPECT(least != MOST && model[least].value == seen.values[i] &&
					       model[least].deadline <= fake_time,
				       "step %u, seed %llu: the wrong timer fired", step,
				       (unsigned long long)seed);
				model[least].in = false;
			}
			for (unsigned m = 0; m < MOST; m++)
				EXPECT(!model[m].in || model[m].deadline > fake_time,
				       "step %u, seed %llu: a timer did not fire", step,
				       (unsigned long long)seed);
		} else if (model[place].in) {
			EXPECT_OK(evc_scheduler_cancel(scheduler, model[place].id));
			model[place].in = false;
			EXPECT_STATUS(evc_scheduler_cancel(scheduler, model[place].id), EVC_NOT_FOUND);
		} else {
			model[place].in = true;
			model[place].deadline = fake_time + 1 + suite_random(&random) % 200;
			model[place].value = ++value;
			EXPECT_OK(add(scheduler, model[place].deadline, value, &model[place].id));
		}
	}
	close_driven(scheduler);
	return NULL;
}

static const char *never_early(void)
{
	struct evc_scheduler *scheduler;
	uint64_t next;

	EXPECT_NONE(open_driven(&scheduler));
	EXPECT_OK(add(scheduler, 1500, 1, NULL));
	EXPECT_OK(add(scheduler, EVC_FOREVER, 2, NULL));
	for (fake_time = 1000; fake_time < 1500; fake_time++)
		EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time, &next), 0, "fired early");
	EXPECT_EQUAL(next, 1500, "the next deadline");
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time, &next), 1, "fired in time");
	EXPECT(next == EVC_FOREVER, "the deadline that never comes came");
	EXPECT_EQUAL(seen.early, 0, "calls before the deadline");
	close_driven(scheduler);
	EXPECT_EQUAL(seen.drops, 1, "drops");
	return NULL;
}

static const char *late_is_a_value(void)
{
	static const struct evc_timer_ops patient = { .fire = note,
						      .drop = note_drop,
						      .takes_late = true };
	struct evc_scheduler_statistics statistics;
	struct evc_scheduler *scheduler;

	EXPECT_NONE(open_driven(&scheduler));
	EXPECT_STATUS(add(scheduler, 0, 1, NULL), EVC_TIMED_OUT);
	EXPECT_STATUS(add(scheduler, 999, 1, NULL), EVC_TIMED_OUT);
	EXPECT_STATUS(add(scheduler, 1000, 1, NULL), EVC_TIMED_OUT);
	EXPECT_OK(add(scheduler, 1001, 1, NULL));
	EXPECT_STATUS(evc_scheduler_add(scheduler, 2000, NULL, NULL, NULL), EVC_INVALID_ARGUMENT);
	evc_scheduler_read_statistics(scheduler, &statistics);
	EXPECT_EQUAL(statistics.pending, 1, "pending");
	EXPECT_OK(evc_scheduler_add(scheduler, 5, &patient, (void *)7, NULL));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, 1000, NULL), 1, "fired");
	EXPECT_EQUAL(seen.values[0], 7, "which one");
	close_driven(scheduler);
	EXPECT_EQUAL(seen.drops, 1, "drops");
	return NULL;
}

static uint64_t cancel_from_inside(void *context, uint64_t deadline)
{
	(void)note(context, deadline);
	seen.status = evc_scheduler_cancel(seen.scheduler, seen.id);
	return seen.interval == 0 ? 0 : deadline + seen.interval;
}

static const char *cancels(void)
{
	static const struct evc_timer_ops cancelling = { .fire = cancel_from_inside, .drop = note_drop };
	struct evc_scheduler_statistics statistics;
	struct evc_scheduler *scheduler;
	uint64_t first, second;

	EXPECT_NONE(open_driven(&scheduler));
	EXPECT_OK(add(scheduler, 2000, 1, &first));
	EXPECT_OK(evc_scheduler_cancel(scheduler, first));
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, first), EVC_NOT_FOUND);
	/* The same place, another generation. */
	EXPECT_OK(add(scheduler, 2000, 2, &second));
	EXPECT(first != second, "an id was used twice");
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, first), EVC_NOT_FOUND);
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, 0), EVC_NOT_FOUND);
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, UINT64_MAX), EVC_NOT_FOUND);
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time = 2000, NULL), 1, "fired");
	EXPECT_EQUAL(seen.values[0], 2, "which one");
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, second), EVC_NOT_FOUND);
	/* From inside: another one that is due at the same time, then itself. */
	EXPECT_OK(evc_scheduler_add(scheduler, 3000, &cancelling, NULL, NULL));
	EXPECT_OK(add(scheduler, 3000, 3, &seen.id));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time = 3000, NULL), 1, "fired");
	EXPECT_STATUS(seen.status, EVC_OK);
	EXPECT_OK(evc_scheduler_add(scheduler, 4000, &cancelling, NULL, &seen.id));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time = 4000, NULL), 1, "fired");
	EXPECT_STATUS(seen.status, EVC_TIMED_OUT);
	EXPECT_EQUAL(seen.drops, 0, "drops");
	seen.interval = 10;
	EXPECT_OK(evc_scheduler_add(scheduler, 5000, &cancelling, NULL, &seen.id));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time = 6000, NULL), 1, "fired");
	EXPECT_STATUS(seen.status, EVC_TIMED_OUT);
	EXPECT_EQUAL(seen.drops, 1, "drops of one that was cancelled and wanted to go on");
	evc_scheduler_read_statistics(scheduler, &statistics);
	EXPECT_EQUAL(statistics.pending, 0, "pending");
	EXPECT_EQUAL(statistics.cancelled, 2, "cancelled");
	EXPECT_EQUAL(statistics.fired, 4, "fired in all");
	close_driven(scheduler);
	return NULL;
}

static uint64_t again(void *context, uint64_t deadline)
{
	(void)note(context, deadline);
	return deadline + seen.interval;
}

static const char *sets_again(void)
{
	static const struct evc_timer_ops repeating = { .fire = again, .drop = note_drop };
	static const uint64_t expected[] = { 2000, 2005, 2010, 2020, 2020, 2030 };
	struct evc_scheduler *scheduler;
	uint64_t id, next;

	EXPECT_NONE(open_driven(&scheduler));
	seen.interval = 10;
	EXPECT_OK(evc_scheduler_add(scheduler, 2000, &repeating, (void *)1, &id));
	EXPECT_OK(add(scheduler, 2005, 2, NULL));
	EXPECT_OK(add(scheduler, 2020, 3, NULL));
	/* A jump: what was missed comes in the order of the deadlines, among the others. */
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time = 2035, &next), 6, "fired");
	for (unsigned i = 0; i < 6; i++)
		EXPECT_EQUAL(seen.times[i], expected[i], "a deadline");
	/* Of the two at 2020 the one that was set first. */
	EXPECT_EQUAL(seen.values[3], 3, "the first of two equal deadlines");
	EXPECT_EQUAL(next, 2040, "the next deadline");
	EXPECT_OK(evc_scheduler_cancel(scheduler, id));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time = 9000, &next), 0, "fired");
	close_driven(scheduler);
	EXPECT_EQUAL(seen.drops, 0, "drops");
	return NULL;
}

static uint64_t enter_again(void *context, uint64_t deadline)
{
	uint64_t next;

	(void)note(context, deadline);
	seen.nested += (unsigned)evc_scheduler_run_due(seen.scheduler, fake_time, &next);
	seen.status = add(seen.scheduler, fake_time + 1, 9, NULL);
	return 0;
}

static uint64_t close_inside(void *context, uint64_t deadline)
{
	(void)note(context, deadline);
	evc_scheduler_close(seen.scheduler);
	seen.status = add(seen.scheduler, fake_time + 1, 9, NULL);
	/* Wants to go on, and may not. */
	return deadline + 1;
}

static const char *from_inside(void)
{
	static const struct evc_timer_ops nesting = { .fire = enter_again, .drop = note_drop };
	static const struct evc_timer_ops closing = { .fire = close_inside, .drop = note_drop };
	struct evc_scheduler_statistics statistics;
	struct evc_scheduler *scheduler;
	uint64_t next;

	EXPECT_NONE(open_driven(&scheduler));
	EXPECT_OK(evc_scheduler_add(scheduler, 2000, &nesting, NULL, NULL));
	EXPECT_OK(add(scheduler, 2000, 1, NULL));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time = 2000, &next), 2, "fired");
	EXPECT_EQUAL(seen.nested, 0, "fired by a call inside the call");
	EXPECT_STATUS(seen.status, EVC_OK);
	EXPECT_EQUAL(next, 2001, "the next deadline");
	EXPECT_OK(evc_scheduler_add(scheduler, 2001, &closing, NULL, NULL));
	EXPECT_OK(add(scheduler, 2001, 2, NULL));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time = 2001, &next), 2, "fired");
	EXPECT_STATUS(seen.status, EVC_CLOSED);
	EXPECT_EQUAL(seen.drops, 2, "drops");
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time = 3000, &next), 0, "fired after");
	evc_scheduler_read_statistics(scheduler, &statistics);
	EXPECT_EQUAL(statistics.dropped, 2, "dropped");
	EXPECT_EQUAL(statistics.pending, 0, "pending");
	evc_scheduler_release(scheduler);
	return NULL;
}

static const char *released_open(void)
{
	struct evc_scheduler *scheduler;

	EXPECT_NONE(open_driven(&scheduler));
	for (unsigned i = 0; i < 1000; i++)
		EXPECT_OK(add(scheduler, 2000 + i % 7, i, NULL));
	evc_scheduler_retain(scheduler);
	evc_scheduler_release(scheduler);
	EXPECT_EQUAL(seen.drops, 0, "drops with a reference left");
	EXPECT_OK(evc_scheduler_join(scheduler));
	evc_scheduler_release(scheduler);
	EXPECT_EQUAL(seen.drops, 1000, "drops");
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
	struct evc_scheduler_options options = { .clock = &fake_clock,
						 .driven = true,
						 .wake = count_wake };
	struct evc_scheduler *scheduler;
	uint64_t next;

	__builtin_memset(&seen, 0, sizeof(seen));
	fake_time = 1000;
	wakes = 0;
	EXPECT_OK(evc_scheduler_create(&options, &scheduler));
	EXPECT_OK(add(scheduler, 5000, 1, NULL));
	EXPECT_EQUAL(wakes, 1, "wakes by the first timer");
	(void)evc_scheduler_run_due(scheduler, fake_time, &next);
	EXPECT_EQUAL(next, 5000, "the next deadline");
	for (unsigned i = 0; i < 100; i++)
		EXPECT_OK(add(scheduler, 5000 + i, 1, NULL));
	EXPECT_EQUAL(wakes, 1, "wakes by timers that are not earlier");
	EXPECT_OK(add(scheduler, 4999, 1, NULL));
	EXPECT_EQUAL(wakes, 2, "wakes by an earlier timer");
	close_driven(scheduler);
	return NULL;
}

/* Everything that was in memory before is free again, whichever allocation failed. */
static const char *out_of_memory(void)
{
	struct suite_allocations counts;
	uint64_t fail_at = 0;

	EXPECT(suite_quiesce(), "the callback thread got stuck");
	do {
		struct evc_scheduler_options options = { .clock = &fake_clock, .driven = true };
		struct evc_scheduler *scheduler = NULL;
		enum evc_status status;
		uint64_t refused = 0;

		suite_allocator_install(fail_at, 1);
		__builtin_memset(&seen, 0, sizeof(seen));
		fake_time = 1000;
		while ((status = evc_scheduler_create(&options, &scheduler)) == EVC_OUT_OF_MEMORY)
			refused++;
		EXPECT_STATUS(status, EVC_OK);
		/* More than three blocks hold. */
		for (uint64_t i = 0; i < 700; i++) {
			while ((status = add(scheduler, 2000 + i % 7, i, NULL)) ==
			       EVC_OUT_OF_MEMORY)
				refused++;
			EXPECT_STATUS(status, EVC_OK);
		}
		EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake_time = 2003, NULL), 400,
			     "fired");
		/* Warm: as many again need nothing. */
		counts = suite_allocator_read();
		for (uint64_t i = 0; i < 400; i++)
			EXPECT_OK(add(scheduler, 3000, i, NULL));
		EXPECT_EQUAL(suite_allocator_read().calls, counts.calls, "allocations once warm");
		close_driven(scheduler);
		EXPECT_EQUAL(seen.drops, 700, "drops");
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
	struct evc_scheduler_clock half = { NULL, fake_now, NULL };
	struct evc_scheduler_options options = { .clock = &half };
	struct evc_scheduler *scheduler;

	EXPECT_STATUS(evc_scheduler_create(NULL, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_scheduler_create(&options, &scheduler), EVC_INVALID_ARGUMENT);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "timers fire by deadline, and by the order of their adding if it is equal", every_order },
	{ "timers added, cancelled and fired at random agree with a sorted list", against_model },
	{ "a timer never fires early", never_early },
	{ "D12 a deadline that has passed is a value, or due at once, as the timer says", late_is_a_value },
	{ "a cancel says whether it was in time, also inside a timer and of itself", cancels },
	{ "a timer that is set again fires in the order of its deadlines, under the same id", sets_again },
	{ "D7 a timer may add, run and close", from_inside },
	{ "a driven scheduler that is released drops what is pending", released_open },
	{ "a driven scheduler tells of a timer that is earlier, and of no other", tells_when_earlier },
	{ "D12 every allocation of a scheduler may fail; once warm there is none", out_of_memory },
	{ "a clock without a sleep is refused", wrong_arguments },
};
SUITE_GROUP(suite_scheduler, tests);
#endif
