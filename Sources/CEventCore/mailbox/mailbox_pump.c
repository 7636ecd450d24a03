/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * A mailbox whose consumer is driven by somebody else: a pump call delivers some envelopes on whatever
 * thread it is made on, and when nothing is left it arms the mailbox and returns instead of sleeping.
 *
 * Armed is the bit SLEEP of `attention`, and the two steps are those of a consumer that goes to sleep
 * (C1, C2 and P1, P3 in mailbox_private.h). What differs is who clears the bit. A sleeping consumer
 * clears it itself; here whoever clears it has the right and the duty to see to the next pump:
 *
 *   poster, interrupter, closer                pump
 *   P1 publish (post, signal)     seq_cst      C1 set SLEEP                   seq_cst RMW
 *   P3 load attention             seq_cst      C2 look: signal and tickets    seq_cst loads
 *   P5 if SLEEP: clear it         acquire RMW  C6 if there is news: clear it  acquire RMW
 *   P6 if P5 found it set: wake                C7 if C6 found it set: go on; else leave
 *
 * - No wake-up is lost: of P1 and C1 one precedes the other in the single order of seq_cst operations, so
 *   that P3 sees SLEEP or C2 sees the news. A P3 that misses SLEEP because another one's P5 had cleared it
 *   precedes the C1 of the pump that this other one woke, whose C2 then sees the news.
 * - One wake-up for each arming, and one consumer at a time: the bit that C1 set is cleared once, by a P5
 *   or by C6, since both are read-modify-write. From C1 on the pump touches nothing that is the consumer's
 *   until C6 has won the bit back: the next pump may be running by then.
 * - What one pump did happens before the next: C1 releases, P5 acquires (the read-modify-writes between
 *   them keep the release sequence), and the wake function orders itself before the pump it causes. C6
 *   acquires, too: between C1 and C6 another pump may have run and armed the mailbox again, and then it
 *   is that one's bit which C6 clears.
 *
 * Tests/Models/pump.pml checks this over all interleavings of small cases.
 */
#include "mailbox/mailbox_deliver.h"

/* After so many envelopes the pools may have grown; and how long the last trim must be past. */
#define TRIM_AFTER 4096u
#define TRIM_NS 1000000000u

void evc_mailbox_wake_consumer(struct evc_mailbox *mailbox)
{
	if (mailbox->options.wake == NULL) {
		(void)evc_parker_wake(mailbox->parker);
		return;
	}
	/* P5, P6; acquire pairs with C1: what the last pump did, before the next. */
	if (atomic_fetch_and_explicit(&mailbox->attention, ~EVC_ATTENTION_SLEEP,
				      memory_order_acquire) &
	    EVC_ATTENTION_SLEEP)
		mailbox->options.wake(mailbox->options.context);
}

/* Lets go of what is of no use to anybody until the next pump. */
static void rest(struct evc_mailbox *mailbox)
{
	evc_return_cache_flush(&mailbox->returns);
	if (mailbox->returns.given >= TRIM_AFTER) {
		mailbox->returns.given = 0;
		(void)evc_pool_request_trim(TRIM_NS);
	}
}

/*
 * What anybody may have done to a mailbox that has run dry when so many posts were dealt. Touches nothing
 * of the consumer's.
 */
static inline bool has_news(struct evc_mailbox *mailbox, uint64_t dealt)
{
	return atomic_load_explicit(&mailbox->signal, memory_order_seq_cst) != 0 ||
	       atomic_load_explicit(&mailbox->tickets, memory_order_seq_cst) != dealt;
}

/* Nothing is left. True if the caller is not the consumer any more. */
static bool arm(struct evc_mailbox *mailbox, uint64_t dealt)
{
	/* C1, then C2. */
	atomic_fetch_or_explicit(&mailbox->attention, EVC_ATTENTION_SLEEP, memory_order_seq_cst);
	if (!has_news(mailbox, dealt))
		return true;
	/* C6, C7. Acquire: pairs with C1, of whichever pump it was. */
	return !(atomic_fetch_and_explicit(&mailbox->attention, ~EVC_ATTENTION_SLEEP,
					   memory_order_acquire) &
		 EVC_ATTENTION_SLEEP);
}

enum evc_status evc_mailbox_pump(struct evc_mailbox *mailbox, uint64_t limit)
{
	if (mailbox == NULL || limit == 0)
		return EVC_INVALID_ARGUMENT;
	for (;;) {
		struct evc_envelope *envelope = evc_mailbox_next(mailbox);
		uint64_t dealt;

		if (evc_likely(envelope != NULL)) {
			limit -= evc_mailbox_deliver(mailbox, envelope, limit);
			if (limit == 0)
				return EVC_OK;
			continue;
		}
		if (evc_unlikely(atomic_load_explicit(&mailbox->signal, memory_order_acquire) &
				 (EVC_SIGNAL_CLOSE | EVC_SIGNAL_DRAIN))) {
			if (evc_mailbox_end(mailbox))
				return EVC_CLOSED;
			continue;
		}
		if (mailbox->options.idle != NULL)
			mailbox->options.idle(mailbox->options.context);
		rest(mailbox);
		/* Before C1: afterwards it may be the next pump's. Relaxed: only the consumer writes it. */
		dealt = atomic_load_explicit(&mailbox->dealt, memory_order_relaxed);
		if (mailbox->options.wake == NULL ? !has_news(mailbox, dealt) : arm(mailbox, dealt))
			return EVC_EMPTY;
	}
}
#endif
