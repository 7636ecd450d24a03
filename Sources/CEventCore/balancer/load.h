/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The word of a load: how many envelopes were promised to a receiver, and in its highest bit that no more may
 * be.
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
 * Sources/EventCore/Balancing/EventLoad.swift does the same with the same bit.
 */
#ifndef EVC_LOAD_H
#define EVC_LOAD_H

#include "eventcore/balancer.h"

#include <stdatomic.h>

#define EVC_LOAD_RETIRED (UINT64_C(1) << 63)

static inline _Atomic uint64_t *evc_load_word(const struct evc_load *load)
{
	return (_Atomic uint64_t *)(void *)(uintptr_t)&load->word;
}

static inline void evc_load_withdraw(struct evc_load *load, uint32_t count)
{
	/* Relaxed: only the modification order of the word matters. */
	atomic_fetch_sub_explicit(evc_load_word(load), count, memory_order_relaxed);
}

/* False if the receiver accepts no more. */
static inline bool evc_load_promise(struct evc_load *load, uint32_t count)
{
	/* Acquire, pairs with evc_load_retire. seq_cst for those who watch the load (a pool's ticker). */
	if (!(atomic_fetch_add_explicit(evc_load_word(load), count, memory_order_seq_cst) &
	      EVC_LOAD_RETIRED))
		return true;
	evc_load_withdraw(load, count);
	return false;
}

#endif
