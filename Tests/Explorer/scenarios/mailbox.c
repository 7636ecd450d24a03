/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A mailbox: post against take, alarm, sleep and wake, close, the end of a thread.
 */
#include "post.h"

#include "mailbox/mailbox_private.h"

static struct evc_router *router;
static struct evc_mailbox *mailbox;
static struct producer producers[2];
static _Atomic int flag;

static void set_up(const struct evc_mailbox_options *options)
{
	router = make_router();
	mailbox = make_mailbox(options);
	(void)listen(router, mailbox);
	for (unsigned i = 0; i < 2; i++)
		producers[i] = (struct producer){ router, i * 4, 2,
						  { EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL,
						    EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL } };
}

static void tear_down(void)
{
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
	explorer_forbid_idling(false);
	explorer_settle();
	tally_check_once(0, EVENTS);
}

/* Two producers, one queue lane: each event once, each producer's in order (D2, D4), and nobody sleeps on. */
SCENARIO(mailbox_post_take)
{
	pthread_t threads[2];

	set_up(NULL);
	explorer_forbid_idling(true);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	take_until(mailbox, 4);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	for (unsigned i = 0; i < 2; i++)
		tally_check_order(i * 4, 2);
	tear_down();
}

/* Stack lanes among them: what one producer has posted to a stack and to a queue comes, each once. */
SCENARIO(mailbox_stacks)
{
	pthread_t threads[2];

	set_up(NULL);
	producers[0].count = 3;
	producers[0].lanes[0] = producers[0].lanes[1] = EVC_LANE_STACK_NORMAL;
	producers[1].lanes[1] = EVC_LANE_STACK_NORMAL;
	explorer_forbid_idling(true);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	/* All posts have returned: the stack before the queue (D1), what one posted last first (D3). */
	take_until(mailbox, 5);
	CHECK(tally.handled_at[1] < tally.handled_at[0]);
	CHECK(tally.handled_at[0] < tally.handled_at[2] && tally.handled_at[5] < tally.handled_at[2]);
	CHECK(tally.handled_at[0] < tally.handled_at[4] && tally.handled_at[1] < tally.handled_at[4]);
	tear_down();
}

/* Posts an urgent event, then one that is not: whoever takes the second has taken the first (D1). */
static void *urgent_then_low(void *unused)
{
	(void)post(router, 8, EVC_LANE_STACK_HIGHEST);
	atomic_store_explicit(&flag, 1, memory_order_release);
	(void)post(router, 9, EVC_LANE_QUEUE_LOW);
	return unused;
}

static void check_urgent(void)
{
	if (tally_was_handled(9))
		CHECK(tally_was_handled(8));
}

/*
 * A consumer that works on a backlog: once it knows of the urgent post, the next event is that one (D1). It
 * waits for the last of all, so that none is lost.
 */
SCENARIO(mailbox_alarm)
{
	pthread_t thread;

	set_up(NULL);
	for (uint32_t i = 0; i < 4; i++)
		(void)post(router, i, EVC_LANE_QUEUE_LOWEST);
	CHECK(take_one(mailbox) == 0);
	explorer_forbid_idling(true);
	thread = explorer_start(urgent_then_low, NULL);
	while (tally_count_handled() < 6) {
		bool is_known = atomic_load_explicit(&flag, memory_order_acquire) != 0;
		bool is_due = is_known && !tally_was_handled(8);
		int number = take_one(mailbox);

		if (is_due)
			CHECK(number == 8);
		check_urgent();
		if (number < 0)
			(void)evc_mailbox_wait(mailbox, EVC_FOREVER);
	}
	explorer_join(thread);
	tally_check_order(0, 4);
	tear_down();
}

/*
 * A backlog that is so long that the consumer relies on the alarm (EVC_RUN): of two urgent posts each is next once
 * its flag is known.
 */
#define LONG 18u

static void *two_urgent(void *unused)
{
	(void)post(router, 30, EVC_LANE_QUEUE_HIGH);
	(void)post(router, 31, EVC_LANE_STACK_HIGHEST);
	atomic_store_explicit(&flag, 1, memory_order_release);
	return unused;
}

static void long_backlog(const struct evc_mailbox_options *options, uint32_t before)
{
	pthread_t thread;

	set_up(options);
	for (uint32_t i = 0; i < LONG; i++)
		(void)post(router, i, EVC_LANE_QUEUE_LOWEST);
	for (uint32_t i = 0; i < before; i++)
		CHECK(take_one(mailbox) == (int)i);
	thread = explorer_start(two_urgent, NULL);
	while (tally_count_handled() < LONG + 2) {
		bool is_known = atomic_load_explicit(&flag, memory_order_acquire) != 0;
		int due = !is_known || tally_was_handled(30)   ? 0
			  : tally_was_handled(31)	       ? 30
							       : 31;
		int number = take_one(mailbox);

		if (due != 0 && number != due)
			explorer_fail("event %d is taken before event %d (D1)", number, due);
		if (number < 0)
			break;
		if (number == 30 && due == 31)
			explorer_fail("event 30 before 31");
	}
	explorer_join(thread);
	while (take_one(mailbox) >= 0)
		;
	CHECK(tally_count_handled() == LONG + 2);
	tally_check_order(0, LONG);
	tear_down();
}

SCENARIO(mailbox_long_backlog)
{
	long_backlog(NULL, EVC_RUN);
}

SCENARIO(mailbox_long_backlog_relied)
{
	long_backlog(NULL, LONG - 1);
}

/* An urgent post that finds the alarm up, while the consumer clears it: the next event is that one. */
static void *one_urgent(void *unused)
{
	(void)post(router, 31, EVC_LANE_STACK_HIGHEST);
	atomic_store_explicit(&flag, 1, memory_order_release);
	return unused;
}

SCENARIO(mailbox_alarm_is_up)
{
	pthread_t thread;

	set_up(NULL);
	for (uint32_t i = 0; i < LONG; i++)
		(void)post(router, i, EVC_LANE_QUEUE_LOWEST);
	for (uint32_t i = 0; i < LONG - 1; i++)
		CHECK(take_one(mailbox) == (int)i);
	(void)post(router, 30, EVC_LANE_QUEUE_HIGH);
	thread = explorer_start(one_urgent, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		bool is_due = atomic_load_explicit(&flag, memory_order_acquire) != 0 && !tally_was_handled(31);
		int number = take_one(mailbox);

		if (is_due && number != 31)
			explorer_fail("event %d is taken before event 31 (D1)", number);
	}
	explorer_join(thread);
	(void)take_one(mailbox);
	CHECK(tally_count_handled() == LONG + 2);
	tear_down();
}

/* The same of two producers: the second posts to the lower lane after it has seen the first one's flag. */
static void *low_after_flag(void *unused)
{
	while (atomic_load_explicit(&flag, memory_order_acquire) == 0)
		sched_yield();
	(void)post(router, 10, EVC_LANE_QUEUE_LOWEST);
	return unused;
}

SCENARIO(mailbox_alarm_two_producers)
{
	pthread_t threads[2];

	set_up(NULL);
	(void)post(router, 0, EVC_LANE_QUEUE_LOWEST);
	explorer_forbid_idling(true);
	threads[0] = explorer_start(urgent_then_low, NULL);
	threads[1] = explorer_start(low_after_flag, NULL);
	while (tally_count_handled() < 4) {
		if (take_one(mailbox) < 0)
			(void)evc_mailbox_wait(mailbox, EVC_FOREVER);
		check_urgent();
		if (tally_was_handled(10))
			CHECK(tally_was_handled(8));
	}
	explorer_join(threads[0]);
	explorer_join(threads[1]);
	tear_down();
}

/* The consumer sleeps before each event, if the schedule lets it: none is slept through. */
static void sleep_and_wake(enum evc_wait_strategy strategy)
{
	struct evc_mailbox_options options = { .strategy = strategy, .spin_ns = 300 };
	pthread_t thread;

	set_up(&options);
	producers[0].count = 4;
	thread = explorer_start(produce, &producers[0]);
	explorer_forbid_idling(true);
	for (uint32_t i = 1; i <= 4; i++) {
		while (take_one(mailbox) < 0)
			CHECK(evc_mailbox_wait(mailbox, EVC_FOREVER) == EVC_OK);
		CHECK(tally_count_handled() == i);
	}
	explorer_join(thread);
	tally_check_order(0, 4);
	tear_down();
}

SCENARIO(mailbox_park)
{
	sleep_and_wake(EVC_WAIT_PARK);
}

SCENARIO(mailbox_spin_then_park)
{
	sleep_and_wake(EVC_WAIT_SPIN_THEN_PARK);
}

SCENARIO(mailbox_yield)
{
	sleep_and_wake(EVC_WAIT_YIELD);
}

/* A wait that ends by its limit, against the post: the event is there afterwards. */
SCENARIO(mailbox_wait_limit)
{
	pthread_t thread;

	set_up(NULL);
	producers[0].count = 1;
	thread = explorer_start(produce, &producers[0]);
	(void)evc_mailbox_wait(mailbox, 1000);
	explorer_join(thread);
	CHECK(evc_mailbox_wait(mailbox, 1000) == EVC_OK);
	CHECK(take_one(mailbox) == 0);
	CHECK(evc_mailbox_wait(mailbox, 1000) == EVC_TIMED_OUT);
	tear_down();
}

static void *run_mailbox(void *unused)
{
	CHECK(evc_mailbox_run(mailbox) == EVC_CLOSED);
	return unused;
}

/* Its post has returned when the mailbox is closed. */
#define BEFORE 11u

/* Close against post: what was accepted is handled or dropped, once; what was not is still its producer's. */
static void close_against_post(void (*close)(struct evc_mailbox *))
{
	pthread_t consumer, threads[2];

	set_up(NULL);
	explorer_forbid_idling(true);
	consumer = explorer_start(run_mailbox, NULL);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	(void)post(router, BEFORE, EVC_LANE_QUEUE_LOW);
	close(mailbox);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	explorer_join(consumer);
	for (unsigned i = 0; i < 2; i++)
		tally_check_order(i * 4, 2);
	CHECK(post(router, 12, EVC_LANE_QUEUE_NORMAL) == 0);
	tear_down();
}

SCENARIO(mailbox_close)
{
	close_against_post(evc_mailbox_close);
}

SCENARIO(mailbox_close_when_empty)
{
	close_against_post(evc_mailbox_close_when_empty);
	CHECK(tally_was_handled(BEFORE));
}

/* A producer's thread ends while its events wait, and another takes its place: nothing is lost. */
SCENARIO(mailbox_end_of_thread)
{
	pthread_t thread;

	set_up(NULL);
	thread = explorer_start(produce, &producers[0]);
	explorer_forbid_idling(true);
	CHECK(take_one(mailbox) <= 0);
	explorer_join(thread);
	thread = explorer_start(produce, &producers[1]);
	take_until(mailbox, 4);
	explorer_join(thread);
	for (unsigned i = 0; i < 2; i++)
		tally_check_order(i * 4, 2);
	tear_down();
}

/* The mailbox goes while a thread that has posted ends: its memory goes once. */
SCENARIO(mailbox_end_of_both)
{
	pthread_t threads[2];

	set_up(NULL);
	threads[0] = explorer_start(produce, &producers[0]);
	threads[1] = explorer_start(produce, &producers[1]);
	(void)take_one(mailbox);
	evc_mailbox_close(mailbox);
	evc_mailbox_release(mailbox);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	evc_router_destroy(router);
	explorer_settle();
	tally_check_once(0, EVENTS);
}

/* Several at once against single ones: they stay together (D2). */
static void *post_three(void *unused)
{
	post_together(router, 8, 3, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

SCENARIO(mailbox_together)
{
	pthread_t threads[2];

	set_up(NULL);
	explorer_forbid_idling(true);
	threads[0] = explorer_start(post_three, NULL);
	threads[1] = explorer_start(produce, &producers[0]);
	take_until(mailbox, 5);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tally_check_order(0, 2);
	CHECK(tally.handled_at[9] == tally.handled_at[8] + 1 && tally.handled_at[10] == tally.handled_at[8] + 2);
	tear_down();
}

/* So many that the producer's memory is used up, and what was taken is used again. */
SCENARIO(mailbox_end_of_segment)
{
	pthread_t thread;

	set_up(NULL);
	producers[0].count = 70;
	explorer_forbid_idling(true);
	thread = explorer_start(produce, &producers[0]);
	take_until(mailbox, 70);
	explorer_join(thread);
	tally_check_order(0, 70);
	tear_down();
}

/* Depths are read while events come and go, and their memory with them. */
static void *read_depths(void *unused)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_mailbox_depths(mailbox, depths);
	for (unsigned i = 0; i < EVC_LANE_COUNT; i++)
		CHECK(depths[i] <= 4);
	return unused;
}

SCENARIO(mailbox_depths)
{
	pthread_t threads[2];
	uint64_t depths[EVC_LANE_COUNT];

	set_up(NULL);
	producers[0].count = 4;
	threads[0] = explorer_start(produce, &producers[0]);
	threads[1] = explorer_start(read_depths, NULL);
	take_until(mailbox, 2);
	explorer_join(threads[0]);
	explorer_join(threads[1]);
	evc_mailbox_depths(mailbox, depths);
	CHECK(depths[EVC_LANE_QUEUE_NORMAL] == 2);
	take_until(mailbox, 4);
	tear_down();
}

/* Never more than was there, however events are counted: in the heads, beside them, or as grabbed. */
static uint64_t most;

static void *read_most(void *unused)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_mailbox_depths(mailbox, depths);
	if (depths[EVC_LANE_QUEUE_NORMAL] > most)
		explorer_fail("a depth of %lu where at most %lu events were", depths[EVC_LANE_QUEUE_NORMAL], most);
	return unused;
}

SCENARIO(mailbox_depth_of_one)
{
	pthread_t thread;

	set_up(NULL);
	most = 1;
	thread = explorer_start(read_most, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		(void)post(router, i, EVC_LANE_QUEUE_NORMAL);
		CHECK(take_one(mailbox) == (int)i);
	}
	explorer_join(thread);
	tear_down();
}

SCENARIO(mailbox_depth_of_many)
{
	pthread_t thread;

	set_up(NULL);
	most = 80;
	thread = explorer_start(read_most, NULL);
	post_together(router, 0, 40, EVC_LANE_QUEUE_NORMAL);
	post_together(router, 40, 40, EVC_LANE_QUEUE_NORMAL);
	CHECK(take_one(mailbox) == 0);
	explorer_join(thread);
	evc_mailbox_close(mailbox);
	CHECK(take_one(mailbox) < 0);
	tear_down();
}

SCENARIO(mailbox_depth_beside_head)
{
	pthread_t thread;

	set_up(NULL);
	most = 80;
	thread = explorer_start(read_most, NULL);
	post_together(router, 0, 40, EVC_LANE_QUEUE_NORMAL);
	post_together(router, 40, 40, EVC_LANE_QUEUE_NORMAL);
	explorer_join(thread);
	evc_mailbox_close(mailbox);
	CHECK(take_one(mailbox) < 0);
	tear_down();
}

/* What was taken is never more than what was posted, while a close drops the rest. */
static void *read_statistics(void *unused)
{
	struct evc_mailbox_statistics statistics;

	evc_mailbox_read_statistics(mailbox, &statistics);
	if (statistics.taken > 3)
		explorer_fail("%lu events of 3 were taken", statistics.taken);
	return unused;
}

SCENARIO(mailbox_statistics)
{
	pthread_t threads[2];

	set_up(NULL);
	most = 3;
	threads[0] = explorer_start(read_statistics, NULL);
	threads[1] = explorer_start(read_most, NULL);
	for (uint32_t i = 0; i < 3; i++)
		(void)post(router, i, EVC_LANE_QUEUE_NORMAL);
	evc_mailbox_close(mailbox);
	CHECK(take_one(mailbox) < 0);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down();
}

SCENARIO(mailbox_depth_of_dropped)
{
	pthread_t thread;

	set_up(NULL);
	most = 3;
	thread = explorer_start(read_most, NULL);
	for (uint32_t i = 0; i < 3; i++)
		(void)post(router, i, EVC_LANE_QUEUE_NORMAL);
	evc_mailbox_close(mailbox);
	CHECK(take_one(mailbox) < 0);
	explorer_join(thread);
	tear_down();
}

/* A close reaches a consumer that is about to sleep, and no post does. */
SCENARIO(mailbox_close_of_sleeper)
{
	pthread_t consumer;

	set_up(NULL);
	explorer_forbid_idling(true);
	consumer = explorer_start(run_mailbox, NULL);
	evc_mailbox_close(mailbox);
	explorer_join(consumer);
	tear_down();
}

/* A batch in one envelope: what is more urgent comes between its events, and what ends it drops the rest. */
static void post_batch(uint32_t first, uint32_t count, enum evc_lane lane)
{
	struct evc_dispatch dispatch;
	struct event *events;

	CHECK(evc_dispatch_begin_batch(router, KEY, lane, sizeof(struct event), _Alignof(struct event), count,
				       &dispatch) == EVC_OK);
	CHECK(dispatch.array != NULL);
	events = dispatch.array;
	for (uint32_t i = 0; i < count; i++)
		events[i] = (struct event){ first + i, first + i };
	CHECK(evc_dispatch_commit(&dispatch) == 1);
}

static bool is_due;

static bool deliver_batched(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	const struct event *event = payload;

	(void)context, (void)envelope, (void)owned;
	CHECK(event->number == event->again);
	/* Known before this was taken: the flag was up when the one before was handled. */
	if (is_due && event->number != 31 && !tally_was_handled(31))
		explorer_fail("event %u is taken before event 31 (D1)", event->number);
	tally_handled(event);
	is_due = atomic_load_explicit(&flag, memory_order_acquire) != 0;
	if (tally_count_handled() == 2 * LONG + 1)
		evc_mailbox_close(mailbox);
	return true;
}

SCENARIO(mailbox_batch)
{
	struct evc_mailbox_options options = { .batches = true };
	struct evc_subscription_options receiver = { .deliver = deliver_batched };
	struct evc_subscription *subscription;
	pthread_t thread;

	router = make_router();
	mailbox = make_mailbox(&options);
	CHECK(evc_mailbox_add_subscription(mailbox, &receiver, &subscription) == EVC_OK);
	subscribe(router, subscription);
	/* The route is cached from here on, so that batches go in one envelope. */
	for (uint32_t i = 0; i < LONG; i++)
		(void)post(router, i, EVC_LANE_QUEUE_LOWEST);
	post_batch(40, LONG, EVC_LANE_QUEUE_LOWEST);
	thread = explorer_start(one_urgent, NULL);
	CHECK(evc_mailbox_run(mailbox) == EVC_CLOSED);
	explorer_join(thread);
	CHECK(tally_count_handled() == 2 * LONG + 1);
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
}

static _Atomic uint32_t controls;

static void control(void *unused)
{
	(void)unused;
	atomic_fetch_add_explicit(&controls, 1, memory_order_relaxed);
	evc_mailbox_close_when_empty(mailbox);
}

/* An interrupt reaches a consumer that sleeps, and one that works. */
SCENARIO(mailbox_interrupt)
{
	struct evc_mailbox_options options = { .control = control };
	pthread_t consumer, producer;

	set_up(&options);
	explorer_forbid_idling(true);
	consumer = explorer_start(run_mailbox, NULL);
	producer = explorer_start(produce, &producers[0]);
	evc_mailbox_interrupt(mailbox);
	explorer_join(consumer);
	explorer_join(producer);
	CHECK(atomic_load_explicit(&controls, memory_order_relaxed) >= 1);
	tear_down();
}

/* A mailbox that is pumped: `wake` starts the next pump, and it is never forgotten. */
static _Atomic uint32_t wanted;
static _Atomic int is_over;

static void wake(void *unused)
{
	(void)unused;
	atomic_fetch_add_explicit(&wanted, 1, memory_order_release);
}

static void *pump(void *unused)
{
	uint32_t done = 0;

	for (;;) {
		int over = atomic_load_explicit(&is_over, memory_order_acquire);

		if (atomic_load_explicit(&wanted, memory_order_acquire) == done) {
			if (over)
				return unused;
			sched_yield();
			continue;
		}
		done++;
		while (evc_mailbox_pump(mailbox, 2) == EVC_OK)
			;
	}
}

SCENARIO(mailbox_pump)
{
	struct evc_mailbox_options options = { .wake = wake };
	pthread_t consumer, threads[2];

	set_up(&options);
	explorer_forbid_idling(true);
	consumer = explorer_start(pump, NULL);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	atomic_store_explicit(&is_over, 1, memory_order_release);
	explorer_join(consumer);
	CHECK(tally_count_handled() == 4);
	for (unsigned i = 0; i < 2; i++)
		tally_check_order(i * 4, 2);
	tear_down();
}

/* Two threads pump in turn: whoever takes the wake-up. What the last one left is there. */
static void *pump_if_wanted(void *unused)
{
	for (;;) {
		int over = atomic_load_explicit(&is_over, memory_order_acquire);
		uint32_t there = atomic_load_explicit(&wanted, memory_order_relaxed);

		if (there == 0 && over)
			return unused;
		if (there == 0 || !atomic_compare_exchange_strong_explicit(&wanted, &there, there - 1,
									    memory_order_acquire,
									    memory_order_relaxed)) {
			sched_yield();
			continue;
		}
		while (evc_mailbox_pump(mailbox, 2) == EVC_OK)
			;
	}
}

static void pump_in_turn(bool close)
{
	struct evc_mailbox_options options = { .wake = wake };
	pthread_t threads[3];

	set_up(&options);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(pump_if_wanted, NULL);
	threads[2] = explorer_start(produce, &producers[0]);
	if (close)
		evc_mailbox_interrupt(mailbox);
	explorer_join(threads[2]);
	if (close)
		evc_mailbox_close_when_empty(mailbox);
	atomic_store_explicit(&is_over, 1, memory_order_release);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	CHECK(tally_count_handled() == 2);
	tally_check_order(0, 2);
	tear_down();
}

SCENARIO(mailbox_pump_in_turn)
{
	pump_in_turn(false);
}

SCENARIO(mailbox_pump_closes)
{
	pump_in_turn(true);
}

/* An interrupt that comes while a pump arms the mailbox: that one sees it, or the next. */
static void note_control(void *unused)
{
	(void)unused;
	atomic_fetch_add_explicit(&controls, 1, memory_order_relaxed);
}

SCENARIO(mailbox_pump_interrupt)
{
	struct evc_mailbox_options options = { .wake = wake, .control = note_control };
	pthread_t thread;

	set_up(&options);
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	thread = explorer_start(pump_if_wanted, NULL);
	evc_mailbox_interrupt(mailbox);
	atomic_store_explicit(&is_over, 1, memory_order_release);
	explorer_join(thread);
	CHECK(atomic_load_explicit(&controls, memory_order_relaxed) == 1);
	tear_down();
}
