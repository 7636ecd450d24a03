/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A balancer: each event goes to one receiver, and what is promised to a retiring receiver still reaches it.
 */
#include "post.h"

#include "eventcore/balancer.h"

static struct evc_router *router;
static struct evc_balancer *balancer;
static struct evc_mailbox *mailboxes[2];
static struct evc_subscription *subscriptions[2];
static struct evc_load loads[2];
static struct producer producers[2];
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

static void drop(void *unused, void *payload)
{
	tally_options().drop(unused, payload);
}

static void set_up_with(const struct evc_mailbox_options *mailbox)
{
	struct evc_balancer_options options = { .size = sizeof(options), .drop = drop, .finalize = finalize };
	struct evc_subscription_options tallied = tally_options();

	router = make_router();
	CHECK(evc_balancer_create(&options, &balancer) == EVC_OK);
	subscribe(router, evc_balancer_subscription(balancer));
	for (unsigned i = 0; i < 2; i++) {
		mailboxes[i] = make_mailbox(mailbox);
		CHECK(evc_mailbox_add_subscription(mailboxes[i], &tallied, &subscriptions[i]) == EVC_OK);
		CHECK(evc_balancer_add(balancer, subscriptions[i], 1, false, &loads[i]) == EVC_OK);
		producers[i] = (struct producer){ router, i * 4, 2 + i,
						  { EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL,
						    EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL } };
	}
}

static void set_up(void)
{
	set_up_with(NULL);
}

static void tear_down(void)
{
	explorer_forbid_idling(false);
	evc_router_destroy(router);
	evc_balancer_release(balancer);
	for (unsigned i = 0; i < 2; i++)
		evc_mailbox_release(mailboxes[i]);
	explorer_settle();
	CHECK(finalized == 1);
	tally_check_once(0, EVENTS);
}

static _Atomic bool watcher_sleeps;
static bool was_seen;

static void *post_and_look(void *producer)
{
	produce(producer);
	was_seen = atomic_load_explicit(&watcher_sleeps, memory_order_seq_cst);
	return NULL;
}

/* A watcher that sees nothing promised, and sleeps, is seen by the next one who posts (a pool's ticker does so). */
SCENARIO(balancer_watch)
{
	pthread_t thread;
	uint64_t promised;

	set_up();
	thread = explorer_start(post_and_look, &producers[0]);
	atomic_store_explicit(&watcher_sleeps, true, memory_order_seq_cst);
	promised = evc_load_promised(&loads[0]) + evc_load_promised(&loads[1]);
	explorer_join(thread);
	CHECK(promised > 0 || was_seen);
	for (unsigned i = 0; i < 2; i++)
		while (take_one(mailboxes[i]) >= 0)
			;
	tear_down();
}

/* One receiver retires under two producers: it handles what it was promised, then closes, and nothing is lost. */
SCENARIO(balancer_retire)
{
	pthread_t threads[2];
	uint64_t promised, taken = 0;

	set_up();
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	explorer_forbid_idling(true);
	CHECK(evc_balancer_remove(balancer, subscriptions[0]) == EVC_OK);
	promised = evc_load_retire(&loads[0]);
	while (taken < promised)
		if (take_one(mailboxes[0]) >= 0)
			taken++;
		else
			(void)evc_mailbox_wait(mailboxes[0], EVC_FOREVER);
	evc_mailbox_close(mailboxes[0]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	while (take_one(mailboxes[1]) >= 0)
		;
	CHECK(tally_count_handled() == 5);
	CHECK(evc_balancer_refused(balancer) == 0 && evc_balancer_dropped(balancer) == 0);
	tear_down();
}

/*
 * The same with a receiver that does not handle all: what ends before is lost, and the last of that is noticed (load.h,
 * P1 to P3, L1 to L3). Otherwise the receiver waits for ever.
 */
static void retire_losing(void)
{
	pthread_t threads[2];
	uint64_t promised, taken = 0, lost;

	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	explorer_forbid_idling(true);
	CHECK(evc_balancer_remove(balancer, subscriptions[0]) == EVC_OK);
	promised = evc_load_retire(&loads[0]);
	evc_mailbox_interrupt(mailboxes[0]);
	while (taken + evc_load_lost(&loads[0]) < promised)
		if (take_one(mailboxes[0]) >= 0)
			taken++;
		/* The take may have ended the interrupt, which says to look. */
		else if (taken + evc_load_lost(&loads[0]) < promised)
			(void)evc_mailbox_wait(mailboxes[0], EVC_FOREVER);
	CHECK(taken + evc_load_lost(&loads[0]) == promised);
	evc_mailbox_close(mailboxes[0]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	while (take_one(mailboxes[1]) >= 0)
		;
	lost = evc_load_lost(&loads[0]) + evc_load_lost(&loads[1]);
	CHECK(tally_count_handled() + lost == 5);
	CHECK(evc_balancer_refused(balancer) == 0 && evc_balancer_dropped(balancer) == 0);
	tear_down();
}

/* With a mailbox that holds one event. */
static void retire_bounded(enum evc_overflow policy)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 1, .overflow = policy };

	set_up_with(&options);
	retire_losing();
}

SCENARIO(balancer_retire_refusing)
{
	retire_bounded(EVC_OVERFLOW_REFUSE);
}

SCENARIO(balancer_retire_dropping)
{
	retire_bounded(EVC_OVERFLOW_DROP_NEWEST);
}

SCENARIO(balancer_retire_displacing)
{
	retire_bounded(EVC_OVERFLOW_DROP_OLDEST);
}

/* With latest-only receivers: what is superseded is lost. */
SCENARIO(balancer_retire_superseding)
{
	struct evc_subscription_options tallied = tally_options();
	struct evc_subscription *latest[2];

	set_up();
	for (unsigned i = 0; i < 2; i++) {
		CHECK(evc_balancer_remove(balancer, subscriptions[i]) == EVC_OK);
		CHECK(evc_mailbox_add_latest_subscription(mailboxes[i], &tallied, &latest[i]) == EVC_OK);
		CHECK(evc_balancer_add(balancer, latest[i], 1, false, &loads[i]) == EVC_OK);
		subscriptions[i] = latest[i];
	}
	retire_losing();
}

/* The only receiver is replaced under a producer: it finds the other one, and nothing is refused. */
SCENARIO(balancer_replace)
{
	pthread_t thread;
	uint64_t promised;

	set_up();
	CHECK(evc_balancer_remove(balancer, subscriptions[1]) == EVC_OK);
	thread = explorer_start(produce, &producers[0]);
	CHECK(evc_balancer_add(balancer, subscriptions[1], 2, false, &loads[1]) == EVC_OK);
	CHECK(evc_balancer_remove(balancer, subscriptions[0]) == EVC_OK);
	promised = evc_load_retire(&loads[0]);
	explorer_join(thread);
	for (unsigned i = 0; i < 2; i++)
		while (take_one(mailboxes[i]) >= 0)
			;
	CHECK(tally_count_handled() == 2 && promised <= 2);
	CHECK(evc_balancer_refused(balancer) == 0 && evc_balancer_dropped(balancer) == 0);
	tear_down();
}

/* A receiver is added late, another one closes by itself: each event is handled, refused or dropped, once. */
SCENARIO(balancer_change)
{
	pthread_t threads[2];

	set_up();
	CHECK(evc_balancer_remove(balancer, subscriptions[0]) == EVC_OK);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	CHECK(evc_balancer_add(balancer, subscriptions[0], 2, false, &loads[0]) == EVC_OK);
	evc_mailbox_close(mailboxes[1]);
	CHECK(evc_balancer_count(balancer) == 2);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	for (unsigned i = 0; i < 2; i++)
		while (take_one(mailboxes[i]) >= 0)
			;
	/* One of them was open all the time. */
	CHECK(evc_balancer_refused(balancer) == 0);
	tear_down();
}

/* The same with one of each: whoever finds the old receiver closed finds the new one. */
SCENARIO(balancer_close)
{
	pthread_t thread;

	set_up();
	CHECK(evc_balancer_remove(balancer, subscriptions[0]) == EVC_OK);
	producers[0].count = 1;
	thread = explorer_start(produce, &producers[0]);
	CHECK(evc_balancer_add(balancer, subscriptions[0], 2, false, &loads[0]) == EVC_OK);
	evc_mailbox_close(mailboxes[1]);
	explorer_join(thread);
	CHECK(evc_balancer_refused(balancer) == 0);
	tear_down();
}

static uint32_t choose_first(void *unused, const struct evc_balancer_choice *choice)
{
	(void)unused, (void)choice;
	return 0;
}

/* All are removed, then the chosen receiver closes: what finds it closed goes to no other one. */
SCENARIO(balancer_remove_all)
{
	struct evc_balancer_options options = { .size = sizeof(options), .drop = drop, .choose = choose_first };
	struct evc_subscription_options tallied = tally_options();
	pthread_t thread;

	router = make_router();
	CHECK(evc_balancer_create(&options, &balancer) == EVC_OK);
	subscribe(router, evc_balancer_subscription(balancer));
	for (unsigned i = 0; i < 2; i++) {
		mailboxes[i] = make_mailbox(NULL);
		CHECK(evc_mailbox_add_subscription(mailboxes[i], &tallied, &subscriptions[i]) == EVC_OK);
		CHECK(evc_balancer_add(balancer, subscriptions[i], 1, false, &loads[i]) == EVC_OK);
	}
	producers[0] = (struct producer){ router, 0, 2, { EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL } };
	thread = explorer_start(produce, &producers[0]);
	evc_balancer_remove_all(balancer);
	evc_mailbox_close_when_empty(mailboxes[0]);
	explorer_join(thread);
	CHECK(take_one(mailboxes[1]) < 0);
	while (take_one(mailboxes[0]) >= 0)
		;
	CHECK(tally_count_handled() + evc_balancer_refused(balancer) == 2);
	evc_router_destroy(router);
	evc_balancer_release(balancer);
	for (unsigned i = 0; i < 2; i++)
		evc_mailbox_release(mailboxes[i]);
	explorer_settle();
	tally_check_once(0, EVENTS);
}

static void *add_and_post(void *unused)
{
	(void)unused;
	CHECK(evc_balancer_add(balancer, subscriptions[0], 1, false, &loads[0]) == EVC_OK);
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	return NULL;
}

/* Two balancers get one receiver at once: what its mailbox displaces of either's is told to its load. */
SCENARIO(balancer_add_to_two)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 1, .overflow = EVC_OVERFLOW_DROP_OLDEST };
	struct evc_subscription_options tallied = tally_options();
	struct evc_balancer *another;
	pthread_t thread;

	CHECK(evc_balancer_create(NULL, &balancer) == EVC_OK);
	CHECK(evc_balancer_create(NULL, &another) == EVC_OK);
	router = make_router();
	subscribe(router, evc_balancer_subscription(balancer));
	mailboxes[0] = make_mailbox(&options);
	CHECK(evc_mailbox_add_subscription(mailboxes[0], &tallied, &subscriptions[0]) == EVC_OK);
	thread = explorer_start(add_and_post, NULL);
	CHECK(evc_balancer_add(another, subscriptions[0], 1, false, &loads[0]) == EVC_OK);
	explorer_join(thread);
	(void)post(router, 1, EVC_LANE_QUEUE_NORMAL);
	CHECK(evc_load_lost(&loads[0]) == 1 && evc_load_promised(&loads[0]) == 1);
	CHECK(take_one(mailboxes[0]) == 1);
	evc_router_destroy(router);
	evc_balancer_release(balancer);
	evc_balancer_release(another);
	evc_mailbox_release(mailboxes[0]);
	explorer_settle();
}

static void *close_first(void *unused)
{
	evc_mailbox_close(mailboxes[0]);
	return unused;
}

/* An unbounded receiver closes under a post: the event takes a place at the other one, and gives it back. */
SCENARIO(balancer_exempt_closes)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 1, .overflow = EVC_OVERFLOW_REFUSE };
	struct evc_subscription_options tallied = tally_options();
	pthread_t thread;

	CHECK(evc_balancer_create(NULL, &balancer) == EVC_OK);
	router = make_router();
	subscribe(router, evc_balancer_subscription(balancer));
	for (unsigned i = 0; i < 2; i++) {
		tallied.unbounded = i == 0;
		mailboxes[i] = make_mailbox(&options);
		CHECK(evc_mailbox_add_subscription(mailboxes[i], &tallied, &subscriptions[i]) == EVC_OK);
		CHECK(evc_balancer_add(balancer, subscriptions[i], 1, false, &loads[i]) == EVC_OK);
	}
	thread = explorer_start(close_first, NULL);
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	explorer_join(thread);
	(void)take_one(mailboxes[1]);
	(void)post(router, 1, EVC_LANE_QUEUE_NORMAL);
	CHECK(take_one(mailboxes[1]) == 1);
	evc_router_destroy(router);
	evc_balancer_release(balancer);
	for (unsigned i = 0; i < 2; i++)
		evc_mailbox_release(mailboxes[i]);
	explorer_settle();
}
