/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Timers that are changed: cancelled, set again, and what a timer may do inside `fire`; on a driven scheduler
 * with a clock that the test moves.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "driven.h"
#include "scheduler/scheduler_private.h"

static uint64_t cancel_from_inside(void *context, uint64_t deadline)
{
	(void)driven_note(context, deadline);
	driven.status = evc_scheduler_cancel(driven.scheduler, driven.id);
	return driven.interval == 0 ? 0 : deadline + driven.interval;
}

static const char *cancels(void)
{
	static const struct evc_timer_ops cancelling = { .fire = cancel_from_inside, .drop = driven_drop };
	struct evc_scheduler_statistics statistics;
	struct evc_scheduler *scheduler;
	uint64_t first, second;

	EXPECT_NONE(driven_open(&scheduler));
	EXPECT_OK(driven_add(scheduler, 2000, 1, &first));
	EXPECT_OK(evc_scheduler_cancel(scheduler, first));
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, first), EVC_NOT_FOUND);
	/* The same slot in its next generation, after it was freed. */
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time, NULL), 0, "fired");
	EXPECT_OK(driven_add(scheduler, 2000, 2, &second));
	EXPECT(first != second, "an id was used twice");
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, first), EVC_NOT_FOUND);
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, 0), EVC_NOT_FOUND);
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, UINT64_MAX), EVC_NOT_FOUND);
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 2000, NULL), 1, "fired");
	EXPECT_EQUAL(driven.values[0], 2, "which one");
	EXPECT_STATUS(evc_scheduler_cancel(scheduler, second), EVC_NOT_FOUND);
	/* Inside `fire`: another timer that is due at the same time, then itself. */
	EXPECT_OK(evc_scheduler_add(scheduler, 3000, &cancelling, NULL, NULL));
	EXPECT_OK(driven_add(scheduler, 3000, 3, &driven.id));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 3000, NULL), 1, "fired");
	EXPECT_STATUS(driven.status, EVC_OK);
	EXPECT_OK(evc_scheduler_add(scheduler, 4000, &cancelling, NULL, &driven.id));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 4000, NULL), 1, "fired");
	EXPECT_STATUS(driven.status, EVC_TIMED_OUT);
	EXPECT_EQUAL(driven.drops, 0, "drops");
	driven.interval = 10;
	EXPECT_OK(evc_scheduler_add(scheduler, 5000, &cancelling, NULL, &driven.id));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 6000, NULL), 1, "fired");
	EXPECT_STATUS(driven.status, EVC_TIMED_OUT);
	EXPECT_EQUAL(driven.drops, 1, "drops of one that was cancelled and wanted to go on");
	evc_scheduler_read_statistics(scheduler, &statistics);
	EXPECT_EQUAL(statistics.pending, 0, "pending");
	EXPECT_EQUAL(statistics.cancelled, 2, "cancelled");
	EXPECT_EQUAL(statistics.fired, 4, "fired in all");
	driven_close(scheduler);
	return NULL;
}

static uint64_t again(void *context, uint64_t deadline)
{
	(void)driven_note(context, deadline);
	return deadline + driven.interval;
}

static const char *sets_again(void)
{
	static const struct evc_timer_ops repeating = { .fire = again, .drop = driven_drop };
	static const uint64_t expected[] = { 2000, 2005, 2010, 2020, 2020, 2030 };
	struct evc_scheduler *scheduler;
	uint64_t id, next;

	EXPECT_NONE(driven_open(&scheduler));
	driven.interval = 10;
	EXPECT_OK(evc_scheduler_add(scheduler, 2000, &repeating, (void *)1, &id));
	EXPECT_OK(driven_add(scheduler, 2005, 2, NULL));
	EXPECT_OK(driven_add(scheduler, 2020, 3, NULL));
	/* The clock jumps: missed timers fire in the order of the deadlines, among the others. */
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 2035, &next), 6, "fired");
	for (unsigned i = 0; i < 6; i++)
		EXPECT_EQUAL(driven.times[i], expected[i], "a deadline");
	/* Of the two at 2020 the one that was set first. */
	EXPECT_EQUAL(driven.values[3], 3, "the first of two equal deadlines");
	EXPECT_EQUAL(next, 2040, "the next deadline");
	EXPECT_OK(evc_scheduler_cancel(scheduler, id));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 9000, &next), 0, "fired");
	driven_close(scheduler);
	EXPECT_EQUAL(driven.drops, 0, "drops");
	return NULL;
}

static uint64_t enter_again(void *context, uint64_t deadline)
{
	uint64_t next;

	(void)driven_note(context, deadline);
	driven.nested += (unsigned)evc_scheduler_run_due(driven.scheduler, fake.time, &next);
	driven.status = driven_add(driven.scheduler, fake.time + 1, 9, NULL);
	return 0;
}

static uint64_t close_inside(void *context, uint64_t deadline)
{
	(void)driven_note(context, deadline);
	evc_scheduler_close(driven.scheduler);
	driven.status = driven_add(driven.scheduler, fake.time + 1, 9, NULL);
	/* It asks to be set again, and is refused. */
	return deadline + 1;
}

static const char *from_inside(void)
{
	static const struct evc_timer_ops nesting = { .fire = enter_again, .drop = driven_drop };
	static const struct evc_timer_ops closing = { .fire = close_inside, .drop = driven_drop };
	struct evc_scheduler_statistics statistics;
	struct evc_scheduler *scheduler;
	uint64_t next;

	EXPECT_NONE(driven_open(&scheduler));
	EXPECT_OK(evc_scheduler_add(scheduler, 2000, &nesting, NULL, NULL));
	EXPECT_OK(driven_add(scheduler, 2000, 1, NULL));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 2000, &next), 2, "fired");
	EXPECT_EQUAL(driven.nested, 0, "fired by a call inside the call");
	EXPECT_STATUS(driven.status, EVC_OK);
	EXPECT_EQUAL(next, 2001, "the next deadline");
	EXPECT_OK(evc_scheduler_add(scheduler, 2001, &closing, NULL, NULL));
	EXPECT_OK(driven_add(scheduler, 2001, 2, NULL));
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 2001, &next), 2, "fired");
	EXPECT_STATUS(driven.status, EVC_CLOSED);
	EXPECT_EQUAL(driven.drops, 2, "drops");
	EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 3000, &next), 0, "fired after");
	evc_scheduler_read_statistics(scheduler, &statistics);
	EXPECT_EQUAL(statistics.dropped, 2, "dropped");
	EXPECT_EQUAL(statistics.pending, 0, "pending");
	evc_scheduler_release(scheduler);
	return NULL;
}

static const char *released_open(void)
{
	struct evc_scheduler *scheduler;

	EXPECT_NONE(driven_open(&scheduler));
	for (unsigned i = 0; i < 1000; i++)
		EXPECT_OK(driven_add(scheduler, 2000 + i % 7, i, NULL));
	evc_scheduler_retain(scheduler);
	evc_scheduler_release(scheduler);
	EXPECT_EQUAL(driven.drops, 0, "drops with a reference left");
	EXPECT_OK(evc_scheduler_join(scheduler));
	evc_scheduler_release(scheduler);
	EXPECT_EQUAL(driven.drops, 1000, "drops");
	return NULL;
}

/* Of 3n timers, n - 1, n, n + 1 and 2n are cancelled, where n are removed from the heap together. */
static const char *cancelled_together(void)
{
	static const uint64_t counts[] = { 1, EVC_SCHEDULER_BATCH - 1, EVC_SCHEDULER_BATCH,
					   EVC_SCHEDULER_BATCH + 1, 2 * EVC_SCHEDULER_BATCH };
	const uint64_t all = 3 * EVC_SCHEDULER_BATCH;

	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct evc_scheduler_statistics statistics;
		uint64_t ids[3 * EVC_SCHEDULER_BATCH], old[3 * EVC_SCHEDULER_BATCH], next;
		struct evc_scheduler *scheduler;
		uint32_t fresh;

		EXPECT_NONE(driven_open(&scheduler));
		for (uint64_t i = 0; i < all; i++)
			EXPECT_OK(driven_add(scheduler, 2000 + i / 2, i, &ids[i]));
		__builtin_memcpy(old, ids, sizeof(old));
		/* From the front, so that those that are still in the heap are due first. */
		for (uint64_t i = 0; i < counts[c]; i++)
			EXPECT_OK(evc_scheduler_cancel(scheduler, ids[i]));
		EXPECT(atomic_load(&scheduler->backlog) < EVC_SCHEDULER_BATCH, "too many are left");
		EXPECT_STATUS(evc_scheduler_cancel(scheduler, ids[0]), EVC_NOT_FOUND);
		evc_scheduler_read_statistics(scheduler, &statistics);
		EXPECT_EQUAL(statistics.pending, all - counts[c], "pending");
		EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 9000, &next),
			     all - counts[c], "fired");
		for (uint64_t i = 0; i < all - counts[c]; i++)
			EXPECT_EQUAL(driven.values[i], counts[c] + i, "the order of those that are left");
		EXPECT_EQUAL(next, EVC_FOREVER, "the next deadline");
		EXPECT_EQUAL(atomic_load(&scheduler->backlog), 0, "left when all is dealt");
		/* Each was freed once: the same number again needs no timer that was never used. */
		fresh = atomic_load(&scheduler->store.fresh);
		for (uint64_t i = 0; i < all; i++)
			EXPECT_OK(driven_add(scheduler, 10000, i, &ids[i]));
		EXPECT_EQUAL(atomic_load(&scheduler->store.fresh), fresh, "timers used");
		for (uint64_t i = 0; i < all; i++)
			EXPECT_STATUS(evc_scheduler_cancel(scheduler, old[i]), EVC_NOT_FOUND);
		EXPECT_EQUAL(evc_scheduler_run_due(scheduler, fake.time = 10000, NULL), all, "fired");
		driven_close(scheduler);
		EXPECT_EQUAL(driven.drops, 0, "drops");
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "cancelled timers are removed together, skipped when due, and freed once",
	  cancelled_together },
	{ "a cancel says whether it was in time, also inside a timer and of itself", cancels },
	{ "a timer that is set again fires in the order of its deadlines, under the same id", sets_again },
	{ "D7 a timer may add, run and close", from_inside },
	{ "a driven scheduler that is released drops what is pending", released_open },
};
SUITE_GROUP(suite_scheduler_change, tests);
#endif
