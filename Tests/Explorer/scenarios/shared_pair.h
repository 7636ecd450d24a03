/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A shared mailbox behind a router, with up to two workers, for scenarios of two parties. Each file of scenarios has its
 * own.
 */
#ifndef EXPLORER_SHARED_PAIR_H
#define EXPLORER_SHARED_PAIR_H

#include "post.h"

static struct evc_router *router;
static struct evc_shared_mailbox *mailbox;
static struct evc_subscription *subscription;
static struct evc_worker *workers[2];

/* Each event is handled once, and its payload moved out. */
static inline void take_over(struct event *event)
{
	CHECK(event->number == event->again && event->number < EVENTS);
	tally_handled(event);
	event->number = event->again = EVENTS;
}

static inline void open_pair(unsigned count, const struct evc_mailbox_options *options, bool latest,
			     bool (*deliver)(void *, void *, void *, struct evc_envelope *, bool))
{
	struct evc_shared_subscription_options tallied = { .size = sizeof(tallied), .deliver = deliver, .drop = tally_options().drop };

	router = make_router();
	CHECK(evc_shared_mailbox_create(&mailbox) == EVC_OK);
	CHECK((latest ? evc_shared_mailbox_add_latest_subscription
		      : evc_shared_mailbox_add_subscription)(mailbox, &tallied, &subscription) == EVC_OK);
	subscribe(router, subscription);
	for (unsigned i = 0; i < count; i++)
		CHECK(evc_worker_create(mailbox, options, &workers[i]) == EVC_OK);
}

static inline void tear_down(unsigned count)
{
	explorer_forbid_idling(false);
	for (unsigned i = 0; i < count; i++)
		evc_worker_destroy(workers[i]);
	evc_router_destroy(router);
	evc_shared_mailbox_release(mailbox);
	explorer_settle();
	tally_check_once(0, EVENTS);
}

static inline void *run_worker(void *worker)
{
	CHECK(evc_worker_run(worker) == EVC_CLOSED);
	return NULL;
}

#endif
