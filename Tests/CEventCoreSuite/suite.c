/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "suite.h"

#include <stdlib.h>

#include "platform/config.h"

#ifdef EVC_URCU

extern const struct suite_group suite_reentry, suite_order, suite_order_live, suite_chain, suite_producers,
	suite_depth, suite_close, suite_close_race, suite_interrupt, suite_parker, suite_parker_race,
	suite_pool, suite_box, suite_router, suite_router_churn, suite_dispatch, suite_dispatch_one, suite_thread,
	suite_fork, suite_reclaimer, suite_barrier, suite_errors, suite_allocation_failure, suite_batch, suite_batch_counts,
	suite_batch_live,
	suite_open_dispatches, suite_held, suite_footprint, suite_pump, suite_pump_race, suite_pump_until, suite_pump_clock, suite_own,
	suite_own_batches, suite_own_router,
	suite_bound, suite_bound_outcomes, suite_bound_race, suite_bound_lanes, suite_bound_shared,
	suite_out_of_memory, suite_latest, suite_latest_held, suite_latest_race,
	suite_conflation, suite_scheduler, suite_scheduler_change,
	suite_scheduler_live, suite_scheduler_race, suite_shared_order, suite_shared_workers,
	suite_shared_close, suite_shared_wake, suite_shared_held, suite_shared_memory, suite_shared_latest,
	suite_balancer, suite_balancer_close, suite_balancer_churn,
	suite_balancer_bounded, suite_balancer_latest,
	suite_tree_order, suite_tree_change, suite_tree_memory, suite_tree_move, suite_tree_threads,
	suite_tree_wait, suite_tree_allocation, suite_tree_readers, suite_tree_consumed,
	suite_tree_again, suite_tree_held, suite_tree_idle, suite_tree_depth, suite_tree_misuse, suite_realtime, suite_realtime_trim, suite_clock, suite_observer,
	suite_shared_poll;

static const struct suite_group *const groups[] = {
	&suite_order,	   &suite_order_live,  &suite_chain,	   &suite_producers,
	&suite_depth,	   &suite_close,       &suite_close_race,  &suite_interrupt,
	&suite_parker,	   &suite_parker_race, &suite_pool,	   &suite_box,
	&suite_router,	   &suite_router_churn, &suite_dispatch,   &suite_dispatch_one, &suite_thread,
	&suite_reentry,   &suite_fork,	   &suite_reclaimer,  &suite_barrier, &suite_errors,      &suite_allocation_failure,
	&suite_open_dispatches,	   &suite_held,	   &suite_footprint,	   &suite_out_of_memory, &suite_pump,	   &suite_pump_race, &suite_pump_until, &suite_pump_clock, &suite_own, &suite_own_batches, &suite_own_router,
	&suite_bound,	   &suite_bound_outcomes, &suite_bound_race, &suite_bound_lanes, &suite_bound_shared,
	&suite_batch,	   &suite_batch_counts,	 &suite_batch_live,
	&suite_latest,	   &suite_latest_held, &suite_latest_race, &suite_conflation,
	&suite_scheduler,  &suite_scheduler_change, &suite_scheduler_live, &suite_scheduler_race,
	&suite_shared_order,  &suite_shared_workers, &suite_shared_close, &suite_shared_wake,
	&suite_shared_held,
	&suite_shared_memory, &suite_shared_latest,
	&suite_balancer,   &suite_balancer_close, &suite_balancer_churn, &suite_balancer_bounded,
	&suite_balancer_latest,
	&suite_tree_order, &suite_tree_change, &suite_tree_memory, &suite_tree_move,
	&suite_tree_threads, &suite_tree_wait, &suite_tree_allocation,
	&suite_tree_readers, &suite_tree_consumed, &suite_tree_again, &suite_tree_held,
	&suite_tree_idle, &suite_tree_depth, &suite_tree_misuse, &suite_realtime, &suite_realtime_trim, &suite_clock, &suite_observer, &suite_shared_poll,
};

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
