/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file shared_mailbox.h
 * A shared mailbox is ten lanes with any number of producers and any number of consumers, its workers.
 *
 *     producers ──► evc_shared_mailbox ──┬──► evc_worker ──► deliver(worker's context, ...)
 *                   (ten lanes)          ├──► evc_worker
 *                                        └──► ...
 *     producers ──► a worker's own evc_mailbox ──►┘
 *
 * A worker also has a mailbox of its own, for what is meant for it alone, and one wait point for both. What
 * interrupts, cancels or drains one worker is done to its own mailbox; the shared one goes on with the others.
 *
 * The guarantees: a take returns an envelope of the first lane that is not empty in either mailbox, counting
 * every post to either that returned before the take began and that no other worker has taken; of one and the
 * same lane the worker's own comes first (D1). A queue lane of the shared mailbox is one queue for all
 * producers and workers (D2), a stack lane one stack (D3); both are linearizable. Each accepted
 * envelope is taken by exactly one worker, or dropped and counted once (D4).
 */
#ifndef EVENTCORE_SHARED_MAILBOX_H
#define EVENTCORE_SHARED_MAILBOX_H

#include "mailbox.h"
#include "thread.h"

/** The most workers that a shared mailbox can have at one time. */
#define EVC_WORKERS_MAX 256u

EVC_BEGIN_DECLS

struct evc_shared_mailbox;
struct evc_worker;

/** What a subscription of a shared mailbox does with the envelopes that reach it. */
struct evc_shared_subscription_options {
	/** Handed to the functions below. */
	void *context;
	/**
	 * Handles one envelope, on the thread of the worker that took it; several workers call it at once.
	 *
	 * @param worker_context `context` of the options that the worker was made with
	 * @param owned          true if nobody else reads this payload, so that it may be moved out
	 * @return true if the payload was moved out; then `drop` is not called for it
	 */
	bool (*deliver)(void *worker_context, void *context, void *payload,
			struct evc_envelope *envelope, bool owned);
	/** Ends a payload that nobody moved out; NULL if payloads need no ending. Any thread. */
	void (*drop)(void *context, void *payload);
	/** Called once, when the shared mailbox frees the subscription; may be NULL. Any thread. */
	void (*finalize)(void *context);
};

/**
 * Makes a shared mailbox with one reference and no worker.
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller holds the reference and gives it up
 * with `evc_shared_mailbox_release`. Errors: EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_shared_mailbox_create(struct evc_shared_mailbox **out);

/** Adds a reference. Threads: any. Progress: wait-free. Errors: none. */
EVC_API void evc_shared_mailbox_retain(struct evc_shared_mailbox *mailbox);

/**
 * Drops a reference. The last one frees what still waits, the subscriptions and the mailbox. Each worker
 * holds one.
 *
 * Threads: any. Progress: wait-free but for the last. Ownership: ends the caller's. Errors: none.
 */
EVC_API void evc_shared_mailbox_release(struct evc_shared_mailbox *mailbox);

/**
 * The mailbox as a sink. Threads: any. Progress: wait-free. Ownership: part of the mailbox. Errors: none.
 */
EVC_API struct evc_sink *evc_shared_mailbox_sink(struct evc_shared_mailbox *mailbox);

/**
 * Makes a subscription of this mailbox, for all of its workers. Make one for each key and reuse it; it
 * lives as long as the mailbox.
 *
 * Threads: any. Progress: blocking (a mutex, and the allocator). Ownership: the mailbox owns it and
 * calls `finalize` when it ends. Errors: EVC_OUT_OF_MEMORY; EVC_INVALID_ARGUMENT without `deliver`.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_shared_mailbox_add_subscription(struct evc_shared_mailbox *mailbox,
				    const struct evc_shared_subscription_options *options,
				    struct evc_subscription **out);

/**
 * Makes a subscription of which one envelope waits at most, for all workers together: as
 * `evc_mailbox_add_latest_subscription`, and whichever worker comes to it first takes the newest. An event may
 * be taken while another worker is still handling the one before it.
 *
 * Its envelopes reach it through its sink, as a router's dispatch posts them.
 *
 * Threads: any. Progress: blocking (a mutex, and the allocator). Ownership: the caller holds a reference and
 * gives it up with `evc_latest_subscription_release`; it keeps the shared mailbox alive. `finalize` is
 * called when no reference, no route and no envelope is left. Errors: EVC_OUT_OF_MEMORY;
 * EVC_INVALID_ARGUMENT without `deliver`.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_shared_mailbox_add_latest_subscription(struct evc_shared_mailbox *mailbox,
					   const struct evc_shared_subscription_options *options,
					   struct evc_subscription **out);

/**
 * Posts a chain, whose last envelope links to none. Those of one lane become visible together, in the
 * order of the chain, with nobody else's between them; if there are several lanes, the most urgent first.
 *
 * Threads: any. Progress: lock-free once warm; one system call if a worker sleeps and none is looking.
 * Ownership: with EVC_OK the mailbox owns the chain; otherwise the caller still does. Errors: EVC_CLOSED;
 * EVC_OUT_OF_MEMORY (nothing was posted); EVC_INVALID_ARGUMENT for an empty chain.
 */
EVC_API EVC_MUST_USE enum evc_status evc_shared_mailbox_post(struct evc_shared_mailbox *mailbox,
							     const struct evc_chain *chain);

/**
 * Closes the mailbox and ends its workers: later posts return EVC_CLOSED; what waits is dropped (and
 * counted) by the workers as they end, or by the last release if there is none; each worker finishes its
 * handler and closes its own mailbox.
 *
 * Threads: any, also a worker's. Progress: lock-free; a system call for each worker that sleeps.
 * Ownership: none. Errors: none.
 */
EVC_API void evc_shared_mailbox_close(struct evc_shared_mailbox *mailbox);

/**
 * Closes the mailbox for posts, and lets the workers handle what waits before they end; each then handles
 * what its own mailbox holds. `evc_shared_mailbox_close` afterwards cuts it short.
 *
 * Threads, progress, ownership, errors: as `evc_shared_mailbox_close`.
 */
EVC_API void evc_shared_mailbox_close_when_empty(struct evc_shared_mailbox *mailbox);

/**
 * Frees what waits in a closed mailbox, and counts it as dropped: for one that has no worker left to do so,
 * and whose last release is not near.
 *
 * Threads: any. Progress: lock-free, in proportion to what waits. Ownership: none. Errors: none.
 */
EVC_API void evc_shared_mailbox_drop(struct evc_shared_mailbox *mailbox);

/**
 * How many envelopes wait in each lane, not counting the workers' own. Exact while nothing moves; otherwise
 * a momentary figure.
 *
 * Threads: any. Progress: blocking (a mutex that the making and ending of workers takes); takes time in
 * proportion to the workers, not to the envelopes. Errors: none.
 */
EVC_API void evc_shared_mailbox_depths(struct evc_shared_mailbox *mailbox,
				       uint64_t depths[EVC_LANE_COUNT]);

/** Reads the counters. Threads: any. Progress: as `evc_shared_mailbox_depths`. Errors: none. */
EVC_API void evc_shared_mailbox_read_statistics(struct evc_shared_mailbox *mailbox,
						struct evc_mailbox_statistics *out);

/**
 * Makes a worker, with a mailbox of its own.
 *
 * @param options of its own mailbox, and so of the worker; `context` is also handed to `deliver`. NULL:
 *                all zero
 *
 * Threads: any. Progress: blocking (a mutex, and the allocator). Ownership: the worker holds a reference of
 * the shared mailbox; the caller ends the worker with `evc_worker_destroy`. Errors: EVC_OUT_OF_MEMORY,
 * EVC_INVALID_ARGUMENT; EVC_NOT_PERMITTED beyond EVC_WORKERS_MAX workers.
 */
EVC_API EVC_MUST_USE enum evc_status evc_worker_create(struct evc_shared_mailbox *shared,
						       const struct evc_mailbox_options *options,
						       struct evc_worker **out);

/**
 * Has the worker's run, which has not begun yet, take from its own mailbox alone until `evc_worker_admit`: for
 * a worker that is not ready for what all share. No post to the shared mailbox wakes it meanwhile, and the
 * close of that ends it only afterwards; what is done to its own mailbox takes effect as ever. Regarded
 * by `evc_worker_run` and `evc_thread_start_worker`, not by `evc_worker_take`.
 *
 * Threads: one, before the worker runs. Progress: wait-free. Ownership: none. Errors: none.
 */
EVC_API void evc_worker_hold(struct evc_worker *worker);

/**
 * Lets a worker that was held take from the shared mailbox from now on. Without an effect on others.
 *
 * Threads: any. Progress: as `evc_mailbox_interrupt`, which it is too. Ownership: none. Errors: none.
 */
EVC_API void evc_worker_admit(struct evc_worker *worker);

/**
 * Frees a worker. What waits in its own mailbox is dropped when the last reference of that goes; nothing of
 * the shared mailbox is lost.
 *
 * Threads: one, when nobody takes or waits as this worker any more. Progress: blocking for as long as a
 * post that wakes it is under way. Errors: none.
 */
EVC_API void evc_worker_destroy(struct evc_worker *worker);

/**
 * The worker's own mailbox. Post to it what is meant for this worker alone; add subscriptions to it;
 * `evc_mailbox_interrupt` has the worker call `control`; `evc_mailbox_close` and
 * `evc_mailbox_close_when_empty` retire it: it finishes its handler, takes nothing more from the shared
 * mailbox, and drops or handles what its own mailbox holds. Not to be consumed by another way than
 * the worker.
 *
 * Threads: any. Progress: wait-free. Ownership: the worker's, until it is destroyed. Errors: none.
 */
EVC_API struct evc_mailbox *evc_worker_mailbox(struct evc_worker *worker);

/**
 * Takes the envelope that is next by D1 to D3, without waiting.
 *
 * Threads: the one that is this worker (a thread at a time). Progress: lock-free, but for a post to its own
 * mailbox whose two steps are under way (evc_mailbox_take). Ownership: the caller owns `*out` and ends
 * it with `evc_worker_recycle`. Errors: EVC_EMPTY; EVC_CLOSED if the worker has to end.
 */
EVC_API EVC_MUST_USE enum evc_status evc_worker_take(struct evc_worker *worker,
						     struct evc_envelope **out);

/**
 * Ends an envelope that `evc_worker_take` returned. Threads: the one that is this worker. Progress, ownership,
 * errors: as `evc_mailbox_recycle`.
 */
EVC_API void evc_worker_recycle(struct evc_worker *worker, struct evc_envelope *envelope,
				bool payload_moved);

/**
 * Waits until something waits in either mailbox, either closes, the worker is interrupted, or the time is
 * over.
 *
 * @param timeout nanoseconds, or EVC_FOREVER
 *
 * Threads: the one that is this worker. Progress: blocking. Ownership: none. Errors: EVC_TIMED_OUT.
 */
EVC_API enum evc_status evc_worker_wait(struct evc_worker *worker, uint64_t timeout);

/**
 * Delivers envelopes until either mailbox closes: the loop of a worker's thread. A worker that has ended does
 * not count for EVC_WORKERS_MAX any more.
 *
 * Threads: the one that is this worker. Progress: blocking. Ownership: none. Errors: returns EVC_CLOSED
 * when the worker has ended.
 */
EVC_API enum evc_status evc_worker_run(struct evc_worker *worker);

/**
 * Starts a thread that runs `evc_worker_run(worker)`; `evc_thread_cancel` retires the worker, and
 * `evc_worker_destroy` is called after `evc_thread_join`.
 *
 * Threads, progress, ownership, errors: as `evc_thread_start`.
 */
EVC_API EVC_MUST_USE enum evc_status evc_thread_start_worker(const struct evc_thread_options *options,
							     struct evc_worker *worker,
							     struct evc_thread **out);

EVC_END_DECLS
#endif
