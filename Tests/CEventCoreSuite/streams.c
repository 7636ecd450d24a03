/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Streams at their seams: reservations that go on into another segment and are taken back, dispatches
 * that are open at the same time, chains, other threads, and memory that runs out half-way.
 */
#ifdef EVC_URCU
#include "mailbox_private.h"
#include "stream_table.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

#define KEY_ONE 1u
#define KEY_TWO 2u
#define MOST_OPEN 4u

/* A mailbox with a router; one subscription listens to KEY_ONE, two to KEY_TWO. */
struct bench {
	struct suite_receiver receiver;
	struct evc_router *router;
	uint64_t posted;
	uint64_t taken;
	uint64_t expected[16384];
};

static const char *open_bench(struct bench *bench)
{
	struct evc_subscription *second;
	struct evc_subscription_options options = { .context = &bench->receiver };

	bench->posted = bench->taken = 0;
	EXPECT_NONE(suite_receiver_open(&bench->receiver, NULL));
	options.deliver = bench->receiver.subscription->deliver;
	EXPECT_OK(evc_mailbox_add_subscription(bench->receiver.mailbox, &options, &second));
	EXPECT_OK(evc_router_create(&bench->router));
	EXPECT_OK(evc_router_subscribe(bench->router, KEY_ONE, bench->receiver.subscription, 0, false));
	EXPECT_OK(evc_router_subscribe(bench->router, KEY_TWO, bench->receiver.subscription, 0, false));
	EXPECT_OK(evc_router_subscribe(bench->router, KEY_TWO, second, 0, false));
	return NULL;
}

static const char *close_bench(struct bench *bench)
{
	evc_router_destroy(bench->router);
	evc_mailbox_release(bench->receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	EXPECT_EQUAL(atomic_load(&bench->receiver.finalized), 1, "calls of finalize");
	return NULL;
}

static void expect_next(struct bench *bench, uint64_t value)
{
	bench->expected[bench->posted++ % 16384] = value;
}

/*
 * All that was posted and not taken can be found from where the consumer stands. Before each take, as a
 * take of what cannot be found would look for it for ever.
 */
static const char *expect_depth(struct bench *bench)
{
	uint64_t depths[EVC_LANE_COUNT], sum = 0;

	evc_mailbox_depths(bench->receiver.mailbox, depths);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		sum += depths[lane];
	EXPECT_EQUAL(sum, bench->posted - bench->taken, "envelopes that can be found");
	return NULL;
}

static const char *take(struct bench *bench, uint64_t count)
{
	uint64_t value;
	unsigned lane;

	EXPECT_NONE(expect_depth(bench));
	for (; count > 0; count--) {
		EXPECT_OK(suite_take(&bench->receiver, &lane, &value));
		EXPECT_EQUAL(value, bench->expected[bench->taken % 16384], "the next event");
		bench->taken++;
	}
	return NULL;
}

static const char *take_all(struct bench *bench)
{
	uint64_t value;
	unsigned lane;

	EXPECT_NONE(take(bench, bench->posted - bench->taken));
	EXPECT_STATUS(suite_take(&bench->receiver, &lane, &value), EVC_EMPTY);
	return NULL;
}

/* Writes `value` and those that follow, by receiver and then by event. */
static void write_payloads(struct evc_dispatch *dispatch, uint64_t value)
{
	struct evc_envelope *envelope = dispatch->first;

	for (uint32_t i = 0; i < dispatch->payloads; i++) {
		uint64_t text = value + i;

		memcpy(evc_envelope_payload(envelope), &text, sizeof(text));
		envelope = evc_dispatch_next(envelope);
	}
}

static enum evc_status begin(struct bench *bench, uint64_t key, uint32_t events,
			     struct evc_dispatch *out)
{
	return evc_dispatch_begin(bench->router, key, EVC_LANE_QUEUE_NORMAL, 8, 8, events, out);
}

static const char *dispatch_one(struct bench *bench)
{
	struct evc_dispatch dispatch;
	uint64_t value = bench->posted;

	EXPECT_OK(begin(bench, KEY_ONE, 1, &dispatch));
	write_payloads(&dispatch, value);
	EXPECT_EQUAL(evc_dispatch_commit(&dispatch), 1, "receivers");
	expect_next(bench, value);
	return NULL;
}

static void *post_one(void *context)
{
	struct bench *bench = context;

	return suite_post(&bench->receiver, EVC_LANE_QUEUE_NORMAL, bench->posted) == EVC_OK ? bench
											  : NULL;
}

/* Through a stream of another thread, so that the consumer looks for the ticket in all streams. */
static const char *post_elsewhere(struct bench *bench)
{
	pthread_t thread;
	void *done;

	EXPECT(pthread_create(&thread, NULL, post_one, bench) == 0, "no thread");
	pthread_join(thread, &done);
	EXPECT(done != NULL, "the post was refused");
	expect_next(bench, bench->posted);
	return NULL;
}

/* After `before` events, `events` are begun and abandoned, and whatever is left of the segment is used. */
static const char *taken_back_after(struct bench *bench, unsigned before, unsigned events)
{
	struct evc_dispatch dispatch;

	EXPECT_NONE(open_bench(bench));
	for (unsigned i = 0; i < before; i++)
		EXPECT_NONE(dispatch_one(bench));
	EXPECT_NONE(take_all(bench));
	EXPECT_OK(begin(bench, KEY_ONE, events, &dispatch));
	evc_dispatch_abandon(&dispatch);
	for (unsigned i = 0; i < 140; i++) {
		EXPECT_NONE(dispatch_one(bench));
		EXPECT_NONE(take_all(bench));
		if (i % 3 != before % 3)
			continue;
		/* Looks into this thread's stream, too, and past what has been read. */
		if (i < 10) {
			EXPECT_NONE(post_elsewhere(bench));
			EXPECT_NONE(take_all(bench));
		}
		/* Sends all chains of free slots home. */
		EXPECT_STATUS(evc_mailbox_wait(bench->receiver.mailbox, 0), EVC_TIMED_OUT);
	}
	return close_bench(bench);
}

static const char *taken_back(void)
{
	static const unsigned events[] = { 1, 2, 5, 6, 7, 61, 62, 63, 64 };
	static struct bench bench;

	/* Around the ends of the first segment (6 slots) and of the second (62). */
	for (unsigned before = 0; before < 70; before += before == 7 ? 59 : 1)
		for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++)
			EXPECT_NONE(taken_back_after(&bench, before, events[i]));
	return NULL;
}

struct open_dispatch {
	struct evc_dispatch dispatch;
	uint64_t value;
};

static const char *post_chain(struct bench *bench, uint64_t value, unsigned count)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;

	for (unsigned i = 0; i < count; i++) {
		struct evc_envelope *envelope;
		uint64_t text = value + i;

		EXPECT_OK(evc_envelope_create(bench->receiver.subscription, EVC_LANE_QUEUE_NORMAL,
					      8, 8, &envelope));
		memcpy(evc_envelope_payload(envelope), &text, sizeof(text));
		evc_chain_append(&chain, envelope);
		expect_next(bench, text);
	}
	EXPECT_OK(evc_mailbox_post(bench->receiver.mailbox, &chain));
	return NULL;
}

static const char *random_steps(struct bench *bench, uint64_t *state, unsigned steps)
{
	struct open_dispatch open[MOST_OPEN];
	unsigned open_count = 0;
	uint64_t value = 1000000;

	for (unsigned i = 0; i < steps; i++) {
		unsigned choice = (unsigned)(suite_random(state) % 64);
		uint32_t events = suite_random(state) % 2 ? 1 : 1 + suite_random(state) % 64;
		unsigned which = open_count > 0 ? (unsigned)(suite_random(state) % open_count) : 0;

		if (choice < 20 && open_count < MOST_OPEN) {
			struct open_dispatch *next = &open[open_count++];
			uint64_t key = suite_random(state) % 2 ? KEY_ONE : KEY_TWO;

			EXPECT_OK(begin(bench, key, events, &next->dispatch));
			next->value = value;
			write_payloads(&next->dispatch, value);
			value += 1000;
		} else if (choice < 44 && open_count > 0) {
			uint32_t payloads = open[which].dispatch.payloads;

			if (choice < 34) {
				(void)evc_dispatch_commit(&open[which].dispatch);
				for (uint32_t p = 0; p < payloads; p++)
					expect_next(bench, open[which].value + p);
			} else {
				evc_dispatch_abandon(&open[which].dispatch);
			}
			open[which] = open[--open_count];
		} else if (choice < 48) {
			EXPECT_NONE(post_chain(bench, value, 1 + events % 3));
			value += 1000;
		} else if (choice == 48) {
			EXPECT_NONE(post_elsewhere(bench));
		} else if (choice < 52) {
			(void)evc_mailbox_wait(bench->receiver.mailbox, 0);
		} else {
			uint64_t waiting = bench->posted - bench->taken;

			EXPECT_NONE(take(bench, waiting > 4000 || choice % 2
							? waiting
							: suite_random(state) % (waiting + 1)));
		}
	}
	while (open_count > 0)
		evc_dispatch_abandon(&open[--open_count].dispatch);
	return take_all(bench);
}

static const char *in_any_order(void)
{
	static struct bench bench;
	uint64_t seed = suite_seed();
	char text[256];

	for (unsigned i = 0; i < SUITE_SCALE(100u); i++) {
		uint64_t state = seed + i;
		const char *message;

		EXPECT_NONE(open_bench(&bench));
		message = random_steps(&bench, &state, 500);
		/* Copied, since suite_fail has one text for all. */
		if (message != NULL)
			snprintf(text, sizeof(text), "%s", message);
		EXPECT(message == NULL, "EVENTCORE_SEED=%llu: %s", (unsigned long long)(seed + i),
		       text);
		EXPECT_NONE(close_bench(&bench));
	}
	return NULL;
}

/* Leaves the pool `left` segments, and no memory for more. The others are returned, linked. */
static struct evc_envelope *take_segments(struct evc_pool *pool, unsigned left)
{
	struct evc_envelope *segments = NULL, *segment;

	suite_allocator_install(0, UINT64_MAX);
	while ((segment = evc_pool_take(pool)) != NULL) {
		evc_slot_set_next(segment, segments);
		segments = segment;
	}
	for (; left > 0 && segments != NULL; left--) {
		segment = segments;
		segments = evc_slot_next(segment);
		evc_pool_untake(pool, segment);
	}
	return segments;
}

static void give_segments(struct evc_envelope *segments)
{
	struct evc_envelope *next;

	suite_allocator_restore();
	for (; segments != NULL; segments = next) {
		next = evc_slot_next(segments);
		evc_pool_give(segments);
	}
}

/* Dispatches of 64 events need one segment or two of 62 slots: the last fails within its reservation. */
static const char *fill(struct bench *bench)
{
	struct evc_dispatch dispatch;

	for (;;) {
		uint64_t value = bench->posted;
		enum evc_status status = begin(bench, KEY_ONE, 64, &dispatch);

		if (status == EVC_OUT_OF_MEMORY)
			return NULL;
		EXPECT_OK(status);
		write_payloads(&dispatch, value);
		EXPECT_EQUAL(evc_dispatch_commit(&dispatch), 1, "receivers");
		for (unsigned i = 0; i < 64; i++)
			expect_next(bench, value + i);
	}
}

static const char *without_memory(struct bench *bench, unsigned left, unsigned more)
{
	struct evc_pool *pool = &evc_thread_record()->pools[EVC_CLASS_SEGMENT];
	struct evc_envelope *segments = take_segments(pool, left);
	const char *message = fill(bench);
	unsigned posted = 0;

	/* What is left of the last segment is of use, and what was posted is not touched. */
	for (; message == NULL && posted < more; posted++) {
		struct evc_dispatch dispatch;

		if (begin(bench, KEY_ONE, 1, &dispatch) != EVC_OK)
			break;
		write_payloads(&dispatch, bench->posted);
		(void)evc_dispatch_commit(&dispatch);
		expect_next(bench, bench->posted);
	}
	give_segments(segments);
	EXPECT_NONE(message);
	EXPECT_NONE(take_all(bench));
	EXPECT_NONE(post_elsewhere(bench));
	EXPECT_NONE(take_all(bench));
	EXPECT_STATUS(evc_mailbox_wait(bench->receiver.mailbox, 0), EVC_TIMED_OUT);
	EXPECT_NONE(dispatch_one(bench));
	return take_all(bench);
}

static const char *out_of_memory(void)
{
	static struct bench bench;

	EXPECT_NONE(open_bench(&bench));
	EXPECT_NONE(dispatch_one(&bench));
	for (unsigned left = 0; left < 5; left++)
		for (unsigned more = 0; more < 70; more += more < 8 || more > 58 ? 1 : 25)
			EXPECT_NONE(without_memory(&bench, left, more));
	return close_bench(&bench);
}

/* This thread's first post to a mailbox, with one allocation after the other failing. */
static const char *first_post(void)
{
	enum evc_status status = EVC_OUT_OF_MEMORY;
	unsigned failures = 0;

	for (uint64_t fail_at = 0; status == EVC_OUT_OF_MEMORY && fail_at < 10; fail_at++) {
		struct suite_receiver receiver;
		struct evc_chain chain = EVC_CHAIN_EMPTY;
		struct evc_envelope *envelope;

		EXPECT_NONE(suite_receiver_open(&receiver, NULL));
		EXPECT_OK(evc_envelope_create(receiver.subscription, EVC_LANE_QUEUE_LOW, 8, 8,
					      &envelope));
		evc_chain_append(&chain, envelope);
		suite_allocator_install(fail_at, UINT64_MAX);
		status = evc_mailbox_post(receiver.mailbox, &chain);
		suite_allocator_restore();
		if (status == EVC_OUT_OF_MEMORY) {
			failures++;
			/* The chain is the caller's still. */
			EXPECT_OK(evc_mailbox_post(receiver.mailbox, &chain));
		}
		evc_mailbox_release(receiver.mailbox);
		EXPECT_EQUAL(atomic_load(&receiver.drops), 1, "calls of drop");
	}
	EXPECT_OK(status);
	EXPECT(failures > 0, "nothing was allocated");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 a reservation that is taken back leaves the stream whole, wherever it ends", taken_back },
	{ "D2 D4 dispatches are open at once, and end in any order", in_any_order },
	{ "D12 memory that runs out within a reservation takes nothing along", out_of_memory },
	{ "D12 a first post without memory leaves the chain to its caller", first_post },
};
SUITE_GROUP(suite_streams, tests);
#endif
