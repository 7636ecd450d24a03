/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The parker: no wake-up is lost, and what a waker wrote before is visible after it. */
#include "explorer.h"

#include "eventcore/parker.h"

static struct evc_parker *parker;
static _Atomic int news;
static int message;

/* Publishes without an order: that of the parker must suffice (parker.c). */
static void *publish_and_wake(void *count)
{
	for (int i = 0; i < *(int *)count; i++) {
		atomic_fetch_add_explicit(&news, 1, memory_order_relaxed);
		(void)evc_parker_wake(parker);
	}
	return NULL;
}

static void sleep_for_news(const struct evc_parker_ops *ops)
{
	static int each = 2;
	pthread_t threads[2];

	CHECK(evc_parker_create(ops, &parker) == EVC_OK);
	explorer_forbid_idling(true);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(publish_and_wake, &each);
	for (;;) {
		uint32_t ticket = evc_parker_prepare(parker);

		if (atomic_load_explicit(&news, memory_order_relaxed) == 4)
			break;
		CHECK(evc_parker_wait(parker, ticket, EVC_FOREVER) == EVC_OK);
	}
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	evc_parker_destroy(parker);
}

SCENARIO(parker_futex)
{
	sleep_for_news(evc_parker_futex());
}

SCENARIO(parker_posix)
{
	sleep_for_news(evc_parker_posix());
}

static void *write_and_wake(void *unused)
{
	message = 1;
	(void)evc_parker_wake(parker);
	return unused;
}

/* A wait that a wake-up ended sees what came before that. */
static void message_before_wake(const struct evc_parker_ops *ops, uint64_t limit)
{
	pthread_t thread;
	uint32_t ticket;

	CHECK(evc_parker_create(ops, &parker) == EVC_OK);
	ticket = evc_parker_prepare(parker);
	thread = explorer_start(write_and_wake, NULL);
	if (evc_parker_wait(parker, ticket, limit) == EVC_OK)
		CHECK(message == 1);
	else
		CHECK(limit != EVC_FOREVER);
	explorer_join(thread);
	evc_parker_destroy(parker);
}

SCENARIO(parker_message)
{
	message_before_wake(evc_parker_futex(), EVC_FOREVER);
}

SCENARIO(parker_message_posix)
{
	message_before_wake(evc_parker_posix(), EVC_FOREVER);
}

SCENARIO(parker_limit)
{
	message_before_wake(evc_parker_futex(), 1000);
}

SCENARIO(parker_limit_posix)
{
	message_before_wake(evc_parker_posix(), 1000);
}

/* Looks, sleeps, looks again after a limit: a wake-up on its way makes the next wait return at once. */
static void *wake_only(void *unused)
{
	(void)evc_parker_wake(parker);
	return unused;
}

SCENARIO(parker_wake_stays)
{
	pthread_t thread;
	uint32_t ticket;

	CHECK(evc_parker_create(NULL, &parker) == EVC_OK);
	ticket = evc_parker_prepare(parker);
	thread = explorer_start(wake_only, NULL);
	if (evc_parker_wait(parker, ticket, 1000) == EVC_TIMED_OUT)
		CHECK(evc_parker_wait(parker, ticket, EVC_FOREVER) == EVC_OK);
	explorer_join(thread);
	evc_parker_destroy(parker);
}
