/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Shared by the tests of latest-only subscriptions of a shared mailbox. */
#ifndef EVC_SUITE_PLACE_H
#define EVC_SUITE_PLACE_H

#include "shared.h"

/* A shared mailbox with one ordinary and one latest-only subscription, each with a route of its own. */
struct place {
	struct shared_receiver receiver;
	struct evc_subscription *latest;
	struct evc_router *router;
	_Atomic uint64_t handled;
	_Atomic uint64_t drops;
	_Atomic uint64_t finalized;
};

enum { PLACE_PLAIN = 1, PLACE_LATEST = 2 };

const char *place_open(struct place *place);
/* Checks how many were superseded, and that everything ends. */
const char *place_close(struct place *place, uint64_t superseded);

/* Counts in `drops`. */
void place_drop(void *context, void *payload);

#endif
