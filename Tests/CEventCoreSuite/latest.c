/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Latest-only subscriptions, on one thread: which envelope is delivered, where, and what is counted. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "latest_receiver.h"

#include "mailbox/mailbox_private.h"

#include <string.h>

static const char *newest_of_some(void)
{
	static const unsigned counts[] = { 0, 1, 2, 3, 64, 1000 };

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct suite_receiver receiver;
		struct evc_subscription *plain;

		EXPECT_NONE(open_latest(&receiver, &plain));
		for (unsigned value = 1; value <= counts[i]; value++)
			EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_NORMAL, value));
		if (counts[i] > 0)
			EXPECT_NONE(expect_take(&receiver, EVC_LANE_QUEUE_NORMAL, counts[i]));
		EXPECT_NONE(expect_end(&receiver, counts[i] > 0, counts[i] > 1 ? counts[i] - 1 : 0));
	}
	return NULL;
}

/* Every order of three posts on any lanes, with an ordinary event on each lane beside them. */
static const char *every_three_lanes(void)
{
	for (unsigned code = 0; code < EVC_LANE_COUNT * EVC_LANE_COUNT * EVC_LANE_COUNT; code++) {
		unsigned lanes[3] = { code % EVC_LANE_COUNT, code / EVC_LANE_COUNT % EVC_LANE_COUNT,
				      code / EVC_LANE_COUNT / EVC_LANE_COUNT };
		struct suite_receiver receiver;
		struct evc_subscription *plain;

		EXPECT_NONE(open_latest(&receiver, &plain));
		for (unsigned i = 0; i < 3; i++)
			EXPECT_OK(suite_post(&receiver, lanes[i], 100 + i));
		for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
			EXPECT_OK(post_to(&receiver, plain, lane, lane));
		for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
			bool stack = lane < EVC_LANE_FIRST_QUEUE;

			if (stack)
				EXPECT_NONE(expect_take(&receiver, lane, lane));
			if (lane == lanes[2])
				EXPECT_NONE(expect_take(&receiver, lane, 102));
			if (!stack)
				EXPECT_NONE(expect_take(&receiver, lane, lane));
		}
		EXPECT_NONE(expect_end(&receiver, 1 + EVC_LANE_COUNT, 2));
	}
	return NULL;
}

static const char *place_of_the_oldest(void)
{
	struct suite_receiver receiver;
	struct evc_subscription *plain;

	EXPECT_NONE(open_latest(&receiver, &plain));
	EXPECT_OK(post_to(&receiver, plain, EVC_LANE_QUEUE_LOW, 1));
	EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_LOW, 2));
	EXPECT_OK(post_to(&receiver, plain, EVC_LANE_QUEUE_LOW, 3));
	EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_LOW, 4));
	EXPECT_NONE(expect_take(&receiver, EVC_LANE_QUEUE_LOW, 1));
	EXPECT_NONE(expect_take(&receiver, EVC_LANE_QUEUE_LOW, 4));
	EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_LOW, 5));
	EXPECT_NONE(expect_take(&receiver, EVC_LANE_QUEUE_LOW, 3));
	EXPECT_NONE(expect_take(&receiver, EVC_LANE_QUEUE_LOW, 5));
	return expect_end(&receiver, 4, 1);
}

static const char *chains(void)
{
	struct suite_receiver receiver;
	struct evc_subscription *plain;

	EXPECT_NONE(open_latest(&receiver, &plain));
	for (unsigned length = 1; length <= 65; length++) {
		struct evc_chain chain = EVC_CHAIN_EMPTY;

		for (uint64_t value = 1; value <= length; value++)
			EXPECT_OK(suite_append(&chain, receiver.subscription, EVC_LANE_STACK_LOW, value));
		EXPECT_OK(receiver.subscription->sink->accept(receiver.subscription->sink, &chain));
		EXPECT_NONE(expect_take(&receiver, EVC_LANE_STACK_LOW, length));
	}
	return expect_end(&receiver, 65, 64 * 65 / 2);
}

/* A consumer that handles the newest event while its producer is still posting it. */
struct prompt {
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscription;
	uint64_t delivered, superseded;
};

static void pump_prompt(void *context)
{
	(void)evc_mailbox_pump(((struct prompt *)context)->mailbox, 1);
}

static bool deliver_prompt(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct prompt *prompt = context;

	(void)payload, (void)envelope, (void)owned;
	prompt->delivered++;
	prompt->superseded = evc_latest_subscription_superseded(prompt->subscription);
	return true;
}

static const char *counted_first(void)
{
	/* Beyond what the bits of a slot count, 3 or 1,023, and twice that. */
	for (unsigned length = 1; length <= 2100; length += length < 65 || length / 10 == 102 ? 1 : 5) {
		struct prompt prompt = { 0 };
		struct evc_mailbox_options options = { .size = sizeof(options), .wake = pump_prompt, .context = &prompt };
		struct evc_subscription_options subscription = { .size = sizeof(subscription), .deliver = deliver_prompt,
								 .context = &prompt };
		struct evc_chain chain = EVC_CHAIN_EMPTY;

		EXPECT_OK(evc_mailbox_create(&options, &prompt.mailbox));
		EXPECT_OK(evc_mailbox_add_latest_subscription(prompt.mailbox, &subscription,
							      &prompt.subscription));
		for (unsigned i = 0; i < length; i++)
			EXPECT_OK(suite_append(&chain, prompt.subscription, EVC_LANE_QUEUE_NORMAL, i));
		EXPECT_OK(prompt.subscription->sink->accept(prompt.subscription->sink, &chain));
		EXPECT_EQUAL(prompt.delivered, 1, "delivered within the post");
		EXPECT_EQUAL(prompt.superseded, length - 1, "superseded, as the handler sees it");
		evc_latest_subscription_release(prompt.subscription);
		evc_mailbox_release(prompt.mailbox);
	}
	EXPECT(suite_quiesce(), "what was retired is held up");
	return NULL;
}

static const char *depth(void)
{
	struct suite_receiver receiver;
	struct evc_subscription *plain;
	uint64_t depths[EVC_LANE_COUNT];

	EXPECT_NONE(open_latest(&receiver, &plain));
	for (unsigned i = 0; i < 100; i++) {
		/* Up and down the lanes. */
		unsigned newest = i % 20 < 10 ? i % 10 : 9 - i % 10;

		EXPECT_OK(suite_post(&receiver, newest, i));
		evc_mailbox_depths(receiver.mailbox, depths);
		for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
			EXPECT_EQUAL(depths[lane], lane == newest, "depth of a lane");
	}
	EXPECT_NONE(expect_take(&receiver, 0, 99));
	evc_mailbox_depths(receiver.mailbox, depths);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		EXPECT_EQUAL(depths[lane], 0, "depth of a lane after the take");
	return expect_end(&receiver, 1, 99);
}

/* `lanes` tokens wait for one event; then the mailbox closes, or ends without ever having had a consumer. */
static const char *closing(unsigned lanes, bool close)
{
	struct evc_mailbox_statistics statistics;
	struct suite_receiver receiver;
	struct evc_subscription *plain;
	unsigned lane;
	uint64_t value;

	EXPECT_NONE(open_latest(&receiver, &plain));
	for (unsigned i = 0; i < lanes; i++)
		EXPECT_OK(suite_post(&receiver, EVC_LANE_COUNT - 1 - i, i));
	if (close) {
		evc_mailbox_close(receiver.mailbox);
		EXPECT_STATUS(suite_post(&receiver, 0, 0), EVC_CLOSED);
		EXPECT_STATUS(suite_take(&receiver, &lane, &value), EVC_CLOSED);
		evc_mailbox_read_statistics(receiver.mailbox, &statistics);
		EXPECT_EQUAL(statistics.dropped, lanes > 0, "dropped");
		EXPECT_EQUAL(statistics.taken, 0, "taken");
		EXPECT_EQUAL(statistics.superseded, lanes > 0 ? lanes - 1 : 0, "superseded");
	}
	evc_latest_subscription_release(receiver.subscription);
	evc_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.drops, lanes, "calls of drop");
	EXPECT_EQUAL(receiver.finalized, 2, "calls of finalize");
	return NULL;
}

static const char *close_it(void)
{
	for (unsigned lanes = 0; lanes <= EVC_LANE_COUNT; lanes++)
		EXPECT_NONE(closing(lanes, true));
	return NULL;
}

static const char *abandon_it(void)
{
	for (unsigned lanes = 0; lanes <= EVC_LANE_COUNT; lanes++)
		EXPECT_NONE(closing(lanes, false));
	return NULL;
}

static const char *release_first(void)
{
	struct evc_envelope *envelope;
	struct suite_receiver receiver;
	struct evc_subscription *plain;
	uint64_t value;

	EXPECT_NONE(open_latest(&receiver, &plain));
	EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_LOWEST, 6));
	EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_HIGH, 7));
	evc_latest_subscription_release(receiver.subscription);
	EXPECT_OK(evc_mailbox_take(receiver.mailbox, &envelope));
	memcpy(&value, evc_envelope_payload(envelope), sizeof(value));
	EXPECT_EQUAL(value, 7, "the event that was taken");
	evc_mailbox_recycle(receiver.mailbox, envelope, true);
	EXPECT_EQUAL(receiver.finalized, 0, "calls of finalize while a token waits");
	EXPECT_STATUS(evc_mailbox_take(receiver.mailbox, &envelope), EVC_EMPTY);
	EXPECT_EQUAL(receiver.finalized, 1, "calls of finalize when nothing waits");
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_quiesce(), "what was retired is held up");
	return NULL;
}

/* Payloads in boxes: the last of several receivers ends them, whether it superseded or handled it. */
static const char *boxes(void)
{
	struct suite_receiver first, second;
	struct evc_subscription *plain;
	struct evc_router *router;
	uint64_t payload[32] = { 0 };
	uint32_t receivers;
	unsigned lane;
	uint64_t value;

	EXPECT_NONE(open_latest(&first, &plain));
	EXPECT_NONE(suite_receiver_open(&second, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, first.subscription, 0, false));
	EXPECT_OK(evc_router_subscribe(router, 1, second.subscription, 0, false));
	for (unsigned i = 1; i <= 100; i++) {
		payload[0] = i;
		EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, payload, sizeof(payload),
					     _Alignof(uint64_t), &receivers));
		EXPECT_EQUAL(receivers, 2, "receivers");
	}
	for (unsigned i = 1; i <= 100; i++) {
		EXPECT_OK(suite_take(&second, &lane, &value));
		EXPECT_EQUAL(value, i, "the event of the ordinary receiver");
	}
	EXPECT_NONE(expect_take(&first, EVC_LANE_QUEUE_NORMAL, 100));
	EXPECT_EQUAL(evc_latest_subscription_superseded(first.subscription), 99, "superseded");
	evc_latest_subscription_release(first.subscription);
	evc_router_destroy(router);
	EXPECT(suite_settle(), "the router is held up");
	evc_mailbox_release(first.mailbox);
	evc_mailbox_release(second.mailbox);
	EXPECT_EQUAL(first.finalized, 2, "calls of finalize");
	EXPECT(suite_quiesce(), "what was retired is held up");
	return NULL;
}

static const char *wrong_arguments(void)
{
	struct evc_subscription_options options = { .size = sizeof(options) };
	struct evc_subscription *subscription;
	struct suite_receiver receiver;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_STATUS(evc_mailbox_add_latest_subscription(receiver.mailbox, &options, &subscription),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_add_latest_subscription(receiver.mailbox, NULL, &subscription),
		      EVC_INVALID_ARGUMENT);
	/* The list of a mailbox's first one, and the subscription. */
	for (uint64_t fail_at = 0; fail_at < 2; fail_at++) {
		enum evc_status status;

		suite_allocator_install(fail_at, 1);
		status = suite_receiver_latest(&receiver, &subscription) == NULL ? EVC_OK : EVC_OUT_OF_MEMORY;
		suite_allocator_restore();
		EXPECT_STATUS(status, EVC_OUT_OF_MEMORY);
	}
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 of 0, 1 and more events that wait the newest is delivered, the others are counted",
	  newest_of_some },
	{ "D1 the newest is delivered on its own lane, for every three lanes", every_three_lanes },
	{ "D2 the newest stands where the oldest of its lane stood", place_of_the_oldest },
	{ "D4 of a chain the last is the newest", chains },
	{ "D4 what an event superseded is counted before it is handled", counted_first },
	{ "D4 one event waits, whatever lanes have tokens, and counts in its own", depth },
	{ "D10 closing drops one event, whatever tokens wait", close_it },
	{ "D10 a mailbox without a consumer frees the slot", abandon_it },
	{ "a released subscription ends with its last token", release_first },
	{ "D4 boxes are shared by superseded and handled envelopes", boxes },
	{ "wrong arguments and no memory are answered", wrong_arguments },
};
SUITE_GROUP(suite_latest, tests);
#endif
