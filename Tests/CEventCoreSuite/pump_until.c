/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A pump with a deadline: what it begins, what it leaves, and what it tells. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "batched.h"

#include "mailbox/stretch.h"

#define EVENTS 400u
/* The most events between two looks at the clock, and near the deadline: include/eventcore/mailbox.h. */
#define STRETCH 128u
#define NEAR 32u
/* So far away that a slow machine reaches each event before, and that stretches have their full length. */
#define FAR_NS 3000000u

struct timed {
	struct suite_receiver receiver;
	/* At this event the handler waits until the clock has passed the deadline. */
	uint64_t slow;
	uint64_t deadline;
	/* Events begun; the one that each of them carries is the number of those before it. */
	uint64_t begun;
	uint64_t begun_late;
	/* Of deliver_slowly. */
	uint64_t slow_late;
	/* Each handler takes this long. */
	uint64_t length;
	bool in_order;
};

static void spin_until(uint64_t time)
{
	while (evc_clock_now() < time)
		;
}

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct timed *timed = context;
	uint64_t now = evc_clock_now();

	(void)envelope, (void)owned;
	timed->in_order = timed->in_order && *(uint64_t *)payload == timed->begun;
	timed->begun_late += now >= timed->deadline;
	if (timed->begun++ == timed->slow)
		spin_until(timed->deadline);
	if (timed->length > 0)
		spin_until(now + timed->length);
	return true;
}

/* Each takes 20 us. */
static bool deliver_slowly(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct timed *timed = context;
	uint64_t late = timed->begun_late, now = evc_clock_now();

	(void)deliver(context, payload, envelope, owned);
	timed->slow_late += timed->begun_late - late;
	spin_until(now + 20000);
	return true;
}

static const char *open_timed(struct timed *timed)
{
	__builtin_memset(timed, 0, sizeof(*timed));
	timed->in_order = true;
	timed->slow = UINT64_MAX;
	timed->deadline = EVC_FOREVER;
	EXPECT_NONE(suite_receiver_open(&timed->receiver, NULL));
	EXPECT_NONE(suite_receiver_add(&timed->receiver, deliver, timed, &timed->receiver.subscription));
	for (uint64_t i = 0; i < EVENTS; i++)
		EXPECT_OK(suite_post(&timed->receiver, EVC_LANE_QUEUE_NORMAL, i));
	return NULL;
}

static const char *close_timed(struct timed *timed)
{
	uint64_t handled = 77;

	timed->deadline = EVC_FOREVER;
	timed->slow = UINT64_MAX;
	timed->length = 0;
	EXPECT_STATUS(evc_mailbox_pump_until(timed->receiver.mailbox, 1000, EVC_FOREVER, &handled), EVC_EMPTY);
	EXPECT_EQUAL(timed->begun, EVENTS, "delivered in all");
	EXPECT(timed->in_order, "the order changed");
	EXPECT_STATUS(evc_mailbox_pump_until(timed->receiver.mailbox, 1, EVC_FOREVER, &handled), EVC_EMPTY);
	EXPECT_EQUAL(handled, 0, "handled by a pump without events");
	evc_mailbox_release(timed->receiver.mailbox);
	return NULL;
}

static const char *past(void)
{
	struct timed timed;
	uint64_t handled = 77;

	EXPECT_NONE(open_timed(&timed));
	EXPECT_STATUS(evc_mailbox_pump_until(timed.receiver.mailbox, 1000, 0, &handled), EVC_TIMED_OUT);
	EXPECT_EQUAL(handled, 0, "handled");
	EXPECT_STATUS(evc_mailbox_pump_until(timed.receiver.mailbox, 1000, evc_clock_now(), NULL), EVC_TIMED_OUT);
	EXPECT_EQUAL(timed.begun, 0, "begun");
	return close_timed(&timed);
}

static const char *limits(void)
{
	uint64_t handled;

	for (uint64_t limit = 1; limit <= EVENTS; limit++) {
		struct timed timed;
		uint64_t left = EVENTS;

		EXPECT_NONE(open_timed(&timed));
		for (; left >= limit; left -= limit) {
			/* Far, but a deadline: the stretches have to add up. */
			EXPECT_OK(evc_mailbox_pump_until(timed.receiver.mailbox, limit,
							 evc_clock_now() + SUITE_LIMIT_NS, &handled));
			EXPECT_EQUAL(handled, limit, "handled");
		}
		EXPECT_STATUS(evc_mailbox_pump_until(timed.receiver.mailbox, limit, EVC_FOREVER, &handled),
			      EVC_EMPTY);
		EXPECT_EQUAL(handled, left, "handled of the rest");
		EXPECT_NONE(close_timed(&timed));
	}
	return NULL;
}

/* One handler turns slow, wherever it stands: as many may follow it as came before it, but at most 127. */
static const char *sudden(void)
{
	for (uint64_t slow = 0; slow < EVENTS; slow += slow < 200 ? 1 : 7) {
		struct timed timed;
		uint64_t handled, after;
		enum evc_status status;

		EXPECT_NONE(open_timed(&timed));
		timed.slow = slow;
		timed.deadline = evc_clock_now() + FAR_NS;
		status = evc_mailbox_pump_until(timed.receiver.mailbox, 1000, timed.deadline, &handled);
		EXPECT(status == EVC_TIMED_OUT || timed.begun == EVENTS, "not late at event %llu",
		       (unsigned long long)slow);
		EXPECT_EQUAL(handled, timed.begun, "handled");
		if (timed.begun > slow) {
			after = timed.begun - slow - 1;
			EXPECT(after <= slow && after < STRETCH, "%llu events began after the deadline at event %llu",
			       (unsigned long long)after, (unsigned long long)slow);
		}
		EXPECT_NONE(close_timed(&timed));
	}
	return NULL;
}

/* The first event of another subscription turns slow, however many of the first one came before: none follows it. */
static const char *of_another_kind(void)
{
	for (uint64_t before = 0; before < EVENTS - 1; before += 7) {
		struct suite_receiver other;
		struct timed timed;
		uint64_t handled;

		EXPECT_NONE(open_timed(&timed));
		EXPECT_OK(evc_mailbox_pump(timed.receiver.mailbox, EVENTS - before));
		other = timed.receiver;
		EXPECT_NONE(suite_receiver_add(&timed.receiver, deliver, &timed, &other.subscription));
		for (uint64_t i = EVENTS; i < 2 * EVENTS; i++)
			EXPECT_OK(suite_post(&other, EVC_LANE_QUEUE_NORMAL, i));
		timed.slow = EVENTS;
		timed.deadline = evc_clock_now() + FAR_NS;
		EXPECT_STATUS(evc_mailbox_pump_until(timed.receiver.mailbox, 1000, timed.deadline, &handled),
			      EVC_TIMED_OUT);
		EXPECT(timed.begun <= EVENTS + 1, "%llu events began after the slow one, which came after %llu",
		       (unsigned long long)(timed.begun - EVENTS - 1), (unsigned long long)before);
		EXPECT_EQUAL(handled, timed.begun - (EVENTS - before), "handled");
		timed.slow = UINT64_MAX;
		EXPECT_STATUS(evc_mailbox_pump(timed.receiver.mailbox, 1000), EVC_EMPTY);
		EXPECT_EQUAL(timed.begun, 2 * EVENTS, "delivered in all");
		EXPECT(timed.in_order, "the order changed");
		evc_mailbox_release(timed.receiver.mailbox);
	}
	return NULL;
}

/* Handlers of 20 us are as slow each time, so that a stretch ends with each of them; 50 short ones come between two. */
static const char *in_turn(void)
{
	struct suite_receiver other;
	struct timed timed;
	enum evc_status status;

	EXPECT_NONE(open_timed(&timed));
	EXPECT_OK(evc_mailbox_pump(timed.receiver.mailbox, EVENTS - 1));
	other = timed.receiver;
	EXPECT_NONE(suite_receiver_add(&timed.receiver, deliver_slowly, &timed, &other.subscription));
	for (uint64_t i = EVENTS; i < 20 * EVENTS; i++)
		EXPECT_OK(suite_post(i % 51 == 50 ? &other : &timed.receiver, EVC_LANE_QUEUE_NORMAL, i));
	/* Now many slow ones, in a stretch that would be long. */
	for (uint64_t i = 20 * EVENTS; i < 21 * EVENTS; i++)
		EXPECT_OK(suite_post(&other, EVC_LANE_QUEUE_NORMAL, i));
	do {
		timed.deadline = evc_clock_now() + 300000;
		timed.begun_late = 0;
		status = evc_mailbox_pump_until(timed.receiver.mailbox, 40 * EVENTS, timed.deadline, NULL);
		/* The system may take the thread away between a look and a slow event: one begins too late then. */
		EXPECT(timed.slow_late <= 1, "%llu slow events began after the deadline",
		       (unsigned long long)timed.slow_late);
		timed.slow_late = 0;
	} while (status == EVC_TIMED_OUT);
	EXPECT_STATUS(status, EVC_EMPTY);
	EXPECT_EQUAL(timed.begun, 21 * EVENTS, "delivered in all");
	EXPECT(timed.in_order, "the order changed");
	evc_mailbox_release(timed.receiver.mailbox);
	return NULL;
}

/* However short the handlers were: the rest of the time suffices for a long stretch of handlers of 8 us. */
static const char *near_the_deadline(void)
{
	for (uint64_t fit = 1; fit < 2 * STRETCH; fit++) {
		uint64_t now = evc_clock_now(), most = fit < NEAR ? NEAR : fit;
		struct evc_stretch stretch = { .behind = 1000, .length = STRETCH, .began = now };

		stretch.deadline = now + 8192 * fit + 8191;
		if (!evc_stretch_next(&stretch))
			continue;
		EXPECT(stretch.left >= 1 && stretch.left <= most && stretch.left <= STRETCH,
		       "a stretch has %llu events when %llu of 8 us fit", (unsigned long long)stretch.left,
		       (unsigned long long)fit);
		EXPECT_EQUAL(stretch.left + stretch.behind, 1000, "left in all");
	}
	return NULL;
}

/* Of one test at a time. */
static uint64_t batch_deadline;

static const char *turn_slow(struct batched *batched)
{
	(void)batched;
	spin_until(batch_deadline);
	return NULL;
}

static const char *in_a_batch(void)
{
	struct batched batched;

	EXPECT_NONE(batched_open(&batched));
	EXPECT_NONE(batched_warm(&batched));
	for (uint64_t slow = 0; slow < EVENTS; slow += slow < 200 ? 1 : 7) {
		uint64_t handled, after;
		enum evc_status status;

		batched.count = 0;
		for (unsigned i = 0; i < EVENTS; i += EVENTS / 8)
			EXPECT_NONE(batched_send(&batched, EVC_LANE_QUEUE_NORMAL, i, EVENTS / 8));
		batched.at = slow;
		batched.act = turn_slow;
		batch_deadline = evc_clock_now() + FAR_NS;
		status = evc_mailbox_pump_until(batched.receiver.mailbox, EVENTS - 1, batch_deadline, &handled);
		EXPECT_EQUAL(handled, batched.count, "handled");
		EXPECT(status == (handled == EVENTS - 1 ? EVC_OK : EVC_TIMED_OUT), "the pump returned %d", status);
		if (handled > slow) {
			after = handled - slow - 1;
			EXPECT(after <= slow && after < STRETCH, "%llu events began after the deadline at event %llu",
			       (unsigned long long)after, (unsigned long long)slow);
		}
		batched.act = NULL;
		/* What is left keeps its order, and a far deadline has the limit reached exactly. */
		EXPECT_OK(evc_mailbox_pump_until(batched.receiver.mailbox, EVENTS - handled,
						 evc_clock_now() + SUITE_LIMIT_NS, NULL));
		EXPECT_EQUAL(batched.count, EVENTS, "delivered in all");
		for (unsigned i = 0; i < EVENTS; i++)
			EXPECT_EQUAL(batched.values[i], i, "the order");
	}
	return batched_close(&batched);
}

static const char *in_batches(void)
{
	EXPECT_NONE(in_a_batch());
	return batched_walked(in_a_batch);
}

/* Handlers of two microseconds: after the look that let it begin, one may find the deadline passed. */
static const char *steady(void)
{
	struct timed timed;
	uint64_t handled;

	EXPECT_NONE(open_timed(&timed));
	timed.length = 2000;
	timed.deadline = evc_clock_now() + 50000;
	EXPECT_STATUS(evc_mailbox_pump_until(timed.receiver.mailbox, 1000, timed.deadline, &handled), EVC_TIMED_OUT);
	EXPECT(timed.begun_late <= 1, "%llu events began after the deadline", (unsigned long long)timed.begun_late);
	EXPECT_EQUAL(handled, timed.begun, "handled");
	EXPECT(handled <= 26, "%llu events of 2 us were delivered in 50 us", (unsigned long long)handled);
	return close_timed(&timed);
}

/* To sort this takes longer than SHORT_NS: the time comes before the first event does, and with it the end of the pump. */
#define BACKLOG SUITE_SCALE(200000u)
#define SHORT_NS 20000u

static const char *sorting(void)
{
	struct timed timed;
	uint64_t handled = 77, calls = 0;

	EXPECT_NONE(open_timed(&timed));
	for (uint64_t i = EVENTS; i < BACKLOG; i++)
		EXPECT_OK(suite_post(&timed.receiver, EVC_LANE_QUEUE_NORMAL, i));
	timed.deadline = evc_clock_now() + SHORT_NS;
	EXPECT_STATUS(evc_mailbox_pump_until(timed.receiver.mailbox, BACKLOG, timed.deadline, &handled), EVC_TIMED_OUT);
	EXPECT_EQUAL(handled, 0, "handled while the backlog is sorted");
	EXPECT_EQUAL(timed.begun, 0, "begun");
	/* Each of the next ones goes on, however short its time is. */
	while (timed.begun == 0 && calls++ < BACKLOG)
		(void)!evc_mailbox_pump_until(timed.receiver.mailbox, 1, evc_clock_now() + SHORT_NS, NULL);
	EXPECT_EQUAL(timed.begun, 1, "begun when the backlog is sorted");
	EXPECT_STATUS(evc_mailbox_pump(timed.receiver.mailbox, BACKLOG), EVC_EMPTY);
	EXPECT_EQUAL(timed.begun, BACKLOG, "delivered in all");
	EXPECT(timed.in_order, "the order changed");
	evc_mailbox_release(timed.receiver.mailbox);
	return NULL;
}

static const char *closed(void)
{
	struct timed timed;
	uint64_t handled;

	EXPECT_NONE(open_timed(&timed));
	EXPECT_OK(evc_mailbox_pump_until(timed.receiver.mailbox, 5, EVC_FOREVER, &handled));
	evc_mailbox_close(timed.receiver.mailbox);
	EXPECT_STATUS(evc_mailbox_pump_until(timed.receiver.mailbox, 5, EVC_FOREVER, &handled), EVC_CLOSED);
	EXPECT_EQUAL(handled, 0, "handled of a closed mailbox");
	EXPECT_EQUAL(timed.begun, 5, "begun");
	evc_mailbox_release(timed.receiver.mailbox);
	return NULL;
}

static const char *arguments(void)
{
	const struct evc_clock no_clock = { NULL, NULL };
	struct evc_mailbox_options without_now = { .size = sizeof(without_now), .clock = &no_clock };
	struct suite_receiver receiver;
	uint64_t handled;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_STATUS(evc_mailbox_pump_until(NULL, 1, EVC_FOREVER, &handled), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_pump_until(receiver.mailbox, 0, EVC_FOREVER, &handled), EVC_INVALID_ARGUMENT);
	evc_mailbox_release(receiver.mailbox);
	EXPECT_STATUS(evc_mailbox_create(&without_now, &receiver.mailbox), EVC_INVALID_ARGUMENT);
	/* A caller that was compiled before there was a clock. */
	without_now.size = offsetof(struct evc_mailbox_options, clock);
	EXPECT_OK(evc_mailbox_create(&without_now, &receiver.mailbox));
	EXPECT_STATUS(evc_mailbox_pump_until(receiver.mailbox, 1, 0, NULL), EVC_TIMED_OUT);
	evc_mailbox_release(receiver.mailbox);
	/* Nobody was: the size ends in the middle of it. */
	without_now.size += 4;
	EXPECT_STATUS(evc_mailbox_create(&without_now, &receiver.mailbox), EVC_INVALID_ARGUMENT);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "a deadline that has passed lets nothing begin, and what waits stays in order", past },
	{ "a pump with a deadline stops at its limit and says how many it handled", limits },
	{ "D1 after a handler that turns slow no more begin than came before, and at most 127", sudden },
	{ "D1 after the first handler of another subscription that is slow none begins", of_another_kind },
	{ "D1 of slow handlers between short ones one begins after the deadline at most, each time", in_turn },
	{ "a long stretch is over before the deadline if each handler takes 8 us", near_the_deadline },
	{ "D1 the same within a batch, whose walk goes on over the looks at the clock", in_batches },
	{ "no event begins after the deadline because a backlog had to be sorted first", sorting },
	{ "handlers that take long all begin before the deadline", steady },
	{ "D10 a pump of a closed mailbox handles nothing", closed },
	{ "a pump with a deadline refuses no mailbox, no limit, and a clock without a function", arguments },
};
SUITE_GROUP(suite_pump_until, tests);
#endif
