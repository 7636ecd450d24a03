/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * When handlers, links and nodes that have left a tree are freed: as soon as no walk can look at them any
 * more, by whoever finds that first.
 *
 * It is RCU whose quiescent state is user code: a walk is inside a section only while it collects handlers,
 * never while one of them runs; and what it holds meanwhile, the rest of its chunk, is published like hazard
 * pointers (Michael 2004). So a handler that never returns keeps one chunk, and nothing else.
 *
 * Why not liburcu: its sections would serve for collecting, but memory comes back on its callback
 * thread after a grace period of milliseconds, and with it the user's closure, whose end is expected
 * when the handler was removed (D9); and it would not let user code run, so that a chunk would have to
 * be held all the same. Its section also costs 18 ns where this one costs 6 (Benchmarks/README.md,
 * "Choices").
 *
 *   walk                                          whoever changes or goes over
 *   W1 epoch = clock             relaxed          U1 unlink                       release
 *   W2 word = epoch, collecting  exchange, fence  U2 clock = now, the item's      exchange, fence
 *      was it absent? then                        U3 take in who has joined       acquire
 *   J  join                      push                of each that is present read the word      acquire
 *   W3 read the tree             acquire          U4 if it collects with an epoch before the item's: held
 *   W4 publish chunk, root, position              U5 read what it has published: if the item is there: held
 *   W5 word = walks              exchange         U6 held: word |= wanted, U4 and U5 once more  fetch-or
 *      was it wanted? then W6 go over             U7 held still: it stays deferred; else it is freed
 *      call, call ...                             A  it is in no walk, and was not for long:
 *   W7 at the end: publish nothing                   word = absent               compare-and-swap
 *   W8 word = idle, W6 as above  exchange            then it is no longer on the list
 *
 * Nothing is freed under a walk: W2, J and U2 are full barriers. If U3 comes before W2, or before J where there is
 * one, all of W3 sees U1 and does not find the item. If it comes after, it finds `collecting`; then an epoch not
 * before the item's says that W1 read U2 or later and W3 sees U1; else the item is held. If it comes after W5,
 * W4 shows (acquire), and the item is found there as long as the walk will use it. What was published once
 * only shrinks until the next W2.
 *
 * Nobody is missed: `idle` and `absent` say that nothing is published, and A succeeds only on a word that still
 * says so. Whoever is made absent finds that in its next W2 (one of the two exchanges comes first), and joins
 * before it reads a tree. A walker is on one list at most, since J follows A, and A is past it.
 *
 * Nothing is forgotten: U6, W5 and W8 exchange the same word. Either the walk sees `wanted`, or U6 sees what the
 * walk has done. A W2 in between takes `wanted` away, and notes it (`holds`) for the end of the chunk. The walk
 * which sees it goes over the deferred items; if another has the mutex, it leaves word, and the holder looks for
 * that after it has let go:
 *   is_requested = 1; fence; trylock              unlock; fence; is_requested?
 *
 * What a change costs: a look at each walker that is present, those that have walked within the last
 * EVC_WALKER_PATIENCE changes. A raise pays nothing for it but J, if that many changes were made since its
 * thread's last one.
 *
 * Tests/Models/tree.pml models all of this.
 */
#ifndef EVC_TREE_RECLAIM_H
#define EVC_TREE_RECLAIM_H

#include "tree/tree_private.h"

struct evc_walker;

/* Gives an item that was unlinked at `now` to the reclaimer. Under the mutex, before the change is counted. */
void evc_tree_retire(struct evc_tree_item *item, uint64_t now);

/* W6, W8: goes over the deferred items, or has it done. Not while collecting. May call `release`. */
void evc_tree_go_over(void);

#endif
