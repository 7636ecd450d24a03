/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 *     producer, as fast as it can ──► a cell for each of 1,000 keys ──► consumer: handler, 1 µs
 */
#include "check.h"

#include <eventcore/eventcore.h>

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define KEY 1u

struct evb_conflated {
	struct evc_router *router;
	struct evc_mailbox *mailbox;
	struct evc_thread *thread;
	uint64_t keys, events;
	/* The numbers that were handled last, one for each key, and how many keys have come to their end. */
	uint64_t *last;
	_Atomic uint64_t ended;
};

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct evb_conflated *flood = context;
	uint64_t value, *last;

	(void)envelope, (void)owned;
	memcpy(&value, payload, sizeof(value));
	last = &flood->last[value % flood->keys];
	EVB_REQUIRE(value > *last, "the events of a key came out of order");
	*last = value;
	if (value + flood->keys > flood->events)
		atomic_fetch_add_explicit(&flood->ended, 1, memory_order_release);
	else
		evb_pause_for(1000, true);
	return false;
}

static uint64_t number(void *context, const void *payload)
{
	uint64_t value;

	memcpy(&value, payload, sizeof(value));
	return value % ((const struct evb_conflated *)context)->keys;
}

struct evb_conflated *evb_conflated_open(uint64_t keys)
{
	struct evb_conflated *flood = calloc(1, sizeof(*flood));
	struct evc_subscription_options handler = { .size = sizeof(handler), .context = flood, .deliver = deliver };
	struct evc_conflation conflation = { .context = flood, .number = number };
	struct evc_subscription *subscription;

	EVB_REQUIRE(flood != NULL, "no memory");
	flood->keys = keys;
	flood->last = calloc(keys, sizeof(*flood->last));
	EVB_REQUIRE(flood->last != NULL, "no memory");
	EVB_REQUIRE(evc_router_create(&flood->router) == EVC_OK, "no router could be made");
	EVB_REQUIRE(evc_mailbox_create(NULL, &flood->mailbox) == EVC_OK, "no mailbox could be made");
	EVB_REQUIRE(evc_mailbox_add_conflated_subscription(flood->mailbox, &handler, &conflation, &subscription) ==
			    EVC_OK,
		    "no subscription could be made");
	EVB_REQUIRE(evc_router_subscribe(flood->router, KEY, subscription, 0, false) == EVC_OK,
		    "the subscription was refused");
	/* The router holds it from here on. */
	evc_latest_subscription_release(subscription);
	EVB_REQUIRE(evc_thread_start(NULL, flood->mailbox, &flood->thread) == EVC_OK, "no thread could be started");
	return flood;
}

uint64_t evb_conflated_run(struct evb_conflated *flood, uint64_t events)
{
	uint64_t start, end;

	memset(flood->last, 0, flood->keys * sizeof(*flood->last));
	flood->events = events;
	atomic_store_explicit(&flood->ended, 0, memory_order_relaxed);
	start = evb_now();
	for (uint64_t i = 1; i <= events; i++) {
		const uint64_t event[3] = { i, 0, 0 };

		EVB_REQUIRE(evc_dispatch_bytes(flood->router, KEY, EVC_LANE_QUEUE_NORMAL, event, sizeof(event), 8,
					       NULL) == EVC_OK,
			    "a dispatch was refused");
	}
	end = evb_now();
	/* The last event of each key is handled, and nothing else is counted here. */
	while (atomic_load_explicit(&flood->ended, memory_order_acquire) < flood->keys)
		sched_yield();
	return end - start;
}

void evb_conflated_close(struct evb_conflated *flood)
{
	evc_router_destroy(flood->router);
	evc_mailbox_close(flood->mailbox);
	EVB_REQUIRE(evc_thread_join(flood->thread) == EVC_OK, "the thread could not be joined");
	evc_mailbox_release(flood->mailbox);
	free(flood->last);
	free(flood);
}
