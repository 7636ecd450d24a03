/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A complete life of the core, repeated with one allocation after the other failing. Each failure is reported
 * as a status, the same call succeeds when it is repeated, nothing accepted is lost, and everything is freed.
 *
 * Each life must begin equally cold, or it would skip allocations that an earlier one has made. The records
 * of threads that have ended, with their warm slab pools, are therefore kept busy by waiting threads.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include "memory/thread_record.h"

#include <stdlib.h>
#include <string.h>

#define MOST_LIVES 200u
#define MOST_PARKED 600u
#define FOR_EVER UINT64_MAX

static struct parked {
	pthread_t thread;
	struct suite_gate attached;
	bool has_record;
} parked[MOST_PARKED];
static unsigned parked_count;
static struct suite_gate parked_may_go;

static void *stand_still(void *context)
{
	struct parked *self = context;

	self->has_record = evc_thread_record() != NULL;
	suite_gate_open(&self->attached);
	if (self->has_record)
		(void)suite_gate_pass(&parked_may_go);
	return NULL;
}

/* Keeps all records busy that no thread has. New ones cannot be made meanwhile. */
static const char *park_all(void)
{
	static const struct suite_gate shut = SUITE_GATE;
	bool had_one = true;

	suite_allocator_install(0, FOR_EVER);
	while (had_one) {
		struct parked *next = &parked[parked_count];

		EXPECT(parked_count < MOST_PARKED, "more than %u records", MOST_PARKED);
		next->attached = shut;
		EXPECT(pthread_create(&next->thread, NULL, stand_still, next) == 0, "no thread");
		EXPECT(suite_gate_pass(&next->attached), "the thread got stuck");
		had_one = next->has_record;
		if (had_one)
			parked_count++;
		else
			pthread_join(next->thread, NULL);
	}
	suite_allocator_restore();
	return NULL;
}

static void let_go(void)
{
	suite_gate_open(&parked_may_go);
	while (parked_count > 0)
		pthread_join(parked[--parked_count].thread, NULL);
}

struct life {
	/* How often a call may fail before it must succeed. */
	unsigned patience;
	unsigned failures;
	_Atomic uint64_t delivered;
	_Atomic uint64_t bytes;
	_Atomic uint64_t finalized;
	const char *message;
};

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct life *life = context;

	(void)envelope, (void)owned;
	/* Every payload begins with its size. */
	atomic_fetch_add(&life->bytes, *(uint32_t *)payload);
	atomic_fetch_add_explicit(&life->delivered, 1, memory_order_release);
	return false;
}

static void finalize(void *context)
{
	atomic_fetch_add(&((struct life *)context)->finalized, 1);
}

/* Repeats the call as often as it runs out of memory; any other failure is an error. */
#define TRY(call)                                                                                  \
	do {                                                                                       \
		enum evc_status status_;                                                           \
		while ((status_ = (call)) == EVC_OUT_OF_MEMORY && life->failures < life->patience) \
			life->failures++;                                                          \
		EXPECT(status_ == EVC_OK, "%s: found \"%s\"", #call, evc_status_text(status_));    \
	} while (0)

#define BATCH 10u
#define BATCHED_SIZE 24u

/*
 * `*together` tells whether the events travelled in one batch, in a box of a size that nothing else here has.
 * Without memory for that box they travel separately: a failed allocation without a status.
 */
static enum evc_status dispatch_batch(struct life *life, struct evc_router *router, uint64_t key,
				      bool *together)
{
	const uint64_t failed = suite_allocator_read().failed;
	const uint32_t size = BATCHED_SIZE;
	struct evc_dispatch dispatch;
	struct evc_envelope *envelope;
	enum evc_status status = evc_dispatch_begin_batch(router, key, EVC_LANE_QUEUE_HIGH, BATCHED_SIZE,
							  8, BATCH, &dispatch);

	life->failures += (unsigned)(suite_allocator_read().failed - failed) -
			  (status == EVC_OUT_OF_MEMORY ? 1 : 0);
	if (status != EVC_OK)
		return status;
	*together = dispatch.array != NULL;
	envelope = dispatch.first;
	for (unsigned i = 0; i < BATCH; i++) {
		if (*together) {
			memcpy((char *)dispatch.array + i * BATCHED_SIZE, &size, sizeof(size));
			continue;
		}
		memcpy(evc_envelope_payload(envelope), &size, sizeof(size));
		envelope = evc_dispatch_next(envelope);
	}
	return evc_dispatch_commit(&dispatch) == BATCH ? EVC_OK : EVC_CLOSED;
}

static const char *live(struct life *life)
{
	static const size_t sizes[] = { 8, 100, 1000, 5000, 70000 };
	struct evc_subscription_options options = {
		.size = sizeof(options), .context = life, .deliver = deliver, .finalize = finalize,
	};
	struct evc_mailbox_options posix = { .size = sizeof(posix), .parker = evc_parker_posix() };
	struct evc_mailbox_options batching = { .size = sizeof(batching), .batches = true };
	static _Alignas(8) unsigned char payload[70000];
	struct evc_subscription *a, *b;
	struct evc_mailbox *mailbox, *second;
	struct evc_router *router;
	struct evc_thread *thread;
	uint32_t receivers;
	uint64_t bytes = 2 * BATCH * BATCHED_SIZE;
	bool together;

	TRY(evc_router_create(&router));
	TRY(evc_mailbox_create(&batching, &mailbox));
	TRY(evc_mailbox_create(&posix, &second));
	TRY(evc_mailbox_add_subscription(mailbox, &options, &a));
	TRY(evc_mailbox_add_subscription(second, &options, &b));
	TRY(evc_thread_start(NULL, mailbox, &thread));
	TRY(evc_dispatch_bytes(router, 1, EVC_LANE_STACK_LOW, payload, 8, 4, &receivers));
	EXPECT_EQUAL(receivers, 0, "receivers of an event that nobody listens to");
	TRY(evc_router_subscribe(router, 1, a, 0, false));
	TRY(evc_router_subscribe(router, 1, b, 0, true));
	/* More keys than the first table holds. */
	for (uint64_t key = 2; key < 12; key++)
		TRY(evc_router_subscribe(router, key, a, 0, false));
	/* The first dispatch finds the route, and takes the general path. */
	TRY(dispatch_batch(life, router, 2, &together));
	TRY(dispatch_batch(life, router, 2, &together));
	EXPECT(together || life->failures > 0, "the second batch did not go side by side");
	for (unsigned i = 0; i < 5; i++) {
		uint32_t size = (uint32_t)sizes[i];

		memcpy(payload, &size, sizeof(size));
		TRY(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_LOW, payload, size, 4, &receivers));
		EXPECT_EQUAL(receivers, 2, "receivers");
		bytes += 2 * size;
	}
	TRY(evc_router_unsubscribe(router, 1, b));
	TRY(evc_router_unsubscribe(router, 1, a));
	evc_mailbox_close_when_empty(second);
	EXPECT_STATUS(evc_mailbox_run(second), EVC_CLOSED);
	evc_mailbox_close_when_empty(mailbox);
	EXPECT_OK(evc_thread_join(thread));
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
	evc_mailbox_release(second);
	EXPECT_EQUAL(life->delivered, 10 + 2 * BATCH, "events delivered");
	EXPECT_EQUAL(life->bytes, bytes, "bytes delivered");
	return NULL;
}

static void *live_on_thread(void *context)
{
	struct life *life = context;

	life->message = live(life);
	if (life->message != NULL)
		life->message = strdup(life->message);
	return NULL;
}

/* One life with failures from `fail_at` on; `*over` if it made fewer allocations. */
static const char *live_once(uint64_t fail_at, uint64_t fail_count, bool *over)
{
	struct life life = { .patience = (unsigned)fail_count };
	struct suite_allocations counts;
	pthread_t thread;

	EXPECT_NONE(park_all());
	suite_allocator_install(fail_at, fail_count);
	EXPECT(pthread_create(&thread, NULL, live_on_thread, &life) == 0, "no thread");
	pthread_join(thread, NULL);
	EXPECT(life.message == NULL, "allocation %llu failing, %llu times: %.200s",
	       (unsigned long long)fail_at, (unsigned long long)fail_count, life.message);
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	/* Twice: a mailbox that ended in a callback has retired segments. */
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	counts = suite_allocator_read();
	EXPECT_EQUAL(life.failures, counts.failed, "statuses, beside failed allocations");
	EXPECT_EQUAL(counts.live, 0, "blocks that were not freed");
	EXPECT_EQUAL(life.finalized, 2, "calls of finalize");
	*over = counts.failed == 0;
	return NULL;
}

static const char *each_site(uint64_t fail_count)
{
	static const struct suite_gate shut = SUITE_GATE;
	const char *message = NULL;
	uint64_t fail_at = 0;
	bool over = false;

	parked_may_go = shut;
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	for (; message == NULL && !over && fail_at < MOST_LIVES; fail_at++)
		message = live_once(fail_at, fail_count, &over);
	suite_allocator_restore();
	let_go();
	EXPECT_NONE(message);
	EXPECT(over, "still failing after %u lives", MOST_LIVES);
	/*
	 * Two of the router, three of the mailboxes, and so on: a minimum, so that the test cannot pass
	 * without testing anything.
	 */
	EXPECT(fail_at > 30, "only %llu sites were reached", (unsigned long long)fail_at);
	return NULL;
}

static const char *once(void)
{
	return each_site(1);
}

static const char *three_times(void)
{
	return each_site(3);
}

static const struct evc_suite_test tests[] = {
	{ "D12 every allocation may fail once: a status, and nothing is lost", once },
	{ "D12 every allocation may fail three times in a row", three_times },
};
SUITE_GROUP(suite_allocation_failure, tests);
#endif
