/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "bench.h"

#include "memory/subscription.h"

#include <string.h>

const char *bench_open(struct bench *bench)
{
	struct evc_subscription *second;
	struct evc_subscription_options options = { .size = sizeof(options), .context = &bench->receiver };

	bench->posted = bench->taken = 0;
	EXPECT_NONE(suite_receiver_open(&bench->receiver, NULL));
	options.deliver = bench->receiver.subscription->deliver;
	EXPECT_OK(evc_mailbox_add_subscription(bench->receiver.mailbox, &options, &second));
	EXPECT_OK(evc_router_create(&bench->router));
	EXPECT_OK(evc_router_subscribe(bench->router, BENCH_ONE, bench->receiver.subscription, 0, false));
	EXPECT_OK(evc_router_subscribe(bench->router, BENCH_TWO, bench->receiver.subscription, 0, false));
	EXPECT_OK(evc_router_subscribe(bench->router, BENCH_TWO, second, 0, false));
	return NULL;
}

const char *bench_close(struct bench *bench)
{
	evc_router_destroy(bench->router);
	evc_mailbox_release(bench->receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	EXPECT_EQUAL(atomic_load(&bench->receiver.finalized), 1, "calls of finalize");
	return NULL;
}

void bench_expect_next(struct bench *bench, uint64_t value)
{
	bench->expected[bench->posted++ % 16384] = value;
}

/* Everything that was posted and not taken is waiting. Checked before each take. */
static const char *expect_depth(struct bench *bench)
{
	uint64_t depths[EVC_LANE_COUNT], sum = 0;

	evc_mailbox_depths(bench->receiver.mailbox, depths);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		sum += depths[lane];
	EXPECT_EQUAL(sum, bench->posted - bench->taken, "envelopes that can be found");
	return NULL;
}

const char *bench_take(struct bench *bench, uint64_t count)
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

const char *bench_take_all(struct bench *bench)
{
	uint64_t value;
	unsigned lane;

	EXPECT_NONE(bench_take(bench, bench->posted - bench->taken));
	EXPECT_STATUS(suite_take(&bench->receiver, &lane, &value), EVC_EMPTY);
	return NULL;
}

void bench_write(struct evc_dispatch *dispatch, uint64_t value)
{
	struct evc_envelope *envelope = dispatch->first;

	for (uint32_t i = 0; i < dispatch->payloads; i++) {
		uint64_t text = value + i;

		memcpy(evc_envelope_payload(envelope), &text, sizeof(text));
		envelope = evc_dispatch_next(envelope);
	}
}

enum evc_status bench_begin(struct bench *bench, uint64_t key, uint32_t events,
			    struct evc_dispatch *out)
{
	return evc_dispatch_begin(bench->router, key, EVC_LANE_QUEUE_NORMAL, 8, 8, events, out);
}

const char *bench_dispatch_one(struct bench *bench)
{
	struct evc_dispatch dispatch;
	uint64_t value = bench->posted;

	EXPECT_OK(bench_begin(bench, BENCH_ONE, 1, &dispatch));
	bench_write(&dispatch, value);
	EXPECT_EQUAL(evc_dispatch_commit(&dispatch), 1, "receivers");
	bench_expect_next(bench, value);
	return NULL;
}

static void *post_one(void *context)
{
	struct bench *bench = context;

	return suite_post(&bench->receiver, EVC_LANE_QUEUE_NORMAL, bench->posted) == EVC_OK ? bench
											  : NULL;
}

const char *bench_post_elsewhere(struct bench *bench)
{
	pthread_t thread;
	void *done;

	EXPECT(pthread_create(&thread, NULL, post_one, bench) == 0, "no thread");
	pthread_join(thread, &done);
	EXPECT(done != NULL, "the post was refused");
	bench_expect_next(bench, bench->posted);
	return NULL;
}

#endif
