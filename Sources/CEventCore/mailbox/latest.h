/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A subscription of which one envelope waits at most: a sink of its own, in front of the mailbox, that
 * keeps the newest envelope in a slot and ends the one that was there. What goes into the mailbox is a
 * token, which tells the consumer where in the lanes to look into the slot.
 *
 * A token is a slot. For each lane there is one at most that has the state, by its number (token.h), which says
 * where it is:
 *
 *   NONE      nowhere
 *   CLAIMED   a producer is about to post it
 *   POSTED    in the mailbox
 *
 *   producer of an envelope of lane L                consumer that takes a token of lane L
 *   P1 put it into the slot            acq_rel RMW   K1 if the token has the        seq_cst RMW
 *   P2 load state[L]                   acquire          state: → NONE
 *      POSTED: done                                  K2 exchange the slot           acq_rel
 *      else:   → a new number, CLAIMED seq_cst RMW      with NULL
 *              put the token           seq_cst RMW      nothing: no event
 *              if it has the state:                     of a lane after L:
 *              → POSTED                seq_cst RMW      K3 NULL → put it back,      release RMW
 *   P3 tell the consumer               seq_cst          or end it if a newer
 *   P4 end what P1 found                                one is there
 *                                                       else: this is the event
 * A producer that finds the state CLAIMED takes it over by a new number: the one that claimed it may be held up.
 * That one's token comes in addition when it goes on, which does no harm; so that there are no more tokens of a
 * lane than one, and one for each producer that was held up between its claim and its post.
 *
 * Claim 1: when a dispatch of an envelope e of lane L returns, a token of lane L has been posted whose K2
 * follows P1(e) in the modification order of the slot.
 *   - P2 saw POSTED: the post of that token happened before (the change to POSTED releases, P2 acquires). If
 *     its K2 came before P1(e), P1(e) would acquire it, and with it K1: P2 would read what K1 left or found, which
 *     is not this POSTED (numbers do not come again).
 *   - Otherwise the producer has posted a token itself after P1, and its K2 follows its post.
 *   In particular nobody relies on a token that another producer has still to post: an event would then
 *   wait for a producer that may be preempted, although its own dispatch has returned (D1, D10). Nor on one that
 *   has put a token and not told the consumer yet: each producer tells (P3: the alarm, the wake), after the put of the
 *   token that it relies on, so that the proof in mailbox_private.h holds for it as for the one that put it.
 * Claim 2: an envelope that is in the slot and belongs to lane L has a token of lane L to come, or its own
 * producer is still before the end of P2.
 *   By claim 1 there was one whose K2 follows P1(e). The consumer is one thread, so that this K2 does not
 *   come between another's K2 and K3. If it has been, it found e (then e is not in the slot: it was on its
 *   lane) or a newer one (then e was not in the slot). So it is still to come.
 * Hence each envelope is delivered, or ended and counted because a newer one was accepted (D4); the newest
 * is delivered on its own lane, or sooner where an older token of a later lane comes to it before its own
 * post is done; and it is never delivered later than D1 asks: its own token is in its lane.
 * The token of a lane stands where the oldest of the superseded events of that lane stood.
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
 * Progress: a dispatch is lock-free: P1 is repeated if another producer or the consumer was in between.
 *
 * Ownership: `references` counts the owner, sinks that routers hold, tokens in the mailbox, and the
 * envelope that a token was exchanged for until it ends (EVC_ENVELOPE_HOLDS). The first two hold
 * the mailbox too; the others must not, since they would keep it from ending.
 *
 * Memory: one envelope, and a slot for each token, of which a producer sets one aside before P1 (spares.h).
 * Tests/Models/latest.pml checks this over all interleavings of small cases.
 */
#ifndef EVC_LATEST_H
#define EVC_LATEST_H

#include "mailbox/mailbox_private.h"

struct evc_latest {
	struct evc_sink sink;
	/* What routers know: its sink is the one above. Constant. */
	struct evc_subscription subscription;
	struct evc_mailbox *mailbox;
	/* Of the mailbox's list; guarded by its subscription mutex. */
	struct evc_latest *next;
	struct evc_latest **link;
	_Atomic uint32_t references;

	/*
	 * Producers and the consumer. The envelope's address, and in the six bits that its alignment
	 * leaves free how many were superseded here since these were counted last: an atomic addition for
	 * each would cost a dispatch as much as the exchange itself (6 of 30 ns).
	 */
	_Alignas(EVC_CACHE_LINE) _Atomic uintptr_t slot;
	_Atomic uint64_t state[EVC_LANE_COUNT];
	/* What was superseded, without what `slot` counts. Relaxed: a statistic. */
	_Atomic uint64_t superseded;
};

/*
 * A token was taken: the event that it stands for, or NULL. The token is not the caller's any more; the
 * event is. Consumer only.
 */
struct evc_envelope *evc_latest_take(struct evc_mailbox *mailbox, struct evc_envelope *token);

/* A token is dropped, and with it what is in the slot. Returns how many events that were. Any thread. */
uint64_t evc_latest_drop(struct evc_envelope *token, struct evc_return_cache *cache);

/* The sum of what was superseded in a mailbox. Any thread. */
uint64_t evc_latest_superseded(struct evc_mailbox *mailbox);

#endif
