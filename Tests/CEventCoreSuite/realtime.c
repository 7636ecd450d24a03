/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Posting without waiting: what is at hand is used and used again, and what would wait is refused whole. That it makes
 * no system call is shown by Tests/CProgram/realtime.c.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "platform/allocator.h"
#include "platform/compiler.h"
#include "suite.h"

#include <string.h>

#define KEY 1u
#define RESERVE 3000u
/* What a receiver may keep of free slots. */
#define CACHED 1024u

struct end {
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscription;
	uint64_t count, last, drops;
	bool out_of_order;
};

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct end *end = context;
	uint64_t number;

	(void)envelope, (void)owned;
	memcpy(&number, payload, sizeof(number));
	end->out_of_order |= number != end->last + 1;
	end->last = number;
	end->count++;
	return false;
}

static void drop(void *context, void *payload)
{
	(void)payload;
	((struct end *)context)->drops++;
}

static const char *open_end(struct end *end, struct evc_router *router, bool polled)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .polled = polled };
	struct evc_subscription_options handler = {
		.size = sizeof(handler), .context = end, .deliver = deliver, .drop = drop
	};

	*end = (struct end){ .count = 0 };
	EXPECT_OK(evc_mailbox_create(&options, &end->mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(end->mailbox, &handler, &end->subscription));
	EXPECT_OK(evc_router_subscribe(router, KEY, end->subscription, 0, false));
	return NULL;
}

static const char *close_end(struct end *end, struct evc_router *router)
{
	EXPECT_OK(evc_router_unsubscribe(router, KEY, end->subscription));
	evc_mailbox_release(end->mailbox);
	return NULL;
}

static enum evc_status send(struct evc_router *router, uint64_t number, uint32_t *receivers)
{
	return evc_try_dispatch(router, KEY, EVC_LANE_QUEUE_NORMAL, &number, sizeof(number), 8, receivers);
}

/* Sends until nothing is at hand; returns how many. */
static uint64_t send_all(struct evc_router *router, uint64_t *number)
{
	uint64_t count = 0;

	while (send(router, *number + 1, NULL) == EVC_OK) {
		++*number;
		count++;
	}
	return count;
}

static const char *used_again_alone(void)
{
	struct evc_router *router;
	uint64_t number = 0, sent;
	uint32_t receivers = 7;
	enum evc_status status;
	struct end end;

	EXPECT_OK(evc_router_create(&router));
	EXPECT_NONE(open_end(&end, router, true));
	/* Another test's thread may have left this one a record with slots, but never a reserve. */
	EXPECT_STATUS(send(router, 1, NULL), EVC_WOULD_ALLOCATE);
	EXPECT_OK(evc_reserve(RESERVE));
	for (unsigned round = 0; round < 20; round++) {
		sent = send_all(router, &number);
		EXPECT(sent >= RESERVE, "%llu sent in round %u", (unsigned long long)sent, round);
		/* One by one, too: then the slots collect in the mailbox, and are given back when it is empty. */
		while ((status = evc_mailbox_pump(end.mailbox, round % 2 == 0 ? UINT64_MAX : 1)) == EVC_OK)
			;
		EXPECT_STATUS(status, EVC_EMPTY);
		EXPECT_EQUAL(end.count, number, "events that came");
#ifdef EVC_ADDRESS_SANITIZER
		/* Slots are not recycled there. */
		EXPECT_OK(evc_reserve(RESERVE));
#endif
	}
	EXPECT(!end.out_of_order, "D2: the order was lost");
	EXPECT_EQUAL(end.drops, number, "payloads that ended");
	/* Nobody to send to. */
	EXPECT_NONE(close_end(&end, router));
	EXPECT_OK(send(router, 1, &receivers));
	EXPECT_EQUAL(receivers, 0, "receivers");
	evc_router_destroy(router);
	return NULL;
}

static const char *used_again(void)
{
	return suite_alone(used_again_alone);
}

static const char *all_or_none_alone(void)
{
	static const unsigned char large[EVC_INLINE_SIZE + 1];
	struct evc_router *router;
	struct end first, second, third, sleeps;
	uint64_t number = 0, sent;
	uint32_t receivers = 0;

	EXPECT_OK(evc_router_create(&router));
	EXPECT_NONE(open_end(&first, router, true));
	EXPECT_NONE(open_end(&second, router, true));
	EXPECT_NONE(open_end(&third, router, true));
	/* Not a multiple of the receivers. */
	EXPECT_OK(evc_reserve(3 * 100 + 1));
	sent = send_all(router, &number);
	EXPECT(sent >= 100, "%llu sent", (unsigned long long)sent);
	/* What was too little for three is enough for two. */
	evc_mailbox_close(third.mailbox);
	EXPECT_STATUS(evc_mailbox_pump(third.mailbox, UINT64_MAX), EVC_CLOSED);
	EXPECT_EQUAL(third.drops, sent, "events that the closed mailbox had");
	EXPECT_NONE(close_end(&third, router));
	EXPECT_STATUS(evc_try_dispatch(router, KEY, EVC_LANE_QUEUE_NORMAL, large, sizeof(large), 1, NULL),
		      EVC_UNSUPPORTED);
	EXPECT_STATUS(evc_try_dispatch(router, KEY, EVC_LANE_QUEUE_NORMAL, large, 1, 64, NULL), EVC_UNSUPPORTED);
	EXPECT_STATUS(evc_try_dispatch(router, 0, EVC_LANE_QUEUE_NORMAL, large, 1, 1, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_try_dispatch(router, KEY, EVC_LANE_QUEUE_NORMAL, large, 1, 3, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_pump(first.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_STATUS(evc_mailbox_pump(second.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT(first.count == sent && second.count == sent, "%llu and %llu of %llu came",
	       (unsigned long long)first.count, (unsigned long long)second.count, (unsigned long long)sent);
	/* With a receiver that may sleep nobody gets anything. */
	EXPECT_OK(evc_reserve(100));
	EXPECT_NONE(open_end(&sleeps, router, false));
	EXPECT_STATUS(send(router, sent + 1, NULL), EVC_UNSUPPORTED);
	EXPECT_STATUS(evc_mailbox_pump(first.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_EQUAL(first.count, sent, "events that came, with a receiver that may sleep");
	EXPECT_NONE(close_end(&sleeps, router));
	/* One that has closed gets nothing, and its drop is not called. */
	evc_mailbox_close(second.mailbox);
	EXPECT_OK(send(router, sent + 1, &receivers));
	EXPECT_EQUAL(receivers, 1, "receivers");
	EXPECT_EQUAL(second.drops, sent, "ends of payloads that the closed mailbox has called");
	EXPECT_STATUS(evc_mailbox_pump(first.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_EQUAL(first.count, sent + 1, "events that came after the close of another");
	EXPECT_NONE(close_end(&first, router));
	EXPECT_NONE(close_end(&second, router));
	evc_router_destroy(router);
	return NULL;
}

static const char *all_or_none(void)
{
	return suite_alone(all_or_none_alone);
}

static const char *by_hand_alone(void)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope;
	struct evc_router *router;
	struct end polled, sleeps;

	EXPECT_OK(evc_router_create(&router));
	EXPECT_NONE(open_end(&polled, router, true));
	EXPECT_NONE(open_end(&sleeps, router, false));
	EXPECT_OK(evc_reserve(10));
	EXPECT_STATUS(evc_try_post(polled.mailbox, &chain), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_try_envelope_create(polled.subscription, EVC_LANE_QUEUE_LOW, EVC_INLINE_SIZE + 1, 1, &envelope),
		      EVC_UNSUPPORTED);
	/* Several lanes: those before the lane at which the consumer is raise the alarm (D1). */
	for (uint64_t i = 5; i > 0; i--) {
		EXPECT_OK(evc_try_envelope_create(polled.subscription, (enum evc_lane)(EVC_LANE_QUEUE_HIGHEST + i - 1), 8,
						  8, &envelope));
		memcpy(evc_envelope_payload(envelope), &i, sizeof(i));
		evc_chain_append(&chain, envelope);
	}
	EXPECT_STATUS(evc_try_post(sleeps.mailbox, &chain), EVC_UNSUPPORTED);
	EXPECT_OK(evc_try_post(polled.mailbox, &chain));
	EXPECT_STATUS(evc_mailbox_pump(polled.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT(polled.count == 5 && !polled.out_of_order, "D1: %llu events came, out of order",
	       (unsigned long long)polled.count);
	evc_mailbox_close(polled.mailbox);
	EXPECT_OK(evc_try_envelope_create(polled.subscription, EVC_LANE_QUEUE_LOW, 8, 8, &envelope));
	chain = (struct evc_chain)EVC_CHAIN_EMPTY;
	evc_chain_append(&chain, envelope);
	EXPECT_STATUS(evc_try_post(polled.mailbox, &chain), EVC_CLOSED);
	evc_envelope_release(envelope, true);
	EXPECT_NONE(close_end(&polled, router));
	EXPECT_NONE(close_end(&sleeps, router));
	evc_router_destroy(router);
	return NULL;
}

static const char *by_hand(void)
{
	return suite_alone(by_hand_alone);
}

static void ignore(void *context)
{
	(void)context;
}

static const char *nobody_sleeps(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .polled = true, .wake = ignore };
	struct evc_shared_mailbox *shared;
	struct evc_mailbox *mailbox;
	struct evc_worker *worker;

	EXPECT_STATUS(evc_mailbox_create(&options, &mailbox), EVC_INVALID_ARGUMENT);
	options.wake = NULL;
	EXPECT_OK(evc_shared_mailbox_create(&shared));
	EXPECT_STATUS(evc_worker_create(shared, &options, &worker), EVC_INVALID_ARGUMENT);
	evc_shared_mailbox_release(shared);
	EXPECT_OK(evc_mailbox_create(&options, &mailbox));
	EXPECT_STATUS(evc_mailbox_wait(mailbox, 0), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_run(mailbox), EVC_INVALID_ARGUMENT);
	evc_mailbox_release(mailbox);
	options.strategy = EVC_WAIT_SPIN;
	EXPECT_OK(evc_mailbox_create(&options, &mailbox));
	EXPECT_STATUS(evc_mailbox_wait(mailbox, 1000), EVC_TIMED_OUT);
	evc_mailbox_close(mailbox);
	EXPECT_STATUS(evc_mailbox_run(mailbox), EVC_CLOSED);
	evc_mailbox_release(mailbox);
	return NULL;
}

/* How often taking the first envelope by hand allocates; the mailbox's handler stays subscribed until its end. */
static const char *first_take(bool polled, uint64_t *calls)
{
	struct evc_envelope *envelope;
	struct evc_router *router;
	struct end end;
	enum evc_status status;
	uint32_t receivers;

	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_reserve(RESERVE));
	EXPECT_NONE(open_end(&end, router, polled));
	EXPECT_OK(evc_dispatch_bytes(router, KEY, EVC_LANE_STACK_NORMAL, &(uint64_t){ 1 }, 8, 8, &receivers));
	suite_allocator_install(UINT64_MAX, 0);
	status = evc_mailbox_take(end.mailbox, &envelope);
	if (status == EVC_OK)
		evc_mailbox_recycle(end.mailbox, envelope, true);
	*calls = suite_allocator_read().calls;
	suite_allocator_restore();
	EXPECT_OK(status);
	EXPECT_NONE(close_end(&end, router));
	evc_router_destroy(router);
	return NULL;
}

static const char *first_takes(void)
{
	uint64_t polled, other;

	EXPECT_NONE(first_take(true, &polled));
	EXPECT_NONE(first_take(false, &other));
	EXPECT_EQUAL(polled, 0, "allocations for a polled mailbox");
	EXPECT_EQUAL(other, 1, "allocations for another one: the cache of its consumer");
	return NULL;
}

/* Set by the test for its thread. */
static unsigned reserved_events, reserved_receivers;

static const char *ordinary_alone(void)
{
	const unsigned events = reserved_events, receivers = reserved_receivers;
	unsigned char payload[24] = { 0 };
	struct evc_router *router;
	struct end ends[2];
	uint64_t calls;
	uint32_t count;

	EXPECT_OK(evc_router_create(&router));
	for (unsigned i = 0; i < receivers; i++)
		EXPECT_NONE(open_end(&ends[i], router, false));
	EXPECT_OK(evc_reserve(events * receivers));
	calls = suite_allocator_read().calls;
	for (unsigned i = 0; i < events; i++) {
		EXPECT_OK(evc_dispatch_bytes(router, KEY, (enum evc_lane)(i * 7 % EVC_LANE_COUNT), payload, sizeof(payload),
					     8, &count));
		EXPECT_EQUAL(count, receivers, "receivers");
	}
	EXPECT_EQUAL(suite_allocator_read().calls - calls, 0, "allocations of dispatches with a reserve");
	for (unsigned i = 0; i < receivers; i++) {
		EXPECT_STATUS(evc_mailbox_pump(ends[i].mailbox, UINT64_MAX), EVC_EMPTY);
		EXPECT_EQUAL(ends[i].count, events, "events that came");
		EXPECT_NONE(close_end(&ends[i], router));
	}
	evc_router_destroy(router);
	return NULL;
}

/* The first ones of a thread, on all lanes: less than a slab, and some of them. */
static const char *ordinary(void)
{
	static const unsigned counts[] = { 1, 64, 65, 5000, 20000 };
	const char *message = NULL;

	suite_allocator_install(UINT64_MAX, 0);
	for (unsigned i = 0; i < 2 * sizeof(counts) / sizeof(counts[0]) && message == NULL; i++) {
		reserved_events = counts[i / 2];
		reserved_receivers = 1 + i % 2;
		message = suite_alone(ordinary_alone);
	}
	suite_allocator_restore();
	return message;
}

struct mixed {
	struct evc_router *router;
	uint64_t count, urgent, sent_then;
};

/* When all but the last of each segment have come, sends what can be sent. */
static bool send_when_urgent_are_done(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct mixed *mixed = context;
	uint64_t number = 0;

	(void)payload, (void)envelope, (void)owned;
	if (++mixed->count != mixed->urgent)
		return false;
	while (evc_try_dispatch(mixed->router, KEY, EVC_LANE_STACK_LOWEST, &number, sizeof(number), 8, NULL) == EVC_OK)
		mixed->sent_then++;
	return false;
}

/* Pumps of one event and of many in turn: both keep slots until their segment is whole, but in one cache. */
static const char *one_cache_alone(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .polled = true };
	struct mixed mixed = { .count = 0 };
	struct evc_subscription_options handler = {
		.size = sizeof(handler), .context = &mixed, .deliver = send_when_urgent_are_done
	};
	struct evc_subscription *subscription;
	struct evc_mailbox *mailbox;
	uint64_t sent = 0, late;

	EXPECT_OK(evc_router_create(&mixed.router));
	EXPECT_OK(evc_mailbox_create(&options, &mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(mailbox, &handler, &subscription));
	EXPECT_OK(evc_router_subscribe(mixed.router, KEY, subscription, 0, false));
	EXPECT_STATUS(send(mixed.router, 1, NULL), EVC_WOULD_ALLOCATE);
	EXPECT_OK(evc_reserve(RESERVE));
	while (evc_try_dispatch(mixed.router, KEY, sent % 64 == 63 ? EVC_LANE_QUEUE_LOWEST : EVC_LANE_QUEUE_NORMAL, &sent,
				sizeof(sent), 8, NULL) == EVC_OK)
		sent++;
	late = sent / 64;
	mixed.urgent = sent - late;
	for (uint64_t i = 0; i < mixed.urgent / 2; i++)
		EXPECT_OK(evc_mailbox_pump(mailbox, 1));
	EXPECT_STATUS(evc_mailbox_pump(mailbox, UINT64_MAX), EVC_EMPTY);
#ifndef EVC_ADDRESS_SANITIZER
	EXPECT(mixed.sent_then + late + CACHED >= RESERVE, "%llu sent while %llu were under way",
	       (unsigned long long)mixed.sent_then, (unsigned long long)late);
#endif
	EXPECT_OK(evc_router_unsubscribe(mixed.router, KEY, subscription));
	evc_mailbox_release(mailbox);
	evc_router_destroy(mixed.router);
	return NULL;
}

static const char *one_cache(void)
{
	return suite_alone(one_cache_alone);
}

/* What is refused changes nothing: the thread keeps its reserve. */
static const char *kept_alone(void)
{
	struct evc_router *router;
	struct evc_node *node;
	struct evc_walk *walk;
	struct end end;

	EXPECT_OK(evc_router_create(&router));
	EXPECT_NONE(open_end(&end, router, true));
	EXPECT_OK(evc_node_create(NULL, &node));
	EXPECT_OK(evc_node_add_handler(node, KEY, EVC_HANDLER_RAISE, NULL, NULL));
	EXPECT_OK(evc_reserve(8));
	EXPECT_OK(evc_walk_begin(node, KEY, EVC_WALK_RAISE, &walk));
	EXPECT_STATUS(evc_unregister_thread(), EVC_NOT_PERMITTED);
	EXPECT_OK(send(router, 1, NULL));
	evc_walk_end(walk);
	EXPECT_OK(evc_unregister_thread());
	EXPECT_STATUS(send(router, 2, NULL), EVC_WOULD_ALLOCATE);
	EXPECT_OK(evc_reserve(8));
	/* Nor does a dispatch that is begun let the thread go. */
	{
		struct evc_dispatch dispatch;

		EXPECT_OK(evc_dispatch_begin(router, KEY, EVC_LANE_QUEUE_NORMAL, 8, 8, 1, &dispatch));
		EXPECT_STATUS(evc_unregister_thread(), EVC_NOT_PERMITTED);
		evc_dispatch_abandon(&dispatch);
	}
	EXPECT_OK(send(router, 2, NULL));
	EXPECT_STATUS(evc_mailbox_pump(end.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_EQUAL(end.count, 2, "events that came");
	(void)evc_node_end(node);
	EXPECT_NONE(close_end(&end, router));
	evc_router_destroy(router);
	return NULL;
}

static const char *kept(void)
{
	return suite_alone(kept_alone);
}

static const struct evc_suite_test tests[] = {
	{ "D2 D5 a reserve is used again and again by posts that must not wait", used_again },
	{ "D5 the first dispatches of a thread allocate nothing if it has reserved their envelopes", ordinary },
	{ "D5 a receiver keeps one cache of slots, however it is pumped", one_cache },
	{ "D4 D5 a post that must not wait reaches all receivers or none", all_or_none },
	{ "D1 D5 a chain is posted by hand without waiting, or refused", by_hand },
	{ "D5 a thread that may not unregister keeps its reserve", kept },
	{ "D12 the consumer of a polled mailbox is not put to sleep", nobody_sleeps },
	{ "D5 the consumer of a polled mailbox allocates nothing, not even for its first envelope", first_takes },
};
SUITE_GROUP(suite_realtime, tests);
#endif
