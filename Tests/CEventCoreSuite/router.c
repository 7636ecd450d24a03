/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <string.h>
#include <time.h>

static const char *dispatch(struct evc_router *router, uint64_t key, uint32_t expected)
{
	uint64_t value = key;
	uint32_t receivers = 77;

	EXPECT_OK(evc_dispatch_bytes(router, key, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8,
				     &receivers));
	EXPECT_EQUAL(receivers, expected, "receivers");
	return NULL;
}

static const char *take_envelope(struct suite_receiver *receiver, uint32_t generation, bool timed,
				 uint64_t since)
{
	struct evc_envelope *envelope;
	uint64_t time;

	EXPECT_OK(evc_mailbox_take(receiver->mailbox, &envelope));
	time = evc_envelope_time(envelope);
	EXPECT_EQUAL(evc_envelope_generation(envelope), generation, "the generation");
	EXPECT(evc_envelope_subscription(envelope) == receiver->subscription,
	       "the envelope is addressed to another subscription");
	if (timed)
		EXPECT(time >= since && time <= evc_clock_now(), "D8: dispatched at %llu, found %llu",
		       (unsigned long long)since, (unsigned long long)time);
	else
		EXPECT_EQUAL(time, 0, "D8: the time, which nobody asked for");
	evc_mailbox_recycle(receiver->mailbox, envelope, true);
	return NULL;
}

static const char *generation_and_time(void)
{
	struct suite_receiver a, b;
	struct evc_router *router;
	uint64_t start = evc_clock_now();

	EXPECT_NONE(suite_receiver_open(&a, NULL));
	EXPECT_NONE(suite_receiver_open(&b, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, a.subscription, 5, false));
	EXPECT_NONE(dispatch(router, 1, 1));
	EXPECT_NONE(take_envelope(&a, 5, false, start));
	/* A second call replaces the subscription and does not double it. */
	EXPECT_OK(evc_router_subscribe(router, 1, a.subscription, 6, true));
	EXPECT_EQUAL(evc_router_count(router, 1), 1, "subscriptions");
	EXPECT_NONE(dispatch(router, 1, 1));
	EXPECT_NONE(take_envelope(&a, 6, true, start));
	EXPECT_OK(evc_router_subscribe(router, 1, b.subscription, 9, false));
	EXPECT_NONE(dispatch(router, 1, 2));
	EXPECT_NONE(take_envelope(&a, 6, true, start));
	EXPECT_NONE(take_envelope(&b, 9, true, start));
	EXPECT_OK(evc_router_subscribe(router, 1, a.subscription, 7, false));
	EXPECT_NONE(dispatch(router, 1, 2));
	EXPECT_NONE(take_envelope(&a, 7, false, start));
	EXPECT_NONE(take_envelope(&b, 9, false, start));
	EXPECT_OK(evc_router_unsubscribe(router, 1, a.subscription));
	EXPECT_NONE(dispatch(router, 1, 1));
	EXPECT_NONE(take_envelope(&b, 9, false, start));
	evc_router_destroy(router);
	evc_mailbox_release(a.mailbox);
	evc_mailbox_release(b.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static const char *nobody(void)
{
	struct suite_receiver receiver;
	struct evc_dispatch dispatch_;
	struct evc_router *router;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_NONE(dispatch(router, 1, 0));
	EXPECT_NONE(dispatch(router, 1, 0));
	EXPECT_OK(evc_dispatch_begin(router, 1, EVC_LANE_STACK_LOW, 100, 8, 3, &dispatch_));
	EXPECT(dispatch_.first == NULL && dispatch_.receivers == 0 && dispatch_.payloads == 0,
	       "a dispatch to nobody has something to write");
	EXPECT_EQUAL(evc_dispatch_commit(&dispatch_), 0, "receivers");
	EXPECT_OK(evc_dispatch_begin(router, 1, EVC_LANE_STACK_LOW, 100, 8, 3, &dispatch_));
	evc_dispatch_abandon(&dispatch_);
	EXPECT_OK(evc_router_subscribe(router, 1, receiver.subscription, 0, false));
	EXPECT_NONE(dispatch(router, 1, 1));
	EXPECT_OK(evc_router_unsubscribe(router, 1, receiver.subscription));
	EXPECT_STATUS(evc_router_unsubscribe(router, 1, receiver.subscription), EVC_NOT_FOUND);
	EXPECT_STATUS(evc_router_unsubscribe(router, 2, receiver.subscription), EVC_NOT_FOUND);
	EXPECT_NONE(dispatch(router, 1, 0));
	EXPECT_EQUAL(evc_router_count(router, 1), 0, "subscriptions");
	EXPECT_EQUAL(evc_router_count(router, 99), 0, "subscriptions of a key never used");
	/* It was addressed already, and still arrives. */
	EXPECT_NONE(take_envelope(&receiver, 0, false, 0));
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

/* Keys that share their low or high bits, as pointers do. */
static uint64_t key_of(unsigned i)
{
	return i % 2 ? (uint64_t)i << 40 : (uint64_t)i * 64 + 64;
}

static const char *many_keys(void)
{
	struct suite_receiver receiver;
	struct evc_router *router;
	unsigned lane;
	uint64_t value;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_router_create(&router));
	for (unsigned i = 0; i < 1000; i++) {
		EXPECT_OK(evc_router_subscribe(router, key_of(i), receiver.subscription, i, false));
		/* An early key after each growth. */
		EXPECT_NONE(dispatch(router, key_of(i / 2), 1));
		EXPECT_NONE(take_envelope(&receiver, i / 2, false, 0));
	}
	for (unsigned i = 0; i < 1000; i++) {
		EXPECT_NONE(dispatch(router, key_of(i), 1));
		EXPECT_OK(suite_take(&receiver, &lane, &value));
		EXPECT_EQUAL(value, key_of(i), "the key of the event");
		EXPECT_EQUAL(evc_router_count(router, key_of(i)), 1, "subscriptions");
	}
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

enum { RAISES = 2000 };

struct raiser {
	struct evc_router *router;
	struct evc_subscription *newcomer, *keeper;
	_Atomic bool has_ended;
};

/* Subscribes with the generations 1, 2, ... of both. */
static void *raise_both(void *context)
{
	struct raiser *raiser = context;

	for (uint32_t i = 1; i <= RAISES; i++)
		if (evc_router_subscribe_raising(raiser->router, 1, raiser->newcomer, i, false, raiser->keeper,
						 i) != EVC_OK)
			break;
	atomic_store(&raiser->has_ended, true);
	return NULL;
}

static const char *raising(void)
{
	struct suite_receiver newcomer, keeper;
	struct raiser raiser = { .has_ended = false };
	struct evc_envelope *envelope;
	uint32_t last = 0;
	pthread_t thread;

	EXPECT_NONE(suite_receiver_open(&newcomer, NULL));
	EXPECT_NONE(suite_receiver_open(&keeper, NULL));
	EXPECT_OK(evc_router_create(&raiser.router));
	raiser.newcomer = newcomer.subscription;
	raiser.keeper = keeper.subscription;
	/* The other one is not subscribed, and stays so. */
	EXPECT_OK(evc_router_subscribe_raising(raiser.router, 2, raiser.newcomer, 3, false, raiser.keeper, 4));
	EXPECT_EQUAL(evc_router_count(raiser.router, 2), 1, "subscriptions");
	EXPECT_EQUAL(evc_router_subscribe_raising(raiser.router, 2, raiser.newcomer, 3, false, raiser.newcomer, 4),
		     EVC_INVALID_ARGUMENT, "raising itself");
	EXPECT_EQUAL(evc_router_subscribe_raising(raiser.router, 2, raiser.newcomer, 3, false, raiser.keeper,
						  EVC_GENERATION_MAX + 1),
		     EVC_INVALID_ARGUMENT, "a generation that is too large");
	EXPECT_OK(evc_router_subscribe(raiser.router, 1, raiser.keeper, 0, true));
	pthread_create(&thread, NULL, raise_both, &raiser);
	while (!atomic_load(&raiser.has_ended) || last < RAISES) {
		uint64_t value = 1;
		uint32_t receivers = 0, generation;

		EXPECT_OK(evc_dispatch_bytes(raiser.router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8,
					     &receivers));
		EXPECT_OK(evc_mailbox_take(keeper.mailbox, &envelope));
		generation = evc_envelope_generation(envelope);
		EXPECT(generation >= last, "generation %u after %u", generation, last);
		EXPECT(evc_envelope_time(envelope) != 0, "D8: it is timed as before");
		evc_mailbox_recycle(keeper.mailbox, envelope, true);
		EXPECT_EQUAL(receivers, generation == 0 ? 1 : 2, "receivers");
		last = generation;
		if (generation == 0)
			continue;
		EXPECT_OK(evc_mailbox_take(newcomer.mailbox, &envelope));
		EXPECT_EQUAL(evc_envelope_generation(envelope), generation, "the generation of both");
		evc_mailbox_recycle(newcomer.mailbox, envelope, true);
	}
	pthread_join(thread, NULL);
	evc_router_destroy(raiser.router);
	evc_mailbox_release(newcomer.mailbox);
	evc_mailbox_release(keeper.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

struct holder {
	struct evc_router *router;
	struct suite_receiver receiver;
	struct suite_gate dispatched, destroyed;
	const char *message;
};

static void *hold_a_cache(void *context)
{
	struct holder *holder = context;
	struct evc_router *next;

	holder->message = dispatch(holder->router, 1, 1);
	suite_gate_open(&holder->dispatched);
	(void)suite_gate_pass(&holder->destroyed);
	/* The cache entry of the freed router must neither answer for the new one nor be followed. */
	if (holder->message == NULL && evc_router_create(&next) == EVC_OK) {
		holder->message = dispatch(next, 1, 0);
		evc_router_destroy(next);
	}
	return NULL;
}

static const char *destroyed_under_a_cache(void)
{
	struct holder holder = { .dispatched = SUITE_GATE, .destroyed = SUITE_GATE };
	pthread_t thread;

	EXPECT_NONE(suite_receiver_open(&holder.receiver, NULL));
	EXPECT_OK(evc_router_create(&holder.router));
	EXPECT_OK(evc_router_subscribe(holder.router, 1, holder.receiver.subscription, 0, false));
	pthread_create(&thread, NULL, hold_a_cache, &holder);
	EXPECT(suite_gate_pass(&holder.dispatched), "the thread got stuck");
	evc_router_destroy(holder.router);
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	suite_gate_open(&holder.destroyed);
	pthread_join(thread, NULL);
	EXPECT_NONE(holder.message);
	evc_mailbox_release(holder.receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	EXPECT_EQUAL(holder.receiver.drops, 1, "events dropped at the end");
	EXPECT_EQUAL(holder.receiver.finalized, 1, "calls of finalize at the end");
	return NULL;
}

/* The shortest of some laps over all keys, which differ from this bit on; in nanoseconds of the thread. */
static const char *time_of_keys(unsigned bit, int64_t *shortest)
{
	const unsigned count = 1024;
	struct suite_receiver receiver;
	struct evc_router *router;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_router_create(&router));
	for (uint64_t i = 1; i <= count; i++)
		EXPECT_OK(evc_router_subscribe(router, i << bit, receiver.subscription, 0, false));
	*shortest = INT64_MAX;
	for (unsigned lap = 0; lap < 5; lap++) {
		struct timespec start, end;
		int64_t time;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
		for (uint64_t i = 1; i <= count; i++)
			EXPECT_EQUAL(evc_router_count(router, i << bit), 1, "subscriptions");
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
		time = (end.tv_sec - start.tv_sec) * INT64_C(1000000000) + end.tv_nsec - start.tv_nsec;
		*shortest = time < *shortest ? time : *shortest;
	}
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const char *keys_by_their_highest_bits(void)
{
	int64_t low, high;

	EXPECT_NONE(time_of_keys(0, &low));
	for (unsigned bit = 8; bit <= 53; bit++) {
		EXPECT_NONE(time_of_keys(bit, &high));
		EXPECT(high <= 5 * low, "keys from bit %u on: %ld ns, from bit 0 on: %ld ns", bit, (long)high, (long)low);
	}
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "keys that differ in their highest bits alone are found as fast as others", keys_by_their_highest_bits },
	{ "D8 an envelope carries its generation, and the time only if asked for",
	  generation_and_time },
	{ "a subscription that raises another: each event has both new generations, or neither", raising },
	{ "D4 an event without subscriptions is no error", nobody },
	{ "D11 a thousand keys are kept apart", many_keys },
	{ "D9 a router ends while a thread's cache holds its snapshot", destroyed_under_a_cache },
};
SUITE_GROUP(suite_router, tests);
#endif
