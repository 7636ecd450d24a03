/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * The general path of a dispatch: any number of receivers and events, boxes, a route that is not cached.
 *
 * Between the steps the envelopes are linked in one list, ordered by receiver and then by event. All of them
 * are made before the first is posted, so that either all receivers get the events or, without memory, none
 * does.
 */
#include "routing/dispatch_private.h"

struct form {
	struct evc_stamp stamp;
	size_t size;
	size_t alignment;
	uint32_t receivers;
	uint32_t events;
	uint8_t lane;
	bool boxed;
};

/* Gives back all envelopes of a list; their payloads were not written. */
static void unmake(struct evc_thread_record *record, struct evc_envelope *envelope)
{
	struct evc_envelope *next;

	for (; envelope != NULL; envelope = next) {
		next = evc_slot_next(envelope);
		evc_envelope_untake(record, envelope);
	}
}

/* Makes boxes for the first receiver's envelopes. False = out of memory, and no box is left. */
static bool make_boxes(struct evc_thread_record *record, struct evc_envelope *first,
		       const struct form *form)
{
	struct evc_envelope *envelope = first;

	for (uint32_t e = 0; e < form->events; e++) {
		envelope->box = evc_box_create(record, form->lane, form->size, form->alignment, form->receivers);
		if (evc_unlikely(envelope->box == NULL)) {
			for (; first != envelope; first = evc_slot_next(first))
				evc_box_free(first->box, NULL);
			return false;
		}
		envelope = evc_slot_next(envelope);
	}
	return true;
}

/* Makes the list of all envelopes. NULL = out of memory, and nothing is left over. */
static struct evc_envelope *make(struct evc_thread_record *record,
				 const struct evc_snapshot *snapshot, const struct form *form)
{
	struct evc_envelope *first = NULL, *last = NULL, *envelope, *share;

	for (uint32_t i = 0; i < form->receivers * form->events; i++) {
		envelope = evc_envelope_take(record, form->lane);
		if (evc_unlikely(envelope == NULL)) {
			unmake(record, first);
			return NULL;
		}
		evc_slot_set_next(envelope, NULL);
		evc_dispatch_address(envelope, &snapshot->entries[i / form->events], form->stamp,
				     form->lane, form->boxed ? EVC_ENVELOPE_BOXED : 0);
		if (last != NULL)
			evc_slot_set_next(last, envelope);
		else
			first = envelope;
		last = envelope;
	}
	if (!form->boxed)
		return first;
	if (evc_unlikely(!make_boxes(record, first, form))) {
		unmake(record, first);
		return NULL;
	}
	/* The other receivers share the first receiver's boxes. */
	envelope = share = first;
	for (uint32_t e = 0; e < form->events; e++)
		envelope = evc_slot_next(envelope);
	for (; envelope != NULL; envelope = evc_slot_next(envelope)) {
		envelope->box = share->box;
		share = evc_slot_next(share);
	}
	return first;
}

static enum evc_status begin(struct evc_thread_record *record, struct evc_snapshot *snapshot,
			     const struct form *form, struct evc_dispatch *out)
{
	uint32_t needing = snapshot->needing <= UINT16_MAX ? snapshot->needing : UINT16_MAX;

	if (evc_unlikely(snapshot->needs != 0 && !evc_spares_reserve(record, snapshot->needs, needing)))
		return EVC_OUT_OF_MEMORY;
	*out = (struct evc_dispatch){
		.first = make(record, snapshot, form),
		.receivers = form->receivers,
		.payloads = form->boxed ? form->events : form->events * form->receivers,
		.shared = form->boxed,
		.lane = form->lane,
		.events = (uint16_t)form->events,
		.needs = snapshot->needs,
		.needing = (uint16_t)needing,
		.record = record,
	};
	if (evc_likely(out->first != NULL))
		return EVC_OK;
	evc_spares_unreserve(record, snapshot->needs, needing);
	return EVC_OUT_OF_MEMORY;
}

enum evc_status evc_dispatch_begin(struct evc_router *router, uint64_t key, enum evc_lane lane,
				   size_t size, size_t alignment, uint32_t events,
				   struct evc_dispatch *out)
{
	struct evc_thread_record *record;
	struct evc_route_cache_entry *entry;
	struct evc_snapshot *snapshot;
	enum evc_status status;
	struct form form;
	bool owned = false;

	if (evc_unlikely(router == NULL || key == 0 || (unsigned)lane >= EVC_LANE_COUNT ||
			 events == 0 || events > EVC_DISPATCH_MAX || out == NULL ||
			 (alignment & (alignment - 1)) != 0 || alignment > EVC_ALIGNMENT_MAX))
		return EVC_INVALID_ARGUMENT;
	record = evc_thread_record();
	if (evc_unlikely(record == NULL))
		return EVC_OUT_OF_MEMORY;
	entry = evc_route_cache_entry_for(router, key, record);
	snapshot = entry->snapshot;
	if (evc_unlikely(!evc_route_cache_hits(entry, router, key))) {
		status = evc_router_look_up(router, key, record, entry, &snapshot, &owned);
		if (status != EVC_OK)
			return status;
	}
	if (snapshot == NULL) {
		*out = (struct evc_dispatch){ 0 };
		return EVC_OK;
	}
	/* Before user code. What the cache has at the place is another route if the snapshot is not cached. */
	record->pins++;
	form.stamp = evc_snapshot_stamp(snapshot, owned ? NULL : evc_route_counts_of(record, entry), events);
	form.size = size;
	form.alignment = alignment;
	form.receivers = snapshot->count;
	form.events = events;
	form.lane = (uint8_t)lane;
	form.boxed = evc_payload_is_boxed(size, alignment);
	status = begin(record, snapshot, &form, out);
	if (evc_likely(status == EVC_OK)) {
		out->snapshot = owned ? snapshot : NULL;
		return EVC_OK;
	}
	record->pins--;
	if (owned)
		evc_snapshot_release(snapshot);
	return status;
}

struct evc_envelope *evc_dispatch_next(struct evc_envelope *envelope)
{
	return evc_slot_next(envelope);
}

/* Ends the envelopes of one receiver, whose payloads were not written. Returns what follows them. */
static struct evc_envelope *unmake_some(struct evc_dispatch *dispatch, struct evc_envelope *envelope)
{
	for (uint32_t e = 0; e < dispatch->events; e++) {
		struct evc_envelope *next = evc_slot_next(envelope);

		/* Relaxed: nobody else has the box before the commit. */
		if (dispatch->shared &&
		    atomic_fetch_sub_explicit(&envelope->box->references, 1, memory_order_relaxed) == 1)
			evc_box_free(envelope->box, NULL);
		evc_envelope_untake(dispatch->record, envelope);
		envelope = next;
	}
	return envelope;
}

bool evc_dispatch_skip(struct evc_dispatch *dispatch, const struct evc_subscription *subscription)
{
	struct evc_envelope *before = NULL, *envelope, *next;

	if (dispatch == NULL || dispatch->array != NULL)
		return false;
	envelope = dispatch->first;
	while (envelope != NULL && envelope->subscription != subscription) {
		/* The envelopes of a receiver are adjacent. */
		before = envelope;
		envelope = evc_slot_next(envelope);
	}
	if (envelope == NULL)
		return false;
	next = unmake_some(dispatch, envelope);
	if (before != NULL)
		evc_slot_set_next(before, next);
	else
		dispatch->first = next;
	dispatch->receivers--;
	if (!dispatch->shared || dispatch->receivers == 0)
		dispatch->payloads -= dispatch->events;
	return true;
}

/* Lets go of what a dispatch holds, but for its envelopes. */
static void end(struct evc_dispatch *dispatch)
{
	struct evc_thread_record *record = dispatch->record;

	if (record != NULL) {
		record->pins--;
		evc_spares_unreserve(record, dispatch->needs, dispatch->needing);
	}
	if (dispatch->snapshot != NULL)
		evc_snapshot_release(dispatch->snapshot);
	*dispatch = (struct evc_dispatch){ 0 };
}

void evc_dispatch_abandon(struct evc_dispatch *dispatch)
{
	if (dispatch == NULL)
		return;
	if (dispatch->array != NULL)
		evc_box_free(dispatch->first->batch.box, NULL);
	for (struct evc_envelope *envelope = dispatch->first; envelope != NULL;)
		envelope = unmake_some(dispatch, envelope);
	end(dispatch);
}

/* Posts to all receivers; with a `note`, to one subscription after the other. */
static inline uint32_t commit(struct evc_dispatch *dispatch, struct evc_dispatch_outcome *outcome,
			      evc_dispatch_note *note, void *context)
{
	struct evc_envelope *next = dispatch->first;
	uint32_t accepted = 0, left = dispatch->receivers;
	/* The events of an envelope. */
	uint32_t events = dispatch->array != NULL ? dispatch->payloads : 1;

	while (left > 0) {
		struct evc_chain chain = { next, next, 0, 1u << dispatch->lane };
		const struct evc_subscription *subscription = next->subscription;
		struct evc_dispatch_outcome each = { 0 }, *counts = note != NULL ? &each : outcome;
		uint32_t receivers = 0;

		/* One post for all receivers with the same sink; they are adjacent (snapshot.c). */
		do {
			for (uint32_t e = 0; e < dispatch->events; e++) {
				chain.last = next;
				next = evc_slot_next(next);
			}
			receivers++;
		} while (note == NULL && receivers < left && next->subscription->sink == subscription->sink);
		chain.count = receivers * dispatch->events;
		left -= receivers;
		evc_slot_set_next(chain.last, NULL);
		accepted += evc_dispatch_post(&chain, dispatch->record, counts);
		if (counts != NULL) {
			/* A batch, which is the only envelope then, is accepted as a whole, or not at all. */
			counts->accepted *= events;
			counts->closed *= events;
		}
		if (note != NULL)
			note(context, subscription, &each);
	}
	end(dispatch);
	return accepted * events;
}

uint32_t evc_dispatch_commit(struct evc_dispatch *dispatch)
{
	return commit(dispatch, NULL, NULL, NULL);
}

uint32_t evc_dispatch_commit_reporting(struct evc_dispatch *dispatch, struct evc_dispatch_outcome *outcome)
{
	*outcome = (struct evc_dispatch_outcome){ 0 };
	return commit(dispatch, outcome, NULL, NULL);
}

uint32_t evc_dispatch_commit_each(struct evc_dispatch *dispatch, evc_dispatch_note *note, void *context)
{
	return commit(dispatch, NULL, note, context);
}
#endif
