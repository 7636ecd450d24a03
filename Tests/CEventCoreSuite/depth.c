/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Depths are exact while nothing moves, wherever the envelopes are: in an inbox or in the list of a lane. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "model.h"

#include <string.h>

static const char *expect_depths(struct suite_receiver *receiver, const struct model *model,
				 const char *when)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_mailbox_depths(receiver->mailbox, depths);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		EXPECT(depths[lane] == (uint64_t)(model->end[lane] - model->first[lane]),
		       "%s, lane %u: expected %u, found %llu", when, lane,
		       (unsigned)(model->end[lane] - model->first[lane]),
		       (unsigned long long)depths[lane]);
	return NULL;
}

static const char *take(struct suite_receiver *receiver, struct model *model)
{
	uint64_t value, expected;
	unsigned lane, expected_lane;

	EXPECT(model_take(model, &expected_lane, &expected), "the model is empty");
	EXPECT_OK(suite_take(receiver, &lane, &value));
	EXPECT_EQUAL(value, expected, "the next envelope");
	return NULL;
}

static const char *post(struct suite_receiver *receiver, struct model *model, unsigned lane,
			uint64_t value)
{
	model_post(model, lane, value);
	EXPECT_OK(suite_post(receiver, lane, value));
	return NULL;
}

static const char *with_pending(void)
{
	static struct model model;
	struct suite_receiver receiver;

	memset(&model, 0, sizeof(model));
	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_NONE(suite_prime(&receiver));
	EXPECT_NONE(expect_depths(&receiver, &model, "empty"));
	for (unsigned i = 0; i < 100; i++)
		EXPECT_NONE(post(&receiver, &model, i % 10 == 9 ? 9 : 7, i));
	EXPECT_NONE(expect_depths(&receiver, &model, "all in the inbox"));
	EXPECT_NONE(take(&receiver, &model));
	EXPECT_NONE(expect_depths(&receiver, &model, "some grabbed, some not"));
	for (unsigned i = 0; i < 5; i++)
		EXPECT_NONE(post(&receiver, &model, 8, i));
	EXPECT_NONE(expect_depths(&receiver, &model, "dealt, not dealt, and posted since"));
	EXPECT_NONE(post(&receiver, &model, 0, 7));
	EXPECT_NONE(take(&receiver, &model));
	EXPECT_NONE(expect_depths(&receiver, &model, "all dealt by the alarm"));
	for (unsigned i = 0; i < 104; i++) {
		EXPECT_NONE(take(&receiver, &model));
		EXPECT_NONE(expect_depths(&receiver, &model, "on the way to empty"));
	}
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const char *at_random(void)
{
	static struct model model;
	struct suite_receiver receiver;
	uint64_t seed = suite_seed(), state = seed;
	unsigned waiting = 0;

	memset(&model, 0, sizeof(model));
	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	for (unsigned i = 0; i < SUITE_SCALE(30000u); i++) {
		bool backlog = i / 100 % 2 == 0;
		unsigned lane = suite_random(&state) % 4 ? EVC_LANE_QUEUE_NORMAL
							 : suite_random(&state) % EVC_LANE_COUNT;
		const char *message;

		if (waiting == 0 || (waiting < 200 && suite_random(&state) % 4 < (backlog ? 3 : 1))) {
			/* The model's queues can start again only when they are empty. */
			if (model.end[lane] == MODEL_MOST)
				continue;
			message = post(&receiver, &model, lane, i);
			waiting++;
		} else {
			message = take(&receiver, &model);
			waiting--;
		}
		if (message == NULL)
			message = expect_depths(&receiver, &model, "at random");
		EXPECT(message == NULL, "seed %llu, step %u: %.200s", (unsigned long long)seed, i,
		       message);
	}
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

struct live {
	struct suite_receiver receiver;
	_Atomic uint64_t done;
};

static void *keep_moving(void *context)
{
	struct live *live = context;
	uint64_t value;
	unsigned lane;

	for (unsigned i = 0; i < SUITE_SCALE(200000u); i++) {
		(void)suite_post(&live->receiver, i % 97 ? 7 : i % 10, i);
		if (i % 100 < 50 || i % 100 == 99)
			while (suite_take(&live->receiver, &lane, &value) == EVC_OK && i % 100 == 99)
				;
	}
	while (suite_take(&live->receiver, &lane, &value) == EVC_OK)
		;
	atomic_store(&live->done, 1);
	return NULL;
}

/* The reader adds figures that others are changing: the sums must remain possible. */
static const char *while_moving(void)
{
	/* Static: after a failure the thread still uses it. */
	static struct live live;
	pthread_t thread;
	uint64_t depths[EVC_LANE_COUNT];

	live.done = 0;
	EXPECT_NONE(suite_receiver_open(&live.receiver, NULL));
	pthread_create(&thread, NULL, keep_moving, &live);
	while (!atomic_load(&live.done)) {
		evc_mailbox_depths(live.receiver.mailbox, depths);
		for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
			EXPECT(depths[lane] <= 250, "lane %u: at most 100 wait, found %llu", lane,
			       (unsigned long long)depths[lane]);
	}
	pthread_join(thread, NULL);
	evc_mailbox_release(live.receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "depths are exact before, while and after envelopes are sorted", with_pending },
	{ "depths are exact after any posts and takes", at_random },
	{ "depths can be read while envelopes move", while_moving },
};
SUITE_GROUP(suite_depth, tests);
#endif
