/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The callback thread: frees what was retired (domain.h), after a grace period.
 *
 * Why not liburcu's call_rcu: it wakes its thread every 10 ms as long as anything is retired, and a turn
 * (two barriers on all processors, the callbacks of 10 ms) takes 100 us of a processor. In a program
 * that keeps all of them busy, that made the 99th percentile of a stream of events while somebody
 * subscribes. What may wait, which is the snapshots of routers and balancers, waits five times as long here, in
 * fewer turns (Benchmarks/README.md, "Choices").
 *
 *   whoever retires                               the thread
 *   R1 push the item to `pending`   CAS           T1 ticket = evc_parker_prepare
 *   R2 was it empty?                              T2 `pending` empty? wait without limit, T1 again
 *   R3 urgent: `urgent` = true      exchange      T3 begin = now
 *      was it false?                              T4 ticket; if urgent or many, wait until begin + 10 ms,
 *   R4 patient: a megabyte by now?                   otherwise until begin + 50 ms; woken: T4 again
 *   R5 any of these: evc_parker_wake              T5 urgent = false               store
 *                                                 T6 take all of `pending`        exchange
 *                                                 T7 a grace period; reclaim, the oldest first
 * All of it seq_cst, but for the sum of R4, a limit of memory which need not be exact.
 *
 * Nothing is forgotten: an item is there at T6, or its R1 comes after that. Then either it finds `pending`
 * empty, and its R5 comes after the next T1 and ends that wait, or before, and T2 finds it (parker.c); or it
 * finds another of which that is true. And what is urgent does not wait for what is patient: of such an
 * item R3 comes before the T5 of its turn, and T4 sees it (R5), or after, and then it waits for nothing: T6 has taken
 * it. (`urgent` is true too early for the next turn then, which is no harm.)
 * Tests/Models/reclaimer.pml models these lines, but for R4.
 *
 * A grace period that begins after T6 covers all items of the turn, each of which was out of reach before R1.
 *
 * Progress: retiring is lock-free, but that the first has to start the thread. If that cannot be, each tries
 * again, and items wait until one can.
 *
 * Fork: it waits for the end of a turn, which is why it is not called in a reclaim. The child has no thread, and
 * starts one when it retires something. Locks, in this order: `turn`, which the thread has during a turn;
 * `starting`, which whoever starts the thread has, and whoever retires something if there is none: in a
 * reclaim there is.
 */
#ifndef EVC_RECLAIMER_H
#define EVC_RECLAIMER_H

#include <stdbool.h>

/* By domain.c, around fork. */
void evc_reclaimer_before_fork(void);
void evc_reclaimer_after_fork(bool is_child);

/* Of domain.c: before the thread starts; and a grace period, in which it may wait for others to leave. */
void evc_domain_prepare(void);
void evc_domain_synchronize(void);

#endif
