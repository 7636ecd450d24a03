/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "memory/box.h"

#include "platform/allocator.h"

/* The slab pool's class for a block of this size whose payload begins at `offset`, or 0 if none has such. */
static size_t class_for(uint64_t size, size_t offset)
{
	size_t index = 1;

#ifdef EVC_ADDRESS_SANITIZER
	/* Blocks of the slab pools are aligned to 64 bytes there, not to their size. */
	if (offset > 64)
		return 0;
#endif
	(void)offset;
	while (index < EVC_CLASS_COUNT && ((uint64_t)64 << index) < size)
		index++;
	return index < EVC_CLASS_COUNT ? index : 0;
}

struct evc_box *evc_box_create(struct evc_thread_record *record, unsigned lane, size_t size, size_t alignment,
			       uint32_t references)
{
	size_t offset = alignment > sizeof(struct evc_box) ? alignment : sizeof(struct evc_box);
	uint64_t total = (uint64_t)offset + size;
	size_t index;
	struct evc_box *box;

	if (size > SIZE_MAX - offset)
		return NULL;
	index = class_for(total, offset);
	/* A pooled block is aligned to its size, which is at least the payload's alignment. */
	box = index != 0 ? evc_pool_take(&record->pools[index], &record->boxes[lane][index])
			 : evc_allocate(total, offset);
	if (box == NULL)
		return NULL;
	atomic_init(&box->references, references);
	box->offset = (uint32_t)offset;
	box->size = total;
	return box;
}

void evc_box_free(struct evc_box *box, struct evc_return_cache *cache)
{
	if (class_for(box->size, box->offset) == 0)
		evc_deallocate(box, box->size, box->offset);
	else
		evc_return_cache_give_any(cache, box);
}
#endif
