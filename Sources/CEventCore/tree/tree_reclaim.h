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
 *   W1 epoch = clock             acquire          U1 unlink                       release
 *   W2 word = epoch, collecting  exchange         U2 clock = now, the item's      exchange
 *   W3 read the tree             acquire          U3 read each walker's word      seq_cst
 *   W4 publish chunk, root, position              U4 if it collects with an epoch before the item's: held
 *   W5 word = 0                  exchange         U5 read what it has published: if the item is there: held
 *   W6 wanted? then go over                       U6 held: wanted = 1, fence, U3 to U5 once more
 *      call, call ...                             U7 held still: it stays deferred; else it is freed
 *   W7 at the end: publish nothing
 *   W8 wanted = 0: was it 1? then go over         exchange
 *
 * Nothing is freed under a walk: W2 and U2 are full barriers. If U3 comes before W2, all of W3 sees U1
 * and does not find the item. If it comes after, it finds `collecting`; then an epoch not before the
 * item's says that W1 read U2 or later and W3 sees U1; else the item is held. If it comes after W5, W4
 * shows (acquire), and the item is found there as long as the walk will use it. What was published once
 * only shrinks until the next W2.
 *
 * Nothing is forgotten: W5 and W8 are exchanges and U6 has a fence. Either the walk sees `wanted`, or
 * the second look sees what the walk has done. The walk which sees it goes over the deferred items; if
 * another has the mutex, it leaves word, and the holder looks for that after it has let go:
 *   is_requested = 1; fence; trylock              unlock; fence; is_requested?
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
