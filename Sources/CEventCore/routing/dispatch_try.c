/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * A dispatch by a thread that must not wait. It stays in one section from the look-up to the last post: so it needs no
 * reference of the snapshot, whose release may end a receiver and run its functions.
 */
#include "routing/dispatch_private.h"

#include "eventcore/realtime.h"

#include <string.h>

/* Makes the list of all envelopes, ordered by receiver. NULL: too few are at hand, and none is missing. */
static struct evc_envelope *make(struct evc_thread_record *record, const struct evc_snapshot *snapshot, uint64_t time,
				 unsigned lane)
{
	struct evc_envelope *first = NULL;

	for (uint32_t i = snapshot->count; i > 0; i--) {
		struct evc_envelope *envelope = evc_envelope_try_take(record, lane);

		if (envelope == NULL) {
			for (; first != NULL; first = envelope) {
				envelope = evc_slot_next(first);
				/* Not to its segment: that may arm the trim. */
				evc_spare_give(record, EVC_SPARE_ENVELOPE, first);
			}
			return NULL;
		}
		evc_dispatch_address(envelope, &snapshot->entries[i - 1], (struct evc_stamp){ time, 0 }, lane, 0);
		evc_slot_set_next(envelope, first);
		first = envelope;
	}
	return first;
}

static bool all_can(const struct evc_snapshot *snapshot)
{
	for (uint32_t i = 0; i < snapshot->count; i++)
		if (snapshot->entries[i].subscription->sink->try_accept == NULL)
			return false;
	return true;
}

/* In a section. */
static enum evc_status dispatch(struct evc_thread_record *record, const struct evc_snapshot *snapshot, unsigned lane,
				const void *payload, size_t size, uint32_t *accepted)
{
	struct evc_envelope *envelope, *next;
	uint64_t time;

	if (!all_can(snapshot))
		return EVC_UNSUPPORTED;
	/* The router's clock is user code, which must not end the record meanwhile. */
	record->pins++;
	time = snapshot->timed ? evc_snapshot_time(snapshot) : 0;
	record->pins--;
	envelope = make(record, snapshot, time, lane);
	if (envelope == NULL)
		return EVC_WOULD_ALLOCATE;
	for (; envelope != NULL; envelope = next) {
		struct evc_sink *sink = envelope->subscription->sink;
		struct evc_chain chain = { envelope, envelope, 1, 1u << lane };

		next = evc_slot_next(envelope);
		evc_slot_set_next(envelope, NULL);
		memcpy(envelope->bytes, payload, size);
		if (sink->try_accept(sink, &chain) == EVC_OK)
			++*accepted;
		else
			evc_spare_give(record, EVC_SPARE_ENVELOPE, envelope);
	}
	return EVC_OK;
}

enum evc_status evc_try_dispatch(struct evc_router *router, uint64_t key, enum evc_lane lane, const void *payload,
				 size_t size, size_t alignment, uint32_t *receivers)
{
	struct evc_thread_record *record = evc_thread_record_current;
	const struct evc_snapshot *snapshot;
	enum evc_status status = EVC_OK;
	uint32_t accepted = 0;

	if (router == NULL || key == 0 || (unsigned)lane >= EVC_LANE_COUNT || (alignment & (alignment - 1)) != 0 ||
	    alignment > EVC_ALIGNMENT_MAX)
		return EVC_INVALID_ARGUMENT;
	if (evc_payload_is_boxed(size, alignment))
		return EVC_UNSUPPORTED;
	/* Without a reserve liburcu may not know the thread yet. */
	if (record == NULL || atomic_load_explicit(&record->reserve_bytes, memory_order_relaxed) == 0)
		return EVC_WOULD_ALLOCATE;
	evc_domain_enter();
	snapshot = evc_router_peek(router, key);
	if (snapshot != NULL)
		status = dispatch(record, snapshot, (unsigned)lane, payload, size, &accepted);
	evc_domain_leave();
	if (status == EVC_OK && receivers != NULL)
		*receivers = accepted;
	return status;
}

enum evc_status evc_try_envelope_create(struct evc_subscription *subscription, enum evc_lane lane, size_t size,
					size_t alignment, struct evc_envelope **out)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_envelope *envelope;

	if (subscription == NULL || out == NULL || (unsigned)lane >= EVC_LANE_COUNT ||
	    (alignment & (alignment - 1)) != 0 || alignment > EVC_ALIGNMENT_MAX)
		return EVC_INVALID_ARGUMENT;
	if (evc_payload_is_boxed(size, alignment))
		return EVC_UNSUPPORTED;
	envelope = record != NULL ? evc_envelope_try_take(record, (unsigned)lane) : NULL;
	if (envelope == NULL)
		return EVC_WOULD_ALLOCATE;
	evc_slot_set_next(envelope, NULL);
	evc_envelope_init(envelope, subscription, 0, 0, lane, 0);
	*out = envelope;
	return EVC_OK;
}
#endif
