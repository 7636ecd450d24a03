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
#include "envelope.h"
#include "router_private.h"

#include <string.h>

/*
 * Not by way of the mailbox's header: a router knows sinks only. A direct call of the one sink that
 * nearly all subscriptions have would save 1 ns; it is not worth the knowledge.
 */
static inline enum evc_status accept_by(struct evc_sink *sink, const struct evc_chain *chain)
{
	return sink->accept(sink, chain);
}

/* Gives back envelopes whose payloads were not written, and their boxes. */
static void give_back(struct evc_thread_record *record, struct evc_envelope *envelope,
		      uint32_t boxes)
{
	struct evc_envelope *next;

	for (; envelope != NULL; envelope = next) {
		next = evc_slot_next(envelope);
		if (boxes > 0 && (envelope->flags & EVC_ENVELOPE_BOXED)) {
			evc_box_free(envelope->box, NULL);
			boxes--;
		}
		evc_pool_untake(&record->pools[0], envelope);
	}
}

struct form {
	uint64_t time;
	size_t size;
	size_t alignment;
	uint32_t receivers;
	uint8_t lane;
	bool boxed;
};

static inline struct evc_envelope *address(struct evc_thread_record *record,
					   const struct evc_snapshot_entry *entry,
					   const struct form *form)
{
	struct evc_envelope *envelope = evc_pool_take(&record->pools[0]);

	if (evc_unlikely(envelope == NULL))
		return NULL;
	envelope->subscription = entry->subscription;
	envelope->time = form->time;
	envelope->generation = entry->generation;
	atomic_store_explicit(&envelope->lane, form->lane, memory_order_relaxed);
	envelope->flags = form->boxed ? EVC_ENVELOPE_BOXED : 0;
	return envelope;
}

/* The list of all envelopes; NULL = out of memory, and nothing is left over. */
static struct evc_envelope *address_all(struct evc_thread_record *record,
					const struct evc_snapshot *snapshot, uint32_t events,
					const struct form *form)
{
	struct evc_envelope *first = NULL, *last = NULL, *share = NULL;

	for (uint32_t r = 0; r < snapshot->count; r++) {
		for (uint32_t e = 0; e < events; e++) {
			struct evc_envelope *envelope =
				address(record, &snapshot->entries[r], form);

			if (evc_unlikely(envelope == NULL))
				goto out_of_memory;
			evc_slot_set_next(envelope, NULL);
			if (form->boxed) {
				/* The first receiver's envelopes bring the boxes, the others share them. */
				envelope->box = r == 0 ? evc_box_create(record, form->size,
									form->alignment,
									form->receivers)
						       : share->box;
				if (evc_unlikely(envelope->box == NULL)) {
					evc_pool_untake(&record->pools[0], envelope);
					goto out_of_memory;
				}
				if (r > 0)
					share = evc_slot_next(share);
			}
			if (last != NULL)
				evc_slot_set_next(last, envelope);
			else
				first = envelope;
			last = envelope;
		}
		share = first;
	}
	return first;

out_of_memory:
	give_back(record, first, events);
	return NULL;
}

/* Any number of receivers and events, boxes, the clock, a cache that misses, wrong arguments. */
static __attribute__((noinline)) enum evc_status
begin_any(struct evc_router *router, uint64_t key, enum evc_lane lane, size_t size,
	  size_t alignment, uint32_t events, struct evc_dispatch *out)
{
	struct evc_thread_record *record;
	struct evc_snapshot *snapshot;
	struct form form;
	enum evc_status status;
	bool owned;

	if (evc_unlikely(router == NULL || key == 0 || (unsigned)lane >= EVC_LANE_COUNT ||
			 events == 0 || events > EVC_DISPATCH_MAX || out == NULL ||
			 (alignment & (alignment - 1)) != 0 || alignment > 4096))
		return EVC_INVALID_ARGUMENT;
	record = evc_thread_record();
	if (evc_unlikely(record == NULL))
		return EVC_OUT_OF_MEMORY;
	status = evc_router_snapshot(router, key, record, &snapshot, &owned);
	if (evc_unlikely(status != EVC_OK))
		return status;
	if (snapshot == NULL) {
		*out = (struct evc_dispatch){ 0 };
		return EVC_OK;
	}
	form.time = snapshot->timed ? evc_clock_now() : 0;
	form.size = size;
	form.alignment = alignment;
	form.receivers = snapshot->count;
	form.lane = (uint8_t)lane;
	form.boxed = evc_payload_is_boxed(size, alignment);
	out->first = address_all(record, snapshot, events, &form);
	if (evc_unlikely(out->first == NULL)) {
		if (owned)
			evc_snapshot_release(snapshot);
		return EVC_OUT_OF_MEMORY;
	}
	out->receivers = snapshot->count;
	out->shared = form.boxed;
	out->payloads = form.boxed ? events : events * snapshot->count;
	out->events = (uint16_t)events;
	out->lane = (uint8_t)lane;
	out->record = record;
	out->snapshot = owned ? snapshot : NULL;
	record->pins++;
	return EVC_OK;
}

/*
 * The common case written out, since it decides what an event costs: the cache hits, one receiver, one
 * event, an inline payload, no clock, a warm pool. Everything else goes the long way.
 */
enum evc_status evc_dispatch_begin(struct evc_router *router, uint64_t key, enum evc_lane lane,
				   size_t size, size_t alignment, uint32_t events,
				   struct evc_dispatch *out)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_snapshot *snapshot;
	struct evc_envelope *envelope;

	if (evc_unlikely(record == NULL || router == NULL || out == NULL || events != 1 ||
			 (unsigned)lane >= EVC_LANE_COUNT || (alignment & (alignment - 1)) != 0 ||
			 evc_payload_is_boxed(size, alignment)))
		return begin_any(router, key, lane, size, alignment, events, out);
	snapshot = evc_router_cached(router, key, record);
	envelope = record->pools[0].chain;
	if (evc_unlikely(snapshot == NULL || !snapshot->plain || envelope == NULL))
		return begin_any(router, key, lane, size, alignment, events, out);
	record->pools[0].chain = evc_slot_next(envelope);
	evc_slot_prefetch(envelope);
	evc_slot_set_next(envelope, NULL);
	envelope->subscription = snapshot->entries[0].subscription;
	envelope->time = 0;
	envelope->generation = snapshot->entries[0].generation;
	atomic_store_explicit(&envelope->lane, (uint8_t)lane, memory_order_relaxed);
	envelope->flags = 0;
	*out = (struct evc_dispatch){
		.first = envelope,
		.receivers = 1,
		.payloads = 1,
		.lane = (uint8_t)lane,
		.events = 1,
		.record = record,
	};
	record->pins++;
	return EVC_OK;
}

struct evc_envelope *evc_dispatch_next(struct evc_envelope *envelope)
{
	return evc_slot_next(envelope);
}

static inline void end(struct evc_dispatch *dispatch)
{
	struct evc_thread_record *record = dispatch->record;

	if (record != NULL)
		record->pins--;
	if (dispatch->snapshot != NULL)
		evc_snapshot_release(dispatch->snapshot);
	dispatch->first = NULL;
	dispatch->record = NULL;
	dispatch->snapshot = NULL;
}

static void refuse(struct evc_envelope *envelope)
{
	struct evc_envelope *next;

	for (; envelope != NULL; envelope = next) {
		next = evc_slot_next(envelope);
		evc_envelope_end(envelope, false, NULL);
	}
}

uint32_t evc_dispatch_commit(struct evc_dispatch *dispatch)
{
	struct evc_envelope *next = dispatch->first;
	uint32_t accepted = 0;

	if (evc_likely(dispatch->receivers == 1 && dispatch->events == 1)) {
		struct evc_chain chain = { next, next, 1, 1u << dispatch->lane };

		accepted = 1;
		if (evc_unlikely(accept_by(next->subscription->sink, &chain) != EVC_OK)) {
			refuse(next);
			accepted = 0;
		}
		end(dispatch);
		return accepted;
	}
	for (uint32_t r = 0; r < dispatch->receivers; r++) {
		struct evc_chain chain = { next, next, dispatch->events, 1u << dispatch->lane };
		struct evc_sink *sink = next->subscription->sink;

		for (uint32_t e = 1; e < dispatch->events; e++)
			chain.last = evc_slot_next(chain.last);
		/* Before the post: afterwards the envelopes are the receiver's. */
		next = evc_slot_next(chain.last);
		evc_slot_set_next(chain.last, NULL);
		if (evc_likely(accept_by(sink, &chain) == EVC_OK))
			accepted++;
		else
			refuse(chain.first);
	}
	end(dispatch);
	return accepted;
}

void evc_dispatch_abandon(struct evc_dispatch *dispatch)
{
	if (dispatch->record != NULL)
		give_back(dispatch->record, dispatch->first,
			  dispatch->shared ? dispatch->events : 0);
	end(dispatch);
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
