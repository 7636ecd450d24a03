/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A scheduler: a heap under a lock for which, as a rule, only its runner waits.
 *
 * The runner is the scheduler's thread, or the thread inside evc_scheduler_run_due. Every other thread tries
 * the lock once. A thread that gets it applies the changes that others left, and makes its own change to the
 * heap. A thread that does not get it leaves its timer in a list and goes on:
 *
 *   adder                                        runner
 *   A1 put the timer into the heap (lock), or    R1 ticket of the parker
 *      into `added` (seq_cst)                    R2 lock
 *   A2 load `sleeps_until` (seq_cst)             R3 `sleeps_until` = EVC_FOREVER (seq_cst)
 *   A3 if its deadline is earlier: wake          R4 look at `added` (seq_cst), apply it to the heap
 *                                                R5 `sleeps_until` = earliest deadline; unlock
 *                                                R6 sleep until then, with the ticket
 *                                                R7 `sleeps_until` = 0
 *
 * The runner does not sleep past a deadline. If A2 comes before R3, so does A1, and R4 finds the timer unless it is
 * in the heap already. (The thread that took it from `added` put it into the heap before unlocking, and R2 came
 * after that, or R4 would have found it.) If A2 comes after R3, it reads EVC_FOREVER or the earliest deadline, and,
 * if the timer is earlier, wakes the runner, whose ticket is older; or it reads the 0 of R7, and the next R3 is
 * still to come. A timer that is not earlier may stay in `added`: the runner finds it when it wakes.
 * Tests/Models/scheduler.pml models this.
 *
 * The lock is a mutex, and its holder runs no user code. A thread that unlocks it may have to wake the runner, which
 * sleeps on it; this, and the wait below, are the only system calls that a cancel may make. A runner that looks again
 * and again instead fires later (Documentation/Choices.md).
 *
 * Threads that add and cancel without pause are faster than the one that applies the changes, and nothing would fire
 * any more. So a thread that leaves the EVC_SCHEDULER_BACKLOG-th or a later change waits for the lock, and applies
 * them unless another thread has done so.
 *
 * Cancelled timers are always left in a list and are removed from the heap together once there are
 * EVC_SCHEDULER_BATCH: the lines of the heap that they need are then fetched at the same time. One that is still in
 * the heap is skipped when it is due; its context went back to the canceller before.
 *
 * Closing follows the same pattern: `closed` is set (seq_cst), then the runner takes what is there (R4); an adder
 * publishes its timer (A1), then looks at `closed` (seq_cst), and takes the timer back.
 */
#ifndef EVC_SCHEDULER_PRIVATE_H
#define EVC_SCHEDULER_PRIVATE_H

#include "platform/event_count.h"
#include "scheduler/timer_heap.h"

#include <pthread.h>

/* The largest number of changes that may wait to be applied: about 0.2 ms of work. */
#define EVC_SCHEDULER_BACKLOG 1024u
/* The number of cancelled timers that are removed from the heap together. */
#define EVC_SCHEDULER_BATCH 16u

struct evc_scheduler {
	/* Constant. */
	struct evc_scheduler_clock clock;
	/* The runner sleeps on it until a deadline. */
	struct evc_parker *parker;
	bool driven;
	void (*wake)(void *context);
	void *wake_context;
	char name[16];

	struct evc_timer_store store;

	/* Used by callers and the runner. */
	_Alignas(EVC_CACHE_LINE) pthread_mutex_t heap_mutex;
	/* Stacks: the last one that was added or cancelled is the first. */
	_Atomic(struct evc_timer *) added;
	_Atomic(struct evc_timer *) cancelled;
	/* How many timers are in the two lists, or about to be. */
	_Atomic uint32_t backlog;
	_Atomic uint64_t count_added;
	_Atomic uint64_t count_cancelled;
	/* Under the lock. */
	struct evc_timer_heap heap;

	/* Written by the runner, read by every add. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t sleeps_until;
	_Atomic bool closed;
	/* How many threads have asked to be the runner since there was none. The first of them is the runner. */
	_Atomic uint64_t runners;
	/* Written by the runner. */
	_Atomic uint64_t count_fired;
	_Atomic uint64_t count_ended;
	_Atomic uint64_t count_dropped;

	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t references;
	/* Advances when the thread has ended, for evc_scheduler_join; 0 before that. */
	struct evc_event_count ended;
};

/* Waits for the lock of the heap: the runner, evc_scheduler_next, and a thread that leaves one change too many. */
void evc_scheduler_lock(struct evc_scheduler *scheduler);
/* Applies what others left in `added` and `cancelled`. Under the lock. */
void evc_scheduler_apply(struct evc_scheduler *scheduler);
/* Waits for the lock, and applies what others left if EVC_SCHEDULER_BACKLOG or more changes wait. */
void evc_scheduler_apply_backlog(struct evc_scheduler *scheduler);

static inline bool evc_scheduler_is_closed(struct evc_scheduler *scheduler)
{
	/* Acquire, pairs with the close: it comes before the R4 that follows, on which an adder relies. */
	return atomic_load_explicit(&scheduler->closed, memory_order_acquire);
}

/* Starts the thread of a scheduler that is not driven; it takes a reference. */
enum evc_status evc_scheduler_start(struct evc_scheduler *scheduler);
/* True on the thread of a scheduler. */
bool evc_scheduler_is_thread(void);
/* Drops all timers of a closed scheduler. The runner. */
void evc_scheduler_drop_all(struct evc_scheduler *scheduler);

#endif
