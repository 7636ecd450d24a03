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

/* More than is sorted at once. */
#define BACKLOG 2000u

/* Takes one event, before which a part of a backlog was sorted: `control` has posted it meanwhile. */
static void take_one(struct pumped *pumped)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	unsigned lane;
	uint64_t value;

	/* In a chain: single posts of the consumer itself need no sorting. */
	for (unsigned i = 0; i < BACKLOG; i++)
		if (suite_append(&chain, pumped->receiver.subscription, EVC_LANE_QUEUE_LOWEST, i) != EVC_OK)
			return;
	(void)!evc_mailbox_post(pumped->receiver.mailbox, &chain);
	evc_mailbox_interrupt(pumped->receiver.mailbox);
	(void)!suite_take(&pumped->receiver, &lane, &value);
}

static void interrupt_and_post(void *context)
{
	struct pumped *pumped = context;

	if (++pumped->controls == 1)
		evc_mailbox_interrupt(pumped->receiver.mailbox);
	else
		post_one(pumped);
}

static const char *taken_while_idle(void)
{
	struct pumped pumped = { .at_idle = take_one };
	struct evc_mailbox_options options = {
		.size = sizeof(options), .wake = wake, .control = interrupt_and_post, .idle = idle, .context = &pumped,
	};
	struct evc_mailbox_statistics statistics;

	EXPECT_NONE(suite_receiver_open(&pumped.receiver, &options));
	EXPECT_STATUS(evc_mailbox_pump(pumped.receiver.mailbox, 2 * BACKLOG), EVC_EMPTY);
	evc_mailbox_read_statistics(pumped.receiver.mailbox, &statistics);
	EXPECT_EQUAL(pumped.controls, 2, "control was called");
	EXPECT_EQUAL(statistics.waiting, 0, "waiting when the mailbox is armed");
	EXPECT_EQUAL(pumped.receiver.delivered, BACKLOG, "delivered");
	evc_mailbox_release(pumped.receiver.mailbox);
	return NULL;
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

/* What a second consumer is told while a handler of the first runs. */
struct second {
	struct suite_receiver receiver;
	struct evc_subscription *busy;
	enum evc_status inside, pump, until, run, start;
	uint64_t handled;
};

static void *consume_too(void *context)
{
	struct second *second = context;
	struct evc_mailbox *mailbox = second->receiver.mailbox;
	struct evc_thread *thread;

	second->pump = evc_mailbox_pump(mailbox, 1);
	/* Not if it was let in: a run would not end. */
	if (second->pump != EVC_NOT_PERMITTED)
		return NULL;
	second->until = evc_mailbox_pump_until(mailbox, 10, EVC_FOREVER, &second->handled);
	second->run = evc_mailbox_run(mailbox);
	second->start = evc_thread_start(NULL, mailbox, &thread);
	return NULL;
}

static bool meet_another(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct second *second = context;
	pthread_t other;

	(void)payload, (void)envelope, (void)owned;
	second->handled = 7;
	pthread_create(&other, NULL, consume_too, second);
	pthread_join(other, NULL);
	second->inside = evc_mailbox_pump(second->receiver.mailbox, 1);
	return true;
}

static const char *one_consumer(void)
{
	for (unsigned limit = 1; limit <= 3; limit++) {
		struct second second = { .inside = EVC_OK };
		struct evc_subscription *counted;

		EXPECT_NONE(suite_receiver_open(&second.receiver, NULL));
		EXPECT_NONE(suite_receiver_add(&second.receiver, meet_another, &second, &second.busy));
		counted = second.receiver.subscription;
		second.receiver.subscription = second.busy;
		EXPECT_OK(suite_post(&second.receiver, EVC_LANE_QUEUE_NORMAL, 0));
		second.receiver.subscription = counted;
		for (unsigned i = 0; i < 2; i++)
			EXPECT_OK(suite_post(&second.receiver, EVC_LANE_QUEUE_NORMAL, i));
		EXPECT_OK(evc_mailbox_pump(second.receiver.mailbox, limit));
		EXPECT_STATUS(second.pump, EVC_NOT_PERMITTED);
		EXPECT_STATUS(second.until, EVC_NOT_PERMITTED);
		EXPECT_STATUS(second.run, EVC_NOT_PERMITTED);
		EXPECT_STATUS(second.start, EVC_NOT_PERMITTED);
		EXPECT_STATUS(second.inside, EVC_NOT_PERMITTED);
		EXPECT_EQUAL(second.handled, 0, "handled by a pump that was refused");
		EXPECT_EQUAL(second.receiver.delivered, limit - 1, "delivered by the first pump");
		/* The first has ended, at its limit or with nothing left: the next is welcome. */
		EXPECT_STATUS(evc_mailbox_pump(second.receiver.mailbox, 10), EVC_EMPTY);
		EXPECT_STATUS(evc_mailbox_pump_until(second.receiver.mailbox, 10, 1, NULL), EVC_TIMED_OUT);
		evc_mailbox_close(second.receiver.mailbox);
		EXPECT_STATUS(evc_mailbox_run(second.receiver.mailbox), EVC_CLOSED);
		EXPECT_STATUS(evc_mailbox_pump(second.receiver.mailbox, 10), EVC_CLOSED);
		EXPECT_EQUAL(second.receiver.delivered, 2, "delivered");
		evc_mailbox_release(second.receiver.mailbox);
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "an armed mailbox wakes its pump once, and again only after it was armed again", once_per_arming },
	{ "a pump stops at its limit and is not armed there", limits },
	{ "what comes before the arming is the running pump's", news_while_idle },
	{ "D5 what idle leaves half sorted, after a take by hand, is the running pump's", taken_while_idle },
	{ "an interrupt wakes the pump, which calls control", interrupts },
	{ "D10 a close wakes the pump, which drops or handles what waits, and ends", closes },
	{ "D10 a mailbox that was never pumped frees what it holds", never_pumped },
	{ "a mailbox without a wake function is pumped by a loop", without_wake },
	{ "D12 a second consumer, also inside a handler, is refused while the first pumps, and loses nothing", one_consumer },
};
SUITE_GROUP(suite_pump, tests);
#endif
