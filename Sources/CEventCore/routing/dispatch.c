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

/*
 * The common case written out, since it decides what an event costs: the cache hits, one receiver, one event, an
 * inline payload. Everything else goes the long way.
 */
enum evc_status evc_dispatch_begin(struct evc_router *router, uint64_t key, enum evc_lane lane,
				   size_t size, size_t alignment, uint32_t events,
				   struct evc_dispatch *out)
{
	struct evc_thread_record *record = evc_thread_record_current;
	const struct evc_snapshot *snapshot;
	struct evc_route_cache_entry *entry;
	struct evc_envelope *envelope;

	if (evc_unlikely(record == NULL || router == NULL || out == NULL || events != 1 ||
			 (unsigned)lane >= EVC_LANE_COUNT || (alignment & (alignment - 1)) != 0 ||
			 evc_payload_is_boxed(size, alignment)))
		goto any;
	entry = evc_route_cache_entry_for(router, key, record);
	if (evc_unlikely(!evc_route_cache_hits(entry, router, key)))
		goto any;
	snapshot = entry->snapshot;
	if (evc_unlikely(snapshot == NULL || snapshot->count != 1))
		goto any;
	if (evc_unlikely(snapshot->needs != 0) && !evc_spares_reserve(record, snapshot->needs, 1))
		return EVC_OUT_OF_MEMORY;
	envelope = evc_envelope_take(record, lane);
	if (evc_unlikely(envelope == NULL)) {
		evc_spares_unreserve(record, snapshot->needs, 1);
		return EVC_OUT_OF_MEMORY;
	}
	evc_slot_set_next(envelope, NULL);
	evc_dispatch_address(envelope, &snapshot->entries[0],
			     snapshot->timed ? evc_clock_now() : 0, lane, 0);
	/* Not a compound literal, which would clear what nobody reads. */
	out->first = envelope;
	out->receivers = 1;
	out->payloads = 1;
	out->shared = false;
	out->lane = (uint8_t)lane;
	out->events = 1;
	out->needs = snapshot->needs;
	out->record = record;
	out->snapshot = NULL;
	record->pins++;
	return EVC_OK;

any:
	return evc_dispatch_begin_any(router, key, lane, size, alignment, events, out);
}

struct evc_envelope *evc_dispatch_next(struct evc_envelope *envelope)
{
	return evc_slot_next(envelope);
}

uint32_t evc_dispatch_commit(struct evc_dispatch *dispatch)
{
	struct evc_thread_record *record = dispatch->record;
	struct evc_chain chain;
	bool is_accepted;

	if (evc_unlikely(dispatch->receivers != 1 || dispatch->events != 1 ||
			 dispatch->snapshot != NULL))
		return evc_dispatch_commit_any(dispatch);
	chain = (struct evc_chain){ dispatch->first, dispatch->first, 1, 1u << dispatch->lane };
	dispatch->first = NULL;
	is_accepted = evc_dispatch_post(&chain);
	if (evc_unlikely(dispatch->needs != 0))
		evc_spares_unreserve(record, dispatch->needs, 1);
	record->pins--;
	return is_accepted;
}

enum evc_status evc_dispatch_bytes(struct evc_router *router, uint64_t key, enum evc_lane lane,
				   const void *payload, size_t size, size_t alignment,
				   uint32_t *receivers)
{
	struct evc_dispatch dispatch;
	enum evc_status status =
		evc_dispatch_begin(router, key, lane, size, alignment, 1, &dispatch);
	struct evc_envelope *envelope;
	uint32_t accepted;

	if (evc_unlikely(status != EVC_OK))
		return status;
	envelope = dispatch.first;
	for (uint32_t i = 0; i < dispatch.payloads; i++) {
		memcpy(evc_envelope_payload_inline(envelope), payload, size);
		envelope = evc_slot_next(envelope);
	}
	accepted = evc_dispatch_commit(&dispatch);
	if (receivers != NULL)
		*receivers = accepted;
	return EVC_OK;
}
#endif
