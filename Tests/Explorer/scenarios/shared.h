/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Shared by the scenarios of a shared mailbox with two workers and two producers. Each file has its own copy. */
#ifndef EXPLORER_SHARED_H
#define EXPLORER_SHARED_H

#include "post.h"

static struct evc_router *router;
static struct evc_shared_mailbox *mailbox;
static struct evc_subscription *subscription;
static struct evc_worker *workers[2];
static struct producer producers[2];

static inline bool deliver(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	struct event *event = payload;

	(void)worker;
	(void)context;
	(void)envelope;
	(void)owned;
	CHECK(event->number == event->again && event->number < EVENTS);
	tally_handled(event);
	return false;
}

/* Before set_up. */
static bool (*deliver_to)(void *, void *, void *, struct evc_envelope *, bool) = deliver;

static inline void drop_unhandled(void *context, void *payload)
{
	const struct event *event = payload;

	/* Also for events that were handled and not moved out. */
	if (!tally_was_handled(event->number))
		tally_options().drop(context, payload);
}

static inline void set_up_bounded(uint64_t capacity, enum evc_overflow overflow, bool latest)
{
	struct evc_shared_subscription_options options = { .size = sizeof(options), .deliver = deliver_to, .drop = drop_unhandled };

	router = make_router();
	CHECK(evc_shared_mailbox_create_bounded(capacity, overflow, EVC_FOREVER, &mailbox) == EVC_OK);
	if (latest)
		CHECK(evc_shared_mailbox_add_latest_subscription(mailbox, &options, &subscription) ==
		      EVC_OK);
	else
		CHECK(evc_shared_mailbox_add_subscription(mailbox, &options, &subscription) == EVC_OK);
	subscribe(router, subscription);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(evc_worker_create(mailbox, NULL, &workers[i]) == EVC_OK);
		producers[i] = (struct producer){ router, i * 4, 2,
						  { EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL,
						    EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL } };
	}
}

static inline void set_up(bool latest)
{
	set_up_bounded(0, EVC_OVERFLOW_REFUSE, latest);
}

static inline void *run_worker(void *worker)
{
	CHECK(evc_worker_run(worker) == EVC_CLOSED);
	return NULL;
}

static inline void tear_down(void)
{
	explorer_forbid_idling(false);
	for (unsigned i = 0; i < 2; i++)
		evc_worker_destroy(workers[i]);
	evc_router_destroy(router);
	evc_shared_mailbox_release(mailbox);
	explorer_settle();
	tally_check_once(0, EVENTS);
}

/* Two producers, two workers that run; then the mailbox closes once all is handled. */
static inline void run_two(void (*close)(struct evc_shared_mailbox *), bool early)
{
	pthread_t threads[4];

	explorer_forbid_idling(true);
	for (unsigned i = 0; i < 2; i++)
		threads[2 + i] = explorer_start(run_worker, workers[i]);
	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(produce, &producers[i]);
	if (early)
		close(mailbox);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	if (!early)
		close(mailbox);
	for (unsigned i = 2; i < 4; i++)
		explorer_join(threads[i]);
}

/* Takes one as a worker; its number, or -1. */
static inline int take_as(struct evc_worker *worker)
{
	struct evc_envelope *envelope;
	struct event event;

	if (evc_worker_take(worker, &envelope) != EVC_OK)
		return -1;
	event = *(struct event *)evc_envelope_payload(envelope);
	CHECK(event.number == event.again && event.number < EVENTS);
	tally_handled(&event);
	evc_worker_recycle(worker, envelope, true);
	return (int)event.number;
}

#endif
