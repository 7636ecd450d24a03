/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Shared by tests of dispatches: a mailbox behind a router, and the events that it must give next. */
#ifndef EVC_SUITE_BENCH_H
#define EVC_SUITE_BENCH_H

#include "suite.h"

#define BENCH_ONE 1u
#define BENCH_TWO 2u

/* A mailbox with a router; one subscription listens to KEY_ONE, two to KEY_TWO. */
struct bench {
	struct suite_receiver receiver;
	struct evc_router *router;
	uint64_t posted;
	uint64_t taken;
	uint64_t expected[16384];
};

const char *bench_open(struct bench *bench);
const char *bench_close(struct bench *bench);

/* Posts one more event, which will be taken after those before it. */
void bench_expect_next(struct bench *bench, uint64_t value);
/* Takes this many of them. */
const char *bench_take(struct bench *bench, uint64_t count);
/* Takes all of them, and finds nothing else. */
const char *bench_take_all(struct bench *bench);

enum evc_status bench_begin(struct bench *bench, uint64_t key, uint32_t events,
			    struct evc_dispatch *out);
/* Writes `value` and the following numbers, by receiver and then by event. */
void bench_write(struct evc_dispatch *dispatch, uint64_t value);
const char *bench_dispatch_one(struct bench *bench);
/* Posts from another thread. */
const char *bench_post_elsewhere(struct bench *bench);

#endif
