/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The fast path of a dispatch: when it applies, and what may happen between its two steps. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include "memory/subscription.h"

#include <string.h>

static void *begin(struct evc_router *router, uint64_t key)
{
	return evc_dispatch_begin_one(router, key, EVC_LANE_QUEUE_NORMAL, sizeof(uint64_t), 8);
}

/* Dispatches by the fast path, after the general path has found the route. */
static const char *dispatch(struct evc_router *router, uint64_t key, uint64_t value, uint32_t accepted)
{
	void *payload = begin(router, key);

	if (payload == NULL) {
		uint32_t receivers;

		EXPECT_OK(evc_dispatch_bytes(router, key, EVC_LANE_QUEUE_NORMAL, &value,
					     sizeof(value), 8, &receivers));
		EXPECT_EQUAL(receivers, accepted, "receivers");
		return NULL;
	}
	memcpy(payload, &value, sizeof(value));
	EXPECT_EQUAL(evc_dispatch_commit_one(payload), accepted, "receivers");
	return NULL;
}

static const char *expect_next(struct suite_receiver *receiver, uint64_t expected)
{
	unsigned lane;
	uint64_t value;

	EXPECT_OK(suite_take(receiver, &lane, &value));
	EXPECT_EQUAL(value, expected, "the next event");
	return NULL;
}

/* More than a segment holds, so that the fast path is left and resumed. */
static const char *in_order(void)
{
	struct suite_receiver receiver;
	struct evc_router *router;
	unsigned found = 0;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, receiver.subscription, 0, false));
	for (uint64_t value = 0; value < 500; value++) {
		void *payload = begin(router, 1);

		found += payload != NULL;
		if (payload != NULL) {
			memcpy(payload, &value, sizeof(value));
			EXPECT_EQUAL(evc_dispatch_commit_one(payload), 1, "receivers");
		} else {
			EXPECT_NONE(dispatch(router, 1, value, 1));
		}
	}
	EXPECT_EQUAL(found, 499, "events that went the short way: all but the first");
	for (uint64_t value = 0; value < 500; value++)
		EXPECT_NONE(expect_next(&receiver, value));
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static const char *for_one_only(void)
{
	struct suite_receiver receivers[2];
	struct evc_router *router;

	EXPECT_OK(evc_router_create(&router));
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_NONE(suite_receiver_open(&receivers[i], NULL));
		EXPECT_OK(evc_router_subscribe(router, 1 + i, receivers[i].subscription, 0, false));
		EXPECT_OK(evc_router_subscribe(router, 3, receivers[i].subscription, 0, false));
		EXPECT_NONE(dispatch(router, 1 + i, i, 1));
	}
	EXPECT_NONE(dispatch(router, 3, 7, 2));
	EXPECT(begin(NULL, 1) == NULL, "there is no router");
	EXPECT(begin(router, 3) == NULL, "two receivers");
	EXPECT(begin(router, 4) == NULL, "no receiver");
	EXPECT(begin(router, 0) == NULL, "no key");
	EXPECT(evc_dispatch_begin_one(router, 1, (enum evc_lane)10, 8, 8) == NULL, "no such lane");
	EXPECT(evc_dispatch_begin_one(router, 1, EVC_LANE_STACK_LOW, EVC_INLINE_SIZE + 1, 8) == NULL,
	       "too large for an envelope");
	EXPECT(evc_dispatch_begin_one(router, 1, EVC_LANE_STACK_LOW, 8, 64) == NULL,
	       "too strictly aligned for an envelope");
	/* A subscription is added, and one removed: the next event notices. */
	EXPECT_OK(evc_router_subscribe(router, 1, receivers[1].subscription, 0, false));
	EXPECT(begin(router, 1) == NULL, "two receivers by now");
	EXPECT_OK(evc_router_unsubscribe(router, 1, receivers[0].subscription));
	EXPECT_NONE(dispatch(router, 1, 8, 1));
	EXPECT_NONE(dispatch(router, 1, 9, 1));
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_NONE(expect_next(&receivers[i], i));
		EXPECT_NONE(expect_next(&receivers[i], 7));
	}
	EXPECT_NONE(expect_next(&receivers[1], 8));
	EXPECT_NONE(expect_next(&receivers[1], 9));
	evc_router_destroy(router);
	for (unsigned i = 0; i < 2; i++)
		evc_mailbox_release(receivers[i].mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

/*
 * Between the steps the subscription ends, the last other reference of its mailbox is released, and so many
 * other keys are dispatched that the thread's cache would have evicted its snapshot.
 */
static const char *keeps_its_receiver(void)
{
	struct suite_receiver outer, inner;
	struct evc_router *router;
	const uint64_t value = 5;
	void *payload;

	EXPECT_NONE(suite_receiver_open(&outer, NULL));
	EXPECT_NONE(suite_receiver_open(&inner, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, outer.subscription, 0, false));
	for (uint64_t key = 2; key < 100; key++)
		EXPECT_OK(evc_router_subscribe(router, key, inner.subscription, 0, false));
	EXPECT_NONE(dispatch(router, 1, 4, 1));
	EXPECT_NONE(expect_next(&outer, 4));
	payload = begin(router, 1);
	EXPECT(payload != NULL, "the route is known");
	EXPECT_OK(evc_router_unsubscribe(router, 1, outer.subscription));
	evc_mailbox_release(outer.mailbox);
	for (uint64_t key = 2; key < 100; key++)
		EXPECT_NONE(dispatch(router, key, key, 1));
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	EXPECT_EQUAL(outer.finalized, 0, "calls of finalize before the commit");
	memcpy(payload, &value, sizeof(value));
	EXPECT_EQUAL(evc_dispatch_commit_one(payload), 1, "receivers");
	for (uint64_t key = 2; key < 100; key++)
		EXPECT_NONE(expect_next(&inner, key));
	evc_router_destroy(router);
	evc_mailbox_release(inner.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	EXPECT_EQUAL(outer.finalized, 1, "calls of finalize at the end");
	EXPECT_EQUAL(outer.drops, 1, "payloads dropped with the mailbox");
	return NULL;
}

static const char *has_closed(void)
{
	struct suite_receiver receiver;
	struct evc_router *router;
	const uint64_t value = 5;
	void *payload;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, receiver.subscription, 0, false));
	EXPECT_NONE(dispatch(router, 1, 4, 1));
	payload = begin(router, 1);
	EXPECT(payload != NULL, "the route is known");
	memcpy(payload, &value, sizeof(value));
	evc_mailbox_close(receiver.mailbox);
	EXPECT_EQUAL(evc_dispatch_commit_one(payload), 0, "receivers of an event that came too late");
	EXPECT_EQUAL(receiver.drops, 1, "refused payloads that ended");
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	EXPECT_EQUAL(receiver.drops, 2, "payloads that ended");
	return NULL;
}

static const char *with_time(void)
{
	struct suite_receiver receiver;
	struct evc_envelope *envelope;
	struct evc_router *router;
	uint64_t before;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, receiver.subscription, 6, true));
	for (uint64_t value = 0; value < 3; value++) {
		before = evc_clock_now();
		EXPECT_NONE(dispatch(router, 1, value, 1));
		EXPECT_OK(evc_mailbox_take(receiver.mailbox, &envelope));
		EXPECT(evc_envelope_time(envelope) >= before &&
			       evc_envelope_time(envelope) <= evc_clock_now(),
		       "the time of dispatch");
		EXPECT_EQUAL(evc_envelope_generation(envelope), 6, "the generation");
		evc_envelope_release(envelope, true);
	}
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static const char *latest(void)
{
	struct suite_receiver receiver;
	struct evc_subscription *newest;
	struct evc_router *router;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_NONE(suite_receiver_latest(&receiver, &newest));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, newest, 0, false));
	for (uint64_t value = 0; value < 100; value++) {
		EXPECT_NONE(dispatch(router, 1, value, 1));
		if (value > 0)
			EXPECT_EQUAL(evc_latest_subscription_superseded(newest), value,
				     "superseded events");
	}
	EXPECT_NONE(expect_next(&receiver, 99));
	evc_latest_subscription_release(newest);
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

/* A sink that takes chains only, as sinks outside of the core do. */
struct counting_sink {
	struct evc_sink sink;
	struct evc_subscription subscription;
	uint64_t references;
	uint64_t sum;
};

static enum evc_status counting_accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct counting_sink *self = (struct counting_sink *)(void *)sink;
	uint64_t value;

	if (chain->count != 1 || chain->first != chain->last)
		return EVC_INVALID_ARGUMENT;
	memcpy(&value, evc_envelope_payload(chain->first), sizeof(value));
	self->sum += value;
	evc_envelope_release(chain->first, true);
	return EVC_OK;
}

static void counting_retain(struct evc_sink *sink)
{
	((struct counting_sink *)(void *)sink)->references++;
}

static void counting_release(struct evc_sink *sink)
{
	((struct counting_sink *)(void *)sink)->references--;
}

static const char *chains(void)
{
	struct counting_sink counting = {
		.sink = { counting_accept, counting_retain, counting_release, false, 0, NULL, NULL, NULL }
	};
	struct evc_router *router;

	counting.subscription.sink = &counting.sink;
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, &counting.subscription, 0, false));
	for (uint64_t value = 1; value <= 100; value++)
		EXPECT_NONE(dispatch(router, 1, value, 1));
	EXPECT_EQUAL(counting.sum, 5050, "the sum of what came");
	evc_router_destroy(router);
	EXPECT(suite_settle(), "the callback thread got stuck");
	EXPECT_EQUAL(counting.references, 0, "references of the sink");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D2 events take the fast path in order, over many segments", in_order },
	{ "the fast path is for one event, one receiver, and what fits into an envelope", for_one_only },
	{ "D9 the fast path keeps its receiver between its steps", keeps_its_receiver },
	{ "D4 the fast path to a receiver that has closed ends the payload", has_closed },
	{ "D8 the fast path reads the clock for a receiver that asks", with_time },
	{ "latest-only: the fast path supersedes", latest },
	{ "the fast path to a sink that takes chains only", chains },
};
SUITE_GROUP(suite_dispatch_one, tests);
#endif
