/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The batches that a consumer's own posts join: while others change the router, and while the consumer goes from lane to
 * lane.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#define ROUNDS SUITE_SCALE(20000u)

struct loop {
	struct evc_router *router;
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscription, *other;
	uint64_t expected, wrong;
	_Atomic bool is_over;
	enum evc_status status;
};

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct loop *loop = context;
	uint64_t number;

	(void)envelope, (void)owned;
	__builtin_memcpy(&number, payload, sizeof(number));
	loop->wrong += number != loop->expected++;
	return true;
}

static const char *open_loop(struct loop *loop)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .batches = true };
	struct evc_subscription_options handler = { .size = sizeof(handler), .context = loop, .deliver = deliver };

	*loop = (struct loop){ .expected = 0 };
	EXPECT_OK(evc_router_create(&loop->router));
	EXPECT_OK(evc_mailbox_create(&options, &loop->mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(loop->mailbox, &handler, &loop->subscription));
	EXPECT_OK(evc_mailbox_add_subscription(loop->mailbox, &handler, &loop->other));
	EXPECT_OK(evc_router_subscribe(loop->router, 1, loop->subscription, 1, false));
	return NULL;
}

static void close_loop(struct loop *loop)
{
	evc_router_destroy(loop->router);
	evc_mailbox_release(loop->mailbox);
}

static const char *post(struct loop *loop, enum evc_lane lane, uint64_t number)
{
	uint32_t receivers;

	EXPECT_OK(evc_dispatch_bytes(loop->router, 1, lane, &number, sizeof(number), 8, &receivers));
	EXPECT_EQUAL(receivers, 1, "receivers");
	return NULL;
}

static void *change_routes(void *context)
{
	struct loop *loop = context;

	while (!atomic_load_explicit(&loop->is_over, memory_order_relaxed) && loop->status == EVC_OK) {
		loop->status = evc_router_subscribe(loop->router, 99, loop->other, 1, false);
		if (loop->status == EVC_OK)
			loop->status = evc_router_unsubscribe(loop->router, 99, loop->other);
	}
	return NULL;
}

static const char *beside_changes(void)
{
	struct evc_mailbox *before;
	struct loop loop;
	uint64_t number = 0;
	pthread_t thread;

	EXPECT_NONE(open_loop(&loop));
	pthread_create(&thread, NULL, change_routes, &loop);
	before = evc_mailbox_enter(loop.mailbox);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < 5; i++)
			EXPECT_NONE(post(&loop, EVC_LANE_QUEUE_NORMAL, number++));
		EXPECT_STATUS(evc_mailbox_pump(loop.mailbox, 100), EVC_EMPTY);
	}
	evc_mailbox_leave(before);
	atomic_store_explicit(&loop.is_over, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	EXPECT_OK(loop.status);
	EXPECT_EQUAL(loop.expected, number, "events");
	EXPECT_EQUAL(loop.wrong, 0, "events out of order");
	close_loop(&loop);
	return NULL;
}

/* Two lanes in turn, so that each post closes the batch that the one before it has joined. */
static const char *two_lanes(void)
{
	struct evc_pool_statistics start, end;
	struct evc_mailbox *before;
	struct loop loop;

	EXPECT_NONE(open_loop(&loop));
	evc_pool_read_statistics(&start);
	before = evc_mailbox_enter(loop.mailbox);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		EXPECT_NONE(post(&loop, EVC_LANE_QUEUE_LOW, ROUNDS + i));
		EXPECT_NONE(post(&loop, EVC_LANE_QUEUE_HIGH, i));
	}
	evc_pool_read_statistics(&end);
	EXPECT_STATUS(evc_mailbox_pump(loop.mailbox, UINT64_MAX), EVC_EMPTY);
	evc_mailbox_leave(before);
	EXPECT_EQUAL(loop.expected, 2 * ROUNDS, "events");
	EXPECT_EQUAL(loop.wrong, 0, "events out of order");
	/* As much as envelopes would take, and what pools keep. */
	EXPECT(SUITE_SLOW || end.slab_bytes <= start.slab_bytes + 2 * 64 * ROUNDS + (1u << 20),
	       "%u events of 8 bytes take %zu bytes", 2 * ROUNDS, end.slab_bytes - start.slab_bytes);
	close_loop(&loop);
	return NULL;
}

#define LARGEST 40u

struct bytes {
	size_t size;
	unsigned delivered, wrong;
};

/* What byte number `at` of event number `event` is. */
static unsigned char byte_of(unsigned event, size_t at)
{
	return (unsigned char)(31 * event + 7 * at + 1);
}

static bool deliver_bytes(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct bytes *bytes = context;

	(void)envelope, (void)owned;
	for (size_t at = 0; at < bytes->size; at++)
		bytes->wrong += ((unsigned char *)payload)[at] != byte_of(bytes->delivered, at);
	bytes->delivered++;
	return true;
}

/* Those that join a batch, and those that are too large for one; from addresses that are no multiples of anything. */
static const char *every_size(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .batches = true };
	struct bytes bytes = { 0 };
	struct evc_subscription_options handler = {
		.size = sizeof(handler), .context = &bytes, .deliver = deliver_bytes
	};
	struct evc_subscription *subscription;
	struct evc_mailbox *mailbox, *before;
	struct evc_router *router;
	unsigned char event[LARGEST + 1];

	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_mailbox_create(&options, &mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(mailbox, &handler, &subscription));
	EXPECT_OK(evc_router_subscribe(router, 1, subscription, 1, false));
	for (bytes.size = 0; bytes.size <= LARGEST; bytes.size++) {
		bytes.delivered = 0;
		before = evc_mailbox_enter(mailbox);
		for (unsigned i = 0; i < 20; i++) {
			uint32_t receivers = 0;

			for (size_t at = 0; at < bytes.size; at++)
				event[at + 1] = byte_of(i, at);
			EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_LOW, event + 1, bytes.size, 1,
						     i % 2 == 0 ? NULL : &receivers));
			EXPECT_EQUAL(receivers, i % 2, "receivers");
		}
		EXPECT_STATUS(evc_mailbox_pump(mailbox, UINT64_MAX), EVC_EMPTY);
		evc_mailbox_leave(before);
		EXPECT_EQUAL(bytes.delivered, 20, "events");
		EXPECT_EQUAL(bytes.wrong, 0, "wrong bytes");
	}
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 own posts of every size keep their bytes", every_size },
	{ "D2 D4 own posts join batches while others change the routes of other keys", beside_changes },
	{ "D1 D2 own posts to two lanes in turn fill their batches", two_lanes },
};
SUITE_GROUP(suite_own_batches, tests);
#endif
