/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Batches: they are counted by event and ended if no handler takes them; and which events are not sent as a
 * batch.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "batched.h"

static const char *depth_is(struct batched *batched, unsigned lane, uint64_t expected)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_mailbox_depths(batched->receiver.mailbox, depths);
	EXPECT_EQUAL(depths[lane], expected, "depth");
	return NULL;
}

static const char *look_at_depth(struct batched *batched)
{
	return depth_is(batched, EVC_LANE_QUEUE_LOW, 61 + 5);
}

/* Depths, statistics and the limit of a pump count events, before they are sorted and in the middle. */
static const char *counted(void)
{
	const struct evc_mailbox_options bounded = { .size = sizeof(bounded), .capacity = 1, .batches = true };
	struct evc_mailbox_statistics statistics;
	struct batched batched;
	struct evc_envelope *envelope;
	struct evc_mailbox *mailbox;

	EXPECT_NONE(batched_open(&batched));
	EXPECT_STATUS(evc_mailbox_take(batched.receiver.mailbox, &envelope), EVC_INVALID_ARGUMENT);
	/* A bounded one refuses it as well, though no events come together there. */
	EXPECT_OK(evc_mailbox_create(&bounded, &mailbox));
	EXPECT_STATUS(evc_mailbox_take(mailbox, &envelope), EVC_INVALID_ARGUMENT);
	evc_mailbox_release(mailbox);
	EXPECT_NONE(batched_warm(&batched));
	EXPECT_NONE(batched_send(&batched, EVC_LANE_QUEUE_LOW, 0, 64));
	EXPECT_NONE(batched_send(&batched, EVC_LANE_QUEUE_LOW, 64, 5));
	EXPECT_NONE(depth_is(&batched, EVC_LANE_QUEUE_LOW, 69));
	batched.at = 2;
	batched.act = look_at_depth;
	EXPECT_OK(evc_mailbox_pump(batched.receiver.mailbox, 63));
	EXPECT_EQUAL(batched.count, 63, "deliveries up to the limit");
	EXPECT_NONE(depth_is(&batched, EVC_LANE_QUEUE_LOW, 6));
	EXPECT_OK(evc_mailbox_pump(batched.receiver.mailbox, 1));
	EXPECT_NONE(depth_is(&batched, EVC_LANE_QUEUE_LOW, 5));
	EXPECT_OK(evc_mailbox_pump(batched.receiver.mailbox, 2));
	evc_mailbox_close(batched.receiver.mailbox);
	batched.drops = 0;
	EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, 1), EVC_CLOSED);
	evc_mailbox_read_statistics(batched.receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, 2 + 66, "taken");
	EXPECT_EQUAL(statistics.dropped, 3, "dropped");
	EXPECT_EQUAL(batched.drops, 3, "payloads ended");
	EXPECT_NONE(batched_close(&batched));
	return NULL;
}

static const char *close_mailbox(struct batched *batched)
{
	evc_mailbox_close(batched->receiver.mailbox);
	return NULL;
}

/*
 * D10: the rest of a batch is dropped and counted by event when its handler closes the mailbox; so is a batch
 * that was not sorted yet.
 */
static const char *closed_inside(void)
{
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane += 5) {
		struct evc_mailbox_statistics statistics;
		struct batched batched;

		EXPECT_NONE(batched_open(&batched));
		EXPECT_NONE(batched_warm(&batched));
		EXPECT_NONE(batched_send(&batched, lane, 0, 9));
		batched.at = 4;
		batched.act = close_mailbox;
		EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, BATCHED_MOST), EVC_CLOSED);
		EXPECT_EQUAL(batched.count, 5, "deliveries");
		evc_mailbox_read_statistics(batched.receiver.mailbox, &statistics);
		EXPECT_EQUAL(statistics.dropped, 4, "dropped");
		EXPECT_EQUAL(batched.drops, 4 + 2, "payloads ended");
		EXPECT_NONE(batched_close(&batched));
	}
	return NULL;
}

/* A receiver that closes between the two steps; a dispatch that is abandoned. Nothing is left over. */
static const char *refused(void)
{
	struct batched batched;
	struct evc_dispatch open;
	uint32_t accepted = 1;
	bool together = false;

	EXPECT_NONE(batched_open(&batched));
	EXPECT_NONE(batched_warm(&batched));
	for (unsigned i = 0; i < 200; i++) {
		EXPECT_OK(evc_dispatch_begin_batch(batched.router, BATCHED_KEY, EVC_LANE_QUEUE_NORMAL, 8, 8,
						   64, &open));
		EXPECT(open.array != NULL, "abandoned dispatch %u is not side by side", i);
		evc_dispatch_abandon(&open);
	}
	EXPECT_NONE(batched_send(&batched, EVC_LANE_QUEUE_NORMAL, 0, 64));
	EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, BATCHED_MOST), EVC_EMPTY);
	EXPECT_EQUAL(batched.count, 64, "deliveries");
	evc_mailbox_close(batched.receiver.mailbox);
	batched.drops = 0;
	EXPECT_NONE(batched_dispatch(&batched, EVC_LANE_STACK_LOW, 0, 3, &accepted, &together));
	EXPECT(together, "the refused batch was not side by side");
	EXPECT_EQUAL(accepted, 0, "receivers of a closed mailbox");
	EXPECT_EQUAL(batched.drops, 3, "payloads ended");
	EXPECT_NONE(batched_close(&batched));
	return NULL;
}

/*
 * A single event, more than a pooled box holds, a strict alignment, two receivers: an envelope for each
 * event.
 */
static const char *apart(void)
{
	static const struct {
		size_t size, alignment;
		uint32_t events;
		bool together;
	} cases[] = {
		{ 8, 8, 1, false },   { 8, 8, 2, true },    { 0, 1, 64, true },
		{ 24, 8, 64, true },  { 63, 1, 64, true },  { 128, 8, 64, false },
		{ 64, 8, 63, true },  { 4088, 8, 2, true }, { 4089, 8, 2, false },
		{ 8, 32, 4, false },  { 9, 8, 64, true },
	};
	struct suite_receiver other;
	struct batched batched;
	struct evc_dispatch open;

	EXPECT_NONE(batched_open(&batched));
	EXPECT_NONE(batched_warm(&batched));
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		EXPECT_OK(evc_dispatch_begin_batch(batched.router, BATCHED_KEY, EVC_LANE_QUEUE_NORMAL,
						   cases[i].size, cases[i].alignment,
						   cases[i].events, &open));
		EXPECT_EQUAL(open.array != NULL, cases[i].together, "side by side");
		evc_dispatch_abandon(&open);
	}
	EXPECT_NONE(suite_receiver_open(&other, NULL));
	EXPECT_OK(evc_router_subscribe(batched.router, BATCHED_KEY, other.subscription, 0, false));
	EXPECT_OK(evc_dispatch_begin_batch(batched.router, BATCHED_KEY, EVC_LANE_QUEUE_NORMAL, 8, 8, 2, &open));
	EXPECT(open.array == NULL && open.receivers == 2, "two receivers share a batch");
	evc_dispatch_abandon(&open);
	EXPECT_STATUS(evc_dispatch_begin_batch(batched.router, BATCHED_KEY, EVC_LANE_QUEUE_NORMAL, 8, 8, 65,
					       &open),
		      EVC_INVALID_ARGUMENT);
	EXPECT_OK(evc_router_unsubscribe(batched.router, BATCHED_KEY, other.subscription));
	evc_mailbox_release(other.mailbox);
	EXPECT_NONE(batched_close(&batched));
	return NULL;
}

static const char *walked_counted(void)
{
	return batched_walked(counted);
}

static const char *walked_closed_inside(void)
{
	return batched_walked(closed_inside);
}

static const struct evc_suite_test tests[] = {
	{ "depths, statistics and limits count the events of a batch", counted },
	{ "D10 the rest of a batch is dropped by event", closed_inside },
	{ "depths, statistics and limits, where the receiver walks its batches", walked_counted },
	{ "D10 the rest of a batch that the receiver walks is dropped by event", walked_closed_inside },
	{ "D4 a batch that is refused or taken back leaves nothing", refused },
	{ "batches that cannot go side by side go apart", apart },
};

SUITE_GROUP(suite_batch_counts, tests);
#endif
