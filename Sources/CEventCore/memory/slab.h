/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Slabs: 256 KiB of slots of one size, aligned to their size so that a slot finds its slab by a mask.
 */
#ifndef EVC_SLAB_H
#define EVC_SLAB_H

#include "platform/domain.h"
#include "memory/pool_private.h"

struct evc_slab {
	/* First: evc_pool_of. */
	struct evc_pool *pool;
	uint32_t capacity;
	/* Trim only: how many of the slab's slots the trim holds, and whether it frees the slab. */
	uint32_t held;
	bool doomed;
	struct evc_domain_head retired;
};

static_assert(offsetof(struct evc_slab, pool) == 0, "evc_pool_of counts on it");

/* Where the first slot lies: at the slot's own alignment, up to 64 bytes past a multiple of it. */
static inline size_t evc_slab_first(size_t slot_size)
{
	return slot_size < 128 ? 128 : slot_size;
}

/* NULL = out of memory. */
struct evc_slab *evc_slab_create(struct evc_pool *pool);

/* Puts a list of chains onto `returned`. Any thread; lock-free. */
void evc_pool_push_chains(struct evc_pool *pool, struct evc_envelope *first,
			  struct evc_envelope *last);

#endif
