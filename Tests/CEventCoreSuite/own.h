/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A consumer that posts to its own mailbox, and a model of what it must find. Each file has its own copy. */
#ifndef EVC_SUITE_OWN_H
#define EVC_SUITE_OWN_H

#include "mailbox/mailbox_own.h"
#include "model.h"

#define KEYS 3u
/* Two keys of eight bytes, so that events of one kind follow one another or do not, and one of 24. */
static const size_t sizes[KEYS] = { 8, 8, 24 };

struct own {
	struct evc_router *router;
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscriptions[KEYS];
	struct model model;
	uint64_t next, random, delivered, drops;
	unsigned wakes;
	/* How many more events handlers post. */
	unsigned replies;
	/* And `idle`. */
	unsigned idle_posts;
	const char *message;
	bool is_unordered;
	void (*at_drop)(struct own *own);
};

static inline void wake(void *context)
{
	((struct own *)context)->wakes++;
}

static inline void drop(void *context, void *payload)
{
	struct own *own = context;

	(void)payload;
	own->drops++;
	if (own->at_drop != NULL)
		own->at_drop(own);
}

/* Dispatches one event with either form of a dispatch; the model learns of it if it is accepted. */
static inline const char *send(struct own *own, unsigned lane, unsigned kind)
{
	uint64_t payload[3] = { own->next++, 0, 0 };
	uint32_t receivers = 0;
	void *place = NULL;

	if (suite_random(&own->random) % 4 != 0)
		place = evc_dispatch_begin_one(own->router, kind + 1, (enum evc_lane)lane, sizes[kind], 8);
	if (place != NULL) {
		__builtin_memcpy(place, payload, sizes[kind]);
		receivers = evc_dispatch_commit_one(place);
	} else {
		EXPECT_OK(evc_dispatch_bytes(own->router, kind + 1, (enum evc_lane)lane, payload, sizes[kind],
					     8, &receivers));
	}
	if (receivers == 1)
		model_post(&own->model, lane, payload[0]);
	return NULL;
}

static inline const char *send_some(struct own *own, unsigned count)
{
	unsigned lane = 0, kind = 0;

	for (unsigned i = 0; i < count; i++) {
		/* Runs of one kind, in one lane, mostly a queue. */
		if (i == 0 || suite_random(&own->random) % 8 == 0) {
			kind = (unsigned)(suite_random(&own->random) % KEYS);
			lane = (unsigned)(suite_random(&own->random) % EVC_LANE_COUNT);
			if (suite_random(&own->random) % 2 == 0)
				lane = EVC_LANE_QUEUE_NORMAL;
		}
		EXPECT_NONE(send(own, lane, kind));
	}
	return NULL;
}

static inline bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct own *own = context;
	unsigned lane = EVC_LANE_COUNT, found = evc_envelope_lane(envelope);
	uint64_t value, expected = 0;

	__builtin_memcpy(&value, payload, sizeof(value));
	own->delivered++;
	if (own->is_unordered)
		return false;
	if (!model_take(&own->model, &lane, &expected) || value != expected || lane != found || !owned)
		own->message = suite_fail("expected event %llu of lane %u, found %llu of lane %u",
					  (unsigned long long)expected, lane, (unsigned long long)value, found);
	if (own->replies > 0 && suite_random(&own->random) % 2 == 0) {
		const char *message;

		own->replies--;
		message = send_some(own, 1 + (unsigned)(suite_random(&own->random) % 3));
		if (message != NULL)
			own->message = message;
	}
	return false;
}

static inline void deliver_batch(void *context, void *payload, const struct evc_envelope *envelope,
			  struct evc_batch_walk *walk)
{
	do {
		(void)deliver(context, payload, envelope, true);
		drop(context, payload);
	} while ((payload = evc_batch_next(walk)) != NULL);
}

static inline void idle(void *context)
{
	struct own *own = context;

	if (own->idle_posts == 0)
		return;
	own->idle_posts--;
	own->message = send(own, EVC_LANE_QUEUE_LOW, 0);
}

static inline const char *open_own(struct own *own, uint64_t seed, bool batches, bool walks)
{
	const struct evc_mailbox_options options = {
		.size = sizeof(options), .wake = wake, .idle = idle, .context = own, .batches = batches
	};
	const struct evc_subscription_options subscription = {
		.size = sizeof(subscription), .context = own,
		.deliver = deliver,
		.drop = drop,
		.deliver_batch = walks ? deliver_batch : NULL,
	};

	__builtin_memset(own, 0, sizeof(*own));
	own->random = seed;
	EXPECT_OK(evc_mailbox_create(&options, &own->mailbox));
	EXPECT_OK(evc_router_create(&own->router));
	for (unsigned i = 0; i < KEYS; i++) {
		EXPECT_OK(evc_mailbox_add_subscription(own->mailbox, &subscription, &own->subscriptions[i]));
		EXPECT_OK(evc_router_subscribe(own->router, i + 1, own->subscriptions[i], 0, false));
	}
	return NULL;
}

static inline const char *close_own(struct own *own)
{
	evc_mailbox_release(own->mailbox);
	evc_router_destroy(own->router);
	EXPECT(suite_settle(), "the router's end took too long");
	EXPECT(own->message == NULL, "%s", own->message);
	return NULL;
}

static inline const char *check_depths(struct own *own)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_mailbox_depths(own->mailbox, depths);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		EXPECT_EQUAL(depths[lane], own->model.end[lane] - own->model.first[lane], "depth of a lane");
	return NULL;
}

/* A pump with a limit: it counts what it handles, and is at its limit or empty. */
static inline const char *pump(struct own *own, uint64_t limit)
{
	uint64_t before = own->delivered, handled;
	enum evc_status status = evc_mailbox_pump_until(own->mailbox, limit, EVC_FOREVER, &handled);

	EXPECT_EQUAL(handled, own->delivered - before, "handled");
	EXPECT(status == EVC_OK ? handled == limit : status == EVC_EMPTY && handled < limit,
	       "a pump with a limit of %llu handled %llu, and returned \"%s\"", (unsigned long long)limit,
	       (unsigned long long)handled, evc_status_text(status));
	return NULL;
}

#endif
