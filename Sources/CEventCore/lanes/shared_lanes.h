/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Ten lanes with any number of producers and takers: five stacks and five queues, whose headers have the proofs.
 * A shared mailbox has them, and so has a mailbox whose overflow policy takes events out again.
 */
#ifndef EVC_SHARED_LANES_H
#define EVC_SHARED_LANES_H

#include "lanes/shared_queue.h"
#include "lanes/shared_stack.h"

#define EVC_SHARED_QUEUES (EVC_LANE_COUNT - EVC_LANE_FIRST_QUEUE)

struct evc_shared_lanes {
	struct evc_shared_stack stacks[EVC_LANE_FIRST_QUEUE];
	struct evc_shared_queue queues[EVC_SHARED_QUEUES];
};

/* The lanes' memory is zeroed. False = out of memory. */
bool evc_shared_lanes_open(struct evc_shared_lanes *lanes);
/* The lanes are empty and no longer used. */
void evc_shared_lanes_close(struct evc_shared_lanes *lanes);

/* True unless each lane was empty at some moment during the call. */
bool evc_shared_lanes_have_some(struct evc_shared_lanes *lanes);

/* Adds how many envelopes wait in each lane; exact while nothing is put or taken. */
void evc_shared_lanes_add_depths(struct evc_shared_lanes *lanes, uint64_t depths[EVC_LANE_COUNT]);

/* Puts envelopes of one lane. For a queue the thread has a segment set aside (spares.h). */
static inline void evc_shared_lanes_put(struct evc_shared_lanes *lanes, unsigned lane, struct evc_envelope *first,
					uint32_t count)
{
	if (lane < EVC_LANE_FIRST_QUEUE) {
		evc_shared_stack_put(&lanes->stacks[lane], first, count);
		return;
	}
	evc_domain_enter();
	evc_shared_queue_put(&lanes->queues[lane - EVC_LANE_FIRST_QUEUE], first, count);
	evc_domain_leave();
}

/* Takes the envelope of one lane that is next by D2 or D3, or NULL. Within a section. */
static inline struct evc_envelope *evc_shared_lanes_take_of(struct evc_shared_lanes *lanes, unsigned lane)
{
	return lane < EVC_LANE_FIRST_QUEUE
		       ? evc_shared_stack_take(&lanes->stacks[lane])
		       : evc_shared_queue_take(&lanes->queues[lane - EVC_LANE_FIRST_QUEUE]);
}

/* Takes the first envelope of the lanes before `limit`; NULL if they are empty. */
static inline struct evc_envelope *evc_shared_lanes_take(struct evc_shared_lanes *lanes, unsigned limit)
{
	struct evc_envelope *envelope = NULL;
	unsigned lane = 0;

	evc_domain_enter();
	for (; lane < limit && lane < EVC_LANE_FIRST_QUEUE && envelope == NULL; lane++)
		envelope = evc_shared_stack_take(&lanes->stacks[lane]);
	for (; lane < limit && envelope == NULL; lane++)
		envelope = evc_shared_queue_take(&lanes->queues[lane - EVC_LANE_FIRST_QUEUE]);
	evc_domain_leave();
	return envelope;
}

/*
 * Takes an envelope of the last lane from `least` on that is not empty: of a queue the oldest, of a stack the
 * newest, below which a lock-free stack cannot be reached. NULL if all of them are empty.
 */
static inline struct evc_envelope *evc_shared_lanes_take_last(struct evc_shared_lanes *lanes, unsigned least)
{
	struct evc_envelope *envelope = NULL;

	evc_domain_enter();
	for (unsigned lane = EVC_LANE_COUNT; lane > least && envelope == NULL; lane--)
		envelope = evc_shared_lanes_take_of(lanes, lane - 1);
	evc_domain_leave();
	return envelope;
}

#endif
