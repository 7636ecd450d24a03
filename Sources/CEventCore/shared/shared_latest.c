/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * The latest-only subscriptions of a shared mailbox: latest.h, for its lanes. All workers share one slot; the
 * worker that takes a token takes the event.
 */
#include "latest/latest.h"
#include "shared/shared_mailbox_private.h"

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_latest *latest = evc_container_of(sink, struct evc_latest, sink);
	struct evc_shared_mailbox *mailbox =
		evc_container_of(latest->mailbox, struct evc_shared_mailbox, sink);
	/* Relaxed: as in evc_shared_mailbox_post. */
	bool is_closed = atomic_load_explicit(&mailbox->attention, memory_order_relaxed) &
			 EVC_SHARED_CLOSED;
	struct evc_latest_dispatch dispatch;
	enum evc_status status = evc_latest_begin(latest, chain, is_closed, &dispatch);

	if (evc_unlikely(status != EVC_OK))
		return status;
	if (dispatch.token != NULL) {
		evc_shared_put_token(mailbox, dispatch.token, dispatch.lane);
		evc_latest_settle(latest, &dispatch);
	}
	/* P3. The producer that put the token may be held up before it tells the workers. */
	evc_shared_tell(mailbox);
	evc_latest_end(chain, &dispatch);
	return EVC_OK;
}

enum evc_status
evc_shared_mailbox_add_latest_subscription(struct evc_shared_mailbox *mailbox,
					   const struct evc_shared_subscription_options *options,
					   struct evc_subscription **out)
{
	struct evc_subscription subscription;

	if (mailbox == NULL || options == NULL || options->deliver == NULL || out == NULL)
		return EVC_INVALID_ARGUMENT;
	subscription = evc_shared_subscription(mailbox, options);
	return evc_latest_create(&subscription, &mailbox->subscriptions, accept,
				 EVC_NEEDS_TOKEN | EVC_NEEDS_SEGMENT, out);
}
#endif
