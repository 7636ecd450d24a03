/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Waiting until a removed handler is not running: evc_handler_remove_and_wait. A waiting thread asks walks to
 * tell it when they leave the handler; no thread polls.
 *
 *   walk, at each step                            waiting thread
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
 * It does not return too early: V1 and V2 against R, E and V6. Either V6 sees the handler in `calling`, or V4
 * came before V1, and V2 sees E, and then R: no call begins. A thread that finds the handler removed by
 * another comes after that one's E too, by the mutex.
 *
 * Why E says as much as the state: a walk that has read E before it collects finds the handler neither in the
 * tree, from which it was removed before, nor in what the walk before had collected, since C comes before E,
 * and a cached chunk is used only if the clock has not changed. A removal that is not announced yet has not
 * returned, and no other thread is told of it (evc_handler_is_active). last_removal is one line for all
 * calls, the state a line for each; and it changes only with removals, the clock with every change.
 *
 * It does not sleep for ever: V1 and V3 against awaited = 1 and the second V6. Either that V6 sees that the
 * walk has left the handler, or V7 came before V1 of that step, and its V3 sees `awaited`; then V8 comes
 * after V5, and V9 does not sleep or is woken. All of V6 and V7 is under the mutex, so that a walk that is
 * not new was asked before this V7, and not by a thread whose own V7 is still to come.
 *
 * A barrier everywhere takes effect on the other threads between two of their instructions; a compiler
 * barrier keeps V1 in its place. Where the system has no such barrier, V4 and V7 are fences, and the walk
 * executes a fence after V1: `attention` then always has EVC_WALK_CAREFUL.
 *
 * Progress: V3 is wait-free unless a thread waits; then it takes the mutex of the waiting threads, which is
 * held for a few instructions only. Tests/Models/tree_wait.pml models all of this.
 */
#ifndef EVC_TREE_WAIT_H
#define EVC_TREE_WAIT_H

#include "tree/tree_walker.h"

/* V8: wakes all waiting threads, to look again. Any thread. */
void evc_tree_wake_waiters(void);

/* For a child of fork, in which no thread waits. */
void evc_tree_forget_waiters(void);

/* V3, if the walk may have been asked to tell. The walk's thread. */
void evc_walk_tell(struct evc_tree_walk *walk);

/* After V1: V3. The walk's thread. */
static inline void evc_walk_went_on(struct evc_tree_walk *walk)
{
	atomic_signal_fence(memory_order_seq_cst);
	/*
	 * Relaxed: ordered by V7. Without that barrier `attention` is never 0, so that the fence of
	 * evc_walk_tell orders it.
	 */
	if (evc_unlikely(atomic_load_explicit(&walk->attention, memory_order_relaxed) != 0))
		evc_walk_tell(walk);
}

#endif
