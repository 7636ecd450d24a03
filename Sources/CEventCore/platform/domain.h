/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Our whole view of RCU. domain.c is the only file that includes liburcu.
 *
 * Who reclaims, and when: reclaimer.c.
 *
 * Flavour: urcu-bp ("bulletproof"), because it registers threads by itself and callers are anybody's
 * threads (GCD, the cooperative pool, plain pthreads). Its functions are called, not inlined, unless
 * the trait LGPLInline is on: 9 ns for a section instead of 1, on paths that run when a thread's route
 * cache misses, and for every post and take of a shared mailbox.
 *
 * What RCU protects here:
 *   reader                                          reclaimer
 *   router: pointer to the current snapshot, until  evc_router_subscribe and _unsubscribe retire the
 *     a reference is taken                            base reference of the one they replaced
 *   balancer: the same for its receivers             evc_balancer_add and _remove, likewise
 *   shared mailbox: envelopes whose link a taker     evc_pool_trim retires a slab before unmapping it
 *     looks at while another takes them
 *   shared mailbox: segments of its queues, in       evc_shared_queue_advance retires a segment that
 *     which others may still be looking                it has taken out of the queue
 *
 * Nothing waits, calls user code or allocates inside a section. Trees have sections of their own, whose
 * memory comes back at once: tree_reclaim.h says why.
 */
#ifndef EVC_DOMAIN_H
#define EVC_DOMAIN_H

#include <stddef.h>
#include <stdint.h>

/* The domain's own from its retirement to its reclaim. */
struct evc_domain_head {
	struct evc_domain_head *next;
	void (*reclaim)(struct evc_domain_head *head);
};

/* Opens and closes a read section. Threads: any. Progress: wait-free. Sections nest. */
void evc_domain_enter(void);
void evc_domain_leave(void);

/*
 * Calls `reclaim(head)` on the callback thread, after every section that is open now has closed: some ten
 * milliseconds later, and after all that was retired before.
 * Threads: any, also inside a section. Progress: lock-free, but the first call starts the thread.
 * Ownership: `head` is the domain's until then.
 */
void evc_domain_retire(struct evc_domain_head *head, void (*reclaim)(struct evc_domain_head *));

/*
 * The same for what may wait, in no order among themselves: 50 ms, unless something is to be reclaimed sooner,
 * or a megabyte waits.
 * `bytes`: what it keeps, about.
 */
void evc_domain_retire_patiently(struct evc_domain_head *head, size_t bytes,
				 void (*reclaim)(struct evc_domain_head *));

/*
 * Calls `call()` on the callback thread, once, after so many nanoseconds: one call at a time is in waiting, a
 * later one takes its place. Threads: any. Progress: lock-free, but the first call starts the thread.
 */
void evc_domain_call_later(uint64_t after, void (*call)(void));

/*
 * Calls what a user gave us, and what may take the user's locks: a fork does not wait for it. Whoever may run in
 * a reclaim calls it by this.
 * Threads: any, with no lock of the core held. Progress: that of `call`, and in a reclaim a fork's.
 */
void evc_domain_run_user_code(void (*call)(void *context), void *context);

/* For the callback thread: before it starts. Threads: any. Progress: blocking, the first time. */
void evc_domain_prepare(void);

/*
 * Waits until every section that is open now has closed. Threads: any, not inside a section, and after
 * evc_domain_prepare. Progress: blocking.
 */
void evc_domain_synchronize(void);

#endif
