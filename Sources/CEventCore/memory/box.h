/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A box: one payload that does not fit into a slot, shared by all receivers of its event.
 *
 * Synchronization: `references` is set by the producer before any receiver sees the box, and counted
 * down by each holder with acquire-release, so that the last one sees all reads of the others done
 * before it ends the payload. The payload is written before the first post and only read after it,
 * except by a holder that finds itself the only one.
 */
#ifndef EVC_BOX_H
#define EVC_BOX_H

#include "memory/thread_record.h"

struct evc_box {
	_Atomic uint32_t references;
	/* Where the payload begins, in bytes; from 16 on it is the payload's alignment. */
	uint32_t offset;
	/* Of the whole block, with this header. */
	uint64_t size;
};

static_assert(sizeof(struct evc_box) == 16, "payloads of alignment 16 follow the header");

static inline void *evc_box_payload(struct evc_box *box)
{
	return (char *)box + box->offset;
}

/* Up to so many bytes of payload, of an alignment of up to 16, come from a pool. */
#define EVC_BOX_POOLED_MAX (((size_t)64 << (EVC_CLASS_COUNT - 1)) - sizeof(struct evc_box))

/* NULL = out of memory. Threads: the record's. */
struct evc_box *evc_box_create(struct evc_thread_record *record, size_t size, size_t alignment,
			       uint32_t references);

/* Frees the block, whose payload has ended. `cache` may be NULL. */
void evc_box_free(struct evc_box *box, struct evc_return_cache *cache);

#endif
