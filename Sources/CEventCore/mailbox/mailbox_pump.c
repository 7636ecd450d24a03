/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * The two consumers that deliver: a thread (evc_mailbox_run), and a pump. One file, though long: they share a loop,
 * which is inlined into both.
 *
 * A pump is a consumer that is driven from outside: each call delivers some envelopes on the calling thread.
 * When nothing is left it arms the mailbox and returns, instead of sleeping.
 *
 * Armed is the bit SLEEP of `attention`, and the two steps are those of a consumer that goes to sleep (C1, C2
 * and P1, P2 in mailbox_private.h). What differs is who clears the bit. A sleeping consumer clears it itself.
 * Here the thread that clears it has the right and the duty to cause the next pump:
 *
 *   poster, interrupter, closer                pump
 *   P1 publish (post, signal)     seq_cst      C1 set SLEEP                   seq_cst RMW
 *   P2 load attention             seq_cst      C2 look: signal and inboxes    seq_cst loads
 *   P4 if SLEEP: clear it         acquire RMW  C6 if there is news: clear it  acquire RMW
 *   P5 if P4 found it set: wake                C7 if C6 found it set: go on; else leave
 *
 * - No wake-up is lost: one of P1 and C1 precedes the other in the single order of seq_cst operations, so
 *   that P2 sees SLEEP or C2 sees the news. If P2 misses SLEEP because another thread's P4 had cleared it, it
 *   precedes the C1 of the pump that this P4 caused, whose C2 then sees the news.
 * - One wake-up for each arming, and one consumer at a time: the bit that C1 set is cleared once, by a P4 or
 *   by C6, since both are read-modify-write. From C1 on the pump touches nothing that belongs to the consumer
 *   until C6 has won the bit back: the next pump may already be running.
 * - One pump happens before the next: C1 releases, P4 acquires (the read-modify-writes between them continue
 *   the release sequence), and the wake function orders itself before the pump that it causes. C6 acquires
 *   too: between C1 and C6 another pump may have run and armed the mailbox again, and then C6 clears the bit
 *   of that pump.
 *
 * Tests/Models/pump.pml checks this over all interleavings of small cases.
 *
 * That is so as long as callers keep the rule: one pump before the next. `is_consumed` finds out who does not. It is
 * claimed at the beginning of a run and a pump, and after C6, and given back at the end and before C1, so that it is
 * free whenever a caller may come.
 */
#include "mailbox/mailbox_private.h"

void evc_mailbox_wake_consumer(struct evc_mailbox *mailbox)
{
	if (mailbox->options.wake == NULL) {
		(void)evc_parker_wake(&mailbox->parker);
		return;
	}
	/* P4, P5. Acquire, pairs with C1: the last pump happens before the next, whose claim is not refused. */
	if (atomic_fetch_and_explicit(&mailbox->attention, ~EVC_ATTENTION_SLEEP,
				      memory_order_acquire) &
	    EVC_ATTENTION_SLEEP)
		mailbox->options.wake(mailbox->options.context);
}

/* Delivers what evc_mailbox_next has taken, one event at least, of `left`. Returns how many are left then. */
static inline uint64_t deliver(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
			       struct evc_stretch *stretch, uint64_t left)
{
	struct evc_subscription *subscription = envelope->subscription;
	void *payload = envelope->bytes;
	bool owned = true, moved;

	left = evc_stretch_meet(stretch, subscription, left);
	if (evc_unlikely(envelope->flags & EVC_ENVELOPE_BOXED)) {
		if (envelope->flags & EVC_ENVELOPE_BATCH) {
			stretch->left = left;
			evc_mailbox_deliver_batch(mailbox, envelope, stretch);
			return stretch->left;
		}
		payload = evc_box_payload(envelope->box);
		owned = evc_envelope_owns_payload(envelope);
	}
	moved = subscription->deliver(subscription->context, payload, envelope, owned);
	evc_envelope_end(envelope, moved, mailbox->returns);
	return left - 1;
}

/*
 * The loop of a consumer that delivers: EVC_OK after the last stretch, EVC_CLOSED when the mailbox has ended, EVC_EMPTY
 * after `idle` when nothing is left, and EVC_TIMED_OUT if the deadline has come meanwhile (evc_stretch.is_late).
 */
static inline enum evc_status deliver_all(struct evc_mailbox *mailbox, struct evc_stretch *stretch)
{
	/* In a register, since each single event counts it down. */
	uint64_t left = stretch->left;

	for (;;) {
		struct evc_envelope *envelope = evc_mailbox_next(mailbox);

		if (evc_likely(envelope != NULL)) {
			left = deliver(mailbox, envelope, stretch, left);
			if (evc_likely(left != 0))
				continue;
			stretch->left = 0;
			if (!evc_stretch_next(stretch))
				return EVC_OK;
			left = stretch->left;
			continue;
		}
		stretch->left = left;
		if (evc_unlikely(stretch->is_late))
			return EVC_TIMED_OUT;
		if (evc_likely(!evc_mailbox_is_closing(mailbox))) {
			evc_mailbox_call_idle(mailbox);
			return EVC_EMPTY;
		}
		if (evc_mailbox_end(mailbox))
			return EVC_CLOSED;
	}
}

enum evc_status evc_mailbox_run_claimed(struct evc_mailbox *mailbox)
{
	struct evc_return_cache returns = { 0 };
	struct evc_stretch endless = { .left = UINT64_MAX };
	struct evc_mailbox *before = evc_mailbox_enter(mailbox);

	mailbox->returns = &returns;
	/* A spinning consumer is for the shortest latency; for the others a microsecond does not matter. */
	mailbox->paces = mailbox->options.strategy != EVC_WAIT_SPIN;
	mailbox->pace = EVC_PAUSES;
	while (deliver_all(mailbox, &endless) != EVC_CLOSED)
		(void)evc_mailbox_wait(mailbox, EVC_FOREVER);
	mailbox->returns = NULL;
	evc_mailbox_leave(before);
	evc_mailbox_give_back(mailbox);
	return EVC_CLOSED;
}

enum evc_status evc_mailbox_run(struct evc_mailbox *mailbox)
{
	if (mailbox == NULL || !evc_mailbox_may_wait(mailbox))
		return EVC_INVALID_ARGUMENT;
	if (!evc_mailbox_claim(mailbox))
		return EVC_NOT_PERMITTED;
	return evc_mailbox_run_claimed(mailbox);
}

/* True if anyone has posted, interrupted or closed. Touches nothing that belongs to the consumer. */
static inline bool has_news(struct evc_mailbox *mailbox)
{
	evc_mailbox_order_taken(mailbox);
	return evc_mailbox_is_signalled(mailbox) || evc_mailbox_has_posts(mailbox, memory_order_seq_cst);
}

/* Gives the mailbox back, since nothing is left, and arms it. True if the caller is not the consumer any more. */
static bool arm(struct evc_mailbox *mailbox)
{
	if (mailbox->options.wake == NULL) {
		if (has_news(mailbox))
			return false;
		evc_mailbox_give_back(mailbox);
		return true;
	}
	/*
	 * Before C1, so that whoever clears that bit, by an acquiring P4 or C6, claims the mailbox after this. A C6 whose
	 * claim fails, because of another pump, has not cleared the bit that this pump sets.
	 */
	evc_mailbox_give_back(mailbox);
	/* C1, then C2. */
	atomic_fetch_or_explicit(&mailbox->attention, EVC_ATTENTION_SLEEP, memory_order_seq_cst);
	if (!has_news(mailbox))
		return true;
	/* C6, C7. Acquire: pairs with the C1 of whichever pump it was, which comes before this claim. */
	return !(atomic_fetch_and_explicit(&mailbox->attention, ~EVC_ATTENTION_SLEEP,
					   memory_order_acquire) &
		 EVC_ATTENTION_SLEEP) ||
	       /* A caller that pumps against the rule is the consumer now, and sees the news. */
	       !evc_mailbox_claim(mailbox);
}

/*
 * Delivers stretch by stretch, as the consumer, and leaves before it arms the mailbox. EVC_OK after the last stretch,
 * EVC_EMPTY: the mailbox is given back and armed. Others as deliver_all.
 */
static enum evc_status pump(struct evc_mailbox *mailbox, struct evc_stretch *stretch,
			    struct evc_return_cache *returns)
{
	for (;;) {
		struct evc_mailbox *before = evc_mailbox_enter(mailbox);
		enum evc_status status;

		mailbox->returns = returns;
		mailbox->timed = stretch;
		status = deliver_all(mailbox, stretch);
		mailbox->returns = NULL;
		mailbox->timed = NULL;
		evc_mailbox_leave(before);
		if (status != EVC_EMPTY)
			return status;
		/* `idle` may have posted, and taken. The stretch goes on, so that single events put off no look. */
		if ((mailbox->occupied | mailbox->sorting) == 0) {
			/* Another pump may run, and use it, as soon as the mailbox is armed. */
			evc_return_cache_flush(mailbox->by_hand);
			if (arm(mailbox))
				return EVC_EMPTY;
		}
		/* `idle` may have moved a caller's clock, too. */
		if (evc_unlikely(evc_stretch_is_late(stretch)))
			return EVC_TIMED_OUT;
	}
}

/* The same with a cache for the slots: the mailbox's for a single event, whose slot waits for those of the next ones. */
static enum evc_status pump_with_cache(struct evc_mailbox *mailbox, struct evc_stretch *stretch, uint64_t limit)
{
	struct evc_return_cache *by_hand = limit == 1 ? evc_mailbox_by_hand(mailbox) : NULL;

	if (by_hand == NULL) {
		struct evc_return_cache returns = { 0 };
		enum evc_status status;

		/* A receiver keeps one cache of slots, as evc_reserve says. */
		evc_return_cache_flush(mailbox->by_hand);
		status = pump(mailbox, stretch, &returns);
		/* Another pump may be running by now: this cache is not the mailbox's. */
		evc_return_cache_flush(&returns);
		return status;
	}
	return pump(mailbox, stretch, by_hand);
}

/* Makes the first stretch. False if the deadline has passed. */
static bool begin(const struct evc_mailbox *mailbox, struct evc_stretch *stretch, uint64_t limit, uint64_t deadline)
{
	const struct evc_clock *clock = mailbox->clock.now != NULL ? &mailbox->clock : NULL;

	*stretch = (struct evc_stretch){ .left = limit, .deadline = deadline };
	if (deadline == EVC_FOREVER)
		return true;
	*stretch = (struct evc_stretch){ .left = 1, .behind = limit - 1, .deadline = deadline, .length = 1, .clock = clock };
	stretch->began = stretch->known = clock != NULL ? clock->now(clock->context) : evc_clock_now();
	return stretch->began < deadline;
}

enum evc_status evc_mailbox_pump_until(struct evc_mailbox *mailbox, uint64_t limit, uint64_t deadline,
				       uint64_t *handled)
{
	struct evc_stretch stretch;
	enum evc_status status;

	if (handled != NULL)
		*handled = 0;
	if (mailbox == NULL || limit == 0)
		return EVC_INVALID_ARGUMENT;
	if (!evc_mailbox_claim(mailbox))
		return EVC_NOT_PERMITTED;
	status = begin(mailbox, &stretch, limit, deadline) ? pump_with_cache(mailbox, &stretch, limit) : EVC_TIMED_OUT;
	if (status == EVC_OK && stretch.behind > 0)
		status = EVC_TIMED_OUT;
	if (status != EVC_EMPTY) {
		/* The next pump may be far off. A pump that armed the mailbox has seen to it before (C2). */
		if (evc_unlikely(mailbox->bound != NULL)) {
			evc_mailbox_order_taken(mailbox);
			if (atomic_load_explicit(&mailbox->signal, memory_order_relaxed) & EVC_SIGNAL_BLOCKED)
				evc_bound_unblock(mailbox->bound, 1);
		}
		evc_mailbox_give_back(mailbox);
	}
	if (handled != NULL)
		*handled = limit - stretch.left - stretch.behind;
	return status;
}

enum evc_status evc_mailbox_pump(struct evc_mailbox *mailbox, uint64_t limit)
{
	return evc_mailbox_pump_until(mailbox, limit, EVC_FOREVER, NULL);
}
#endif
