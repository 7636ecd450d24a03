/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file parker.h
 * A parker lets one thread sleep until another one has news, without losing a wake-up in between: an
 * event count (D. Vyukov's "eventcount", and Folly's EventCount, are the models).
 *
 *     sleeper                                waker
 *     ticket = evc_parker_prepare(p)         publish the news
 *     look for news; if any: go on           evc_parker_wake(p)
 *     evc_parker_wait(p, ticket, limit)
 *
 * The waker makes a system call only if a thread really sleeps.
 */
#ifndef EVENTCORE_PARKER_H
#define EVENTCORE_PARKER_H

#include "base.h"

EVC_BEGIN_DECLS

struct evc_parker;

/** The system calls of a parker, as a table so that a test can put its own in their place. */
struct evc_parker_ops {
	/** Makes the state that the other functions get; NULL result = out of memory. May be NULL. */
	void *(*open)(void);
	/** Frees that state. May be NULL. */
	void (*close)(void *state);
	/**
	 * Sleeps while `*word == expected`, at most `timeout` nanoseconds (EVC_FOREVER: no limit). May
	 * return early for no reason.
	 */
	void (*wait)(void *state, const uint32_t *word, uint32_t expected, uint64_t timeout);
	/** Wakes the thread that sleeps on `word`. Called after `*word` has changed. */
	void (*wake)(void *state, const uint32_t *word);
};

/**
 * The futex calls of Linux, or NULL on another system. Threads: any. Progress: wait-free. Ownership: static.
 * Errors: none.
 */
EVC_API const struct evc_parker_ops *evc_parker_futex(void);
/**
 * Mutex and condition variable, on every system. Threads: any. Progress: wait-free. Ownership: static. Errors:
 * none.
 */
EVC_API const struct evc_parker_ops *evc_parker_posix(void);

/**
 * Makes a parker.
 *
 * @param ops the system calls; NULL takes the best that the system has
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller frees it with
 * `evc_parker_destroy`; `ops` must outlive it. Errors: EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_parker_create(const struct evc_parker_ops *ops,
						       struct evc_parker **out);

/**
 * Frees a parker. Threads: one, when nobody waits and nobody will wake. Progress: as the allocator. Ownership:
 * ends the caller's. Errors: none.
 */
EVC_API void evc_parker_destroy(struct evc_parker *parker);

/**
 * Announces that the caller may sleep; look for news after this call, then wait with the ticket.
 *
 * Threads: the one sleeper. Progress: wait-free. Errors: none.
 */
EVC_API uint32_t evc_parker_prepare(struct evc_parker *parker);

/**
 * Sleeps until a wake that came after `evc_parker_prepare`.
 *
 * @param timeout nanoseconds, or EVC_FOREVER
 * @return EVC_OK if woken, EVC_TIMED_OUT otherwise
 *
 * Threads: the one sleeper. Progress: blocking. Ownership: none. Errors: EVC_TIMED_OUT.
 */
EVC_API enum evc_status evc_parker_wait(struct evc_parker *parker, uint32_t ticket,
					uint64_t timeout);

/**
 * Wakes the sleeper, or makes its next wait return at once if it has prepared and does not sleep yet.
 *
 * @return true if it took a system call
 *
 * Threads: any. Progress: lock-free; no system call unless a thread sleeps. Errors: none.
 */
EVC_API bool evc_parker_wake(struct evc_parker *parker);

EVC_END_DECLS
#endif
