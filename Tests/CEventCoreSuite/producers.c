/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Many producers, one consuming thread: each producer's own order within a queue lane (D2), and each
 * event exactly once (D4). n = 4 producers: the counts are 3, 4, 5 and 12.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <string.h>

#define MOST_PRODUCERS 12u
#define EACH SUITE_SCALE(30000u)

struct producer {
	struct suite_receiver *receiver;
	uint64_t number;
	uint64_t seed;
	enum evc_status status;
};

/* Used by the consumer alone, until it is joined. */
static struct {
	uint32_t last[MOST_PRODUCERS][EVC_LANE_COUNT];
	uint8_t seen[MOST_PRODUCERS][30000];
	uint64_t out_of_order;
	uint64_t twice;
} heard;

static bool hear(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct suite_receiver *receiver = context;
	unsigned lane = evc_envelope_lane(envelope);
	uint32_t producer, number;
	uint64_t value;

	(void)owned;
	memcpy(&value, payload, sizeof(value));
	producer = (uint32_t)(value >> 32);
	number = (uint32_t)value;
	if (heard.seen[producer][number]++ != 0)
		heard.twice++;
	/* Numbers begin at 0, `last` at 0 for "none": one more than the number is kept. */
	if (lane >= EVC_LANE_FIRST_QUEUE && heard.last[producer][lane] > number)
		heard.out_of_order++;
	heard.last[producer][lane] = number + 1;
	atomic_fetch_add_explicit(&receiver->delivered, 1, memory_order_release);
	return true;
}

static void *produce(void *context)
{
	struct producer *producer = context;
	uint64_t state = producer->seed;

	for (uint64_t i = 0; i < EACH && producer->status == EVC_OK; i++) {
		uint64_t random = suite_random(&state);
		/* Runs of one lane alternate with random lanes, so that the consumer changes modes. */
		unsigned lane = i / 500 % 2 ? EVC_LANE_QUEUE_NORMAL : random % EVC_LANE_COUNT;

		producer->status =
			suite_post(producer->receiver, lane, producer->number << 32 | i);
	}
	return NULL;
}

static const char *with(unsigned count, enum evc_wait_strategy strategy, uint64_t seed)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .strategy = strategy, .spin_ns = 20000 };
	struct producer producers[MOST_PRODUCERS];
	struct evc_mailbox_statistics statistics;
	pthread_t threads[MOST_PRODUCERS];
	struct suite_receiver receiver;
	struct evc_thread *consumer;

	memset(&heard, 0, sizeof(heard));
	EXPECT_NONE(suite_receiver_open(&receiver, &options));
	EXPECT_NONE(suite_receiver_add(&receiver, hear, &receiver, &receiver.subscription));
	EXPECT_OK(evc_thread_start(NULL, receiver.mailbox, &consumer));
	for (unsigned i = 0; i < count; i++) {
		producers[i] = (struct producer){ &receiver, i, suite_random(&seed), EVC_OK };
		pthread_create(&threads[i], NULL, produce, &producers[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_OK(producers[i].status);
	}
	EXPECT(suite_await(&receiver.delivered, (uint64_t)count * EACH), "only %llu of %llu came",
	       (unsigned long long)receiver.delivered, (unsigned long long)count * EACH);
	evc_thread_cancel(consumer);
	EXPECT_OK(evc_thread_join(consumer));
	evc_mailbox_read_statistics(receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, (uint64_t)count * EACH, "envelopes taken");
	EXPECT_EQUAL(heard.twice, 0, "events that came twice");
	EXPECT_EQUAL(heard.out_of_order, 0, "events before an older one of their producer and lane");
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const char *strategies(unsigned count)
{
	uint64_t seed = suite_seed();
	const char *message = with(count, EVC_WAIT_PARK, seed);

	if (message == NULL)
		message = with(count, EVC_WAIT_SPIN_THEN_PARK, seed);
	if (message == NULL)
		message = with(count, EVC_WAIT_YIELD, seed);
	if (message != NULL) {
		char copy[256];

		strncpy(copy, message, sizeof(copy) - 1);
		copy[sizeof(copy) - 1] = '\0';
		return suite_fail("%u producers, seed %llu: %s", count, (unsigned long long)seed,
				  copy);
	}
	return NULL;
}

static const char *three(void)
{
	return strategies(3);
}

static const char *four(void)
{
	return strategies(4);
}

static const char *five(void)
{
	return strategies(5);
}

static const char *twelve(void)
{
	return strategies(12);
}

static const struct evc_suite_test tests[] = {
	{ "D2 D4 three producers keep their order, each event comes once", three },
	{ "D2 D4 four producers keep their order, each event comes once", four },
	{ "D2 D4 five producers keep their order, each event comes once", five },
	{ "D2 D4 twelve producers keep their order, each event comes once", twelve },
};
SUITE_GROUP(suite_producers, tests);
#endif
