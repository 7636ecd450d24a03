/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file base.h
 * What every other header needs: status values, lanes, and the few compiler conditionals.
 */
#ifndef EVENTCORE_BASE_H
#define EVENTCORE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define EVC_BEGIN_DECLS extern "C" {
#define EVC_END_DECLS }
#else
#define EVC_BEGIN_DECLS
#define EVC_END_DECLS
#endif

/** A symbol of the public interface. */
#define EVC_API __attribute__((visibility("default")))
/** The compiler warns a caller that ignores the result. */
#define EVC_MUST_USE __attribute__((warn_unused_result))

/**
 * The result of a call. After anything but EVC_OK the state is unchanged, and the caller still owns what it
 * passed, unless the function says otherwise.
 */
enum evc_status {
	EVC_OK = 0,
	/** Nothing is waiting, or there is nothing to walk. */
	EVC_EMPTY,
	/** The mailbox takes no more envelopes, the scheduler no more timers. */
	EVC_CLOSED,
	/** The time limit has passed, or another thread is doing what was asked for. */
	EVC_TIMED_OUT,
	/** No memory was available; nothing that was accepted before is lost. */
	EVC_OUT_OF_MEMORY,
	/** An argument breaks a rule that the function states: a key of 0, a null sink, a lane of 10. */
	EVC_INVALID_ARGUMENT,
	/** The object that was named does not exist. */
	EVC_NOT_FOUND,
	/**
	 * The system refuses, or this caller may not do it: for example a thread that joins itself, or a second consumer
	 * of a mailbox.
	 */
	EVC_NOT_PERMITTED,
	/** The system does not offer this (an affinity, a priority), or this version of the library does not. */
	EVC_UNSUPPORTED,
	/** The call may not allocate, and no memory is at hand (realtime.h). */
	EVC_WOULD_ALLOCATE,
	/** A bounded mailbox holds as many events as it may, and its overflow policy refuses more. */
	EVC_FULL
};

/**
 * The ten lanes of a mailbox in the order in which a consumer empties them (guarantee D1).
 * Lanes 0 to 4 are stacks (last in, first out), lanes 5 to 9 are queues (first in, first out).
 */
enum evc_lane {
	EVC_LANE_STACK_HIGHEST = 0,
	EVC_LANE_STACK_HIGH,
	EVC_LANE_STACK_NORMAL,
	EVC_LANE_STACK_LOW,
	EVC_LANE_STACK_LOWEST,
	EVC_LANE_QUEUE_HIGHEST,
	EVC_LANE_QUEUE_HIGH,
	EVC_LANE_QUEUE_NORMAL,
	EVC_LANE_QUEUE_LOW,
	EVC_LANE_QUEUE_LOWEST
};

/** How many lanes a mailbox has. */
#define EVC_LANE_COUNT 10u
/** The first lane that is a queue; those before it are stacks. */
#define EVC_LANE_FIRST_QUEUE 5u
/** Data that belongs on separate cache lines is this far apart, in bytes. */
#define EVC_CACHE_LINE 64
/** "No time limit", where a function takes nanoseconds. */
#define EVC_FOREVER UINT64_MAX

EVC_BEGIN_DECLS

/**
 * Describes a status in words, for a log or an error message.
 *
 * Threads: any. Progress: wait-free. Ownership: the text is static. Errors: for an unknown value the text
 * says so.
 */
EVC_API const char *evc_status_text(enum evc_status status);

/**
 * Returns the core's time in nanoseconds, on the scale of DispatchTime's uptime: CLOCK_MONOTONIC, or
 * CLOCK_UPTIME_RAW on Apple's systems. Threads: any. Progress: wait-free.
 */
EVC_API uint64_t evc_clock_now(void);

/** A clock of the caller's, in place of `evc_clock_now`. */
struct evc_clock {
	/** Passed to `now`. */
	void *context;
	/**
	 * Returns the time in nanoseconds, which is not 0 and never goes back. Any thread, also several at once, inside
	 * dispatches: it neither waits nor dispatches.
	 */
	uint64_t (*now)(void *context);
};

/**
 * Where a thread counts dispatches of which it need not tell the observer. One thread at a time writes it; the
 * observer may read it on any.
 */
struct evc_tally {
	/** How many events were dispatched. The core adds to it; a reader loads it atomically (relaxed). */
	uint64_t events;
	/** How many dispatches may follow before the observer is told of the next one. The core counts down. */
	uint64_t left;
};

/** What an observer says of a dispatch. All zero: the next one is told again. */
struct evc_note {
	/** The time that the events bear; 0 for none, if no subscription needs it. */
	uint64_t time;
	/**
	 * The next dispatches of the thread to this key, for the same origin (`evc_thread_set_origin`), are counted here,
	 * as many as are left. It stays valid until the thread ends or calls `evc_thread_forget_tallies`. NULL: each is told.
	 */
	struct evc_tally *tally;
	/** Whether the events are marked, for their consumers: `evc_envelope_is_marked`. */
	bool marks;
};

/** Who is told of the dispatches through a router. */
struct evc_observer {
	/** Passed to `note`. */
	void *context;
	/**
	 * Called by the thread that dispatches, before the events are posted, if there is a receiver. It neither waits nor
	 * dispatches.
	 *
	 * @param key    the key of the events
	 * @param events how many are dispatched at once
	 * @param timed  whether a subscription needs their time, which is that of the router's clock
	 * @param note   all zero; receives what the observer says
	 */
	void (*note)(void *context, uint64_t key, uint32_t events, bool timed, struct evc_note *note);
};

/**
 * Says on whose behalf the calling thread dispatches from now on: observers count separately for each origin. 0, with
 * which a thread begins, is nobody.
 *
 * @return the origin before, to be set again
 *
 * Threads: any, for itself. Progress: wait-free.
 */
EVC_API uint64_t evc_thread_set_origin(uint64_t origin);

/**
 * Has the calling thread tell observers of its next dispatch to each key again. Whoever frees a tally calls it before,
 * on the thread that counts there.
 *
 * Threads: any, for itself. Progress: wait-free.
 */
EVC_API void evc_thread_forget_tallies(void);

/**
 * Executes a full memory barrier on every running thread of the process (membarrier on Linux), so that the
 * frequent side of a store-then-load race needs no barrier of its own.
 *
 * @return false if the system has no such call. Then no thread was ordered, and every later call returns
 *         false too.
 *
 * Threads: any. Progress: blocking for a few microseconds. Errors: if the system refuses the call after it
 * has worked once, the program ends, since other threads rely on it.
 */
EVC_API EVC_MUST_USE bool evc_barrier_everywhere(void);

EVC_END_DECLS
#endif
