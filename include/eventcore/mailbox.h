/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file mailbox.h
 * A mailbox is ten lanes with any number of producers and one consumer.
 *
 * The guarantees (D1 to D3): a take returns the oldest envelope of the first queue, or the newest of
 * the first stack, that is not empty, counting every post that returned before the take began. This is
 * decided for each envelope, never for a batch.
 */
#ifndef EVENTCORE_MAILBOX_H
#define EVENTCORE_MAILBOX_H

#include "parker.h"
#include "sink.h"

EVC_BEGIN_DECLS

struct evc_mailbox;

/** What a consumer does while nothing waits. */
enum evc_wait_strategy {
	/**
	 * Sleeps, after a look of a few microseconds if events have come that close together lately. An
	 * idle consumer takes no processor time.
	 */
	EVC_WAIT_PARK = 0,
	/** Spins for `spin_ns`, then sleeps. */
	EVC_WAIT_SPIN_THEN_PARK,
	/** Offers the processor to others between two looks. */
	EVC_WAIT_YIELD,
	/** Spins: the shortest latency, one processor busy all the time. */
	EVC_WAIT_SPIN
};

/** How a mailbox is made. All zero is a good default. */
struct evc_mailbox_options {
	enum evc_wait_strategy strategy;
	/** With EVC_WAIT_SPIN_THEN_PARK: how long to spin, in nanoseconds. */
	uint64_t spin_ns;
	/** The system calls of the parker; NULL takes the best that the system has. */
	const struct evc_parker_ops *parker;
	/**
	 * Called by `evc_mailbox_run` and `evc_mailbox_pump` between two envelopes after an interrupt; may
	 * be NULL.
	 */
	void (*control)(void *context);
	/**
	 * Called by `evc_mailbox_run` and `evc_mailbox_pump` when they have run dry, before they wait or
	 * return; may be NULL. Whatever the handlers keep over a run of envelopes can be let go here.
	 */
	void (*idle)(void *context);
	/**
	 * For a mailbox that is drained by `evc_mailbox_pump` alone: called when the mailbox is armed and
	 * gets something to do (a post, an interrupt, a close), once for each arming, to have it pumped.
	 * A new mailbox is armed. Called on the thread that posts, interrupts or closes: must not wait, and
	 * must not pump by itself. Others rely on that call: if the system takes the thread away right before it,
	 * they wait for it. NULL: nobody is called, and the pump's caller comes by when it likes.
	 */
	void (*wake)(void *context);
	/** Called once, when the mailbox is freed, after all others; may be NULL. Any thread. */
	void (*finalize)(void *context);
	/** Handed to the functions above. */
	void *context;
	/**
	 * True if the events of a batch may come in one envelope (`evc_dispatch_begin_batch`), which is then
	 * delivered for each of them: for a mailbox that is drained by `evc_mailbox_run` or
	 * `evc_mailbox_pump` alone. `evc_mailbox_take` refuses. Statistics and depths count events.
	 */
	bool batches;
};

/** A reading of a mailbox's counters. */
struct evc_mailbox_statistics {
	/** Envelopes that a consumer took. */
	uint64_t taken;
	/** Accepted envelopes that were freed without being handled, because the mailbox closed. */
	uint64_t dropped;
	/** Accepted envelopes of latest-only subscriptions that a newer one took the place of. */
	uint64_t superseded;
};

/**
 * Makes a mailbox with one reference.
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller holds the reference and gives it up
 * with `evc_mailbox_release`. Errors: EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_mailbox_create(const struct evc_mailbox_options *options,
							struct evc_mailbox **out);

/** Adds a reference. Threads: any. Progress: wait-free. Errors: none. */
EVC_API void evc_mailbox_retain(struct evc_mailbox *mailbox);

/**
 * Drops a reference. The last one frees what still waits, the subscriptions and the mailbox.
 *
 * Threads: any. Progress: wait-free but for the last. Ownership: ends the caller's. Errors: none.
 */
EVC_API void evc_mailbox_release(struct evc_mailbox *mailbox);

/**
 * The mailbox as a sink. Threads: any. Progress: wait-free. Ownership: part of the mailbox. Errors: none.
 */
EVC_API struct evc_sink *evc_mailbox_sink(struct evc_mailbox *mailbox);

/**
 * Makes a subscription of this mailbox: what happens with envelopes of one kind. Make one for each key
 * and reuse it; it lives as long as the mailbox.
 *
 * Threads: any. Progress: blocking (a mutex, and the allocator). Ownership: the mailbox owns it and
 * calls `finalize` when it ends. Errors: EVC_OUT_OF_MEMORY; EVC_INVALID_ARGUMENT without `deliver`.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_mailbox_add_subscription(struct evc_mailbox *mailbox,
			     const struct evc_subscription_options *options,
			     struct evc_subscription **out);

/**
 * Makes a subscription of which one envelope waits at most. A newer one takes the place of the one that
 * waits, whatever lanes they are on, and the older one ends and counts as superseded; so the memory does
 * not grow, however far the consumer is behind. What waits is delivered in the newest envelope's lane, where
 * the oldest superseded one of that lane stood.
 *
 * Its envelopes reach it through its sink, as a router's dispatch posts them; `evc_mailbox_post` takes them
 * for envelopes of the mailbox and keeps them all. `drop` ends the payload of a superseded envelope on the
 * thread that posts the newer one.
 *
 * Threads: any. Progress: blocking (a mutex, and the allocator). Ownership: the caller holds a reference
 * and gives it up with `evc_latest_subscription_release`; it keeps the mailbox alive. `finalize` is called
 * when no reference, no route and no envelope is left. Errors: EVC_OUT_OF_MEMORY; EVC_INVALID_ARGUMENT
 * without `deliver`.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_mailbox_add_latest_subscription(struct evc_mailbox *mailbox,
				    const struct evc_subscription_options *options,
				    struct evc_subscription **out);

/**
 * Gives up the reference of a latest-only subscription. What waits is still delivered: unsubscribe it from
 * its routers first.
 *
 * Threads: any. Progress: wait-free but for the last. Ownership: ends the caller's. Errors: none.
 */
EVC_API void evc_latest_subscription_release(struct evc_subscription *subscription);

/**
 * How many envelopes of a latest-only subscription were superseded. Threads: any, with a reference.
 * Progress: wait-free. Errors: none.
 */
EVC_API uint64_t evc_latest_subscription_superseded(struct evc_subscription *subscription);

/**
 * Posts a chain: its envelopes become visible to the consumer in the order of the chain, with nobody
 * else's between those of one lane. Those of several lanes become visible lane by lane, the most urgent first.
 *
 * Threads: any. Progress: lock-free: it is repeated if another post on the same lane has succeeded; one system call,
 * or one call of `wake`, if the consumer sleeps. It asks for no memory. Ownership: with EVC_OK the mailbox owns the
 * chain; otherwise the caller still does. Errors: EVC_CLOSED; EVC_INVALID_ARGUMENT for an empty chain.
 */
EVC_API EVC_MUST_USE enum evc_status evc_mailbox_post(struct evc_mailbox *mailbox,
						      const struct evc_chain *chain);

/**
 * Takes the envelope that is next by D1 to D3, without waiting.
 *
 * Threads: the one consumer (a thread at a time). Progress: lock-free, and it waits for no producer. An urgent post
 * waits for at most 1,024 envelopes of a backlog to be sorted. Ownership: the caller owns `*out`, and ends it
 * with `evc_mailbox_recycle` or `evc_envelope_release`, before the last reference of the mailbox goes, whose
 * subscription it names; until then its payload is nobody else's. Errors: EVC_EMPTY, EVC_CLOSED;
 * EVC_INVALID_ARGUMENT for a mailbox with `batches`.
 */
EVC_API EVC_MUST_USE enum evc_status evc_mailbox_take(struct evc_mailbox *mailbox,
						      struct evc_envelope **out);

/**
 * Ends an envelope that `evc_mailbox_take` returned, through the mailbox's chains of free slots.
 *
 * Threads: the one consumer. Progress: lock-free. Ownership: ends here. Errors: none.
 */
EVC_API void evc_mailbox_recycle(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
				 bool payload_moved);

/**
 * Waits until something waits, the mailbox closes, it is interrupted, or the time is over.
 *
 * @param timeout nanoseconds, or EVC_FOREVER
 *
 * Threads: the one consumer. Progress: blocking. Ownership: none. Errors: EVC_TIMED_OUT;
 * EVC_INVALID_ARGUMENT for a mailbox with a `wake`.
 */
EVC_API enum evc_status evc_mailbox_wait(struct evc_mailbox *mailbox, uint64_t timeout);

/**
 * Delivers envelopes until the mailbox closes: the loop of an event thread.
 *
 * Threads: the one consumer. Progress: blocking. Ownership: none. Errors: returns EVC_CLOSED when
 * everything that was waiting has been handled or dropped; EVC_INVALID_ARGUMENT for a mailbox with a
 * `wake`, which is pumped.
 */
EVC_API enum evc_status evc_mailbox_run(struct evc_mailbox *mailbox);

/**
 * Delivers up to `limit` envelopes on the calling thread and returns: for a consumer that has no thread
 * of its own, but is driven by jobs on a queue, by an executor or by a loop of the caller's.
 *
 * @param limit how many at most; at least 1
 * @return EVC_OK if the limit was reached: more may wait, pump again; EVC_EMPTY if nothing is left: the
 * mailbox is armed (if it has a `wake`) and the next pump belongs to whoever that function has do it;
 * EVC_CLOSED as `evc_mailbox_run`
 *
 * Threads: any, one at a time, and not inside a handler of this mailbox; what one pump did must happen
 * before the next begins. With EVC_EMPTY the next one, which `wake` caused on another thread, may have
 * begun before this one returns. Progress: lock-free. Ownership: the caller's reference must outlive the call. Errors: EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_mailbox_pump(struct evc_mailbox *mailbox, uint64_t limit);

/**
 * Has the consumer call `options.control` between two envelopes, at once if it sleeps.
 *
 * Threads: any. Progress: wait-free. Ownership: none. Errors: none.
 */
EVC_API void evc_mailbox_interrupt(struct evc_mailbox *mailbox);

/**
 * Closes the mailbox: later posts return EVC_CLOSED; what waits is dropped (and counted) by the
 * consumer, or by the last release if there is no consumer. A handler that runs is not disturbed.
 *
 * Threads: any, also the consumer. Progress: wait-free. Ownership: none. Errors: none.
 */
EVC_API void evc_mailbox_close(struct evc_mailbox *mailbox);

/**
 * Closes the mailbox for posts, and lets the consumer handle what waits before it ends.
 * `evc_mailbox_close` afterwards cuts it short.
 *
 * Threads: any, also the consumer. Progress: wait-free. Ownership: none. Errors: none.
 */
EVC_API void evc_mailbox_close_when_empty(struct evc_mailbox *mailbox);

/**
 * How many envelopes wait in each lane. Exact while nothing moves; otherwise a momentary figure, which may be
 * too low, by what is taken or posted while it is read. What waits for a latest-only subscription counts in the
 * lane of the newest envelope; while others are posted to it, that figure may also be too high.
 *
 * @param depths receives one figure per lane
 *
 * Threads: any. Progress: blocking for a moment (a mutex); a look at each latest-only subscription. Errors: none.
 */
EVC_API void evc_mailbox_depths(struct evc_mailbox *mailbox, uint64_t depths[EVC_LANE_COUNT]);

/** Reads the counters. Threads: any. Progress: blocking for a moment (a mutex). Errors: none. */
EVC_API void evc_mailbox_read_statistics(struct evc_mailbox *mailbox,
					 struct evc_mailbox_statistics *out);

EVC_END_DECLS
#endif
