/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file scheduler.h
 * A scheduler calls functions at given times, in the order of their deadlines and never early.
 *
 *     evc_scheduler_add ──► heap of deadlines ──► fire(context), on the scheduler's thread
 *
 * It has a thread of its own, which sleeps until the earliest deadline; or it is driven: then the caller
 * asks it what is due. It knows nothing of events: `fire` dispatches one, or does what else is wanted,
 * and must not wait, since the timers behind it wait with it.
 *
 * Order: earlier deadlines first; equal ones in the order in which they were added. Never early: no
 * `fire` begins before the scheduler's clock has reached its deadline.
 *
 * Memory: 80 bytes a timer, from blocks that double and are freed with the scheduler; nothing is
 * allocated while no more timers are pending than ever were. A few that were cancelled (fewer than twenty,
 * if one thread at a time uses it) keep their place until more are; their contexts are the caller's at once.
 */
#ifndef EVENTCORE_SCHEDULER_H
#define EVENTCORE_SCHEDULER_H

#include "base.h"
#include "parker.h"

EVC_BEGIN_DECLS

struct evc_scheduler;

/** How many timers may be pending in one scheduler. */
#define EVC_TIMER_MAX ((UINT32_C(1) << 29) - 4)

/** What a timer does; usually static, shared by all timers of a kind, and alive as long as they are. */
struct evc_timer_ops {
	/**
	 * The deadline has come. Called on the scheduler's thread (or inside evc_scheduler_run_due), one
	 * timer at a time, with no lock held; it may add, cancel and close.
	 *
	 * @param deadline the one the timer was set to
	 * @return a later deadline, for which the timer is set again under the same id (in the past is
	 *         allowed: it is then due at once); anything not later than `deadline`, such as 0, ends
	 *         the timer, and the context is no longer the scheduler's
	 */
	uint64_t (*fire)(void *context, uint64_t deadline);
	/** Ends a context whose timer will not fire: the scheduler closed. NULL if there is nothing to end. */
	void (*drop)(void *context);
	/**
	 * What evc_scheduler_add does with a deadline that is not in the future. False: refuse it with
	 * EVC_TIMED_OUT. True: take it; it is due at once, on the scheduler's thread.
	 */
	bool takes_late;
};

/** Time and sleep, as a table so that a test can put its own in their place. */
struct evc_scheduler_clock {
	/** Handed to both functions. */
	void *context;
	/** The time in nanoseconds; never goes back. Any thread. */
	uint64_t (*now)(void *context);
	/**
	 * Sleeps until `now` reaches `deadline` (EVC_FOREVER: no limit) or the parker is woken, by
	 * `evc_parker_wait(parker, ticket, ...)`. May return early for no reason. The scheduler's thread.
	 */
	void (*sleep)(void *context, struct evc_parker *parker, uint32_t ticket, uint64_t deadline);
};

/** How a scheduler is made. All zero is a good default. */
struct evc_scheduler_options {
	/** NULL: evc_clock_now and the system's sleep. Copied; its context must outlive the scheduler. */
	const struct evc_scheduler_clock *clock;
	/** The system calls of the thread's parker; NULL takes the best. Must outlive the scheduler. */
	const struct evc_parker_ops *parker;
	/** The thread's name, at most 15 bytes; NULL: "evc-scheduler". */
	const char *name;
	/** No thread: the caller calls evc_scheduler_run_due. */
	bool driven;
	/**
	 * Driven only, may be NULL: a timer was added that is due before the time that the last
	 * evc_scheduler_run_due told. Called by evc_scheduler_add on its thread; may be called more often
	 * than needed; must not call the scheduler.
	 */
	void (*wake)(void *context);
	/** Handed to `wake`. */
	void *wake_context;
};

/** A reading of a scheduler; exact while nothing moves. */
struct evc_scheduler_statistics {
	/** Timers that wait for their deadline. */
	uint64_t pending;
	/** Calls of `fire` so far. */
	uint64_t fired;
	/** Timers cancelled in time (EVC_OK). */
	uint64_t cancelled;
	/** Timers that the close ended. */
	uint64_t dropped;
};

/**
 * Makes a scheduler and, unless it is driven, starts its thread.
 *
 * @param options NULL is all zero
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller holds one reference; end with
 * `evc_scheduler_close`, then `evc_scheduler_release`. Errors: EVC_OUT_OF_MEMORY,
 * EVC_INVALID_ARGUMENT; then no thread runs.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_scheduler_create(const struct evc_scheduler_options *options, struct evc_scheduler **out);

/**
 * Has `ops->fire(context)` called when the time has come.
 *
 * @param deadline on the scheduler's clock; EVC_FOREVER never comes
 * @param id names the timer for `evc_scheduler_cancel`, inside `fire` or once this call has returned; no
 *        other timer gets the same (until one place was used 2^32 times). NULL if nobody will cancel.
 * @return EVC_OK: the context is the scheduler's. EVC_TIMED_OUT: the deadline is not in the future and
 *         nothing was added: do now, on this thread, what the timer would have done (unless
 *         `takes_late`). EVC_CLOSED, EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 *
 * Threads: any, also inside `fire`. Order: of two calls with equal deadlines, of which one returned
 * before the other began, the first fires first. Progress: lock-free, O(log pending), plus the work
 * that others left who found the heap in use (at most about a thousand changes: who leaves more waits for
 * them, and helps); no system call unless the thread sleeps past this deadline or waits for the heap, or that wait
 * is long; no allocation once warm. Ownership: of the context, the scheduler's with EVC_OK until `fire` or `drop` has had it for
 * the last time. Errors: as returned.
 */
EVC_API EVC_MUST_USE enum evc_status evc_scheduler_add(struct evc_scheduler *scheduler,
						       uint64_t deadline,
						       const struct evc_timer_ops *ops,
						       void *context, uint64_t *id);

/**
 * Ends a timer.
 *
 * @return EVC_OK: in time: `fire` will never be called (again), and the context is the caller's again.
 *         EVC_TIMED_OUT: `fire` is running: it is the last call; if it asks for another, `drop` is called
 *         instead. EVC_NOT_FOUND: it has fired, or was cancelled or dropped before.
 *
 * Threads: any, also inside `fire`, also of this timer. Progress: as evc_scheduler_add; no system call but to wake the
 * scheduler's thread where it waits for this call to let go of the heap, which one in sixteen works on, or where a
 * thousand changes wait to be dealt and that is long. Errors: as returned.
 */
EVC_API EVC_MUST_USE enum evc_status evc_scheduler_cancel(struct evc_scheduler *scheduler,
							  uint64_t id);

/**
 * Fires what is due at `now`, in order, on the calling thread. What becomes due meanwhile is left for the
 * next call.
 *
 * @param now the time that decides; not before that of the last call
 * @param next set to the earliest deadline that is left, EVC_FOREVER if there is none; may be NULL
 * @return how many were fired; 0 if another thread, or a `fire` of this one, is inside already (then
 *         `*next` is EVC_FOREVER)
 *
 * Threads: any, for a driven scheduler; another one has its own thread for it, and fires nothing here.
 * Progress: that of the `fire` functions. Errors: none.
 */
EVC_API size_t evc_scheduler_run_due(struct evc_scheduler *scheduler, uint64_t now, uint64_t *next);

/**
 * Ends the scheduler: it takes no more timers, those that are pending are dropped and counted, its thread
 * ends. A `fire` that runs is finished; one that its thread was about to call may still be called.
 * Driven: what is pending is dropped before the return, unless evc_scheduler_run_due is running, which
 * then does it.
 *
 * Threads: any, also inside `fire`; more than once is allowed. Progress: lock-free, one system call; driven:
 * that of the `drop` functions. Errors: none.
 */
EVC_API void evc_scheduler_close(struct evc_scheduler *scheduler);

/**
 * Waits until a closed scheduler's thread has dropped what was pending and no `fire` or `drop` runs or
 * follows. Does not close. Returns at once for a driven one.
 *
 * Threads: any but the scheduler's own. Progress: blocking. Errors: EVC_NOT_PERMITTED on its own thread.
 */
EVC_API EVC_MUST_USE enum evc_status evc_scheduler_join(struct evc_scheduler *scheduler);

/** Adds a reference. Threads: any. Progress: wait-free. Errors: none. */
EVC_API void evc_scheduler_retain(struct evc_scheduler *scheduler);

/**
 * Drops a reference. The last one frees the scheduler; its thread holds one until it ends, so that a
 * scheduler which was not closed lives on. A driven one that was not closed drops what is pending here.
 *
 * Threads: any. Progress: wait-free but for the last. Ownership: the caller's reference ends. Errors: none.
 */
EVC_API void evc_scheduler_release(struct evc_scheduler *scheduler);

/** Reads the counts. Threads: any. Progress: wait-free. Errors: none. */
EVC_API void evc_scheduler_read_statistics(const struct evc_scheduler *scheduler,
					   struct evc_scheduler_statistics *out);

EVC_END_DECLS
#endif
