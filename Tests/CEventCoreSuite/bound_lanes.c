/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A mailbox that drops the oldest, flooded on all lanes by several producers at once: whom a post displaces, and that
 * each event ends in exactly one way. Each ending is written down by the thread on which it happens:
 *
 *     producer                                      consumer
 *     says what it posts: lane L                    handles an event: HANDLED
 *     posts, and meanwhile a payload ends:
 *       its own: the event found no place
 *       another, of lane V: it was displaced
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <string.h>

#define PRODUCERS 3u
#define EVENTS SUITE_SCALE(60000u)

enum { WAITS, HANDLED, OWN_END, DISPLACED, CLOSED, ENDINGS };

struct event {
	uint32_t lane, producer, number;
};

struct flood {
	struct evc_mailbox *mailbox;
	struct evc_router *router;
	uint64_t seed;
	/* How each event ended: written once, by the thread on which it did. */
	_Atomic uint8_t endings[PRODUCERS][EVENTS];
	_Atomic uint64_t counts[ENDINGS];
	/* A displaced event of a lane that was more urgent than the newcomer's: 1 + both lanes in decimals. */
	_Atomic unsigned more_urgent;
	_Atomic bool twice;
};

/* What this thread posts, and how many payloads have ended meanwhile. */
static _Thread_local const struct event *posted;
static _Thread_local unsigned ended;

static void write_down(struct flood *flood, const struct event *event, uint8_t ending)
{
	if (atomic_exchange(&flood->endings[event->producer][event->number], ending) != WAITS)
		atomic_store(&flood->twice, true);
	atomic_fetch_add(&flood->counts[ending], 1);
}

static bool handle(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct event event;

	(void)envelope, (void)owned;
	memcpy(&event, payload, sizeof(event));
	write_down(context, &event, HANDLED);
	return true;
}

static void drop(void *context, void *payload)
{
	struct flood *flood = context;
	struct event event;

	memcpy(&event, payload, sizeof(event));
	if (posted == NULL) {
		write_down(flood, &event, CLOSED);
		return;
	}
	ended++;
	if (event.producer == posted->producer && event.number == posted->number) {
		write_down(flood, &event, OWN_END);
		return;
	}
	write_down(flood, &event, DISPLACED);
	if (event.lane < posted->lane)
		atomic_store(&flood->more_urgent, 1 + 10 * event.lane + posted->lane);
}

struct producer {
	struct flood *flood;
	uint32_t index;
	bool failed;
	pthread_t thread;
};

static void *produce(void *opaque)
{
	struct producer *producer = opaque;
	struct flood *flood = producer->flood;
	uint64_t random = flood->seed + producer->index;

	for (uint32_t i = 0; i < EVENTS; i++) {
		struct event event = { (uint32_t)(suite_random(&random) % EVC_LANE_COUNT), producer->index, i };
		uint32_t receivers = 0;

		posted = &event;
		ended = 0;
		if (evc_dispatch_bytes(flood->router, 1, (enum evc_lane)event.lane, &event, sizeof(event), 4,
				       &receivers) != EVC_OK || receivers != 1 || ended > 1)
			producer->failed = true;
		posted = NULL;
	}
	return NULL;
}

static void *consume(void *context)
{
	(void)evc_mailbox_run(((struct flood *)context)->mailbox);
	return NULL;
}

/* Too large for a stack. */
static struct flood flood;

static const char *run_flood(uint64_t capacity, bool consumes)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = capacity,
					       .overflow = EVC_OVERFLOW_DROP_OLDEST };
	struct evc_subscription_options handler = { .size = sizeof(handler), .context = &flood, .deliver = handle, .drop = drop };
	struct evc_mailbox_statistics end;
	struct evc_subscription *subscription;
	struct producer producers[PRODUCERS];
	pthread_t consumer;

	memset(&flood, 0, sizeof(flood));
	flood.seed = suite_seed();
	EXPECT_OK(evc_mailbox_create(&options, &flood.mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(flood.mailbox, &handler, &subscription));
	EXPECT_OK(evc_router_create(&flood.router));
	EXPECT_OK(evc_router_subscribe(flood.router, 1, subscription, 0, false));
	if (consumes)
		pthread_create(&consumer, NULL, consume, &flood);
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){ &flood, i, false, 0 };
		pthread_create(&producers[i].thread, NULL, produce, &producers[i]);
	}
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(producers[i].thread, NULL);
		EXPECT(!producers[i].failed, "a post failed, or ended two events (seed %llu)", (unsigned long long)flood.seed);
	}
	if (!consumes) {
		evc_mailbox_read_statistics(flood.mailbox, &end);
		EXPECT_EQUAL(end.waiting, capacity, "events that wait when nobody has taken any");
		EXPECT(flood.counts[OWN_END] > 0 && flood.counts[DISPLACED] > 0, "nothing found no place");
	}
	evc_mailbox_close(flood.mailbox);
	if (consumes)
		pthread_join(consumer, NULL);
	evc_router_destroy(flood.router);
	evc_mailbox_read_statistics(flood.mailbox, &end);
	EXPECT(flood.more_urgent == 0, "an event of lane %u was displaced by one of lane %u (seed %llu)",
	       (flood.more_urgent - 1) / 10, (flood.more_urgent - 1) % 10, (unsigned long long)flood.seed);
	EXPECT(end.high_water <= capacity, "more than %llu waited", (unsigned long long)capacity);
	EXPECT_EQUAL(end.overflowed, flood.counts[OWN_END] + flood.counts[DISPLACED], "overflowed");
	EXPECT_EQUAL(end.taken, flood.counts[HANDLED], "taken");
	EXPECT_EQUAL(end.refused, 0, "refused");
	evc_mailbox_release(flood.mailbox);
	EXPECT(suite_settle(), "the reclaimer got stuck");
	EXPECT(!flood.twice, "D4: an event ended twice (seed %llu)", (unsigned long long)flood.seed);
	EXPECT_EQUAL(flood.counts[HANDLED] + flood.counts[OWN_END] + flood.counts[DISPLACED] + flood.counts[CLOSED],
		     PRODUCERS * EVENTS, "events that ended");
	return NULL;
}

static const char *floods(void)
{
	static const uint64_t capacities[] = { 1, PRODUCERS, 64, 1000 };

	for (unsigned i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		EXPECT_NONE(run_flood(capacities[i], true));
		EXPECT_NONE(run_flood(capacities[i], false));
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 a flood on all lanes of a mailbox that drops the oldest: nobody displaces a more urgent event", floods },
};
SUITE_GROUP(suite_bound_lanes, tests);
#endif
