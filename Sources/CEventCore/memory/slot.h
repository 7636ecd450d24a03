/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The 64-byte slot: an envelope while it is in use, a link of a chain while it is free.
 *
 *   bytes   in use                              free, first of a chain
 *   0       ticket; then next envelope of lane  next slot of the chain
 *   8       subscription                        first slot of the next chain
 *   16      time of dispatch, or first of a     -
 *           posted chain
 *   24      generation; of a token whether it    slots in the chain
 *           has a state (latest.h)
 *   28      lane                                -
 *   29      flags                               -
 *   30      index in its segment, from 1        0
 *   31      of a batch: how many events it had  -
 *   32      payload, or the pointer to its box  -
 *
 * `next`, `time`, `lane` and `batch_count` are atomic because evc_mailbox_depths reads them of
 * envelopes that the consumer may be recycling at that moment; it throws such a reading away
 * (mailbox_depth.c). All other fields belong to the envelope's holder alone. A slot is one of a
 * stream's segment (stream.h), or one of a thread's pool (pool_private.h), whose index is 0.
 *
 * Sources/EventCore/Core/EnvelopeLayout.swift mirrors the offsets; a test compares them.
 */
#ifndef EVC_SLOT_H
#define EVC_SLOT_H

#include "platform/compiler.h"
#include "eventcore/envelope.h"

#include <assert.h>
#include <stdatomic.h>

struct evc_box;

/* Several events of one subscription and lane, whose payloads lie side by side in a box (batch.h). */
struct evc_batch {
	struct evc_box *box;
	/* Of the event that is taken next, or was taken last and is being delivered. */
	unsigned char *payload;
	/* From one payload to the next to be taken, in bytes: backwards on a stack. */
	int32_t step;
	/* How many have not been taken. */
	uint32_t left;
};

struct evc_envelope {
	_Atomic(struct evc_envelope *) next;
	union {
		struct evc_subscription *subscription;
		struct evc_envelope *next_chain;
	};
	_Atomic uint64_t time;
	union {
		uint32_t generation;
		uint32_t chain_count;
	};
	_Atomic uint8_t lane;
	uint8_t flags;
	uint8_t index;
	_Atomic uint8_t batch_count;
	union {
		_Alignas(EVC_INLINE_ALIGNMENT) unsigned char bytes[EVC_INLINE_SIZE];
		struct evc_box *box;
		struct evc_batch batch;
	};
};

/* The payload lies in a box. */
#define EVC_ENVELOPE_BOXED 1u
/* No event: a place in the lanes of a latest-only subscription's event (latest.h). Inside a mailbox only. */
#define EVC_ENVELOPE_TOKEN 2u
/* Holds a reference of its latest-only subscription, to be let go at its end. */
#define EVC_ENVELOPE_HOLDS 4u
/* Several events. Always with BOXED, so that who looks for that alone finds it. */
#define EVC_ENVELOPE_BATCH 8u
/* In `lane`: no event itself; stands for the posted chain that begins at `time`. */
#define EVC_SLOT_CHAIN EVC_LANE_COUNT
/* In `lane`, until it is dealt: a batch for the lane that is so much less. */
#define EVC_SLOT_BATCH (EVC_LANE_COUNT + 1u)

static_assert(sizeof(struct evc_envelope) == 64, "a slot is one cache line");
static_assert(offsetof(struct evc_envelope, bytes) == 32, "see EnvelopeLayout.swift");
static_assert(offsetof(struct evc_envelope, time) == 16, "see EnvelopeLayout.swift");
static_assert(offsetof(struct evc_envelope, generation) == 24, "see EnvelopeLayout.swift");
static_assert(offsetof(struct evc_envelope, lane) == 28, "see EnvelopeLayout.swift");
static_assert(offsetof(struct evc_envelope, batch.box) == offsetof(struct evc_envelope, box),
	      "a batch is boxed");

/* Relaxed: the link is published by whoever publishes the envelope (stream.h, pool.c). */
static inline struct evc_envelope *evc_slot_next(struct evc_envelope *slot)
{
	return atomic_load_explicit(&slot->next, memory_order_relaxed);
}

static inline void evc_slot_set_next(struct evc_envelope *slot, struct evc_envelope *next)
{
	atomic_store_explicit(&slot->next, next, memory_order_relaxed);
}

/*
 * The slot that is needed soon lies a little further on: always in a segment, for the most part in a pool
 * (pool.c). A wrong guess costs nothing. For writing: it was written last on the other core, and will be
 * written here. In phases of 64 events a dispatch from C takes 19 instead of 31 ns.
 */
static inline void evc_slot_prefetch(const struct evc_envelope *slot)
{
	evc_prefetch_write((const char *)slot + 4 * sizeof(struct evc_envelope));
}

/* Relaxed: by the holder, before the post or after the take. */
static inline uint64_t evc_slot_time(const struct evc_envelope *slot)
{
	return atomic_load_explicit(&((struct evc_envelope *)slot)->time, memory_order_relaxed);
}

static inline void evc_slot_set_time(struct evc_envelope *slot, uint64_t time)
{
	atomic_store_explicit(&slot->time, time, memory_order_relaxed);
}

/* Relaxed: written by the holder before the post, which publishes it. */
static inline unsigned evc_slot_lane(struct evc_envelope *slot)
{
	return atomic_load_explicit(&slot->lane, memory_order_relaxed);
}

static inline void evc_slot_set_lane(struct evc_envelope *slot, unsigned lane)
{
	atomic_store_explicit(&slot->lane, (uint8_t)lane, memory_order_relaxed);
}

#endif
