/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "suite.h"

#include <stdlib.h>

#include "platform/config.h"

#ifdef EVC_URCU

/* In the order in which they run. */
#define GROUPS(X) \
	X(order) X(order_live) X(chain) X(producers) X(depth) X(close) X(close_race) X(interrupt) \
	X(parker) X(parker_race) X(pool) X(box) X(router) X(router_churn) X(dispatch) X(dispatch_one) \
	X(thread) X(reentry) X(fork) X(reclaimer) X(barrier) X(errors) X(allocation_failure) \
	X(open_dispatches) X(held) X(footprint) X(out_of_memory) X(pump) X(pump_race) X(pump_until) \
	X(pump_clock) X(own) X(own_batches) X(own_router) X(bound) X(bound_outcomes) X(bound_race) \
	X(bound_lanes) X(bound_shared) X(batch) X(batch_counts) X(batch_live) X(latest) X(latest_held) \
	X(latest_race) X(conflation) X(scheduler) X(scheduler_change) \
	X(scheduler_live) X(scheduler_race) X(shared_order) X(shared_workers) X(shared_close) \
	X(shared_wake) X(shared_held) X(shared_memory) X(shared_latest) \
	X(balancer) X(balancer_close) X(balancer_churn) X(balancer_bounded) X(balancer_latest) \
	X(tree_order) X(tree_change) X(tree_memory) X(tree_move) X(tree_threads) X(tree_wait) \
	X(tree_allocation) X(tree_readers) X(tree_consumed) X(tree_again) X(tree_held) X(tree_idle) \
	X(tree_depth) X(tree_misuse) X(realtime) X(realtime_trim) X(clock) X(observer) X(shared_poll)

#define DECLARE(name) extern const struct suite_group suite_##name;
GROUPS(DECLARE)

#define POINT_TO(name) &suite_##name,
static const struct suite_group *const groups[] = { GROUPS(POINT_TO) };

static struct evc_suite_test *all;
static size_t all_count;
static pthread_once_t collected = PTHREAD_ONCE_INIT;

static void collect(void)
{
	const size_t group_count = sizeof(groups) / sizeof(groups[0]);
	size_t count = 0;

	/* What the tests retire is freed as in a Swift program; those of shutdown.c do without. */
	evc_reclaimer_start();
	for (size_t g = 0; g < group_count; g++)
		count += groups[g]->count;
	/* Never freed: the callers' pointer leads into it. */
	all = calloc(count, sizeof(*all));
	/* An empty table would pass. */
	if (all == NULL)
		abort();
	for (size_t g = 0; g < group_count; g++)
		for (size_t t = 0; t < groups[g]->count; t++)
			all[all_count++] = groups[g]->tests[t];
}

const struct evc_suite_test *evc_suite_tests(size_t *count)
{
	pthread_once(&collected, collect);
	*count = all_count;
	return all;
}

#else

const struct evc_suite_test *evc_suite_tests(size_t *count)
{
	*count = 0;
	return NULL;
}

#endif
