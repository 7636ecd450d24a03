/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file thread.h
 * Threads that consume a mailbox.
 */
#ifndef EVENTCORE_THREAD_H
#define EVENTCORE_THREAD_H

#include "mailbox.h"

EVC_BEGIN_DECLS

struct evc_thread;

/**
 * Options of a thread. Zero is a good default for all but `size`. On Linux a thread begins with the scheduling and the
 * processors of the thread that starts it, as far as these options do not say something else.
 */
struct evc_thread_options {
	/** sizeof of this structure, which tells the library which members the caller knows. */
	size_t size;
	/** The name that debuggers show, cut to the system's limit (15 bytes on Linux). NULL: none. */
	const char *name;
	/** Real-time priority (SCHED_FIFO) from 1 up; 0 keeps what it begins with. Needs the privilege for it. */
	int realtime_priority;
	/** The processor that the thread stays on, counted from 1; 0 keeps what it begins with. Linux with glibc alone. */
	unsigned processor;
	/** Stack size in bytes; 0 keeps the default. */
	size_t stack_size;
};

/**
 * Starts a thread that runs `evc_mailbox_run(mailbox)`. It is the mailbox's consumer from now on, until it has ended.
 *
 * @param options NULL: the defaults
 * @param out receives the thread
 *
 * Threads: any. Progress: blocking until the thread exists. Ownership: the thread holds a reference of the
 * mailbox; the caller ends `*out` with `evc_thread_join`. Errors: EVC_OUT_OF_MEMORY; EVC_NOT_PERMITTED if the
 * priority is refused, or the mailbox has a consumer; EVC_UNSUPPORTED if the system knows no affinity;
 * EVC_INVALID_ARGUMENT, also for a mailbox that `evc_mailbox_run` refuses so. After an error no thread runs.
 */
EVC_API EVC_MUST_USE enum evc_status evc_thread_start(const struct evc_thread_options *options,
						      struct evc_mailbox *mailbox,
						      struct evc_thread **out);

/**
 * Closes the thread's mailbox, which wakes the thread at once. The thread ends after the handler that is
 * running.
 *
 * Threads: any, also the thread itself. Progress: as evc_mailbox_close.
 */
EVC_API void evc_thread_cancel(struct evc_thread *thread);

/**
 * Waits until the thread has ended, and frees it. Does not cancel it.
 *
 * Threads: any but the thread itself. Progress: blocking. Ownership: ends here. Errors: EVC_NOT_PERMITTED on
 * the thread itself; EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_thread_join(struct evc_thread *thread);

/**
 * Leaves the thread to itself: it frees itself when it ends, and nobody joins it. Does not cancel it. For a handler that
 * ends its own thread: cancel it, then detach it. `evc_shutdown` is refused until it has ended.
 *
 * Threads: any, also the thread itself. Progress: wait-free, unless the thread is about to return: then as the join.
 * Ownership: ends here. Errors: EVC_INVALID_ARGUMENT, also for the thread of a worker, which is destroyed after the join.
 */
EVC_API EVC_MUST_USE enum evc_status evc_thread_detach(struct evc_thread *thread);

EVC_END_DECLS
#endif
