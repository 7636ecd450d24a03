/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The two steps of a dispatch, and what may happen between them.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <string.h>

static const char *expect_values(struct suite_receiver *receiver, uint64_t from, uint64_t count)
{
	unsigned lane;
	uint64_t value;

	for (uint64_t i = 0; i < count; i++) {
		EXPECT_OK(suite_take(receiver, &lane, &value));
		EXPECT_EQUAL(value, from + i, "the next event");
	}
	EXPECT_STATUS(suite_take(receiver, &lane, &value), EVC_EMPTY);
	return NULL;
}

static const char *begin(struct evc_router *router, uint64_t key, uint32_t events, uint64_t from,
			 struct evc_dispatch *dispatch)
{
	struct evc_envelope *envelope;

	EXPECT_OK(evc_dispatch_begin(router, key, EVC_LANE_QUEUE_NORMAL, sizeof(from), 8, events,
				     dispatch));
	envelope = dispatch->first;
	for (uint32_t i = 0; i < dispatch->payloads; i++) {
		uint64_t value = from + i % events;

		memcpy(evc_envelope_payload(envelope), &value, sizeof(value));
		envelope = evc_dispatch_next(envelope);
	}
	return NULL;
}

/*
 * Between begin and commit: another dispatch of the same key, dispatches of so many other keys that the
 * thread's cache would have evicted the first snapshot, and the end of the subscription itself.
 */
static const char *nested(void)
{
	struct suite_receiver outer, inner;
	struct evc_dispatch first, second;
	struct evc_router *router;

	EXPECT_NONE(suite_receiver_open(&outer, NULL));
	EXPECT_NONE(suite_receiver_open(&inner, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, outer.subscription, 0, false));
	for (uint64_t key = 2; key < 100; key++)
		EXPECT_OK(evc_router_subscribe(router, key, inner.subscription, 0, false));
	EXPECT_NONE(begin(router, 1, 1, 500, &first));
	EXPECT_NONE(begin(router, 1, 2, 600, &second));
	EXPECT_EQUAL(evc_dispatch_commit(&second), 2, "accepted by the inner dispatch");
	for (uint64_t key = 2; key < 100; key++) {
		EXPECT_NONE(begin(router, key, 1, key, &second));
		EXPECT_EQUAL(evc_dispatch_commit(&second), 1, "receivers of the inner dispatch");
	}
	EXPECT_OK(evc_router_unsubscribe(router, 1, outer.subscription));
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	EXPECT_EQUAL(evc_dispatch_commit(&first), 1, "receivers of the outer dispatch");
	EXPECT_NONE(expect_values(&inner, 2, 98));
	{
		unsigned lane;
		uint64_t value;

		EXPECT_OK(suite_take(&outer, &lane, &value));
		EXPECT_EQUAL(value, 600, "committed first");
		EXPECT_OK(suite_take(&outer, &lane, &value));
		EXPECT_EQUAL(value, 601, "committed first");
		EXPECT_OK(suite_take(&outer, &lane, &value));
		EXPECT_EQUAL(value, 500, "begun first, committed last");
	}
	evc_router_destroy(router);
	evc_mailbox_release(outer.mailbox);
	evc_mailbox_release(inner.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

/*
 * Between begin and commit the subscription ends, the last other reference of its mailbox is released, and
 * the cache entry that held its snapshot is used for other keys. Only the dispatch keeps the snapshot then.
 */
static const char *keeps_receivers(void)
{
	struct suite_receiver outer, inner;
	struct evc_dispatch first, second;
	struct evc_router *router;

	EXPECT_NONE(suite_receiver_open(&outer, NULL));
	EXPECT_NONE(suite_receiver_open(&inner, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, outer.subscription, 0, false));
	for (uint64_t key = 2; key < 100; key++)
		EXPECT_OK(evc_router_subscribe(router, key, inner.subscription, 0, false));
	EXPECT_NONE(begin(router, 1, 1, 500, &first));
	EXPECT_OK(evc_router_unsubscribe(router, 1, outer.subscription));
	evc_mailbox_release(outer.mailbox);
	for (uint64_t key = 2; key < 100; key++) {
		EXPECT_NONE(begin(router, key, 1, key, &second));
		EXPECT_EQUAL(evc_dispatch_commit(&second), 1, "receivers of the inner dispatch");
	}
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	EXPECT_EQUAL(outer.finalized, 0, "calls of finalize before the commit");
	EXPECT_EQUAL(evc_dispatch_commit(&first), 1, "receivers of the outer dispatch");
	evc_router_destroy(router);
	evc_mailbox_release(inner.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	EXPECT_EQUAL(outer.finalized, 1, "calls of finalize at the end");
	EXPECT_EQUAL(outer.drops, 1, "payloads dropped with the mailbox");
	return NULL;
}

static const char *abandoned(void)
{
	struct suite_receiver receivers[3];
	struct evc_dispatch dispatch;
	struct evc_router *router;

	EXPECT_OK(evc_router_create(&router));
	for (unsigned i = 0; i < 3; i++) {
		EXPECT_NONE(suite_receiver_open(&receivers[i], NULL));
		EXPECT_OK(evc_router_subscribe(router, 1, receivers[i].subscription, 0, false));
	}
	for (uint32_t events = 1; events <= EVC_DISPATCH_MAX; events++) {
		EXPECT_NONE(begin(router, 1, events, 0, &dispatch));
		evc_dispatch_abandon(&dispatch);
		EXPECT_OK(evc_dispatch_begin(router, 1, EVC_LANE_STACK_LOW, 1000, 64, events,
					     &dispatch));
		evc_dispatch_abandon(&dispatch);
	}
	EXPECT_NONE(begin(router, 1, 64, 7, &dispatch));
	EXPECT_EQUAL(evc_dispatch_commit(&dispatch), 3 * 64, "accepted");
	for (unsigned i = 0; i < 3; i++)
		EXPECT_NONE(expect_values(&receivers[i], 7, 64));
	evc_router_destroy(router);
	for (unsigned i = 0; i < 3; i++)
		evc_mailbox_release(receivers[i].mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	for (unsigned i = 0; i < 3; i++) {
		/* An abandoned payload was never written: nothing is ended. */
		EXPECT_EQUAL(receivers[i].drops, 0, "payloads dropped");
	}
	return NULL;
}

/* One of three receivers has closed: the others get the event, and the refused payload ends. */
static const char *one_has_closed(void)
{
	for (unsigned boxed = 0; boxed < 2; boxed++) {
		struct suite_receiver receivers[3];
		struct evc_dispatch dispatch;
		struct evc_router *router;
		size_t size = boxed ? 200 : 8;

		EXPECT_OK(evc_router_create(&router));
		for (unsigned i = 0; i < 3; i++) {
			EXPECT_NONE(suite_receiver_open(&receivers[i], NULL));
			EXPECT_OK(evc_router_subscribe(router, 1, receivers[i].subscription, 0,
						       false));
		}
		EXPECT_OK(evc_dispatch_begin(router, 1, EVC_LANE_QUEUE_LOW, size, 8, 2, &dispatch));
		evc_mailbox_close(receivers[1].mailbox);
		EXPECT_EQUAL(evc_dispatch_commit(&dispatch), 2 * 2, "accepted");
		EXPECT_EQUAL(receivers[1].drops, boxed ? 0 : 2, "refused payloads that ended");
		evc_router_destroy(router);
		for (unsigned i = 0; i < 3; i++)
			evc_mailbox_release(receivers[i].mailbox);
		EXPECT(suite_settle(), "the callback thread got stuck");
		EXPECT_EQUAL(receivers[0].drops + receivers[1].drops + receivers[2].drops,
			     boxed ? 2 : 6, "payloads that ended");
	}
	return NULL;
}

/* Every choice of the receivers of a dispatch is taken out of it, with payloads inside envelopes and in a box. */
static const char *skipped(void)
{
	for (unsigned choice = 0; choice < 8; choice++) {
		for (unsigned boxed = 0; boxed < 2; boxed++) {
			struct suite_receiver receivers[3];
			struct evc_dispatch dispatch;
			struct evc_router *router;
			size_t size = boxed ? 200 : 8;
			unsigned left = 3;

			EXPECT_OK(evc_router_create(&router));
			for (unsigned i = 0; i < 3; i++) {
				EXPECT_NONE(suite_receiver_open(&receivers[i], NULL));
				EXPECT_OK(evc_router_subscribe(router, 1, receivers[i].subscription, 0, false));
			}
			EXPECT_OK(evc_dispatch_begin(router, 1, EVC_LANE_QUEUE_LOW, size, 8, 2, &dispatch));
			for (unsigned i = 0; i < 3; i++) {
				if (!(choice & (1u << i)))
					continue;
				EXPECT(evc_dispatch_skip(&dispatch, receivers[i].subscription), "it is a receiver");
				EXPECT(!evc_dispatch_skip(&dispatch, receivers[i].subscription), "it is none any more");
				left--;
			}
			EXPECT_EQUAL(dispatch.receivers, left, "receivers left");
			EXPECT_EQUAL(dispatch.payloads, left == 0 ? 0 : boxed ? 2 : 2 * left, "payloads to write");
			EXPECT_EQUAL(evc_dispatch_commit(&dispatch), 2 * left, "accepted");
			for (unsigned i = 0; i < 3; i++) {
				uint64_t depth[EVC_LANE_COUNT] = { 0 };

				evc_mailbox_depths(receivers[i].mailbox, depth);
				EXPECT_EQUAL(depth[EVC_LANE_QUEUE_LOW], choice & (1u << i) ? 0 : 2, "events that wait");
			}
			evc_router_destroy(router);
			for (unsigned i = 0; i < 3; i++)
				evc_mailbox_release(receivers[i].mailbox);
			EXPECT(suite_settle(), "the callback thread got stuck");
			EXPECT_EQUAL(receivers[0].drops + receivers[1].drops + receivers[2].drops,
				     boxed ? (left == 0 ? 0 : 2) : 2 * left, "payloads that ended");
		}
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D7 dispatches nest between begin and commit, and survive an unsubscribe", nested },
	{ "D9 a dispatch that has begun keeps its receivers", keeps_receivers },
	{ "an abandoned dispatch reaches no receiver and loses nothing", abandoned },
	{ "a receiver that is skipped gets nothing, and the others everything", skipped },
	{ "D4 a receiver that has closed does not keep the event from others", one_has_closed },
};
SUITE_GROUP(suite_dispatch, tests);
#endif
