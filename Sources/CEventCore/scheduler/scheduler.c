/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "scheduler/scheduler_private.h"

#include "platform/allocator.h"
#include "platform/options.h"
#include "platform/references.h"

#include <string.h>

static uint64_t real_now(void *context)
{
	(void)context;
	return evc_clock_now();
}

static void real_sleep(void *context, struct evc_parker *parker, uint32_t ticket, uint64_t deadline)
{
	uint64_t left = evc_clock_left(deadline);

	(void)context;
	if (left != 0)
		(void)evc_parker_wait(parker, ticket, left);
}

static const struct evc_scheduler_clock real_clock = { NULL, real_now, real_sleep };

static void destroy(struct evc_scheduler *scheduler)
{
	evc_parker_destroy(scheduler->parker);
	evc_timer_store_close(&scheduler->store);
	evc_event_count_close(&scheduler->ended);
	pthread_mutex_destroy(&scheduler->heap_mutex);
	evc_deallocate(scheduler, sizeof(*scheduler), _Alignof(struct evc_scheduler));
}

enum evc_status evc_scheduler_create(const struct evc_scheduler_options *options,
				     struct evc_scheduler **out)
{
	struct evc_scheduler_options own;
	enum evc_status status = EVC_OPTIONS_READ(&own, struct evc_scheduler_options, options, wake_context);
	struct evc_scheduler *scheduler;

	if (status != EVC_OK)
		return status;
	if (out == NULL)
		return EVC_INVALID_ARGUMENT;
	/* Only a thread of the scheduler's own sleeps. */
	if (own.clock != NULL && (own.clock->now == NULL || (own.clock->sleep == NULL && !own.driven)))
		return EVC_INVALID_ARGUMENT;
	scheduler = evc_allocate(sizeof(*scheduler), _Alignof(struct evc_scheduler));
	if (scheduler == NULL)
		return EVC_OUT_OF_MEMORY;
	*scheduler = (struct evc_scheduler){
		.clock = own.clock != NULL ? *own.clock : real_clock,
		.driven = own.driven,
		.wake = own.wake,
		.wake_context = own.wake_context,
		.store = { .fresh = EVC_TIMER_FIRST },
		.heap_mutex = PTHREAD_MUTEX_INITIALIZER,
		.heap = { .last = EVC_TIMER_FIRST - 1 },
		/* The caller knows no time yet: a driven scheduler's first timer wakes it. */
		.sleeps_until = own.driven ? EVC_FOREVER : 0,
		.references = 1,
	};
	strncpy(scheduler->name, own.name != NULL ? own.name : "evc-scheduler", sizeof(scheduler->name) - 1);
	if (!evc_event_count_open(&scheduler->ended)) {
		evc_deallocate(scheduler, sizeof(*scheduler), _Alignof(struct evc_scheduler));
		return EVC_OUT_OF_MEMORY;
	}
	status = evc_parker_create(own.parker, &scheduler->parker);
	if (status == EVC_OK && !own.driven)
		status = evc_scheduler_start(scheduler);
	if (status != EVC_OK) {
		destroy(scheduler);
		return status;
	}
	*out = scheduler;
	return EVC_OK;
}

void evc_scheduler_retain(struct evc_scheduler *scheduler)
{
	evc_reference_add(&scheduler->references);
}

void evc_scheduler_release(struct evc_scheduler *scheduler)
{
	if (scheduler == NULL || !evc_reference_drop(&scheduler->references))
		return;
	/* This thread is the last holder. A driven scheduler may still hold timers. */
	atomic_store_explicit(&scheduler->closed, true, memory_order_relaxed);
	evc_scheduler_drop_all(scheduler);
	destroy(scheduler);
}

/* Counts a change that is left to others, before its push, so that the count is never too low. */
static uint32_t count_left(struct evc_scheduler *scheduler)
{
	/* Relaxed: it orders nothing. */
	return atomic_fetch_add_explicit(&scheduler->backlog, 1, memory_order_relaxed) + 1;
}

/* A1 to A3; the caller looks at `closed`. */
static void publish(struct evc_scheduler *scheduler, struct evc_timer *timer, uint64_t deadline)
{
	bool too_many = false;

	if (pthread_mutex_trylock(&scheduler->heap_mutex) == 0) {
		/*
		 * Relaxed: a timer whose add returned before this one began is seen, and others have no
		 * order. The count is a hint; cancelled timers are removed only if there are enough of them.
		 */
		if (atomic_load_explicit(&scheduler->added, memory_order_relaxed) != NULL ||
		    atomic_load_explicit(&scheduler->backlog, memory_order_relaxed) >= EVC_SCHEDULER_BATCH)
			evc_scheduler_apply(scheduler);
		evc_timer_heap_insert(&scheduler->heap, &scheduler->store, timer);
		pthread_mutex_unlock(&scheduler->heap_mutex);
	} else {
		struct evc_timer *first =
			atomic_load_explicit(&scheduler->added, memory_order_relaxed);

		too_many = count_left(scheduler) >= EVC_SCHEDULER_BACKLOG;
		do {
			atomic_store_explicit(&timer->link, (uintptr_t)first, memory_order_relaxed);
			/* A1. Release: pairs with apply_added; and see the head of scheduler_private.h. */
		} while (!atomic_compare_exchange_weak_explicit(&scheduler->added, &first, timer,
								memory_order_seq_cst,
								memory_order_relaxed));
	}
	/* From here on the timer may have fired and been used again. A2, A3. */
	if (deadline < atomic_load_explicit(&scheduler->sleeps_until, memory_order_seq_cst)) {
		if (!scheduler->driven)
			(void)evc_parker_wake(scheduler->parker);
		else if (scheduler->wake != NULL)
			scheduler->wake(scheduler->wake_context);
	}
	if (evc_unlikely(too_many))
		evc_scheduler_apply_backlog(scheduler);
}

/* Puts a cancelled timer into the list; removes all of them from the heap if there are enough. */
static void discard(struct evc_scheduler *scheduler, struct evc_timer *timer)
{
	struct evc_timer *first =
		atomic_load_explicit(&scheduler->cancelled, memory_order_relaxed);
	uint32_t left = count_left(scheduler);

	do {
		timer->next_cancelled = first;
		/* Release: pairs with evc_scheduler_apply. */
	} while (!atomic_compare_exchange_weak_explicit(&scheduler->cancelled, &first, timer,
							memory_order_release,
							memory_order_relaxed));
	if (left < EVC_SCHEDULER_BATCH)
		return;
	if (pthread_mutex_trylock(&scheduler->heap_mutex) == 0) {
		evc_scheduler_apply(scheduler);
		pthread_mutex_unlock(&scheduler->heap_mutex);
	} else if (evc_unlikely(left >= EVC_SCHEDULER_BACKLOG)) {
		evc_scheduler_apply_backlog(scheduler);
	}
}

/* evc_scheduler_cancel without counting. */
static enum evc_status withdraw(struct evc_scheduler *scheduler, uint64_t id)
{
	const uint64_t firing = evc_timer_with_state(id, EVC_TIMER_FIRING);
	uint32_t index = evc_timer_index(id);
	struct evc_timer *timer;
	uint64_t word = id;

	/* Acquire: pairs with take_fresh. */
	if (evc_timer_state(id) != EVC_TIMER_PENDING || index < EVC_TIMER_FIRST ||
	    index >= atomic_load_explicit(&scheduler->store.fresh, memory_order_acquire))
		return EVC_NOT_FOUND;
	timer = evc_timer_at(&scheduler->store, index);
	for (;;) {
		/*
		 * Acquire, pairs with settle: what `fire` did to the context in an earlier round. Relaxed
		 * otherwise: then nothing of the timer is the caller's.
		 */
		if (atomic_compare_exchange_strong_explicit(
			    &timer->word, &word, evc_timer_with_state(id, EVC_TIMER_CANCELLED),
			    memory_order_acquire, memory_order_relaxed))
			break;
		if (word == firing &&
		    atomic_compare_exchange_strong_explicit(
			    &timer->word, &word, evc_timer_with_state(id, EVC_TIMER_LAST),
			    memory_order_relaxed, memory_order_relaxed))
			return EVC_TIMED_OUT;
		/* It was set again between the two: try again. */
		if (word != id && word != firing)
			return EVC_NOT_FOUND;
		word = id;
	}
	discard(scheduler, timer);
	return EVC_OK;
}

enum evc_status evc_scheduler_cancel(struct evc_scheduler *scheduler, uint64_t id)
{
	enum evc_status status;

	if (scheduler == NULL)
		return EVC_INVALID_ARGUMENT;
	status = withdraw(scheduler, id);
	if (status == EVC_OK)
		/* Release: pairs with evc_scheduler_read_statistics. */
		atomic_fetch_add_explicit(&scheduler->count_cancelled, 1, memory_order_release);
	return status;
}

enum evc_status evc_scheduler_add(struct evc_scheduler *scheduler, uint64_t deadline,
				  const struct evc_timer_ops *ops, void *context, uint64_t *id)
{
	struct evc_timer *timer;
	uint64_t word;

	if (scheduler == NULL || ops == NULL || ops->fire == NULL)
		return EVC_INVALID_ARGUMENT;
	/* Relaxed: loaded again below. */
	if (atomic_load_explicit(&scheduler->closed, memory_order_relaxed))
		return EVC_CLOSED;
	if (!ops->takes_late && deadline <= scheduler->clock.now(scheduler->clock.context))
		return EVC_TIMED_OUT;
	timer = evc_timer_take(&scheduler->store);
	if (timer == NULL)
		return EVC_OUT_OF_MEMORY;
	timer->deadline = deadline;
	timer->ops = ops;
	timer->context = context;
	/* Relaxed: it is not published yet. */
	word = evc_timer_with_state(atomic_load_explicit(&timer->word, memory_order_relaxed),
				    EVC_TIMER_PENDING);
	atomic_store_explicit(&timer->word, word, memory_order_relaxed);
	if (id != NULL)
		*id = word;
	/* Relaxed: a count. Before the timer can end, so that a reader never finds more ended than added. */
	atomic_fetch_add_explicit(&scheduler->count_added, 1, memory_order_relaxed);
	publish(scheduler, timer, deadline);
	/* seq_cst: after the publication (A1), as the runner's R4 is after the close. */
	if (evc_unlikely(atomic_load_explicit(&scheduler->closed, memory_order_seq_cst)) &&
	    withdraw(scheduler, word) == EVC_OK) {
		atomic_fetch_sub_explicit(&scheduler->count_added, 1, memory_order_relaxed);
		return EVC_CLOSED;
	}
	return EVC_OK;
}

void evc_scheduler_read_statistics(const struct evc_scheduler *scheduler,
				   struct evc_scheduler_statistics *out)
{
	uint64_t ended, added;

	/*
	 * What is subtracted is read first, with acquire, so that the difference does not fall below 0:
	 * pairs with the release of each count.
	 */
	ended = atomic_load_explicit(&scheduler->count_ended, memory_order_acquire);
	out->fired = atomic_load_explicit(&scheduler->count_fired, memory_order_relaxed);
	out->cancelled = atomic_load_explicit(&scheduler->count_cancelled, memory_order_acquire);
	/* Relaxed: once it is closed, no timer is added. */
	out->dropped = atomic_load_explicit(&scheduler->count_dropped, memory_order_relaxed);
	added = atomic_load_explicit(&scheduler->count_added, memory_order_relaxed);
	ended += out->cancelled + out->dropped;
	out->pending = added > ended ? added - ended : 0;
}
#endif
