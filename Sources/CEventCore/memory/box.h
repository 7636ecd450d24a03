/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A box: a payload that does not fit into a slot, shared by all receivers of its event.
 *
 * Synchronization: the producer writes payload and `references` before the first post. Each holder counts
 * down with acquire-release, so that the last one ends the payload after the others have read it. It is only
 * read meanwhile, except by a holder that finds itself the only one.
 */
#ifndef EVC_BOX_H
#define EVC_BOX_H

#include "memory/thread_record.h"

struct evc_box {
	_Atomic uint32_t references;
	/* Where the payload begins, in bytes; if that is more than 16, it is also the payload's alignment. */
	uint32_t offset;
	/* The size of the whole block, including this header. */
	uint64_t size;
};

static_assert(sizeof(struct evc_box) == 16, "payloads of alignment 16 follow the header");

static inline void *evc_box_payload(struct evc_box *box)
{
	return (char *)box + box->offset;
}

/* The largest payload, in bytes, of an alignment of up to 16, that comes from a slab pool. */
#define EVC_BOX_POOLED_MAX (((size_t)64 << (EVC_CLASS_COUNT - 1)) - sizeof(struct evc_box))

/* A box for an event of a lane. NULL = out of memory. Threads: the record's. */
struct evc_box *evc_box_create(struct evc_thread_record *record, unsigned lane, size_t size, size_t alignment,
			       uint32_t references);

/* Frees the block; its payload has ended. `cache` may be NULL. */
void evc_box_free(struct evc_box *box, struct evc_return_cache *cache);

#endif
