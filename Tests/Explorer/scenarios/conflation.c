/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Conflation: two producers meet the same keys first at once, whose cells lie apart, in one node, or in one chain.
 * Each key has one cell, its last event is handled, and no event is lost unless a newer one of its key supersedes it.
 */
#include "post.h"

static struct evc_router *router;
static struct evc_mailbox *mailbox;
static struct evc_subscription *subscription;
static struct producer producers[2];
/* The numbers of the keys: of events with an even number, and of the others. */
static uint64_t numbers[2];
static unsigned kept, ended;

static uint64_t number_of(void *unused, const void *payload)
{
	(void)unused;
	return numbers[((const struct event *)payload)->number % 2];
}

static bool is_same(void *unused, const void *key, const void *payload)
{
	(void)unused;
	return *(const uint32_t *)key == ((const struct event *)payload)->number % 2;
}

UNSEEN static uint32_t *note_kept(uint32_t key)
{
	static uint32_t keys[2] = { 0, 1 };

	kept++;
	return &keys[key];
}

static void *keep(void *unused, const void *payload)
{
	(void)unused;
	return note_kept(((const struct event *)payload)->number % 2);
}

UNSEEN static void let_go(void *unused, void *key)
{
	(void)unused, (void)key;
	ended++;
}

static void set_up(uint64_t first, uint64_t second)
{
	struct evc_conflation conflation = { .number = number_of };
	struct evc_subscription_options options = tally_options();

	numbers[0] = first;
	numbers[1] = second;
	if (first == second)
		conflation = (struct evc_conflation){ NULL, number_of, is_same, keep, let_go };
	router = make_router();
	mailbox = make_mailbox(NULL);
	CHECK(evc_mailbox_add_conflated_subscription(mailbox, &options, &conflation, &subscription) == EVC_OK);
	subscribe(router, subscription);
	/* Even and odd in turn; the producers meet the keys in contrary order. */
	producers[0] = (struct producer){ router, 0, 3, { EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL,
							  EVC_LANE_QUEUE_NORMAL } };
	producers[1] = (struct producer){ router, 5, 2, { EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL } };
}

static void tear_down(bool is_kept)
{
	CHECK(evc_router_unsubscribe(router, KEY, subscription) == EVC_OK);
	evc_latest_subscription_release(subscription);
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
	explorer_settle();
	tally_check_once(0, EVENTS);
	CHECK(kept == ended && (is_kept ? kept >= 2 : kept == 0));
}

static void *run_mailbox(void *unused)
{
	CHECK(evc_mailbox_run(mailbox) == EVC_CLOSED);
	return unused;
}

/* At most one event of each key waits. */
static void two_waits(uint64_t first, uint64_t second)
{
	pthread_t threads[2];
	uint32_t taken = 0;

	set_up(first, second);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	if (first == second)
		CHECK(kept - ended == 2);
	while (take_one(mailbox) >= 0)
		taken++;
	CHECK(taken == 2);
	CHECK(tally_was_handled(2) || tally_was_handled(6));
	CHECK(tally_was_handled(1) || tally_was_handled(5));
	CHECK(evc_latest_subscription_superseded(subscription) == 3);
	tear_down(first == second);
}

SCENARIO(conflation_apart)
{
	two_waits(0, 1);
}

/* 34 times the factor of the hash has the first six bits of 0. */
SCENARIO(conflation_split)
{
	two_waits(0, 34);
}

SCENARIO(conflation_chained)
{
	two_waits(7, 7);
}

/* The same while a consumer takes. */
static void consumed(uint64_t first, uint64_t second)
{
	pthread_t consumer, threads[2];

	set_up(first, second);
	explorer_forbid_idling(true);
	consumer = explorer_start(run_mailbox, NULL);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	evc_mailbox_close_when_empty(mailbox);
	explorer_join(consumer);
	explorer_forbid_idling(false);
	CHECK(tally_was_handled(2) || tally_was_handled(6));
	CHECK(tally_was_handled(1) || tally_was_handled(5));
	tear_down(first == second);
}

SCENARIO(conflation_consumed)
{
	consumed(0, 34);
}

SCENARIO(conflation_chain_consumed)
{
	consumed(7, 7);
}

/* Producers that send several events at once, of both keys. */
static void *produce_together(void *producer)
{
	const struct producer *own = producer;

	post_together(own->router, own->first, own->count, own->lanes[0]);
	return NULL;
}

SCENARIO(conflation_together)
{
	pthread_t threads[2];
	uint32_t taken = 0;

	set_up(0, 34);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce_together, &producers[i]);
	while (take_one(mailbox) >= 0)
		taken++;
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	while (take_one(mailbox) >= 0)
		taken++;
	CHECK(taken >= 2 && taken <= 5);
	CHECK(tally_was_handled(2) || tally_was_handled(6));
	CHECK(tally_was_handled(1) || tally_was_handled(5));
	CHECK(evc_latest_subscription_superseded(subscription) == 5 - taken);
	tear_down(false);
}

/* One producer finds what the other has added, and nothing else orders the two. */
static _Atomic bool has_posted;

static void *post_second(void *unused)
{
	(void)post(router, 1, EVC_LANE_QUEUE_NORMAL);
	atomic_store_explicit(&has_posted, true, memory_order_relaxed);
	return unused;
}

static void *post_around(void *reads)
{
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	while (!atomic_load_explicit(&has_posted, memory_order_relaxed))
		sched_yield();
	if (reads != NULL)
		CHECK(evc_latest_subscription_superseded(subscription) == 0);
	(void)post(router, 3, EVC_LANE_QUEUE_NORMAL);
	return NULL;
}

static void found(uint64_t first, uint64_t second, bool reads)
{
	pthread_t threads[2];

	set_up(first, second);
	threads[0] = explorer_start(post_around, reads ? &has_posted : NULL);
	threads[1] = explorer_start(post_second, NULL);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	CHECK(evc_latest_subscription_superseded(subscription) == 1);
	tear_down(first == second);
}

SCENARIO(conflation_found)
{
	found(0, 34, false);
}

SCENARIO(conflation_found_in_chain)
{
	found(7, 7, false);
}

SCENARIO(conflation_read)
{
	found(0, 34, true);
}

/* The same where the node was there before, so that only what is found in it orders the two. */
static void *post_both(void *unused)
{
	for (uint32_t i = 0; i < 2; i++)
		(void)post(router, i, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

static void *post_third(void *unused)
{
	(void)post(router, 3, EVC_LANE_QUEUE_NORMAL);
	atomic_store_explicit(&has_posted, true, memory_order_relaxed);
	return unused;
}

static void *find_third(void *unused)
{
	while (!atomic_load_explicit(&has_posted, memory_order_relaxed))
		sched_yield();
	(void)post(router, 5, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

SCENARIO(conflation_found_in_node)
{
	pthread_t threads[2];

	set_up(0, 34);
	/* Not by this thread, whose cached route would keep the mailbox. */
	explorer_join(explorer_start(post_both, NULL));
	/* 89 times the factor of the hash has the first six bits of 0, too. */
	numbers[1] = 89;
	threads[0] = explorer_start(find_third, NULL);
	threads[1] = explorer_start(post_third, NULL);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	CHECK(evc_latest_subscription_superseded(subscription) == 1);
	tear_down(false);
}

/* The mailbox closes while producers add cells. */
SCENARIO(conflation_close)
{
	pthread_t consumer, threads[2];

	set_up(0, 34);
	consumer = explorer_start(run_mailbox, NULL);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	evc_mailbox_close(mailbox);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	explorer_join(consumer);
	tear_down(false);
}
