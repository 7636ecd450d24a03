/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Subscriptions are added and removed while another thread dispatches: the one that stays gets each event
 * exactly once (D4), and one whose unsubscribe has returned gets nothing that is dispatched afterwards.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <string.h>

#define EVENTS SUITE_SCALE(300000u)

struct churn {
	struct suite_receiver stays, comes_and_goes;
	struct evc_router *router;
	_Atomic uint64_t done;
	const char *message;
};

static const char *come_and_go(struct churn *churn)
{
	for (uint32_t generation = 0; !atomic_load(&churn->done); generation++) {
		uint64_t key = 1 + generation % 3;

		EXPECT_OK(evc_router_subscribe(churn->router, key,
					       churn->comes_and_goes.subscription, generation,
					       generation % 2));
		/* Replaces its own entry, and thereby the whole snapshot. */
		EXPECT_OK(evc_router_subscribe(churn->router, key, churn->stays.subscription,
					       generation, false));
		EXPECT_OK(evc_router_unsubscribe(churn->router, key,
						 churn->comes_and_goes.subscription));
		/* A key of its own now and then, so that the table grows under the readers. */
		if (generation < 2000) {
			EXPECT_OK(evc_router_subscribe(churn->router, 100 + generation,
						       churn->comes_and_goes.subscription, 0, false));
			EXPECT_OK(evc_router_unsubscribe(churn->router, 100 + generation,
							 churn->comes_and_goes.subscription));
		}
	}
	return NULL;
}

static void *churn_on_thread(void *context)
{
	struct churn *churn = context;

	churn->message = come_and_go(churn);
	/* The text belongs to this thread: copy it. */
	if (churn->message != NULL)
		churn->message = strdup(churn->message);
	return NULL;
}

static const char *churns(void)
{
	static struct churn churn;
	struct evc_thread *consumers[2];
	uint64_t accepted = 0, sum = 0;
	pthread_t thread;

	memset(&churn, 0, sizeof(churn));
	EXPECT_NONE(suite_receiver_open(&churn.stays, NULL));
	EXPECT_NONE(suite_receiver_open(&churn.comes_and_goes, NULL));
	EXPECT_OK(evc_router_create(&churn.router));
	for (uint64_t key = 1; key <= 3; key++)
		EXPECT_OK(evc_router_subscribe(churn.router, key, churn.stays.subscription, 0, false));
	EXPECT_OK(evc_thread_start(NULL, churn.stays.mailbox, &consumers[0]));
	EXPECT_OK(evc_thread_start(NULL, churn.comes_and_goes.mailbox, &consumers[1]));
	pthread_create(&thread, NULL, churn_on_thread, &churn);
	for (uint64_t i = 0; i < EVENTS; i++) {
		uint32_t receivers;

		EXPECT_OK(evc_dispatch_bytes(churn.router, 1 + i % 3, (enum evc_lane)(i % 10), &i,
					     sizeof(i), 8, &receivers));
		accepted += receivers;
		sum += i;
	}
	atomic_store(&churn.done, 1);
	pthread_join(thread, NULL);
	EXPECT_NONE(churn.message);
	evc_mailbox_close_when_empty(churn.stays.mailbox);
	evc_mailbox_close_when_empty(churn.comes_and_goes.mailbox);
	EXPECT_OK(evc_thread_join(consumers[0]));
	EXPECT_OK(evc_thread_join(consumers[1]));
	EXPECT_EQUAL(churn.stays.delivered, EVENTS, "events at the subscription that stays");
	EXPECT_EQUAL(churn.stays.sum, sum, "the sum of their payloads");
	EXPECT_EQUAL(churn.stays.delivered + churn.comes_and_goes.delivered, accepted,
		     "events delivered, beside accepted");
	evc_router_destroy(churn.router);
	evc_mailbox_release(churn.stays.mailbox);
	evc_mailbox_release(churn.comes_and_goes.mailbox);
	return NULL;
}

/* After unsubscribe has returned, a dispatch on a thread that knows of it must not find it. */
static const char *gone_is_gone(void)
{
	struct suite_receiver receiver;
	struct evc_router *router;
	uint64_t value = 1;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_router_create(&router));
	for (unsigned i = 0; i < 1000; i++) {
		for (unsigned there = 1; there <= 2; there++) {
			uint32_t receivers;

			EXPECT_OK(there == 1 ? evc_router_subscribe(router, 1, receiver.subscription,
								    i, false)
					     : evc_router_unsubscribe(router, 1,
								      receiver.subscription));
			EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_LOW, &value, 8, 8,
						     &receivers));
			EXPECT_EQUAL(receivers, there % 2, "receivers");
		}
	}
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	EXPECT_EQUAL(receiver.drops, 1000, "events");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 subscriptions churn, the one that stays gets each event once", churns },
	{ "D6 nothing is addressed to a subscription after it was removed", gone_is_gone },
};
SUITE_GROUP(suite_router_churn, tests);
#endif
