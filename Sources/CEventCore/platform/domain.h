/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The core's entire view of RCU. Only domain.c includes liburcu.
 *
 * Who reclaims, and when: reclaimer.c.
 *
 * Flavour: urcu-bp ("bulletproof"), because it registers threads by itself and any thread may call the core
 * (GCD, the cooperative pool, plain pthreads). Its functions are called, not inlined, unless the trait
 * LGPLInline is on: a section costs 9 ns instead of 1. That price is paid when a thread's route cache misses,
 * and by every post and take of a shared mailbox.
 *
 * What RCU protects here:
 *   reader                                          reclaimer
 *   router: pointer to the current snapshot, until  evc_router_subscribe and _unsubscribe retire the
 *     a reference is taken                            base reference of the one they replaced
 *   balancer: the same for its receivers             evc_balancer_add and _remove, likewise
 *   shared mailbox: envelopes whose link a taker     evc_pool_trim retires a slab before unmapping it
 *     reads while another takes them
 *   shared mailbox: segments of its queues that      evc_shared_queue_advance retires a segment that
 *     others may still be reading                      it has taken out of the queue
 *
 * Inside a section no code waits, calls user code or allocates. Trees have sections of their own, whose
 * memory is freed at once; tree_reclaim.h gives the reason.
 */
#ifndef EVC_DOMAIN_H
#define EVC_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Belongs to the domain from the retirement to the reclaim. */
struct evc_domain_head {
	struct evc_domain_head *next;
	void (*reclaim)(struct evc_domain_head *head);
};

/* Begin and end a read section. Threads: any. Progress: wait-free. Sections nest. */
void evc_domain_enter(void);
void evc_domain_leave(void);

/*
 * Retires `head`: calls `reclaim(head)` after a grace period, on the callback thread some 50 ms later, or
 * sooner if a megabyte waits; or on a thread that calls evc_reclaim. Items are reclaimed in no particular order.
 * `bytes`: roughly the memory that `head` keeps. Threads: any, also inside a section. Progress: lock-free, except
 * that the first call starts the thread, if one is wanted. Ownership: `head` is the domain's until `reclaim` is
 * called.
 */
void evc_domain_retire(struct evc_domain_head *head, size_t bytes, void (*reclaim)(struct evc_domain_head *));

/*
 * Calls `call()` once where items are reclaimed, after `after` nanoseconds, unless a call is scheduled; the same function
 * each time. Before that call begins another one may be scheduled.
 * Threads: any. Progress: as evc_domain_retire.
 */
void evc_domain_call_later(uint64_t after, void (*call)(void));

/*
 * Runs user code, which may take the user's locks: a fork does not wait for it. Whatever a reclaim runs must
 * call user code by this. Threads: any, with no lock of the core held.
 */
void evc_domain_run_user_code(void (*call)(void *context), void *context);

/* For the callback thread, before it starts. Threads: any. Progress: blocking, the first time. */
void evc_domain_prepare(void);

/*
 * Waits until every section that is open now has closed. After evc_domain_prepare. Any thread, not inside a
 * section. Blocking.
 */
void evc_domain_synchronize(void);

/* For evc_shutdown (process/shutdown.c), one thread at a time. */

/* True while this thread reclaims, also in user code that it calls for that. */
bool evc_domain_is_reclaiming(void);
/* Ends the callback thread, and wants none from here on. Returns whether one was wanted. Not on that thread. */
bool evc_domain_stop(void);
/* Reclaims everything, also what is retired meanwhile. Blocking. */
void evc_domain_reclaim_all(void);
/* How many blocks of the allocator the stopped thread has left for the next one; evc_domain_end frees them. */
size_t evc_domain_blocks(void);
void evc_domain_end(void);

#endif
