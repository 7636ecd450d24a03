/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/* The latest-only subscriptions of a shared mailbox (latest.h): all workers share one slot. */
#include "latest/latest.h"
#include "shared/shared_mailbox_private.h"

static bool is_closed(struct evc_sink *sink)
{
	/* Relaxed: as in evc_shared_mailbox_post. */
	return atomic_load_explicit(&evc_container_of(sink, struct evc_shared_mailbox, sink)->attention,
				    memory_order_relaxed) & EVC_SHARED_CLOSED;
}

static void put(struct evc_sink *sink, unsigned lane, struct evc_envelope *token)
{
	evc_shared_put_token(evc_container_of(sink, struct evc_shared_mailbox, sink), token, lane);
}

static void tell(struct evc_sink *sink, unsigned lane)
{
	(void)lane;
	evc_shared_tell(evc_container_of(sink, struct evc_shared_mailbox, sink));
}

enum evc_status
evc_shared_mailbox_add_latest_subscription(struct evc_shared_mailbox *mailbox,
					   const struct evc_shared_subscription_options *options,
					   struct evc_subscription **out)
{
	static const struct evc_latest_mailbox how = {
		EVC_NEEDS_TOKEN | EVC_NEEDS_SEGMENT, is_closed, put, tell
	};
	struct evc_subscription subscription;

	if (mailbox == NULL || options == NULL || options->deliver == NULL || out == NULL)
		return EVC_INVALID_ARGUMENT;
	subscription = evc_shared_subscription(mailbox, options);
	return evc_latest_create(&subscription, &mailbox->subscriptions, &how, out);
}
#endif
