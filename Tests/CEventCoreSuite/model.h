/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * D1 to D3 in a few lines: a mailbox as one thread that posts and takes sees it; and every sequence of a few posts,
 * interleaved with takes in every way.
 */
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

/* A step of a sequence that is not a lane. */
#define MODEL_TAKE 100u

struct model_search {
	const unsigned *lanes;
	unsigned lane_count;
	unsigned posts;
	/* Called with each sequence of so many steps, which ends with a take that must find nothing. */
	const char *(*replay)(struct model_search *search, unsigned count);
	/* One entry per step: a lane, or MODEL_TAKE. */
	unsigned steps[16];
};

static const unsigned model_every_lane[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };

/* Extends the sequence by every possible step; replays it when it is complete and nothing waits. From 0, 0, 0. */
static inline const char *model_extend(struct model_search *search, unsigned at, unsigned posted, unsigned waiting)
{
	if (posted == search->posts && waiting == 0) {
		/* One more, which must find nothing. */
		search->steps[at] = MODEL_TAKE;
		return search->replay(search, at + 1);
	}
	if (waiting > 0) {
		search->steps[at] = MODEL_TAKE;
		EXPECT_NONE(model_extend(search, at + 1, posted, waiting - 1));
	}
	if (posted < search->posts) {
		for (unsigned i = 0; i < search->lane_count; i++) {
			search->steps[at] = search->lanes[i];
			EXPECT_NONE(model_extend(search, at + 1, posted + 1, waiting + 1));
		}
	}
	return NULL;
}

/* The steps as a text. Bit i of `marked`: an o stands before post i. */
static inline const char *model_describe(const struct model_search *search, unsigned count, unsigned marked)
{
	static _Thread_local char text[64];
	unsigned used = 0, post = 0;

	for (unsigned i = 0; i < count; i++) {
		if (search->steps[i] != MODEL_TAKE && (marked >> post++) & 1u)
			text[used++] = 'o';
		text[used++] = search->steps[i] == MODEL_TAKE ? '-' : (char)('0' + search->steps[i]);
	}
	text[used] = '\0';
	return text;
}

#endif
