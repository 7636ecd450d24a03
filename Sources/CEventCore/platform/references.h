/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Counts of references. */
#ifndef EVC_REFERENCES_H
#define EVC_REFERENCES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

static inline void evc_reference_add(_Atomic uint32_t *references)
{
	/* Relaxed: the caller has a reference already. */
	atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

/* Gives up a reference. True if it was the last one. */
static inline bool evc_reference_drop(_Atomic uint32_t *references)
{
	/* Pairs with itself: everything that other holders did before the end. */
	return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

#endif
