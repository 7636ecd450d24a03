/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* What is counted of latest-only and conflated subscriptions. */
#include "latest/latest.h"

#include "eventcore/mailbox.h"

/* The first cell of an iteration, and the next one. A cell that was just added may be missing. */
static struct evc_cell *first_cell(struct evc_latest *latest)
{
	if (latest->cells.root == NULL)
		return &latest->only;
	/* Acquire, pairs with the addition to the list. */
	return atomic_load_explicit(&latest->cells.last, memory_order_acquire);
}

/*
 * Exact while nothing is dispatched or taken. A count moves from a slot to its cell and on to the subscription, and is
 * looked for the other way round: while it moves it may be missing, but is not counted twice, or a pool's thread would
 * end too early (claim 3).
 */
uint64_t evc_latest_superseded(struct evc_latest *latest)
{
	/* Acquire, both, pairs with `take` and `carry`: what has come here has left the place before. */
	uint64_t sum = atomic_load_explicit(&latest->superseded, memory_order_acquire);

	for (struct evc_cell *cell = first_cell(latest); cell != NULL; cell = cell->before) {
		sum += atomic_load_explicit(&cell->superseded, memory_order_acquire);
		sum += evc_latest_count_in(atomic_load_explicit(&cell->slot, memory_order_relaxed));
	}
	return sum;
}

uint64_t evc_latest_subscription_superseded(struct evc_subscription *subscription)
{
	return evc_latest_superseded(evc_latest_of(subscription));
}

struct evc_latest_figures evc_latest_read(struct evc_subscription_list *subscriptions)
{
	/* Acquire, here and below, pairs with list_in. */
	struct evc_latest_list *list = atomic_load_explicit(&subscriptions->latests, memory_order_acquire);
	struct evc_latest_figures figures = { 0, 0 };

	if (list == NULL)
		return figures;
	pthread_mutex_lock(&list->mutex);
	figures.superseded = list->superseded;
	figures.refused = list->refused;
	for (struct evc_latest *latest = list->first; latest != NULL; latest = latest->next) {
		figures.superseded += evc_latest_superseded(latest);
		figures.refused += atomic_load_explicit(&latest->refused, memory_order_relaxed);
	}
	pthread_mutex_unlock(&list->mutex);
	return figures;
}

/* Subtracts the cell's tokens that stand for no event of their lane. */
static void discount(struct evc_cell *cell, uint64_t depths[EVC_LANE_COUNT])
{
	/* Relaxed, both: a momentary figure. */
	uintptr_t slot = atomic_load_explicit(&cell->slot, memory_order_relaxed);

	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		uint64_t state = atomic_load_explicit(&cell->state[lane], memory_order_relaxed);
		bool is_its_own = slot != 0 && (slot & EVC_LATEST_LANE) == lane;

		if ((state & EVC_TOKEN_WHERE) == EVC_TOKEN_POSTED && !is_its_own && depths[lane] > 0)
			depths[lane]--;
	}
}

/* Subtracts the tokens of claims that were taken over, which came in addition. */
static void discount_extra(struct evc_latest *latest, uint64_t depths[EVC_LANE_COUNT])
{
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		/* Below 0 for a moment if a token was taken before its producer's last step. */
		int32_t extra = atomic_load_explicit(&latest->extra[lane], memory_order_relaxed);
		uint64_t count = extra > 0 ? (uint64_t)extra : 0;

		depths[lane] -= count < depths[lane] ? count : depths[lane];
	}
}

void evc_latest_discount(struct evc_subscription_list *subscriptions, uint64_t depths[EVC_LANE_COUNT])
{
	struct evc_latest_list *list = atomic_load_explicit(&subscriptions->latests, memory_order_acquire);

	if (list == NULL)
		return;
	pthread_mutex_lock(&list->mutex);
	for (struct evc_latest *latest = list->first; latest != NULL; latest = latest->next) {
		discount_extra(latest, depths);
		for (struct evc_cell *cell = first_cell(latest); cell != NULL; cell = cell->before)
			discount(cell, depths);
	}
	pthread_mutex_unlock(&list->mutex);
}
#endif
