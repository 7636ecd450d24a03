/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* The fast path of a dispatch of several events to one receiver that takes batches (memory/slot.h). */
#include "routing/dispatch_private.h"

enum evc_status evc_dispatch_begin_batch(struct evc_router *router, uint64_t key, enum evc_lane lane,
					 size_t size, size_t alignment, uint32_t events,
					 struct evc_dispatch *out)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_route_cache_entry *entry;
	const struct evc_snapshot_entry *receiver;
	struct evc_envelope *envelope;
	unsigned char *array;
	size_t stride;

	if (evc_unlikely(record == NULL || router == NULL || out == NULL || events < 2 ||
			 events > EVC_DISPATCH_MAX || (unsigned)lane >= EVC_LANE_COUNT ||
			 (alignment & (alignment - 1)) != 0 || alignment > 16 ||
			 size > EVC_BOX_POOLED_MAX / events))
		goto single;
	stride = evc_batch_stride(size, alignment);
	entry = evc_route_cache_entry_for(router, key, record);
	if (evc_unlikely(stride * events > EVC_BOX_POOLED_MAX ||
			 !evc_route_cache_hits(entry, router, key) || entry->snapshot == NULL ||
			 entry->snapshot->count != 1))
		goto single;
	receiver = &entry->snapshot->entries[0];
	if (!receiver->subscription->sink->takes_batches)
		goto single;
	envelope = evc_batch_create(record, lane, stride * events, alignment, stride);
	if (evc_unlikely(envelope == NULL))
		return EVC_OUT_OF_MEMORY;
	array = envelope->batch.payload;
	evc_slot_set_next(envelope, NULL);
	/* Before the stamp, which may run user code. */
	record->pins++;
	evc_dispatch_address(envelope, receiver,
			     evc_snapshot_stamp(entry->snapshot, evc_route_counts_of(record, entry), events), lane,
			     EVC_ENVELOPE_BOXED | EVC_ENVELOPE_BATCH);
	envelope->events = (uint8_t)events;
	envelope->batch.end += stride * events;
	if (lane < EVC_LANE_FIRST_QUEUE) {
		/* From the last one to the first. */
		envelope->batch.payload = envelope->batch.end - stride;
		envelope->batch.end = array - stride;
		envelope->batch.step = -(int32_t)stride;
	}
	*out = (struct evc_dispatch){
		.first = envelope,
		.receivers = 1,
		.payloads = events,
		.lane = (uint8_t)lane,
		/* The number of envelopes. */
		.events = 1,
		.record = record,
		.array = array,
	};
	return EVC_OK;

single:
	if (out != NULL)
		out->array = NULL;
	return evc_dispatch_begin(router, key, lane, size, alignment, events, out);
}
#endif
