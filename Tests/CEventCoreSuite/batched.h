/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Shared by the tests of batches: a receiver that takes batches and notes their events. */
#ifndef EVC_SUITE_BATCHED_H
#define EVC_SUITE_BATCHED_H

#include "suite.h"

#define BATCHED_KEY 7u
#define BATCHED_MOST 512u

struct batched {
	struct suite_receiver receiver;
	struct evc_router *router;
	struct evc_subscription *subscription;
	uint64_t values[BATCHED_MOST];
	unsigned lanes[BATCHED_MOST];
	unsigned count, drops;
	/* What the handler does once, with the event of this value. */
	uint64_t at;
	const char *(*act)(struct batched *batched);
	const char *message;
};

/* Odd values are not moved out, so that they are dropped. */
const char *batched_open(struct batched *batched);
const char *batched_close(struct batched *batched);

/*
 * Dispatches the values `first`, `first` + 1, ... together. `*together` tells whether they travelled in one
 * batch.
 */
const char *batched_dispatch(struct batched *batched, unsigned lane, uint64_t first, unsigned count,
			     uint32_t *accepted, bool *together);
/* The same; they must be accepted. */
const char *batched_send(struct batched *batched, unsigned lane, uint64_t first, unsigned count);
/* The first dispatch finds the route, and takes the general path. */
const char *batched_warm(struct batched *batched);

/* Runs a test with receivers that walk their batches themselves, in several ways. */
const char *batched_walked(const char *(*test)(void));

#endif
