/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file parker.h
 * A parker lets one thread sleep until another thread has news for it, without losing a wake-up in between. It
 * is an event count (models: D. Vyukov's "eventcount", Folly's EventCount).
 *
 *     sleeper                                waker
 *     ticket = evc_parker_prepare(p)         publish the news
 *     look for news; if any: go on           evc_parker_wake(p)
 *     evc_parker_wait(p, ticket, limit)
 *
 * A wake makes a system call only if the thread really sleeps.
 */
#ifndef EVENTCORE_PARKER_H
#define EVENTCORE_PARKER_H

#include "base.h"

EVC_BEGIN_DECLS

struct evc_parker;

/** The system calls of a parker, as a table that a test can replace. */
struct evc_parker_ops {
	/** Makes the state for the other functions; NULL if memory is out. May be NULL. */
	void *(*open)(void);
	/** Frees that state. May be NULL. */
	void (*close)(void *state);
	/**
	 * Sleeps while `*word == expected`, for at most `timeout` nanoseconds (EVC_FOREVER: no limit). May
	 * return early without a reason.
	 */
	void (*wait)(void *state, const uint32_t *word, uint32_t expected, uint64_t timeout);
	/** Wakes the thread that sleeps on `word`. Called after `*word` has changed. */
	void (*wake)(void *state, const uint32_t *word);
};

/** Returns Linux's futex calls, or NULL elsewhere. Threads: any. Progress: wait-free. Ownership: static. */
EVC_API const struct evc_parker_ops *evc_parker_futex(void);
/**
 * Returns calls that use a mutex and a condition variable; available on every system. Threads: any. Progress:
 * wait-free. Ownership: static.
 */
EVC_API const struct evc_parker_ops *evc_parker_posix(void);

/**
 * Makes a parker.
 *
 * @param ops the system calls; NULL selects the best that the system offers
 * @param out receives the parker
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller frees it with `evc_parker_destroy`; `ops`
 * must outlive it. Errors: EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_parker_create(const struct evc_parker_ops *ops,
						       struct evc_parker **out);

/**
 * Frees a parker. Threads: one, when no thread waits and none will wake. Progress: as the allocator.
 * Ownership: ends the caller's.
 */
EVC_API void evc_parker_destroy(struct evc_parker *parker);

/**
 * Prepares a wait: look for news after this call, then wait with the ticket that it returned.
 *
 * Threads: the one sleeper. Progress: wait-free.
 */
EVC_API uint32_t evc_parker_prepare(struct evc_parker *parker);

/**
 * Finishes a wait: sleeps until a wake that follows the `evc_parker_prepare` of the ticket.
 *
 * @param ticket what `evc_parker_prepare` returned
 * @param timeout nanoseconds, or EVC_FOREVER
 * @return EVC_OK if woken, EVC_TIMED_OUT otherwise
 *
 * Threads: the one sleeper. Progress: blocking. Errors: EVC_TIMED_OUT.
 */
EVC_API enum evc_status evc_parker_wait(struct evc_parker *parker, uint32_t ticket,
					uint64_t timeout);

/**
 * Wakes the sleeper. If it has prepared a wait and does not sleep yet, that wait returns at once.
 *
 * @return true if it made a system call
 *
 * Threads: any. Progress: lock-free; no system call unless a thread sleeps.
 */
EVC_API bool evc_parker_wake(struct evc_parker *parker);

EVC_END_DECLS
#endif
