/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The tokens of latest-only subscriptions, and the end of a superseded envelope; steps as in latest.h. */
#ifndef EVC_TOKEN_H
#define EVC_TOKEN_H

#include "memory/envelope.h"
#include "memory/spares.h"

/* A token's state: its number, which never repeats, and where it is, in this order and then NONE again. */
enum {
	EVC_TOKEN_NONE,
	EVC_TOKEN_CLAIMED,
	EVC_TOKEN_POSTED,
};
#define EVC_TOKEN_WHERE 3u
#define EVC_TOKEN_ONE 4u

/* P2: claims the token; 0 if the one in the mailbox suffices. Takes over a claim that was not posted yet. */
static inline uint64_t evc_token_claim(_Atomic uint64_t *state)
{
	/* Acquires the post of the token in the mailbox, which follows the caller's load in the order. */
	uint64_t seen = atomic_load_explicit(state, memory_order_acquire), next;

	do {
		if (evc_likely((seen & EVC_TOKEN_WHERE) == EVC_TOKEN_POSTED))
			return 0;
		next = (seen & ~(uint64_t)EVC_TOKEN_WHERE) + EVC_TOKEN_ONE;
	} while (!atomic_compare_exchange_weak_explicit(state, &seen, next | EVC_TOKEN_CLAIMED,
							memory_order_acquire, memory_order_acquire));
	return next;
}

/* P2: the token was posted. Release, pairs with P2 of others. Nothing if it was taken, or taken over. */
static inline void evc_token_settle(_Atomic uint64_t *state, uint64_t number)
{
	uint64_t seen = number | EVC_TOKEN_CLAIMED;

	atomic_compare_exchange_strong_explicit(state, &seen, number | EVC_TOKEN_POSTED,
						memory_order_release, memory_order_relaxed);
}

/* K1, by whoever took the token. It does nothing if another producer has taken the claim over. */
static inline void evc_token_taken(_Atomic uint64_t *state, uint64_t number)
{
	uint64_t seen = atomic_load_explicit(state, memory_order_relaxed);

	while ((seen & ~(uint64_t)EVC_TOKEN_WHERE) == number &&
	       !atomic_compare_exchange_weak_explicit(state, &seen, number | EVC_TOKEN_NONE,
						      memory_order_seq_cst, memory_order_relaxed))
		;
}

/* Makes a token to post. NULL = out of memory, if the caller has reserved no spare. */
static inline struct evc_envelope *evc_token_create(struct evc_thread_record *record,
						    struct evc_subscription *subscription,
						    unsigned lane)
{
	struct evc_envelope *token = evc_spare_take(record, EVC_SPARE_TOKEN);

	if (evc_unlikely(token == NULL))
		return NULL;
	token->subscription = subscription;
	token->lane = (uint8_t)lane;
	token->flags = EVC_ENVELOPE_TOKEN;
	token->events = 1;
	return token;
}

/* Ends a superseded envelope. Mostly this thread has just taken its slot, and takes it next again. */
static inline void evc_envelope_supersede(struct evc_envelope *envelope)
{
	struct evc_thread_record *record = evc_thread_record_current;

	if (evc_likely(envelope->flags == 0 && record != NULL)) {
		struct evc_subscription *subscription = envelope->subscription;

		/* User code, which may dispatch: the slot must not be free before it returns. */
		if (subscription->drop != NULL)
			subscription->drop(subscription->context, envelope->bytes);
		evc_envelope_untake(record, envelope);
		return;
	}
	evc_envelope_release(envelope, false);
}

#endif
