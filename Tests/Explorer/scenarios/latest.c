/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Latest-only: at most one event waits, the newest is delivered, and none is lost unless a newer one
 * supersedes it.
 */
#include "post.h"

static struct evc_router *router;
static struct evc_mailbox *mailbox;
static struct evc_subscription *subscription;
static struct producer producers[2];

static void set_up(enum evc_lane first, enum evc_lane second)
{
	struct evc_subscription_options options = tally_options();

	router = make_router();
	mailbox = make_mailbox(NULL);
	CHECK(evc_mailbox_add_latest_subscription(mailbox, &options, &subscription) == EVC_OK);
	subscribe(router, subscription);
	producers[0] = (struct producer){ router, 0, 3, { first, second, first, second } };
	producers[1] = (struct producer){ router, 4, 2, { second, first, second, first } };
}

static void *run_mailbox(void *unused)
{
	CHECK(evc_mailbox_run(mailbox) == EVC_CLOSED);
	return unused;
}

UNSEEN static uint32_t count_dropped(void)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < EVENTS; i++)
		count += tally.dropped[i];
	return count;
}

static void let_go(void)
{
	CHECK(evc_router_unsubscribe(router, KEY, subscription) == EVC_OK);
	evc_latest_subscription_release(subscription);
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
	explorer_settle();
	tally_check_once(0, EVENTS);
}

static void tear_down(void)
{
	explorer_forbid_idling(false);
	CHECK(evc_latest_subscription_superseded(subscription) == count_dropped());
	let_go();
}

/* Of one producer's events: in order, and the last is handled. */
static void one_producer(enum evc_lane first, enum evc_lane second)
{
	pthread_t consumer, producer;

	set_up(first, second);
	explorer_forbid_idling(true);
	consumer = explorer_start(run_mailbox, NULL);
	producer = explorer_start(produce, &producers[0]);
	explorer_join(producer);
	evc_mailbox_close_when_empty(mailbox);
	explorer_join(consumer);
	CHECK(tally_was_handled(2));
	if (first == second)
		tally_check_order(0, 3);
	tear_down();
}

SCENARIO(latest_one_producer)
{
	one_producer(EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL);
}

SCENARIO(latest_two_lanes)
{
	one_producer(EVC_LANE_QUEUE_NORMAL, EVC_LANE_STACK_HIGH);
}

/*
 * Tokens of two lanes, so that some find an envelope of the other lane, which is then superseded and its
 * memory used again; and statistics are read, none of which is negative.
 */
SCENARIO(latest_put_back)
{
	struct evc_mailbox_statistics statistics;
	pthread_t consumer, producer;

	set_up(EVC_LANE_QUEUE_NORMAL, EVC_LANE_STACK_HIGH);
	producers[0].count = 6;
	consumer = explorer_start(run_mailbox, NULL);
	producer = explorer_start(produce, &producers[0]);
	evc_mailbox_read_statistics(mailbox, &statistics);
	if (statistics.taken > 12)
		explorer_fail("%ld events were taken", (long)statistics.taken);
	explorer_join(producer);
	evc_mailbox_close_when_empty(mailbox);
	explorer_join(consumer);
	CHECK(tally_was_handled(5));
	tear_down();
}

/* Two tokens and one event are taken or dropped: the count of taken events is never negative. */
static void *read_statistics(void *unused)
{
	struct evc_mailbox_statistics statistics;

	evc_mailbox_read_statistics(mailbox, &statistics);
	if (statistics.taken > 2)
		explorer_fail("%ld events of 2 were taken", (long)statistics.taken);
	return unused;
}

static void check_statistics(bool close, enum evc_lane first, enum evc_lane second)
{
	pthread_t thread;

	set_up(first, second);
	thread = explorer_start(read_statistics, NULL);
	producers[0].count = 2;
	(void)produce(&producers[0]);
	if (close)
		evc_mailbox_close(mailbox);
	else
		CHECK(take_one(mailbox) == 1);
	CHECK(take_one(mailbox) < 0);
	explorer_join(thread);
	CHECK(evc_latest_subscription_superseded(subscription) == 1 && count_dropped() == (close ? 2 : 1));
	let_go();
}

SCENARIO(latest_statistics)
{
	check_statistics(false, EVC_LANE_QUEUE_NORMAL, EVC_LANE_STACK_HIGH);
}

/* The token that is taken first stands for no event. */
SCENARIO(latest_statistics_of_empty)
{
	check_statistics(false, EVC_LANE_STACK_HIGH, EVC_LANE_QUEUE_NORMAL);
}

SCENARIO(latest_statistics_of_closed)
{
	check_statistics(true, EVC_LANE_QUEUE_NORMAL, EVC_LANE_STACK_HIGH);
}

static void *post_another(void *unused)
{
	(void)post(router, EVENTS - 1, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

static void *take_first(void *unused)
{
	(void)take_one(mailbox);
	return unused;
}

/* A figure that is read while counts move is not too high: a pool's thread would end before its last event. */
SCENARIO(latest_superseded_not_twice)
{
	pthread_t threads[2];

	set_up(EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL);
	producers[0].count = 5;
	threads[0] = explorer_start(produce, &producers[0]);
	threads[1] = explorer_start(take_first, NULL);
	for (unsigned i = 0; i < 3; i++)
		CHECK(evc_latest_subscription_superseded(subscription) <= 4);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	while (take_one(mailbox) >= 0)
		;
	tear_down();
}

/* The same for each way that a count takes: to the subscription by a take, and to its cell when the slot is full. */
static void read_while_it_moves(uint32_t posts, void *(*move)(void *), void *context, uint32_t most)
{
	pthread_t thread;

	set_up(EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL);
	for (uint32_t i = 0; i < posts; i++)
		CHECK(post(router, i, EVC_LANE_QUEUE_NORMAL) == 1);
	thread = explorer_start(move, context);
	CHECK(evc_latest_subscription_superseded(subscription) <= most);
	explorer_join(thread);
	while (take_one(mailbox) >= 0)
		;
	tear_down();
}

SCENARIO(latest_superseded_taken)
{
	read_while_it_moves(2, take_first, NULL, 1);
}

SCENARIO(latest_superseded_carried)
{
	/* The slot counts to three. */
	read_while_it_moves(4, post_another, NULL, 4);
}

/* Two producers at once: the last of one of them is handled last. */
SCENARIO(latest_two_producers)
{
	pthread_t consumer, threads[2];

	set_up(EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL);
	explorer_forbid_idling(true);
	consumer = explorer_start(run_mailbox, NULL);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	evc_mailbox_close_when_empty(mailbox);
	explorer_join(consumer);
	CHECK(tally_was_handled(2) || tally_was_handled(5));
	tally_check_order(0, 3);
	tally_check_order(4, 2);
	tear_down();
}

/* At most one event waits, whichever producer is in the middle of a post. */
SCENARIO(latest_one_waits)
{
	pthread_t threads[2];
	uint32_t taken = 0;

	set_up(EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	while (take_one(mailbox) >= 0)
		taken++;
	CHECK(taken == 1);
	CHECK(tally_was_handled(2) || tally_was_handled(5));
	tear_down();
}

/* Two threads make the first of a mailbox's latest-only subscriptions, while its figures are read. */
static struct evc_subscription *firsts[2];

static void *make_first(void *context)
{
	struct evc_subscription_options options = tally_options();

	CHECK(evc_mailbox_add_latest_subscription(mailbox, &options, context) == EVC_OK);
	return NULL;
}

/* The first one is made while depths alone are read. */
SCENARIO(latest_first_depths)
{
	uint64_t depths[EVC_LANE_COUNT];
	pthread_t thread;

	router = make_router();
	mailbox = make_mailbox(NULL);
	thread = explorer_start(make_first, &subscription);
	evc_mailbox_depths(mailbox, depths);
	explorer_join(thread);
	subscribe(router, subscription);
	let_go();
}

SCENARIO(latest_first_two)
{
	struct evc_mailbox_statistics statistics;
	pthread_t threads[2];

	router = make_router();
	mailbox = make_mailbox(NULL);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(make_first, &firsts[i]);
	evc_mailbox_read_statistics(mailbox, &statistics);
	for (unsigned i = 0; i < 2; i++) {
		explorer_join(threads[i]);
		subscribe(router, firsts[i]);
	}
	/* Each of them is in the list that was kept: the first event of each is superseded. */
	for (uint32_t i = 0; i < 2; i++)
		CHECK(post(router, i, EVC_LANE_QUEUE_NORMAL) == 2);
	evc_mailbox_read_statistics(mailbox, &statistics);
	CHECK(statistics.superseded == 2);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(evc_router_unsubscribe(router, KEY, firsts[i]) == EVC_OK);
		evc_latest_subscription_release(firsts[i]);
	}
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
	explorer_settle();
}

/* The mailbox closes while events are superseded. */
SCENARIO(latest_close)
{
	pthread_t consumer, threads[2];

	set_up(EVC_LANE_QUEUE_NORMAL, EVC_LANE_STACK_NORMAL);
	consumer = explorer_start(run_mailbox, NULL);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	evc_mailbox_close(mailbox);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	explorer_join(consumer);
	CHECK(evc_router_unsubscribe(router, KEY, subscription) == EVC_OK);
	evc_latest_subscription_release(subscription);
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
	explorer_settle();
	tally_check_once(0, EVENTS);
}
