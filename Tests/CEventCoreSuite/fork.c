/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A child of fork goes on using the core, although the callback thread and all event threads stayed in the
 * parent.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include "eventcore/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#ifdef SUITE_THREAD_SANITIZER
#define CHILDREN (getenv("TSAN_OPTIONS") && strstr(getenv("TSAN_OPTIONS"), "die_after_fork=0") ? 5u : 0u)
#else
#define CHILDREN 5u
#endif

#define BURST 20000u

/* Whatever is returned schedules a trim while there is a surplus. */
static const char *send_burst(struct suite_receiver *receiver)
{
	uint64_t value;
	unsigned lane;

	for (unsigned i = 0; i < BURST; i++)
		EXPECT_OK(suite_post(receiver, EVC_LANE_QUEUE_LOW, i));
	for (unsigned i = 0; i < BURST; i++)
		EXPECT_OK(suite_take(receiver, &lane, &value));
	return NULL;
}

/* The parent has scheduled a trim, and its thread is not here: the child's schedules one of its own. */
static const char *trim(struct suite_receiver *receiver)
{
	struct evc_pool_statistics before, now;

	evc_pool_read_statistics(&before);
	do {
		EXPECT_NONE(send_burst(receiver));
		evc_pool_read_statistics(&now);
	} while (now.trims == before.trims);
	return NULL;
}

static const char *use(struct evc_router *router, struct suite_receiver *receiver)
{
	struct suite_receiver fresh;
	struct evc_thread *thread;
	uint64_t value = 42;
	unsigned lane;

#ifndef SUITE_ADDRESS_SANITIZER
	/* If it never is, `alarm` ends the child. */
	EXPECT_NONE(trim(receiver));
#endif
	EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_LOW, &value, 8, 8, NULL));
	value = 0;
	EXPECT_OK(suite_take(receiver, &lane, &value));
	EXPECT_EQUAL(value, 42, "the event");
	EXPECT_NONE(suite_receiver_open(&fresh, NULL));
	EXPECT_OK(evc_router_subscribe(router, 1, fresh.subscription, 0, false));
	EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_LOW, &value, 8, 8, NULL));
	EXPECT_OK(suite_take(&fresh, &lane, &value));
	EXPECT_OK(evc_router_unsubscribe(router, 1, fresh.subscription));
	EXPECT(suite_quiesce(), "no grace period came to an end");
	EXPECT_OK(evc_thread_start(NULL, fresh.mailbox, &thread));
	EXPECT_OK(suite_post(&fresh, 7, 1));
	EXPECT(suite_await(&fresh.delivered, 1), "the child's event thread got nothing");
	evc_thread_cancel(thread);
	EXPECT_OK(evc_thread_join(thread));
	return NULL;
}

struct scene {
	struct evc_router *router;
	struct suite_receiver *receiver;
};

static int in_child(void *context)
{
	const struct scene *scene = context;
	const char *message = use(scene->router, scene->receiver);

	if (message != NULL)
		fputs(message, stderr);
	return message != NULL;
}

static const char *forked(void)
{
	struct suite_receiver receiver, busy;
	struct scene scene = { .receiver = &receiver };
	struct evc_router *router;
	struct evc_thread *thread;
	char said[SUITE_SAID];
	uint64_t value;
	unsigned lane;
	int status;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_NONE(suite_receiver_open(&busy, NULL));
	EXPECT_OK(evc_router_create(&router));
	scene.router = router;
	EXPECT_OK(evc_router_subscribe(router, 1, receiver.subscription, 0, false));
	EXPECT_OK(evc_thread_start(NULL, busy.mailbox, &thread));
	/* The callback thread runs, and this thread has a record and a warm cache. */
	EXPECT_OK(evc_router_subscribe(router, 1, receiver.subscription, 1, false));
	EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_LOW, "12345678", 8, 1, NULL));
	EXPECT_OK(suite_take(&receiver, &lane, &value));
	/*
	 * ThreadSanitizer ends a child of fork that starts a thread, as the core does, unless TSAN_OPTIONS
	 * contains die_after_fork=0: only the parent's side is run there.
	 */
	for (unsigned i = 0; i < CHILDREN; i++) {
		EXPECT_NONE(send_burst(&receiver));
		EXPECT_NONE(suite_in_child(in_child, &scene, &status, said));
		EXPECT(!WIFSIGNALED(status), "the child was ended by signal %d: %.200s", WTERMSIG(status), said);
		EXPECT(WEXITSTATUS(status) == 0, "in the child: %.200s", said);
	}
	/* The parent is not affected. */
	EXPECT_OK(suite_post(&busy, 7, 1));
	EXPECT(suite_await(&busy.delivered, 1), "the parent's event thread got stuck");
	EXPECT(suite_quiesce(), "the parent's callback thread got stuck");
	EXPECT_EQUAL(evc_router_count(router, 1), 1, "the parent's subscriptions");
	evc_thread_cancel(thread);
	EXPECT_OK(evc_thread_join(thread));
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	evc_mailbox_release(busy.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "a child of fork dispatches, subscribes, starts threads and exits", forked },
};
SUITE_GROUP(suite_fork, tests);
#endif
