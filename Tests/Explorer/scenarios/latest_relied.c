/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Latest-only: a dispatch that relies on the token of another producer, which is held up before it tells the
 * consumer. When the dispatch has returned, the event can be taken (D1).
 */
#include "post.h"

static struct evc_router *router;
static struct evc_subscription *subscription;
static _Atomic bool has_returned;

static void *post_first(void *unused)
{
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

static void *post_and_say(void *unused)
{
	(void)post(router, 1, EVC_LANE_QUEUE_NORMAL);
	atomic_store_explicit(&has_returned, true, memory_order_release);
	return unused;
}

/* The other producer goes on at the end, so that it does not tell the consumer before. */
static void start(pthread_t threads[2])
{
	subscribe(router, subscription);
	threads[0] = explorer_start(post_first, NULL);
	threads[1] = explorer_start(post_and_say, NULL);
	while (!atomic_load_explicit(&has_returned, memory_order_acquire))
		sched_yield();
}

static void end(pthread_t threads[2])
{
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	CHECK(evc_router_unsubscribe(router, KEY, subscription) == EVC_OK);
	evc_latest_subscription_release(subscription);
	evc_router_destroy(router);
}

SCENARIO(latest_relied_on)
{
	struct evc_subscription_options options = tally_options();
	struct evc_mailbox *mailbox = make_mailbox(NULL);
	pthread_t threads[2];

	router = make_router();
	CHECK(evc_mailbox_add_latest_subscription(mailbox, &options, &subscription) == EVC_OK);
	start(threads);
	if (take_one(mailbox) < 0)
		explorer_fail("a dispatch has returned, and nothing is there");
	end(threads);
	while (take_one(mailbox) >= 0)
		;
	evc_mailbox_release(mailbox);
	explorer_settle();
	tally_check_once(0, EVENTS);
}

static bool deliver(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	(void)worker, (void)context, (void)payload, (void)envelope, (void)owned;
	return false;
}

static bool take_as(struct evc_worker *worker)
{
	struct evc_envelope *envelope;

	if (evc_worker_take(worker, &envelope) != EVC_OK)
		return false;
	tally_handled(evc_envelope_payload(envelope));
	evc_worker_recycle(worker, envelope, true);
	return true;
}

SCENARIO(shared_latest_relied_on)
{
	struct evc_shared_subscription_options options = { .size = sizeof(options), .deliver = deliver, .drop = tally_options().drop };
	struct evc_shared_mailbox *mailbox;
	struct evc_worker *worker;
	pthread_t threads[2];

	router = make_router();
	CHECK(evc_shared_mailbox_create(&mailbox) == EVC_OK);
	CHECK(evc_worker_create(mailbox, NULL, &worker) == EVC_OK);
	CHECK(evc_shared_mailbox_add_latest_subscription(mailbox, &options, &subscription) == EVC_OK);
	start(threads);
	if (!take_as(worker))
		explorer_fail("a dispatch has returned, and nothing is there");
	end(threads);
	while (take_as(worker))
		;
	evc_worker_destroy(worker);
	evc_shared_mailbox_release(mailbox);
	explorer_settle();
	tally_check_once(0, EVENTS);
}
