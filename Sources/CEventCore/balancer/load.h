/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The words of a load: how many envelopes were promised to a receiver, and in the highest bit that no more may
 * be; and how many of these were lost to the overflow policy of the receiver's mailbox, or to a newer event.
 *
 * Synchronization: a posting thread adds to the word before the post and reads the old value; a retiring
 * thread sets the bit and reads the old value. The modification order of this one atomic word decides:
 * - an addition before the bit is a promise that is part of the retiring thread's figure, and a post fulfils
 *   it;
 * - an addition after the bit sees it, is withdrawn, and leads to no post.
 * So the figure that evc_load_retire returns is final, however long a posting thread is held up between the
 * two. A promise that is withdrawn because the receiver refuses the post leaves that figure too high; but a
 * receiver that refuses has closed already and needs no figure.
 *
 * A full mailbox refuses or drops events and goes on, and a latest-only event ends when a newer one comes. Such a
 * promise is not withdrawn, since the retiring thread may have read its figure; it is lost, and the receiver has
 * finished once it has handled the figure without what is lost:
 *
 *   poster: evc_load_lose                      retiring thread, then receiver
 *   P1 add to `lost`                seq_cst    L1 set the bit, read the figure       seq_cst
 *   P2 load the word                seq_cst    L2 interrupt the receiver
 *   P3 the bit is set: look_again              L3 receiver: load `lost`              seq_cst
 * Either P2 sees L1, and the receiver looks after P3, or P1 comes before L1 in the order of all these operations, and
 * the look that follows L2 counts it. So the last lost event is noticed, and the receiver does not wait for ever.
 *
 * Sources/EventCore/Balancing/EventLoad.swift does the same with the same words.
 */
#ifndef EVC_LOAD_H
#define EVC_LOAD_H

#include "eventcore/balancer.h"

#include <stdatomic.h>

#define EVC_LOAD_RETIRED (UINT64_C(1) << 63)

/* Either word of a load. */
static inline _Atomic uint64_t *evc_load_atomic(const uint64_t *word)
{
	return (_Atomic uint64_t *)(void *)(uintptr_t)word;
}

/* Counts promised envelopes that the receiver will not handle. True if it has retired, and has to look again. */
static inline bool evc_load_lose(struct evc_load *load, uint32_t count)
{
	/* P1, P2. */
	atomic_fetch_add_explicit(evc_load_atomic(&load->lost), count, memory_order_seq_cst);
	return atomic_load_explicit(evc_load_atomic(&load->word), memory_order_seq_cst) & EVC_LOAD_RETIRED;
}

static inline void evc_load_withdraw(struct evc_load *load, uint32_t count)
{
	/* Relaxed: only the modification order of the word matters. */
	atomic_fetch_sub_explicit(evc_load_atomic(&load->word), count, memory_order_relaxed);
}

/* False if the receiver accepts no more. */
static inline bool evc_load_promise(struct evc_load *load, uint32_t count)
{
	/* Acquire, pairs with evc_load_retire. seq_cst for those who watch the load (a pool's ticker). */
	if (!(atomic_fetch_add_explicit(evc_load_atomic(&load->word), count, memory_order_seq_cst) &
	      EVC_LOAD_RETIRED))
		return true;
	evc_load_withdraw(load, count);
	return false;
}

#endif
