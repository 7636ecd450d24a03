/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * The end of a mailbox. States: open; closed (CLOSED in `attention`: posts are refused, the consumer
 * may still handle or drop); ended (`ended`, under end_mutex: the consumer has taken its last look, and
 * whoever posts after it frees what is there).
 */
#include "mailbox/latest.h"
#include "mailbox/mailbox_private.h"

static void close_with(struct evc_mailbox *mailbox, uint32_t signal)
{
	uint32_t attention;

	/*
	 * CLOSED first: a post that does not see it precedes it in the single order of seq_cst
	 * operations, and so precedes the consumer's last look, which follows the signal.
	 */
	atomic_fetch_or_explicit(&mailbox->attention, EVC_ATTENTION_CLOSED, memory_order_seq_cst);
	atomic_fetch_or_explicit(&mailbox->signal, signal, memory_order_seq_cst);
	attention = atomic_load_explicit(&mailbox->attention, memory_order_seq_cst);
	if (attention & EVC_ATTENTION_SLEEP)
		evc_mailbox_wake_consumer(mailbox);
}

void evc_mailbox_close(struct evc_mailbox *mailbox)
{
	close_with(mailbox, EVC_SIGNAL_CLOSE);
}

void evc_mailbox_close_when_empty(struct evc_mailbox *mailbox)
{
	close_with(mailbox, EVC_SIGNAL_DRAIN);
}

void evc_mailbox_interrupt(struct evc_mailbox *mailbox)
{
	/* Pairs with attend: what the caller did before. Seq_cst: the "publish" of the sleep protocol. */
	atomic_fetch_or_explicit(&mailbox->signal, EVC_SIGNAL_CONTROL, memory_order_seq_cst);
	if (atomic_load_explicit(&mailbox->attention, memory_order_seq_cst) & EVC_ATTENTION_SLEEP)
		evc_mailbox_wake_consumer(mailbox);
}

static void drop(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
		 struct evc_return_cache *cache)
{
	uint64_t count = 1;

	if (evc_unlikely(envelope->flags & EVC_ENVELOPE_TOKEN)) {
		count = evc_latest_drop(envelope, cache);
	} else {
		if (envelope->flags & EVC_ENVELOPE_BATCH)
			count = envelope->batch.left;
		evc_envelope_end(envelope, false, cache);
	}
	/* Relaxed: a statistic. */
	atomic_fetch_add_explicit(&mailbox->dropped, count, memory_order_relaxed);
}

bool evc_mailbox_end(struct evc_mailbox *mailbox)
{
	struct evc_lanes *lanes = &mailbox->lanes;
	bool drain;

	pthread_mutex_lock(&mailbox->end_mutex);
	evc_mailbox_look(mailbox);
	drain = !(atomic_load_explicit(&mailbox->signal, memory_order_acquire) & EVC_SIGNAL_CLOSE);
	if (drain && lanes->occupied != 0) {
		pthread_mutex_unlock(&mailbox->end_mutex);
		return false;
	}
	mailbox->ended = true;
	/* From now on the consumer's side of the streams belongs to those who reap: no more looks. */
	atomic_fetch_or_explicit(&mailbox->signal, EVC_SIGNAL_CLOSE, memory_order_relaxed);
	pthread_mutex_unlock(&mailbox->end_mutex);
	/* The lanes are this thread's alone; the mutex is free, since a payload's end is user code. */
	while (lanes->occupied != 0) {
		unsigned lane = evc_lanes_first(lanes);
		struct evc_envelope *envelope = evc_lanes_take(lanes, lane);

		/* One was counted out. */
		if (envelope->flags & EVC_ENVELOPE_BATCH)
			evc_lanes_count(lanes, lane, 1u - envelope->batch.left);
		drop(mailbox, envelope, &mailbox->returns);
	}
	evc_return_cache_flush(&mailbox->returns);
	return true;
}

void evc_mailbox_reap(struct evc_mailbox *mailbox)
{
	struct evc_envelope *envelope = NULL, *next;

	pthread_mutex_lock(&mailbox->end_mutex);
	if (mailbox->ended)
		envelope = evc_mailbox_collect(
			mailbox, evc_mailbox_undealt(mailbox, memory_order_seq_cst));
	pthread_mutex_unlock(&mailbox->end_mutex);
	for (; envelope != NULL; envelope = next) {
		next = evc_slot_next(envelope);
		drop(mailbox, envelope, NULL);
	}
}
#endif
