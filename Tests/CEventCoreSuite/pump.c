/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A mailbox that is pumped, on one thread: when it calls `wake`, and what a pump returns. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

struct pumped {
	struct suite_receiver receiver;
	unsigned wakes, controls, idles, finalized;
	/* What the idle function does once, if anything. */
	void (*at_idle)(struct pumped *pumped);
};

static void wake(void *context)
{
	((struct pumped *)context)->wakes++;
}

static void control(void *context)
{
	((struct pumped *)context)->controls++;
}

static void idle(void *context)
{
	struct pumped *pumped = context;
	void (*act)(struct pumped *) = pumped->at_idle;

	pumped->idles++;
	pumped->at_idle = NULL;
	if (act != NULL)
		act(pumped);
}

static void finalize(void *context)
{
	((struct pumped *)context)->finalized++;
}

static const char *open_pumped(struct pumped *pumped)
{
	struct evc_mailbox_options options = {
		.size = sizeof(options), .wake = wake, .control = control, .idle = idle, .finalize = finalize, .context = pumped,
	};

	__builtin_memset(pumped, 0, sizeof(*pumped));
	return suite_receiver_open(&pumped->receiver, &options);
}

static const char *once_per_arming(void)
{
	struct pumped pumped;

	EXPECT_NONE(open_pumped(&pumped));
	for (unsigned round = 1; round <= 3; round++) {
		for (unsigned i = 0; i < 3 * EVC_LANE_COUNT; i++) {
			EXPECT_OK(suite_post(&pumped.receiver, i % EVC_LANE_COUNT, i));
			EXPECT_EQUAL(pumped.wakes, round, "wakes after a post");
		}
		EXPECT_STATUS(evc_mailbox_pump(pumped.receiver.mailbox, 1000), EVC_EMPTY);
		EXPECT_EQUAL(pumped.receiver.delivered, round * 3 * EVC_LANE_COUNT, "delivered");
		EXPECT_EQUAL(pumped.idles, round, "idle was called");
		/* Armed, and nothing was posted: a superfluous pump changes nothing. */
		EXPECT_STATUS(evc_mailbox_pump(pumped.receiver.mailbox, 1000), EVC_EMPTY);
		pumped.idles--;
	}
	evc_mailbox_release(pumped.receiver.mailbox);
	EXPECT_EQUAL(pumped.finalized, 1, "finalize was called");
	return NULL;
}

static const char *limits(void)
{
	struct pumped pumped;

	EXPECT_NONE(open_pumped(&pumped));
	for (unsigned limit = 1; limit <= 5; limit++) {
		unsigned before = pumped.wakes;
		uint64_t delivered = pumped.receiver.delivered;

		for (unsigned i = 0; i < 3; i++)
			EXPECT_OK(suite_post(&pumped.receiver, EVC_LANE_QUEUE_NORMAL, i));
		for (unsigned left = 3; left >= limit; left -= limit)
			EXPECT_OK(evc_mailbox_pump(pumped.receiver.mailbox, limit));
		/* Not armed yet: more may wait, and the caller knows. */
		if (3 % limit == 0 || limit < 3) {
			EXPECT_OK(suite_post(&pumped.receiver, EVC_LANE_QUEUE_NORMAL, 0));
			delivered++;
		}
		EXPECT_EQUAL(pumped.wakes, before + 1, "wakes");
		while (evc_mailbox_pump(pumped.receiver.mailbox, limit) == EVC_OK)
			;
		EXPECT_EQUAL(pumped.receiver.delivered, delivered + 3, "delivered");
	}
	EXPECT_STATUS(evc_mailbox_pump(pumped.receiver.mailbox, 0), EVC_INVALID_ARGUMENT);
	evc_mailbox_release(pumped.receiver.mailbox);
	return NULL;
}

static void post_one(struct pumped *pumped)
{
	(void)!suite_post(&pumped->receiver, EVC_LANE_STACK_HIGHEST, 1);
}

static void close_it(struct pumped *pumped)
{
	evc_mailbox_close(pumped->receiver.mailbox);
}

/* `wake` is not called before the mailbox is armed: the pump goes on by itself. */
static const char *news_while_idle(void)
{
	struct pumped pumped;

	EXPECT_NONE(open_pumped(&pumped));
	EXPECT_OK(suite_post(&pumped.receiver, EVC_LANE_QUEUE_NORMAL, 0));
	pumped.at_idle = post_one;
	EXPECT_STATUS(evc_mailbox_pump(pumped.receiver.mailbox, 1000), EVC_EMPTY);
	EXPECT_EQUAL(pumped.receiver.delivered, 2, "delivered");
	EXPECT_EQUAL(pumped.wakes, 1, "wakes");
	EXPECT_OK(suite_post(&pumped.receiver, EVC_LANE_QUEUE_NORMAL, 0));
	EXPECT_EQUAL(pumped.wakes, 2, "wakes after the arming");
	pumped.at_idle = close_it;
	EXPECT_STATUS(evc_mailbox_pump(pumped.receiver.mailbox, 1000), EVC_CLOSED);
	EXPECT_EQUAL(pumped.wakes, 2, "wakes after the end");
	EXPECT_STATUS(evc_mailbox_pump(pumped.receiver.mailbox, 1000), EVC_CLOSED);
	evc_mailbox_release(pumped.receiver.mailbox);
	return NULL;
}

static const char *interrupts(void)
{
	struct pumped pumped;

	EXPECT_NONE(open_pumped(&pumped));
	evc_mailbox_interrupt(pumped.receiver.mailbox);
	evc_mailbox_interrupt(pumped.receiver.mailbox);
	EXPECT_EQUAL(pumped.wakes, 1, "wakes");
	EXPECT_STATUS(evc_mailbox_pump(pumped.receiver.mailbox, 1), EVC_EMPTY);
	EXPECT_EQUAL(pumped.controls, 1, "control was called");
	evc_mailbox_release(pumped.receiver.mailbox);
	return NULL;
}

static const char *closes(void)
{
	struct pumped pumped;
	struct evc_mailbox_statistics statistics;

	for (unsigned waiting = 0; waiting <= 3; waiting++) {
		for (unsigned drain = 0; drain <= 1; drain++) {
			EXPECT_NONE(open_pumped(&pumped));
			for (unsigned i = 0; i < waiting; i++)
				EXPECT_OK(suite_post(&pumped.receiver, i, i));
			if (drain)
				evc_mailbox_close_when_empty(pumped.receiver.mailbox);
			else
				evc_mailbox_close(pumped.receiver.mailbox);
			EXPECT_EQUAL(pumped.wakes, 1, "wakes");
			EXPECT_STATUS(suite_post(&pumped.receiver, 0, 0), EVC_CLOSED);
			EXPECT_STATUS(evc_mailbox_pump(pumped.receiver.mailbox, 1000), EVC_CLOSED);
			evc_mailbox_read_statistics(pumped.receiver.mailbox, &statistics);
			EXPECT_EQUAL(statistics.taken, drain ? waiting : 0, "taken");
			EXPECT_EQUAL(statistics.dropped, drain ? 0 : waiting, "dropped");
			evc_mailbox_interrupt(pumped.receiver.mailbox);
			EXPECT_EQUAL(pumped.wakes, 1, "wakes after the end");
			evc_mailbox_release(pumped.receiver.mailbox);
		}
	}
	return NULL;
}

static const char *never_pumped(void)
{
	struct pumped pumped;

	EXPECT_NONE(open_pumped(&pumped));
	for (unsigned i = 0; i < 10; i++)
		EXPECT_OK(suite_post(&pumped.receiver, i, i));
	EXPECT_STATUS(evc_mailbox_wait(pumped.receiver.mailbox, 0), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_run(pumped.receiver.mailbox), EVC_INVALID_ARGUMENT);
	evc_mailbox_release(pumped.receiver.mailbox);
	EXPECT_EQUAL(pumped.receiver.drops, 10, "drops");
	return NULL;
}

/* The caller's own loop: `wake` is not needed. */
static const char *without_wake(void)
{
	struct suite_receiver receiver;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_STATUS(evc_mailbox_pump(receiver.mailbox, 10), EVC_EMPTY);
	for (unsigned i = 0; i < 10; i++)
		EXPECT_OK(suite_post(&receiver, i, i));
	EXPECT_OK(evc_mailbox_wait(receiver.mailbox, EVC_FOREVER));
	EXPECT_OK(evc_mailbox_pump(receiver.mailbox, 10));
	EXPECT_STATUS(evc_mailbox_pump(receiver.mailbox, 10), EVC_EMPTY);
	EXPECT_EQUAL(receiver.delivered, 10, "delivered");
	evc_mailbox_close(receiver.mailbox);
	EXPECT_STATUS(evc_mailbox_pump(receiver.mailbox, 10), EVC_CLOSED);
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "an armed mailbox wakes its pump once, and again only after it was armed again", once_per_arming },
	{ "a pump stops at its limit and is not armed there", limits },
	{ "what comes before the arming is the running pump's", news_while_idle },
	{ "an interrupt wakes the pump, which calls control", interrupts },
	{ "D10 a close wakes the pump, which drops or handles what waits, and ends", closes },
	{ "D10 a mailbox that was never pumped frees what it holds", never_pumped },
	{ "a mailbox without a wake function is pumped by a loop", without_wake },
};
SUITE_GROUP(suite_pump, tests);
#endif
