/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Who is told of dispatches, how they are counted without being told, and the mark of an event. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <eventcore/realtime.h>

/* Counts what it is told. Each dispatch gets the time 7 if that is wanted, and otherwise 9. */
struct observed {
	uint64_t calls, events, timed;
	/* Given with `left` each time; then the events are marked. NULL: none. */
	struct evc_tally *tally;
	uint64_t left;
};

static void note(void *context, uint64_t key, uint32_t events, bool timed, struct evc_note *note)
{
	struct observed *observed = context;

	(void)key;
	observed->calls++;
	observed->events += events;
	observed->timed += timed;
	note->time = timed ? 7 : 9;
	note->tally = observed->tally;
	note->marks = observed->tally != NULL;
	if (observed->tally != NULL)
		observed->tally->left = observed->left;
}

/* What arrives of a dispatch. */
struct arrived {
	uint64_t time;
	bool is_marked;
	uint32_t generation;
};

/* Dispatches `count` events to key 1, the way of `step`, and takes them. */
static const char *send(struct evc_router *router, struct suite_receiver *receiver, unsigned step, unsigned count,
			struct arrived *arrived)
{
	struct evc_envelope *envelope;
	struct evc_dispatch dispatch;
	uint64_t value = 7;

	if (step == 0) {
		EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8, NULL));
	} else {
		EXPECT_OK((step == 1 ? evc_dispatch_begin : evc_dispatch_begin_batch)(
			router, 1, EVC_LANE_QUEUE_NORMAL, sizeof(value), 8, count, &dispatch));
		envelope = dispatch.first;
		for (uint32_t i = 0; i < dispatch.payloads; i++) {
			*(uint64_t *)evc_envelope_payload(envelope) = value;
			envelope = evc_dispatch_next(envelope);
		}
		EXPECT_EQUAL(evc_dispatch_commit(&dispatch), count, "acceptances");
	}
	for (unsigned i = 0; i < count; i++) {
		struct arrived now;

		EXPECT_OK(evc_mailbox_take(receiver->mailbox, &envelope));
		now = (struct arrived){ evc_envelope_time(envelope), evc_envelope_is_marked(envelope),
					evc_envelope_generation(envelope) };
		EXPECT(i == 0 || (now.time == arrived->time && now.is_marked == arrived->is_marked),
		       "the events of a dispatch differ");
		*arrived = now;
		evc_mailbox_recycle(receiver->mailbox, envelope, true);
	}
	return NULL;
}

static const char *told(void)
{
	struct observed observed = { 0 };
	struct evc_observer observer = { &observed, note }, none = { &observed, NULL };
	struct suite_receiver a, b;
	struct evc_router *router;
	struct arrived arrived;

	EXPECT_NONE(suite_receiver_open(&a, NULL));
	EXPECT_NONE(suite_receiver_open(&b, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_STATUS(evc_router_set_observer(NULL, &observer), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_set_observer(router, &none), EVC_INVALID_ARGUMENT);
	/* Before the first subscription, and among several; a second one takes its place. */
	EXPECT_OK(evc_router_set_observer(router, &observer));
	EXPECT_OK(evc_router_subscribe(router, 1, a.subscription, 1, false));
	EXPECT_OK(evc_router_subscribe(router, 2, b.subscription, 1, false));
	EXPECT_OK(evc_router_set_observer(router, &observer));
	for (unsigned step = 0; step < 3; step++) {
		EXPECT_NONE(send(router, &a, step, step == 0 ? 1 : 3, &arrived));
		EXPECT_EQUAL(arrived.time, 9, "the time that the observer gave");
		EXPECT(!arrived.is_marked, "an event is marked that should not be");
	}
	EXPECT_EQUAL(observed.calls, 3, "dispatches");
	EXPECT_EQUAL(observed.events, 7, "events");
	EXPECT_EQUAL(observed.timed, 0, "dispatches whose time is wanted");
	/* It stays through a subscription that comes and goes. */
	EXPECT_OK(evc_router_subscribe(router, 1, b.subscription, 1, true));
	EXPECT_OK(evc_router_unsubscribe(router, 1, b.subscription));
	EXPECT_OK(evc_router_subscribe(router, 1, a.subscription, 2, true));
	EXPECT_NONE(send(router, &a, 0, 1, &arrived));
	EXPECT_EQUAL(arrived.time, 7, "the time that the observer gave");
	EXPECT_EQUAL(observed.timed, 1, "dispatches whose time is wanted");
	EXPECT_OK(evc_router_set_observer(router, NULL));
	EXPECT_OK(evc_router_subscribe(router, 1, a.subscription, 3, false));
	EXPECT_NONE(send(router, &a, 0, 1, &arrived));
	EXPECT_EQUAL(arrived.time, 0, "D8: the time, which nobody asked for");
	EXPECT_EQUAL(observed.events, 8, "events that nobody is told of");
	evc_router_destroy(router);
	evc_mailbox_release(a.mailbox);
	evc_mailbox_release(b.mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

static const char *counted(void)
{
	struct evc_tally tally = { 0 };
	struct observed observed = { .tally = &tally, .left = 3 };
	struct evc_observer observer = { &observed, note };
	struct suite_receiver receiver;
	struct evc_router *router;
	struct arrived arrived;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_STATUS(evc_router_subscribe(router, 1, receiver.subscription, EVC_GENERATION_MAX + 1, false),
		      EVC_INVALID_ARGUMENT);
	EXPECT_OK(evc_router_subscribe(router, 1, receiver.subscription, EVC_GENERATION_MAX, false));
	/* Has the route in the cache. */
	EXPECT_NONE(send(router, &receiver, 0, 1, &arrived));
	EXPECT_OK(evc_router_set_observer(router, &observer));
	for (unsigned step = 0; step < 3; step++) {
		unsigned count = step == 0 ? 1 : 3;

		tally.events = 0;
		observed = (struct observed){ .tally = &tally, .left = 3 };
		for (unsigned i = 0; i < 12; i++) {
			EXPECT_NONE(send(router, &receiver, step, count, &arrived));
			EXPECT_EQUAL(arrived.generation, EVC_GENERATION_MAX, "the generation beside the mark");
			EXPECT(arrived.is_marked == (i % 4 == 0), "the mark is on the wrong events");
			EXPECT_EQUAL(arrived.time, i % 4 == 0 ? 9 : 0, "the time, which only what is told has");
		}
		EXPECT_EQUAL(observed.calls, 3, "one call in four");
		EXPECT_EQUAL(observed.events + tally.events, 12 * count, "events, told or counted");
		EXPECT_EQUAL(tally.events, 9 * count, "events that were counted");
	}
	/* A type whose time is needed: it is there, and the mark still tells which events were told. */
	EXPECT_OK(evc_router_subscribe(router, 1, receiver.subscription, 1, true));
	observed = (struct observed){ .tally = &tally, .left = 3 };
	for (unsigned i = 0; i < 8; i++) {
		EXPECT_NONE(send(router, &receiver, i % 3, i % 3 == 0 ? 1 : 2, &arrived));
		EXPECT(arrived.is_marked == (i % 4 == 0), "the mark is on the wrong events");
		EXPECT(i % 4 == 0 ? arrived.time == 7 : arrived.time > 9, "D8: the time of a counted event");
	}
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

static const char *told_again(void)
{
	struct evc_tally tally = { 0 };
	struct observed observed = { .tally = &tally, .left = 100 };
	struct evc_observer observer = { &observed, note };
	struct suite_receiver a, b;
	struct evc_router *router;
	struct arrived arrived;

	EXPECT_NONE(suite_receiver_open(&a, NULL));
	EXPECT_NONE(suite_receiver_open(&b, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, a.subscription, 1, false));
	EXPECT_OK(evc_router_set_observer(router, &observer));
	for (unsigned step = 0; step < 3; step++) {
		unsigned count = step == 0 ? 1 : 3;

		observed.calls = 0;
		EXPECT_NONE(send(router, &a, step, count, &arrived));
		EXPECT_NONE(send(router, &a, step, count, &arrived));
		/* With the first dispatch of all, the route was not in the cache yet. */
		EXPECT(observed.calls <= 1, "calls, of dispatches that are counted");
		EXPECT_EQUAL(evc_thread_set_origin(5), 0, "the origin before");
		EXPECT_NONE(send(router, &a, step, count, &arrived));
		EXPECT(arrived.is_marked, "the first dispatch of another origin is not told");
		EXPECT_NONE(send(router, &a, step, count, &arrived));
		EXPECT(!arrived.is_marked, "the second dispatch of an origin is told");
		evc_thread_forget_tallies();
		EXPECT_NONE(send(router, &a, step, count, &arrived));
		EXPECT(arrived.is_marked, "a dispatch is counted in a tally that was forgotten");
		EXPECT_EQUAL(evc_thread_set_origin(0), 5, "the origin before");
		EXPECT_NONE(send(router, &a, step, count, &arrived));
		EXPECT(arrived.is_marked, "the first dispatch after an origin is not told");
		/* Whatever changes the receivers has the next dispatch told. */
		EXPECT_OK(evc_router_subscribe(router, 1, b.subscription, 1, false));
		EXPECT_OK(evc_router_unsubscribe(router, 1, b.subscription));
		EXPECT_NONE(send(router, &a, step, count, &arrived));
		EXPECT(arrived.is_marked, "a dispatch to other receivers is not told");
		EXPECT_OK(evc_router_set_observer(router, &observer));
		EXPECT_NONE(send(router, &a, step, count, &arrived));
		EXPECT(arrived.is_marked, "a dispatch after a new observer is not told");
	}
	evc_router_destroy(router);
	evc_mailbox_release(a.mailbox);
	evc_mailbox_release(b.mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

static const char *through_balancer(void)
{
	struct evc_tally tally = { 0 };
	struct observed observed = { .tally = &tally, .left = 1 };
	struct evc_observer observer = { &observed, note };
	struct evc_balancer_options options = { .size = sizeof(options) };
	struct suite_receiver receiver;
	struct evc_balancer *balancer;
	struct evc_router *router;
	struct evc_load load = { 0 };
	struct arrived arrived;

	EXPECT_OK(evc_balancer_create(&options, &balancer));
	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_STATUS(evc_balancer_add(balancer, receiver.subscription, EVC_GENERATION_MAX + 1, false, &load),
		      EVC_INVALID_ARGUMENT);
	EXPECT_OK(evc_balancer_add(balancer, receiver.subscription, EVC_GENERATION_MAX, false, &load));
	EXPECT_OK(evc_router_subscribe(router, 1, evc_balancer_subscription(balancer), 1, false));
	EXPECT_NONE(send(router, &receiver, 0, 1, &arrived));
	EXPECT_OK(evc_router_set_observer(router, &observer));
	for (unsigned i = 0; i < 6; i++) {
		EXPECT_NONE(send(router, &receiver, 0, 1, &arrived));
		EXPECT(arrived.is_marked == (i % 2 == 0), "the balancer lost the mark, or made one");
		EXPECT_EQUAL(arrived.generation, EVC_GENERATION_MAX, "the generation of the receiver");
	}
	evc_router_destroy(router);
	evc_balancer_release(balancer);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

/* What user code inside a dispatch is told when it wants to end the thread's part, or the core. */
struct leaver {
	unsigned calls;
	enum evc_status left, ended;
};

static void leave(struct leaver *leaver)
{
	leaver->calls++;
	leaver->left = evc_unregister_thread();
	leaver->ended = evc_shutdown();
}

static void leave_in_note(void *context, uint64_t key, uint32_t events, bool timed, struct evc_note *note)
{
	(void)key, (void)events, (void)timed, (void)note;
	leave(context);
}

static uint64_t leave_in_clock(void *context)
{
	leave(context);
	return 5;
}

/* 0: as bytes; 1: in place; 2: of three events; 3: as a batch; 4: without waiting. */
static const char *leave_by(struct evc_router *router, struct suite_receiver *receiver, unsigned way)
{
	struct evc_envelope *envelope;
	struct evc_dispatch dispatch;
	uint64_t value = 7, *place;

	if (way == 0) {
		EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8, NULL));
	} else if (way == 1) {
		place = evc_dispatch_begin_one(router, 1, EVC_LANE_QUEUE_NORMAL, sizeof(value), 8);
		EXPECT(place != NULL, "the fast path was not taken");
		*place = value;
		EXPECT_EQUAL(evc_dispatch_commit_one(place), 1, "acceptances");
	} else if (way < 4) {
		EXPECT_OK((way == 2 ? evc_dispatch_begin : evc_dispatch_begin_batch)(
			router, 1, EVC_LANE_QUEUE_NORMAL, sizeof(value), 8, 3, &dispatch));
		EXPECT((dispatch.array != NULL) == (way == 3), "another path was taken (way %u)", way);
		envelope = dispatch.first;
		for (uint32_t i = 0; i < dispatch.payloads; i++) {
			if (dispatch.array != NULL) {
				((uint64_t *)dispatch.array)[i] = value;
				continue;
			}
			*(uint64_t *)evc_envelope_payload(envelope) = value;
			envelope = evc_dispatch_next(envelope);
		}
		EXPECT_EQUAL(evc_dispatch_commit(&dispatch), 3, "acceptances");
	} else {
		EXPECT_OK(evc_try_dispatch(router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value), 8, NULL));
	}
	EXPECT_STATUS(evc_mailbox_pump(receiver->mailbox, 16), EVC_EMPTY);
	return NULL;
}

static const char *leaves_inside(bool by_clock)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .polled = true, .batches = true };
	struct leaver leaver = { 0 };
	struct evc_observer observer = { &leaver, leave_in_note };
	struct evc_clock clock = { &leaver, leave_in_clock };
	struct suite_receiver receiver;
	struct evc_router *router;

	EXPECT_NONE(suite_receiver_open(&receiver, &options));
	EXPECT_NONE(suite_receiver_make_plain(&receiver));
	EXPECT_OK(evc_router_create(&router));
	if (by_clock)
		EXPECT_OK(evc_router_set_clock(router, &clock));
	else
		EXPECT_OK(evc_router_set_observer(router, &observer));
	EXPECT_OK(evc_router_subscribe(router, 1, receiver.subscription, 1, by_clock));
	EXPECT_OK(evc_reserve(16));
	/* Has the route in the cache. */
	EXPECT_NONE(leave_by(router, &receiver, 0));
	/* evc_try_dispatch tells no observer. */
	for (unsigned way = 0; way < (by_clock ? 5 : 4); way++) {
		leaver = (struct leaver){ .left = EVC_OK, .ended = EVC_OK };
		EXPECT_NONE(leave_by(router, &receiver, way));
		EXPECT_EQUAL(leaver.calls, 1, "calls in a dispatch");
		EXPECT(leaver.left == EVC_NOT_PERMITTED, "the thread was unregistered in its own dispatch (way %u)", way);
		EXPECT(leaver.ended == EVC_NOT_PERMITTED, "the core was ended in a dispatch (way %u)", way);
	}
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "no grace period within the limit");
	return NULL;
}

static const char *leaves_inside_note(void)
{
	return leaves_inside(false);
}

static const char *leaves_inside_clock(void)
{
	return leaves_inside(true);
}

static const struct evc_suite_test tests[] = {
	{ "D7 an observer cannot unregister the thread, nor end the core, in the dispatch it is told of", leaves_inside_note },
	{ "D7 nor can the clock of a router, in the dispatch that reads it", leaves_inside_clock },
	{ "an observer is told of each dispatch while there is one, and gives the events their time", told },
	{ "an observer can have dispatches counted in place of being told, and marks those it is told of", counted },
	{ "an observer is told of the first dispatch of each origin, and after each change", told_again },
	{ "a balancer hands the mark of an event on", through_balancer },
};
SUITE_GROUP(suite_observer, tests);
#endif
