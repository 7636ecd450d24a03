/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file thread.h
 * Threads that consume a mailbox: started, woken at once by cancel, joined.
 */
#ifndef EVENTCORE_THREAD_H
#define EVENTCORE_THREAD_H

#include "mailbox.h"

EVC_BEGIN_DECLS

struct evc_thread;

/** How a thread is made. All zero is a good default. */
struct evc_thread_options {
	/** Its name in debuggers and `top`; cut to what the system takes (15 bytes on Linux). */
	const char *name;
	/** Real-time priority (SCHED_FIFO), 1 and up; 0 leaves the default. Needs the right to it. */
	int realtime_priority;
	/** The processor that it stays on, counted from 1; 0 leaves the choice to the system. */
	unsigned processor;
	/** Stack size in bytes; 0 leaves the default. */
	size_t stack_size;
};

/**
 * Starts a thread that runs `evc_mailbox_run(mailbox)`.
 *
 * Threads: any. Progress: blocking until the thread is set up. Ownership: the thread holds a reference
 * of the mailbox; the caller ends `*out` with `evc_thread_join`. Errors: EVC_OUT_OF_MEMORY;
 * EVC_NOT_PERMITTED if the priority is refused; EVC_UNSUPPORTED if the system knows no affinity;
 * EVC_INVALID_ARGUMENT. With an error no thread runs.
 */
EVC_API EVC_MUST_USE enum evc_status evc_thread_start(const struct evc_thread_options *options,
						      struct evc_mailbox *mailbox,
						      struct evc_thread **out);

/**
 * Closes the thread's mailbox, which wakes the thread at once; it ends after the handler that runs.
 *
 * Threads: any, also the thread itself. Progress: wait-free. Errors: none.
 */
EVC_API void evc_thread_cancel(struct evc_thread *thread);

/**
 * Waits for the end of the thread and frees it. Does not cancel.
 *
 * Threads: any but the thread itself. Progress: blocking. Ownership: ends here. Errors:
 * EVC_NOT_PERMITTED on the thread itself.
 */
EVC_API EVC_MUST_USE enum evc_status evc_thread_join(struct evc_thread *thread);

EVC_END_DECLS
#endif
