/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Making and ending envelopes and their boxes, for the files that hold them. */
#ifndef EVC_ENVELOPE_PRIVATE_H
#define EVC_ENVELOPE_PRIVATE_H

#include "memory/subscription.h"
#include "memory/thread_record.h"

/*
 * A box: a payload that does not fit into a slot, shared by all receivers of its event.
 *
 * Synchronization: the producer writes payload and `references` before the first post. Each holder counts
 * down with acquire-release, so that the last one ends the payload after the others have read it. It is only
 * read meanwhile, except by a holder that finds itself the only one.
 */
struct evc_box {
	_Atomic uint32_t references;
	/* Where the payload begins, in bytes; if that is more than 16, it is also the payload's alignment. */
	uint32_t offset;
	/* The size of the whole block, including this header. */
	uint64_t size;
};

static_assert(sizeof(struct evc_box) == 16, "payloads of alignment 16 follow the header");

static inline void *evc_box_payload(struct evc_box *box)
{
	return (char *)box + box->offset;
}

/* The largest payload, in bytes, of an alignment of up to 16, that comes from a slab pool. */
#define EVC_BOX_POOLED_MAX (((size_t)64 << (EVC_CLASS_COUNT - 1)) - sizeof(struct evc_box))

/* A box for an event of a lane. NULL = out of memory. Threads: the record's. */
struct evc_box *evc_box_create(struct evc_thread_record *record, unsigned lane, size_t size, size_t alignment,
			       uint32_t references);

/* Frees the block; its payload has ended. `cache` may be NULL. */
void evc_box_free(struct evc_box *box, struct evc_return_cache *cache);

static inline bool evc_payload_is_boxed(size_t size, size_t alignment)
{
	return size > EVC_INLINE_SIZE || alignment > EVC_INLINE_ALIGNMENT;
}

static inline void *evc_envelope_payload_inline(struct evc_envelope *envelope)
{
	if (evc_likely(!(envelope->flags & EVC_ENVELOPE_BOXED)))
		return envelope->bytes;
	return envelope->flags & EVC_ENVELOPE_BATCH ? envelope->batch.payload
						    : evc_box_payload(envelope->box);
}

/*
 * Makes the envelope of a batch, whose payloads lie `step` apart, with a box of `size` bytes for them. The batch is
 * empty, and the header is still to be written. NULL = out of memory. The record's thread.
 */
struct evc_envelope *evc_batch_create(struct evc_thread_record *record, unsigned lane, size_t size, size_t alignment,
				      size_t step);

/* Ends the payloads of a batch that were not taken, and gives the box back. `cache` may be NULL. */
void evc_batch_end(struct evc_envelope *envelope, struct evc_return_cache *cache);

/* True if no other envelope shares the payload. */
static inline bool evc_envelope_owns_payload(struct evc_envelope *envelope)
{
	/* Acquire, pairs with the countdown in evc_envelope_end: the others' reads come before our move. */
	return !(envelope->flags & EVC_ENVELOPE_BOXED) ||
	       atomic_load_explicit(&envelope->box->references, memory_order_acquire) == 1;
}

/* Ends the payload unless it was moved out, and returns box and slot. `cache` may be NULL. */
static inline void evc_envelope_end(struct evc_envelope *envelope, bool payload_moved,
				    struct evc_return_cache *cache)
{
	struct evc_subscription *subscription = envelope->subscription;
	bool holds = (envelope->flags & EVC_ENVELOPE_HOLDS) != 0;

	if (evc_likely(!(envelope->flags & EVC_ENVELOPE_BOXED))) {
		if (!payload_moved && subscription->drop != NULL)
			subscription->drop(subscription->context, envelope->bytes);
	} else if (envelope->flags & EVC_ENVELOPE_BATCH) {
		evc_batch_end(envelope, cache);
	} else {
		struct evc_box *box = envelope->box;

		/* Pairs with itself and with evc_envelope_owns_payload. */
		if (atomic_fetch_sub_explicit(&box->references, 1, memory_order_acq_rel) == 1) {
			if (!payload_moved && subscription->drop != NULL)
				subscription->drop(subscription->context, evc_box_payload(box));
			evc_box_free(box, cache);
		}
	}
	if (cache != NULL)
		evc_return_cache_give_smallest(cache, envelope);
	else
		evc_pool_give(envelope);
	if (evc_unlikely(holds))
		evc_envelope_let_go(subscription);
}

/* Writes the header of a new envelope, but for its link. */
static inline void evc_envelope_init(struct evc_envelope *envelope, struct evc_subscription *subscription,
				     uint64_t time, uint32_t generation, unsigned lane, unsigned flags)
{
	envelope->subscription = subscription;
	envelope->time = time;
	envelope->generation = generation;
	envelope->lane = (uint8_t)lane;
	envelope->flags = (uint8_t)flags;
	envelope->events = 1;
}

/* Ends the envelopes of a chain, and their payloads. */
void evc_chain_end(const struct evc_chain *chain);

#endif
