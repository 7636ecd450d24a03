/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * The fast path of a dispatch: a cached route, one receiver, one event, an inline payload. Nothing but the
 * payload's address is passed between the steps: the envelope holds everything. Both steps take 9 ns, where
 * the general path (dispatch_any.c) takes 15.
 */
#include "routing/dispatch_private.h"

#include <string.h>

static const struct evc_stamp no_stamp;

/* Pins the route cache until commit_one. Only if evc_envelope_is_in_hand. */
static inline void *begin_in_hand(struct evc_thread_record *record, const struct evc_snapshot *snapshot,
				  unsigned lane)
{
	struct evc_envelope *envelope = evc_cursor_take(&record->envelopes[lane], EVC_ENVELOPE_SHIFT);

	evc_slot_prefetch(envelope);
	evc_dispatch_address(envelope, &snapshot->entries[0], no_stamp, lane, 0);
	record->pins++;
	return envelope->bytes;
}

/* If the dispatch is observed, the clock must be read, spares reserved, or the next segment found. */
static __attribute__((noinline)) void *begin_slowly(struct evc_thread_record *record,
						    struct evc_route_cache_entry *entry, unsigned lane)
{
	const struct evc_snapshot *snapshot = entry->snapshot;
	struct evc_envelope *envelope;

	if (snapshot->is_plain_if_counted && evc_envelope_is_in_hand(record, lane) && evc_route_count(evc_route_counts_of(record, entry), 1))
		return begin_in_hand(record, snapshot, lane);
	if (snapshot->count != 1 || !evc_spares_reserve(record, snapshot->needs, 1))
		return NULL;
	envelope = evc_envelope_take_kept(record, lane);
	if (envelope == NULL) {
		evc_spares_unreserve(record, snapshot->needs, 1);
		return NULL;
	}
	/* Before the stamp, which may run user code. */
	record->pins++;
	evc_dispatch_address(envelope, &snapshot->entries[0],
			     evc_snapshot_stamp(snapshot, evc_route_counts_of(record, entry), 1), lane, 0);
	return envelope->bytes;
}

static inline void *begin_envelope(struct evc_thread_record *record, struct evc_route_cache_entry *entry,
				   unsigned lane)
{
	if (evc_unlikely(!entry->snapshot->is_plain || !evc_envelope_is_in_hand(record, lane)))
		return begin_slowly(record, entry, lane);
	return begin_in_hand(record, entry->snapshot, lane);
}

/* On a thread that consumes a mailbox, whose events for itself may need no envelope. */
static __attribute__((noinline)) void *begin_place(struct evc_thread_record *record, struct evc_router *router,
						   struct evc_route_cache_entry *entry,
						   struct evc_consumed_kind kind)
{
	struct evc_consumed *consumed = evc_consumed_current;
	const struct evc_snapshot_entry *receiver = &entry->snapshot->entries[0];
	void *place = NULL;

	/* V2, V3. */
	kind.version = atomic_load_explicit(&router->version, memory_order_acquire);
	if (entry->snapshot->is_plain && receiver->subscription->sink == consumed->sink &&
	    kind.version != EVC_VERSION_CHANGING && evc_route_cache_hits(entry, router, kind.key))
		place = consumed->begin(consumed, &kind, receiver->subscription, receiver->generation);
	return place != NULL ? place : begin_envelope(record, entry, kind.lane);
}

static inline void *begin_by_route(struct evc_router *router, uint64_t key, unsigned lane, size_t size,
				   size_t alignment)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_route_cache_entry *entry;

	if (evc_unlikely(record == NULL || lane >= EVC_LANE_COUNT || evc_payload_is_boxed(size, alignment)))
		return NULL;
	entry = evc_route_cache_entry_for(router, key, record);
	/* Its route is not cached, or the key has no receiver. */
	if (evc_unlikely(!(evc_route_cache_hits(entry, router, key) && entry->snapshot != NULL)))
		return NULL;
	if (evc_unlikely(evc_consumed_current != NULL))
		return begin_place(record, router, entry,
				   (struct evc_consumed_kind){ 0, key, size, alignment, lane });
	return begin_envelope(record, entry, lane);
}

static __attribute__((noinline)) void *begin_by_route_as_consumer(struct evc_router *router, uint64_t key,
								  unsigned lane, size_t size,
								  size_t alignment)
{
	return begin_by_route(router, key, lane, size, alignment);
}

/* Its only call is the last one: it needs no stack frame. */
static inline void *begin_one(struct evc_router *router, uint64_t key, unsigned lane, size_t size,
			      size_t alignment)
{
	struct evc_consumed *consumed = evc_consumed_current;

	if (evc_unlikely(router == NULL))
		return NULL;
	if (evc_likely(consumed == NULL))
		return begin_by_route(router, key, lane, size, alignment);
	/* V4. */
	if (evc_likely(evc_consumed_may_join(consumed,
					     atomic_load_explicit(&router->version, memory_order_relaxed), key,
					     lane, size, alignment)))
		return evc_consumed_take(consumed);
	return begin_by_route_as_consumer(router, key, lane, size, alignment);
}

/* For a sink that takes chains only. */
static __attribute__((noinline)) uint32_t commit_chain(struct evc_envelope *envelope)
{
	struct evc_chain chain = { envelope, envelope, 1, 1u << envelope->lane };
	struct evc_thread_record *record = evc_thread_record_current;
	/* Read before the envelope is given away. */
	unsigned needs = envelope->subscription->sink->needs;
	bool is_accepted;

	evc_slot_set_next(envelope, NULL);
	is_accepted = evc_dispatch_post(&chain, record, NULL) > 0;
	evc_spares_unreserve(record, needs, 1);
	record->pins--;
	return is_accepted;
}

/* The route cache keeps the sink alive, whatever user code the post may run. */
static __attribute__((noinline)) uint32_t commit_envelope(void *payload)
{
	struct evc_envelope *envelope = evc_container_of(payload, struct evc_envelope, bytes);
	struct evc_sink *sink = envelope->subscription->sink;
	struct evc_thread_record *record = evc_thread_record_current;
	uint32_t accepted = 1;

	if (evc_unlikely(sink->accept_one == NULL))
		return commit_chain(envelope);
	if (evc_unlikely(sink->accept_one(sink, envelope) != EVC_OK)) {
		/* The receiver has closed, or is full. */
		evc_envelope_release(envelope, false);
		accepted = 0;
	}
	if (evc_unlikely(sink->needs != 0))
		evc_spares_unreserve(record, sink->needs, 1);
	record->pins--;
	return accepted;
}

/* As in begin_one. */
static inline uint32_t commit_one(void *payload)
{
	struct evc_consumed *consumed = evc_consumed_current;

	if (consumed == NULL || consumed->place != payload)
		return commit_envelope(payload);
	return evc_consumed_commit(consumed);
}

void *evc_dispatch_begin_one(struct evc_router *router, uint64_t key, enum evc_lane lane, size_t size,
			     size_t alignment)
{
	return begin_one(router, key, lane, size, alignment);
}

uint32_t evc_dispatch_commit_one(void *payload)
{
	return commit_one(payload);
}

static inline bool is_words(size_t size)
{
	return size % sizeof(uint64_t) == 0 && size <= EVC_INLINE_SIZE;
}

/*
 * Copies word by word, as the caller has just written them: a load of two words waits until both stores have left the
 * processor's buffer.
 */
static inline void copy_words(void *to, const void *from, size_t size)
{
	uint64_t word;

	for (size_t at = 0; at < size; at += sizeof(word)) {
		memcpy(&word, (const char *)from + at, sizeof(word));
		/* Compilers would take two at once. */
		__asm__("" : "+r"(word));
		memcpy((char *)to + at, &word, sizeof(word));
	}
}

static enum evc_status dispatch_any(struct evc_router *router, uint64_t key, enum evc_lane lane,
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

static __attribute__((noinline)) enum evc_status dispatch_bytes(struct evc_router *router, uint64_t key,
								enum evc_lane lane, const void *payload,
								size_t size, size_t alignment,
								uint32_t *receivers)
{
	void *place = NULL;
	uint32_t accepted;

	if (evc_likely((alignment & (alignment - 1)) == 0))
		place = begin_one(router, key, lane, size, alignment);
	if (evc_unlikely(place == NULL))
		return dispatch_any(router, key, lane, payload, size, alignment, receivers);
	if (evc_likely(is_words(size)))
		copy_words(place, payload, size);
	else
		memcpy(place, payload, size);
	accepted = commit_one(place);
	if (receivers != NULL)
		*receivers = accepted;
	return EVC_OK;
}

/* What joins a batch does so here, without a stack frame. */
enum evc_status evc_dispatch_bytes(struct evc_router *router, uint64_t key, enum evc_lane lane,
				   const void *payload, size_t size, size_t alignment,
				   uint32_t *receivers)
{
	struct evc_consumed *consumed = evc_consumed_current;

	if (evc_likely(consumed == NULL) || evc_unlikely(router == NULL) ||
	    /* V4. */
	    !evc_consumed_may_join(consumed, atomic_load_explicit(&router->version, memory_order_relaxed), key, lane,
				   size, alignment) ||
	    !evc_consumed_may_append(consumed) || !is_words(size))
		return dispatch_bytes(router, key, lane, payload, size, alignment, receivers);
	copy_words(consumed->batch->end, payload, size);
	evc_consumed_append(consumed);
	if (receivers != NULL)
		*receivers = 1;
	return EVC_OK;
}
#endif
