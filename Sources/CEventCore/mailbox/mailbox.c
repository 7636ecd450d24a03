/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "mailbox/mailbox_private.h"

#include "mailbox/latest.h"
#include "memory/lender.h"
#include "memory/memory.h"
#include "memory/stream_table.h"

static struct evc_mailbox *mailbox_of(struct evc_sink *sink)
{
	return evc_container_of(sink, struct evc_mailbox, sink);
}

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	return evc_mailbox_post(mailbox_of(sink), chain);
}

/* Counts the mailboxes; the first is 1. */
static _Atomic uint64_t mailbox_number;

static void retain(struct evc_sink *sink)
{
	evc_mailbox_retain(mailbox_of(sink));
}

static void release(struct evc_sink *sink)
{
	evc_mailbox_release(mailbox_of(sink));
}

static const struct evc_lender lender, batch_lender;

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
		.sink = { accept, retain, release,
			  options != NULL && options->batches ? &batch_lender : &lender },
		/* Relaxed: only that nobody else has it. */
		.number = atomic_fetch_add_explicit(&mailbox_number, 1, memory_order_relaxed) + 1,
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

/* Nobody posts and nobody takes any more. */
static void end_streams(struct evc_mailbox *mailbox)
{
	/* Acquire, pairs with add_stream. */
	struct evc_stream *stream = atomic_load_explicit(&mailbox->streams, memory_order_acquire);
	struct evc_stream *next;

	for (; stream != NULL; stream = next) {
		struct evc_thread_record *record = stream->record;

		next = stream->next_in_mailbox;
		/* From here on the stream may be freed by its thread. */
		evc_stream_end(stream);
		evc_thread_record_forget(record, mailbox->number);
	}
	/* Other threads free theirs when they add some, or end. */
	if (evc_thread_record_current != NULL)
		evc_stream_table_forget(&evc_thread_record_current->streams, mailbox->number);
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
	end_streams(mailbox);
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
	subscription->deliver_batch = options->deliver_batch;
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

/* P1 to P4. The reserved slots become visible to the consumer, as the next tickets. */
static inline void publish_reserved(struct evc_mailbox *mailbox, struct evc_stream *stream,
				 uint32_t count, uint32_t lanes)
{
	/* P1: the moment of the post. */
	uint64_t ticket =
		atomic_fetch_add_explicit(&mailbox->tickets, count, memory_order_seq_cst);
	uint32_t attention;

	/* Relaxed: whether a few tickets are announced or not does not matter. */
	if (evc_unlikely(atomic_load_explicit(&mailbox->announces, memory_order_relaxed)))
		/* Pairs with search: the stream's fields. A hint, which the consumer checks. */
		atomic_store_explicit(&mailbox->announced[ticket % EVC_ANNOUNCED], stream,
				      memory_order_release);
	/* P2. */
	evc_stream_publish(stream, ticket);
	/*
	 * P3. The mailbox must still be there although the envelopes may be gone by now: whoever posts
	 * holds a reference, directly or through the route cache.
	 */
	attention = atomic_load_explicit(&mailbox->attention, memory_order_seq_cst);
	if (evc_unlikely(attention & (lanes | EVC_ATTENTION_SLEEP | EVC_ATTENTION_CLOSED)))
		post_attention(mailbox, attention, lanes);
}

static inline bool is_closed(struct evc_mailbox *mailbox)
{
	/* Relaxed: a post that misses a close at this moment sees it after P2. */
	return evc_unlikely(atomic_load_explicit(&mailbox->attention, memory_order_relaxed) &
			    EVC_ATTENTION_CLOSED);
}

/* This thread's first post to the mailbox, or one inside another dispatch to it. NULL = out of memory. */
static __attribute__((noinline)) struct evc_stream *add_stream(struct evc_mailbox *mailbox,
							       struct evc_thread_record *record)
{
	struct evc_stream *stream = evc_stream_create(record, mailbox->number);
	struct evc_stream *head;

	if (stream == NULL)
		return NULL;
	if (!evc_stream_table_add(&record->streams, stream)) {
		evc_stream_end(stream);
		evc_stream_destroy(stream);
		return NULL;
	}
	head = atomic_load_explicit(&mailbox->streams, memory_order_relaxed);
	do {
		stream->next_in_mailbox = head;
		/* Pairs with the loads of `streams`: the stream's fields. */
	} while (!atomic_compare_exchange_weak_explicit(&mailbox->streams, &head, stream,
							memory_order_release,
							memory_order_relaxed));
	/* Relaxed: a hint. */
	if (atomic_fetch_add_explicit(&mailbox->stream_count, 1, memory_order_relaxed) ==
	    EVC_FEW_STREAMS)
		atomic_store_explicit(&mailbox->announces, true, memory_order_relaxed);
	return stream;
}

static inline struct evc_stream *stream_for(struct evc_mailbox *mailbox,
					    struct evc_thread_record *record)
{
	struct evc_stream *stream = evc_stream_for(&record->streams, mailbox->number);

	return evc_likely(stream != NULL) ? stream : add_stream(mailbox, record);
}

static struct evc_stream *lend(struct evc_sink *sink, struct evc_thread_record *record)
{
	return stream_for(mailbox_of(sink), record);
}

static struct evc_stream *find(struct evc_sink *sink, struct evc_thread_record *record,
			       const struct evc_envelope *first)
{
	return evc_stream_with(&record->streams, mailbox_of(sink)->number, first);
}

static enum evc_status publish(struct evc_sink *sink, struct evc_stream *stream, uint32_t count,
			       uint32_t lanes)
{
	struct evc_mailbox *mailbox = mailbox_of(sink);

	if (is_closed(mailbox))
		return EVC_CLOSED;
	publish_reserved(mailbox, stream, count, lanes);
	return EVC_OK;
}

static const struct evc_lender lender = { false, lend, find, publish };
static const struct evc_lender batch_lender = { true, lend, find, publish };

struct evc_stream *evc_mailbox_prepare_post(struct evc_mailbox *mailbox)
{
	struct evc_thread_record *record = evc_thread_record();
	struct evc_stream *stream = record == NULL ? NULL : stream_for(mailbox, record);

	return stream != NULL && evc_stream_has_room(stream, record) ? stream : NULL;
}

void evc_mailbox_post_reserved(struct evc_mailbox *mailbox, struct evc_stream *stream, uint32_t lanes)
{
	publish_reserved(mailbox, stream, 1, lanes);
}

enum evc_status evc_mailbox_post(struct evc_mailbox *mailbox, const struct evc_chain *chain)
{
	struct evc_envelope *slot;
	struct evc_stream *stream;

	if (evc_unlikely(chain->first == NULL))
		return EVC_INVALID_ARGUMENT;
	if (is_closed(mailbox))
		return EVC_CLOSED;
	stream = evc_mailbox_prepare_post(mailbox);
	if (evc_unlikely(stream == NULL))
		return EVC_OUT_OF_MEMORY;
	slot = evc_stream_reserve(stream, stream->record, 1);
	/* The slot stands for the chain, which so gets one place in the order, with nobody between. */
	evc_slot_set_lane(slot, EVC_SLOT_CHAIN);
	evc_slot_set_time(slot, (uint64_t)(uintptr_t)chain->first);
	publish_reserved(mailbox, stream, 1, chain->lanes);
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
