/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The 64-byte slot of an envelope.
 *
 *   bytes   content
 *   0       next envelope: of a chain, of a lane's inbox, of a lane
 *   8       subscription
 *   16      time of dispatch
 *   24      generation; its highest bit is the observer's mark
 *   28      lane
 *   29      flags
 *   30      how many events the batch had; 1 for other envelopes
 *   32      payload, or the pointer to its box, or a batch; of a token its cell
 *
 * `next` is atomic because a taker of a shared mailbox may read the link of an envelope that another has
 * taken; it then discards what it read (lanes/shared_stack.h). All other fields belong to the holder alone.
 *
 * Sources/EventCore/Routing/EnvelopeLayout.swift mirrors the offsets; a test compares them.
 */
#ifndef EVC_SLOT_H
#define EVC_SLOT_H

#include "platform/compiler.h"
#include "eventcore/envelope.h"

#include <assert.h>
#include <stdatomic.h>

struct evc_box;
struct evc_cell;

/*
 * A batch: several events of one subscription and lane in one envelope, whose payloads lie side by side in a box. It
 * is one post, and the consumer takes its events one by one: after each it decides anew which is next (D1), so that
 * more urgent ones come between. The envelope's holder owns the payloads that were not taken.
 *
 * Why: an envelope for each event moves a cache line of 64 bytes for, say, 24, and both sides pay for the slot. In
 * batches of 64 a 24-byte event costs 25 lines instead of 64.
 *
 * Only a mailbox that says so gets batches (`evc_mailbox_options.batches`), since its consumer does not get an
 * envelope for each event that it could keep. Events for several receivers, and payloads that do not fit into a pooled
 * box together, travel in an envelope each.
 */
struct evc_batch {
	struct evc_box *box;
	/* The payload of the event that is taken next; while one is delivered, its own. */
	unsigned char *payload;
	/* Behind the last one. */
	unsigned char *end;
	/* The distance to the next payload, in bytes; negative on a stack. */
	int32_t step;
};

struct evc_envelope {
	_Atomic(struct evc_envelope *) next;
	struct evc_subscription *subscription;
	uint64_t time;
	uint32_t generation;
	uint8_t lane;
	uint8_t flags;
	uint8_t events;
	union {
		_Alignas(EVC_INLINE_ALIGNMENT) unsigned char bytes[EVC_INLINE_SIZE];
		struct evc_box *box;
		struct evc_batch batch;
		/* Of a token (latest.h). */
		struct evc_cell *cell;
	};
};

/*
 * The mark of an observer. It lies in the generation, which a consumer compares anyway: events that are not marked
 * pay nothing for it.
 */
#define EVC_GENERATION_MARK UINT32_C(0x80000000)

/* The payload lies in a box. */
#define EVC_ENVELOPE_BOXED 1u
/* Not an event but a token: the position of a latest-only event (latest.h). Inside a mailbox only. */
#define EVC_ENVELOPE_TOKEN 2u
/* Holds a reference of its latest-only subscription, which is released when the envelope ends. */
#define EVC_ENVELOPE_HOLDS 4u
/* Several events. Set together with BOXED, so that code that tests BOXED alone finds it. */
#define EVC_ENVELOPE_BATCH 8u
/* An event without a place in its bounded mailbox (`evc_subscription_options.unbounded`). Inside of it only. */
#define EVC_ENVELOPE_EXEMPT 16u
/* A balancer has promised it to its receiver (balancer/load.h). */
#define EVC_ENVELOPE_PROMISED 32u

static_assert(sizeof(struct evc_envelope) == 64, "a slot is one cache line");
static_assert(offsetof(struct evc_envelope, bytes) == 32, "see EnvelopeLayout.swift");
static_assert(offsetof(struct evc_envelope, time) == 16, "see EnvelopeLayout.swift");
static_assert(offsetof(struct evc_envelope, generation) == 24, "see EnvelopeLayout.swift");
static_assert(offsetof(struct evc_envelope, lane) == 28, "see EnvelopeLayout.swift");
static_assert(offsetof(struct evc_envelope, batch.box) == offsetof(struct evc_envelope, box),
	      "a batch is boxed");

/* Relaxed: the link is published together with the envelope (mailbox_private.h). */
static inline struct evc_envelope *evc_slot_next(struct evc_envelope *slot)
{
	return atomic_load_explicit(&slot->next, memory_order_relaxed);
}

static inline void evc_slot_set_next(struct evc_envelope *slot, struct evc_envelope *next)
{
	atomic_store_explicit(&slot->next, next, memory_order_relaxed);
}

/* The distance from one payload of a batch to the next, in bytes. */
static inline size_t evc_batch_stride(size_t size, size_t alignment)
{
	if (size == 0)
		return 1;
	return alignment > 1 ? (size + alignment - 1) & ~(alignment - 1) : size;
}

/* How many events of a batch have not been taken, while none is delivered. It costs a division. */
static inline uint32_t evc_batch_left(const struct evc_batch *batch)
{
	return (uint32_t)((batch->end - batch->payload) / batch->step);
}

/* True if exactly one event has not been taken, while none is delivered. */
static inline bool evc_batch_is_last(const struct evc_batch *batch)
{
	return batch->payload + batch->step == batch->end;
}

/* How many slots ahead a line is prefetched. */
#define EVC_SLOTS_AHEAD 4

/*
 * Fetches the line of the slot that is probably needed soon, for writing. In phases of 64 events a dispatch
 * from C takes 19 instead of 31 ns.
 */
static inline void evc_slot_prefetch(const struct evc_envelope *slot)
{
	evc_prefetch_write((const char *)slot + EVC_SLOTS_AHEAD * sizeof(struct evc_envelope));
}

#endif
