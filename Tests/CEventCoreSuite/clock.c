/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A router and a balancer with a clock of the caller's. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <eventcore/realtime.h>

/* A clock that counts how often it is read, and goes on by 10 each time. */
struct counted {
	uint64_t time;
	uint64_t reads;
};

static uint64_t now(void *context)
{
	struct counted *counted = context;

	counted->reads++;
	return counted->time += 10;
}

/* Dispatches to one key, the way of `step`, and returns the time of what arrives in `time`. */
static const char *stamp(struct evc_router *router, struct suite_receiver *receiver, unsigned step,
			 unsigned count, uint64_t *time)
{
	struct evc_envelope *envelope;
	struct evc_dispatch dispatch;
	uint64_t value = 7;

	if (step == 0) {
		EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8,
					     NULL));
	} else {
		EXPECT_OK((step == 1 ? evc_dispatch_begin : evc_dispatch_begin_batch)(
			router, 1, EVC_LANE_QUEUE_NORMAL, sizeof(value), 8, count, &dispatch));
		envelope = dispatch.first;
		for (uint32_t i = 0; i < dispatch.payloads; i++) {
			*(uint64_t *)evc_envelope_payload(envelope) = value;
			envelope = evc_dispatch_next(envelope);
		}
		EXPECT_EQUAL(evc_dispatch_commit(&dispatch), count, "acceptances");
	}
	*time = 0;
	for (unsigned i = 0; i < count; i++) {
		EXPECT_OK(evc_mailbox_take(receiver->mailbox, &envelope));
		EXPECT(i == 0 || evc_envelope_time(envelope) == *time,
		       "the events of a dispatch have several times");
		*time = evc_envelope_time(envelope);
		evc_mailbox_recycle(receiver->mailbox, envelope, true);
	}
	return NULL;
}

static const char *router_clock(void)
{
	struct counted counted = { 1000, 0 };
	struct evc_clock clock = { &counted, now }, none = { &counted, NULL };
	struct suite_receiver a, b;
	struct evc_router *router;
	uint64_t time;

	EXPECT_NONE(suite_receiver_open(&a, NULL));
	EXPECT_NONE(suite_receiver_open(&b, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_STATUS(evc_router_set_clock(NULL, &clock), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_set_clock(router, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_set_clock(router, &none), EVC_INVALID_ARGUMENT);
	EXPECT_OK(evc_router_set_clock(router, &clock));
	EXPECT_OK(evc_router_subscribe(router, 1, a.subscription, 1, false));
	EXPECT_STATUS(evc_router_set_clock(router, &clock), EVC_NOT_PERMITTED);
	for (unsigned step = 0; step < 3; step++) {
		EXPECT_NONE(stamp(router, &a, step, step == 0 ? 1 : 3, &time));
		EXPECT_EQUAL(time, 0, "D8: the time, which nobody asked for");
	}
	EXPECT_EQUAL(counted.reads, 0, "D8: reads of the clock for nobody");
	EXPECT_OK(evc_router_subscribe(router, 1, a.subscription, 2, true));
	for (unsigned step = 0; step < 3; step++) {
		EXPECT_NONE(stamp(router, &a, step, step == 0 ? 1 : 3, &time));
		EXPECT_EQUAL(time, 1010 + 10 * step, "D8: the time on the router's clock");
		EXPECT_EQUAL(counted.reads, step + 1, "reads, one for each dispatch");
	}
	/* The clock stays through a subscription that comes and goes. */
	EXPECT_OK(evc_router_subscribe(router, 1, b.subscription, 1, false));
	EXPECT_OK(evc_router_unsubscribe(router, 1, b.subscription));
	EXPECT_NONE(stamp(router, &a, 0, 1, &time));
	EXPECT_EQUAL(time, 1040, "D8: the time on the router's clock");
	evc_router_destroy(router);
	evc_mailbox_release(a.mailbox);
	evc_mailbox_release(b.mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

static const char *balancer_clock(void)
{
	struct counted counted = { 1000, 0 };
	struct evc_clock clock = { &counted, now }, none = { &counted, NULL };
	struct evc_balancer_options options = { .size = sizeof(options), .clock = &none };
	struct suite_receiver receiver;
	struct evc_balancer *balancer;
	struct evc_router *router;
	struct evc_load load = { 0 };
	uint64_t time;

	EXPECT_STATUS(evc_balancer_create(&options, &balancer), EVC_INVALID_ARGUMENT);
	options.clock = &clock;
	EXPECT_OK(evc_balancer_create(&options, &balancer));
	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_set_clock(router, &clock));
	/* The router was not told that the receiver needs the time. */
	EXPECT_OK(evc_balancer_add(balancer, receiver.subscription, 1, true, &load));
	EXPECT_OK(evc_router_subscribe(router, 1, evc_balancer_subscription(balancer), 1, false));
	EXPECT_NONE(stamp(router, &receiver, 0, 1, &time));
	EXPECT_EQUAL(time, 1010, "D8: the time on the balancer's clock");
	EXPECT_OK(evc_router_subscribe(router, 1, evc_balancer_subscription(balancer), 1, true));
	EXPECT_NONE(stamp(router, &receiver, 0, 1, &time));
	EXPECT_EQUAL(time, 1020, "D8: the time on the router's clock");
	EXPECT_EQUAL(counted.reads, 2, "reads, one for each dispatch");
	evc_router_destroy(router);
	evc_balancer_release(balancer);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

/* A dispatch that must not wait is stamped as any other. */
static const char *clock_without_waiting(void)
{
	struct counted counted = { 1000, 0 };
	struct evc_clock clock = { &counted, now };
	struct evc_mailbox_options options = { .size = sizeof(options), .polled = true, .strategy = EVC_WAIT_SPIN };
	struct suite_receiver receiver;
	struct evc_envelope *envelope;
	struct evc_router *router;
	uint64_t value = 7;

	EXPECT_NONE(suite_receiver_open(&receiver, &options));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_set_clock(router, &clock));
	EXPECT_OK(evc_reserve(8));
	for (unsigned timed = 0; timed < 2; timed++) {
		EXPECT_OK(evc_router_subscribe(router, 1, receiver.subscription, 1, timed));
		EXPECT_OK(evc_try_dispatch(router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8, NULL));
		EXPECT_OK(evc_mailbox_take(receiver.mailbox, &envelope));
		EXPECT_EQUAL(evc_envelope_time(envelope), timed ? 1010 : 0, "D8: the time on the router's clock");
		EXPECT_EQUAL(counted.reads, timed, "reads");
		evc_mailbox_recycle(receiver.mailbox, envelope, true);
	}
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D8: a router stamps events with the clock it was given, and reads it for nobody else", router_clock },
	{ "D8: a dispatch that must not wait is stamped with the router's clock too", clock_without_waiting },
	{ "D8: a balancer stamps events with the clock it was given", balancer_clock },
};
SUITE_GROUP(suite_clock, tests);
#endif
