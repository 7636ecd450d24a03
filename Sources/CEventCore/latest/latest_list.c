/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* The subscriptions of a mailbox, and what is counted of those that are latest-only or conflated. */
#include "latest/latest.h"

#include "eventcore/mailbox.h"
#include "platform/allocator.h"

enum evc_status evc_subscription_list_add(struct evc_subscription_list *list,
					  const struct evc_subscription *subscription, struct evc_subscription **out)
{
	struct evc_subscription *added = evc_allocate(sizeof(*added), _Alignof(struct evc_subscription));

	if (added == NULL)
		return EVC_OUT_OF_MEMORY;
	*added = *subscription;
	added->next = atomic_load_explicit(&list->first, memory_order_relaxed);
	/* Relaxed: only the close reads it. */
	while (!atomic_compare_exchange_weak_explicit(&list->first, &added->next, added, memory_order_relaxed,
						      memory_order_relaxed))
		;
	*out = added;
	return EVC_OK;
}

static void destroy(struct evc_latest_list *list)
{
	pthread_mutex_destroy(&list->mutex);
	evc_deallocate(list, sizeof(*list), _Alignof(struct evc_latest_list));
}

void evc_subscription_list_close(struct evc_subscription_list *list)
{
	/* Relaxed, both: whoever added something gave up a reference of the mailbox later. */
	struct evc_subscription *subscription = atomic_load_explicit(&list->first, memory_order_relaxed), *next;
	struct evc_latest_list *latests = atomic_load_explicit(&list->latests, memory_order_relaxed);

	for (; subscription != NULL; subscription = next) {
		next = subscription->next;
		if (subscription->finalize != NULL)
			subscription->finalize(subscription->context);
		evc_deallocate(subscription, sizeof(*subscription), _Alignof(struct evc_subscription));
	}
	if (latests != NULL)
		destroy(latests);
}

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
 * looked for the other way round: while it moves it may be missing, but is not counted twice.
 */
uint64_t evc_latest_subscription_superseded(struct evc_subscription *subscription)
{
	struct evc_latest *latest = evc_latest_of(subscription);
	/* Acquire, both, pairs with `take` and `carry`: what has come here has left the place before. */
	uint64_t sum = atomic_load_explicit(&latest->superseded, memory_order_acquire);

	for (struct evc_cell *cell = first_cell(latest); cell != NULL; cell = cell->before) {
		sum += atomic_load_explicit(&cell->superseded, memory_order_acquire);
		sum += evc_latest_count_in(atomic_load_explicit(&cell->slot, memory_order_relaxed));
	}
	return sum;
}

struct evc_latest_list *evc_latest_list_in(struct evc_subscription_list *subscriptions)
{
	/* Acquire, here and below, pairs with the exchange by which another thread has added it. */
	struct evc_latest_list *list = atomic_load_explicit(&subscriptions->latests, memory_order_acquire), *made;

	if (list != NULL)
		return list;
	made = evc_allocate(sizeof(*made), _Alignof(struct evc_latest_list));
	if (made == NULL)
		return NULL;
	*made = (struct evc_latest_list){ .mutex = PTHREAD_MUTEX_INITIALIZER };
	if (atomic_compare_exchange_strong_explicit(&subscriptions->latests, &list, made, memory_order_release,
						    memory_order_acquire))
		return made;
	destroy(made);
	return list;
}

void evc_latest_list_add(struct evc_latest *latest)
{
	struct evc_latest_list *list = latest->list;

	pthread_mutex_lock(&list->mutex);
	latest->next = list->first;
	latest->link = &list->first;
	if (latest->next != NULL)
		latest->next->link = &latest->next;
	list->first = latest;
	pthread_mutex_unlock(&list->mutex);
}

void evc_latest_list_remove(struct evc_latest *latest)
{
	struct evc_latest_list *list = latest->list;

	pthread_mutex_lock(&list->mutex);
	*latest->link = latest->next;
	if (latest->next != NULL)
		latest->next->link = latest->link;
	list->superseded += evc_latest_subscription_superseded(&latest->subscription);
	list->refused += atomic_load_explicit(&latest->refused, memory_order_relaxed);
	pthread_mutex_unlock(&list->mutex);
}

struct evc_latest_figures evc_latest_read(struct evc_subscription_list *subscriptions)
{
	/* Acquire, here and below, pairs with evc_latest_list_in. */
	struct evc_latest_list *list = atomic_load_explicit(&subscriptions->latests, memory_order_acquire);
	struct evc_latest_figures figures = { 0, 0 };

	if (list == NULL)
		return figures;
	pthread_mutex_lock(&list->mutex);
	figures.superseded = list->superseded;
	figures.refused = list->refused;
	for (struct evc_latest *latest = list->first; latest != NULL; latest = latest->next) {
		figures.superseded += evc_latest_subscription_superseded(&latest->subscription);
		figures.refused += atomic_load_explicit(&latest->refused, memory_order_relaxed);
	}
	pthread_mutex_unlock(&list->mutex);
	return figures;
}

void evc_latest_discount(struct evc_subscription_list *subscriptions, uint64_t depths[EVC_LANE_COUNT])
{
	struct evc_latest_list *list = atomic_load_explicit(&subscriptions->latests, memory_order_acquire);

	if (list == NULL)
		return;
	pthread_mutex_lock(&list->mutex);
	for (struct evc_latest *latest = list->first; latest != NULL; latest = latest->next)
		for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
			/* Relaxed: a momentary figure, as count_idle. */
			int32_t idle = atomic_load_explicit(&latest->idle[lane], memory_order_relaxed);
			uint64_t count = idle > 0 ? (uint64_t)idle : 0;

			depths[lane] -= count < depths[lane] ? count : depths[lane];
		}
	pthread_mutex_unlock(&list->mutex);
}
#endif
