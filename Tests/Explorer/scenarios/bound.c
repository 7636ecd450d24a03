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
