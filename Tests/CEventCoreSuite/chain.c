/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <string.h>

static const char *make_chain(struct suite_receiver *receiver, const unsigned *lanes, unsigned count,
			      uint64_t from, struct evc_chain *chain)
{
	*chain = (struct evc_chain)EVC_CHAIN_EMPTY;
	for (unsigned i = 0; i < count; i++)
		EXPECT_OK(suite_append(chain, receiver->subscription, lanes[i], from + i));
	return NULL;
}

static const char *expect_next(struct suite_receiver *receiver, uint64_t expected)
{
	unsigned lane;
	uint64_t value;

	EXPECT_OK(suite_take(receiver, &lane, &value));
	EXPECT_EQUAL(value, expected, "the next envelope");
	return NULL;
}

static const char *keeps_order(void)
{
	static const unsigned lanes[] = { 7, 7, 2, 2, 9, 7 };
	struct suite_receiver receiver;
	struct evc_chain chain;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_NONE(make_chain(&receiver, lanes, 6, 10, &chain));
	EXPECT_EQUAL(chain.count, 6, "envelopes in the chain");
	EXPECT_EQUAL(chain.lanes, 1u << 7 | 1u << 2 | 1u << 9, "lanes in the chain");
	EXPECT_OK(suite_post(&receiver, 7, 1));
	EXPECT_OK(evc_mailbox_post(receiver.mailbox, &chain));
	EXPECT_OK(suite_post(&receiver, 7, 2));
	/* The stack's newest first, then lane 7 in order, with the chain contiguous. */
	EXPECT_NONE(expect_next(&receiver, 13));
	EXPECT_NONE(expect_next(&receiver, 12));
	EXPECT_NONE(expect_next(&receiver, 1));
	EXPECT_NONE(expect_next(&receiver, 10));
	EXPECT_NONE(expect_next(&receiver, 11));
	EXPECT_NONE(expect_next(&receiver, 15));
	EXPECT_NONE(expect_next(&receiver, 2));
	EXPECT_NONE(expect_next(&receiver, 14));
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

/* The urgent event is not the last of the chain: the alarm must regard all of the chain's lanes. */
static const char *raises_the_alarm(void)
{
	static const unsigned lanes[] = { 3, 7, 8 };
	struct suite_receiver receiver;
	struct evc_chain chain;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_NONE(suite_prime(&receiver));
	EXPECT_OK(suite_post(&receiver, 7, 1));
	EXPECT_OK(suite_post(&receiver, 7, 2));
	EXPECT_NONE(expect_next(&receiver, 1));
	EXPECT_NONE(make_chain(&receiver, lanes, 3, 10, &chain));
	EXPECT_OK(evc_mailbox_post(receiver.mailbox, &chain));
	EXPECT_NONE(expect_next(&receiver, 10));
	EXPECT_NONE(expect_next(&receiver, 2));
	EXPECT_NONE(expect_next(&receiver, 11));
	EXPECT_NONE(expect_next(&receiver, 12));
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

#define PER_PRODUCER SUITE_SCALE(30000u)
#define PIECE 3u

static void *post_pieces(void *context)
{
	static const unsigned lanes[PIECE] = { 7, 7, 7 };
	static _Atomic uint64_t producer;
	uint64_t from = (atomic_fetch_add(&producer, 1) + 1) << 32;

	for (unsigned i = 0; i < PER_PRODUCER; i += PIECE) {
		struct evc_chain chain;

		if (make_chain(context, lanes, PIECE, from + i, &chain) != NULL ||
		    evc_mailbox_post(((struct suite_receiver *)context)->mailbox, &chain) != EVC_OK)
			return context;
	}
	return NULL;
}

static const char *stays_in_one_piece(void)
{
	struct suite_receiver receiver;
	uint64_t value, last = 0, start = evc_clock_now();
	pthread_t producers[3];
	void *failed;
	unsigned lane;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	for (unsigned i = 0; i < 3; i++)
		pthread_create(&producers[i], NULL, post_pieces, &receiver);
	for (unsigned taken = 0; taken < 3 * (PER_PRODUCER / PIECE * PIECE);) {
		EXPECT(evc_clock_now() - start < SUITE_LIMIT_NS, "only %u came", taken);
		if (suite_take(&receiver, &lane, &value) != EVC_OK)
			continue;
		EXPECT(taken % PIECE == 0 ? (uint32_t)value % PIECE == 0 : value == last + 1,
		       "expected %llx to follow %llx in its chain", (unsigned long long)value,
		       (unsigned long long)last);
		last = value;
		taken++;
	}
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(producers[i], &failed);
		EXPECT(failed == NULL, "a post failed");
	}
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D2 D3 a chain is posted in its order, in one piece", keeps_order },
	{ "D1 an urgent envelope inside a chain overtakes at the very next take", raises_the_alarm },
	{ "D2 chains of several producers stay in one piece", stays_in_one_piece },
};
SUITE_GROUP(suite_chain, tests);
#endif
