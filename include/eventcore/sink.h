/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file sink.h
 * A sink accepts envelopes. It is the joint which keeps the flow one-way: a router knows sinks and no
 * mailbox, a mailbox is a sink and knows no router.
 */
#ifndef EVENTCORE_SINK_H
#define EVENTCORE_SINK_H

#include "envelope.h"

EVC_BEGIN_DECLS

/**
 * Something that accepts envelopes. Embed it as the first member of your own structure.
 */
struct evc_sink {
	/**
	 * Takes a chain over. Called on any thread, also on several at once; must not wait and must
	 * run no user code. EVC_OK: the sink owns the chain. EVC_CLOSED, EVC_OUT_OF_MEMORY: the
	 * caller still owns it.
	 */
	enum evc_status (*accept)(struct evc_sink *sink, const struct evc_chain *chain);
	/** Adds a reference. Called on any thread. */
	void (*retain)(struct evc_sink *sink);
	/** Drops a reference; the last one may free the sink. Called on any thread. */
	void (*release)(struct evc_sink *sink);
	/** True if an envelope may stand for several events (`evc_mailbox_options.batches`). */
	bool takes_batches;
	/** 0. What a post to sinks of the core may need, set aside by the dispatch before it posts. */
	uint8_t needs;
	/**
	 * Takes one envelope over that is one event, without a chain around it. Called, and the envelope owned, as
	 * with `accept`, which is called instead if this is NULL or `needs` is not 0.
	 */
	enum evc_status (*accept_one)(struct evc_sink *sink, struct evc_envelope *envelope);
};

/** A batch on its way through `deliver_batch`: several events that came in one envelope. */
struct evc_batch_walk;

/**
 * The payload of the next event of a batch, which is then taken. NULL, from then on: the batch has ended, or the
 * consumer first looks for what is more urgent, for what it was told, or at how many events it may take. What is
 * left comes by a later call of `deliver_batch`, or is ended by `drop` if the consumer ends.
 *
 * Threads: the consumer's, inside `deliver_batch`. Progress: wait-free. Errors: none.
 */
EVC_API void *evc_batch_next(struct evc_batch_walk *walk);

/** What a subscription does with the envelopes that reach it. */
struct evc_subscription_options {
	/** Handed to the functions below. */
	void *context;
	/**
	 * Handles one envelope, on the consumer's thread, one call at a time.
	 *
	 * @param owned true if nobody else reads this payload, so that it may be moved out
	 * @return true if the payload was moved out; then `drop` is not called for it
	 */
	bool (*deliver)(void *context, void *payload, const struct evc_envelope *envelope, bool owned);
	/**
	 * Ends a payload that nobody moved out; NULL if payloads need no ending, which a balancer may then
	 * move by copying their bytes. Any thread.
	 */
	void (*drop)(void *context, void *payload);
	/** Called once, when the subscription's sink frees it; may be NULL. Any thread. */
	void (*finalize)(void *context);
	/**
	 * Handles events of a batch: the one with this payload, and each that `evc_batch_next` gives until that
	 * returns NULL; if it returns before, it is called again for the next. It owns the payloads, and has to
	 * move each out or to end it. Saves the calls and looks that are the same for all of them. NULL:
	 * `deliver` is called for each.
	 */
	void (*deliver_batch)(void *context, void *payload, const struct evc_envelope *envelope,
			      struct evc_batch_walk *walk);
};

EVC_END_DECLS
#endif
