/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file scheduler.h
 * A scheduler calls functions at given times, in the order of their deadlines, and never early.
 *
 *     evc_scheduler_add ──► heap of deadlines ──► fire(context), on the scheduler's thread
 *
 * Either it has a thread of its own, which sleeps until the earliest deadline, or it is driven: the caller
 * then calls evc_scheduler_run_due. It knows nothing of events: `fire` dispatches one, or does anything else.
 * `fire` must not wait, since the timers behind it would wait too.
 *
 * Order: earlier deadlines first; timers with equal deadlines in the order in which they were added. No
 * `fire` begins before the scheduler's clock has reached its deadline. A driven scheduler goes by the `now` of
 * evc_scheduler_run_due alone: a loop passes the time of the scheduler's clock, since a later one fires timers early.
 *
 * Memory: 80 bytes for each timer, in blocks of doubling size that are freed with the scheduler. Cancelled timers keep
 * their slots until sixteen can be removed together (a few more if several threads use the scheduler); their contexts
 * belong to the caller at once. Nothing is allocated while no more slots are in use, of pending timers and of such
 * cancelled ones, than ever before.
 */
#ifndef EVENTCORE_SCHEDULER_H
#define EVENTCORE_SCHEDULER_H

#include "base.h"
#include "parker.h"

EVC_BEGIN_DECLS

struct evc_scheduler;

/** The largest number of timers that may be pending in one scheduler. */
#define EVC_TIMER_MAX ((UINT32_C(1) << 29) - 4)

/** What a timer does. Usually static and shared by all timers of a kind; must live as long as they do. */
struct evc_timer_ops {
	/**
	 * Called when the deadline has come: on the scheduler's thread (or inside evc_scheduler_run_due), one
	 * timer at a time, with no lock held. It may add, cancel and close.
	 *
	 * @param deadline the deadline that the timer was set to
	 * @return a later deadline, for which the timer is set again under the same id; if that time has
	 *         already passed, it fires again at once. Anything not later than `deadline`, such as 0, ends
	 *         the timer; the scheduler then no longer uses the context.
	 */
	uint64_t (*fire)(void *context, uint64_t deadline);
	/** Ends the context of a timer that will not fire, because the scheduler closed. May be NULL. */
	void (*drop)(void *context);
	/**
	 * What evc_scheduler_add does if the deadline has already passed. False: it returns EVC_TIMED_OUT.
	 * True: it adds the timer, which fires at once, on the scheduler's thread.
	 */
	bool takes_late;
};

/** Time and sleep, as a table that a test can replace. */
struct evc_scheduler_clock {
	/** Passed to both functions. */
	void *context;
	/** Returns the time in nanoseconds; must never go back. Any thread. */
	uint64_t (*now)(void *context);
	/**
	 * Sleeps until `now` reaches `deadline` (EVC_FOREVER: no limit) or the parker is woken, by means of
	 * `evc_parker_wait(parker, ticket, ...)`. May return early without a reason. The scheduler's thread:
	 * a driven scheduler never calls it, and takes NULL.
	 */
	void (*sleep)(void *context, struct evc_parker *parker, uint32_t ticket, uint64_t deadline);
};

/** Options of a scheduler. Zero is a good default for all but `size`. */
struct evc_scheduler_options {
	/** sizeof of this structure, which tells the library which members the caller knows. */
	size_t size;
	/** NULL: evc_clock_now and the system's sleep. Copied; its context must outlive the scheduler. */
	const struct evc_scheduler_clock *clock;
	/** The parker's system calls; NULL: the best that the system offers. Must outlive the scheduler. */
	const struct evc_parker_ops *parker;
	/** The thread's name, cut to 15 bytes; NULL: "evc-scheduler". */
	const char *name;
	/** True: the scheduler has no thread, and the caller calls evc_scheduler_run_due. */
	bool driven;
	/**
	 * For a driven scheduler; may be NULL. Called when a timer was added that is due before the time that
	 * the last evc_scheduler_run_due returned in `*next`. Called on the thread of evc_scheduler_add; may
	 * be called more often than needed; must not call the scheduler.
	 */
	void (*wake)(void *context);
	/** Passed to `wake`. */
	void *wake_context;
};

/** A reading of a scheduler's counters; exact while nothing changes. */
struct evc_scheduler_statistics {
	/** Timers that wait for their deadline, and the one that fires at this moment. */
	uint64_t pending;
	/** The number of calls of `fire`. */
	uint64_t fired;
	/** Timers that were cancelled in time (EVC_OK). */
	uint64_t cancelled;
	/** Timers that ended because the scheduler closed. */
	uint64_t dropped;
};

/**
 * Makes a scheduler and, unless it is driven, starts its thread, which takes the signals that the calling thread takes.
 * With glibc it has the real-time scheduling, if any, of the process's first thread, and may use that one's processors
 * besides those of the calling thread; elsewhere it has what the calling thread has.
 *
 * @param options NULL: the defaults
 * @param out receives the scheduler
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller holds one reference; end with
 * `evc_scheduler_close`, then `evc_scheduler_release`. Errors: EVC_OUT_OF_MEMORY; EVC_INVALID_ARGUMENT, also
 * for a clock that lacks a function; no thread runs then.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_scheduler_create(const struct evc_scheduler_options *options, struct evc_scheduler **out);

/**
 * Adds a timer: `ops->fire(context)` is called when the time has come.
 *
 * @param deadline on the scheduler's clock; EVC_FOREVER never comes
 * @param ops what the timer does; must outlive it
 * @param context passed to `fire` and `drop`
 * @param id receives the timer's name for `evc_scheduler_cancel`, valid inside `fire` and after this call has
 *         returned. No other timer gets the same name (until its slot has been used 2^32 times). NULL if the
 *         timer will not be cancelled.
 * @return EVC_OK: the context is the scheduler's. EVC_TIMED_OUT: the deadline has passed and nothing was
 *         added (unless `takes_late`): do the timer's work now, on this thread. EVC_CLOSED,
 *         EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 *
 * Threads: any, also inside `fire`. Order: of two timers with equal deadlines, the one whose add returned
 * before the other's began fires first.
 *
 * Progress: O(log pending). It does not wait for other threads: if the heap is in use, it leaves the timer in
 * a list, and the thread that next has the heap also applies the changes in that list. Only if 1,024 changes
 * are already in the list does it wait for the heap and apply them. No allocation once warm; a system call
 * only to wake the scheduler's thread, or while it waits as above.
 *
 * Ownership: with EVC_OK the context is the scheduler's until the last call of `fire` or `drop`. Errors: as
 * returned.
 */
EVC_API EVC_MUST_USE enum evc_status evc_scheduler_add(struct evc_scheduler *scheduler,
						       uint64_t deadline,
						       const struct evc_timer_ops *ops,
						       void *context, uint64_t *id);

/**
 * Cancels a timer.
 *
 * @return EVC_OK: in time: `fire` will not be called (again), and the context is the caller's again.
 *         EVC_TIMED_OUT: `fire` is running, for the last time; if it asks to be set again, `drop` is called
 *         instead. EVC_NOT_FOUND: the timer has fired, or was cancelled or dropped before.
 *
 * Threads: any, also inside `fire`, also for the timer that fires. Progress: as evc_scheduler_add. Every
 * sixteenth cancel removes the cancelled timers from the heap; it makes a system call if the scheduler's
 * thread waits for the heap meanwhile. Errors: as returned.
 */
EVC_API EVC_MUST_USE enum evc_status evc_scheduler_cancel(struct evc_scheduler *scheduler,
							  uint64_t id);

/**
 * Fires what is due at `now`, in order, on the calling thread. What time makes due meanwhile is left for the
 * next call. A timer that a `fire` adds for a time up to `now` is due, and fires in this call: while each of them adds
 * another one, the call does not return. For a driven scheduler; another one does nothing here.
 *
 * @param now the time up to which timers fire: in a loop that of the scheduler's clock; not before that of the last call
 * @param next receives the earliest deadline that is left, EVC_FOREVER if there is none, 0 if other threads called
 *             this again and again meanwhile: then call it again at once; may be NULL
 * @return how many timers fired; 0, with `*next` EVC_FOREVER, if another thread or a `fire` of this one is
 *         already inside, whose `*next` then tells of all timers that this caller knew of
 *
 * Threads: any. Progress: that of the `fire` functions.
 */
EVC_API size_t evc_scheduler_run_due(struct evc_scheduler *scheduler, uint64_t now, uint64_t *next);

/**
 * Returns the earliest deadline that waits, EVC_FOREVER if there is none. A timer that fires at this moment is not
 * among those that wait.
 *
 * Threads: any, also inside `fire`. Progress: blocking (the heap's mutex), and applies the changes that others left
 * in the list.
 */
EVC_API uint64_t evc_scheduler_next(struct evc_scheduler *scheduler);

/**
 * Closes the scheduler: it accepts no more timers, drops and counts those that are pending, and its thread
 * ends. A running `fire` is finished; one that its thread was about to call may still be called. A driven
 * scheduler drops its timers before this call returns, unless evc_scheduler_run_due is running, which then
 * does it.
 *
 * Threads: any, also inside `fire`; may be called more than once. Progress: lock-free, one system call; of a
 * driven scheduler that of the `drop` functions.
 */
EVC_API void evc_scheduler_close(struct evc_scheduler *scheduler);

/**
 * Waits until the thread of a closed scheduler has dropped what was pending and no `fire` or `drop` runs or
 * follows. Does not close it. Returns at once for a driven scheduler. Not in a child of fork, which has no such thread:
 * there it would wait for ever (eventcore.h).
 *
 * Threads: any but the scheduler's own. Progress: blocking. Errors: EVC_NOT_PERMITTED on its own thread;
 * EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_scheduler_join(struct evc_scheduler *scheduler);

/** Adds a reference. Threads: any. Progress: wait-free. */
EVC_API void evc_scheduler_retain(struct evc_scheduler *scheduler);

/**
 * Gives up a reference. The last one frees the scheduler. Its thread holds one until it ends, so that a
 * scheduler that was not closed lives on. A driven one that was not closed drops its pending timers here.
 *
 * Threads: any. Progress: wait-free, except for the last reference. Ownership: ends the caller's.
 */
EVC_API void evc_scheduler_release(struct evc_scheduler *scheduler);

/** Reads the counters. Threads: any. Progress: wait-free. */
EVC_API void evc_scheduler_read_statistics(const struct evc_scheduler *scheduler,
					   struct evc_scheduler_statistics *out);

EVC_END_DECLS
#endif
