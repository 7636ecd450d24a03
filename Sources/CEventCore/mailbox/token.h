/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What latest-only subscriptions of a mailbox (latest.h) and of a shared mailbox (shared_latest.h) have in
 * common: the states of their tokens, and how a superseded envelope ends. The steps are named as in latest.h.
 */
#ifndef EVC_TOKEN_H
#define EVC_TOKEN_H

#include "memory/envelope.h"
#include "memory/thread_record.h"

/* Where the token of a lane is; see latest.h. */
enum {
	EVC_TOKEN_NONE,
	EVC_TOKEN_CLAIMED,
	EVC_TOKEN_POSTED,
	EVC_TOKEN_CONSUMED,
};

/* P2: true if the caller is to post the token that has the state; otherwise `*seen` is that. */
static inline bool evc_token_claim(_Atomic uint8_t *state, uint8_t *seen)
{
	*seen = EVC_TOKEN_NONE;
	return atomic_compare_exchange_strong_explicit(state, seen, EVC_TOKEN_CLAIMED,
						       memory_order_seq_cst, memory_order_seq_cst);
}

/* P2: the claimed token has been posted. */
static inline void evc_token_settle(_Atomic uint8_t *state)
{
	uint8_t seen = EVC_TOKEN_CLAIMED;

	if (!atomic_compare_exchange_strong_explicit(state, &seen, EVC_TOKEN_POSTED,
						     memory_order_seq_cst, memory_order_seq_cst))
		/* It was CONSUMED, from which nobody but us moves it. */
		atomic_store_explicit(state, EVC_TOKEN_NONE, memory_order_seq_cst);
}

/* K1, for the token that has the state, by whoever took it out of the lanes. */
static inline void evc_token_taken(_Atomic uint8_t *state)
{
	uint8_t seen = EVC_TOKEN_CLAIMED;

	if (!atomic_compare_exchange_strong_explicit(state, &seen, EVC_TOKEN_CONSUMED,
						     memory_order_seq_cst, memory_order_seq_cst))
		/* It was POSTED, from which nobody but us moves it. */
		atomic_store_explicit(state, EVC_TOKEN_NONE, memory_order_seq_cst);
}

/*
 * How many were superseded so far: what was counted, without what the slot's word counts, which goes to
 * `*word`. Neither twice nor not at all what is moved from the one to the other meanwhile. Acquire: pairs
 * with nothing but itself, so that the second look at the figure comes after the slot.
 */
static inline uint64_t evc_superseded_read(_Atomic uint64_t *superseded, _Atomic uintptr_t *slot,
					   uintptr_t *word)
{
	uint64_t before, counted = atomic_load_explicit(superseded, memory_order_relaxed);

	do {
		before = counted;
		*word = atomic_load_explicit(slot, memory_order_acquire);
		counted = atomic_load_explicit(superseded, memory_order_acquire);
	} while (counted != before);
	return counted;
}

/* token.c: the same as below for any envelope. */
void evc_token_end_superseded(struct evc_envelope *envelope);
/* token.c: ends what a chain has before its last envelope, which takes the place of all of it. */
void evc_token_supersede_chain(const struct evc_chain *chain);

/*
 * Ends an envelope that a newer one took the place of. Nearly always it is of this thread's own pool:
 * then the slot goes straight back, and is the next to be used.
 */
static inline void evc_envelope_supersede(struct evc_envelope *envelope)
{
	struct evc_thread_record *record = evc_thread_record_current;

	if (evc_likely(envelope->flags == 0 && record != NULL &&
		       evc_pool_of(envelope) == &record->pools[0])) {
		struct evc_subscription *subscription = envelope->subscription;

		/* User code, which may dispatch: the slot must not be free before. */
		if (subscription->drop != NULL)
			subscription->drop(subscription->context, envelope->bytes);
		evc_pool_untake(&record->pools[0], envelope);
		return;
	}
	evc_token_end_superseded(envelope);
}

#endif
