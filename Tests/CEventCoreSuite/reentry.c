/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * User code at unusual places: in `control`, in the end of a subscription; and deadlines and trims that once
 * went wrong.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include "memory/thread_record.h"

#include <sched.h>
#include <string.h>

/* D1 after `control`: what it posts and closes counts for the next take. */

static struct suite_receiver *spoken_to;

static void post_urgent(void *context)
{
	(void)context;
	(void)!suite_post(spoken_to, EVC_LANE_QUEUE_HIGHEST, 5);
}

static void close_it(void *context)
{
	(void)context;
	evc_mailbox_close(spoken_to->mailbox);
}

static const char *control_posts(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .control = post_urgent };
	struct suite_receiver receiver;
	unsigned lane;
	uint64_t value;

	spoken_to = &receiver;
	EXPECT_NONE(suite_receiver_open(&receiver, &options));
	EXPECT_NONE(suite_prime(&receiver));
	for (value = 1; value <= 3; value++)
		EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_NORMAL, value));
	/* The others are in their lane already, so that the next take would not look by itself. */
	EXPECT_OK(suite_take(&receiver, &lane, &value));
	evc_mailbox_interrupt(receiver.mailbox);
	EXPECT_OK(suite_take(&receiver, &lane, &value));
	EXPECT_EQUAL(value, 5, "the value of the first take after control posted to a higher lane");
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const char *control_closes(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .control = close_it };
	struct suite_receiver receiver;
	unsigned lane;
	uint64_t value;

	spoken_to = &receiver;
	EXPECT_NONE(suite_receiver_open(&receiver, &options));
	EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_NORMAL, 1));
	evc_mailbox_interrupt(receiver.mailbox);
	EXPECT_EQUAL(suite_take(&receiver, &lane, &value), EVC_CLOSED, "the take after a close");
	EXPECT_EQUAL(atomic_load(&receiver.drops), 1, "drops");
	/* The mailbox has ended: posters keep what they post now. */
	EXPECT_EQUAL(suite_take(&receiver, &lane, &value), EVC_CLOSED, "the take after the end");
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

/*
 * An evicted route may end its sink: not during the dispatch, which runs no user code (D5), but a little
 * later.
 */

#define KEYS 512u

struct parting {
	struct evc_router *router;
	struct evc_subscription *stays;
	pthread_t dispatcher;
	_Atomic unsigned calls;
	_Atomic unsigned calls_in_dispatch;
};
static struct parting parting;

static void dispatch_everywhere(void *context)
{
	uint64_t value = 7;

	(void)context;
	for (uint64_t key = 1; key <= KEYS; key++)
		(void)!evc_dispatch_bytes(parting.router, key, EVC_LANE_QUEUE_LOW, &value, 8, 8, NULL);
	for (uint64_t key = 1; key <= KEYS; key++)
		(void)!evc_router_unsubscribe(parting.router, key, parting.stays);
	/* The callback thread's routes hold what it dispatched to. */
	evc_route_cache_clear(evc_thread_record_current);
	if (pthread_equal(pthread_self(), parting.dispatcher))
		atomic_fetch_add(&parting.calls_in_dispatch, 1);
	atomic_fetch_add(&parting.calls, 1);
}

static bool ignore(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	return false;
}

static const char *eviction_dispatches(void)
{
	struct evc_subscription_options options = { .size = sizeof(options), .deliver = ignore,
						    .finalize = dispatch_everywhere };
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscription;
	static struct suite_receiver stays;
	uint64_t value = 1;

	EXPECT_OK(evc_router_create(&parting.router));
	atomic_store(&parting.calls, 0);
	atomic_store(&parting.calls_in_dispatch, 0);
	parting.dispatcher = pthread_self();
	EXPECT_NONE(suite_receiver_open(&stays, NULL));
	parting.stays = stays.subscription;
	for (uint64_t key = 1; key <= KEYS; key++)
		EXPECT_OK(evc_router_subscribe(parting.router, key, stays.subscription, 0, false));
	/* A mailbox whose last reference will be this thread's cached route. */
	EXPECT_OK(evc_mailbox_create(NULL, &mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(mailbox, &options, &subscription));
	EXPECT_OK(evc_router_subscribe(parting.router, KEYS + 1, subscription, 0, false));
	EXPECT_OK(evc_dispatch_bytes(parting.router, KEYS + 1, EVC_LANE_QUEUE_LOW, &value, 8, 8, NULL));
	EXPECT_OK(evc_router_unsubscribe(parting.router, KEYS + 1, subscription));
	evc_mailbox_release(mailbox);
	EXPECT(suite_quiesce(), "no grace period came to an end");
	EXPECT_EQUAL(atomic_load(&parting.calls), 0, "ends before the route is evicted");
	for (uint64_t key = 1; key <= KEYS; key++)
		EXPECT_OK(evc_dispatch_bytes(parting.router, key, EVC_LANE_QUEUE_LOW, &value, 8, 8,
					     NULL));
	EXPECT(suite_quiesce(), "no grace period came to an end");
	EXPECT_EQUAL(atomic_load(&parting.calls), 1, "ends after every route was used");
	EXPECT_EQUAL(atomic_load(&parting.calls_in_dispatch), 0, "ends inside a dispatch");
	evc_mailbox_close(stays.mailbox);
	evc_mailbox_release(stays.mailbox);
	evc_router_destroy(parting.router);
	EXPECT(suite_settle() && suite_quiesce(), "no grace period came to an end");
	EXPECT(atomic_load(&stays.drops) > KEYS, "the dispatch that evicted the route was lost");
	return NULL;
}

/* Deadlines beyond the clock are "for ever", not "in the past". */

static struct evc_parker *sleeper;
static unsigned sleeps;

/* Returns once without a reason, as a system may, and is woken the second time. */
static void restless_wait(void *state, const uint32_t *word, uint32_t expected, uint64_t timeout)
{
	(void)state, (void)word, (void)expected, (void)timeout;
	if (++sleeps == 2)
		(void)evc_parker_wake(sleeper);
}

static void no_wake(void *state, const uint32_t *word)
{
	(void)state, (void)word;
}

static const char *far_deadlines(void)
{
	static const struct evc_parker_ops ops = { NULL, NULL, restless_wait, no_wake };

	sleeps = 0;
	EXPECT_OK(evc_parker_create(&ops, &sleeper));
	EXPECT_OK(evc_parker_wait(sleeper, evc_parker_prepare(sleeper), EVC_FOREVER - 1));
	EXPECT_EQUAL(sleeps, 2, "sleeps");
	evc_parker_destroy(sleeper);
	return NULL;
}

#ifndef SUITE_ADDRESS_SANITIZER

/* A trim takes the free lists; a busy owner that found them empty would map new slabs without end. */

#define HOT_BURST 10000u

static _Atomic bool trimming;

static void *trim_on_and_on(void *nothing)
{
	while (atomic_load(&trimming))
		evc_pool_trim();
	return nothing;
}

static const char *trims_of_a_hot_pool(void)
{
	struct suite_receiver receiver;
	struct evc_router *router;
	struct evc_pool_statistics start, end;
	struct evc_thread *thread;
	uint64_t value = 1;
	pthread_t trimmer;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, receiver.subscription, 0, false));
	EXPECT_OK(evc_thread_start(NULL, receiver.mailbox, &thread));
	evc_pool_read_statistics(&start);
	atomic_store(&trimming, true);
	EXPECT(pthread_create(&trimmer, NULL, trim_on_and_on, NULL) == 0, "no thread");
	for (uint64_t burst = 1; burst <= SUITE_SCALE(200u); burst++) {
		for (unsigned i = 0; i < HOT_BURST; i++)
			EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, &value, 8, 8,
						     NULL));
		EXPECT(suite_await(&receiver.delivered, burst * HOT_BURST), "the consumer got stuck");
	}
	atomic_store(&trimming, false);
	pthread_join(trimmer, NULL);
	evc_pool_read_statistics(&end);
	/* A burst needs 10,000 slots: three slabs, and as many for what is on its way. */
	EXPECT(end.slab_bytes <= start.slab_bytes + 16 * 256 * 1024,
	       "bursts of %u grew the pools from %zu to %zu bytes", HOT_BURST, start.slab_bytes,
	       end.slab_bytes);
	evc_thread_cancel(thread);
	EXPECT_OK(evc_thread_join(thread));
	evc_mailbox_release(receiver.mailbox);
	evc_router_destroy(router);
	EXPECT(suite_settle(), "no grace period came to an end");
	return NULL;
}

#endif

static const struct evc_suite_test tests[] = {
	{ "D1 D7 what control posts counts for the next take", control_posts },
	{ "D7 D10 a close in control drops what waits, and the end is final", control_closes },
	{ "D5 D7 a sink that ends with an evicted route does so outside of the dispatch, and may dispatch", eviction_dispatches },
	{ "a deadline beyond the clock does not come at once", far_deadlines },
#ifndef SUITE_ADDRESS_SANITIZER
	{ "trims do not make a busy pool grow", trims_of_a_hot_pool },
#endif
};

SUITE_GROUP(suite_reentry, tests);
#endif
