/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * The long way of a dispatch: any number of receivers and events, boxes, a route that is not cached.
 */
#include "routing/dispatch_private.h"

struct form {
	uint64_t time;
	size_t size;
	size_t alignment;
	uint32_t receivers;
	uint32_t events;
	uint8_t lane;
	bool boxed;
};

/* `count` envelopes, linked, from the sink or from the thread's pool. NULL = out of memory. */
static struct evc_envelope *make(struct evc_thread_record *record, struct evc_sink *sink,
				 uint32_t count)
{
	struct evc_envelope *first = NULL;

	if (evc_likely(sink->lender != NULL)) {
		struct evc_stream *stream = sink->lender->lend(sink, record);

		return stream != NULL ? evc_stream_reserve(stream, record, count) : NULL;
	}
	for (; count > 0; count--) {
		struct evc_envelope *envelope = evc_pool_take(&record->pools[0]);

		if (evc_unlikely(envelope == NULL)) {
			while (first != NULL) {
				envelope = evc_slot_next(first);
				evc_pool_untake(&record->pools[0], first);
				first = envelope;
			}
			return NULL;
		}
		envelope->index = 0;
		evc_slot_set_next(envelope, first);
		first = envelope;
	}
	return first;
}

/* Gives the `count` envelopes of one receiver back, whose payloads have ended or were not written. */
static void unmake(struct evc_thread_record *record, struct evc_envelope *first, uint32_t count)
{
	struct evc_sink *sink = first->subscription->sink;
	struct evc_envelope *next;

	if (sink->lender != NULL) {
		evc_stream_withdraw(sink->lender->find(sink, record, first));
		return;
	}
	for (; count > 0; count--) {
		next = evc_slot_next(first);
		evc_pool_untake(&record->pools[0], first);
		first = next;
	}
}

static inline void address(struct evc_envelope *envelope, const struct evc_snapshot_entry *entry,
			   const struct form *form)
{
	envelope->subscription = entry->subscription;
	evc_slot_set_time(envelope, form->time);
	envelope->generation = entry->generation;
	evc_slot_set_lane(envelope, form->lane);
	envelope->flags = form->boxed ? EVC_ENVELOPE_BOXED : 0;
}

static void free_boxes(struct evc_envelope *envelope, uint32_t count)
{
	for (; count > 0; count--) {
		evc_box_free(envelope->box, NULL);
		envelope = evc_slot_next(envelope);
	}
}

/* Gives the envelopes of the first `receivers` receivers back, whose payloads were not written. */
static void give_back(struct evc_thread_record *record, struct evc_envelope *first,
		      uint32_t receivers, uint32_t events)
{
	while (receivers-- > 0) {
		struct evc_envelope *next = first;

		for (uint32_t e = 0; e < events; e++)
			next = evc_slot_next(next);
		unmake(record, first, events);
		first = next;
	}
}

/* The first receiver's envelopes bring the boxes. False = out of memory, and no box is left. */
static bool make_boxes(struct evc_thread_record *record, struct evc_envelope *first,
		       const struct form *form)
{
	struct evc_envelope *envelope = first;

	for (uint32_t e = 0; e < form->events; e++) {
		envelope->box = evc_box_create(record, form->size, form->alignment, form->receivers);
		if (evc_unlikely(envelope->box == NULL)) {
			free_boxes(first, e);
			return false;
		}
		envelope = evc_slot_next(envelope);
	}
	return true;
}

/* The list of all envelopes; NULL = out of memory, and nothing is left over. */
static struct evc_envelope *address_all(struct evc_thread_record *record,
					const struct evc_snapshot *snapshot, const struct form *form)
{
	struct evc_envelope *first = NULL, *last = NULL;

	for (uint32_t r = 0; r < snapshot->count; r++) {
		const struct evc_snapshot_entry *entry = &snapshot->entries[r];
		struct evc_envelope *envelope =
			make(record, entry->subscription->sink, form->events);
		struct evc_envelope *share = first;

		if (evc_unlikely(envelope == NULL)) {
			if (form->boxed && r > 0)
				free_boxes(first, form->events);
			give_back(record, first, r, form->events);
			return NULL;
		}
		if (last != NULL)
			evc_slot_set_next(last, envelope);
		else
			first = envelope;
		for (; envelope != NULL; envelope = evc_slot_next(envelope)) {
			address(envelope, entry, form);
			/* The others share the first receiver's boxes. */
			if (form->boxed && r > 0) {
				envelope->box = share->box;
				share = evc_slot_next(share);
			}
			last = envelope;
		}
		if (form->boxed && r == 0 && evc_unlikely(!make_boxes(record, first, form))) {
			give_back(record, first, 1, form->events);
			return NULL;
		}
	}
	return first;
}

/* For the short way of the next dispatch; without memory there is none. */
static void remember_stream(struct evc_route_cache_entry *entry,
			    const struct evc_snapshot *snapshot, struct evc_thread_record *record)
{
	struct evc_sink *sink = snapshot->entries[0].subscription->sink;

	entry->is_pooled = sink->lender == NULL;
	if (entry->stream == NULL && sink->lender != NULL)
		entry->stream = sink->lender->lend(sink, record);
}

enum evc_status evc_dispatch_begin_any(struct evc_router *router, uint64_t key, enum evc_lane lane,
				       size_t size, size_t alignment, uint32_t events,
				       struct evc_dispatch *out)
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
	if (snapshot->count == 1 && !owned)
		remember_stream(evc_route_cache_entry_for(router, key, record), snapshot, record);
	form.time = snapshot->timed ? evc_clock_now() : 0;
	form.size = size;
	form.alignment = alignment;
	form.receivers = snapshot->count;
	form.events = events;
	form.lane = (uint8_t)lane;
	form.boxed = evc_payload_is_boxed(size, alignment);
	out->first = address_all(record, snapshot, &form);
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
	out->stream = NULL;
	record->pins++;
	return EVC_OK;
}

void evc_dispatch_refuse(struct evc_envelope *first, uint32_t count, struct evc_stream *stream)
{
	struct evc_envelope *next;

	for (struct evc_envelope *envelope = first; count > 0; count--) {
		next = evc_slot_next(envelope);
		evc_payload_end(envelope, false, NULL);
		if (stream == NULL)
			evc_pool_give(envelope);
		envelope = next;
	}
	if (stream != NULL)
		evc_stream_withdraw(stream);
}

uint32_t evc_dispatch_commit_any(struct evc_dispatch *dispatch)
{
	struct evc_envelope *next = dispatch->first;
	uint32_t accepted = 0;

	for (uint32_t r = 0; r < dispatch->receivers; r++) {
		struct evc_envelope *first = next, *last = next;
		struct evc_sink *sink = first->subscription->sink;
		struct evc_stream *stream = NULL;

		if (sink->lender != NULL)
			stream = sink->lender->find(sink, dispatch->record, first);
		for (uint32_t e = 1; e < dispatch->events; e++)
			last = evc_slot_next(last);
		/* Before the post: afterwards the envelopes are the receiver's. */
		next = evc_slot_next(last);
		evc_slot_set_next(last, NULL);
		accepted += evc_dispatch_post(first, last, dispatch->events, 1u << dispatch->lane, stream);
	}
	evc_dispatch_end(dispatch);
	return accepted;
}

void evc_dispatch_abandon(struct evc_dispatch *dispatch)
{
	if (dispatch->record != NULL) {
		if (dispatch->shared)
			free_boxes(dispatch->first, dispatch->events);
		else if (dispatch->first->flags & EVC_ENVELOPE_BATCH)
			evc_box_free(dispatch->first->batch.box, NULL);
		give_back(dispatch->record, dispatch->first, dispatch->receivers,
			  dispatch->events);
	}
	evc_dispatch_end(dispatch);
}
#endif
