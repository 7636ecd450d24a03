/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "platform/own_thread.h"
#include "platform/references.h"
#include "scheduler/scheduler_private.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

/* The scheduler whose thread this is. */
static _Thread_local struct evc_scheduler *thread_of;

bool evc_scheduler_is_thread(void)
{
	return thread_of != NULL;
}

static void *run(void *opaque)
{
	struct evc_scheduler *scheduler = opaque;
	pthread_t last;

	thread_of = scheduler;
	evc_own_thread_set_name(scheduler->name);
#ifdef __linux__
	/* The system may delay every sleep by 50 us to save wake-ups; these sleeps end at deadlines. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
	while (!evc_scheduler_is_closed(scheduler)) {
		/* R1. */
		uint32_t ticket = evc_parker_prepare(scheduler->parker);
		uint64_t now = scheduler->clock.now(scheduler->clock.context);
		uint64_t next;

		(void)evc_scheduler_fire_due(scheduler, now, &next);
		/* R6, unless it was closed meanwhile; a later close comes after the ticket. */
		if (!evc_scheduler_is_closed(scheduler))
			scheduler->clock.sleep(scheduler->clock.context, scheduler->parker, ticket,
					       next);
		/* R7. */
		atomic_store_explicit(&scheduler->sleeps_until, 0, memory_order_relaxed);
	}
	evc_scheduler_drop_all(scheduler);
	last = evc_last_thread_become();
	evc_event_count_advance(&scheduler->ended);
	evc_scheduler_release(scheduler);
	/* At the very end: the other thread may be in a destructor that waits for this scheduler. */
	evc_last_thread_join(last);
	return NULL;
}

enum evc_status evc_scheduler_start(struct evc_scheduler *scheduler)
{
	pthread_t handle;

	evc_scheduler_retain(scheduler);
	if (pthread_create(&handle, NULL, run, scheduler) == 0)
		return EVC_OK;
	/* The caller destroys it. */
	(void)evc_reference_drop(&scheduler->references);
	return EVC_OUT_OF_MEMORY;
}

enum evc_status evc_scheduler_join(struct evc_scheduler *scheduler)
{
	if (scheduler == NULL)
		return EVC_INVALID_ARGUMENT;
	if (thread_of == scheduler)
		return EVC_NOT_PERMITTED;
	while (!scheduler->driven && evc_event_count_read(&scheduler->ended) == 0)
		evc_event_count_wait(&scheduler->ended, 0, EVC_FOREVER);
	return EVC_OK;
}
#endif
