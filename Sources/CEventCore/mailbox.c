/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "mailbox_private.h"

#include "latest.h"
#include "memory.h"

static struct evc_mailbox *mailbox_of(struct evc_sink *sink)
{
	return evc_container_of(sink, struct evc_mailbox, sink);
}

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	return evc_mailbox_post(mailbox_of(sink), chain);
}

static void retain(struct evc_sink *sink)
{
	evc_mailbox_retain(mailbox_of(sink));
}

static void release(struct evc_sink *sink)
{
	evc_mailbox_release(mailbox_of(sink));
}

enum evc_status evc_mailbox_create(const struct evc_mailbox_options *options,
				   struct evc_mailbox **out)
{
	struct evc_mailbox *mailbox;
	enum evc_status status;

	if (out == NULL || (options != NULL && (unsigned)options->strategy > EVC_WAIT_SPIN))
		return EVC_INVALID_ARGUMENT;
	mailbox = evc_allocate(sizeof(*mailbox), _Alignof(struct evc_mailbox));
	if (mailbox == NULL)
		return EVC_OUT_OF_MEMORY;
	*mailbox = (struct evc_mailbox){
		.sink = { accept, retain, release },
	};
	if (options != NULL)
		mailbox->options = *options;
	/* Armed: the first post has it pumped. */
	if (mailbox->options.wake != NULL)
		atomic_init(&mailbox->attention, EVC_ATTENTION_SLEEP);
	status = evc_parker_create(mailbox->options.parker, &mailbox->parker);
	if (status != EVC_OK)
		goto no_parker;
	if (pthread_mutex_init(&mailbox->end_mutex, NULL) != 0)
		goto no_end_mutex;
	if (pthread_mutex_init(&mailbox->subscription_mutex, NULL) != 0)
		goto no_subscription_mutex;
	atomic_init(&mailbox->references, 1);
	evc_inbox_init(&mailbox->inbox);
	*out = mailbox;
	return EVC_OK;

no_subscription_mutex:
	pthread_mutex_destroy(&mailbox->end_mutex);
no_end_mutex:
	evc_parker_destroy(mailbox->parker);
	status = EVC_OUT_OF_MEMORY;
no_parker:
	evc_deallocate(mailbox, sizeof(*mailbox), _Alignof(struct evc_mailbox));
	return status;
}

void evc_mailbox_retain(struct evc_mailbox *mailbox)
{
	/* Relaxed: the caller has a reference already. */
	atomic_fetch_add_explicit(&mailbox->references, 1, memory_order_relaxed);
}

void evc_mailbox_release(struct evc_mailbox *mailbox)
{
	struct evc_subscription *subscription, *next;

	/* Pairs with itself: everything that other holders did before the end. */
	if (atomic_fetch_sub_explicit(&mailbox->references, 1, memory_order_acq_rel) != 1)
		return;
	/* Nobody else knows the mailbox any more, so that this thread is its consumer now. */
	atomic_fetch_or_explicit(&mailbox->signal, EVC_SIGNAL_CLOSE, memory_order_relaxed);
	(void)evc_mailbox_end(mailbox);
	for (subscription = mailbox->subscriptions; subscription != NULL; subscription = next) {
		next = subscription->next;
		if (subscription->finalize != NULL)
			subscription->finalize(subscription->context);
		evc_deallocate(subscription, sizeof(*subscription), _Alignof(struct evc_subscription));
	}
	pthread_mutex_destroy(&mailbox->subscription_mutex);
	pthread_mutex_destroy(&mailbox->end_mutex);
	evc_parker_destroy(mailbox->parker);
	if (mailbox->options.finalize != NULL)
		mailbox->options.finalize(mailbox->options.context);
	evc_deallocate(mailbox, sizeof(*mailbox), _Alignof(struct evc_mailbox));
}

struct evc_sink *evc_mailbox_sink(struct evc_mailbox *mailbox)
{
	return &mailbox->sink;
}

enum evc_status evc_mailbox_add_subscription(struct evc_mailbox *mailbox,
					     const struct evc_subscription_options *options,
					     struct evc_subscription **out)
{
	struct evc_subscription *subscription;

	if (mailbox == NULL || options == NULL || options->deliver == NULL || out == NULL)
		return EVC_INVALID_ARGUMENT;
	subscription = evc_allocate(sizeof(*subscription), _Alignof(struct evc_subscription));
	if (subscription == NULL)
		return EVC_OUT_OF_MEMORY;
	subscription->sink = &mailbox->sink;
	subscription->deliver = options->deliver;
	subscription->drop = options->drop;
	subscription->context = options->context;
	subscription->finalize = options->finalize;
	pthread_mutex_lock(&mailbox->subscription_mutex);
	subscription->next = mailbox->subscriptions;
	mailbox->subscriptions = subscription;
	pthread_mutex_unlock(&mailbox->subscription_mutex);
	*out = subscription;
	return EVC_OK;
}

/* What a post has to do beside posting: seldom anything. */
static __attribute__((noinline)) void post_attention(struct evc_mailbox *mailbox,
						     uint32_t attention, uint32_t lanes)
{
	/* P4: skipped if the alarm is up, since its clearing (C4) is then still to come. */
	if ((attention & lanes) != 0 &&
	    !(atomic_load_explicit(&mailbox->signal, memory_order_seq_cst) & EVC_SIGNAL_ALARM))
		atomic_fetch_or_explicit(&mailbox->signal, EVC_SIGNAL_ALARM, memory_order_seq_cst);
	if (attention & EVC_ATTENTION_SLEEP)
		evc_mailbox_wake_consumer(mailbox);
	if (attention & EVC_ATTENTION_CLOSED)
		evc_mailbox_reap(mailbox);
}

static inline void post(struct evc_mailbox *mailbox, const struct evc_chain *chain)
{
	uint32_t lanes = chain->lanes;
	uint32_t attention;

	/* P1, P2. */
	evc_inbox_post(&mailbox->inbox, chain->first, chain->last);
	/*
	 * P3. The mailbox must still be there although the envelopes may be gone by now: whoever posts
	 * holds a reference, directly or through the route cache.
	 */
	attention = atomic_load_explicit(&mailbox->attention, memory_order_seq_cst);
	if (evc_unlikely(attention & (lanes | EVC_ATTENTION_SLEEP | EVC_ATTENTION_CLOSED)))
		post_attention(mailbox, attention, lanes);
}

void evc_mailbox_post_always(struct evc_mailbox *mailbox, const struct evc_chain *chain)
{
	post(mailbox, chain);
}

enum evc_status evc_mailbox_post(struct evc_mailbox *mailbox, const struct evc_chain *chain)
{
	if (evc_unlikely(chain->first == NULL))
		return EVC_INVALID_ARGUMENT;
	/* Relaxed: a post that misses a close at this moment sees it below. */
	if (evc_unlikely(atomic_load_explicit(&mailbox->attention, memory_order_relaxed) &
			 EVC_ATTENTION_CLOSED))
		return EVC_CLOSED;
	post(mailbox, chain);
	return EVC_OK;
}

void evc_mailbox_recycle(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
			 bool payload_moved)
{
	evc_envelope_end(envelope, payload_moved, &mailbox->returns);
}

void evc_mailbox_read_statistics(struct evc_mailbox *mailbox, struct evc_mailbox_statistics *out)
{
	out->taken = atomic_load_explicit(&mailbox->taken, memory_order_relaxed);
	out->dropped = atomic_load_explicit(&mailbox->dropped, memory_order_relaxed);
	out->superseded = evc_latest_superseded(mailbox);
}
#endif
