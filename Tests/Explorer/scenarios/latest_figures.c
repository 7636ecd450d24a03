/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Latest-only: what a mailbox counts at rest, after two producers of one lane, of which one has taken the other's claim
 * over. Then two tokens wait, or one for no event.
 */
#include "post.h"

static struct evc_router *router;
static struct evc_mailbox *mailbox;
static struct evc_subscription *subscription;

static void *post_zero(void *unused)
{
	(void)post(router, 0, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

static void *post_one(void *unused)
{
	(void)post(router, 1, EVC_LANE_QUEUE_NORMAL);
	return unused;
}

static void *take_first(void *unused)
{
	(void)take_one(mailbox);
	return unused;
}

static void start(pthread_t threads[2])
{
	router = make_router();
	subscribe(router, subscription);
	threads[0] = explorer_start(post_zero, NULL);
	threads[1] = explorer_start(post_one, NULL);
}

static void end(void)
{
	CHECK(evc_router_unsubscribe(router, KEY, subscription) == EVC_OK);
	evc_latest_subscription_release(subscription);
	evc_router_destroy(router);
}

static void check(struct evc_mailbox_statistics found, uint64_t taken, uint64_t waiting)
{
	if (found.taken != taken || found.waiting != waiting || found.accepted != 2)
		explorer_fail("%d of 2 events were accepted, %d taken; %d wait", (int)found.accepted, (int)found.taken,
			      (int)found.waiting);
}

static void check_mailbox(uint64_t taken, uint64_t waiting)
{
	struct evc_mailbox_statistics found;

	evc_mailbox_read_statistics(mailbox, &found);
	check(found, taken, waiting);
}

static void at_rest(bool is_taken)
{
	struct evc_subscription_options options = tally_options();
	pthread_t threads[3];

	mailbox = make_mailbox(NULL);
	CHECK(evc_mailbox_add_latest_subscription(mailbox, &options, &subscription) == EVC_OK);
	start(threads);
	if (is_taken)
		threads[2] = explorer_start(take_first, NULL);
	for (unsigned i = 0; i < (is_taken ? 3u : 2u); i++)
		explorer_join(threads[i]);
	if (is_taken) {
		uint64_t superseded = evc_latest_subscription_superseded(subscription);

		check_mailbox(tally_count_handled(), 2 - tally_count_handled() - superseded);
	} else {
		check_mailbox(0, 1);
	}
	while (take_one(mailbox) >= 0)
		;
	check_mailbox(tally_count_handled(), 0);
	end();
	evc_mailbox_release(mailbox);
	explorer_settle();
	tally_check_once(0, EVENTS);
}

SCENARIO(latest_figures_at_rest)
{
	at_rest(false);
}

SCENARIO(latest_figures_after_take)
{
	at_rest(true);
}

static bool deliver(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	(void)worker, (void)context, (void)payload, (void)envelope, (void)owned;
	return false;
}

SCENARIO(shared_latest_figures_at_rest)
{
	struct evc_shared_subscription_options options = { .size = sizeof(options), .deliver = deliver };
	struct evc_mailbox_statistics found;
	struct evc_shared_mailbox *shared;
	pthread_t threads[2];

	CHECK(evc_shared_mailbox_create(&shared) == EVC_OK);
	CHECK(evc_shared_mailbox_add_latest_subscription(shared, &options, &subscription) == EVC_OK);
	start(threads);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	evc_shared_mailbox_read_statistics(shared, &found);
	check(found, 0, 1);
	end();
	evc_shared_mailbox_release(shared);
	explorer_settle();
}
