/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Posts that race the end of a mailbox: everything accepted is either handled or dropped, and never both.
 *
 *     producers            consumer thread       main
 *     post until CLOSED    deliver               wait for some accepted
 *                                                close, or close_when_empty
 *     count accepted       end                   join all; accepted == taken + dropped
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#define PRODUCERS 3u
#define ROUNDS SUITE_SCALE(200u)

struct producer {
	struct suite_receiver *receiver;
	_Atomic uint64_t accepted;
	enum evc_status status;
};

static void *post_until_closed(void *context)
{
	struct producer *producer = context;

	for (uint64_t i = 0; producer->status == EVC_OK; i++) {
		producer->status = suite_post(producer->receiver, i % EVC_LANE_COUNT, i);
		if (producer->status == EVC_OK)
			atomic_fetch_add_explicit(&producer->accepted, 1, memory_order_release);
	}
	return NULL;
}

/* The round number varies the moment of the close during the producers' run. */
static const char *round_of(unsigned round, bool drain, bool consumed)
{
	struct suite_receiver receiver;
	struct producer producers[PRODUCERS];
	struct evc_mailbox_statistics statistics;
	struct evc_thread *consumer = NULL;
	pthread_t threads[PRODUCERS];
	uint64_t accepted = 0;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	if (consumed)
		EXPECT_OK(evc_thread_start(NULL, receiver.mailbox, &consumer));
	for (unsigned i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){ &receiver, 0, EVC_OK };
		pthread_create(&threads[i], NULL, post_until_closed, &producers[i]);
	}
	EXPECT(suite_await(&producers[round % PRODUCERS].accepted, round % 40), "nobody posts");
	if (drain)
		evc_mailbox_close_when_empty(receiver.mailbox);
	else
		evc_mailbox_close(receiver.mailbox);
	/* In every other round the consumer ends first, so that late posts find it gone. */
	if (consumed && round % 2)
		EXPECT_OK(evc_thread_join(consumer));
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQUAL(producers[i].status, EVC_CLOSED, "what ended the producer");
		accepted += producers[i].accepted;
	}
	if (consumed && round % 2 == 0)
		EXPECT_OK(evc_thread_join(consumer));
	evc_mailbox_read_statistics(receiver.mailbox, &statistics);
	if (consumed)
		EXPECT_EQUAL(statistics.taken + statistics.dropped, accepted,
			     "taken and dropped, beside accepted");
	evc_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.delivered + receiver.drops, accepted,
		     "delivered and calls of drop, beside accepted");
	if (consumed)
		EXPECT_EQUAL(receiver.drops, statistics.dropped, "calls of drop, beside dropped");
	return NULL;
}

static const char *rounds(bool drain, bool consumed)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		EXPECT_NONE(round_of(round, drain, consumed));
	return NULL;
}

static const char *close_it(void)
{
	return rounds(false, true);
}

static const char *drain_it(void)
{
	return rounds(true, true);
}

static const char *nobody(void)
{
	return rounds(false, false);
}

static const struct evc_suite_test tests[] = {
	{ "D4 D10 posts that race close are taken or dropped, once", close_it },
	{ "D4 D10 posts that race close_when_empty are taken or dropped, once", drain_it },
	{ "D4 D10 posts that race close without a consumer are dropped by the release", nobody },
};
SUITE_GROUP(suite_close_race, tests);
#endif
