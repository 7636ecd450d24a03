/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A balancer whose receivers have latest-only subscriptions: what is superseded is lost to the load. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

/* A balancer with one receiver. Its load retires while the event with the number `retires_at` is posted, if not 0. */
struct latest_crew {
	struct evc_router *router;
	struct evc_balancer *balancer;
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscription;
	struct evc_load load;
	uint64_t retires_at;
	unsigned controls, drops;
	uint64_t handled, promised;
};

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	((struct latest_crew *)context)->handled++;
	return true;
}

static void drop(void *context, void *payload)
{
	(void)payload;
	((struct latest_crew *)context)->drops++;
}

static void control(void *context)
{
	((struct latest_crew *)context)->controls++;
}

static uint64_t number_of(void *context, const void *payload)
{
	struct latest_crew *crew = context;
	const uint64_t number = *(const uint64_t *)payload;

	if (number == crew->retires_at && number != 0)
		crew->promised = evc_load_retire(&crew->load);
	return number % 2;
}

static const char *open_crew(struct latest_crew *crew, bool is_conflated)
{
	const struct evc_conflation conflation = { .context = crew, .number = number_of };
	struct evc_mailbox_options mailbox = { .size = sizeof(mailbox), .control = control, .context = crew };
	struct evc_subscription_options options = { .size = sizeof(options), .deliver = deliver, .drop = drop,
						    .context = crew };
	struct evc_balancer_options balancer = { .size = sizeof(balancer), .drop = drop, .context = crew };

	EXPECT_OK(evc_router_create(&crew->router));
	EXPECT_OK(evc_mailbox_create(&mailbox, &crew->mailbox));
	if (is_conflated)
		EXPECT_OK(evc_mailbox_add_conflated_subscription(crew->mailbox, &options, &conflation,
								 &crew->subscription));
	else
		EXPECT_OK(evc_mailbox_add_latest_subscription(crew->mailbox, &options, &crew->subscription));
	EXPECT_OK(evc_balancer_create(&balancer, &crew->balancer));
	EXPECT_OK(evc_balancer_add(crew->balancer, crew->subscription, 0, false, &crew->load));
	EXPECT_OK(evc_router_subscribe(crew->router, 1, evc_balancer_subscription(crew->balancer), 0, false));
	EXPECT_OK(evc_router_subscribe(crew->router, 2, crew->subscription, 0, false));
	return NULL;
}

static const char *close_crew(struct latest_crew *crew)
{
	EXPECT_OK(evc_balancer_remove(crew->balancer, crew->subscription));
	evc_latest_subscription_release(crew->subscription);
	evc_router_destroy(crew->router);
	evc_balancer_release(crew->balancer);
	evc_mailbox_release(crew->mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

/* Dispatches the numbers from 0 on, in chains, with payloads of this size, and takes what waits after each second one. */
static const char *count_lost(size_t size, uint32_t together, bool is_conflated)
{
	enum { CHAINS = 6 };
	struct latest_crew crew = { 0 };
	const unsigned keys = is_conflated ? 2 : 1;
	/* Of all events, and of those since the last take. */
	uint64_t number = 0, since = 0;

	EXPECT_NONE(open_crew(&crew, is_conflated));
	for (unsigned chain = 0; chain < CHAINS; chain++) {
		struct evc_dispatch dispatch;
		uint64_t waiting;

		EXPECT_OK(evc_dispatch_begin(crew.router, 1, EVC_LANE_QUEUE_NORMAL, size, 8, together, &dispatch));
		for (struct evc_envelope *envelope = dispatch.first; envelope != NULL;
		     envelope = evc_dispatch_next(envelope))
			*(uint64_t *)evc_envelope_payload(envelope) = number++;
		EXPECT_EQUAL(evc_dispatch_commit(&dispatch), together, "acceptances");
		since += together;
		waiting = since < keys ? since : keys;
		EXPECT_EQUAL(evc_load_promised(&crew.load) - crew.handled, waiting, "promises that wait");
		EXPECT_EQUAL(evc_load_lost(&crew.load), number - crew.handled - waiting, "lost");
		EXPECT_EQUAL(evc_latest_subscription_superseded(crew.subscription), evc_load_lost(&crew.load),
			     "superseded");
		if (chain % 2 == 1)
			for (since = 0; evc_mailbox_pump(crew.mailbox, 1) == EVC_OK;)
				;
	}
	EXPECT_EQUAL(crew.drops, evc_load_lost(&crew.load), "payloads ended");
	EXPECT_EQUAL(evc_load_retire(&crew.load), number, "promises in all");
	return close_crew(&crew);
}

static const char *superseded_is_lost(void)
{
	for (unsigned is_boxed = 0; is_boxed < 2; is_boxed++)
		for (uint32_t together = 1; together <= 3; together++) {
			EXPECT_NONE(count_lost(is_boxed ? 200 : 8, together, false));
			EXPECT_NONE(count_lost(is_boxed ? 200 : 8, together, true));
		}
	return NULL;
}

/* The receiver retires once the second event is promised, which then supersedes the first. */
static const char *lost_when_retired(void)
{
	struct latest_crew crew = { .retires_at = 4 };
	uint64_t handled = 0;

	EXPECT_NONE(open_crew(&crew, true));
	for (uint64_t value = 2; value <= 4; value += 2)
		EXPECT_OK(evc_dispatch_bytes(crew.router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8, NULL));
	EXPECT_EQUAL(crew.promised, 2, "promises in all");
	EXPECT_STATUS(evc_mailbox_pump_until(crew.mailbox, 10, EVC_FOREVER, &handled), EVC_EMPTY);
	EXPECT_EQUAL(handled + evc_load_lost(&crew.load), 2, "handled and lost");
	EXPECT_EQUAL(crew.controls, 1, "looks at the load");
	return close_crew(&crew);
}

static const char *superseded_without_a_promise(void)
{
	struct latest_crew crew = { 0 };
	uint64_t value = 0;

	EXPECT_NONE(open_crew(&crew, false));
	/* One by the balancer, one past it, and another one by the balancer. */
	for (unsigned i = 0; i < 3; i++)
		EXPECT_OK(evc_dispatch_bytes(crew.router, 1 + i % 2, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8, NULL));
	EXPECT_EQUAL(evc_load_lost(&crew.load), 1, "lost: the first");
	EXPECT_EQUAL(evc_load_promised(&crew.load), 1, "promises that wait");
	EXPECT_EQUAL(evc_latest_subscription_superseded(crew.subscription), 2, "superseded");
	return close_crew(&crew);
}

static const struct evc_suite_test tests[] = {
	{ "D4 an event that is superseded is lost to the load that it was promised to", superseded_is_lost },
	{ "D4 an event that is superseded at a retired receiver has it look at its load", lost_when_retired },
	{ "what is superseded of events that no balancer has promised is lost to no load", superseded_without_a_promise },
};
SUITE_GROUP(suite_balancer_latest, tests);
#endif
