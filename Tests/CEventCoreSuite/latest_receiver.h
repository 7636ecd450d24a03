/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A receiver with a latest-only subscription, for tests on one thread. */
#ifndef EVC_SUITE_LATEST_RECEIVER_H
#define EVC_SUITE_LATEST_RECEIVER_H

#include "suite.h"

#include "latest/latest.h"

/* Opens a receiver whose subscription is a latest-only one; `plain` receives an ordinary one. */
static inline const char *open_latest(struct suite_receiver *receiver, struct evc_subscription **plain)
{
	EXPECT_NONE(suite_receiver_open(receiver, NULL));
	*plain = receiver->subscription;
	return suite_receiver_latest(receiver, &receiver->subscription);
}

static inline enum evc_status post_to(struct suite_receiver *receiver, struct evc_subscription *subscription,
			       unsigned lane, uint64_t value)
{
	struct evc_subscription *own = receiver->subscription;
	enum evc_status status;

	receiver->subscription = subscription;
	status = suite_post(receiver, lane, value);
	receiver->subscription = own;
	return status;
}

static inline const char *expect_take(struct suite_receiver *receiver, unsigned lane, uint64_t value)
{
	unsigned found_lane;
	uint64_t found;

	EXPECT_OK(suite_take(receiver, &found_lane, &found));
	EXPECT_EQUAL(found, value, "the event that was taken");
	EXPECT_EQUAL(found_lane, lane, "its lane");
	return NULL;
}

static inline const char *expect_end(struct suite_receiver *receiver, uint64_t taken, uint64_t superseded)
{
	struct evc_mailbox_statistics statistics;
	unsigned lane;
	uint64_t value;

	EXPECT_STATUS(suite_take(receiver, &lane, &value), EVC_EMPTY);
	evc_mailbox_read_statistics(receiver->mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, taken, "taken");
	EXPECT_EQUAL(statistics.superseded, superseded, "superseded");
	EXPECT_EQUAL(evc_latest_subscription_superseded(receiver->subscription), superseded,
		     "superseded of the subscription");
	EXPECT_EQUAL(receiver->drops, superseded, "calls of drop");
	evc_latest_subscription_release(receiver->subscription);
	evc_mailbox_release(receiver->mailbox);
	EXPECT_EQUAL(receiver->finalized, 2, "calls of finalize");
	return NULL;
}

#endif
