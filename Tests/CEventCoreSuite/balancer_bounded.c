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

/* User code that runs inside a post: it dispatches to a mailbox that is full. */
static struct evc_router *inner;

static void dispatch_inside(void *context)
{
	uint64_t value = 0;

	(void)context;
	if (inner != NULL)
		(void)(evc_dispatch_bytes(inner, 2, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8, NULL) == EVC_OK);
}

static void note(void *context, const struct evc_subscription *subscription,
		 const struct evc_dispatch_outcome *outcome)
{
	(void)subscription;
	*(struct evc_dispatch_outcome *)context = *outcome;
}

static const char *dispatches_inside_of_a_post(void)
{
	struct evc_mailbox_options full = { .size = sizeof(full), .capacity = 1, .overflow = EVC_OVERFLOW_DROP_NEWEST };
	struct evc_mailbox_options woken = { .size = sizeof(woken), .wake = dispatch_inside };
	struct evc_dispatch_outcome outcome = { 0 };
	struct suite_receiver other, receiver;
	struct evc_balancer_options options = { .size = sizeof(options) };
	struct evc_balancer *balancer;
	struct evc_router *router;
	struct evc_load load = { 0 };
	struct evc_dispatch dispatch;

	EXPECT_NONE(suite_receiver_open(&other, &full));
	EXPECT_NONE(suite_receiver_open(&receiver, &woken));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_balancer_create(&options, &balancer));
	EXPECT_OK(evc_balancer_add(balancer, receiver.subscription, 0, false, &load));
	EXPECT_OK(evc_router_subscribe(router, 1, evc_balancer_subscription(balancer), 0, false));
	EXPECT_OK(evc_router_subscribe(router, 2, other.subscription, 0, false));
	/* Fills it, and has the route in the thread's cache. */
	inner = router;
	dispatch_inside(NULL);
	dispatch_inside(NULL);
	for (unsigned i = 0; i < 3; i++) {
		struct evc_envelope *envelope;

		EXPECT_OK(evc_dispatch_begin(router, 1, EVC_LANE_QUEUE_NORMAL, 8, 8, 1, &dispatch));
		*(uint64_t *)evc_envelope_payload(dispatch.first) = i;
		EXPECT_EQUAL(evc_dispatch_commit_each(&dispatch, note, &outcome), 1, "acceptances");
		EXPECT_EQUAL(outcome.accepted, 1, "accepted");
		EXPECT_EQUAL(outcome.dropped + outcome.displaced + outcome.refused, 0, "ended by a policy");
		EXPECT_OK(evc_mailbox_take(receiver.mailbox, &envelope));
		evc_mailbox_recycle(receiver.mailbox, envelope, true);
		/* So that the next post wakes the consumer again. */
		EXPECT_STATUS(evc_mailbox_pump(receiver.mailbox, 1), EVC_EMPTY);
	}
	inner = NULL;
	EXPECT_EQUAL(evc_load_lost(&load), 0, "lost");
	EXPECT_EQUAL(evc_load_retire(&load), 3, "promises in all");
	evc_router_destroy(router);
	evc_balancer_release(balancer);
	evc_mailbox_release(receiver.mailbox);
	evc_mailbox_release(other.mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

/* Two balancers whose receivers have one mailbox: what each displaces of the other is the other's. */
static const char *displaced_of_another(void)
{
	struct evc_mailbox_options bounded = { .size = sizeof(bounded), .capacity = 2, .overflow = EVC_OVERFLOW_DROP_OLDEST };
	struct evc_subscription_options plain = { .size = sizeof(plain), .deliver = deliver };
	struct evc_balancer_options options = { .size = sizeof(options) };
	struct evc_subscription *subscriptions[3];
	struct evc_load loads[2] = { { 0 } }, another = { 0 };
	struct evc_balancer *balancers[2];
	struct evc_mailbox *mailbox;
	struct evc_router *router;
	uint64_t value = 0;

	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_mailbox_create(&bounded, &mailbox));
	for (unsigned i = 0; i < 3; i++)
		EXPECT_OK(evc_mailbox_add_subscription(mailbox, &plain, &subscriptions[i]));
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_OK(evc_balancer_create(&options, &balancers[i]));
		EXPECT_OK(evc_balancer_add(balancers[i], subscriptions[i], 0, false, &loads[i]));
		EXPECT_OK(evc_router_subscribe(router, 1 + i, evc_balancer_subscription(balancers[i]), 0, false));
	}
	EXPECT_STATUS(evc_balancer_add(balancers[0], subscriptions[0], 0, false, &another), EVC_INVALID_ARGUMENT);
	EXPECT_OK(evc_router_subscribe(router, 3, subscriptions[2], 0, false));
	/* Two of each: the second's displace the first's, and those of no balancer displace the second's. */
	for (uint64_t key = 1; key <= 3; key++)
		for (unsigned i = 0; i < 2; i++)
			EXPECT_OK(evc_dispatch_bytes(router, key, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8, NULL));
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_EQUAL(evc_load_lost(&loads[i]), 2, "lost");
		EXPECT_EQUAL(evc_load_promised(&loads[i]), 0, "promises that wait");
	}
	evc_router_destroy(router);
	for (unsigned i = 0; i < 2; i++)
		evc_balancer_release(balancers[i]);
	evc_mailbox_release(mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

/* Events that a receiver gets past its balancer are promised to nobody, and so none of them is lost to its load. */
static const char *displaced_without_a_promise(void)
{
	struct evc_mailbox_options bounded = { .size = sizeof(bounded), .capacity = 2, .overflow = EVC_OVERFLOW_DROP_OLDEST };
	struct evc_subscription_options plain = { .size = sizeof(plain), .deliver = deliver };
	struct evc_balancer_options options = { .size = sizeof(options) };
	struct evc_subscription *subscription;
	struct evc_load load = { 0 };
	struct evc_balancer *balancer;
	struct evc_mailbox *mailbox;
	struct evc_router *router;
	uint64_t value = 0;

	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_mailbox_create(&bounded, &mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(mailbox, &plain, &subscription));
	EXPECT_OK(evc_balancer_create(&options, &balancer));
	EXPECT_OK(evc_balancer_add(balancer, subscription, 0, false, &load));
	EXPECT_OK(evc_router_subscribe(router, 1, evc_balancer_subscription(balancer), 0, false));
	EXPECT_OK(evc_router_subscribe(router, 2, subscription, 0, false));
	/* Two by the balancer, which displace the two before; and two that displace these. */
	for (unsigned round = 0; round < 2; round++)
		for (uint64_t key = 2; key >= 1; key--)
			for (unsigned i = 0; i < 2; i++)
				EXPECT_OK(evc_dispatch_bytes(router, key, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8,
							     NULL));
	EXPECT_EQUAL(evc_load_lost(&load), 2, "lost: the first two that were promised");
	EXPECT_EQUAL(evc_load_promised(&load), 2, "promises that wait");
	evc_router_destroy(router);
	evc_balancer_release(balancer);
	evc_mailbox_release(mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 bounded receivers of a balancer: the policy of the one that is chosen applies", policies },
	{ "D4 an event that a retired receiver of a balancer drops has it look at its load", lost_when_retired },
	{ "what user code dispatches inside of a post counts neither as the outcome's nor as the load's",
	  dispatches_inside_of_a_post },
	{ "what a bounded mailbox displaces is lost to the load that it was promised to", displaced_of_another },
	{ "what a bounded mailbox displaces of events that no balancer has promised is lost to no load",
	  displaced_without_a_promise },
};
SUITE_GROUP(suite_balancer_bounded, tests);
#endif
