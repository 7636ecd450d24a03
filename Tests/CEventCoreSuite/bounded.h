/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A receiver whose mailbox is bounded, and its counters, for tests on one thread. */
#ifndef EVC_SUITE_BOUNDED_H
#define EVC_SUITE_BOUNDED_H

#include "suite.h"

static inline const char *open_bounded(struct suite_receiver *receiver, enum evc_overflow policy, uint64_t capacity)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = capacity, .overflow = policy };

	return suite_receiver_open(receiver, &options);
}

struct counts {
	uint64_t accepted, taken, waiting, refused, overflowed, high_water;
};

static inline const char *expect_counts(struct suite_receiver *receiver, struct counts expected)
{
	struct evc_mailbox_statistics found;

	evc_mailbox_read_statistics(receiver->mailbox, &found);
	EXPECT_EQUAL(found.accepted, expected.accepted, "accepted");
	EXPECT_EQUAL(found.taken, expected.taken, "taken");
	EXPECT_EQUAL(found.waiting, expected.waiting, "waiting");
	EXPECT_EQUAL(found.refused, expected.refused, "refused");
	EXPECT_EQUAL(found.overflowed, expected.overflowed, "overflowed");
	EXPECT_EQUAL(found.high_water, expected.high_water, "high-water mark");
	return NULL;
}

#endif
