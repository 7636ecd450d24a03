/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Latest-only subscriptions while a producer is held up between two steps of its dispatch, which are taken by hand. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "latest_receiver.h"

#include "mailbox/mailbox_private.h"

/*
 * A producer that has claimed the state of a lane and was preempted before its post: its state is set by
 * hand. What others dispatch meanwhile does not wait for it, and at most one token waits, whatever they
 * dispatch.
 */
static const char *held_up(unsigned lane)
{
	struct suite_receiver receiver;
	struct evc_subscription *plain;
	uint64_t depths[EVC_LANE_COUNT];
	struct evc_latest *latest;
	unsigned found_lane;
	uint64_t value;

	EXPECT_NONE(open_latest(&receiver, &plain));
	latest = evc_container_of(receiver.subscription, struct evc_latest, subscription);
	atomic_store(&latest->only.state[lane], EVC_TOKEN_CLAIMED);
	for (value = 1; value <= 100; value++)
		EXPECT_OK(suite_post(&receiver, lane, value));
	evc_mailbox_depths(receiver.mailbox, depths);
	EXPECT_EQUAL(depths[lane], 1, "the depth of the lane");
	EXPECT_NONE(expect_take(&receiver, lane, 100));
	EXPECT_OK(suite_post(&receiver, lane, 101));
	EXPECT_NONE(expect_take(&receiver, lane, 101));
	EXPECT_STATUS(suite_take(&receiver, &found_lane, &value), EVC_EMPTY);
	/* It goes on. */
	atomic_store(&latest->only.state[lane], EVC_TOKEN_NONE);
	EXPECT_OK(suite_post(&receiver, lane, 102));
	EXPECT_EQUAL(atomic_load(&latest->only.state[lane]) & EVC_TOKEN_WHERE, EVC_TOKEN_POSTED, "the state of the lane");
	EXPECT_NONE(expect_take(&receiver, lane, 102));
	EXPECT_EQUAL(atomic_load(&latest->only.state[lane]) & EVC_TOKEN_WHERE, EVC_TOKEN_NONE, "the state of the lane");
	return expect_end(&receiver, 3, 99);
}

/*
 * A producer that has put its token and is held up before it tells the consumer: the steps of its dispatch
 * are taken by hand. The next producer finds the token, and tells the consumer in its place; nothing more is
 * put.
 */
static void count_wake(void *context)
{
	(*(unsigned *)context)++;
}

static const char *held_up_before_it_tells(void)
{
	unsigned wakes = 0;
	struct evc_mailbox_options options = { .size = sizeof(options), .wake = count_wake, .context = &wakes };

	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		struct evc_thread_record *record = evc_thread_record();
		uint64_t depths[EVC_LANE_COUNT];
		struct suite_receiver receiver;
		struct evc_subscription *plain;
		struct evc_envelope *token;
		struct evc_latest *latest;

		wakes = 0;
		EXPECT_NONE(suite_receiver_open(&receiver, &options));
		plain = receiver.subscription;
		EXPECT_NONE(suite_receiver_latest(&receiver, &receiver.subscription));
		latest = evc_container_of(receiver.subscription, struct evc_latest, subscription);
		EXPECT((token = evc_spare_take(record, EVC_SPARE_TOKEN)) != NULL, "no memory");
		token->subscription = receiver.subscription;
		token->time = EVC_TOKEN_ONE;
		token->lane = (uint8_t)lane;
		token->flags = EVC_ENVELOPE_TOKEN;
		token->events = 1;
		token->cell = &latest->only;
		atomic_fetch_add(&latest->references, 1);
		evc_mailbox_put(receiver.mailbox, lane, token, token, 1);
		atomic_store(&latest->only.state[lane], token->time | EVC_TOKEN_POSTED);
		EXPECT_OK(suite_post(&receiver, lane, 7));
		EXPECT_EQUAL(wakes, 1, "calls of wake after a dispatch that found the token");
		evc_mailbox_depths(receiver.mailbox, depths);
		EXPECT_EQUAL(depths[lane], 1, "the depth of the lane");
		EXPECT_STATUS(evc_mailbox_pump(receiver.mailbox, 10), EVC_EMPTY);
		EXPECT_EQUAL(atomic_load(&receiver.delivered), 1, "events");
		(void)plain;
		evc_latest_subscription_release(receiver.subscription);
		evc_mailbox_release(receiver.mailbox);
	}
	return NULL;
}

static const char *held_up_on_every_lane(void)
{
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		EXPECT_NONE(held_up(lane));
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D10 no event waits for a producer that is held up between two steps", held_up_on_every_lane },
	{ "D5 D10 no event waits for a producer that is held up before it tells the consumer",
	  held_up_before_it_tells },
};
SUITE_GROUP(suite_latest_held, tests);
#endif
