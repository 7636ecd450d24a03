/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 *     main                      consumer thread
 *     post gate event           handler: "held"
 *     pass "held"
 *     post event, interrupt
 *     open "go"                 handler returns; control; event
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

struct script {
	struct suite_receiver receiver;
	struct suite_gate held, go, rested;
	/* Written by the consumer alone: one letter for each thing that happened. */
	char log[16];
	_Atomic uint64_t length;
	_Atomic uint64_t idles;
};

static void note(struct script *script, char what)
{
	uint64_t length = atomic_load_explicit(&script->length, memory_order_relaxed);

	if (length < sizeof(script->log) - 1)
		script->log[length] = what;
	atomic_store_explicit(&script->length, length + 1, memory_order_release);
}

static void control(void *context)
{
	note(context, 'c');
}

static void idle(void *context)
{
	struct script *script = context;

	atomic_fetch_add(&script->idles, 1);
	suite_gate_open(&script->rested);
}

static bool hold(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct script *script = context;

	(void)payload, (void)envelope, (void)owned;
	note(script, 'h');
	suite_gate_open(&script->held);
	(void)suite_gate_pass(&script->go);
	return true;
}

static bool handle(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	note(context, 'e');
	return true;
}

static const char *expect_log(struct script *script, const char *expected)
{
	uint64_t length = __builtin_strlen(expected);

	EXPECT(suite_await(&script->length, length), "expected %s, nothing more happens", expected);
	EXPECT(__builtin_strncmp(script->log, expected, length) == 0, "expected %s, found %s",
	       expected, script->log);
	return NULL;
}

static const char *open_script(struct script *script, struct evc_subscription **gate,
			       struct evc_thread **thread)
{
	static const struct suite_gate shut = SUITE_GATE;
	struct evc_mailbox_options options = { .size = sizeof(options), .control = control, .idle = idle, .context = script };

	__builtin_memset(script, 0, sizeof(*script));
	script->held = script->go = script->rested = shut;
	EXPECT_NONE(suite_receiver_open(&script->receiver, &options));
	EXPECT_NONE(suite_receiver_add(&script->receiver, handle, script,
				       &script->receiver.subscription));
	EXPECT_NONE(suite_receiver_add(&script->receiver, hold, script, gate));
	EXPECT_OK(evc_thread_start(NULL, script->receiver.mailbox, thread));
	return NULL;
}

static const char *close_script(struct script *script, struct evc_thread *thread)
{
	evc_thread_cancel(thread);
	EXPECT_OK(evc_thread_join(thread));
	evc_mailbox_release(script->receiver.mailbox);
	return NULL;
}

static const char *between_two(void)
{
	static struct script script;
	struct evc_subscription *gate, *event;
	struct evc_thread *thread;

	EXPECT_NONE(open_script(&script, &gate, &thread));
	event = script.receiver.subscription;
	script.receiver.subscription = gate;
	EXPECT_OK(suite_post(&script.receiver, 0, 0));
	script.receiver.subscription = event;
	EXPECT(suite_gate_pass(&script.held), "the handler did not begin");
	EXPECT_OK(suite_post(&script.receiver, 0, 0));
	evc_mailbox_interrupt(script.receiver.mailbox);
	suite_gate_open(&script.go);
	EXPECT_NONE(expect_log(&script, "hce"));
	return close_script(&script, thread);
}

/* Interrupted when nothing is left: asleep, or about to sleep. */
static const char *wakes_the_idle(void)
{
	static struct script script;
	struct evc_subscription *gate;
	struct evc_thread *thread;

	for (unsigned i = 0; i < SUITE_SCALE(500u); i++) {
		EXPECT_NONE(open_script(&script, &gate, &thread));
		EXPECT(suite_gate_pass(&script.rested), "idle was not called");
		evc_mailbox_interrupt(script.receiver.mailbox);
		EXPECT_NONE(expect_log(&script, "c"));
		EXPECT_OK(suite_post(&script.receiver, 9, 0));
		EXPECT_NONE(expect_log(&script, "ce"));
		EXPECT_NONE(close_script(&script, thread));
		EXPECT(script.idles >= 1, "idle was not called");
	}
	return NULL;
}

/*
 * `control` interrupts again and again. The bound is for a consumer that would never look at anything else.
 */
static void insist(void *context)
{
	struct script *script = context;

	note(script, 'c');
	if (atomic_load_explicit(&script->length, memory_order_relaxed) < 12)
		evc_mailbox_interrupt(script->receiver.mailbox);
}

static const char *insists(void)
{
	struct script script = { .held = SUITE_GATE };
	const struct evc_mailbox_options options = { .size = sizeof(options), .control = insist, .context = &script };
	struct evc_subscription *events;
	unsigned in_a_row = 0;

	EXPECT_NONE(suite_receiver_open(&script.receiver, &options));
	EXPECT_NONE(suite_receiver_add(&script.receiver, handle, &script, &events));
	script.receiver.subscription = events;
	for (unsigned i = 0; i < 3; i++)
		EXPECT_OK(suite_post(&script.receiver, 7, i));
	evc_mailbox_interrupt(script.receiver.mailbox);
	EXPECT_STATUS(evc_mailbox_pump(script.receiver.mailbox, 100), EVC_EMPTY);
	/* One more while the lane is drained: the signal is looked at after that too. */
	for (unsigned i = 0, events_left = 3; events_left > 0; i++) {
		EXPECT(script.log[i] != 0, "expected three events, found %s", script.log);
		in_a_row = script.log[i] == 'c' ? in_a_row + 1 : 0;
		events_left -= script.log[i] == 'e';
		EXPECT(in_a_row <= 2, "expected an event between, found %s", script.log);
	}
	evc_mailbox_release(script.receiver.mailbox);
	return NULL;
}

/* So many events that the consumer relies on the alarm, and then an urgent one with an interrupt, whose `control` takes. */
#define RUN 30u
#define QUEUED 60u

struct taking {
	struct suite_receiver receiver;
	unsigned handled, taken;
	/* Of what `control` took, and of the event that is handled next. */
	unsigned lanes[3];
};

static void take_all(void *context)
{
	struct taking *taking = context;
	uint64_t value;

	while (taking->taken < 2 && suite_take(&taking->receiver, &taking->lanes[taking->taken], &value) == EVC_OK)
		taking->taken++;
}

static bool handle_and_interrupt(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct taking *taking = context;

	(void)payload, (void)owned;
	if (++taking->handled == RUN) {
		(void)!suite_post(&taking->receiver, EVC_LANE_STACK_HIGHEST, 0);
		evc_mailbox_interrupt(taking->receiver.mailbox);
	}
	if (taking->handled == RUN + 1)
		taking->lanes[2] = evc_envelope_lane(envelope);
	return true;
}

static const char *takes(void)
{
	struct taking taking = { .handled = 0 };
	const struct evc_mailbox_options options = { .size = sizeof(options), .control = take_all, .context = &taking };

	EXPECT_NONE(suite_receiver_open(&taking.receiver, &options));
	EXPECT_NONE(suite_receiver_add(&taking.receiver, handle_and_interrupt, &taking, &taking.receiver.subscription));
	for (unsigned i = 0; i < QUEUED; i++)
		EXPECT_OK(suite_post(&taking.receiver, EVC_LANE_QUEUE_LOWEST, i));
	EXPECT_STATUS(evc_mailbox_pump(taking.receiver.mailbox, EVC_FOREVER), EVC_EMPTY);
	EXPECT_EQUAL(taking.taken, 2, "taken in control");
	EXPECT_EQUAL(taking.lanes[0], EVC_LANE_STACK_HIGHEST, "the lane of the first");
	EXPECT_EQUAL(taking.lanes[1], EVC_LANE_QUEUE_LOWEST, "the lane of the second");
	EXPECT_EQUAL(taking.lanes[2], EVC_LANE_QUEUE_LOWEST, "the lane of the next event that is handled");
	EXPECT_EQUAL(taking.handled, QUEUED - 1, "handled");
	evc_mailbox_release(taking.receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "interrupts without end hold up no event", insists },
	{ "an interrupt has control called before the next envelope", between_two },
	{ "D1 a take in control takes the urgent event that came before the interrupt", takes },
	{ "an interrupt wakes an idle consumer, which goes on afterwards", wakes_the_idle },
};
SUITE_GROUP(suite_interrupt, tests);
#endif
