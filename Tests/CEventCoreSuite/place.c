/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "place.h"

#include <string.h>

static bool hear(void *worker_context, void *context, void *payload, struct evc_envelope *envelope,
		 bool owned)
{
	struct place *place = context;

	(void)worker_context, (void)payload, (void)envelope, (void)owned;
	atomic_fetch_add_explicit(&place->handled, 1, memory_order_release);
	return true;
}

void place_drop(void *context, void *payload)
{
	(void)payload;
	atomic_fetch_add(&((struct place *)context)->drops, 1);
}

static void finalize(void *context)
{
	atomic_fetch_add(&((struct place *)context)->finalized, 1);
}

const char *place_open(struct place *place)
{
	struct evc_shared_subscription_options options = { sizeof(options), place, hear, place_drop, finalize };

	memset(place, 0, sizeof(*place));
	EXPECT_NONE(shared_open(&place->receiver));
	EXPECT_OK(evc_shared_mailbox_add_latest_subscription(place->receiver.mailbox, &options,
							     &place->latest));
	EXPECT_OK(evc_router_create(&place->router));
	EXPECT_OK(evc_router_subscribe(place->router, PLACE_PLAIN, place->receiver.subscription, 0, false));
	EXPECT_OK(evc_router_subscribe(place->router, PLACE_LATEST, place->latest, 0, false));
	return NULL;
}

const char *place_close(struct place *place, uint64_t superseded)
{
	struct evc_mailbox_statistics statistics;

	EXPECT_EQUAL(evc_latest_subscription_superseded(place->latest), superseded,
		     "superseded of the subscription");
	evc_router_destroy(place->router);
	EXPECT(suite_settle(), "the router is held up");
	evc_latest_subscription_release(place->latest);
	EXPECT_EQUAL(place->finalized, 1, "calls of finalize");
	evc_shared_mailbox_read_statistics(place->receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.superseded, superseded, "superseded of the mailbox");
	evc_shared_mailbox_release(place->receiver.mailbox);
	EXPECT(suite_quiesce(), "the end of a subscription is held up");
	return NULL;
}
#endif
