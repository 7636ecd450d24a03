/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Shared by the scenarios of the scheduler: timers whose contexts have one owner at a time, and the end,
 * where each has fired, was dropped or was cancelled once. Each file of scenarios has its own copy.
 */
#ifndef EXPLORER_SCHEDULER_H
#define EXPLORER_SCHEDULER_H

#include "explorer.h"

#include "eventcore/scheduler.h"

#include <time.h>

#define TIMERS 24u

struct context {
	/*
	 * Not atomic: it has one owner at a time, and passes from the adder to the thread that fires or
	 * cancels.
	 */
	uint32_t owners, fired, dropped, cancelled;
	uint64_t again;
};

static struct evc_scheduler *scheduler;
static struct context contexts[TIMERS];
static uint64_t ids[TIMERS];
static struct evc_timer_ops ops;
/* Deadlines of timers that were added and have not fired. */
static uint64_t deadlines[TIMERS];

/* The thread sleeps past none of them. */
UNSEEN static void expect(unsigned which, uint64_t deadline)
{
	uint64_t earliest = UINT64_MAX;

	deadlines[which] = deadline;
	for (unsigned i = 0; i < TIMERS; i++)
		if (deadlines[i] != 0 && deadlines[i] < earliest)
			earliest = deadlines[i];
	/* A sleep ends a little later than asked for. */
	explorer_forbid_idling_past(earliest == UINT64_MAX ? earliest : earliest + 10000);
}

static bool fired[TIMERS];

UNSEEN static bool has_fired(unsigned which)
{
	return fired[which];
}

UNSEEN static void note_fired(unsigned which)
{
	fired[which] = true;
}

static inline uint64_t fire(void *opaque, uint64_t deadline)
{
	struct context *context = opaque;
	uint64_t again = context->again;

	CHECK(evc_clock_now() >= deadline);
	context->owners++;
	context->fired++;
	note_fired((unsigned)(context - contexts));
	expect((unsigned)(context - contexts), again);
	context->again = 0;
	return again;
}

static inline void drop(void *opaque)
{
	struct context *context = opaque;

	context->owners++;
	context->dropped++;
	if (context >= contexts && context < contexts + TIMERS)
		expect((unsigned)(context - contexts), 0);
}

static inline void set_up(bool driven)
{
	struct evc_scheduler_options options = { .size = sizeof(options), .driven = driven };

	ops = (struct evc_timer_ops){ fire, drop, true };
	CHECK(evc_scheduler_create(&options, &scheduler) == EVC_OK);
}

static inline void add(unsigned which, uint64_t after)
{
	uint64_t deadline = evc_clock_now() + after;

	contexts[which].owners++;
	CHECK(evc_scheduler_add(scheduler, deadline, &ops, &contexts[which], &ids[which]) == EVC_OK);
}

static inline enum evc_status cancel(unsigned which)
{
	enum evc_status status = evc_scheduler_cancel(scheduler, ids[which]);

	/* The context belongs to this thread again. */
	if (status == EVC_OK) {
		contexts[which].owners++;
		contexts[which].cancelled++;
	}
	return status;
}

static inline void tear_down(void)
{
	explorer_forbid_idling(false);
	evc_scheduler_close(scheduler);
	CHECK(evc_scheduler_join(scheduler) == EVC_OK);
	evc_scheduler_release(scheduler);
	explorer_settle();
	explorer_forbid_idling(false);
	for (unsigned i = 0; i < TIMERS; i++)
		CHECK(ids[i] == 0 || contexts[i].fired + contexts[i].dropped + contexts[i].cancelled == 1);
}

static inline void *run_due(void *unused)
{
	uint64_t next;

	(void)evc_scheduler_run_due(scheduler, evc_clock_now(), &next);
	return unused;
}

#endif
