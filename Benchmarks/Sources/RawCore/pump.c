/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 *     one thread: 1,000 events ──► evc_router ──► evc_mailbox, pumped on the same thread: count and add up
 */
#include "check.h"

#include <eventcore/eventcore.h>

#include <string.h>

#define KEY 1u
/* A second: no frame takes that long. */
#define FAR 1000000000u

struct evb_pump {
	struct evc_router *router;
	struct evc_mailbox *mailbox;
	uint64_t count, sum;
};

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct evb_pump *pump = context;
	uint64_t value;

	(void)envelope, (void)owned;
	memcpy(&value, payload, sizeof(value));
	pump->count++;
	pump->sum += value;
	return false;
}

/* As the Swift pump has it: a mailbox that would call for its loop. */
static void wake(void *context)
{
	(void)context;
}

struct evb_pump *evb_pump_open(void)
{
	struct evb_pump *pump = calloc(1, sizeof(*pump));
	struct evc_mailbox_options options = { .size = sizeof(options), .wake = wake, .batches = true };
	struct evc_subscription_options handler = { .size = sizeof(handler), .context = pump, .deliver = deliver };
	struct evc_subscription *subscription;

	EVB_REQUIRE(pump != NULL, "no memory");
	EVB_REQUIRE(evc_router_create(&pump->router) == EVC_OK, "no router could be made");
	EVB_REQUIRE(evc_mailbox_create(&options, &pump->mailbox) == EVC_OK, "no mailbox could be made");
	EVB_REQUIRE(evc_mailbox_add_subscription(pump->mailbox, &handler, &subscription) == EVC_OK,
		    "no subscription could be made");
	EVB_REQUIRE(evc_router_subscribe(pump->router, KEY, subscription, 0, false) == EVC_OK,
		    "the subscription was refused");
	return pump;
}

/* The short way, and the general one while the thread is cold. */
static inline void post(struct evb_pump *pump, uint64_t value)
{
	uint64_t event[3] = { value, 0, 0 };
	uint64_t *words = evc_dispatch_begin_one(pump->router, KEY, EVC_LANE_QUEUE_NORMAL, sizeof(event), 8);

	if (words == NULL) {
		EVB_REQUIRE(evc_dispatch_bytes(pump->router, KEY, EVC_LANE_QUEUE_NORMAL, event, sizeof(event), 8,
					       NULL) == EVC_OK,
			    "a dispatch was refused");
		return;
	}
	words[0] = value;
	words[1] = words[2] = 0;
	evc_dispatch_commit_one(words);
}

static inline void post_batch(struct evb_pump *pump, uint64_t first, uint32_t count)
{
	struct evc_dispatch dispatch;
	struct evc_envelope *envelope;

	EVB_REQUIRE(evc_dispatch_begin_batch(pump->router, KEY, EVC_LANE_QUEUE_NORMAL, 24, 8, count, &dispatch) ==
			    EVC_OK,
		    "a batch was refused");
	envelope = dispatch.first;
	for (uint32_t i = 0; i < count; i++) {
		/* One by one while the thread is cold. */
		uint64_t *words = dispatch.array != NULL ? (uint64_t *)dispatch.array + i * 3
							 : evc_envelope_payload(envelope);

		words[0] = first + i;
		words[1] = words[2] = 0;
		if (dispatch.array == NULL)
			envelope = evc_dispatch_next(envelope);
	}
	evc_dispatch_commit(&dispatch);
}

static inline void post_frame(struct evb_pump *pump, uint64_t last, uint64_t events, uint32_t batch)
{
	if (batch == 1)
		for (uint64_t i = 1; i <= events; i++)
			post(pump, last + i);
	else
		for (uint64_t i = 1; i <= events; i += batch)
			post_batch(pump, last + i, batch);
}

uint64_t evb_pump_run(struct evb_pump *pump, uint64_t frames, uint64_t events, uint32_t batch, bool has_deadline)
{
	uint64_t start, end, value = 0, sum = 0;
	struct evc_mailbox *before;

	pump->count = pump->sum = 0;
	before = evc_mailbox_enter(pump->mailbox);
	start = evb_now();
	for (uint64_t frame = 0; frame < frames; frame++) {
		post_frame(pump, value, events, batch);
		value += events;
		EVB_REQUIRE(evc_mailbox_pump_until(pump->mailbox, UINT64_MAX,
						   has_deadline ? evc_clock_now() + FAR : EVC_FOREVER,
						   NULL) == EVC_EMPTY,
			    "a frame left events");
	}
	end = evb_now();
	evc_mailbox_leave(before);
	sum = value * (value + 1) / 2;
	EVB_REQUIRE(pump->count == value && pump->sum == sum, "a pump has not received every event once");
	return end - start;
}

void evb_pump_close(struct evb_pump *pump)
{
	evc_router_destroy(pump->router);
	evc_mailbox_release(pump->mailbox);
	free(pump);
}

void *evb_mailbox_make(void)
{
	struct evc_mailbox *mailbox;

	EVB_REQUIRE(evc_mailbox_create(NULL, &mailbox) == EVC_OK, "no mailbox could be made");
	return mailbox;
}

void evb_mailbox_end(void *mailbox)
{
	evc_mailbox_release(mailbox);
}
