/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Memory that runs out, within a dispatch and before a post. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "bench.h"
#include "bounded.h"
#include "lanes/shared_queue.h"
#include "memory/slot.h"
#include "shared.h"

#include <string.h>

/* Dispatches of a number of events until memory is out; each of them is complete or has no effect. */
static const char *fill(struct bench *bench, uint32_t events)
{
	struct evc_dispatch dispatch;

	for (;;) {
		uint64_t value = bench->posted;
		enum evc_status status = bench_begin(bench, BENCH_ONE, events, &dispatch);

		if (status == EVC_OUT_OF_MEMORY)
			return NULL;
		EXPECT_OK(status);
		bench_write(&dispatch, value);
		EXPECT_EQUAL(evc_dispatch_commit(&dispatch), events, "accepted");
		for (unsigned i = 0; i < events; i++)
			bench_expect_next(bench, value + i);
	}
}

/* Without more memory: takes all envelopes of this size that the thread's slab pools have, except `but`. */
static struct evc_envelope *hold_envelopes(struct evc_subscription *subscription, size_t size, unsigned but)
{
	struct evc_envelope *held = NULL, *envelope;

	while (evc_envelope_create(subscription, EVC_LANE_QUEUE_NORMAL, size, 8, &envelope) == EVC_OK) {
		evc_slot_set_next(envelope, held);
		held = envelope;
	}
	for (; but > 0 && held != NULL; but--) {
		envelope = held;
		held = evc_slot_next(held);
		evc_envelope_release(envelope, true);
	}
	return held;
}

static void let_go(struct evc_envelope *held)
{
	struct evc_envelope *next;

	for (; held != NULL; held = next) {
		next = evc_slot_next(held);
		evc_envelope_release(held, true);
	}
}

static const char *out_of_memory(void)
{
	static struct bench bench;

	EXPECT_NONE(bench_open(&bench));
	EXPECT_NONE(bench_dispatch_one(&bench));
	for (unsigned events = 64; events > 0; events -= events > 4 ? 3 : 1) {
		struct evc_envelope *held;
		const char *message;

		suite_allocator_install(0, UINT64_MAX);
		held = hold_envelopes(bench.receiver.subscription, 8, 300);
		message = fill(&bench, events);
		/* What is left can be used. */
		if (message == NULL)
			message = fill(&bench, 1);
		suite_allocator_restore();
		let_go(held);
		EXPECT_NONE(message);
		EXPECT_NONE(bench_take_all(&bench));
		EXPECT_NONE(bench_post_elsewhere(&bench));
		EXPECT_NONE(bench_take_all(&bench));
		EXPECT_STATUS(evc_mailbox_wait(bench.receiver.mailbox, 0), EVC_TIMED_OUT);
		EXPECT_NONE(bench_dispatch_one(&bench));
		EXPECT_NONE(bench_take_all(&bench));
	}
	return bench_close(&bench);
}

/* A post to a shared mailbox's queue may need a segment: a dispatch sets it aside before its first post. */
static const char *shared_out_of_memory(void)
{
	static struct shared_receiver shared;
	struct evc_envelope *held;
	struct evc_router *router;
	uint64_t accepted = 0, refused = 0, value = 1;
	uint64_t depths[EVC_LANE_COUNT];

	EXPECT_NONE(shared_open(&shared));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, shared.subscription, 0, false));
	EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, &value, 8, 8, NULL));
	suite_allocator_install(0, UINT64_MAX);
	/* Boxes of the size of a segment, so that these run out before the events do. */
	held = hold_envelopes(shared.subscription, 4000, 0);
	for (unsigned i = 0; i < 40000; i++) {
		uint32_t receivers = 0;
		enum evc_status status = evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL,
							    &value, 8, 8, &receivers);

		if ((status == EVC_OK) != (receivers == 1) ||
		    (status != EVC_OK && status != EVC_OUT_OF_MEMORY))
			break;
		accepted += status == EVC_OK;
		refused += status == EVC_OUT_OF_MEMORY;
	}
	suite_allocator_restore();
	let_go(held);
	EXPECT_EQUAL(accepted + refused, 40000, "dispatches that reached their receiver, or said so");
	EXPECT(refused > 0, "memory was never out");
	evc_shared_mailbox_depths(shared.mailbox, depths);
	EXPECT_EQUAL(depths[EVC_LANE_QUEUE_NORMAL], accepted + 1, "events that wait");
	EXPECT_OK(evc_router_unsubscribe(router, 1, shared.subscription));
	evc_router_destroy(router);
	EXPECT(suite_settle(), "the callback thread got stuck");
	evc_shared_mailbox_release(shared.mailbox);
	EXPECT_EQUAL(atomic_load(&shared.drops), accepted + 1, "events that ended");
	return NULL;
}

/* The post of existing envelopes needs no memory, even a thread's first post to that mailbox. */
static const char *post_without_memory(void)
{
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		struct suite_receiver receiver;
		struct evc_chain chain = EVC_CHAIN_EMPTY;
		enum evc_status status;

		EXPECT_NONE(suite_receiver_open(&receiver, NULL));
		EXPECT_OK(suite_append(&chain, receiver.subscription, lane, 0));
		suite_allocator_install(0, UINT64_MAX);
		status = evc_mailbox_post(receiver.mailbox, &chain);
		suite_allocator_restore();
		EXPECT_OK(status);
		evc_mailbox_release(receiver.mailbox);
		EXPECT_EQUAL(atomic_load(&receiver.drops), 1, "calls of drop");
	}
	return NULL;
}

/* Where a victim's end posts by hand, and what it was told. */
struct onward {
	struct suite_receiver *to;
	unsigned ends;
	enum evc_status status;
};

static bool never(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope;
	return owned;
}

static void post_onward(void *context, void *payload)
{
	struct onward *onward = context;

	(void)payload;
	if (onward->to == NULL)
		return;
	onward->ends++;
	onward->status = suite_post(onward->to, EVC_LANE_QUEUE_NORMAL, 0);
}

/* The end of a payload that is displaced posts too, and does not get the memory that the rest of the chain needs. */
static const char *displaced_posts(void)
{
	struct onward onward = { NULL, 0, EVC_OK };
	struct evc_subscription_options options = { .size = sizeof(options), .deliver = never, .drop = post_onward,
						    .context = &onward };
	struct suite_receiver full, other;
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *held;
	enum evc_status status;

	EXPECT_NONE(open_bounded(&full, EVC_OVERFLOW_DROP_OLDEST, 1));
	EXPECT_OK(evc_mailbox_add_subscription(full.mailbox, &options, &full.subscription));
	EXPECT_NONE(open_bounded(&other, EVC_OVERFLOW_DROP_OLDEST, 1000));
	/* One cell of the segment is left; none of the other's. */
	for (unsigned i = 0; i < EVC_QUEUE_CELLS; i++) {
		if (i > 0)
			EXPECT_OK(suite_post(&full, EVC_LANE_QUEUE_NORMAL, i));
		EXPECT_OK(suite_post(&other, EVC_LANE_QUEUE_NORMAL, i));
	}
	for (unsigned i = 0; i < 2; i++)
		EXPECT_OK(suite_append(&chain, full.subscription, EVC_LANE_QUEUE_NORMAL, i));
	suite_allocator_install(0, UINT64_MAX);
	/* The thread has set one segment aside, and gets no other. */
	held = hold_envelopes(full.subscription, 4000, 0);
	onward.to = &other;
	status = evc_mailbox_post(full.mailbox, &chain);
	onward.to = NULL;
	suite_allocator_restore();
	let_go(held);
	EXPECT_OK(status);
	EXPECT_EQUAL(onward.ends, 2, "displaced");
	EXPECT_STATUS(onward.status, EVC_OUT_OF_MEMORY);
	EXPECT_NONE(expect_counts(&full, (struct counts){ EVC_QUEUE_CELLS + 1, 0, 1, 0, EVC_QUEUE_CELLS, 1 }));
	EXPECT_OK(suite_post(&other, EVC_LANE_QUEUE_NORMAL, 0));
	EXPECT_NONE(expect_counts(&other, (struct counts){ EVC_QUEUE_CELLS + 1, 0, EVC_QUEUE_CELLS + 1, 0, 0,
							  EVC_QUEUE_CELLS + 1 }));
	evc_mailbox_release(full.mailbox);
	evc_mailbox_release(other.mailbox);
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	return NULL;
}

/* Two conflated subscriptions: finding the keys of the first one's events dispatches to the second one. */
struct nested {
	struct evc_router *router;
	uint64_t next, refused;
	bool is_on;
};

static uint64_t key_of(void *context, const void *payload)
{
	uint64_t key;

	(void)context;
	memcpy(&key, payload, sizeof(key));
	return key;
}

static uint64_t dispatch_and_key_of(void *context, const void *payload)
{
	struct nested *nested = context;
	uint32_t receivers = 0;

	if (nested->is_on) {
		nested->next++;
		if (evc_dispatch_bytes(nested->router, 2, EVC_LANE_QUEUE_NORMAL, &nested->next, 8, 8, &receivers) !=
			    EVC_OK ||
		    receivers == 0)
			nested->refused++;
	}
	return key_of(context, payload);
}

static bool ignore(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	return false;
}

#define NESTED_EVENTS 64u

/* `*reached`: nested dispatches found no memory, and the outer one lacked none. */
static const char *nested_dispatches(unsigned but, bool *reached)
{
	static struct nested nested;
	struct evc_subscription_options options = { .size = sizeof(options), .deliver = ignore };
	struct evc_conflation first = { .context = &nested, .number = dispatch_and_key_of }, second = { .number = key_of };
	struct evc_subscription *subscriptions[2];
	struct evc_envelope *held, *envelope;
	struct evc_mailbox *mailbox;
	struct evc_dispatch dispatch;
	uint32_t accepted;

	nested = (struct nested){ .next = 1000 };
	EXPECT_OK(evc_router_create(&nested.router));
	EXPECT_OK(evc_mailbox_create(NULL, &mailbox));
	EXPECT_OK(evc_mailbox_add_conflated_subscription(mailbox, &options, &first, &subscriptions[0]));
	EXPECT_OK(evc_mailbox_add_conflated_subscription(mailbox, &options, &second, &subscriptions[1]));
	EXPECT_OK(evc_router_subscribe(nested.router, 1, subscriptions[0], 0, false));
	EXPECT_OK(evc_router_subscribe(nested.router, 2, subscriptions[1], 0, false));
	/* From here on the keys are known. */
	for (uint64_t key = 0; key < NESTED_EVENTS; key++)
		EXPECT_OK(evc_dispatch_bytes(nested.router, 1, EVC_LANE_QUEUE_NORMAL, &key, 8, 8, NULL));
	for (uint64_t key = 1001; key < 1401; key++)
		EXPECT_OK(evc_dispatch_bytes(nested.router, 2, EVC_LANE_QUEUE_NORMAL, &key, 8, 8, NULL));
	EXPECT_STATUS(evc_mailbox_pump(mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_OK(evc_dispatch_begin(nested.router, 1, EVC_LANE_QUEUE_NORMAL, 8, 8, NESTED_EVENTS, &dispatch));
	envelope = dispatch.first;
	for (uint64_t key = 0; key < NESTED_EVENTS; key++, envelope = evc_dispatch_next(envelope))
		memcpy(evc_envelope_payload(envelope), &key, sizeof(key));
	suite_allocator_install(0, UINT64_MAX);
	held = hold_envelopes(subscriptions[1], 8, but);
	nested.is_on = true;
	accepted = evc_dispatch_commit(&dispatch);
	nested.is_on = false;
	suite_allocator_restore();
	let_go(held);
	/* All or none, whatever was taken before the first post. */
	EXPECT(accepted == NESTED_EVENTS || accepted == 0, "%u events were accepted", accepted);
	*reached |= accepted == NESTED_EVENTS && nested.refused > 0;
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_OK(evc_router_unsubscribe(nested.router, i + 1, subscriptions[i]));
		evc_latest_subscription_release(subscriptions[i]);
	}
	evc_mailbox_release(mailbox);
	evc_router_destroy(nested.router);
	return NULL;
}

static const char *spares_are_kept_alone(void)
{
#ifndef EVC_ADDRESS_SANITIZER
	bool reached = false;

	/* So few are left that the nested dispatches would take those of the outer one. */
	for (unsigned but = 100; but <= 400; but += 20)
		EXPECT_NONE(nested_dispatches(but, &reached));
	EXPECT(reached, "memory was never out between two posts");
#endif
	return NULL;
}

static const char *spares_are_kept(void)
{
	return suite_alone(spares_are_kept_alone);
}

static const struct evc_suite_test tests[] = {
	{ "D12 memory that runs out within a dispatch takes nothing along", out_of_memory },
	{ "D4 D12 a dispatch to a shared mailbox without memory is refused, not lost",
	  shared_out_of_memory },
	{ "D12 a post needs no memory", post_without_memory },
	{ "D4 D12 what the end of a displaced payload posts takes no memory from the chain that displaces it",
	  displaced_posts },
	{ "D4 D12 what finding a key dispatches takes no memory from the events that are being posted",
	  spares_are_kept },
};
SUITE_GROUP(suite_out_of_memory, tests);
#endif
