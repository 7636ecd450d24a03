/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * D1 to D3, exhaustively: every sequence of a few posts, interleaved with takes in every way, against the
 * model; in each of the ways in which the consumer may learn of a post (mailbox_private.h).
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/mailbox_private.h"
#include "model.h"

enum mode { LOOKING, RELYING, AS_IT_COMES };

struct search {
	struct suite_receiver receiver;
	enum mode mode;
	struct model_search steps;
};

/* The first and last lane of both kinds, and the neighbours of the lane that is relied on. */
static const unsigned some_lanes[] = { 0, 4, 5, 7, 8 };

static const char *take_and_compare(struct search *search, struct model *model, unsigned at)
{
	unsigned lane = 0, model_lane = 0;
	uint64_t value = 0, model_value = 0;
	bool expected = model_take(model, &model_lane, &model_value);
	enum evc_status status = suite_take(&search->receiver, &lane, &value);

	EXPECT(status == (expected ? EVC_OK : EVC_EMPTY) && lane == model_lane &&
		       value == model_value,
	       "steps %s (lanes, - for a take): expected lane %u post %u, found lane %u post %u, %s",
	       model_describe(&search->steps, at, 0), model_lane, (unsigned)model_value, lane, (unsigned)value,
	       evc_status_text(status));
	return NULL;
}

/* Puts the mailbox into the mode that is tested; the sequences themselves move it out of it. */
static const char *prepare(struct search *search)
{
	struct evc_mailbox *mailbox = search->receiver.mailbox;

	if (search->mode == AS_IT_COMES)
		return NULL;
	/* No run of takes may change the mode later. */
	mailbox->run_length = 0;
	if (search->mode == RELYING && mailbox->relied != EVC_LANE_QUEUE_NORMAL) {
		for (unsigned i = 0; i <= EVC_RUN; i++)
			EXPECT_OK(suite_post(&search->receiver, EVC_LANE_QUEUE_NORMAL, i));
		for (unsigned i = 0; i <= EVC_RUN; i++) {
			unsigned lane;
			uint64_t value;

			EXPECT_OK(suite_take(&search->receiver, &lane, &value));
		}
	}
	EXPECT_EQUAL(mailbox->relied, search->mode == RELYING ? EVC_LANE_QUEUE_NORMAL : 0,
		     "lanes that need no look");
	return NULL;
}

static const char *replay(struct model_search *steps, unsigned count)
{
	struct search *search = evc_container_of(steps, struct search, steps);
	static struct model model;
	uint64_t posted = 0;

	EXPECT_NONE(prepare(search));
	for (unsigned i = 0; i < count; i++) {
		if (steps->steps[i] == MODEL_TAKE) {
			EXPECT_NONE(take_and_compare(search, &model, i + 1));
		} else {
			EXPECT_OK(suite_post(&search->receiver, steps->steps[i], ++posted));
			model_post(&model, steps->steps[i], posted);
		}
	}
	return NULL;
}

static const char *exhaust(enum mode mode, unsigned posts, const unsigned *lanes, unsigned count)
{
	struct search search = { .mode = mode, .steps = { .lanes = lanes, .lane_count = count, .replay = replay } };

	EXPECT_NONE(suite_receiver_open(&search.receiver, NULL));
	for (search.steps.posts = 1; search.steps.posts <= posts; search.steps.posts++)
		EXPECT_NONE(model_extend(&search.steps, 0, 0, 0));
	evc_mailbox_release(search.receiver.mailbox);
	return NULL;
}

/* Five posts on ten lanes are 4.2 million sequences: a second. In a slow build four are as many. */
static const char *looking(void)
{
	return exhaust(LOOKING, SUITE_SLOW ? 3 : 5, model_every_lane, 10);
}

static const char *relying(void)
{
	return exhaust(RELYING, SUITE_SLOW ? 3 : 5, model_every_lane, 10);
}

static const char *as_it_comes(void)
{
	return exhaust(AS_IT_COMES, SUITE_SLOW ? 3 : 5, model_every_lane, 10);
}

static const char *six(void)
{
	EXPECT_NONE(exhaust(RELYING, SUITE_SLOW ? 4 : 6, some_lanes, 5));
	return exhaust(AS_IT_COMES, SUITE_SLOW ? 4 : 6, some_lanes, 5);
}

static const char *overtakes(void)
{
	struct suite_receiver receiver;
	unsigned lane;
	uint64_t value;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	for (unsigned i = 0; i < 500; i++)
		EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_NORMAL, i));
	for (unsigned i = 0; i < 500; i++) {
		EXPECT_OK(suite_take(&receiver, &lane, &value));
		EXPECT_EQUAL(value, i, "the backlog goes on where it was");
		EXPECT_OK(suite_post(&receiver, i % 5, 1000 + i));
		EXPECT_OK(suite_take(&receiver, &lane, &value));
		EXPECT_EQUAL(value, 1000 + i, "the take after a stack post");
	}
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D1 a stack post overtakes a queue backlog at the very next take", overtakes },
	{ "D1 D2 D3 every short sequence while the consumer looks before each take", looking },
	{ "D1 D2 D3 every short sequence while the consumer relies on the alarm", relying },
	{ "D1 D2 D3 every short sequence while the consumer chooses its mode", as_it_comes },
	{ "D1 D2 D3 longer sequences over the lanes where the modes meet", six },
};
SUITE_GROUP(suite_order, tests);
#endif
