/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * D1 to D3 of a shared mailbox with one worker, exhaustively: every sequence of a few posts, interleaved with
 * takes in every way, against the model; posted to the shared mailbox, and to either.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "model.h"
#include "shared.h"

#include "shared/shared_mailbox_private.h"

#include <string.h>

struct search {
	struct shared_receiver receiver;
	struct evc_worker *worker;
	struct evc_subscription *own;
	/* Post i goes to the worker's own mailbox if bit i is set. */
	unsigned own_posts;
	struct model_search steps;
};

static const unsigned some_lanes[] = { 0, 4, 5, 9 };

/* The tests below leave it empty. */
static struct model empty_model;

static bool never(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	return false;
}

static enum evc_status post_own(struct search *search, unsigned lane, uint64_t value)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	enum evc_status status = suite_append(&chain, search->own, lane, value);

	return status == EVC_OK ? evc_mailbox_post(evc_worker_mailbox(search->worker), &chain) : status;
}

/* Two models, one for each mailbox: the more urgent lane of the two; if equal, the worker's own. */
static bool model_take_either(struct model models[2], unsigned *lane, uint64_t *value)
{
	unsigned first[2] = { EVC_LANE_COUNT, EVC_LANE_COUNT };

	for (unsigned m = 0; m < 2; m++)
		for (unsigned l = EVC_LANE_COUNT; l-- > 0;)
			if (models[m].first[l] != models[m].end[l])
				first[m] = l;
	return model_take(&models[first[1] <= first[0]], lane, value);
}

static const char *replay(struct model_search *steps, unsigned count)
{
	struct search *search = evc_container_of(steps, struct search, steps);
	static struct model models[2];
	uint64_t posted = 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned lane = 0, model_lane = 0, step = steps->steps[i];
		uint64_t value = 0, model_value = 0;
		enum evc_status status;
		bool expected;

		if (step != MODEL_TAKE) {
			unsigned own = (search->own_posts >> posted++) & 1u;

			if (own)
				EXPECT_OK(post_own(search, step, posted));
			else
				EXPECT_OK(shared_post(&search->receiver, step, posted));
			model_post(&models[own], step, posted);
			continue;
		}
		expected = model_take_either(models, &model_lane, &model_value);
		status = shared_take(search->worker, &lane, &value);
		EXPECT(status == (expected ? EVC_OK : EVC_EMPTY) && lane == model_lane &&
			       value == model_value,
		       "steps %s (lanes, o before own, - for a take): expected lane %u post %u, "
		       "found lane %u post %u, %s",
		       model_describe(steps, i + 1, search->own_posts), model_lane, (unsigned)model_value, lane,
		       (unsigned)value, evc_status_text(status));
	}
	return NULL;
}

static const char *open(struct search *search)
{
	struct evc_subscription_options own = { .size = sizeof(own), .deliver = never };

	EXPECT_NONE(shared_open(&search->receiver));
	EXPECT_OK(evc_worker_create(search->receiver.mailbox, NULL, &search->worker));
	EXPECT_OK(evc_mailbox_add_subscription(evc_worker_mailbox(search->worker), &own,
					       &search->own));
	return NULL;
}

static void close(struct search *search)
{
	evc_worker_destroy(search->worker);
	evc_shared_mailbox_release(search->receiver.mailbox);
}

static const char *exhaust(unsigned posts, const unsigned *lanes, unsigned count, bool both)
{
	struct search search = { .steps = { .lanes = lanes, .lane_count = count, .replay = replay } };

	EXPECT_NONE(open(&search));
	for (search.steps.posts = 1; search.steps.posts <= posts; search.steps.posts++)
		for (search.own_posts = 0; search.own_posts < (both ? 1u << search.steps.posts : 1u);
		     search.own_posts++)
			EXPECT_NONE(model_extend(&search.steps, 0, 0, 0));
	close(&search);
	return NULL;
}

static const char *every(void)
{
	return exhaust(SUITE_SLOW ? 3 : 5, model_every_lane, 10, false);
}

static const char *six(void)
{
	return exhaust(SUITE_SLOW ? 4 : 6, some_lanes, 4, false);
}

static const char *either(void)
{
	return exhaust(SUITE_SLOW ? 3 : 5, some_lanes, 4, true);
}

static const char *overtakes(void)
{
	struct search search = { 0 };
	unsigned lane;
	uint64_t value;

	EXPECT_NONE(open(&search));
	for (unsigned i = 0; i < 500; i++)
		EXPECT_OK(shared_post(&search.receiver, EVC_LANE_QUEUE_NORMAL, i));
	for (unsigned i = 0; i < 500; i++) {
		EXPECT_OK(shared_take(search.worker, &lane, &value));
		EXPECT_EQUAL(value, i, "the backlog goes on where it was");
		EXPECT_OK(shared_post(&search.receiver, i % 5, 1000 + i));
		EXPECT_OK(shared_take(search.worker, &lane, &value));
		EXPECT_EQUAL(value, 1000 + i, "the take after a stack post");
	}
	close(&search);
	return NULL;
}

/* 0, 1, n-1, n, n+1 and 3n envelopes at a time, where n is what a segment holds. */
static const char *segments(void)
{
	static const unsigned bursts[] = { 1, 487, 488, 489, 976, 977, 1464, 5000 };
	struct search search = { 0 };
	unsigned lane;
	uint64_t value;

	EXPECT_NONE(open(&search));
	for (unsigned b = 0; b < sizeof(bursts) / sizeof(bursts[0]); b++) {
		uint64_t depths[EVC_LANE_COUNT];

		EXPECT_STATUS(shared_take(search.worker, &lane, &value), EVC_EMPTY);
		for (unsigned i = 0; i < bursts[b]; i++)
			EXPECT_OK(shared_post(&search.receiver, EVC_LANE_QUEUE_LOW, i));
		evc_shared_mailbox_depths(search.receiver.mailbox, depths);
		EXPECT_EQUAL(depths[EVC_LANE_QUEUE_LOW], bursts[b], "depth of the lane");
		for (unsigned i = 0; i < bursts[b]; i++) {
			EXPECT_OK(shared_take(search.worker, &lane, &value));
			EXPECT_EQUAL(value, i, "the next of a queue");
		}
		evc_shared_mailbox_depths(search.receiver.mailbox, depths);
		EXPECT_EQUAL(depths[EVC_LANE_QUEUE_LOW], 0, "depth of an empty lane");
	}
	close(&search);
	return NULL;
}

/* Chains of every length to 64 on a stack and a queue, singles between them. */
static const char *chains(void)
{
	struct search search = { 0 };
	struct model *model = &empty_model;
	uint64_t depths[EVC_LANE_COUNT];
	uint64_t value, expected_value, next = 0, posted = 0;
	unsigned lane, expected_lane;

	EXPECT_NONE(open(&search));
	for (unsigned length = 1; length <= 64; length = length < 4 ? length + 1 : length * 2) {
		for (unsigned l = 0; l < 2; l++) {
			unsigned to = l == 0 ? EVC_LANE_STACK_LOW : EVC_LANE_QUEUE_HIGH;

			EXPECT_OK(shared_post_chain(&search.receiver, to, next, length));
			for (unsigned i = 0; i < length; i++)
				model_post(model, to, next++);
			EXPECT_OK(shared_post(&search.receiver, to, next));
			model_post(model, to, next++);
			posted += length + 1;
		}
		evc_shared_mailbox_depths(search.receiver.mailbox, depths);
		EXPECT_EQUAL(depths[EVC_LANE_STACK_LOW] + depths[EVC_LANE_QUEUE_HIGH], posted,
			     "depths with chains");
	}
	while (model_take(model, &expected_lane, &expected_value)) {
		EXPECT_OK(shared_take(search.worker, &lane, &value));
		EXPECT_EQUAL(lane, expected_lane, "lane");
		EXPECT_EQUAL(value, expected_value, "value");
		posted--;
		evc_shared_mailbox_depths(search.receiver.mailbox, depths);
		EXPECT_EQUAL(depths[EVC_LANE_STACK_LOW] + depths[EVC_LANE_QUEUE_HIGH], posted,
			     "depths while chains are taken");
	}
	EXPECT_STATUS(shared_take(search.worker, &lane, &value), EVC_EMPTY);
	close(&search);
	return NULL;
}

/* One chain over all lanes: each lane gets its part in the chain's order. */
static const char *mixed(void)
{
	struct search search = { 0 };
	struct model *model = &empty_model;
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	uint64_t value, expected_value;
	unsigned lane, expected_lane;

	EXPECT_NONE(open(&search));
	for (uint64_t i = 0; i < 60; i++) {
		unsigned to = (unsigned)(i * 7 % EVC_LANE_COUNT);

		EXPECT_OK(suite_append(&chain, search.receiver.subscription, to, i));
		model_post(model, to, i);
	}
	EXPECT_OK(evc_shared_mailbox_post(search.receiver.mailbox, &chain));
	while (model_take(model, &expected_lane, &expected_value)) {
		EXPECT_OK(shared_take(search.worker, &lane, &value));
		EXPECT(lane == expected_lane && value == expected_value,
		       "expected lane %u post %u, found lane %u post %u", expected_lane,
		       (unsigned)expected_value, lane, (unsigned)value);
	}
	EXPECT_STATUS(shared_take(search.worker, &lane, &value), EVC_EMPTY);
	close(&search);
	return NULL;
}

/* The hint of a queue's next cell may be outdated by as much as a producer was preempted for. */
static const char *stale_hint(void)
{
	struct shared_receiver receiver;
	struct evc_worker *worker;
	unsigned lane, taken = 0;
	uint64_t value, depths[EVC_LANE_COUNT];

	EXPECT_NONE(shared_open(&receiver));
	EXPECT_OK(evc_worker_create(receiver.mailbox, NULL, &worker));
	for (unsigned i = 0; i < 3 * EVC_QUEUE_CELLS; i++) {
		struct evc_queue_segment *segment = atomic_load(&receiver.mailbox->lanes.queues[2].tail);
		uint64_t hint = atomic_load(&segment->tail);

		/* As if the producer that filled an early cell stored the hint only now. */
		atomic_store(&segment->tail, hint * (i % 7) / 7);
		EXPECT_OK(shared_post(&receiver, EVC_LANE_QUEUE_NORMAL, i));
		segment = atomic_load(&receiver.mailbox->lanes.queues[2].tail);
		atomic_store(&segment->tail, 0);
		evc_shared_mailbox_depths(receiver.mailbox, depths);
		EXPECT_EQUAL(depths[EVC_LANE_QUEUE_NORMAL], i + 1 - taken, "depth");
		if (i % 3 == 0)
			continue;
		EXPECT_OK(shared_take(worker, &lane, &value));
		EXPECT_EQUAL(value, taken, "the next of the queue");
		taken++;
	}
	while (shared_take(worker, &lane, &value) == EVC_OK) {
		EXPECT_EQUAL(value, taken, "the next of the queue");
		taken++;
	}
	EXPECT_EQUAL(taken, 3 * EVC_QUEUE_CELLS, "envelopes taken");
	evc_worker_destroy(worker);
	evc_shared_mailbox_release(receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D1 shared: a stack post overtakes a queue backlog at the very next take", overtakes },
	{ "D1 D2 D3 shared: every sequence of up to 5 posts over the ten lanes", every },
	{ "D1 D2 D3 shared: every sequence of up to 6 posts over four lanes", six },
	{ "D1 shared: every sequence of posts to the shared and the worker's own mailbox", either },
	{ "D2 shared: a queue of any number of segments, with its depth", segments },
	{ "D2 D3 shared: chains of any length, with their depths", chains },
	{ "D2 D3 shared: a chain of many lanes", mixed },
	{ "D2 shared: a queue keeps its order while its hint lags behind", stale_hint },
};
SUITE_GROUP(suite_shared_order, tests);
#endif
