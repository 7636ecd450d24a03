/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A subscription of which one envelope waits at most: a sink of its own, in front of a mailbox or a shared mailbox,
 * that keeps the newest envelope in a slot and ends the one that was there. What goes into the mailbox is a token,
 * which tells whoever takes it where in the lanes to look into the slot.
 *
 * A token is a slot. For each lane there is one at most that has the state, by its number (token.h), which says
 * where it is:
 *
 *   NONE      nowhere
 *   CLAIMED   a producer is about to post it
 *   POSTED    in the mailbox
 *
 *   producer of an envelope of lane L                taker of a token of lane L: the consumer, or any worker
 *   P1 put it into the slot            seq_cst RMW   K1 if the token has the        seq_cst RMW
 *   P2 load state[L]                   seq_cst          state: → NONE
 *      POSTED: done                                  K2 load the slot               seq_cst
 *      else:   → a new number, CLAIMED acquire RMW      empty, or an event of a
 *              put the token           seq_cst RMW      lane after L: no event
 *              if it has the state:                     else CAS the slot: what     acquire RMW
 *              → POSTED                release RMW      was loaded → 0, or K2 again
 *   P3 tell the consumer               seq_cst
 *   P4 end what P1 found
 * A producer that finds the state CLAIMED takes it over by a new number: the one that claimed it may be held up.
 * That one's token comes in addition when it goes on, which does no harm; so that there are no more tokens of a
 * lane than one, and one for each producer that was held up between its claim and its post.
 *
 * The slot's word tells the event's lane, so that an event of a later lane is not touched: taken out and put back,
 * its own token might be taken between the two, find nothing, and leave the event without one. What a CAS takes is
 * what its expected word says, lane included, also if the word has been away meanwhile.
 *
 * Claim 1: when a dispatch of an envelope e of lane L returns, a token of lane L has been posted whose K2
 * follows P1(e) in the single order of seq_cst operations.
 *   - P2 saw POSTED: the post of that token happened before (the change to POSTED releases, P2 acquires),
 *     and its K1 replaces the POSTED that P2 read (numbers do not come again), so that it follows P2, and K2
 *     follows K1: a token has one taker. If P2's claim found POSTED, and not its first load, K1 follows that load
 *     all the same, which had read what was there before.
 *   - Otherwise the producer has posted a token itself after P1, and its K2 follows its post.
 *   In particular nobody relies on a token that another producer has still to post: an event would then
 *   wait for a producer that may be preempted, although its own dispatch has returned (D1, D10). Nor on one that
 *   has put a token and not told the consumer yet: each producer tells (P3: the alarm, the wake), after the put of the
 *   token that it relies on, so that the proof in mailbox_private.h holds for it as for the one that put it.
 * Claim 2: an envelope that is in the slot and belongs to lane L has a token of lane L whose K2 is still to come, in
 * the mailbox or in the hands of a taker between its take and its K2; or its own producer is still before the end
 * of P2.
 *   By claim 1 there was one whose K2 follows P1(e). If it has been, it saw e, which it would have taken, or
 *   a newer one: then e was not in the slot any more.
 * Hence each envelope is delivered, or ended and counted because a newer one was accepted (D4); the newest is taken
 * when its lane's turn comes at the latest (D1: its own token is in its lane), unless a worker has its token already
 * and is about to take it; or sooner where an older token of a later lane comes to it before its own post is done.
 * The token of a lane stands where the oldest of the superseded events of that lane stood.
 * Workers that have taken events run side by side: an event may be handled while a worker is still at the
 * one before it, as with every event of a shared mailbox.
 * Claim 3: whoever handles e finds all counted that e took the place of, and all that those did, but
 * for those that somebody is moving out of the full bits at that moment, which are counted when that is
 * done.
 *   What an envelope supersedes is counted by its P1 itself, in the bits of the slot, or before it: what
 *   follows it in its own chain, and what is moved out of the bits when they are full. Each P1 and K2 is a
 *   read-modify-write of the slot, so that the one which takes e acquires what came before all of them.
 *   (A thread of a pool that is retired ends by that count, and nobody tells it again.)
 *
 * Closing: a token that the mailbox drops empties the slot (K1 and K2), whoever drops it. A producer that
 * is past the first look at CLOSED posts its token in any case, as evc_mailbox_push does.
 *
 * Progress: a dispatch is lock-free: P1 is repeated if another producer or a taker was in between. So is K2: its CAS
 * fails only if a newer envelope came, or another taker took it.
 *
 * Ownership: `references` counts the owner, sinks that routers hold, tokens in the mailbox, and the
 * envelope that a token was exchanged for until it ends (EVC_ENVELOPE_HOLDS). The first two hold
 * the mailbox too; the others must not, since they would keep it from ending.
 *
 * Memory: one envelope, and a slot for each token, of which a producer sets one aside before P1 (spares.h).
 * Tests/Models/latest.pml (one consumer, and closing) and shared_latest.pml (several takers) check this over all
 * interleavings of small cases.
 */
#ifndef EVC_LATEST_H
#define EVC_LATEST_H

#include "latest/token.h"
#include "latest/subscription_list.h"

/* The slot's word: the address, and in the six bits that its alignment leaves free a count, and the lane. */
#define EVC_LATEST_LANE ((uintptr_t)15)
#define EVC_LATEST_COUNT_ONE ((uintptr_t)16)
#define EVC_LATEST_COUNT ((uintptr_t)48)

static_assert(EVC_LANE_COUNT <= EVC_LATEST_LANE + 1, "a lane fits into the slot's word");

struct evc_latest {
	struct evc_sink sink;
	/* What routers know: its sink is the one above. Constant. */
	struct evc_subscription subscription;
	/* What tokens are posted to, and its list, which this is in. Constant. */
	struct evc_sink *mailbox;
	struct evc_subscription_list *list;
	/* Guarded by the list's mutex. */
	struct evc_latest *next;
	struct evc_latest **link;
	_Atomic uint32_t references;

	/*
	 * Producers and takers. It also counts how many were superseded here since these were counted last: an
	 * atomic addition for each would cost a dispatch as much as the exchange itself (6 of 30 ns).
	 */
	_Alignas(EVC_CACHE_LINE) _Atomic uintptr_t slot;
	_Atomic uint64_t state[EVC_LANE_COUNT];
	/* What was superseded, without what `slot` counts. Relaxed: a statistic. */
	_Atomic uint64_t superseded;
};

/*
 * Makes one in front of the mailbox whose sink `as` names. `accept` is made of the functions below, and `needs`
 * what a post of a token may need.
 */
enum evc_status evc_latest_create(const struct evc_subscription *as, struct evc_subscription_list *list,
				  enum evc_status (*accept)(struct evc_sink *sink,
							    const struct evc_chain *chain),
				  uint8_t needs, struct evc_subscription **out);

/*
 * A token was taken: the event that it stands for, or NULL. The token is not the caller's any more; the
 * event is. The consumer, or any worker, outside of sections. `cache` is the taker's.
 */
struct evc_envelope *evc_latest_take(struct evc_envelope *token, struct evc_return_cache *cache);

/*
 * A token is dropped, and with it what is in the slot. Returns whether that was an event. Any thread; `cache` may be
 * NULL.
 */
bool evc_latest_drop(struct evc_envelope *token, struct evc_return_cache *cache);

/* The sum of what was superseded in the subscriptions of a mailbox. Any thread. */
uint64_t evc_latest_superseded(struct evc_subscription_list *list);

/*
 * Takes off the figures of the lanes what stands in them for no event: a token of a lane that a newer envelope has
 * left. Any thread.
 */
void evc_latest_discount(struct evc_subscription_list *list, uint64_t depths[EVC_LANE_COUNT]);

/* Makes room in the bits of a slot that is read as `old`. Returns what it is now. */
uintptr_t evc_latest_carry(struct evc_latest *latest, uintptr_t old);
/* P2, for a state that was not POSTED: the token that is to be posted, NULL if the one that is there does. */
struct evc_envelope *evc_latest_claim(struct evc_latest *latest, unsigned lane,
				      struct evc_thread_record *record);
/* Ends what a chain has before its last envelope, which takes the place of all of it. */
void evc_latest_supersede_chain(const struct evc_chain *chain);

static inline struct evc_envelope *evc_latest_envelope(uintptr_t slot)
{
	return (struct evc_envelope *)(slot & ~(EVC_LATEST_LANE | EVC_LATEST_COUNT));
}

static inline void evc_latest_count(struct evc_latest *latest, uint32_t count)
{
	atomic_fetch_add_explicit(&latest->superseded, count, memory_order_relaxed);
}

/*
 * P1. Returns the envelope that was superseded, if any, which it counts; never after P1, so that whoever
 * handles an event finds all counted that it took the place of, and all that those did.
 */
static inline struct evc_envelope *evc_latest_put(struct evc_latest *latest, struct evc_envelope *newest,
						  unsigned lane)
{
	uintptr_t old = atomic_load_explicit(&latest->slot, memory_order_relaxed);
	uintptr_t count;

	do {
		while (evc_unlikely((old & EVC_LATEST_COUNT) == EVC_LATEST_COUNT))
			old = evc_latest_carry(latest, old);
		count = old == 0 ? 0 : (old & EVC_LATEST_COUNT) + EVC_LATEST_COUNT_ONE;
		/* Releases the envelope, and acquires the one that is superseded. */
	} while (!atomic_compare_exchange_weak_explicit(&latest->slot, &old,
							(uintptr_t)newest | count | lane,
							memory_order_seq_cst, memory_order_relaxed));
	return evc_latest_envelope(old);
}

/* A dispatch to a latest-only subscription, from evc_latest_begin to evc_latest_end. */
struct evc_latest_dispatch {
	unsigned lane;
	/* To be put into the lane, and settled: mostly NULL. */
	struct evc_envelope *token;
	uint64_t number;
	struct evc_envelope *superseded;
};

/* P1, and P2 up to the put of the token. `is_closed`: of the mailbox. */
static inline enum evc_status evc_latest_begin(struct evc_latest *latest, const struct evc_chain *chain,
					       bool is_closed, struct evc_latest_dispatch *dispatch)
{
	struct evc_envelope *newest = chain->last;
	struct evc_thread_record *record = evc_thread_record();

	if (evc_unlikely(newest == NULL))
		return EVC_INVALID_ARGUMENT;
	if (evc_unlikely(is_closed))
		return EVC_CLOSED;
	/* Before P1, after which there is no way back. A dispatch has done so already. */
	if (evc_unlikely(record == NULL || !evc_spares_ready(record, latest->sink.needs)))
		return EVC_OUT_OF_MEMORY;
	dispatch->lane = newest->lane;
	/* Before P1: see there. */
	if (evc_unlikely(chain->count > 1))
		evc_latest_count(latest, chain->count - 1);
	dispatch->superseded = evc_latest_put(latest, newest, dispatch->lane);
	dispatch->token = NULL;
	/* P2; acquires the post of the token that is there. */
	if ((atomic_load_explicit(&latest->state[dispatch->lane], memory_order_seq_cst) &
	     EVC_TOKEN_WHERE) != EVC_TOKEN_POSTED) {
		dispatch->token = evc_latest_claim(latest, dispatch->lane, record);
		if (dispatch->token != NULL)
			dispatch->number = dispatch->token->time;
	}
	return EVC_OK;
}

/* P2: the token has been put. */
static inline void evc_latest_settle(struct evc_latest *latest, const struct evc_latest_dispatch *dispatch)
{
	evc_token_settle(&latest->state[dispatch->lane], dispatch->number);
}

/* P4, after P3. Last, since the end of a payload is user code, which may dispatch. */
static inline void evc_latest_end(const struct evc_chain *chain, const struct evc_latest_dispatch *dispatch)
{
	if (evc_unlikely(chain->count > 1))
		evc_latest_supersede_chain(chain);
	if (dispatch->superseded != NULL)
		evc_envelope_supersede(dispatch->superseded);
}

#endif
