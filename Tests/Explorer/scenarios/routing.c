/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Snapshots and route caches against subscribe and unsubscribe.
 */
#include "post.h"

static struct evc_router *router;
static struct evc_mailbox *mailboxes[2];
static struct evc_subscription *subscriptions[2];
static _Atomic int ended;
static uint32_t finalized;

UNSEEN static void note_finalized(void)
{
	finalized++;
}

static void finalize(void *unused)
{
	(void)unused;
	note_finalized();
}

static void set_up_with(bool batches, bool polled)
{
	struct evc_mailbox_options options = {
		.size = sizeof(options), .finalize = finalize, .batches = batches, .polled = polled,
	};

	router = make_router();
	for (unsigned i = 0; i < 2; i++) {
		struct evc_subscription_options tallied = tally_options();

		mailboxes[i] = make_mailbox(&options);
		CHECK(evc_mailbox_add_subscription(mailboxes[i], &tallied, &subscriptions[i]) == EVC_OK);
	}
}

static void set_up(void)
{
	set_up_with(false, false);
}

/* This thread caches routes until it ends: its mailbox must not be freed before, and must be freed then. */
static void tear_down(void)
{
	evc_router_destroy(router);
	explorer_settle();
}

static void *dispatch_three(void *unused)
{
	for (uint32_t i = 0; i < 3; i++)
		(void)post(router, i, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

static void *dispatch_to_both(void *unused)
{
	CHECK(post(router, 3, EVC_LANE_QUEUE_NORMAL) == 2);
	return unused;
}

/* A late subscriber gets what is dispatched afterwards. */
static void *count_twice(void *unused)
{
	uint32_t first = evc_router_count(router, KEY);

	CHECK(first == 1 || first == 2);
	CHECK(evc_router_count(router, KEY) >= first);
	return unused;
}

SCENARIO(routing_subscribe)
{
	pthread_t threads[2];

	set_up();
	subscribe(router, subscriptions[0]);
	threads[0] = explorer_start(dispatch_three, NULL);
	threads[1] = explorer_start(count_twice, NULL);
	subscribe(router, subscriptions[1]);
	explorer_join(explorer_start(dispatch_to_both, NULL));
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	for (unsigned i = 0; i < 2; i++)
		evc_mailbox_release(mailboxes[i]);
	tear_down();
	CHECK(finalized == 2);
}

/* Without waiting, it looks at the current snapshot and keeps none. */
static void *try_two(void *unused)
{
	CHECK(evc_reserve(2) == EVC_OK);
	for (uint32_t i = 0; i < 2; i++)
		(void)try_post(router, i, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

SCENARIO(routing_subscribe_try)
{
	pthread_t thread;

	set_up_with(false, true);
	thread = explorer_start(try_two, NULL);
	subscribe(router, subscriptions[0]);
	explorer_join(thread);
	for (unsigned i = 0; i < 2; i++)
		evc_mailbox_release(mailboxes[i]);
	tear_down();
	CHECK(finalized == 2);
}

/*
 * After an unsubscribe has returned, no later dispatch finds the subscription; the mailbox is freed when the
 * last cache has released it, and not before.
 */
static void *dispatch_and_tell(void *unused)
{
	for (uint32_t i = 8; i < 11; i++) {
		int over = atomic_load_explicit(&ended, memory_order_acquire);
		uint32_t receivers = post(router, i, EVC_LANE_QUEUE_NORMAL);

		if (over)
			CHECK(receivers == 0);
	}
	return unused;
}

static void unsubscribe_against(unsigned dispatchers)
{
	pthread_t threads[2];

	set_up();
	subscribe(router, subscriptions[0]);
	for (unsigned i = 0; i < dispatchers; i++)
		threads[i] = explorer_start(i == 0 ? dispatch_and_tell : dispatch_three, NULL);
	CHECK(evc_router_unsubscribe(router, KEY, subscriptions[0]) == EVC_OK);
	evc_mailbox_close(mailboxes[0]);
	evc_mailbox_release(mailboxes[0]);
	atomic_store_explicit(&ended, 1, memory_order_release);
	evc_mailbox_release(mailboxes[1]);
	for (unsigned i = 0; i < dispatchers; i++)
		explorer_join(threads[i]);
	tear_down();
	/* All threads with a cache have ended, except this one, which has none. */
	CHECK(finalized == 2);
	tally_check_once(0, EVENTS);
}

SCENARIO(routing_unsubscribe)
{
	unsubscribe_against(1);
}

SCENARIO(routing_unsubscribe_two)
{
	unsubscribe_against(2);
}

/* The same for the consumer, whose dispatches to itself remember a version of the router's state and look at no route. */
static void *unsubscribe_and_tell(void *unused)
{
	CHECK(evc_router_unsubscribe(router, KEY, subscriptions[0]) == EVC_OK);
	atomic_store_explicit(&ended, 1, memory_order_release);
	return unused;
}

SCENARIO(routing_unsubscribe_consumer)
{
	struct evc_mailbox *before;
	pthread_t thread;

	set_up_with(true, false);
	subscribe(router, subscriptions[0]);
	before = evc_mailbox_enter(mailboxes[0]);
	/* The second one opens a batch, which the third joins. */
	for (uint32_t i = 0; i < 3; i++)
		CHECK(post(router, i, EVC_LANE_QUEUE_NORMAL) == 1);
	thread = explorer_start(unsubscribe_and_tell, NULL);
	for (uint32_t i = 3; i < 6; i++) {
		int over = atomic_load_explicit(&ended, memory_order_acquire);
		uint32_t receivers = post(router, i, EVC_LANE_QUEUE_NORMAL);

		if (over)
			CHECK(receivers == 0);
	}
	explorer_join(thread);
	while (evc_mailbox_pump(mailboxes[0], 3) == EVC_OK)
		;
	evc_mailbox_leave(before);
	for (unsigned i = 0; i < 2; i++)
		evc_mailbox_release(mailboxes[i]);
	tear_down();
	tally_check_once(0, EVENTS);
}

/* Another key is added while one is dispatched: the table grows while it is read. */
static void *add_keys(void *unused)
{
	for (uint64_t key = 100; key < 120; key++)
		CHECK(evc_router_subscribe(router, key, subscriptions[1], 1, false) == EVC_OK);
	return unused;
}

SCENARIO(routing_table_grows)
{
	pthread_t threads[2];

	set_up();
	subscribe(router, subscriptions[0]);
	threads[0] = explorer_start(add_keys, NULL);
	threads[1] = explorer_start(dispatch_three, NULL);
	CHECK(evc_router_count(router, KEY) == 1);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	CHECK(tally.accepted[0] == 1 && tally.accepted[1] == 1 && tally.accepted[2] == 1);
	CHECK(evc_router_count(router, 119) == 1);
	for (unsigned i = 0; i < 2; i++)
		evc_mailbox_release(mailboxes[i]);
	tear_down();
	CHECK(finalized == 2);
}

/* The key is new to the router while two threads subscribe it and one dispatches it. */
static void *subscribe_second(void *unused)
{
	subscribe(router, subscriptions[1]);
	return unused;
}

SCENARIO(routing_new_key)
{
	pthread_t threads[2];

	set_up();
	threads[0] = explorer_start(subscribe_second, NULL);
	threads[1] = explorer_start(dispatch_three, NULL);
	subscribe(router, subscriptions[0]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	CHECK(evc_router_count(router, KEY) == 2);
	CHECK(tally.accepted[0] <= tally.accepted[1] && tally.accepted[1] <= tally.accepted[2]);
	for (unsigned i = 0; i < 2; i++)
		evc_mailbox_release(mailboxes[i]);
	tear_down();
	CHECK(finalized == 2);
}
