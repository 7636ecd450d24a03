/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A pump with a deadline on a clock of the caller's. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#define EVENTS 200u

/* A clock that only handlers move, by ten. */
struct manual {
	uint64_t time, deadline, begun, begun_late;
	bool in_order;
};

static uint64_t read_manual(void *context)
{
	return ((const struct manual *)context)->time;
}

static bool take_ten(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct manual *manual = context;

	(void)envelope, (void)owned;
	manual->in_order = manual->in_order && *(uint64_t *)payload == manual->begun;
	manual->begun++;
	manual->begun_late += manual->time >= manual->deadline;
	manual->time += 10;
	return true;
}

static const char *dispatch_numbers(struct evc_router *router, bool together)
{
	struct evc_envelope *envelope;
	struct evc_dispatch dispatch;

	for (uint64_t i = 0; i < EVENTS; i += 50) {
		EXPECT_OK((together ? evc_dispatch_begin_batch : evc_dispatch_begin)(
			router, 1, EVC_LANE_QUEUE_NORMAL, sizeof(uint64_t), _Alignof(uint64_t), 50, &dispatch));
		/* A thread's first dispatch of a key takes the general path. */
		EXPECT(i == 0 || (dispatch.array != NULL) == together, "together: %d", together);
		envelope = dispatch.first;
		for (uint64_t j = 0; j < 50; j++) {
			if (dispatch.array != NULL) {
				((uint64_t *)dispatch.array)[j] = i + j;
				continue;
			}
			*(uint64_t *)evc_envelope_payload(envelope) = i + j;
			envelope = evc_dispatch_next(envelope);
		}
		EXPECT_EQUAL(evc_dispatch_commit(&dispatch), 50, "accepted");
	}
	return NULL;
}

static const char *on_a_manual_clock(bool together)
{
	struct manual manual;
	const struct evc_clock clock = { &manual, read_manual };
	struct evc_mailbox_options options = { .size = sizeof(options), .batches = together, .clock = &clock };
	struct evc_subscription_options handler = { .size = sizeof(handler), .context = &manual, .deliver = take_ten };
	struct evc_subscription *subscription;
	struct evc_mailbox *mailbox;
	struct evc_router *router;

	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_mailbox_create(&options, &mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(mailbox, &handler, &subscription));
	EXPECT_OK(evc_router_subscribe(router, 1, subscription, 0, false));
	for (uint64_t fit = 0; fit < EVENTS; fit++) {
		uint64_t handled = 77;

		EXPECT_NONE(dispatch_numbers(router, together));
		/* Somewhere in the last handler that begins, or exactly at its end. */
		manual = (struct manual){ .time = 1000, .deadline = 1000 + 10 * fit - (fit > 0 ? fit % 10 : 0), .in_order = true };
		EXPECT_STATUS(evc_mailbox_pump_until(mailbox, EVENTS + 1, manual.deadline, &handled), EVC_TIMED_OUT);
		EXPECT_EQUAL(handled, fit, "handled");
		EXPECT_EQUAL(manual.begun, fit, "begun");
		EXPECT_EQUAL(manual.begun_late, 0, "begun after the deadline");
		manual.deadline = EVC_FOREVER;
		EXPECT_STATUS(evc_mailbox_pump_until(mailbox, EVENTS + 1, 1000 + 10 * EVENTS + 1, &handled), EVC_EMPTY);
		EXPECT_EQUAL(handled, EVENTS - fit, "handled of the rest");
		EXPECT(manual.in_order, "the order changed");
	}
	EXPECT_OK(evc_router_unsubscribe(router, 1, subscription));
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
	EXPECT(suite_settle(), "the reclaimer got stuck");
	return NULL;
}

static const char *manual_clocks(void)
{
	EXPECT_NONE(on_a_manual_clock(false));
	return on_a_manual_clock(true);
}

/* A clock that `control` or `idle` moves to the deadline; the latter posts then. */
struct moved {
	struct evc_router *router;
	uint64_t time, idles, handled;
	bool by_idle;
};

static uint64_t read_moved(void *context)
{
	return ((const struct moved *)context)->time;
}

static void move_in_control(void *context)
{
	struct moved *moved = context;

	if (!moved->by_idle)
		moved->time = 50;
}

static void move_in_idle(void *context)
{
	struct moved *moved = context;
	uint64_t value = 0;

	if (moved->by_idle && moved->idles++ == 0) {
		moved->time = 50;
		(void)(evc_dispatch_bytes(moved->router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8, NULL) == EVC_OK);
	}
}

static bool count_one(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	((struct moved *)context)->handled++;
	return true;
}

static const char *on_a_moved_clock(bool by_idle, bool together, enum evc_overflow policy, uint64_t capacity)
{
	struct moved moved = { .time = 1, .by_idle = by_idle };
	const struct evc_clock clock = { &moved, read_moved };
	struct evc_mailbox_options options = {
		.size = sizeof(options), .batches = together, .clock = &clock, .context = &moved,
		.control = move_in_control, .idle = move_in_idle, .capacity = capacity, .overflow = policy,
	};
	struct evc_subscription_options handler = { .size = sizeof(handler), .context = &moved, .deliver = count_one };
	struct evc_subscription *subscription;
	struct evc_mailbox *mailbox;
	uint64_t value = 0, handled;

	EXPECT_OK(evc_router_create(&moved.router));
	EXPECT_OK(evc_mailbox_create(&options, &mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(mailbox, &handler, &subscription));
	EXPECT_OK(evc_router_subscribe(moved.router, 1, subscription, 0, false));
	EXPECT_OK(evc_dispatch_bytes(moved.router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8, NULL));
	if (!by_idle)
		evc_mailbox_interrupt(mailbox);
	EXPECT_STATUS(evc_mailbox_pump_until(mailbox, 10, 50, &handled), EVC_TIMED_OUT);
	EXPECT_EQUAL(handled, by_idle ? 1 : 0, "handled");
	EXPECT_EQUAL(moved.handled, handled, "begun");
	/* Nothing is lost, and a pump without a deadline has none. */
	EXPECT_STATUS(evc_mailbox_pump(mailbox, 10), EVC_EMPTY);
	EXPECT_EQUAL(moved.handled, by_idle ? 2 : 1, "handled in all");
	EXPECT_OK(evc_router_unsubscribe(moved.router, 1, subscription));
	evc_router_destroy(moved.router);
	evc_mailbox_release(mailbox);
	EXPECT(suite_settle(), "the reclaimer got stuck");
	return NULL;
}

static const char *moved_clocks(void)
{
	for (unsigned i = 0; i < 4; i++) {
		EXPECT_NONE(on_a_moved_clock(i & 1, i & 2, EVC_OVERFLOW_REFUSE, 0));
		EXPECT_NONE(on_a_moved_clock(i & 1, i & 2, EVC_OVERFLOW_REFUSE, 5));
		EXPECT_NONE(on_a_moved_clock(i & 1, i & 2, EVC_OVERFLOW_DROP_OLDEST, 5));
	}
	return NULL;
}

/* A clock that goes on by one at each look, and a handler that takes from its own mailbox. */
struct going {
	struct evc_mailbox *mailbox;
	uint64_t time, idles, taken;
	bool takes, closes;
};

static uint64_t read_going(void *context)
{
	return ++((struct going *)context)->time;
}

static void count_idle(void *context)
{
	((struct going *)context)->idles++;
}

static bool take_next(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct going *going = context;
	struct evc_envelope *next;

	(void)payload, (void)envelope, (void)owned;
	if (going->takes) {
		going->takes = false;
		going->time = 100;
		evc_mailbox_interrupt(going->mailbox);
		if (going->closes)
			evc_mailbox_close_when_empty(going->mailbox);
		if (evc_mailbox_take(going->mailbox, &next) == EVC_OK) {
			going->taken++;
			evc_mailbox_recycle(going->mailbox, next, true);
		}
	}
	return true;
}

static const char *take_in_handler(bool closes)
{
	struct going going = { .takes = true, .closes = closes };
	const struct evc_clock clock = { &going, read_going };
	struct evc_mailbox_options options = {
		.size = sizeof(options), .clock = &clock, .context = &going, .idle = count_idle,
	};
	struct evc_subscription_options handler = { .size = sizeof(handler), .context = &going, .deliver = take_next };
	struct evc_subscription *subscription;
	struct evc_router *router;
	uint64_t value = 0, handled;

	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_mailbox_create(&options, &going.mailbox));
	/* It comes to the deadline in the call, which has found nothing. */
	EXPECT_STATUS(evc_mailbox_pump_until(going.mailbox, 10, 2, NULL), EVC_EMPTY);
	EXPECT_EQUAL(going.idles, 1, "calls of idle");
	EXPECT_OK(evc_mailbox_add_subscription(going.mailbox, &handler, &subscription));
	EXPECT_OK(evc_router_subscribe(router, 1, subscription, 0, false));
	for (unsigned i = 0; i < 3; i++)
		EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8, NULL));
	going.time = 0;
	EXPECT_STATUS(evc_mailbox_pump_until(going.mailbox, 10, 50, &handled), EVC_TIMED_OUT);
	EXPECT_EQUAL(going.taken, 1, "taken in the handler");
	EXPECT_EQUAL(handled, 1, "handled");
	EXPECT_STATUS(evc_mailbox_pump(going.mailbox, 10), closes ? EVC_CLOSED : EVC_EMPTY);
	EXPECT_OK(evc_router_unsubscribe(router, 1, subscription));
	evc_router_destroy(router);
	evc_mailbox_release(going.mailbox);
	EXPECT(suite_settle(), "the reclaimer got stuck");
	return NULL;
}

/* More than is sorted between two looks: the second one after the beginning ends the pump. */
#define BACKLOG 3000u

static const char *sorts(void)
{
	struct going going = { .time = 0 };
	const struct evc_clock clock = { &going, read_going };
	struct evc_mailbox_options options = { .size = sizeof(options), .clock = &clock, .context = &going };
	struct suite_receiver receiver;
	uint64_t handled = 77;

	EXPECT_NONE(suite_receiver_open(&receiver, &options));
	for (uint64_t i = 0; i < BACKLOG; i++)
		EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_NORMAL, i));
	EXPECT_STATUS(evc_mailbox_pump_until(receiver.mailbox, BACKLOG, 3, &handled), EVC_TIMED_OUT);
	EXPECT_EQUAL(handled, 0, "handled");
	EXPECT_EQUAL(going.time, 3, "looks at the clock");
	/* The rest is sorted at once, and two events begin at 4 and 5. */
	EXPECT_STATUS(evc_mailbox_pump_until(receiver.mailbox, BACKLOG, 6, &handled), EVC_TIMED_OUT);
	EXPECT_EQUAL(handled, 2, "handled of what is sorted");
	EXPECT_STATUS(evc_mailbox_pump(receiver.mailbox, BACKLOG), EVC_EMPTY);
	EXPECT_EQUAL(receiver.delivered, BACKLOG, "delivered");
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const char *going_clocks(void)
{
	EXPECT_NONE(take_in_handler(false));
	/* A signal that stays up does not hold up the take, either. */
	return take_in_handler(true);
}

static const struct evc_suite_test tests[] = {
	{ "on a clock of the caller's the deadline cuts short no idle, and no take in a handler", going_clocks },
	{ "on a clock of the caller's none begins when it has come to the deadline while a backlog was sorted", sorts },
	{ "on a clock of the caller's none begins when control or idle has moved it to the deadline", moved_clocks },
	{ "on a clock of the caller's none begins when the deadline has come, one by one and in a batch", manual_clocks },
};
SUITE_GROUP(suite_pump_clock, tests);
#endif
