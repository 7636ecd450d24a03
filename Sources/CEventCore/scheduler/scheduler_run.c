/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "scheduler/scheduler_private.h"

#include "platform/own_thread.h"
#include "platform/references.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

/* Makes this thread the runner; false if there is one, which learns by its `end` that another one came. */
static bool begin(struct evc_scheduler *scheduler)
{
	/* Release, pairs with end: that the scheduler is closed, or has an earlier timer. The rest comes with the lock. */
	return atomic_fetch_add_explicit(&scheduler->runners, 1, memory_order_release) == 0;
}

/* True if another thread, or a `fire`, was refused meanwhile. */
static bool end(struct evc_scheduler *scheduler)
{
	/*
	 * Acquire, pairs with begin, and a read-modify-write: a close that found this thread running comes
	 * before this, and the following look at `closed` sees it.
	 */
	return atomic_exchange_explicit(&scheduler->runners, 0, memory_order_acquire) > 1;
}

/* Increments a count that the runner alone writes. Release: pairs with evc_scheduler_read_statistics. */
static void count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      memory_order_release);
}

/* Takes the earliest timer out of the heap and sets its state; NULL if none is due. Under the lock. */
static struct evc_timer *take_due(struct evc_scheduler *scheduler, uint64_t now,
				  enum evc_timer_state state)
{
	struct evc_timer *timer;

	while ((timer = evc_timer_heap_first(&scheduler->heap, &scheduler->store)) != NULL &&
	       timer->deadline <= now) {
		uint64_t word = atomic_load_explicit(&timer->word, memory_order_relaxed);

		evc_timer_heap_remove(&scheduler->heap, &scheduler->store, timer);
		/* Either this thread or a cancel gets the context. Relaxed: the rest came with the lock. */
		if (evc_timer_state(word) == EVC_TIMER_PENDING &&
		    atomic_compare_exchange_strong_explicit(&timer->word, &word,
							    evc_timer_with_state(word, state),
							    memory_order_relaxed,
							    memory_order_relaxed))
			return timer;
		/* Cancelled: the list of cancelled timers frees it. */
	}
	return NULL;
}

/*
 * After `fire`, under the lock: sets the timer again, or frees it. True if its context is to be dropped,
 * because it was cancelled while it fired and wanted to be set again.
 */
static bool settle(struct evc_scheduler *scheduler, struct evc_timer *timer, uint64_t next)
{
	uint64_t word = atomic_load_explicit(&timer->word, memory_order_relaxed);
	bool again = next > timer->deadline;

	if (again) {
		timer->deadline = next;
		/* Release: pairs with evc_scheduler_cancel: what `fire` did to the context. */
		if (evc_timer_state(word) == EVC_TIMER_FIRING &&
		    atomic_compare_exchange_strong_explicit(
			    &timer->word, &word, evc_timer_with_state(word, EVC_TIMER_PENDING),
			    memory_order_release, memory_order_relaxed)) {
			evc_timer_heap_insert(&scheduler->heap, &scheduler->store, timer);
			return false;
		}
	}
	/* A cancel that comes now finds another generation. */
	evc_timer_give(&scheduler->store, timer);
	count(&scheduler->count_ended);
	return again;
}

/* Fires what is due and sets `*next` to the next deadline. The runner. */
static size_t fire_due(struct evc_scheduler *scheduler, uint64_t now, uint64_t *next)
{
	const struct evc_timer_ops *ops = NULL;
	struct evc_timer *timer = NULL;
	void *context = NULL;
	uint64_t again = 0;
	size_t fired = 0;

	/* That deadline never comes, also for a caller who fires all that is left. */
	if (now == EVC_FOREVER)
		now--;
	for (;;) {
		bool dropped;

		evc_scheduler_lock(scheduler);
		dropped = timer != NULL && settle(scheduler, timer, again);
		timer = NULL;
		if (!dropped && !evc_scheduler_is_closed(scheduler)) {
			/* R3. */
			atomic_store_explicit(&scheduler->sleeps_until, EVC_FOREVER,
					      memory_order_seq_cst);
			/* R4. */
			evc_scheduler_apply(scheduler);
			timer = take_due(scheduler, now, EVC_TIMER_FIRING);
			if (timer == NULL)
				break;
			/* R7: it is awake. */
			atomic_store_explicit(&scheduler->sleeps_until, 0, memory_order_relaxed);
		}
		pthread_mutex_unlock(&scheduler->heap_mutex);
		if (dropped && ops->drop != NULL)
			ops->drop(context);
		if (timer == NULL) {
			if (dropped)
				continue;
			*next = 0;
			return fired;
		}
		ops = timer->ops;
		context = timer->context;
		fired++;
		count(&scheduler->count_fired);
		again = ops->fire(context, timer->deadline);
	}
	timer = evc_timer_heap_first(&scheduler->heap, &scheduler->store);
	*next = timer != NULL ? timer->deadline : EVC_FOREVER;
	/* R5. Relaxed, as R7: a thread that reads either comes before the next R3. */
	atomic_store_explicit(&scheduler->sleeps_until, *next, memory_order_relaxed);
	pthread_mutex_unlock(&scheduler->heap_mutex);
	return fired;
}

void evc_scheduler_drop_all(struct evc_scheduler *scheduler)
{
	for (;;) {
		const struct evc_timer_ops *ops;
		struct evc_timer *timer;
		void *context;

		evc_scheduler_lock(scheduler);
		evc_scheduler_apply(scheduler);
		timer = take_due(scheduler, EVC_FOREVER, EVC_TIMER_FREE);
		if (timer != NULL) {
			ops = timer->ops;
			context = timer->context;
			evc_timer_give(&scheduler->store, timer);
			count(&scheduler->count_dropped);
		}
		pthread_mutex_unlock(&scheduler->heap_mutex);
		if (timer == NULL)
			return;
		if (ops->drop != NULL)
			ops->drop(context);
	}
}

size_t evc_scheduler_run_due(struct evc_scheduler *scheduler, uint64_t now, uint64_t *next)
{
	uint64_t ignored;
	size_t fired = 0;
	bool has_repeated = false;

	if (next == NULL)
		next = &ignored;
	*next = EVC_FOREVER;
	/* A function may release the scheduler. */
	evc_scheduler_retain(scheduler);
	while (scheduler->driven && begin(scheduler)) {
		fired += fire_due(scheduler, now, next);
		if (evc_scheduler_is_closed(scheduler)) {
			evc_scheduler_drop_all(scheduler);
			*next = EVC_FOREVER;
			(void)end(scheduler);
			break;
		}
		/* A close, or a thread that was woken for an earlier timer, left the rest to this one if it found it running. */
		if (!end(scheduler) && !evc_scheduler_is_closed(scheduler))
			break;
		*next = EVC_FOREVER;
		/* It may be closed since. Others could go on for ever to leave something, so one repetition is all. */
		if (has_repeated && !evc_scheduler_is_closed(scheduler)) {
			*next = 0;
			break;
		}
		has_repeated = true;
	}
	evc_scheduler_release(scheduler);
	return fired;
}

uint64_t evc_scheduler_next(struct evc_scheduler *scheduler)
{
	struct evc_timer *timer;
	uint64_t next;

	evc_scheduler_lock(scheduler);
	evc_scheduler_apply(scheduler);
	timer = evc_timer_heap_first(&scheduler->heap, &scheduler->store);
	next = timer != NULL ? timer->deadline : EVC_FOREVER;
	pthread_mutex_unlock(&scheduler->heap_mutex);
	return next;
}

void evc_scheduler_close(struct evc_scheduler *scheduler)
{
	/* A `drop` may release the scheduler. */
	evc_scheduler_retain(scheduler);
	/* Sequentially consistent: see the end of the head of scheduler_private.h. */
	atomic_store_explicit(&scheduler->closed, true, memory_order_seq_cst);
	if (!scheduler->driven)
		(void)evc_parker_wake(scheduler->parker);
	else if (begin(scheduler)) {
		evc_scheduler_drop_all(scheduler);
		(void)end(scheduler);
	}
	evc_scheduler_release(scheduler);
}

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

		(void)fire_due(scheduler, now, &next);
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
	if (evc_own_thread_create(&handle, run, scheduler))
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
