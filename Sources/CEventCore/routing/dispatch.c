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
 * inline payload. The envelope, and the snapshot in the route cache; NULL = everything else, which goes the long way,
 * or out of memory.
 */
static inline struct evc_envelope *begin_one(struct evc_router *router, uint64_t key, unsigned lane,
					     size_t size, size_t alignment,
					     const struct evc_snapshot **snapshot)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_route_cache_entry *entry;
	struct evc_envelope *envelope;

	if (evc_unlikely(record == NULL || router == NULL || lane >= EVC_LANE_COUNT ||
			 (alignment & (alignment - 1)) != 0 ||
			 evc_payload_is_boxed(size, alignment)))
		return NULL;
	entry = evc_route_cache_entry_for(router, key, record);
	if (evc_unlikely(!evc_route_cache_hits(entry, router, key)))
		return NULL;
	*snapshot = entry->snapshot;
	if (evc_unlikely(*snapshot == NULL || (*snapshot)->count != 1))
		return NULL;
	if (evc_unlikely((*snapshot)->needs != 0) &&
	    !evc_spares_reserve(record, (*snapshot)->needs, 1))
		return NULL;
	envelope = evc_envelope_take(record, lane);
	if (evc_unlikely(envelope == NULL)) {
		evc_spares_unreserve(record, (*snapshot)->needs, 1);
		return NULL;
	}
	evc_slot_set_next(envelope, NULL);
	evc_dispatch_address(envelope, &(*snapshot)->entries[0],
			     evc_unlikely((*snapshot)->timed) ? evc_clock_now() : 0, lane, 0);
	return envelope;
}

static inline bool commit_one(struct evc_envelope *envelope, unsigned lane, unsigned needs)
{
	struct evc_chain chain = { envelope, envelope, 1, 1u << lane };
	bool is_accepted = evc_dispatch_post(&chain);

	if (evc_unlikely(needs != 0))
		evc_spares_unreserve(evc_thread_record_current, needs, 1);
	return is_accepted;
}

enum evc_status evc_dispatch_begin(struct evc_router *router, uint64_t key, enum evc_lane lane,
				   size_t size, size_t alignment, uint32_t events,
				   struct evc_dispatch *out)
{
	const struct evc_snapshot *snapshot;
	struct evc_envelope *envelope = NULL;

	if (evc_likely(events == 1 && out != NULL))
		envelope = begin_one(router, key, lane, size, alignment, &snapshot);
	if (evc_unlikely(envelope == NULL))
		return evc_dispatch_begin_any(router, key, lane, size, alignment, events, out);
	/* Not a compound literal, which would clear what nobody reads. */
	out->first = envelope;
	out->receivers = 1;
	out->payloads = 1;
	out->shared = false;
	out->lane = (uint8_t)lane;
	out->events = 1;
	out->needs = snapshot->needs;
	out->record = evc_thread_record_current;
	out->snapshot = NULL;
	evc_thread_record_current->pins++;
	return EVC_OK;
}

struct evc_envelope *evc_dispatch_next(struct evc_envelope *envelope)
{
	return evc_slot_next(envelope);
}

uint32_t evc_dispatch_commit(struct evc_dispatch *dispatch)
{
	struct evc_thread_record *record = dispatch->record;
	struct evc_envelope *envelope = dispatch->first;
	bool is_accepted;

	if (evc_unlikely(dispatch->receivers != 1 || dispatch->events != 1 ||
			 dispatch->snapshot != NULL))
		return evc_dispatch_commit_any(dispatch);
	dispatch->first = NULL;
	is_accepted = commit_one(envelope, dispatch->lane, dispatch->needs);
	record->pins--;
	return is_accepted;
}

/* The sizes that most events have, without a call. */
static inline void copy(void *to, const void *from, size_t size)
{
	if (size == 8)
		memcpy(to, from, 8);
	else if (size == 16)
		memcpy(to, from, 16);
	else if (size == 24)
		memcpy(to, from, 24);
	else if (size == 32)
		memcpy(to, from, 32);
	else
		memcpy(to, from, size);
}

static enum evc_status dispatch_any(struct evc_router *router, uint64_t key, enum evc_lane lane,
				    const void *payload, size_t size, size_t alignment,
				    uint32_t *receivers)
{
	struct evc_dispatch dispatch;
	enum evc_status status =
		evc_dispatch_begin_any(router, key, lane, size, alignment, 1, &dispatch);
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

enum evc_status evc_dispatch_bytes(struct evc_router *router, uint64_t key, enum evc_lane lane,
				   const void *payload, size_t size, size_t alignment,
				   uint32_t *receivers)
{
	const struct evc_snapshot *snapshot;
	struct evc_envelope *envelope = begin_one(router, key, lane, size, alignment, &snapshot);
	bool is_accepted;

	if (evc_unlikely(envelope == NULL))
		return dispatch_any(router, key, lane, payload, size, alignment, receivers);
	copy(envelope->bytes, payload, size);
	/* Held by the route cache: what the post may run (the wake, the end of what is superseded) may dispatch. */
	evc_thread_record_current->pins++;
	is_accepted = commit_one(envelope, lane, snapshot->needs);
	evc_thread_record_current->pins--;
	if (receivers != NULL)
		*receivers = is_accepted;
	return EVC_OK;
}
#endif
