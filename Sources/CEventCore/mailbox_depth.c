/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * Depth per lane without a counter that producers would have to share.
 *
 * The consumer counts what it has dealt. What it has not dealt is counted here by walking `pending` and
 * the inbox, as a reader only: `moves` works like a sequence lock (H. Boehm, "Can seqlocks get along
 * with programming language memory models?", 2012). If it changed, envelopes that were walked may have
 * been freed meanwhile, and the figure is thrown away. Their memory is still there: slots are recycled
 * in place, and a slab that a trim frees waits for a grace period, which this read section holds up.
 */
#include "domain.h"
#include "mailbox_private.h"

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

/* Counts from `envelope` to the end of the list as it is linked now. False if the consumer moved. */
static bool walk(struct evc_mailbox *mailbox, struct evc_envelope *envelope, uint32_t moves,
		 uint64_t counts[EVC_LANE_COUNT])
{
	for (unsigned steps = 1; envelope != NULL; steps++) {
		unsigned lane = evc_slot_lane(envelope);

		if (lane >= EVC_LANE_COUNT || (steps % CHECK_EVERY == 0 && moved(mailbox, moves)))
			return false;
		counts[lane]++;
		/* Acquire, pairs with evc_inbox_post: the lane before the link to it. */
		envelope = atomic_load_explicit(&envelope->next, memory_order_acquire);
		/* `pending` ends where producers linked on to the stub's successors' list. */
		if (envelope == &mailbox->inbox.stub)
			return false;
	}
	return true;
}

static bool attempt(struct evc_mailbox *mailbox, uint64_t counts[EVC_LANE_COUNT])
{
	/* Pairs with moves_end. */
	uint32_t moves = atomic_load_explicit(&mailbox->moves, memory_order_acquire);
	struct evc_envelope *first;

	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		counts[lane] = 0;
	if (moves % 2 != 0)
		return false;
	first = atomic_load_explicit(&mailbox->pending, memory_order_acquire);
	if (!walk(mailbox, first, moves, counts))
		return false;
	/* Acquire, pairs with evc_inbox_post. */
	first = atomic_load_explicit(&mailbox->inbox.stub.next, memory_order_acquire);
	if (!walk(mailbox, first, moves, counts))
		return false;
	/* Read within the attempt, so that an envelope is not counted both dealt and undealt. */
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		counts[lane] += atomic_load_explicit(&mailbox->lanes.depths[lane],
						     memory_order_relaxed);
	return !moved(mailbox, moves);
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
