/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A mailbox: an urgent event is next (D1), in a backlog and in a batch, whether the consumer relies on the
 * alarm or looks.
 */
#include "mailbox.h"

#include "mailbox/mailbox_private.h"

static _Atomic int flag;

/* Posts an urgent event, then one that is not: a consumer that takes the second has taken the first (D1). */
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
 * waits for the last event, so that none is lost.
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
 * A backlog so long that the consumer relies on the alarm (EVC_RUN): each of two urgent events is next once
 * its flag is known.
 */
#define LONG 20u

static void *two_urgent(void *polled)
{
	if (polled != NULL)
		CHECK(evc_reserve(2) == EVC_OK);
	(void)(polled != NULL ? try_post : post)(router, 30, EVC_LANE_QUEUE_HIGH);
	(void)(polled != NULL ? try_post : post)(router, 31, EVC_LANE_STACK_HIGHEST);
	atomic_store_explicit(&flag, 1, memory_order_release);
	return NULL;
}

static void long_backlog(struct evc_mailbox_options *options, uint32_t before)
{
	bool polled = options != NULL && options->polled;
	pthread_t thread;

	set_up(options);
	for (uint32_t i = 0; i < LONG; i++)
		(void)post(router, i, EVC_LANE_QUEUE_LOWEST);
	for (uint32_t i = 0; i < before; i++)
		CHECK(take_one(mailbox) == (int)i);
	thread = explorer_start(two_urgent, polled ? options : NULL);
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

/* Producers that must not wait raise the same alarm. */
SCENARIO(mailbox_long_backlog_polled)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .polled = true };

	long_backlog(&options, EVC_RUN);
}

/*
 * A producer posts to a stack and says how far it is, while the consumer takes. No take passes over a newer event that is
 * known (D3), nor over the urgent one at the end (D1), also while the consumer puts what it has drained on its list.
 */
#define PILED 5u

static void *pile(void *unused)
{
	for (uint32_t i = 0; i <= PILED; i++) {
		(void)post(router, i, i < PILED ? EVC_LANE_STACK_LOW : EVC_LANE_STACK_HIGHEST);
		atomic_store_explicit(&flag, i + 1, memory_order_release);
	}
	return unused;
}

static void take_newest(void)
{
	uint32_t known = atomic_load_explicit(&flag, memory_order_acquire);
	int number = take_one(mailbox);

	/* The urgent one is the newest, too. */
	for (uint32_t i = known; i-- > 0;)
		if (!tally_was_handled(i) && number < (int)i)
			explorer_fail("event %d is taken before event %u", number, i);
}

SCENARIO(mailbox_stack_live)
{
	pthread_t thread;

	set_up(NULL);
	thread = explorer_start(pile, NULL);
	for (unsigned i = 0; i < 4; i++)
		take_newest();
	explorer_join(thread);
	while (tally_count_handled() < PILED + 1)
		take_newest();
	tear_down();
}

/* An urgent post that finds the alarm up, while the consumer clears it: the next event is that one. */
static void *one_urgent(void *unused)
{
	(void)post(router, 31, EVC_LANE_STACK_HIGHEST);
	atomic_store_explicit(&flag, 1, memory_order_release);
	return unused;
}

static void take_while_urgent(void)
{
	bool is_due = atomic_load_explicit(&flag, memory_order_acquire) != 0 && !tally_was_handled(31);
	int number = take_one(mailbox);

	/* Or `control` has taken it. */
	if (is_due && !tally_was_handled(31))
		explorer_fail("event %d is taken before event 31 (D1)", number);
}

static void alarm_is_up(const struct evc_mailbox_options *options)
{
	pthread_t thread;

	set_up(options);
	for (uint32_t i = 0; i < LONG; i++)
		(void)post(router, i, EVC_LANE_QUEUE_LOWEST);
	for (uint32_t i = 0; i < LONG - 3; i++)
		CHECK(take_one(mailbox) == (int)i);
	if (options != NULL)
		evc_mailbox_interrupt(mailbox);
	else
		(void)post(router, 30, EVC_LANE_QUEUE_HIGH);
	thread = explorer_start(one_urgent, NULL);
	for (uint32_t i = 0; i < 5; i++)
		take_while_urgent();
	explorer_join(thread);
	(void)take_one(mailbox);
	CHECK(tally_count_handled() == LONG + 2);
	tear_down();
}

SCENARIO(mailbox_alarm_is_up)
{
	alarm_is_up(NULL);
}

/* The alarm goes up in `control`, after which it is cleared once more. */
static void control(void *unused)
{
	(void)unused;
	(void)post(router, 30, EVC_LANE_QUEUE_HIGH);
}

SCENARIO(mailbox_alarm_in_control)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .control = control };

	alarm_is_up(&options);
}

/* `control` takes: the alarm that came with the interrupt is not cleared before it. */
static void take_in_control(void *unused)
{
	take_while_urgent();
	control(unused);
}

SCENARIO(mailbox_take_in_control)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .control = take_in_control };

	alarm_is_up(&options);
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

/* A batch in one envelope: more urgent events are taken between its events, and a close drops the rest. */
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
	CHECK(evc_dispatch_commit(&dispatch) == count);
}

static bool is_due;

static bool deliver_batched(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	const struct event *event = payload;

	(void)context, (void)envelope, (void)owned;
	CHECK(event->number == event->again);
	/* Known before this one was taken: the flag was up when the one before was handled. */
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
	struct evc_mailbox_options options = { .size = sizeof(options), .batches = true };
	struct evc_subscription_options receiver = { .size = sizeof(receiver), .deliver = deliver_batched };
	struct evc_subscription *subscription;
	pthread_t thread;

	router = make_router();
	mailbox = make_mailbox(&options);
	CHECK(evc_mailbox_add_subscription(mailbox, &receiver, &subscription) == EVC_OK);
	subscribe(router, subscription);
	/* The route is cached from here on, so that batches travel in one envelope. */
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
