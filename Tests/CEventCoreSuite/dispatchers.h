/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Threads that dispatch to a latest-only subscription: what was accepted is taken, superseded or dropped.
 */
#ifndef EVC_SUITE_DISPATCHERS_H
#define EVC_SUITE_DISPATCHERS_H

#include "suite.h"

#define DISPATCHERS_MOST 3u

struct dispatcher {
	struct evc_router *router;
	uint64_t key;
	uint64_t index;
	/* 0 = until no receiver accepts. */
	uint64_t events;
	/* One lane alone; -1 = any. */
	int lane;
	uint64_t random;
	_Atomic uint64_t accepted;
	enum evc_status status;
};

struct dispatchers {
	struct dispatcher each[DISPATCHERS_MOST];
	pthread_t threads[DISPATCHERS_MOST];
	unsigned count;
	uint64_t seed;
};

/* Starts `count` threads. A payload is index * 2^32 + number, from 1 on. */
void dispatchers_start(struct dispatchers *dispatchers, struct evc_router *router, uint64_t key,
		       unsigned count, uint64_t events, int lane);
/* Joins them; `*accepted` is the number of accepted events of each since its start. */
const char *dispatchers_join(struct dispatchers *dispatchers, uint64_t *accepted);
/*
 * Joins them, and makes them dispatch again, more than the slab pools could hold in what they have mapped by
 * then: nothing more may be mapped. `*accepted` is the sum of all runs.
 */
const char *dispatchers_flood(struct dispatchers *dispatchers, uint64_t *accepted);
/* The number of accepted events, beside how they ended. */
const char *dispatchers_expect_all(const struct dispatchers *dispatchers,
				   const struct evc_mailbox_statistics *statistics,
				   uint64_t accepted);

#endif
