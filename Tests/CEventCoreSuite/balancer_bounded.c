/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A balancer whose receivers have bounded mailboxes: their policies apply to what is chosen for them. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "crew.h"

#include <string.h>

#define CAPACITY 4u

/* Posts `count` events in chains of `length` to the first of two receivers, and takes what waits there. */
static const char *overflow(enum evc_overflow policy, unsigned count, unsigned length)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = CAPACITY, .overflow = policy,
					       .block_ns = 1000 };
	unsigned over = count > CAPACITY ? count - CAPACITY : 0;
	uint64_t first = policy == EVC_OVERFLOW_DROP_OLDEST ? over : 0;
	struct evc_mailbox_statistics found;
	struct crew crew;

	EXPECT_NONE(crew_open_with(&crew, 2, crew_choose_answer, &options));
	for (unsigned value = 0; value < count; value += length)
		EXPECT_NONE(crew_post_values(&crew, value, length, EVC_OK));
	EXPECT_EQUAL(evc_load_promised(&crew.loads[0]), count - over, "promises that wait");
	EXPECT_EQUAL(evc_load_lost(&crew.loads[0]), over, "lost promises");
	evc_mailbox_read_statistics(crew.receivers[0].mailbox, &found);
	EXPECT_EQUAL(found.refused + found.overflowed, over, "refused or dropped");
	EXPECT_EQUAL(found.waiting, count - over, "waiting");
	EXPECT_EQUAL(crew.receivers[0].drops + crew.drops, over, "payloads ended");
	for (uint64_t value = first; value < first + count - over; value++)
		EXPECT_NONE(crew_expect_next(&crew.receivers[0], value));
	EXPECT_NONE(crew_expect_nothing(&crew.receivers[0]));
	EXPECT_NONE(crew_expect_nothing(&crew.receivers[1]));
	EXPECT_EQUAL(evc_load_promised(&crew.loads[1]), 0, "promises of the other receiver");
	EXPECT_EQUAL(evc_load_retire(&crew.loads[0]), count, "promises in all");
	EXPECT_EQUAL(evc_balancer_refused(crew.balancer) + evc_balancer_dropped(crew.balancer), 0,
		     "events without a receiver");
	return crew_close(&crew);
}

static const char *policies(void)
{
	static const unsigned counts[] = { 0, 3, 4, 5, 12, 600 };

	for (unsigned policy = EVC_OVERFLOW_REFUSE; policy <= EVC_OVERFLOW_BLOCK; policy++)
		for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			for (unsigned length = 1; length <= counts[i]; length++)
				if (counts[i] % length == 0)
					EXPECT_NONE(overflow((enum evc_overflow)policy, counts[i], length));
	return NULL;
}

/* The end of a payload retires the receiver that has just dropped it, whose promise is then found lost. */
struct retiring {
	struct evc_load load;
	unsigned controls;
	uint64_t promised;
};

static void retire(void *context, void *payload)
{
	struct retiring *retiring = context;

	(void)payload;
	if (retiring->promised == 0)
		retiring->promised = evc_load_retire(&retiring->load);
}

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	return false;
}

static void control(void *context)
{
	((struct retiring *)context)->controls++;
}

static const char *lost_when_retired(void)
{
	struct retiring retiring = { 0 };
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 1,
					       .overflow = EVC_OVERFLOW_DROP_NEWEST,
					       .control = control, .context = &retiring };
	struct evc_subscription_options subscription = { .size = sizeof(subscription), .deliver = deliver,
							 .drop = retire, .context = &retiring };
	struct evc_subscription *receiver;
	struct evc_mailbox *mailbox;
	uint64_t handled = 0;
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 0, NULL));
	EXPECT_OK(evc_mailbox_create(&options, &mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(mailbox, &subscription, &receiver));
	EXPECT_OK(evc_balancer_add(crew.balancer, receiver, 0, false, &retiring.load));
	EXPECT_NONE(crew_post_values(&crew, 1, 1, EVC_OK));
	EXPECT_NONE(crew_post_values(&crew, 2, 1, EVC_OK));
	EXPECT_EQUAL(retiring.promised, 2, "promises in all");
	EXPECT_EQUAL(evc_load_lost(&retiring.load), 1, "lost");
	EXPECT_STATUS(evc_mailbox_pump_until(mailbox, 10, EVC_FOREVER, &handled), EVC_EMPTY);
	EXPECT_EQUAL(handled, 1, "handled");
	EXPECT_EQUAL(retiring.controls, 1, "looks at the load");
	EXPECT_OK(evc_balancer_remove(crew.balancer, receiver));
	evc_mailbox_release(mailbox);
	return crew_close(&crew);
}

static const struct evc_suite_test tests[] = {
	{ "D4 bounded receivers of a balancer: the policy of the one that is chosen applies", policies },
	{ "D4 an event that a retired receiver of a balancer drops has it look at its load", lost_when_retired },
};
SUITE_GROUP(suite_balancer_bounded, tests);
#endif
