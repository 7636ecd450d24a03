/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The scheduler with many timers: those that are removed from the heap together, slots that are used again,
 * and blocks that two threads make at once.
 */
#include "scheduler.h"

/* Enough are cancelled to be removed from the heap together, by the thread that gets the lock. */
static void *cancel_half(void *first)
{
	for (unsigned i = *(unsigned *)first; i < *(unsigned *)first + 9; i++)
		CHECK(cancel(i) != EVC_NOT_FOUND || has_fired(i));
	return NULL;
}

static unsigned halves[2] = { 0, 9 };

static void *read_statistics(void *unused)
{
	struct evc_scheduler_statistics statistics;

	evc_scheduler_read_statistics(scheduler, &statistics);
	CHECK(statistics.pending <= TIMERS);
	return unused;
}

static void cancel_many(bool driven)
{
	pthread_t threads[3];

	set_up(driven);
	for (unsigned i = 0; i < 18; i++)
		add(i, i % 3 == 0 ? 1000 : 1000000);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(cancel_half, &halves[i]);
	threads[2] = explorer_start(driven ? run_due : read_statistics, NULL);
	/* In the slots of those that were cancelled. */
	for (unsigned i = 18; i < 20; i++)
		add(i, 2000);
	for (unsigned i = 0; i < 3; i++)
		explorer_join(threads[i]);
	tear_down();
}

SCENARIO(scheduler_cancel_many)
{
	cancel_many(false);
}

SCENARIO(scheduler_cancel_many_driven)
{
	cancel_many(true);
}

/* Slots are freed and taken again by several threads; an old id is never found again. */
static void *add_and_cancel(void *first)
{
	for (unsigned i = *(unsigned *)first; i < *(unsigned *)first + 3; i++) {
		uint64_t id;

		add(i, 0);
		id = ids[i];
		if (cancel(i) == EVC_OK)
			CHECK(evc_scheduler_cancel(scheduler, id) == EVC_NOT_FOUND);
		(void)run_due(NULL);
	}
	return NULL;
}

SCENARIO(scheduler_reuse)
{
	pthread_t threads[2];

	set_up(true);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(add_and_cancel, &halves[i]);
	for (unsigned i = 18; i < 20; i++) {
		add(i, 0);
		(void)run_due(NULL);
	}
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down();
}

/* More timers than one block has: two threads make the next ones at once. */
static void *add_over_the_end(void *first)
{
	for (unsigned i = *(unsigned *)first; i < *(unsigned *)first + 3; i++)
		add(i, 1000000);
	(void)run_due(NULL);
	for (unsigned i = *(unsigned *)first; i < *(unsigned *)first + 3; i++)
		(void)cancel(i);
	return NULL;
}

SCENARIO(scheduler_blocks)
{
	pthread_t threads[2];

	set_up(true);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(add_over_the_end, &halves[i]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down();
}
