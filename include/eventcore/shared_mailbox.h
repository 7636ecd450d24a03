/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file shared_mailbox.h
 * A shared mailbox is ten lanes with any number of producers and any number of consumers, called workers.
 *
 *     producers ──► evc_shared_mailbox ──┬──► evc_worker ──► deliver(worker's context, ...)
 *                   (ten lanes)          ├──► evc_worker
 *                                        └──► ...
 *     producers ──► a worker's own evc_mailbox ──►┘
 *
 * Each worker also has a mailbox of its own, for events that are meant for it alone, and waits for both at
 * once. To interrupt, cancel or drain one worker, call the functions of its own mailbox; the other workers go
 * on with the shared one.
 *
 * The guarantees: a take returns an envelope of the first lane that is not empty in either mailbox; if both
 * have that lane, the worker's own comes first. It takes every post into account that returned before the
 * take began and that no other worker has taken (D1). A queue lane of the shared mailbox is one queue for all
 * producers and workers (D2), a stack lane is one stack (D3); both are linearizable. Each accepted envelope
 * is taken by exactly one worker, or is dropped and counted once (D4).
 */
#ifndef EVENTCORE_SHARED_MAILBOX_H
#define EVENTCORE_SHARED_MAILBOX_H

#include "mailbox.h"
#include "thread.h"

/** The largest number of workers of a shared mailbox at one time. */
#define EVC_WORKERS_MAX 256u

EVC_BEGIN_DECLS

struct evc_shared_mailbox;
struct evc_worker;

/** What a subscription of a shared mailbox does with the envelopes that reach it. */
struct evc_shared_subscription_options {
	/** sizeof of this structure, which tells the library which members the caller knows. */
	size_t size;
	/** Passed to the functions below. */
	void *context;
	/**
	 * Handles one envelope, on the thread of the worker that took it; several workers call it at once.
	 *
	 * @param worker_context `context` of the options that the worker was made with
	 * @param owned true if no other receiver reads this payload, so that it may be moved out
	 * @return true if the payload was moved out; then `drop` is not called for it
	 */
	bool (*deliver)(void *worker_context, void *context, void *payload,
			struct evc_envelope *envelope, bool owned);
	/** Ends a payload that was not moved out; NULL if payloads need no ending. Any thread. */
	void (*drop)(void *context, void *payload);
	/** Called once, when the shared mailbox frees the subscription; may be NULL. Any thread. */
	void (*finalize)(void *context);
};

/**
 * Makes a shared mailbox with one reference and without workers.
 *
 * @param out receives the mailbox
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller holds the reference and gives it up with
 * `evc_shared_mailbox_release`. Errors: EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_shared_mailbox_create(struct evc_shared_mailbox **out);

/**
 * Makes a shared mailbox in which only so many events wait, as of a mailbox with such options.
 *
 * @param capacity how many, at most UINT64_MAX / 4; 0: any number, as `evc_shared_mailbox_create`. Events of
 *         latest-only and conflated subscriptions do not count, as there
 * @param overflow what happens with an event that finds it full. EVC_OVERFLOW_BLOCK refuses the posts of its own
 *        workers at once, in handlers, `control` and `idle` inside `evc_worker_run` and `evc_worker_poll`
 * @param block_ns with EVC_OVERFLOW_BLOCK: how long a post waits at most, in nanoseconds
 *
 * The rest is as for `evc_shared_mailbox_create`. Errors: EVC_INVALID_ARGUMENT also for a larger capacity, or a policy
 * that does not exist.
 */
EVC_API EVC_MUST_USE enum evc_status evc_shared_mailbox_create_bounded(uint64_t capacity,
								       enum evc_overflow overflow,
								       uint64_t block_ns,
								       struct evc_shared_mailbox **out);

/** Adds a reference. Threads: any. Progress: wait-free. */
EVC_API void evc_shared_mailbox_retain(struct evc_shared_mailbox *mailbox);

/**
 * Gives up a reference. The last one frees the envelopes that still wait, the subscriptions, and the mailbox.
 * Each worker holds a reference.
 *
 * Threads: any. Progress: wait-free, except for the last reference. Ownership: ends the caller's.
 */
EVC_API void evc_shared_mailbox_release(struct evc_shared_mailbox *mailbox);

/** Returns the mailbox as a sink. Threads: any. Progress: wait-free. Ownership: part of the mailbox. */
EVC_API struct evc_sink *evc_shared_mailbox_sink(struct evc_shared_mailbox *mailbox);

/**
 * Adds a subscription, for all workers of this mailbox. Make one for each key and reuse it; it lives as long
 * as the mailbox.
 *
 * @param options `deliver` is required
 * @param out receives the subscription
 *
 * Threads: any. Progress: as the allocator. Ownership: the mailbox owns it and calls
 * `finalize` when it ends. Errors: EVC_OUT_OF_MEMORY; EVC_INVALID_ARGUMENT without `deliver`.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_shared_mailbox_add_subscription(struct evc_shared_mailbox *mailbox,
				    const struct evc_shared_subscription_options *options,
				    struct evc_subscription **out);

/**
 * Adds a latest-only subscription: at most one of its envelopes waits, for all workers together. It is as
 * that of `evc_mailbox_add_latest_subscription`, and whichever worker reaches it first takes the newest
 * event. An event may be taken while another worker is still handling the one before it.
 *
 * Subscribe it with a router, or add it to a balancer, as that one.
 *
 * @param options `deliver` is required
 * @param out receives the subscription
 *
 * Threads: any. Progress: blocking (a mutex, and the allocator). Ownership: the caller holds a reference,
 * which keeps the shared mailbox alive, and gives it up with `evc_latest_subscription_release`. `finalize` is
 * called when no reference, no route and no envelope is left. Errors: EVC_OUT_OF_MEMORY; EVC_INVALID_ARGUMENT
 * without `deliver`.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_shared_mailbox_add_latest_subscription(struct evc_shared_mailbox *mailbox,
					   const struct evc_shared_subscription_options *options,
					   struct evc_subscription **out);

/**
 * Adds a conflated subscription: of its envelopes with one key at most one waits, for all workers together. It is
 * to `evc_mailbox_add_conflated_subscription` as the latest-only subscriptions are to each other.
 *
 * Parameters, Threads, Progress, Ownership, Errors: as there.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_shared_mailbox_add_conflated_subscription(struct evc_shared_mailbox *mailbox,
					      const struct evc_shared_subscription_options *options,
					      const struct evc_conflation *conflation,
					      struct evc_subscription **out);

/**
 * Posts a chain, whose last envelope links to none. The envelopes of one lane become visible together, in the
 * order of the chain, with no other post between them. If the chain has several lanes, they become visible
 * lane by lane, the most urgent first. In a bounded one this holds for each part, as `evc_mailbox_post` says.
 *
 * Threads: any. Progress: lock-free once warm; one system call if a worker sleeps and none is about to look. With
 * EVC_OVERFLOW_BLOCK: blocking while the mailbox is full. Allocates 4 KiB for some 500 posts to a queue lane unless a
 * reclaim (reclaim.h) has freed as much. Ownership: with EVC_OK the mailbox owns the chain; otherwise the caller still
 * does. A bounded one that has room for a part does as `evc_mailbox_post`. Errors: EVC_CLOSED; EVC_FULL and
 * EVC_OUT_OF_MEMORY if nothing was posted; EVC_INVALID_ARGUMENT for an empty chain.
 */
EVC_API EVC_MUST_USE enum evc_status evc_shared_mailbox_post(struct evc_shared_mailbox *mailbox,
							     const struct evc_chain *chain);

/**
 * Closes the mailbox and ends its workers. Later posts return EVC_CLOSED. Each worker finishes its handler
 * and closes its own mailbox. The workers drop and count what waits as they end; without a worker the last
 * release does.
 *
 * Threads: any, also a worker's. Progress: lock-free; a system call for each worker that sleeps.
 */
EVC_API void evc_shared_mailbox_close(struct evc_shared_mailbox *mailbox);

/**
 * Closes the mailbox for posts, and lets the workers handle what waits before they end; each of them then
 * handles what its own mailbox holds. A later `evc_shared_mailbox_close` drops what is left.
 *
 * Threads, progress, ownership, errors: as `evc_shared_mailbox_close`.
 */
EVC_API void evc_shared_mailbox_close_when_empty(struct evc_shared_mailbox *mailbox);

/**
 * Frees what waits in a closed mailbox and counts it as dropped. Call it if no worker is left to do so and
 * the last release is not imminent.
 *
 * Threads: any. Progress: lock-free, in proportion to what waits.
 */
EVC_API void evc_shared_mailbox_drop(struct evc_shared_mailbox *mailbox);

/**
 * Reads how many events wait in each lane, without those in the workers' own mailboxes. Exact while nothing
 * is posted or taken; otherwise a momentary figure.
 *
 * @param depths receives one figure for each lane
 *
 * Threads: any. Progress: blocking if there are latest-only subscriptions (a mutex); takes time in proportion to these,
 * not to the envelopes.
 */
EVC_API void evc_shared_mailbox_depths(struct evc_shared_mailbox *mailbox,
				       uint64_t depths[EVC_LANE_COUNT]);

/**
 * Reads the counters. Threads: any. Progress: blocking (a mutex that workers take when they are made and when they end);
 * takes time in proportion to the workers and to the keys of conflated subscriptions, not to the envelopes.
 */
EVC_API void evc_shared_mailbox_read_statistics(struct evc_shared_mailbox *mailbox,
						struct evc_mailbox_statistics *out);

/**
 * Makes a worker, with a mailbox of its own.
 *
 * @param options of the worker's own mailbox and of its waiting, without `wake`, `polled` and a `capacity`; `batches`
 *         says nothing, since a worker takes one event at a time. `context` is also passed to `deliver`. NULL: the
 *         defaults
 * @param out receives the worker
 *
 * Threads: any. Progress: blocking (a mutex, and the allocator). Ownership: the worker holds a reference of
 * the shared mailbox; the caller ends the worker with `evc_worker_destroy`. Errors: EVC_OUT_OF_MEMORY,
 * EVC_INVALID_ARGUMENT; EVC_NOT_PERMITTED if there are EVC_WORKERS_MAX workers already.
 */
EVC_API EVC_MUST_USE enum evc_status evc_worker_create(struct evc_shared_mailbox *shared,
						       const struct evc_mailbox_options *options,
						       struct evc_worker **out);

/**
 * Restricts the worker to its own mailbox until `evc_worker_admit`: for a worker that is not ready for shared
 * events yet. Meanwhile no post to the shared mailbox wakes it, and the close of the shared mailbox ends it
 * only after it is admitted; calls to its own mailbox take effect as usual. Applies to `evc_worker_run`,
 * `evc_worker_poll`, `evc_worker_wait` and `evc_thread_start_worker`, not to `evc_worker_take`.
 *
 * Threads: one, before the worker runs. Progress: wait-free.
 */
EVC_API void evc_worker_hold(struct evc_worker *worker);

/**
 * Lets a worker that was held take from the shared mailbox too. Has no effect on other workers.
 *
 * Threads: any. Progress: as `evc_mailbox_interrupt`; it interrupts the worker too.
 */
EVC_API void evc_worker_admit(struct evc_worker *worker);

/**
 * Frees a worker. Envelopes in its own mailbox are dropped; nothing in the shared mailbox is lost.
 *
 * Threads: one, when no thread takes or waits as this worker any more. Progress: blocking until posts that
 * are waking this worker have done so.
 */
EVC_API void evc_worker_destroy(struct evc_worker *worker);

/**
 * Returns the worker's own mailbox. Post events to it that are meant for this worker alone, and add
 * subscriptions to it. `evc_mailbox_interrupt` makes the worker call `control`. `evc_mailbox_close` and
 * `evc_mailbox_close_when_empty` retire the worker: it finishes its handler, takes nothing more from the
 * shared mailbox, and drops or handles what its own mailbox holds. Do not consume this mailbox otherwise than
 * by the worker.
 *
 * Threads: any. Progress: wait-free. Ownership: the worker's, until it is destroyed.
 */
EVC_API struct evc_mailbox *evc_worker_mailbox(struct evc_worker *worker);

/**
 * Takes the envelope that is next by D1 to D3, without waiting.
 *
 * @param out receives the envelope
 *
 * Threads: the one that is this worker (one thread at a time). Progress: lock-free. Ownership: the caller
 * owns `*out` and ends it with `evc_worker_recycle`. Errors: EVC_EMPTY; EVC_CLOSED if the worker has to end;
 * EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_worker_take(struct evc_worker *worker,
						     struct evc_envelope **out);

/**
 * Ends an envelope that `evc_worker_take` returned. Threads: the one that is this worker. Parameters,
 * progress, ownership, errors: as `evc_mailbox_recycle`.
 */
EVC_API void evc_worker_recycle(struct evc_worker *worker, struct evc_envelope *envelope,
				bool payload_moved);

/**
 * Waits until an envelope waits in either mailbox, either of them closes, the worker is interrupted, or the
 * time limit has passed. A worker that is held waits for its own mailbox alone. After EVC_OK take or poll at once:
 * posts rely on this worker, and wake no other one until it has taken.
 *
 * @param timeout nanoseconds, or EVC_FOREVER
 *
 * Threads: the one that is this worker. Progress: blocking. Errors: EVC_TIMED_OUT.
 */
EVC_API enum evc_status evc_worker_wait(struct evc_worker *worker, uint64_t timeout);

/**
 * Delivers envelopes until either mailbox closes: the loop of a worker's thread. A worker that has ended no
 * longer counts towards EVC_WORKERS_MAX.
 *
 * @return EVC_CLOSED when the worker has ended
 *
 * Threads: the one that is this worker. Progress: blocking. Errors: EVC_INVALID_ARGUMENT; EVC_NOT_PERMITTED if it runs
 * already.
 */
EVC_API enum evc_status evc_worker_run(struct evc_worker *worker);

/**
 * Delivers one envelope, or none if none waits, and returns: for a worker whose thread has other things to do.
 *
 * A post to either mailbox does not wake whoever polls. `control` is called if the worker was interrupted, and `idle`
 * if there was nothing.
 *
 * @return EVC_OK: it delivered one. EVC_EMPTY. EVC_CLOSED: the worker has ended, as after evc_worker_run.
 *
 * Threads: the one that is this worker. Progress: lock-free, but for the call that returns EVC_CLOSED, which takes a
 * lock. Errors: EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_worker_poll(struct evc_worker *worker);

/**
 * Starts a thread that runs `evc_worker_run(worker)`. `evc_thread_cancel` retires the worker; call
 * `evc_worker_destroy` after `evc_thread_join`.
 *
 * Parameters, threads, progress, ownership, errors: as `evc_thread_start`.
 */
EVC_API EVC_MUST_USE enum evc_status evc_thread_start_worker(const struct evc_thread_options *options,
							     struct evc_worker *worker,
							     struct evc_thread **out);

EVC_END_DECLS
#endif
