/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* A balancer's creation and end, its loads, and its receivers, which posts read without the mutex. */
#include "balancer/balancer_private.h"

#include "balancer/load.h"
#include "platform/allocator.h"
#include "platform/options.h"
#include "platform/references.h"

uint64_t evc_load_promised(const struct evc_load *load)
{
	/* First, so that the difference is not below 0. */
	uint64_t lost = evc_load_lost(load);

	/* Pairs with evc_load_promise: a watcher that sees nothing promised is seen by the next promise. */
	return (atomic_load_explicit(evc_load_atomic(&load->word), memory_order_seq_cst) & ~EVC_LOAD_RETIRED) - lost;
}

uint64_t evc_load_lost(const struct evc_load *load)
{
	/* Pairs with evc_load_lose. */
	return atomic_load_explicit(evc_load_atomic(&load->lost), memory_order_seq_cst);
}

uint64_t evc_load_retire(struct evc_load *load)
{
	/* Releases to evc_load_promise that the receiver was removed before. seq_cst: L1 (load.h). */
	return atomic_fetch_or_explicit(evc_load_atomic(&load->word), EVC_LOAD_RETIRED,
					memory_order_seq_cst) &
	       ~EVC_LOAD_RETIRED;
}

static void retain(struct evc_sink *sink)
{
	evc_balancer_retain(evc_balancer_of(sink));
}

static void release(struct evc_sink *sink)
{
	evc_balancer_release(evc_balancer_of(sink));
}

enum evc_status evc_balancer_create(const struct evc_balancer_options *options,
				    struct evc_balancer **out)
{
	struct evc_balancer_options own;
	enum evc_status status = EVC_OPTIONS_READ(&own, struct evc_balancer_options, options, clock);
	struct evc_balancer *balancer;

	if (out == NULL)
		return EVC_INVALID_ARGUMENT;
	if (status != EVC_OK)
		return status;
	if (own.clock != NULL && own.clock->now == NULL)
		return EVC_INVALID_ARGUMENT;
	balancer = evc_allocate(sizeof(*balancer), _Alignof(struct evc_balancer));
	if (balancer == NULL)
		return EVC_OUT_OF_MEMORY;
	*balancer = (struct evc_balancer){
		.sink = { evc_balancer_accept, retain, release, false, 0, NULL, NULL, NULL },
		/* It delivers nothing: envelopes are readdressed or refused before a consumer sees them. */
		.subscription = {
			.sink = &balancer->sink,
			.drop = own.drop,
			.finalize = own.finalize,
			.context = own.context,
		},
		.choose = own.choose,
		.turn = own.turn != NULL ? (_Atomic uint32_t *)(void *)own.turn : &balancer->own_turn,
		.references = 1,
		.mutex = PTHREAD_MUTEX_INITIALIZER,
	};
	if (own.clock != NULL)
		balancer->clock = *own.clock;
	*out = balancer;
	return EVC_OK;
}

void evc_balancer_retain(struct evc_balancer *balancer)
{
	evc_reference_add(&balancer->references);
}

void evc_balancer_release(struct evc_balancer *balancer)
{
	struct evc_snapshot *receivers;

	if (balancer == NULL || !evc_reference_drop(&balancer->references))
		return;
	/* Relaxed: the last holder. A posting thread holds a reference, so that no section reads this. */
	receivers = atomic_load_explicit(&balancer->current, memory_order_relaxed);
	if (receivers != NULL)
		evc_snapshot_release(receivers);
	if (balancer->subscription.finalize != NULL)
		balancer->subscription.finalize(balancer->subscription.context);
	pthread_mutex_destroy(&balancer->mutex);
	evc_deallocate(balancer, sizeof(*balancer), _Alignof(struct evc_balancer));
}

struct evc_subscription *evc_balancer_subscription(struct evc_balancer *balancer)
{
	return &balancer->subscription;
}

void evc_subscription_lose(struct evc_subscription *subscription)
{
	struct evc_sink *sink = subscription->sink;

	/* Relaxed: the snapshot by which the event came has released it. */
	if (evc_load_lose(atomic_load_explicit(&subscription->load, memory_order_relaxed), 1) &&
	    sink->look_again != NULL)
		sink->look_again(sink);
}

/* Gives the subscription this load, which another balancer may do at once. False: it has a different one. */
static bool claim(struct evc_subscription *subscription, struct evc_load *load)
{
	struct evc_load *found = NULL;

	/* Relaxed: evc_snapshot_publish releases it. */
	return atomic_compare_exchange_strong_explicit(&subscription->load, &found, load, memory_order_relaxed,
						       memory_order_relaxed) ||
	       found == load;
}

enum evc_status evc_balancer_add(struct evc_balancer *balancer,
				 struct evc_subscription *subscription, uint32_t generation,
				 bool timed, struct evc_load *load)
{
	static const struct evc_observation nobody;
	struct evc_snapshot_entry entry = { subscription, generation, timed, load };
	enum evc_status status = EVC_OUT_OF_MEMORY;
	struct evc_snapshot *receivers;

	if (balancer == NULL || subscription == NULL || subscription->sink == NULL ||
	    load == NULL || subscription == &balancer->subscription || generation > EVC_GENERATION_MAX)
		return EVC_INVALID_ARGUMENT;
	pthread_mutex_lock(&balancer->mutex);
	/* The router has told its observer of what comes here. */
	receivers = evc_snapshot_with(&balancer->current, entry, &balancer->clock, &nobody);
	if (receivers != NULL && claim(subscription, load)) {
		evc_snapshot_publish(&balancer->current, receivers);
		status = EVC_OK;
	} else if (receivers != NULL) {
		evc_snapshot_release(receivers);
		status = EVC_INVALID_ARGUMENT;
	}
	pthread_mutex_unlock(&balancer->mutex);
	return status;
}

enum evc_status evc_balancer_remove(struct evc_balancer *balancer,
				    struct evc_subscription *subscription)
{
	enum evc_status status;

	if (balancer == NULL || subscription == NULL)
		return EVC_INVALID_ARGUMENT;
	pthread_mutex_lock(&balancer->mutex);
	status = evc_snapshot_remove(&balancer->current, subscription);
	pthread_mutex_unlock(&balancer->mutex);
	return status;
}

void evc_balancer_remove_all(struct evc_balancer *balancer)
{
	if (balancer == NULL)
		return;
	pthread_mutex_lock(&balancer->mutex);
	/* R1 of balancer_post.c. */
	evc_snapshot_publish(&balancer->current, NULL);
	pthread_mutex_unlock(&balancer->mutex);
}

uint32_t evc_balancer_count(struct evc_balancer *balancer)
{
	return evc_snapshot_count(&balancer->current);
}

uint64_t evc_balancer_refused(struct evc_balancer *balancer)
{
	/* Relaxed: a statistic. */
	return atomic_load_explicit(&balancer->refused, memory_order_relaxed);
}

uint64_t evc_balancer_dropped(struct evc_balancer *balancer)
{
	return atomic_load_explicit(&balancer->dropped, memory_order_relaxed);
}
#endif
