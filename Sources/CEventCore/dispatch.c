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
#include "lender.h"
#include "router_private.h"

#include <string.h>

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

	if (entry->stream == NULL && sink->lender != NULL)
		entry->stream = sink->lender->lend(sink, record);
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
 * As the common case below, for a receiver that lends no stream (a pool, a latest-only slot, a shared
 * mailbox): the envelope comes from the thread's pool. False if this is no such case.
 */
static __attribute__((noinline)) bool begin_pooled(const struct evc_route_cache_entry *entry, uint8_t lane,
						   struct evc_thread_record *record,
						   struct evc_dispatch *out)
{
	const struct evc_snapshot *snapshot = entry->snapshot;
	struct evc_envelope *envelope;

	if (snapshot == NULL || snapshot->count != 1 ||
	    snapshot->entries[0].subscription->sink->lender != NULL)
		return false;
	envelope = evc_pool_take(&record->pools[0]);
	if (evc_unlikely(envelope == NULL))
		return false;
	envelope->index = 0;
	evc_slot_set_next(envelope, NULL);
	fill(envelope, snapshot, lane, record, NULL, out);
	return true;
}

/*
 * The common case written out, since it decides what an event costs: the cache hits, one receiver that
 * lends a stream, room in it, one event, an inline payload. Everything else goes the long way.
 */
enum evc_status evc_dispatch_begin(struct evc_router *router, uint64_t key, enum evc_lane lane,
				   size_t size, size_t alignment, uint32_t events,
				   struct evc_dispatch *out)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_route_cache_entry *entry;
	struct evc_stream *stream;

	if (evc_unlikely(record == NULL || router == NULL || out == NULL || events != 1 ||
			 (unsigned)lane >= EVC_LANE_COUNT || (alignment & (alignment - 1)) != 0 ||
			 evc_payload_is_boxed(size, alignment)))
		return begin_any(router, key, lane, size, alignment, events, out);
	entry = evc_route_cache_entry_for(router, key, record);
	stream = entry->stream;
	if (evc_unlikely(!evc_route_cache_hits(entry, router, key)))
		return begin_any(router, key, lane, size, alignment, events, out);
	if (evc_unlikely(stream == NULL)) {
		if (begin_pooled(entry, (uint8_t)lane, record, out))
			return EVC_OK;
		return begin_any(router, key, lane, size, alignment, events, out);
	}
	if (evc_unlikely(stream->reserved != NULL || stream->slot == stream->end))
		return begin_any(router, key, lane, size, alignment, events, out);
	fill(evc_stream_reserve(stream, record, 1), entry->snapshot, (uint8_t)lane, record, stream, out);
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
	dispatch->stream = NULL;
}

/* The receiver has closed: ends the payloads of its `count` envelopes, then the envelopes. */
static __attribute__((noinline)) void refuse(struct evc_envelope *first, uint32_t count,
					     struct evc_stream *stream)
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

/*
 * Posts the `count` envelopes of one receiver, which lie in the stream, or come from the pool if there is
 * none.
 *
 * Not by way of the mailbox's header: a router knows sinks only. A direct call of the one sink that
 * nearly all subscriptions have would save 1 ns; it is not worth the knowledge.
 */
static inline bool post(struct evc_envelope *first, struct evc_envelope *last, uint32_t count,
			uint32_t lanes, struct evc_stream *stream)
{
	struct evc_sink *sink = first->subscription->sink;
	enum evc_status status;

	if (evc_likely(stream != NULL)) {
		status = sink->lender->publish(sink, stream, count, lanes);
	} else {
		struct evc_chain chain = { first, last, count, lanes };

		status = sink->accept(sink, &chain);
	}
	if (evc_likely(status == EVC_OK))
		return true;
	refuse(first, count, stream);
	return false;
}

/* Several receivers or events, or an envelope from the pool. */
static __attribute__((noinline)) uint32_t commit_any(struct evc_dispatch *dispatch)
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
		accepted += post(first, last, dispatch->events, 1u << dispatch->lane, stream);
	}
	end(dispatch);
	return accepted;
}

uint32_t evc_dispatch_commit(struct evc_dispatch *dispatch)
{
	uint32_t accepted;

	if (evc_unlikely(dispatch->stream == NULL)) {
		/* As begin_pooled: the envelope is linked to no other. */
		if (dispatch->receivers != 1 || dispatch->events != 1 ||
		    dispatch->first->subscription->sink->lender != NULL)
			return commit_any(dispatch);
	}
	accepted = post(dispatch->first, dispatch->first, 1, 1u << dispatch->lane,
			dispatch->stream);
	end(dispatch);
	return accepted;
}

void evc_dispatch_abandon(struct evc_dispatch *dispatch)
{
	if (dispatch->record != NULL) {
		if (dispatch->shared)
			free_boxes(dispatch->first, dispatch->events);
		give_back(dispatch->record, dispatch->first, dispatch->receivers,
			  dispatch->events);
	}
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
