/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * Depth per lane without a counter that producers would have to share.
 *
 * The consumer counts what it has dealt. What it has not dealt is counted here by walking the
 * streams, as a reader only: `moves` works like a sequence lock (H. Boehm, "Can seqlocks get along
 * with programming language memory models?", 2012). If it changed, envelopes that were walked may have
 * been freed meanwhile, and the figure is thrown away. Their memory is still there: slots are recycled
 * in place, and a slab that a trim frees waits for a grace period, which this read section holds up.
 */
#include "platform/domain.h"
#include "mailbox/mailbox_private.h"

/* A consumer that moves all the time leaves little undealt: after this its own counts are enough. */
#define ATTEMPTS 8u
/* How often a walk looks whether it is still worth while. */
#define CHECK_EVERY 256u

static bool moved(struct evc_mailbox *mailbox, uint32_t moves)
{
	/* Pairs with the release fence in moves_begin: our reads before this one. */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&mailbox->moves, memory_order_relaxed) != moves;
}

/* An attempt to count. */
struct reading {
	struct evc_mailbox *mailbox;
	uint32_t moves;
	unsigned steps;
	uint64_t *counts;
};

/* Counts one envelope. False if the consumer moved. */
static bool count(struct reading *reading, struct evc_envelope *envelope)
{
	unsigned lane = evc_slot_lane(envelope);
	unsigned events = 1;

	if (lane >= EVC_SLOT_BATCH) {
		lane -= EVC_SLOT_BATCH;
		/* Relaxed, as the lane: published by P2 with it. */
		events = atomic_load_explicit(&envelope->batch_count, memory_order_relaxed);
	}
	if (lane >= EVC_LANE_COUNT ||
	    (++reading->steps % CHECK_EVERY == 0 && moved(reading->mailbox, reading->moves)))
		return false;
	reading->counts[lane] += events;
	return true;
}

static bool count_chain(struct reading *reading, struct evc_envelope *slot)
{
	struct evc_envelope *envelope =
		(struct evc_envelope *)(uintptr_t)evc_slot_time(slot);

	/* Before the first is touched: had the slot been used anew, this might be anything. */
	if (moved(reading->mailbox, reading->moves))
		return false;
	for (; envelope != NULL; envelope = evc_slot_next(envelope)) {
		/*
		 * An envelope that its consumer has taken from a stream and posted on may be a slot in use
		 * again by now, whose link is a ticket.
		 */
		if (evc_slot_is_ticket(envelope) || !count(reading, envelope))
			return false;
	}
	return true;
}

static bool count_stream(struct reading *reading, struct evc_stream *stream, uint64_t dealt)
{
	/* Acquire, pairs with evc_stream_peek and evc_stream_take. */
	struct evc_segment *segment =
		atomic_load_explicit(&stream->read_segment, memory_order_acquire);
	uint32_t position = atomic_load_explicit(&stream->read_position, memory_order_acquire);

	/* Before a segment is touched, here and below: it was in use when the consumer last moved. */
	while (segment != NULL && !moved(reading->mailbox, reading->moves)) {
		uint32_t capacity =
			atomic_load_explicit(&segment->capacity, memory_order_relaxed);

		for (; position < capacity; position++) {
			struct evc_envelope *slot = &segment->slots[position];
			/* Acquire, pairs with P2. */
			struct evc_envelope *next =
				atomic_load_explicit(&slot->next, memory_order_acquire);

			if (!evc_slot_is_ticket(next) || (uintptr_t)next < evc_ticket_tag(dealt))
				return true;
			if (!(evc_slot_lane(slot) == EVC_SLOT_CHAIN ? count_chain(reading, slot)
								    : count(reading, slot)))
				return false;
		}
		/* Acquire, pairs with evc_stream_advance. */
		segment = atomic_load_explicit(&segment->next, memory_order_acquire);
		position = 0;
	}
	return segment == NULL;
}

static bool attempt(struct evc_mailbox *mailbox, uint64_t counts[EVC_LANE_COUNT])
{
	struct reading reading = {
		.mailbox = mailbox,
		/* Pairs with moves_end. */
		.moves = atomic_load_explicit(&mailbox->moves, memory_order_acquire),
		.counts = counts,
	};
	uint64_t dealt;

	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		counts[lane] = 0;
	if (reading.moves % 2 != 0)
		return false;
	dealt = atomic_load_explicit(&mailbox->dealt, memory_order_relaxed);
	/* Acquire, pairs with add_stream. */
	for (struct evc_stream *stream =
		     atomic_load_explicit(&mailbox->streams, memory_order_acquire);
	     stream != NULL; stream = stream->next_in_mailbox)
		if (!count_stream(&reading, stream, dealt))
			return false;
	/* Read within the attempt, so that an envelope is not counted both dealt and undealt. */
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		counts[lane] += atomic_load_explicit(&mailbox->lanes.depths[lane],
						     memory_order_relaxed);
	return !moved(mailbox, reading.moves);
}

void evc_mailbox_depths(struct evc_mailbox *mailbox, uint64_t depths[EVC_LANE_COUNT])
{
	for (unsigned turn = 0; turn < ATTEMPTS; turn++) {
		bool done;

		/* One section for each attempt: a long walk must not hold up every grace period. */
		evc_domain_enter();
		done = attempt(mailbox, depths);
		evc_domain_leave();
		if (done)
			return;
	}
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		depths[lane] = atomic_load_explicit(&mailbox->lanes.depths[lane],
						    memory_order_relaxed);
}
#endif
