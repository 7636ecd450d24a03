/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "scheduler/scheduler_private.h"

/* How often the runner tries the lock before it sleeps: about as long as one change of the heap takes. */
#define RUNNER_TRIES 64u

void evc_scheduler_lock(struct evc_scheduler *scheduler)
{
	for (unsigned i = 0; i < RUNNER_TRIES; i++) {
		if (pthread_mutex_trylock(&scheduler->heap_mutex) == 0)
			return;
		evc_pause();
	}
	pthread_mutex_lock(&scheduler->heap_mutex);
}

/* Reverses a list, into the order in which the timers were added. */
static struct evc_timer *reversed(struct evc_timer *timer)
{
	struct evc_timer *first = NULL;

	while (timer != NULL) {
		/* Relaxed: the list was acquired as a whole. */
		struct evc_timer *next = (struct evc_timer *)atomic_load_explicit(
			&timer->link, memory_order_relaxed);

		atomic_store_explicit(&timer->link, (uintptr_t)first, memory_order_relaxed);
		first = timer;
		timer = next;
	}
	return first;
}

static uint32_t apply_added(struct evc_scheduler *scheduler)
{
	struct evc_timer *timer;
	uint32_t applied = 0;

	/* Acquire: pairs with `publish`: the timers' fields. The load before it is R4. */
	timer = reversed(
		atomic_exchange_explicit(&scheduler->added, NULL, memory_order_acquire));
	while (timer != NULL) {
		struct evc_timer *next = (struct evc_timer *)atomic_load_explicit(
			&timer->link, memory_order_relaxed);

		/* Also one that was cancelled meanwhile: the other list takes it out. */
		evc_timer_heap_insert(&scheduler->heap, &scheduler->store, timer);
		timer = next;
		applied++;
	}
	return applied;
}

/* Removes the timers of a list of cancelled ones from the heap, and frees them. */
static uint32_t apply_cancelled(struct evc_scheduler *scheduler, struct evc_timer *timer)
{
	struct evc_timer *batch[EVC_SCHEDULER_BATCH];
	uint32_t applied = 0;

	while (timer != NULL) {
		uint32_t count = 0;

		for (; count < EVC_SCHEDULER_BATCH && timer != NULL; timer = timer->next_cancelled) {
			evc_timer_heap_prefetch(&scheduler->heap, &scheduler->store, timer, count);
			batch[count++] = timer;
		}
		for (uint32_t i = 0; i < count; i++)
			/* EVC_TIMER_NOWHERE: it was due and was skipped. */
			if (batch[i]->position != EVC_TIMER_NOWHERE)
				evc_timer_heap_remove(&scheduler->heap, &scheduler->store, batch[i]);
		evc_timer_give_all(&scheduler->store, batch, count);
		applied += count;
	}
	return applied;
}

void evc_scheduler_apply(struct evc_scheduler *scheduler)
{
	struct evc_timer *timer = NULL;
	uint32_t applied = 0;

	/*
	 * First take the cancelled timers: each is in the heap once the added ones are applied after this.
	 * The relaxed load saves an exchange; a timer that comes later waits for the next time.
	 */
	if (atomic_load_explicit(&scheduler->cancelled, memory_order_relaxed) != NULL)
		/* Acquire: pairs with `discard`. */
		timer = atomic_exchange_explicit(&scheduler->cancelled, NULL, memory_order_acquire);
	/* R4: sequentially consistent. */
	if (atomic_load_explicit(&scheduler->added, memory_order_seq_cst) != NULL)
		applied = apply_added(scheduler);
	applied += apply_cancelled(scheduler, timer);
	if (applied != 0)
		/* Relaxed: it orders nothing. */
		atomic_fetch_sub_explicit(&scheduler->backlog, applied, memory_order_relaxed);
}

void evc_scheduler_apply_backlog(struct evc_scheduler *scheduler)
{
	pthread_mutex_lock(&scheduler->heap_mutex);
	/* Relaxed, like all of its uses. Another thread may have applied the changes meanwhile. */
	if (atomic_load_explicit(&scheduler->backlog, memory_order_relaxed) >= EVC_SCHEDULER_BACKLOG)
		evc_scheduler_apply(scheduler);
	pthread_mutex_unlock(&scheduler->heap_mutex);
}
#endif
