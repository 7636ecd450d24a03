/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* D1 to D3 in a few lines: a mailbox as one thread that posts and takes sees it. */
#ifndef EVC_SUITE_MODEL_H
#define EVC_SUITE_MODEL_H

#include "suite.h"

#define MODEL_MOST 1024u

struct model {
	uint16_t first[EVC_LANE_COUNT], end[EVC_LANE_COUNT];
	uint64_t values[EVC_LANE_COUNT][MODEL_MOST];
};

static inline void model_post(struct model *model, unsigned lane, uint64_t value)
{
	model->values[lane][model->end[lane]++] = value;
}

static inline bool model_take(struct model *model, unsigned *lane, uint64_t *value)
{
	for (unsigned l = 0; l < EVC_LANE_COUNT; l++) {
		if (model->first[l] == model->end[l])
			continue;
		*lane = l;
		*value = l < EVC_LANE_FIRST_QUEUE ? model->values[l][--model->end[l]]
						  : model->values[l][model->first[l]++];
		if (model->first[l] == model->end[l])
			model->first[l] = model->end[l] = 0;
		return true;
	}
	return false;
}

#endif
