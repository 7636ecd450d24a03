/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A consumer's own posts that join an open batch without a look at their route: what has changed in the router, another
 * router, and an observer are seen all the same (V0 to V4 in routing/router_private.h).
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "own.h"

/* How many receivers get an event of the first key, which the consumer posts while its batch is open. */
static const char *expect_receivers(struct own *own, uint32_t expected)
{
	uint64_t payload = own->next;
	uint32_t receivers = 0;

	EXPECT_OK(evc_dispatch_bytes(own->router, 1, EVC_LANE_QUEUE_NORMAL, &payload, 8, 8, &receivers));
	EXPECT_EQUAL(receivers, expected, "receivers");
	own->next += receivers;
	return NULL;
}

/* Enters the mailbox before its first event: what lies in its inbox would not let a batch begin. */
static const char *open_batch(struct own *own, struct evc_mailbox **before)
{
	EXPECT_NONE(open_own(own, 1, true, false));
	own->is_unordered = true;
	*before = evc_mailbox_enter(own->mailbox);
	for (unsigned n = 0; n < 4; n++)
		EXPECT_NONE(expect_receivers(own, 1));
	return NULL;
}

/* D4 D6: what has changed in the router before an own post holds for it, although its batch is open. */
static const char *while_the_router_changes(void)
{
	static struct own own;
	static struct evc_subscription *other;
	const struct evc_subscription_options options = {
		.size = sizeof(options), .context = &own, .deliver = deliver, .drop = drop
	};
	struct evc_mailbox *before;

	EXPECT_NONE(open_own(&own, 1, true, false));
	own.is_unordered = true;
	EXPECT_OK(evc_mailbox_add_subscription(own.mailbox, &options, &other));
	before = evc_mailbox_enter(own.mailbox);
	for (unsigned round = 0; round < 50; round++) {
		for (unsigned n = 0; n < 4; n++)
			EXPECT_NONE(expect_receivers(&own, 1));
		/* A change for another key, after which the batch is still open. */
		EXPECT_OK(evc_router_subscribe(own.router, 2, other, 0, false));
		EXPECT_NONE(expect_receivers(&own, 1));
		EXPECT_OK(evc_router_subscribe(own.router, 1, other, 0, false));
		EXPECT_NONE(expect_receivers(&own, 2));
		EXPECT_OK(evc_router_unsubscribe(own.router, 1, other));
		EXPECT_OK(evc_router_unsubscribe(own.router, 2, other));
		EXPECT_NONE(expect_receivers(&own, 1));
		EXPECT_OK(evc_router_unsubscribe(own.router, 1, own.subscriptions[0]));
		EXPECT_NONE(expect_receivers(&own, 0));
		EXPECT_OK(evc_router_subscribe(own.router, 1, own.subscriptions[0], round + 1, false));
	}
	evc_mailbox_leave(before);
	EXPECT_STATUS(evc_mailbox_pump(own.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_EQUAL(own.delivered, own.next, "delivered");
	return close_own(&own);
}

/* D4: a batch that is open by one router is not for the events of the next one, which may have its address. */
static const char *with_another_router(void)
{
	static struct own own;
	struct evc_mailbox *before;

	EXPECT_NONE(open_batch(&own, &before));
	for (unsigned round = 0; round < 50; round++) {
		EXPECT_NONE(expect_receivers(&own, round % 2 == 0));
		evc_router_destroy(own.router);
		EXPECT_OK(evc_router_create(&own.router));
		EXPECT_NONE(expect_receivers(&own, 0));
		if (round % 2 == 0)
			continue;
		EXPECT_OK(evc_router_subscribe(own.router, 1, own.subscriptions[0], 0, false));
		for (unsigned n = 0; n < 4; n++)
			EXPECT_NONE(expect_receivers(&own, 1));
	}
	evc_mailbox_leave(before);
	EXPECT_STATUS(evc_mailbox_pump(own.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_EQUAL(own.delivered, own.next, "delivered");
	return close_own(&own);
}

struct counted {
	struct own own;
	unsigned notes;
};

static void note(void *context, uint64_t key, uint32_t events, bool is_timed, struct evc_note *note)
{
	(void)key, (void)is_timed, (void)note;
	((struct counted *)context)->notes += events;
}

/* An observer that is set while a batch is open is told of the next own post. */
static const char *with_an_observer(void)
{
	static struct counted counted;
	const struct evc_observer observer = { .context = &counted, .note = note };
	struct evc_mailbox *before;

	counted.notes = 0;
	EXPECT_NONE(open_batch(&counted.own, &before));
	for (unsigned n = 0; n < 4; n++)
		EXPECT_NONE(expect_receivers(&counted.own, 1));
	EXPECT_OK(evc_router_set_observer(counted.own.router, &observer));
	for (unsigned n = 0; n < 4; n++)
		EXPECT_NONE(expect_receivers(&counted.own, 1));
	EXPECT_EQUAL(counted.notes, 4, "events that the observer was told of");
	EXPECT_OK(evc_router_set_observer(counted.own.router, NULL));
	EXPECT_NONE(expect_receivers(&counted.own, 1));
	EXPECT_EQUAL(counted.notes, 4, "events that the observer was told of");
	evc_mailbox_leave(before);
	EXPECT_STATUS(evc_mailbox_pump(counted.own.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_EQUAL(counted.own.delivered, counted.own.next, "delivered");
	return close_own(&counted.own);
}

static const struct evc_suite_test tests[] = {
	{ "D4 D6 an own post sees what has changed in the router", while_the_router_changes },
	{ "D4 an own post to a router does not go where one before it led", with_another_router },
	{ "an observer is told of the own posts after it was set", with_an_observer },
};
SUITE_GROUP(suite_own_router, tests);
#endif
