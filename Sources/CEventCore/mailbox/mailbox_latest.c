/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/* The latest-only subscriptions of a mailbox: latest.h, for its lanes and its consumer. */
#include "latest/latest.h"
#include "mailbox/mailbox_private.h"

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_latest *latest = evc_container_of(sink, struct evc_latest, sink);
	struct evc_mailbox *mailbox = evc_container_of(latest->mailbox, struct evc_mailbox, sink);
	/* Relaxed: as in evc_mailbox_post. */
	bool is_closed = atomic_load_explicit(&mailbox->attention, memory_order_relaxed) &
			 EVC_ATTENTION_CLOSED;
	struct evc_latest_dispatch dispatch;
	enum evc_status status = evc_latest_begin(latest, chain, is_closed, &dispatch);

	if (evc_unlikely(status != EVC_OK))
		return status;
	if (dispatch.token != NULL) {
		evc_mailbox_put(mailbox, dispatch.lane, dispatch.token, dispatch.token, 1);
		evc_latest_settle(latest, &dispatch);
	}
	/* P3. The producer that put the token may be held up before it tells the consumer. */
	evc_mailbox_tell(mailbox, dispatch.lane);
	evc_latest_end(chain, &dispatch);
	return EVC_OK;
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
	struct evc_subscription subscription;

	if (mailbox == NULL || options == NULL || options->deliver == NULL || out == NULL)
		return EVC_INVALID_ARGUMENT;
	subscription = evc_mailbox_subscription(mailbox, options);
	return evc_latest_create(&subscription, &mailbox->subscriptions, accept, EVC_NEEDS_TOKEN, out);
}
#endif
