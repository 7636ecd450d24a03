/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Batches: their events are taken one by one, in the model's order, whatever is posted in between. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "batched.h"
#include "model.h"

static const char *expect_taken(struct batched *batched, struct model *model, uint64_t seed)
{
	for (unsigned i = 0; i < batched->count; i++) {
		unsigned lane = 0;
		uint64_t value = 0;

		EXPECT(model_take(model, &lane, &value) && lane == batched->lanes[i] &&
			       value == batched->values[i],
		       "seed %llu, take %u: expected %llu of lane %u, found %llu of lane %u",
		       (unsigned long long)seed, i, (unsigned long long)value, lane,
		       (unsigned long long)batched->values[i], batched->lanes[i]);
	}
	batched->count = 0;
	return NULL;
}

/* D1 to D3: random batches of 1 to 5 and pumps of 1 to 6, on all lanes and on few. */
static const char *order(void)
{
	static struct model model;
	struct batched batched;
	uint64_t seed = suite_seed(), random = seed, value = 1;

	for (unsigned round = 0; round < SUITE_SCALE(2000); round++) {
		const unsigned lanes = round % 3 == 0 ? EVC_LANE_COUNT : 1 + round % 4;

		if (round % 50 == 0)
			EXPECT_NONE(batched_open(&batched));
		if (round % 50 == 0)
			EXPECT_NONE(batched_warm(&batched));
		__builtin_memset(&model, 0, sizeof(model));
		for (unsigned step = 0; step < 12; step++) {
			if (suite_random(&random) % 3 != 0) {
				unsigned lane = (unsigned)(suite_random(&random) % lanes + 3) %
						EVC_LANE_COUNT;
				unsigned count = 1 + (unsigned)(suite_random(&random) % 5);

				EXPECT_NONE(batched_send(&batched, lane, value, count));
				for (unsigned i = 0; i < count; i++)
					model_post(&model, lane, value++);
			} else {
				(void)!evc_mailbox_pump(batched.receiver.mailbox,
							1 + suite_random(&random) % 6);
				EXPECT_NONE(expect_taken(&batched, &model, seed));
			}
		}
		EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, BATCHED_MOST), EVC_EMPTY);
		EXPECT_NONE(expect_taken(&batched, &model, seed));
		if (round % 50 == 49 || round + 1 == SUITE_SCALE(2000))
			EXPECT_NONE(batched_close(&batched));
	}
	return NULL;
}

static const char *send_urgent(struct batched *batched)
{
	return batched_send(batched, EVC_LANE_STACK_HIGHEST, 100, 3);
}

/*
 * D1: what a handler dispatches overtakes the rest of the batch, whether the consumer looks or relies on the
 * alarm.
 */
static const char *overtaken(void)
{
	static const uint64_t expected[] = { 1, 2, 102, 101, 100, 3, 4 };

	for (unsigned relying = 0; relying < 2; relying++) {
		struct batched batched;

		EXPECT_NONE(batched_open(&batched));
		EXPECT_NONE(batched_warm(&batched));
		/* The consumer relies on the alarm after a long run from one lane. */
		for (unsigned i = 0; relying && i < 2; i++) {
			EXPECT_NONE(batched_send(&batched, EVC_LANE_QUEUE_NORMAL, 0, 64));
			EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, BATCHED_MOST), EVC_EMPTY);
			batched.count = 0;
		}
		batched.at = 2;
		batched.act = send_urgent;
		EXPECT_NONE(batched_send(&batched, EVC_LANE_QUEUE_NORMAL, 1, 4));
		EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, BATCHED_MOST), EVC_EMPTY);
		EXPECT_EQUAL(batched.count, 7, "deliveries");
		for (unsigned i = 0; i < 7; i++)
			EXPECT_EQUAL(batched.values[i], expected[i], "the value delivered");
		/* Odd values are not moved out. */
		EXPECT_EQUAL(batched.drops - 64 * relying, 3, "drops");
		EXPECT_NONE(batched_close(&batched));
	}
	return NULL;
}

static const char *walked_order(void)
{
	return batched_walked(order);
}

static const char *walked_overtaken(void)
{
	return batched_walked(overtaken);
}

static const struct evc_suite_test tests[] = {
	{ "D1 D2 D3 batches by chance: each take is the model's", order },
	{ "D1 an urgent batch overtakes the rest of another", overtaken },
	{ "D1 D2 D3 batches by chance, walked by the receiver", walked_order },
	{ "D1 an urgent batch overtakes the rest of one that the receiver walks", walked_overtaken },
};

SUITE_GROUP(suite_batch, tests);
#endif
