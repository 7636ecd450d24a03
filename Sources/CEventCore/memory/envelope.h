/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Making and ending envelopes, for the files that hold them. */
#ifndef EVC_ENVELOPE_PRIVATE_H
#define EVC_ENVELOPE_PRIVATE_H

#include "memory/box.h"
#include "memory/subscription.h"
#include "memory/thread_record.h"

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

/* The header of a new envelope with an inline payload. */
static inline void evc_envelope_init(struct evc_envelope *envelope, struct evc_subscription *subscription,
				     enum evc_lane lane)
{
	evc_slot_set_next(envelope, NULL);
	envelope->subscription = subscription;
	envelope->time = 0;
	envelope->generation = 0;
	envelope->lane = (uint8_t)lane;
	envelope->flags = 0;
	envelope->events = 1;
}

/* Ends the envelopes of a chain, and their payloads. */
void evc_chain_end(const struct evc_chain *chain);

#endif
