/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file reclaim.h
 * When the core frees what others may still be reading, and how a program ends it.
 *
 * Routes that were replaced, emptied segments of shared mailboxes and slabs without a used slot are freed a grace
 * period after the last thread could have found them; `finalize` functions are called then. The core starts no thread
 * for this unless it is asked to. A program chooses one of these:
 *
 *     evc_reclaimer_start()     a thread of the core frees, some 50 ms later, and sleeps otherwise
 *     evc_reclaim(budget)       the program's own loop frees, now and then
 *     neither                   it waits for evc_shutdown(): for a program that subscribes once and then only posts, to
 *                               mailboxes with one consumer and without EVC_OVERFLOW_DROP_OLDEST; the others take
 *                               4 KiB for some 500 events of a queue lane, which only a reclaim frees
 *
 * A plug-in that uses its host's core: the core calls its functions until what has them is freed, a mailbox with each
 * subscription that it ever had, a balancer, and the handlers of nodes; only their `finalize` and `release` say when
 * they are. Before it is unloaded:
 *
 *     1. it ends its threads, subscriptions, mailboxes, balancers and nodes, and its schedulers by evc_scheduler_close and
 *        evc_scheduler_join; so does the host with a mailbox of its own that was given a function of the plug-in's; timers
 *        in a scheduler of the host's have fired for the last time, were dropped, or were cancelled with EVC_OK;
 *     2. each thread that has dispatched to them ends, dispatches the same keys again (not by evc_try_dispatch), or
 *        calls evc_unregister_thread, since a thread keeps the routes of its last dispatches (evc_router_destroy), and
 *        with them their receivers;
 *     3. evc_reclaim, or the thread of evc_reclaimer_start, has called the `finalize` of each mailbox, of each
 *        subscription of a shared mailbox and of each balancer, a function of the host's (that evc_reclaim returns
 *        EVC_OK does not say so), and the `release` of each handler of a node, one of the host's too, has returned.
 *        Owners of eventcore.hpp set their own functions: a plug-in with an eventcore::balancer, or with handlers of
 *        an eventcore::node, is not unloaded.
 */
#ifndef EVENTCORE_RECLAIM_H
#define EVENTCORE_RECLAIM_H

#include "base.h"

EVC_BEGIN_DECLS

/**
 * Lets a thread of the core free what was retired, from now on. The thread starts when there is something to free; if
 * it cannot be started, the next thing that is retired tries again. It ends with `evc_shutdown`.
 *
 * Threads: any; may be called more than once. Progress: as the start of a thread, if something waits already;
 * otherwise wait-free.
 */
EVC_API void evc_reclaimer_start(void);

/**
 * Frees what was retired before the call, on the calling thread, and trims the slab pools if that is due (pool.h). Call
 * it once a frame, for example. It may also help a thread that `evc_reclaimer_start` has started.
 *
 * If there is something to free, it waits for a grace period: some microseconds, but milliseconds if the system takes
 * another thread away in the middle of a dispatch whose route is not cached, or of a call on a shared mailbox.
 *
 * @param budget nanoseconds after which it frees no more; at least eight items are freed even so. The grace period and
 *        the trim are not interrupted.
 * @return EVC_OK: nothing is left of what was retired before the call (a `finalize` may still be running on another
 *         thread); what that has let go of in turn, such as the receivers of a balancer, a later call frees.
 *         EVC_TIMED_OUT: call again; the time is over, or another thread is freeing.
 *
 * Threads: any, also in a handler, but not in a `finalize`. Progress: blocking, as said; that of the `finalize`
 * functions. Nothing waits for it. Errors: EVC_NOT_PERMITTED inside a `finalize` that a reclaim calls.
 */
EVC_API EVC_MUST_USE enum evc_status evc_reclaim(uint64_t budget);

/**
 * Gives back what the core keeps for the calling thread: its slab pools with its reserve (realtime.h), its routes, its
 * trees' memory. The end of a thread does the same. Call it on a thread that the program did not start, and that
 * lives on after its last call of the core, before the core is shut down. A later call of the core makes everything
 * anew.
 *
 * Threads: the one that gives back. Progress: blocking for a moment (mutexes). Errors: EVC_NOT_PERMITTED inside a
 * handler, a walk or a dispatch of this thread, inside a `finalize` that a reclaim calls, on the thread of a scheduler,
 * or while this thread has entered a mailbox: it keeps all that is in use there.
 */
EVC_API EVC_MUST_USE enum evc_status evc_unregister_thread(void);

/**
 * Ends the core: unregisters the calling thread, ends the thread of `evc_reclaimer_start`, and frees all memory. After
 * EVC_OK the library holds no memory, runs no thread, and has no function that the system would call at the end of
 * some thread: a plug-in that contains it can be unloaded. The core can be used again; it then starts from nothing,
 * without a thread.
 *
 * @return EVC_NOT_PERMITTED if the core is in use: an object was not released (also a closed scheduler that was not
 *         joined, an envelope, a node or a handler of a tree); another thread has used the core and neither ended nor
 *         called `evc_unregister_thread`, in a child of fork also one of the parent's; the call is made in a handler, a
 *         walk, a dispatch, a `fire` or a `finalize`; or another thread is in this function. Everything still works
 *         then; only memory that nobody used was given back, and perhaps the calling thread's reserve (realtime.h).
 *
 * Threads: any, while no other thread calls the core; threads of the program that have used it are joined first.
 * Progress: blocking. Errors: EVC_NOT_PERMITTED.
 */
EVC_API EVC_MUST_USE enum evc_status evc_shutdown(void);

EVC_END_DECLS
#endif
