/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * The end of a mailbox. CLOSED: posts are refused, the consumer may still handle or drop. ENDED: it handles
 * nothing more, and a producer that posts afterwards frees what is there.
 */
#include "latest/latest.h"
#include "mailbox/mailbox_private.h"

static void close_with(struct evc_mailbox *mailbox, uint32_t signal)
{
	uint32_t attention;

	/*
	 * CLOSED first, for posts after this call; ENDED serves the others. Release, pairs with the
	 * balancer's fence: who is refused sees what the closer did before.
	 */
	atomic_fetch_or_explicit(&mailbox->attention, EVC_ATTENTION_CLOSED, memory_order_release);
	/* Release, pairs with evc_mailbox_end: earlier posts. seq_cst for the sleep protocol. */
	atomic_fetch_or_explicit(&mailbox->signal, signal, memory_order_seq_cst);
	attention = atomic_load_explicit(&mailbox->attention, memory_order_seq_cst);
	if (attention & EVC_ATTENTION_SLEEP)
		evc_mailbox_wake_consumer(mailbox);
	if (mailbox->bound != NULL)
		evc_event_count_advance(&mailbox->bound->rounds);
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
	/* Pairs with evc_mailbox_attend: what the caller did. seq_cst: like P1, for the sleep protocol. */
	atomic_fetch_or_explicit(&mailbox->signal, EVC_SIGNAL_CONTROL, memory_order_seq_cst);
	if (atomic_load_explicit(&mailbox->attention, memory_order_seq_cst) & EVC_ATTENTION_SLEEP)
		evc_mailbox_wake_consumer(mailbox);
}

/* Ends an envelope of an ended mailbox. `cache` may be NULL. */
static void drop(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
		 struct evc_return_cache *cache)
{
	unsigned lane = envelope->lane;
	uint64_t left = 1, dropped = 1;

	if (evc_unlikely(envelope->flags & EVC_ENVELOPE_TOKEN)) {
		dropped = evc_latest_drop(envelope, cache);
	} else {
		if (envelope->flags & EVC_ENVELOPE_BATCH)
			left = dropped = evc_batch_left(&envelope->batch);
		evc_envelope_end(envelope, false, cache);
	}
	/* Several threads may drop. Release, pairs with evc_mailbox_read_statistics: in this order. */
	atomic_fetch_add_explicit(&mailbox->left[lane], left, memory_order_relaxed);
	atomic_fetch_add_explicit(&mailbox->empty, left - dropped, memory_order_release);
	atomic_fetch_add_explicit(&mailbox->dropped, dropped, memory_order_release);
}

static void drop_list(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
		      struct evc_return_cache *cache)
{
	struct evc_envelope *next;

	for (; envelope != NULL; envelope = next) {
		next = evc_slot_next(envelope);
		drop(mailbox, envelope, cache);
	}
}

void evc_mailbox_drop_posted(struct evc_mailbox *mailbox, struct evc_return_cache *cache)
{
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		/*
		 * The head goes on counting them. Acquire, pairs with P1. Release, pairs with a P1 that comes after: its P2
		 * sees ENDED (mailbox_private.h).
		 */
		uintptr_t head = atomic_fetch_and_explicit(evc_mailbox_head(mailbox, lane), EVC_HEAD_COUNT,
							   memory_order_acq_rel);

		drop_list(mailbox, evc_head_envelope(head), cache);
	}
	if (mailbox->displaces) {
		struct evc_envelope *envelope;

		/* ENDED, then the looks: a put comes before them in the single order, or its P2 sees ENDED. */
		atomic_thread_fence(memory_order_seq_cst);
		while ((envelope = evc_mailbox_take_displaceable(mailbox, EVC_LANE_COUNT)) != NULL) {
			/* It was counted as taken. */
			atomic_fetch_sub_explicit(&mailbox->left[envelope->lane], 1, memory_order_relaxed);
			drop(mailbox, envelope, cache);
		}
	}
}

bool evc_mailbox_end(struct evc_mailbox *mailbox)
{
	/* Relaxed: evc_mailbox_is_closing has acquired the close, and with it the posts before it. */
	if (!(atomic_load_explicit(&mailbox->signal, memory_order_relaxed) & EVC_SIGNAL_CLOSE) &&
	    (mailbox->occupied != 0 || mailbox->sorting != 0 || evc_mailbox_has_posts(mailbox, memory_order_relaxed)))
		return false;
	/* Relaxed: producers learn of it by the heads. */
	atomic_fetch_or_explicit(&mailbox->attention, EVC_ATTENTION_ENDED, memory_order_relaxed);
	/* Nothing is taken any more. Relaxed: for this thread. */
	atomic_fetch_or_explicit(&mailbox->signal, EVC_SIGNAL_CLOSE, memory_order_relaxed);
	mailbox->occupied = mailbox->sorting = 0;
	evc_consumed_close(&mailbox->own);
	for (unsigned i = 0; i < EVC_LANE_COUNT; i++) {
		struct evc_lane_list *list = &mailbox->lists[i];
		struct evc_envelope *first = list->first, *rest = list->rest;

		list->first = list->rest = NULL;
		drop_list(mailbox, first, mailbox->returns);
		drop_list(mailbox, rest, mailbox->returns);
	}
	evc_mailbox_drop_posted(mailbox, mailbox->returns);
	evc_return_cache_flush(mailbox->returns);
	evc_return_cache_flush(mailbox->by_hand);
	return true;
}
#endif
