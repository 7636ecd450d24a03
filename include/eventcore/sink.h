/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file sink.h
 * What a subscription does with the events that reach it; and the sink behind it, which accepts envelopes. That keeps the
 * flow one-way: a router knows sinks but no mailbox; a mailbox is a sink and knows no router. The sinks are the core's
 * own: mailboxes, shared mailboxes, balancers, and what stands in front of a mailbox: latest-only and conflated
 * subscriptions, and the way of `unbounded` subscriptions into a bounded one.
 */
#ifndef EVENTCORE_SINK_H
#define EVENTCORE_SINK_H

#include "envelope.h"

EVC_BEGIN_DECLS

/** Something that accepts envelopes: a member of what it belongs to. */
struct evc_sink {
	/**
	 * Takes a chain over. Any thread calls it, also several at once; it must not wait and must run no
	 * user code, but for the end of payloads and what the owner's options name for it: an overflow policy, `choose`
	 * of a balancer, the functions of a conflated subscription, `wake` of a mailbox that is pumped. EVC_OK: the
	 * sink owns the chain. EVC_CLOSED, EVC_FULL, EVC_OUT_OF_MEMORY: the caller still owns it. A bounded mailbox that has
	 * room for a part returns EVC_OK and ends the rest itself, counted.
	 */
	enum evc_status (*accept)(struct evc_sink *sink, const struct evc_chain *chain);
	/** Adds a reference. Any thread calls it. */
	void (*retain)(struct evc_sink *sink);
	/** Gives up a reference; the last one may free the sink. Any thread calls it. */
	void (*release)(struct evc_sink *sink);
	/** True if an envelope may hold several events (`evc_mailbox_options.batches`). */
	bool takes_batches;
	/** The memory that a dispatch sets aside for a post. */
	uint8_t needs;
	/**
	 * Takes over a single envelope that holds one event, without a chain around it. Called, and the
	 * envelope owned, as with `accept`. `accept` is called instead if this is NULL.
	 */
	enum evc_status (*accept_one)(struct evc_sink *sink, struct evc_envelope *envelope);
	/**
	 * As `accept`, for a thread that must not wait: without a system call, a lock, the allocator, or a function of
	 * the user's. NULL: this sink cannot (realtime.h).
	 */
	enum evc_status (*try_accept)(struct evc_sink *sink, const struct evc_chain *chain);
	/**
	 * Has the consumer look at its `evc_load` soon: a balancer calls it when an event that it promised went for
	 * nothing after the load was retired. Any thread calls it. A mailbox calls its `control` then. NULL: nobody is
	 * told.
	 */
	void (*look_again)(struct evc_sink *sink);
};

/** A batch while it is delivered: several events that came in one envelope. */
struct evc_batch_walk;

/**
 * Takes the next event of a batch and returns its payload. NULL, from then on, if the batch has ended, or if
 * the consumer must first look at more urgent events, an interrupt, or its limit of events. What is left
 * comes with a later call of `deliver_batch`, or `drop` ends it if the consumer ends.
 *
 * Threads: the consumer's, inside `deliver_batch`. Progress: wait-free. Ownership: the payload is the
 * caller's.
 */
EVC_API void *evc_batch_next(struct evc_batch_walk *walk);

/** What a subscription does with the envelopes that reach it. */
struct evc_subscription_options {
	/** sizeof of this structure, which tells the library which members the caller knows. */
	size_t size;
	/**
	 * True: in a bounded mailbox its events find a place at any time, and take none from others. For the few
	 * events of a program that may not be lost, such as requests to its consumer.
	 */
	bool unbounded;
	/** Passed to the functions below. */
	void *context;
	/**
	 * Handles one envelope, on the consumer's thread, one call at a time.
	 *
	 * @param owned true if no other receiver reads this payload, so that it may be moved out
	 * @return true if the payload was moved out; then `drop` is not called for it
	 */
	bool (*deliver)(void *context, void *payload, const struct evc_envelope *envelope, bool owned);
	/**
	 * Ends a payload that was not moved out; NULL if payloads need no ending, which also lets a balancer
	 * copy their bytes. Any thread.
	 */
	void (*drop)(void *context, void *payload);
	/** Called once, when the subscription's sink frees it; may be NULL. Any thread. */
	void (*finalize)(void *context);
	/**
	 * Handles events of a batch: the one with this payload, and each one that `evc_batch_next` returns,
	 * until that returns NULL. If it returns earlier, it is called again for the next event. It owns
	 * these payloads and must move out or end each of them. Saves the work that is the same for all of
	 * them. NULL: `deliver` is called for each event.
	 */
	void (*deliver_batch)(void *context, void *payload, const struct evc_envelope *envelope,
			      struct evc_batch_walk *walk);
};

EVC_END_DECLS
#endif
