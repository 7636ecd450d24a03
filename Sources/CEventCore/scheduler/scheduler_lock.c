/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "scheduler/scheduler_private.h"

#include <sched.h>
#include <time.h>

/* How often the runner looks before it sleeps: about as long as another's step in the heap takes. */
#define RUNNER_SPINS 64u

bool evc_scheduler_try_lock(struct evc_scheduler *scheduler)
{
	uint32_t free = 0;

	/* Acquire: pairs with the unlock: the heap as the last holder left it. */
	return atomic_compare_exchange_strong_explicit(&scheduler->lock, &free, 1,
						       memory_order_acquire,
						       memory_order_relaxed);
}

void evc_scheduler_lock(struct evc_scheduler *scheduler)
{
	for (unsigned i = 0; i < RUNNER_SPINS; i++) {
		if (evc_scheduler_try_lock(scheduler))
			return;
		evc_pause();
	}
	for (;;) {
		uint32_t ticket = evc_parker_prepare(scheduler->lock_parker);

		/* Acquire: as above. The holder that finds 2 at its unlock wakes. */
		if (atomic_exchange_explicit(&scheduler->lock, 2, memory_order_acquire) == 0)
			return;
		(void)evc_parker_wait(scheduler->lock_parker, ticket, EVC_FOREVER);
	}
}

void evc_scheduler_unlock(struct evc_scheduler *scheduler)
{
	/* Release: pairs with the two above. */
	if (atomic_exchange_explicit(&scheduler->lock, 0, memory_order_release) == 2)
		(void)evc_parker_wake(scheduler->lock_parker);
}

/* Into the order in which they were added. */
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

static uint32_t deal_added(struct evc_scheduler *scheduler)
{
	struct evc_timer *timer;
	uint32_t dealt = 0;

	/* Acquire: pairs with the push in evc_scheduler_add: the fields of the timers. The look before it is R4. */
	timer = reversed(
		atomic_exchange_explicit(&scheduler->added, NULL, memory_order_acquire));
	while (timer != NULL) {
		struct evc_timer *next = (struct evc_timer *)atomic_load_explicit(
			&timer->link, memory_order_relaxed);

		/* One that was cancelled already goes into the heap too: its canceller takes it out. */
		evc_timer_heap_insert(&scheduler->heap, &scheduler->store, timer);
		timer = next;
		dealt++;
	}
	return dealt;
}

/* Takes the timers of a list of cancelled ones out of the heap, and gives them back. */
static uint32_t deal_cancelled(struct evc_scheduler *scheduler, struct evc_timer *timer)
{
	struct evc_timer *batch[EVC_SCHEDULER_BATCH];
	uint32_t dealt = 0;

	while (timer != NULL) {
		uint32_t count = 0;

		for (; count < EVC_SCHEDULER_BATCH && timer != NULL; timer = timer->next_cancelled) {
			evc_timer_heap_prefetch(&scheduler->heap, &scheduler->store, timer, count);
			batch[count++] = timer;
		}
		for (uint32_t i = 0; i < count; i++)
			/* Nowhere: it was due, and passed over. */
			if (batch[i]->position != EVC_TIMER_NOWHERE)
				evc_timer_heap_remove(&scheduler->heap, &scheduler->store, batch[i]);
		evc_timer_give_all(&scheduler->store, batch, count);
		dealt += count;
	}
	return dealt;
}

void evc_scheduler_deal(struct evc_scheduler *scheduler)
{
	struct evc_timer *timer = NULL;
	uint32_t dealt = 0;

	/*
	 * First the cancelled: each was added before, so that it is in the heap when the added ones are
	 * dealt after this. The look spares an exchange; one that comes later waits for the next deal.
	 */
	if (atomic_load_explicit(&scheduler->cancelled, memory_order_relaxed) != NULL)
		/* Acquire: pairs with the push in evc_scheduler_cancel. */
		timer = atomic_exchange_explicit(&scheduler->cancelled, NULL, memory_order_acquire);
	/* R4: sequentially consistent. */
	if (atomic_load_explicit(&scheduler->added, memory_order_seq_cst) != NULL)
		dealt = deal_added(scheduler);
	dealt += deal_cancelled(scheduler, timer);
	if (dealt != 0)
		/* Relaxed: it orders nothing. */
		atomic_fetch_sub_explicit(&scheduler->backlog, dealt, memory_order_relaxed);
}

/* Waits for another thread that is a few instructions away, unless it was preempted: longer with each turn. */
static void back_off(unsigned turn)
{
	if (turn < 100) {
		evc_pause();
	} else if (turn < 200) {
		sched_yield();
	} else {
		/* A real-time thread has to sleep to let a preempted one run. */
		struct timespec nap = { 0, 20000 };

		nanosleep(&nap, NULL);
	}
}

void evc_scheduler_await_deal(struct evc_scheduler *scheduler)
{
	for (unsigned turn = 0; atomic_load_explicit(&scheduler->backlog, memory_order_relaxed) >=
				EVC_SCHEDULER_BACKLOG;
	     turn++) {
		if (evc_scheduler_try_lock(scheduler)) {
			evc_scheduler_deal(scheduler);
			evc_scheduler_unlock(scheduler);
			return;
		}
		back_off(turn);
	}
}
#endif
