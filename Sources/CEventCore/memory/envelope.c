/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "memory/envelope.h"

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

enum evc_status evc_envelope_create(struct evc_subscription *subscription, enum evc_lane lane,
				    size_t size, size_t alignment, struct evc_envelope **out)
{
	struct evc_thread_record *record;
	struct evc_envelope *envelope;
	struct evc_box *box = NULL;

	if (subscription == NULL || out == NULL || (unsigned)lane >= EVC_LANE_COUNT ||
	    (alignment & (alignment - 1)) != 0 || alignment > EVC_ALIGNMENT_MAX)
		return EVC_INVALID_ARGUMENT;
	record = evc_thread_record();
	if (record == NULL)
		return EVC_OUT_OF_MEMORY;
	envelope = evc_envelope_take(record, lane);
	if (envelope == NULL)
		return EVC_OUT_OF_MEMORY;
	if (evc_payload_is_boxed(size, alignment)) {
		box = evc_box_create(record, lane, size, alignment, 1);
		if (box == NULL) {
			evc_pool_give(envelope);
			return EVC_OUT_OF_MEMORY;
		}
		envelope->box = box;
	}
	evc_slot_set_next(envelope, NULL);
	evc_envelope_init(envelope, subscription, 0, 0, lane, box != NULL ? EVC_ENVELOPE_BOXED : 0);
	*out = envelope;
	return EVC_OK;
}

void evc_chain_append(struct evc_chain *chain, struct evc_envelope *envelope)
{
	evc_slot_set_next(envelope, NULL);
	if (chain->last != NULL)
		evc_slot_set_next(chain->last, envelope);
	else
		chain->first = envelope;
	chain->last = envelope;
	chain->count++;
	chain->lanes |= 1u << envelope->lane;
}

void evc_chain_end(const struct evc_chain *chain)
{
	struct evc_envelope *envelope = chain->first, *next;

	for (uint32_t i = 0; i < chain->count; i++, envelope = next) {
		next = evc_slot_next(envelope);
		evc_envelope_end(envelope, false, NULL);
	}
}

void *evc_envelope_payload(struct evc_envelope *envelope)
{
	return evc_envelope_payload_inline(envelope);
}

enum evc_lane evc_envelope_lane(const struct evc_envelope *envelope)
{
	return (enum evc_lane)envelope->lane;
}

uint64_t evc_envelope_time(const struct evc_envelope *envelope)
{
	return envelope->time;
}

void evc_envelope_set_time(struct evc_envelope *envelope, uint64_t time)
{
	envelope->time = time;
}

uint32_t evc_envelope_generation(const struct evc_envelope *envelope)
{
	return envelope->generation & ~EVC_GENERATION_MARK;
}

bool evc_envelope_is_marked(const struct evc_envelope *envelope)
{
	return (envelope->generation & EVC_GENERATION_MARK) != 0;
}

struct evc_subscription *evc_envelope_subscription(const struct evc_envelope *envelope)
{
	return envelope->subscription;
}

void evc_envelope_release(struct evc_envelope *envelope, bool payload_moved)
{
	if (envelope != NULL)
		evc_envelope_end(envelope, payload_moved, NULL);
}

struct evc_envelope *evc_batch_create(struct evc_thread_record *record, unsigned lane, size_t size, size_t alignment,
				      size_t step)
{
	struct evc_box *box = evc_box_create(record, lane, size, alignment, 1);
	struct evc_envelope *envelope;

	if (evc_unlikely(box == NULL))
		return NULL;
	envelope = evc_envelope_take(record, lane);
	if (evc_unlikely(envelope == NULL)) {
		evc_box_free(box, NULL);
		return NULL;
	}
	envelope->batch = (struct evc_batch){
		.box = box, .payload = evc_box_payload(box), .end = evc_box_payload(box), .step = (int32_t)step
	};
	return envelope;
}

void evc_batch_end(struct evc_envelope *envelope, struct evc_return_cache *cache)
{
	struct evc_subscription *subscription = envelope->subscription;
	struct evc_batch *batch = &envelope->batch;

	for (; subscription->drop != NULL && batch->payload != batch->end; batch->payload += batch->step)
		subscription->drop(subscription->context, batch->payload);
	evc_box_free(batch->box, cache);
}
#endif
