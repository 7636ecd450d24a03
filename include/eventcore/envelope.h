/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file envelope.h
 * An envelope is one event in flight to one receiver: a 64-byte slot that holds a link, the subscription it is
 * addressed to, the lane, the time of dispatch, and the payload.
 *
 * A payload of up to EVC_INLINE_SIZE bytes lies inside the slot. A payload that is larger or needs a stricter
 * alignment lies in a box, which all receivers of the event share and the last of them frees.
 *
 * Ownership: an envelope has exactly one holder at any time. The producer holds it from `evc_envelope_create`
 * until a sink accepts it, the mailbox while it waits, and the consumer from the take until
 * `evc_envelope_release`.
 */
#ifndef EVENTCORE_ENVELOPE_H
#define EVENTCORE_ENVELOPE_H

#include "base.h"

/** How many payload bytes fit into the slot. The header takes the other 32, so that it is one cache line. */
#define EVC_INLINE_SIZE 32u
/** The strictest alignment of an inline payload, in bytes. */
#define EVC_INLINE_ALIGNMENT 32u
/** The strictest alignment of any payload, in bytes. */
#define EVC_ALIGNMENT_MAX 4096u

EVC_BEGIN_DECLS

/** The largest generation of a subscription. */
#define EVC_GENERATION_MAX UINT32_C(0x7fffffff)

struct evc_envelope;
struct evc_subscription;

/** Envelopes that are linked in the order in which they are to be posted, all addressed to one sink. */
struct evc_chain {
	struct evc_envelope *first;
	struct evc_envelope *last;
	/** The number of envelopes in the chain. */
	uint32_t count;
	/** One bit for each lane that occurs in the chain. */
	uint32_t lanes;
};

/** An empty chain. */
#define EVC_CHAIN_EMPTY { NULL, NULL, 0, 0 }

/**
 * Makes an envelope for `subscription`. Write its payload to `evc_envelope_payload` before posting it.
 *
 * @param lane one of the ten lanes
 * @param size payload size in bytes; may be 0
 * @param alignment payload alignment in bytes, a power of two up to EVC_ALIGNMENT_MAX; 0 counts as 1
 * @param out receives the envelope
 *
 * Threads: any. Progress: lock-free once the thread's slab pools are warm. Ownership: the caller owns the
 * envelope until a sink accepts it; the subscription must outlive the envelope. Errors: EVC_OUT_OF_MEMORY,
 * EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_envelope_create(struct evc_subscription *subscription,
							 enum evc_lane lane, size_t size,
							 size_t alignment,
							 struct evc_envelope **out);

/** Appends an envelope to a chain, which then holds it. Threads: the holder of both. Progress: wait-free. */
EVC_API void evc_chain_append(struct evc_chain *chain, struct evc_envelope *envelope);

/**
 * Returns the payload of an envelope, for writing before the post and for reading after the take. Threads:
 * the holder. Progress: wait-free. Ownership: the envelope's.
 */
EVC_API void *evc_envelope_payload(struct evc_envelope *envelope);

/** Returns the lane of an envelope. Threads: the holder. Progress: wait-free. */
EVC_API enum evc_lane evc_envelope_lane(const struct evc_envelope *envelope);

/**
 * Returns when the event was dispatched, in nanoseconds of the router's clock, or 0 if neither a subscription
 * of its key nor an observer asked for the time. Threads: the holder. Progress: wait-free.
 */
EVC_API uint64_t evc_envelope_time(const struct evc_envelope *envelope);

/** Sets the time of dispatch, in nanoseconds of the consumer's clock. Threads: the holder. Progress: wait-free. */
EVC_API void evc_envelope_set_time(struct evc_envelope *envelope, uint64_t time);

/**
 * Returns the generation that the subscription had when the event was dispatched. Threads: the holder.
 * Progress: wait-free.
 */
EVC_API uint32_t evc_envelope_generation(const struct evc_envelope *envelope);

/** Whether the observer of the router has marked the event. Threads: the holder. Progress: wait-free. */
EVC_API bool evc_envelope_is_marked(const struct evc_envelope *envelope);

/**
 * Returns the subscription that an envelope is addressed to. Threads: the holder. Progress: wait-free.
 * Ownership: the sink's.
 */
EVC_API struct evc_subscription *evc_envelope_subscription(const struct evc_envelope *envelope);

/**
 * Ends an envelope that was never posted, or that `evc_mailbox_take` returned (`evc_mailbox_recycle` is
 * cheaper there).
 *
 * @param payload_moved true if the caller has moved the payload out; with false the core calls the
 *         subscription's `drop`
 *
 * Threads: the holder. Progress: lock-free. Ownership: ends here.
 */
EVC_API void evc_envelope_release(struct evc_envelope *envelope, bool payload_moved);

EVC_END_DECLS
#endif
