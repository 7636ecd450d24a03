/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A latest-only subscription of a shared mailbox: as latest.h, with any number of takers. One slot for
 * all workers, in front of the shared mailbox; tokens in its lanes; whichever worker takes a token
 * takes the event.
 *
 * Producers do what they do there (P1 to P4), and so does whoever takes a token at K1. What differs is the
 * look into the slot. There the one consumer takes whatever it finds, and puts an event of a later lane back
 * (K3). With several takers the event's own token might be taken between the two, find nothing, and leave the
 * event without one. So here the slot's word tells the event's lane, and such an event is not touched:
 *
 *   worker that took a token of lane L
 *   K1 as in latest.h
 *   K2 load the slot                                          seq_cst
 *      empty, or the event is of a lane after L: no event
 *      else CAS the slot: what was loaded → 0, or K2 again    seq_cst RMW
 *
 * What a CAS takes is what its expected word says, lane included, also if the word has been away meanwhile.
 *
 * Claim 1 of latest.h (when a dispatch of an envelope e of lane L returns, a token of lane L has been posted
 * whose K2 follows P1(e)) is about producers and K1 alone, and holds as it stands: a token has one taker, whose K1
 * and K2 follow each other.
 * Claim 2: an envelope that is in the slot and belongs to lane L has a token of lane L whose K2 is still to
 * come, in the mailbox or in the hands of a worker between its take and its K2; or its own producer is still
 * before the end of P2.
 *   By claim 1 there was one whose K2 follows P1(e). If it has been, it saw e, which it would have taken, or
 *   a newer one: then e was not in the slot any more.
 * Claim 3 of latest.h (whoever handles e finds all counted that e took the place of) holds for the same
 * reason: what an envelope supersedes is counted by its P1 or before it.
 * Hence, as there: each envelope is delivered, or ended and counted because a newer one was accepted (D4);
 * the newest is taken when its lane's turn comes at the latest (D1), unless a worker has its token already
 * and is about to take it.
 * Workers that have taken events run side by side: an event may be handled while a worker is still at the
 * one before it, as with every event of a shared mailbox.
 *
 * Closing is that of the mailbox (shared_mailbox_private.h): a producer that is past its look at CLOSED
 * posts its token in any case, and whoever drops the token empties the slot.
 *
 * Progress: as latest.h. K2 is lock-free: its CAS fails only if a newer envelope came, or another taker took it.
 *
 * Ownership and memory: as in latest.h, with the shared mailbox in the place of the mailbox.
 * Tests/Models/shared_latest.pml checks this over all interleavings of small cases.
 */
#ifndef EVC_SHARED_LATEST_H
#define EVC_SHARED_LATEST_H

#include "shared/shared_mailbox_private.h"

struct evc_shared_latest {
	struct evc_sink sink;
	/* What routers know: its sink is the one above. Constant. */
	struct evc_shared_subscription subscription;
	struct evc_shared_mailbox *mailbox;
	/* Of the mailbox's list; guarded by its subscription mutex. */
	struct evc_shared_latest *next;
	struct evc_shared_latest **link;
	_Atomic uint32_t references;

	/*
	 * Producers and workers. The envelope's address, and in the six bits that its alignment leaves free
	 * its lane, and how many were superseded here since these were counted last.
	 */
	_Alignas(EVC_CACHE_LINE) _Atomic uintptr_t slot;
	_Atomic uint64_t state[EVC_LANE_COUNT];
	/* What was superseded, without what `slot` counts. Relaxed: a statistic. */
	_Atomic uint64_t superseded;
};

/*
 * A token was taken: the event that it stands for, or NULL. The token is not the caller's any more; the
 * event is. Any worker's thread, outside of sections.
 */
struct evc_envelope *evc_shared_latest_take(struct evc_envelope *token,
					    struct evc_return_cache *cache);

/* A token is dropped, and with it what is in the slot. Returns whether that was an event. Any thread. */
bool evc_shared_latest_drop(struct evc_envelope *token);

/* An envelope that held a reference of its subscription has ended. */
void evc_shared_latest_let_go(struct evc_subscription *subscription);

/* The sum of what was superseded in a mailbox. Any thread. */
uint64_t evc_shared_latest_superseded(struct evc_shared_mailbox *mailbox);

#endif
