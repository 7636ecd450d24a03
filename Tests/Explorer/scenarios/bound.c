/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A bounded mailbox: never more than its capacity waits, and whoever waits for a place is woken. */
#include "mailbox.h"

/* Two producers and a consumer; the place for one event is contended for. */
static void overflow(enum evc_overflow policy, uint64_t capacity)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = capacity, .overflow = policy, .block_ns = EVC_FOREVER };
	struct evc_mailbox_statistics end;
	pthread_t threads[2], consumer;

	set_up(&options);
	explorer_forbid_idling(true);
	consumer = explorer_start(run_mailbox, NULL);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	evc_mailbox_close_when_empty(mailbox);
	explorer_join(consumer);
	evc_mailbox_read_statistics(mailbox, &end);
	CHECK(end.high_water <= capacity && end.high_water > 0);
	CHECK(end.waiting == 0 && end.taken == tally_count_handled());
	CHECK(end.taken + end.overflowed + end.refused == 4);
	if (policy == EVC_OVERFLOW_BLOCK) {
		CHECK(end.taken == 4);
		for (unsigned i = 0; i < 2; i++)
			tally_check_order(i * 4, 2);
	}
	tear_down();
}

SCENARIO(bound_refuse)
{
	overflow(EVC_OVERFLOW_REFUSE, 1);
}

SCENARIO(bound_drop_newest)
{
	overflow(EVC_OVERFLOW_DROP_NEWEST, 2);
}

SCENARIO(bound_drop_oldest)
{
	overflow(EVC_OVERFLOW_DROP_OLDEST, 1);
}

SCENARIO(bound_block)
{
	overflow(EVC_OVERFLOW_BLOCK, 1);
}

/* The consumer pumps one event at a time, and a close ends the waits that are left. */
SCENARIO(bound_block_close)
{
	struct evc_mailbox_options options = {
		.size = sizeof(options),
		.capacity = 1, .overflow = EVC_OVERFLOW_BLOCK, .block_ns = EVC_FOREVER
	};
	pthread_t threads[2];

	set_up(&options);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	(void)!evc_mailbox_pump(mailbox, 1);
	evc_mailbox_close(mailbox);
	explorer_forbid_idling(true);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	CHECK(evc_mailbox_pump(mailbox, 8) == EVC_CLOSED);
	tear_down();
}

/* One event fills the mailbox, and one producer waits for its place: the consumer lets it on before it sleeps. */
SCENARIO(bound_block_one)
{
	struct evc_mailbox_options options = {
		.size = sizeof(options),
		.capacity = 1, .overflow = EVC_OVERFLOW_BLOCK, .block_ns = EVC_FOREVER
	};
	pthread_t thread;

	set_up(&options);
	CHECK(post(router, 4, EVC_LANE_QUEUE_NORMAL) == 1);
	producers[0].count = 1;
	explorer_forbid_idling(true);
	thread = explorer_start(produce, &producers[0]);
	take_until(mailbox, 2);
	explorer_join(thread);
	tear_down();
}

/* An event without a place leaves: that frees none. */
static void *take_once(void *unused)
{
	CHECK(take_one(mailbox) == 1);
	return unused;
}

SCENARIO(bound_exempt)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 1, .overflow = EVC_OVERFLOW_REFUSE };
	struct evc_subscription_options unbounded = tally_options();
	struct evc_subscription *exempt;
	pthread_t thread;

	set_up(&options);
	unbounded.unbounded = true;
	CHECK(evc_mailbox_add_subscription(mailbox, &unbounded, &exempt) == EVC_OK);
	CHECK(evc_router_subscribe(router, KEY + 1, exempt, 1, false) == EVC_OK);
	CHECK(post(router, 0, EVC_LANE_QUEUE_NORMAL) == 1);
	CHECK(post_to(router, KEY + 1, 1, EVC_LANE_QUEUE_HIGH) == 1);
	thread = explorer_start(take_once, NULL);
	CHECK(post(router, 2, EVC_LANE_QUEUE_NORMAL) == 0);
	explorer_join(thread);
	CHECK(take_one(mailbox) == 0);
	CHECK(evc_router_unsubscribe(router, KEY + 1, exempt) == EVC_OK);
	tear_down();
}

/* A post against the end, of a mailbox whose events wait in the lanes of the bound: none is left behind (D10). */
SCENARIO(bound_drop_oldest_end)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 2, .overflow = EVC_OVERFLOW_DROP_OLDEST };
	pthread_t thread;

	set_up(&options);
	producers[0].count = 1;
	thread = explorer_start(produce, &producers[0]);
	evc_mailbox_close(mailbox);
	CHECK(take_one(mailbox) < 0);
	explorer_join(thread);
	tally_check_once(0, EVENTS);
	tear_down();
}
