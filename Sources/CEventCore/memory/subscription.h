/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What happens with the envelopes of one kind at one sink. Constant once published, but for `met` and what balancers
 * write. The sink owns it.
 */
#ifndef EVC_SUBSCRIPTION_H
#define EVC_SUBSCRIPTION_H

#include "eventcore/sink.h"

#include <stdatomic.h>

struct evc_load;

struct evc_subscription {
	struct evc_sink *sink;
	union {
		bool (*deliver)(void *context, void *payload, const struct evc_envelope *envelope,
				bool owned);
		/* If `is_shared`: of a shared mailbox, whose handlers get the worker's context too. */
		bool (*deliver_by_worker)(void *worker_context, void *context, void *payload,
					  struct evc_envelope *envelope, bool owned);
	};
	void (*drop)(void *context, void *payload);
	void (*deliver_batch)(void *context, void *payload, const struct evc_envelope *envelope,
			      struct evc_batch_walk *walk);
	void *context;
	void (*finalize)(void *context);
	/* The next one in the sink's list. */
	struct evc_subscription *next;
	bool is_shared;
	/* What a pump has `known` when it delivered one of its events (evc_stretch_meet). The consumer's. */
	uint64_t met;
	/*
	 * Of a balancer's receiver. Every balancer that adds it writes the same, before it publishes the snapshot by which
	 * the first promised event comes.
	 */
	struct evc_load *_Atomic load;
};

/*
 * balancer.c: a promised event of the subscription has ended and is not handled, because its mailbox has displaced it,
 * or a newer one has superseded it.
 */
void evc_subscription_lose(struct evc_subscription *subscription);

/* latest.c: an envelope that held a reference of its subscription has ended. */
void evc_envelope_let_go(struct evc_subscription *subscription);

#endif
