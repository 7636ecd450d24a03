/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Streams whose memory runs out: within a reservation, and at a first post.
 */
#ifdef EVC_URCU
#include "bench.h"
#include "memory/thread_record.h"

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
		enum evc_status status = bench_begin(bench, BENCH_ONE, 64, &dispatch);

		if (status == EVC_OUT_OF_MEMORY)
			return NULL;
		EXPECT_OK(status);
		bench_write(&dispatch, value);
		EXPECT_EQUAL(evc_dispatch_commit(&dispatch), 1, "receivers");
		for (unsigned i = 0; i < 64; i++)
			bench_expect_next(bench, value + i);
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

		if (bench_begin(bench, BENCH_ONE, 1, &dispatch) != EVC_OK)
			break;
		bench_write(&dispatch, bench->posted);
		(void)evc_dispatch_commit(&dispatch);
		bench_expect_next(bench, bench->posted);
	}
	give_segments(segments);
	EXPECT_NONE(message);
	EXPECT_NONE(bench_take_all(bench));
	EXPECT_NONE(bench_post_elsewhere(bench));
	EXPECT_NONE(bench_take_all(bench));
	EXPECT_STATUS(evc_mailbox_wait(bench->receiver.mailbox, 0), EVC_TIMED_OUT);
	EXPECT_NONE(bench_dispatch_one(bench));
	return bench_take_all(bench);
}

static const char *out_of_memory(void)
{
	static struct bench bench;

	EXPECT_NONE(bench_open(&bench));
	EXPECT_NONE(bench_dispatch_one(&bench));
	for (unsigned left = 0; left < 5; left++)
		for (unsigned more = 0; more < 70; more += more < 8 || more > 58 ? 1 : 25)
			EXPECT_NONE(without_memory(&bench, left, more));
	return bench_close(&bench);
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
	{ "D12 memory that runs out within a reservation takes nothing along", out_of_memory },
	{ "D12 a first post without memory leaves the chain to its caller", first_post },
};
SUITE_GROUP(suite_streams_memory, tests);
#endif
