/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/* The latest-only subscriptions of a mailbox: latest.h, for its lanes and its consumer. */
#include "latest/latest.h"
#include "mailbox/mailbox_private.h"

static bool is_closed(struct evc_sink *sink)
{
	/* Relaxed: as in evc_mailbox_post. */
	return atomic_load_explicit(&evc_container_of(sink, struct evc_mailbox, sink)->attention,
				    memory_order_relaxed) & EVC_ATTENTION_CLOSED;
}

static void put(struct evc_sink *sink, unsigned lane, struct evc_envelope *token)
{
	evc_mailbox_put(evc_container_of(sink, struct evc_mailbox, sink), lane, token, token, 1);
}

static void tell(struct evc_sink *sink, unsigned lane)
{
	evc_mailbox_tell(evc_container_of(sink, struct evc_mailbox, sink), lane);
}

struct evc_envelope *evc_mailbox_take_latest(struct evc_mailbox *mailbox, struct evc_envelope *token)
{
	struct evc_envelope *envelope = evc_latest_take(token, &mailbox->returns);

	if (envelope == NULL)
		/* Release, pairs with evc_mailbox_read_statistics: it was counted as taken before. */
		atomic_fetch_add_explicit(&mailbox->empty, 1, memory_order_release);
	return envelope;
}

enum evc_status
evc_mailbox_add_latest_subscription(struct evc_mailbox *mailbox,
				    const struct evc_subscription_options *options,
				    struct evc_subscription **out)
{
	static const struct evc_latest_mailbox how = { EVC_NEEDS_TOKEN, is_closed, put, tell };
	struct evc_subscription subscription;

	if (mailbox == NULL || options == NULL || options->deliver == NULL || out == NULL)
		return EVC_INVALID_ARGUMENT;
	subscription = evc_mailbox_subscription(mailbox, options);
	return evc_latest_create(&subscription, &mailbox->subscriptions, &how, out);
}
#endif
