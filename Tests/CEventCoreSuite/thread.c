/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* For pthread_getname_np. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bounded.h"

#include "memory/thread_record.h"

#include <sched.h>
#include <string.h>

struct script {
	struct suite_receiver receiver;
	struct evc_router *router;
	struct evc_thread *thread;
	struct suite_gate started;
	_Atomic uint64_t calls;
	/* Written by the handler, read after the join. */
	enum evc_status status;
	char name[16];
};

static const char *start(struct script *script, const struct evc_thread_options *options,
			 bool (*handler)(void *, void *, const struct evc_envelope *, bool))
{
	static const struct suite_gate shut = SUITE_GATE;

	memset(script, 0, sizeof(*script));
	script->started = shut;
	EXPECT_NONE(suite_receiver_open(&script->receiver, NULL));
	if (handler != NULL)
		EXPECT_NONE(suite_receiver_add(&script->receiver, handler, script,
					       &script->receiver.subscription));
	EXPECT_OK(evc_router_create(&script->router));
	EXPECT_OK(evc_router_subscribe(script->router, 1, script->receiver.subscription, 0, false));
	EXPECT_OK(evc_thread_start(options, script->receiver.mailbox, &script->thread));
	suite_gate_open(&script->started);
	return NULL;
}

static const char *end(struct script *script)
{
	EXPECT_OK(evc_thread_join(script->thread));
	evc_router_destroy(script->router);
	evc_mailbox_release(script->receiver.mailbox);
	return NULL;
}

static bool join_itself(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct script *script = context;

	(void)payload, (void)envelope, (void)owned;
	(void)suite_gate_pass(&script->started);
	script->status = evc_thread_join(script->thread);
	pthread_getname_np(pthread_self(), script->name, sizeof(script->name));
	evc_thread_cancel(script->thread);
	return true;
}

static const char *not_itself(void)
{
	struct evc_thread_options options = { .size = sizeof(options), .name = "a name of more than fifteen bytes" };
	static struct script script;

	EXPECT_NONE(start(&script, &options, join_itself));
	EXPECT_OK(suite_post(&script.receiver, 7, 1));
	EXPECT_NONE(end(&script));
	EXPECT_EQUAL(script.status, EVC_NOT_PERMITTED, "the status of a thread that joins itself");
	EXPECT(strcmp(script.name, "a name of more ") == 0, "expected a cut name, found \"%s\"",
	       script.name);
	return NULL;
}

/* Each event dispatches the next, subscribes and unsubscribes, all inside the handler. */
static bool dispatch_next(void *context, void *payload, const struct evc_envelope *envelope,
			  bool owned)
{
	struct script *script = context;
	struct evc_subscription *own = script->receiver.subscription;
	uint64_t value;

	(void)envelope, (void)owned;
	memcpy(&value, payload, sizeof(value));
	/* The last event ends the thread, while two events wait that will not be handled. */
	if (value == 1000) {
		(void)suite_post(&script->receiver, 9, 0);
		(void)suite_post(&script->receiver, 0, 0);
		(void)suite_gate_pass(&script->started);
		evc_thread_cancel(script->thread);
		return true;
	}
	value++;
	script->status = evc_router_subscribe(script->router, 2 + value % 5, own, 0, false);
	if (script->status == EVC_OK)
		script->status = evc_dispatch_bytes(script->router, 2 + value % 5,
						    (enum evc_lane)(value % 10), &value,
						    sizeof(value), 8, NULL);
	if (script->status == EVC_OK)
		script->status = evc_router_unsubscribe(script->router, 2 + value % 5, own);
	/* Never a nested call: otherwise the count would be ahead of the event's number. */
	if (atomic_fetch_add(&script->calls, 1) + 1 != value)
		script->status = EVC_NOT_PERMITTED;
	return true;
}

static const char *from_inside(void)
{
	struct evc_mailbox_statistics statistics;
	static struct script script;

	EXPECT_NONE(start(&script, NULL, dispatch_next));
	EXPECT_OK(suite_post(&script.receiver, 7, 0));
	EXPECT_OK(evc_thread_join(script.thread));
	EXPECT_OK(script.status);
	EXPECT_EQUAL(script.calls, 1000, "events that dispatched another");
	evc_mailbox_read_statistics(script.receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, 1001, "events taken");
	EXPECT_EQUAL(statistics.dropped, 2, "events dropped");
	evc_router_destroy(script.router);
	evc_mailbox_release(script.receiver.mailbox);
	return NULL;
}

static const char *keeps_its_mailbox(void)
{
	static struct script script;

	EXPECT_NONE(start(&script, NULL, NULL));
	/* The router's and the thread's references remain. */
	evc_mailbox_release(script.receiver.mailbox);
	EXPECT_OK(suite_post(&script.receiver, 7, 1));
	EXPECT(suite_await(&script.receiver.delivered, 1), "the event did not come");
	evc_router_destroy(script.router);
	evc_thread_cancel(script.thread);
	EXPECT_OK(evc_thread_join(script.thread));
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	EXPECT_EQUAL(script.receiver.finalized, 1, "calls of finalize");
	return NULL;
}

static const char *options(void)
{
	struct evc_thread_options pinned = { .size = sizeof(pinned), .processor = 1, .stack_size = 1 << 20 };
	struct evc_thread_options nowhere = { .size = sizeof(nowhere), .processor = 1000000 };
	struct evc_thread_options tiny = { .size = sizeof(tiny), .stack_size = 1 };
	struct evc_thread_options urgent = { .size = sizeof(urgent), .realtime_priority = 1 };
	struct suite_receiver receiver;
	static struct script script;
	struct evc_thread *thread;
	enum evc_status status;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
#if defined(__linux__) && defined(__GLIBC__)
	EXPECT_NONE(start(&script, &pinned, NULL));
	evc_thread_cancel(script.thread);
	EXPECT_NONE(end(&script));
	EXPECT_STATUS(evc_thread_start(&nowhere, receiver.mailbox, &thread), EVC_INVALID_ARGUMENT);
#else
	(void)script;
	EXPECT_STATUS(evc_thread_start(&nowhere, receiver.mailbox, &thread), EVC_UNSUPPORTED);
	EXPECT_STATUS(evc_thread_start(&pinned, receiver.mailbox, &thread), EVC_UNSUPPORTED);
#endif
	EXPECT_STATUS(evc_thread_start(&tiny, receiver.mailbox, &thread), EVC_INVALID_ARGUMENT);
	/* Depends on the privileges of the user that runs the test. */
	status = evc_thread_start(&urgent, receiver.mailbox, &thread);
	EXPECT(status == EVC_OK || status == EVC_NOT_PERMITTED, "real-time priority: found \"%s\"",
	       evc_status_text(status));
	if (status == EVC_OK) {
		evc_thread_cancel(thread);
		EXPECT_OK(evc_thread_join(thread));
	}
	evc_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.finalized, 1, "calls of finalize after refused threads");
	return NULL;
}

static void wake(void *context)
{
	(void)context;
}

/* The thread is the consumer from its start to its end, whether it runs already or not. */
static const char *alone(void)
{
	struct evc_thread_options tiny = { .size = sizeof(tiny), .stack_size = 1 };
	struct evc_mailbox_options pumped = { .size = sizeof(pumped), .wake = wake };
	static struct script script;
	struct suite_receiver receiver;
	struct evc_thread *second;

	EXPECT_NONE(start(&script, NULL, NULL));
	EXPECT_STATUS(evc_thread_start(NULL, script.receiver.mailbox, &second), EVC_NOT_PERMITTED);
	EXPECT_STATUS(evc_mailbox_pump(script.receiver.mailbox, 1), EVC_NOT_PERMITTED);
	EXPECT_STATUS(evc_mailbox_run(script.receiver.mailbox), EVC_NOT_PERMITTED);
	EXPECT_OK(suite_post(&script.receiver, 7, 1));
	EXPECT(suite_await(&script.receiver.delivered, 1), "the event did not come");
	evc_thread_cancel(script.thread);
	EXPECT_OK(evc_thread_join(script.thread));
	EXPECT_STATUS(evc_mailbox_pump(script.receiver.mailbox, 1), EVC_CLOSED);
	evc_router_destroy(script.router);
	evc_mailbox_release(script.receiver.mailbox);
	/* One that does not start leaves the mailbox to others; one that could not run is not started. */
	EXPECT_NONE(suite_receiver_open(&receiver, &pumped));
	EXPECT_STATUS(evc_thread_start(NULL, receiver.mailbox, &second), EVC_INVALID_ARGUMENT);
	evc_mailbox_release(receiver.mailbox);
	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_STATUS(evc_thread_start(&tiny, receiver.mailbox, &second), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_pump(receiver.mailbox, 1), EVC_EMPTY);
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static bool detach_itself(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct script *script = context;

	(void)payload, (void)envelope, (void)owned;
	(void)suite_gate_pass(&script->started);
	evc_thread_cancel(script->thread);
	script->status = evc_thread_detach(script->thread);
	return true;
}

/* Waits until a thread that nobody joins has freed itself. */
static const char *freed_itself(struct script *script)
{
	uint64_t end = evc_clock_now() + SUITE_LIMIT_NS;

	evc_router_destroy(script->router);
	evc_mailbox_release(script->receiver.mailbox);
	while (suite_allocator_read().live > 0 && evc_clock_now() < end) {
		EXPECT(suite_quiesce(), "no grace period within the limit");
		sched_yield();
	}
	EXPECT_EQUAL(suite_allocator_read().live, 0, "blocks that are left");
	EXPECT_EQUAL(script->receiver.finalized, 1, "calls of finalize");
	suite_allocator_restore();
	return NULL;
}

static const char *detached(void)
{
	static struct script script;

	EXPECT_STATUS(evc_thread_detach(NULL), EVC_INVALID_ARGUMENT);
	/* By itself; by another thread while it runs; by another, once it has ended or is about to. */
	for (unsigned way = 0; way < 3; way++) {
		suite_allocator_install(0, 0);
		EXPECT_NONE(start(&script, NULL, way == 0 ? detach_itself : NULL));
		EXPECT_OK(suite_post(&script.receiver, 7, 1));
		if (way != 0)
			EXPECT(suite_await(&script.receiver.delivered, 1), "the event did not come");
		if (way == 2) {
			evc_thread_cancel(script.thread);
			while (evc_mailbox_pump(script.receiver.mailbox, 1) == EVC_NOT_PERMITTED)
				sched_yield();
		}
		if (way != 0)
			EXPECT_OK(evc_thread_detach(script.thread));
		if (way == 1)
			evc_mailbox_close(script.receiver.mailbox);
		EXPECT_NONE(freed_itself(&script));
		EXPECT_OK(script.status);
	}
	return NULL;
}

/*
 * What ends with a payload that a full mailbox drops may unregister its thread. What the thread had kept is another one's
 * from then on.
 */
struct leaver {
	struct suite_gate adopted, posted;
	pthread_t thread;
	enum evc_status left;
	uint32_t dropped;
};

static void *adopt(void *opaque)
{
	struct leaver *leaver = opaque;
	uint32_t before;

	if (evc_reserve(1) == EVC_OK) {
		before = evc_thread_record_current->overflow.dropped;
		suite_gate_open(&leaver->adopted);
		(void)suite_gate_pass(&leaver->posted);
		leaver->dropped = evc_thread_record_current->overflow.dropped - before;
	}
	return NULL;
}

static void leave_and_wait(void *context, void *payload)
{
	struct leaver *leaver = context;

	(void)payload;
	leaver->left = evc_unregister_thread();
	if (pthread_create(&leaver->thread, NULL, adopt, leaver) == 0)
		(void)suite_gate_pass(&leaver->adopted);
}

static bool ignore_event(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	return true;
}

static const char *leaves_in_a_drop(void)
{
	struct leaver leaver = { SUITE_GATE, SUITE_GATE, .left = EVC_CLOSED, .dropped = UINT32_MAX };
	struct evc_subscription_options options = { .size = sizeof(options), .context = &leaver,
						    .deliver = ignore_event, .drop = leave_and_wait };
	struct suite_receiver receiver;

	EXPECT_NONE(open_bounded(&receiver, EVC_OVERFLOW_DROP_NEWEST, 1));
	EXPECT_OK(evc_mailbox_add_subscription(receiver.mailbox, &options, &receiver.subscription));
	EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_NORMAL, 1));
	EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_NORMAL, 2));
	suite_gate_open(&leaver.posted);
	EXPECT_EQUAL(pthread_join(leaver.thread, NULL), 0, "joined");
	EXPECT_OK(leaver.left);
	EXPECT_EQUAL(leaver.dropped, 0, "dropped by a thread that has posted nothing");
	EXPECT_NONE(expect_counts(&receiver, (struct counts){ 2, 0, 1, 0, 1, 1 }));
	EXPECT_EQUAL(evc_mailbox_pump(receiver.mailbox, 10), EVC_EMPTY, "pumped");
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D6 a thread cannot join itself, but may end itself", not_itself },
	{ "D7 a handler dispatches, subscribes, unsubscribes and ends its own thread", from_inside },
	{ "D9 a running thread keeps its mailbox", keeps_its_mailbox },
	{ "D9 a thread that is detached, also by its own handler, frees itself", detached },
	{ "a thread may be unregistered where a full mailbox drops its event", leaves_in_a_drop },
	{ "D12 thread options that cannot be had are a status, and leave nothing", options },
	{ "D12 a thread's mailbox takes no second consumer before the thread has ended", alone },
};
SUITE_GROUP(suite_thread, tests);
#endif
