/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/mailbox_private.h"
#include "suite.h"

static const char *expect_end(struct suite_receiver *receiver, uint64_t taken, uint64_t dropped)
{
	struct evc_mailbox_statistics statistics;

	evc_mailbox_read_statistics(receiver->mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, taken, "envelopes taken");
	EXPECT_EQUAL(statistics.dropped, dropped, "envelopes dropped");
	EXPECT_EQUAL(atomic_load(&receiver->drops), dropped, "calls of drop");
	return NULL;
}

/* `taken` of 200 are taken before the close, so that the others are at every possible place. */
static const char *close_after(unsigned taken, bool relying)
{
	struct suite_receiver receiver;
	uint64_t value, primed = relying ? 40 : 0;
	unsigned lane;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	if (relying)
		EXPECT_NONE(suite_prime(&receiver));
	for (unsigned i = 0; i < 100; i++)
		EXPECT_OK(suite_post(&receiver, relying ? 7 : i % 10, i));
	for (unsigned i = 0; i < taken; i++)
		EXPECT_OK(suite_take(&receiver, &lane, &value));
	for (unsigned i = 0; i < 100; i++)
		EXPECT_OK(suite_post(&receiver, relying ? 7 : i % 10, i));
	evc_mailbox_close(receiver.mailbox);
	EXPECT_STATUS(suite_post(&receiver, 7, 0), EVC_CLOSED);
	EXPECT_STATUS(suite_take(&receiver, &lane, &value), EVC_CLOSED);
	EXPECT_STATUS(suite_take(&receiver, &lane, &value), EVC_CLOSED);
	EXPECT_NONE(expect_end(&receiver, primed + taken, 200 - taken));
	evc_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(atomic_load(&receiver.drops), 200 - taken, "calls of drop after the release");
	EXPECT_EQUAL(atomic_load(&receiver.finalized), 1, "calls of finalize");
	return NULL;
}

static const char *drops(void)
{
	static const unsigned taken[] = { 0, 1, 31, 32, 33, 99, 100 };

	for (unsigned i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		EXPECT_NONE(close_after(taken[i], false));
		EXPECT_NONE(close_after(taken[i], true));
	}
	return NULL;
}

static const char *drains(void)
{
	for (unsigned relying = 0; relying < 2; relying++) {
		struct suite_receiver receiver;
		uint64_t value;
		unsigned lane;

		EXPECT_NONE(suite_receiver_open(&receiver, NULL));
		if (relying)
			EXPECT_NONE(suite_prime(&receiver));
		for (unsigned i = 0; i < 100; i++)
			EXPECT_OK(suite_post(&receiver, 7, i));
		EXPECT_OK(suite_take(&receiver, &lane, &value));
		evc_mailbox_close_when_empty(receiver.mailbox);
		EXPECT_STATUS(suite_post(&receiver, 0, 0), EVC_CLOSED);
		for (unsigned i = 1; i < 100; i++) {
			EXPECT_OK(suite_take(&receiver, &lane, &value));
			EXPECT_EQUAL(value, i, "the next envelope");
		}
		EXPECT_STATUS(suite_take(&receiver, &lane, &value), EVC_CLOSED);
		EXPECT_NONE(expect_end(&receiver, relying * 40 + 100, 0));
		evc_mailbox_release(receiver.mailbox);
	}
	return NULL;
}

static const char *cut_short(void)
{
	struct suite_receiver receiver;
	uint64_t value;
	unsigned lane;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	for (unsigned i = 0; i < 50; i++)
		EXPECT_OK(suite_post(&receiver, 5, i));
	evc_mailbox_close_when_empty(receiver.mailbox);
	for (unsigned i = 0; i < 20; i++)
		EXPECT_OK(suite_take(&receiver, &lane, &value));
	evc_mailbox_close(receiver.mailbox);
	EXPECT_STATUS(suite_take(&receiver, &lane, &value), EVC_CLOSED);
	EXPECT_NONE(expect_end(&receiver, 20, 30));
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const char *without_consumer(void)
{
	struct suite_receiver receiver;

	for (unsigned closed = 0; closed < 2; closed++) {
		EXPECT_NONE(suite_receiver_open(&receiver, NULL));
		for (unsigned i = 0; i < 70; i++)
			EXPECT_OK(suite_post(&receiver, i % 10, i));
		if (closed)
			evc_mailbox_close(receiver.mailbox);
		EXPECT_EQUAL(atomic_load(&receiver.drops), 0, "calls of drop before the release");
		evc_mailbox_release(receiver.mailbox);
		EXPECT_EQUAL(atomic_load(&receiver.drops), 70, "calls of drop");
		EXPECT_EQUAL(atomic_load(&receiver.finalized), 1, "calls of finalize");
	}
	return NULL;
}

/*
 * A producer that was held up between its look at CLOSED and its push, until the consumer had ended. The
 * steps of evc_mailbox_post are taken by hand, since no thread can be stopped there. The consumer's cache of
 * slots is not touched: its thread may be flushing it.
 */
static const char *after_the_end(void)
{
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		struct suite_receiver receiver;
		struct evc_envelope *envelope;
		unsigned taken_from;
		uint64_t value;

		EXPECT_NONE(suite_receiver_open(&receiver, NULL));
		EXPECT_OK(suite_post(&receiver, lane, 1));
		EXPECT_OK(suite_take(&receiver, &taken_from, &value));
		EXPECT_OK(evc_envelope_create(receiver.subscription, (enum evc_lane)lane, 8, 8,
					      &envelope));
		evc_mailbox_close(receiver.mailbox);
		EXPECT_STATUS(suite_take(&receiver, &taken_from, &value), EVC_CLOSED);
		evc_mailbox_push(receiver.mailbox, lane, envelope, envelope, 1);
		EXPECT_NONE(expect_end(&receiver, 1, 1));
		for (unsigned i = 0; i < EVC_RETURN_WAYS; i++)
			EXPECT(receiver.mailbox->by_hand->ways[i].given == 0,
			       "the consumer's cache was written to after the consumer's end");
		evc_mailbox_release(receiver.mailbox);
		EXPECT_EQUAL(atomic_load(&receiver.drops), 1, "calls of drop after the release");
	}
	return NULL;
}

/* Either close must wake a sleeping consumer at once; otherwise the join would hang. */
static const char *wakes_the_idle(void)
{
	for (unsigned i = 0; i < SUITE_SCALE(500u); i++) {
		struct suite_receiver receiver;
		struct evc_thread *thread;

		EXPECT_NONE(suite_receiver_open(&receiver, NULL));
		EXPECT_OK(evc_thread_start(NULL, receiver.mailbox, &thread));
		if (i % 2)
			evc_thread_cancel(thread);
		else
			evc_mailbox_close_when_empty(receiver.mailbox);
		EXPECT_OK(evc_thread_join(thread));
		evc_mailbox_release(receiver.mailbox);
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D10 close drops what waits, wherever it is, and counts it", drops },
	{ "D10 close_when_empty has everything handled first", drains },
	{ "D10 close cuts close_when_empty short", cut_short },
	{ "D10 the last release drops what was not consumed", without_consumer },
	{ "D4 D10 a post that was held up until the consumer had ended is dropped", after_the_end },
	{ "D10 an idle thread wakes for the close", wakes_the_idle },
};
SUITE_GROUP(suite_close, tests);
#endif
