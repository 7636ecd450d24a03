/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Waiting until a handler that was removed is not running: evc_handler_remove_and_wait. Walks tell
 * those who wait when they go on from a handler for which they were asked to; nobody looks again and
 * again.
 *
 *   walk, at each step                            whoever waits
 *   V1 calling = the next, or NULL   release      R  state = 1                         release
 *   V2 read last_removal; if that    relaxed      C  the clock                         exchange, fence
 *      is not as before this was                  E  last_removal = the clock            relaxed
 *      collected, read the state     relaxed      V4 barrier everywhere
 *   V3 awaited? then awaited = 0,                 V5 ticket = wakes
 *      V8 wakes + 1, signal                       V6 under the mutex: which walks are in it? (acquire)
 *                                                    awaited = 1 in those
 *                                                 V7 barrier everywhere; V6 again, until no walk is new
 *                                                 V9 sleep while wakes == ticket; then from V5 again
 *
 * It does not return too early: V1 and V2 against R, E and V6. Either V6 sees the handler in `calling`, or
 * V4 came before V1, and V2 sees E, and then R: no call begins. Who finds the handler removed by another comes
 * after that one's E as well, by the mutex.
 *
 * Why E says as much as the state: a walk that has read it before it collects finds the handler neither in the
 * tree, which it was taken out of before, nor in what the walk before had collected, since C comes before E,
 * and that is taken up only while the clock has not moved. And a removal of which calls are not told has not
 * returned, and nobody else is told of it (evc_handler_is_active). last_removal is one line for all calls,
 * the state a line for each; and it moves with removals alone, the clock with every change.
 *
 * It does not sleep for ever: V1 and V3 against awaited = 1 and the second V6. Either that sees that
 * the walk has gone on, or V7 came before V1 of that step, and its V3 sees `awaited`; then V8 comes
 * after V5, and V9 does not sleep or is woken. All of V6 and V7 is under the mutex, so that a walk
 * which is not new was asked before this V7, and not by somebody whose own V7 is still to come.
 *
 * A barrier everywhere runs on the other threads between two of their instructions; the compiler is
 * kept from moving V1. Where the system has none, V4 and V7 are fences, and so has the walk one after
 * V1: it is careful there all the time.
 *
 * Progress: V3 is wait-free unless somebody waits; then it takes the mutex of the waiters, which nobody holds
 * for more than a few instructions. Tests/Models/tree_wait.pml models all of this.
 */
#ifndef EVC_TREE_WAIT_H
#define EVC_TREE_WAIT_H

#include "tree/tree_walker.h"

/* V8: wakes all who wait, to look again. Any thread. */
void evc_tree_wake_waiters(void);

/* Nobody waits in a child of fork. */
void evc_tree_forget_waiters(void);

/* Whether a walk of this walker is inside of the handler. The walker's thread, or under the mutex. */
bool evc_walker_is_calling(struct evc_walker *walker, const struct evc_handler *handler);

/* V3, where the walk may have been asked to tell. The walk's thread. */
void evc_walk_tell(struct evc_tree_walk *walk);

/* After V1: V3. The walk's thread. */
static inline void evc_walk_went_on(struct evc_tree_walk *walk)
{
	atomic_signal_fence(memory_order_seq_cst);
	/* Relaxed: ordered by V7; where there is none the walk is careful, and comes to its fence. */
	if (evc_unlikely(atomic_load_explicit(&walk->attention, memory_order_relaxed) != 0))
		evc_walk_tell(walk);
}

#endif
