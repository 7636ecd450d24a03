/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "balancer/load.h"

uint64_t evc_load_promised(const struct evc_load *load)
{
	/* Pairs with evc_load_promise: a watcher that sees nothing promised is seen by the next promise. */
	return atomic_load_explicit(evc_load_word(load), memory_order_seq_cst) & ~EVC_LOAD_RETIRED;
}

uint64_t evc_load_retire(struct evc_load *load)
{
	/* Release, pairs with evc_load_promise: that the receiver was taken off. The order of changes decides (load.h). */
	return atomic_fetch_or_explicit(evc_load_word(load), EVC_LOAD_RETIRED,
					memory_order_release) &
	       ~EVC_LOAD_RETIRED;
}
#endif
