/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file envelope.h
 * An envelope is one event in flight to one receiver: a 64-byte slot with a link, the subscription
 * that it is addressed to, the lane, the time of dispatch, and the payload.
 *
 * A payload of up to EVC_INLINE_SIZE bytes travels inside the slot. A larger or more strictly aligned
 * one lies in a box, which all receivers of the event share and the last of them frees.
 *
 * Ownership: exactly one holder at any time. The producer holds an envelope from
 * `evc_envelope_create` until a sink accepts it, the mailbox while it waits, the consumer from the
 * take until `evc_envelope_release`.
 */
#ifndef EVENTCORE_ENVELOPE_H
#define EVENTCORE_ENVELOPE_H

#include "base.h"

/**
 * How many payload bytes fit into the slot itself. 32 of 64: link, subscription, time and lane take
 * the other half, so that an envelope is one cache line and a hand-over moves one line.
 */
#define EVC_INLINE_SIZE 32u
/** The strictest alignment that an inline payload may ask for. */
#define EVC_INLINE_ALIGNMENT 32u

EVC_BEGIN_DECLS

struct evc_envelope;
struct evc_subscription;

/** Envelopes linked in the order in which they are to be posted, all addressed to one sink. */
struct evc_chain {
	struct evc_envelope *first;
	struct evc_envelope *last;
	/** How many envelopes the chain holds. */
	uint32_t count;
	/** One bit per lane that occurs in the chain. */
	uint32_t lanes;
};

/** An empty chain. */
#define EVC_CHAIN_EMPTY                                                                            \
	{                                                                                          \
		NULL, NULL, 0, 0                                                                   \
	}

/**
 * Makes one envelope for `subscription` and tells where its payload is to be written.
 *
 * @param lane      one of the ten lanes
 * @param size      payload size in bytes; 0 is allowed
 * @param alignment payload alignment in bytes, a power of two up to 4096; 0 counts as 1
 * @param out       receives the envelope
 *
 * Threads: any. Progress: lock-free once the thread's pool is warm. Ownership: the caller owns the
 * envelope until a sink accepts it; the subscription has to outlive that. Errors: EVC_OUT_OF_MEMORY,
 * EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_envelope_create(struct evc_subscription *subscription,
							 enum evc_lane lane, size_t size,
							 size_t alignment,
							 struct evc_envelope **out);

/**
 * Appends an envelope to a chain.
 *
 * Threads: the holder of both. Progress: wait-free. Ownership: the chain now holds the envelope.
 * Errors: none.
 */
EVC_API void evc_chain_append(struct evc_chain *chain, struct evc_envelope *envelope);

/**
 * The payload of an envelope, for writing before the post and for reading after the take.
 *
 * Threads: the holder. Progress: wait-free. Ownership: the payload belongs to the envelope. Errors: none.
 */
EVC_API void *evc_envelope_payload(struct evc_envelope *envelope);

/** The lane of an envelope. Threads: the holder. Progress: wait-free. Errors: none. */
EVC_API enum evc_lane evc_envelope_lane(const struct evc_envelope *envelope);

/**
 * When the event was dispatched (`evc_clock_now` scale), or 0 if no subscription of its type asked for
 * the time. Threads: the holder. Progress: wait-free. Errors: none.
 */
EVC_API uint64_t evc_envelope_time(const struct evc_envelope *envelope);

/** Sets the time of dispatch. Threads: the holder. Progress: wait-free. Errors: none. */
EVC_API void evc_envelope_set_time(struct evc_envelope *envelope, uint64_t time);

/**
 * The generation that the subscription had in the router when the event was dispatched
 * (`evc_router_subscribe`). Threads: the holder. Progress: wait-free. Errors: none.
 */
EVC_API uint32_t evc_envelope_generation(const struct evc_envelope *envelope);

/**
 * The subscription that an envelope is addressed to. Threads: the holder. Progress: wait-free. Ownership: the
 * sink's. Errors: none.
 */
EVC_API struct evc_subscription *evc_envelope_subscription(const struct evc_envelope *envelope);

/**
 * Ends an envelope that was never posted, or one that `evc_mailbox_take` returned (for which
 * `evc_mailbox_recycle` is cheaper).
 *
 * @param payload_moved true if the caller has moved the payload out; false lets the core call the
 *                      subscription's `drop`
 *
 * Threads: the holder. Progress: lock-free. Ownership: ends here. Errors: none.
 */
EVC_API void evc_envelope_release(struct evc_envelope *envelope, bool payload_moved);

EVC_END_DECLS
#endif
