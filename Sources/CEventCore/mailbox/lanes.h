/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The ten lanes of a mailbox, behind the streams: lists that only the consumer touches.
 *
 * `depths` is written by the consumer and read by anybody (relaxed: a momentary figure). Everything
 * else belongs to the consumer. Ownership: the lanes hold what was put and not yet taken.
 */
#ifndef EVC_LANES_H
#define EVC_LANES_H

#include "memory/slot.h"

struct evc_lanes {
	struct {
		struct evc_envelope *head;
		struct evc_envelope *tail;
	} lane[EVC_LANE_COUNT];
	/* One bit for each lane that holds something. */
	uint32_t occupied;
	_Atomic uint32_t depths[EVC_LANE_COUNT];
};

static inline void evc_lanes_count(struct evc_lanes *lanes, unsigned lane, uint32_t change)
{
	atomic_store_explicit(&lanes->depths[lane],
			      atomic_load_explicit(&lanes->depths[lane], memory_order_relaxed) +
				      change,
			      memory_order_relaxed);
}

/* Puts an envelope behind (queue) or before (stack) the others of its lane. */
static inline void evc_lanes_put(struct evc_lanes *lanes, struct evc_envelope *envelope)
{
	unsigned lane = evc_slot_lane(envelope);
	uint32_t bit = 1u << lane;

	if (lane < EVC_LANE_FIRST_QUEUE) {
		evc_slot_set_next(envelope, (lanes->occupied & bit) ? lanes->lane[lane].head : NULL);
		lanes->lane[lane].head = envelope;
	} else {
		evc_slot_set_next(envelope, NULL);
		if (lanes->occupied & bit)
			evc_slot_set_next(lanes->lane[lane].tail, envelope);
		else
			lanes->lane[lane].head = envelope;
		lanes->lane[lane].tail = envelope;
	}
	lanes->occupied |= bit;
	evc_lanes_count(lanes, lane, 1);
}

/* The same for a batch, which until now had its lane in another form. */
static inline void evc_lanes_put_batch(struct evc_lanes *lanes, struct evc_envelope *envelope)
{
	unsigned lane = evc_slot_lane(envelope) - EVC_SLOT_BATCH;

	evc_slot_set_lane(envelope, lane);
	evc_lanes_put(lanes, envelope);
	evc_lanes_count(lanes, lane, envelope->batch.left - 1);
}

/* Puts a batch back, of which one event was taken and others are left: it is the next of its lane again. */
static inline void evc_lanes_put_back(struct evc_lanes *lanes, struct evc_envelope *envelope)
{
	unsigned lane = evc_slot_lane(envelope);
	uint32_t bit = 1u << lane;

	evc_slot_set_next(envelope, (lanes->occupied & bit) ? lanes->lane[lane].head : NULL);
	if (!(lanes->occupied & bit))
		lanes->lane[lane].tail = envelope;
	lanes->lane[lane].head = envelope;
	lanes->occupied |= bit;
}

/* The first lane that holds something; there must be one. */
static inline unsigned evc_lanes_first(const struct evc_lanes *lanes)
{
	return (unsigned)__builtin_ctz(lanes->occupied);
}

/* Takes the first envelope of a lane that holds one. */
static inline struct evc_envelope *evc_lanes_take(struct evc_lanes *lanes, unsigned lane)
{
	struct evc_envelope *envelope = lanes->lane[lane].head;
	struct evc_envelope *next = evc_slot_next(envelope);

	lanes->lane[lane].head = next;
	/* Behind a backlog it may be far away: fetch it while this one is handled. */
	__builtin_prefetch(next, 1);
	if (next == NULL)
		lanes->occupied &= ~(1u << lane);
	evc_lanes_count(lanes, lane, (uint32_t)-1);
	return envelope;
}

/*
 * The lanes whose new posts must come before the next envelope of `lane`: all before it, and itself if
 * it is a stack, where the newest comes first.
 */
static inline uint32_t evc_lanes_urgent(unsigned lane)
{
	return ((1u << lane) - 1) | (lane < EVC_LANE_FIRST_QUEUE ? 1u << lane : 0);
}

#endif
