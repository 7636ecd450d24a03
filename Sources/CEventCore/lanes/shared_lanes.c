/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "lanes/shared_lanes.h"

bool evc_shared_lanes_open(struct evc_shared_lanes *lanes)
{
	for (unsigned i = 0; i < EVC_SHARED_QUEUES; i++) {
		if (evc_shared_queue_open(&lanes->queues[i]))
			continue;
		while (i-- > 0)
			evc_shared_queue_close(&lanes->queues[i]);
		return false;
	}
	return true;
}

void evc_shared_lanes_close(struct evc_shared_lanes *lanes)
{
	for (unsigned i = 0; i < EVC_SHARED_QUEUES; i++)
		evc_shared_queue_close(&lanes->queues[i]);
}

bool evc_shared_lanes_have_some(struct evc_shared_lanes *lanes)
{
	bool have_some = false;

	for (unsigned i = 0; i < EVC_LANE_FIRST_QUEUE; i++)
		if (!evc_shared_stack_is_empty(&lanes->stacks[i]))
			return true;
	evc_domain_enter();
	for (unsigned i = 0; i < EVC_SHARED_QUEUES && !have_some; i++)
		have_some = evc_shared_queue_has_some(&lanes->queues[i]);
	evc_domain_leave();
	return have_some;
}

void evc_shared_lanes_add_depths(struct evc_shared_lanes *lanes, uint64_t depths[EVC_LANE_COUNT])
{
	evc_domain_enter();
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		depths[lane] += lane < EVC_LANE_FIRST_QUEUE
					? evc_shared_stack_depth(&lanes->stacks[lane])
					: evc_shared_queue_depth(&lanes->queues[lane - EVC_LANE_FIRST_QUEUE]);
	evc_domain_leave();
}
#endif
