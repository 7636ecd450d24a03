/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "memory/stream.h"

#include "memory/memory.h"
#include "memory/thread_record.h"

/*
 * Done once, not at each use: an index never changes, and `next` of a slot that was used holds no ticket.
 * To write to all slots at each use costs as many cache misses in a row, 60 instead of 30 ns an event.
 */
static_assert((EVC_SEGMENT_SIZE - sizeof(struct evc_segment)) / sizeof(struct evc_envelope) <= UINT8_MAX,
	      "an index is a byte");

void evc_segment_prepare(void *memory, size_t size)
{
	struct evc_segment *segment = memory;
	size_t capacity = (size - sizeof(*segment)) / sizeof(struct evc_envelope);

	for (size_t i = 0; i < capacity; i++) {
		atomic_init(&segment->slots[i].next, NULL);
		segment->slots[i].index = (uint8_t)(i + 1);
	}
}

/* Takes a segment from the thread's pool, ready for use. */
static struct evc_segment *make_segment(struct evc_thread_record *record, size_t class_index,
					struct evc_stream *stream)
{
	struct evc_pool *pool = &record->pools[class_index];
	struct evc_segment *segment = (struct evc_segment *)(void *)evc_pool_take(pool);
	uint32_t capacity;

	if (segment == NULL)
		return NULL;
	capacity = (uint32_t)((pool->slot_size - sizeof(*segment)) / sizeof(struct evc_envelope));
	/* All relaxed: published by the link to this segment, or with the stream. */
	atomic_store_explicit(&segment->next, NULL, memory_order_relaxed);
	segment->stream = stream;
	atomic_store_explicit(&segment->capacity, capacity, memory_order_relaxed);
	atomic_store_explicit(&segment->ended, 0, memory_order_relaxed);
	return segment;
}

static void begin_segment(struct evc_stream *stream, struct evc_segment *segment)
{
	stream->segment = segment;
	stream->slot = segment->slots;
	/* Relaxed: this thread wrote it. */
	stream->end = segment->slots +
		      atomic_load_explicit(&segment->capacity, memory_order_relaxed);
}

struct evc_stream *evc_stream_create(struct evc_thread_record *record, uint64_t mailbox_number)
{
	struct evc_stream *stream = evc_allocate(sizeof(*stream), _Alignof(struct evc_stream));

	if (stream == NULL)
		return NULL;
	/* A small one first: most threads post little to most mailboxes. */
	stream->segment = make_segment(record, EVC_CLASS_FIRST_SEGMENT, stream);
	if (stream->segment == NULL) {
		evc_deallocate(stream, sizeof(*stream), _Alignof(struct evc_stream));
		return NULL;
	}
	stream->reserved = NULL;
	stream->reserved_segment = NULL;
	begin_segment(stream, stream->segment);
	stream->mailbox_number = mailbox_number;
	stream->record = record;
	stream->next_in_record = NULL;
	stream->next_in_mailbox = NULL;
	atomic_init(&stream->dead, false);
	atomic_init(&stream->read_segment, stream->segment);
	atomic_init(&stream->read_position, 0);
	return stream;
}

bool evc_stream_advance(struct evc_stream *stream, struct evc_thread_record *record)
{
	struct evc_segment *next = make_segment(record, EVC_CLASS_SEGMENT, stream);

	if (next == NULL)
		return false;
	/* Pairs with evc_stream_peek. From here on the consumer may go past the old segment. */
	atomic_store_explicit(&stream->segment->next, next, memory_order_release);
	begin_segment(stream, next);
	return true;
}

void evc_stream_withdraw(struct evc_stream *stream)
{
	struct evc_envelope *slot = stream->reserved;
	struct evc_segment *segment = stream->reserved_segment;
	/* Relaxed: this thread wrote it. */
	struct evc_segment *added = atomic_load_explicit(&segment->next, memory_order_relaxed);
	struct evc_segment *next;

	/*
	 * What was added goes back: were it left linked, the consumer might go past this segment as soon
	 * as it is full, while it is still the producer's. It cannot have seen the link, since it looks for
	 * it behind the last slot only, and the reserved slot shows no ticket. Relaxed: the next P2 of
	 * that slot publishes it.
	 */
	atomic_store_explicit(&segment->next, NULL, memory_order_relaxed);
	for (; added != NULL; added = next) {
		next = atomic_load_explicit(&added->next, memory_order_relaxed);
		evc_pool_untake(&stream->record->pools[EVC_CLASS_SEGMENT],
				(struct evc_envelope *)(void *)added);
	}
	begin_segment(stream, segment);
	stream->slot = slot;
	stream->reserved = NULL;
}

void evc_stream_end(struct evc_stream *stream)
{
	struct evc_segment *segment =
		atomic_load_explicit(&stream->read_segment, memory_order_relaxed);
	struct evc_segment *next;

	for (; segment != NULL; segment = next) {
		next = atomic_load_explicit(&segment->next, memory_order_relaxed);
		evc_pool_give(segment);
	}
	/* Pairs with evc_stream_table_sweep, in which the owner frees it. */
	atomic_store_explicit(&stream->dead, true, memory_order_release);
}

void evc_stream_destroy(struct evc_stream *stream)
{
	evc_deallocate(stream, sizeof(*stream), _Alignof(struct evc_stream));
}
#endif
