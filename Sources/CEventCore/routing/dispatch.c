/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * Dispatch: from the router's snapshot to the receivers' sinks, in two steps (router.h).
 *
 * Between them the envelopes are linked in one list, by receiver and then by event. They belong to the
 * dispatching thread until their sink accepts them. All of them are made before the first is posted, so
 * that running out of memory reaches nobody half.
 */
#include "routing/dispatch_private.h"

#include <string.h>

/* What a dispatch has for a stream if its one envelope lies in none. Never read. */
static struct evc_stream in_no_stream;

/* The short ways: one receiver, one event, not boxed. */
static inline void fill(struct evc_envelope *envelope, const struct evc_snapshot *snapshot, uint8_t lane,
			struct evc_thread_record *record, struct evc_stream *stream,
			struct evc_dispatch *out)
{
	envelope->subscription = snapshot->entries[0].subscription;
	evc_slot_set_time(envelope, snapshot->timed ? evc_clock_now() : 0);
	envelope->generation = snapshot->entries[0].generation;
	evc_slot_set_lane(envelope, lane);
	envelope->flags = 0;
	*out = (struct evc_dispatch){
		.first = envelope,
		.receivers = 1,
		.payloads = 1,
		.lane = lane,
		.events = 1,
		.record = record,
		.stream = stream,
	};
	record->pins++;
}

/*
 * The common cases written out, since they decide what an event costs: the cache hits, one receiver, room in
 * the stream that it lends or in the pool, one event, an inline payload. Everything else goes the long way.
 */
enum evc_status evc_dispatch_begin(struct evc_router *router, uint64_t key, enum evc_lane lane,
				   size_t size, size_t alignment, uint32_t events,
				   struct evc_dispatch *out)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_route_cache_entry *entry;
	struct evc_envelope *envelope;
	struct evc_stream *stream;

	if (evc_unlikely(record == NULL || router == NULL || out == NULL || events != 1 ||
			 (unsigned)lane >= EVC_LANE_COUNT || (alignment & (alignment - 1)) != 0 ||
			 evc_payload_is_boxed(size, alignment)))
		return evc_dispatch_begin_any(router, key, lane, size, alignment, events, out);
	entry = evc_route_cache_entry_for(router, key, record);
	stream = entry->stream;
	if (evc_unlikely(!evc_route_cache_hits(entry, router, key)))
		return evc_dispatch_begin_any(router, key, lane, size, alignment, events, out);
	if (evc_likely(stream != NULL)) {
		if (evc_unlikely(stream->reserved != NULL || stream->slot == stream->end))
			return evc_dispatch_begin_any(router, key, lane, size, alignment, events, out);
		envelope = evc_stream_reserve(stream, record, 1);
	} else {
		/* A receiver that lends none: a pool, a latest-only slot, a shared mailbox. */
		envelope = entry->is_pooled ? evc_pool_take(&record->pools[0]) : NULL;
		if (evc_unlikely(envelope == NULL))
			return evc_dispatch_begin_any(router, key, lane, size, alignment, events, out);
		envelope->index = 0;
		evc_slot_set_next(envelope, NULL);
		stream = &in_no_stream;
	}
	fill(envelope, entry->snapshot, (uint8_t)lane, record, stream, out);
	return EVC_OK;
}

struct evc_envelope *evc_dispatch_next(struct evc_envelope *envelope)
{
	return evc_slot_next(envelope);
}

uint32_t evc_dispatch_commit(struct evc_dispatch *dispatch)
{
	struct evc_stream *stream = dispatch->stream;
	uint32_t accepted;

	if (evc_unlikely(stream == NULL))
		return evc_dispatch_commit_any(dispatch);
	if (evc_unlikely(stream == &in_no_stream))
		stream = NULL;
	accepted = evc_dispatch_post(dispatch->first, dispatch->first, 1, 1u << dispatch->lane, stream);
	evc_dispatch_end(dispatch);
	return accepted;
}

enum evc_status evc_dispatch_bytes(struct evc_router *router, uint64_t key, enum evc_lane lane,
				   const void *payload, size_t size, size_t alignment,
				   uint32_t *receivers)
{
	struct evc_dispatch dispatch;
	enum evc_status status =
		evc_dispatch_begin(router, key, lane, size, alignment, 1, &dispatch);
	struct evc_envelope *envelope;

	if (evc_unlikely(status != EVC_OK))
		return status;
	envelope = dispatch.first;
	for (uint32_t i = 0; i < dispatch.payloads; i++) {
		memcpy(evc_envelope_payload_inline(envelope), payload, size);
		envelope = evc_slot_next(envelope);
	}
	if (receivers != NULL)
		*receivers = evc_dispatch_commit(&dispatch);
	else
		(void)evc_dispatch_commit(&dispatch);
	return EVC_OK;
}
#endif
