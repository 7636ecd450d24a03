/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * When handlers, links and nodes that were removed from a tree are freed: as soon as no walk can use them any
 * more, by the thread that finds that first.
 *
 * It is RCU whose quiescent state is user code: a walk is inside a section only while it collects handlers,
 * never while one of them runs. What it holds meanwhile, the rest of its chunk, is published like hazard
 * pointers (Michael 2004). A handler that never returns therefore keeps one chunk, and nothing else.
 *
 * Why not liburcu: memory, and with it the user's closure, whose end is expected when the handler is removed
 * (D9), would come back after a grace period of milliseconds. Besides, its section costs 18 ns where this one
 * costs 6 (Documentation/Choices.md).
 *
 *   walk                                          thread that changes or reclaims
 *   W1 epoch = clock             relaxed          U1 unlink                       release
 *   W2 word = epoch, collecting  exchange, fence  U2 clock = now, the item's      exchange, fence
 *      was it absent? then                        U3 take in walkers that have joined     acquire
 *   J  join                      push                of each that is present read the word      acquire
 *   W3 read the tree             acquire          U4 if it collects with an epoch before the item's: held
 *   W4 publish chunk, root, position              U5 read what it has published: if the item is there: held
 *   W5 word = walks              exchange         U6 held: word |= wanted, U4 and U5 once more  fetch-or
 *      was it wanted? then W6 reclaim             U7 held still: it stays deferred; else it is freed
 *      call, call ...                             A  it is in no walk, and was not for long:
 *   W7 at the end: publish nothing                   word = absent               compare-and-swap
 *   W8 word = idle, W6 as above  exchange            then it is no longer on the list
 *
 * Nothing is freed while a walk uses it: W2, J and U2 are full barriers. If U3 comes before W2, or before J
 * where there is one, all of W3 sees U1 and does not find the item. If it comes after, it finds `collecting`.
 * Then, if the epoch is not before the item's, W1 read U2 or later, and W3 sees U1; otherwise the item is
 * held. If U3 comes after W5, W4 is visible (acquire), and the item is found there as long as the walk will
 * use it. What was published only shrinks until the next W2.
 *
 * No walker is missed: `idle` and `absent` say that nothing is published, and A succeeds only on a word that
 * still says so. A walker that is made absent finds that in its next W2 (one of the two exchanges comes
 * first), and joins before it reads a tree. A walker is on one list at most, since J follows A, and A removes
 * it first.
 *
 * No item is forgotten: U6, W5 and W8 exchange the same word. Either the walk sees `wanted`, or U6 sees what
 * the walk has done. A W2 in between removes `wanted`, and notes it (`holds`) for the end of the chunk. The
 * walk that sees it reclaims the deferred items. What the reclaiming thread holds itself it notes as well: the
 * innermost walk that holds any (`holder`), and how far that has to come; until then its walks inside do not
 * look. If another thread has the mutex, the walk leaves a request, which that one looks for after it has
 * unlocked:
 *   is_requested = 1; fence; trylock              unlock; fence; is_requested?
 *
 * What a change costs: a look at each walker that is present, which are those that have walked within the
 * last EVC_WALKER_PATIENCE changes. A raise pays only J for this, and only if that many changes were made
 * since its thread's last walk.
 *
 * Tests/Models/tree.pml models all of this.
 */
#ifndef EVC_TREE_RECLAIM_H
#define EVC_TREE_RECLAIM_H

#include "tree/tree_private.h"

/* Retires an item that was unlinked at `now`. Under the mutex, before the change is counted. */
void evc_tree_retire(struct evc_tree_item *item, uint64_t now);

/* W6, W8: reclaims the deferred items, or has the mutex's holder do so. Not while collecting. */
void evc_tree_reclaim(void);

#endif
