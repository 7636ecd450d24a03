/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A stream: the envelopes that one thread posts to one mailbox, in its order, written into segments of
 * slots that lie side by side. A mailbox has one for each thread that posts to it, and merges them by
 * the tickets that the posts drew: one total order over all producers (D2).
 *
 * Why not one list for all: in a list each post writes the link of the envelope before, which the
 * consumer may be reading, and waits for that line at the locked exchange of the next post; and free
 * slots come back as chains, which have to be followed link by link. In a stream a producer writes only
 * lines that it is about to fill, in the order of their addresses. Measured: Benchmarks/README.md,
 * "Choices".
 *
 * Synchronization:
 *   field                     producer (owner of the record)     consumer                  others
 *   mailbox->tickets          P1 fetch-add (seq_cst)             load (seq_cst)            load
 *   slot->next, as a ticket   P2 store (release)                 D load (acquire)          load (acquire)
 *   segment->next             store (release), before P2         load (acquire)            load (acquire)
 *   segment->ended            -                                  fetch-add (acq_rel)       fetch-add
 *   read_segment, -_position  -                                  store                     load (acquire)
 *   mailbox->streams          push by compare-and-swap           load (acquire)            load (acquire)
 *   producer's part           read, write                        -                         -
 *   dead                      load (acquire)                     -                         mailbox's end: store
 *   P2 pairs with D: fields and payload before the ticket shows. P1 is the moment of the post, in the
 *   single order of sequentially consistent operations (mailbox_private.h).
 *
 * Why a slot shows the ticket that is expected only when it is that post: `next` of a slot holds, from
 * its last use, 0 or a pointer, which is even; tickets are stored odd, and never twice.
 *
 * Progress: a post is wait-free while the stream has room; a new segment comes from the thread's pool.
 * Between P1 and P2 the consumer that needs this ticket waits for P2, which is a few instructions away
 * unless the producer was preempted.
 *
 * Ownership: the slots of a segment belong to their envelopes. Whoever ends the last of them gives the
 * segment back to its pool, but not before the consumer has gone past it (which counts as one more), and
 * it goes past only when the producer has linked the next one and so will not touch this one again: a
 * producer whose next slot lies in a segment, or will once a reservation is withdrawn, leaves it unlinked
 * or a slot of it without its ticket. So an event that waits keeps its whole segment, 62 slots, although
 * those around it have long been handled: 40,000 that wait, each among sixty others, keep 167 MB.
 * Tests/Models/stream.pml models evc_stream_publish, evc_stream_peek and the end of a segment.
 */
#ifndef EVC_STREAM_H
#define EVC_STREAM_H

#include "memory/pool_private.h"

#ifdef EVC_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

struct evc_thread_record;

struct evc_segment {
	/* Line of the producer. The first two have the places of a free slot's links. */
	_Atomic(struct evc_segment *) next;
	struct evc_stream *stream;
	/* Atomic for evc_mailbox_depths, which may look at a segment that is being used anew. */
	_Atomic uint32_t capacity;
	/* How many slots have ended, and one more when the consumer has gone past. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t ended;
	_Alignas(EVC_CACHE_LINE) struct evc_envelope slots[];
};

struct evc_stream {
	/*
	 * The producer's part: the next slot, the end of its segment, and the first of the slots between
	 * reserve and publish (or NULL). A post reads nothing from the slot itself: that line is on its way
	 * from the consumer while it is being written, and a read would wait for it.
	 */
	struct evc_envelope *slot;
	struct evc_envelope *end;
	struct evc_envelope *reserved;
	struct evc_segment *segment;
	/* Where the reservation began, if it went on into another segment. */
	struct evc_segment *reserved_segment;
	/* Tells the mailbox: numbers are never used twice. */
	uint64_t mailbox_number;
	/* Constant. */
	struct evc_thread_record *record;
	struct evc_stream *next_in_record;
	/* Written before the stream enters the mailbox's list, then constant. */
	struct evc_stream *next_in_mailbox;
	_Atomic bool dead;

	/* The consumer's part. */
	_Alignas(EVC_CACHE_LINE) _Atomic(struct evc_segment *) read_segment;
	_Atomic uint32_t read_position;
};

static inline uintptr_t evc_ticket_tag(uint64_t ticket)
{
	return ((uintptr_t)ticket << 1) | 1u;
}

static inline bool evc_slot_is_ticket(const struct evc_envelope *next)
{
	return ((uintptr_t)next & 1u) != 0;
}

static inline struct evc_segment *evc_segment_of(struct evc_envelope *slot)
{
	return (struct evc_segment *)(void *)(slot - (slot->index - 1u) - 2);
}

static_assert(offsetof(struct evc_segment, slots) == 2 * sizeof(struct evc_envelope),
	      "evc_segment_of counts on it");

/* Makes fresh memory of this size a segment that has never been used. */
void evc_segment_prepare(void *memory, size_t size);

/* Makes a stream with its first segment. NULL = out of memory. The record's thread. */
struct evc_stream *evc_stream_create(struct evc_thread_record *record, uint64_t mailbox_number);

/*
 * Frees the segments of a stream that nobody reads or writes any more, and tells the owner's thread to
 * forget the rest. The mailbox's end.
 */
void evc_stream_end(struct evc_stream *stream);

/* Frees what evc_stream_end has left, where it never got into a table. */
void evc_stream_destroy(struct evc_stream *stream);

/* The part of reserve that needs another segment. False = out of memory. */
bool evc_stream_advance(struct evc_stream *stream, struct evc_thread_record *record);

/* True if the next slot can be reserved. False = out of memory. The producer. */
static inline bool evc_stream_has_room(struct evc_stream *stream, struct evc_thread_record *record)
{
	return evc_likely(stream->slot != stream->end) || evc_stream_advance(stream, record);
}

/* Takes a reservation back. The producer. */
void evc_stream_withdraw(struct evc_stream *stream);

/*
 * Sets `count` slots aside, linked by `next`, until they are published or withdrawn; nothing is reserved
 * yet. NULL = out of memory. The producer.
 */
static inline struct evc_envelope *evc_stream_reserve(struct evc_stream *stream,
						      struct evc_thread_record *record,
						      uint32_t count)
{
	struct evc_envelope *last;

	if (evc_unlikely(!evc_stream_has_room(stream, record)))
		return NULL;
	stream->reserved_segment = stream->segment;
	stream->reserved = last = stream->slot++;
	evc_slot_prefetch(last);
	while (evc_unlikely(--count > 0)) {
		if (!evc_stream_has_room(stream, record)) {
			evc_stream_withdraw(stream);
			return NULL;
		}
		evc_slot_set_next(last, stream->slot);
		last = stream->slot++;
	}
	evc_slot_set_next(last, NULL);
	return stream->reserved;
}

/* P2 for the reserved slots, which have drawn `ticket` and those that follow. The producer. */
static inline void evc_stream_publish(struct evc_stream *stream, uint64_t ticket)
{
	struct evc_envelope *slot = stream->reserved;

	stream->reserved = NULL;
	while (slot != NULL) {
		struct evc_envelope *next = evc_slot_next(slot);

		/* Afterwards the slot is the consumer's. */
		atomic_store_explicit(&slot->next,
				      (struct evc_envelope *)evc_ticket_tag(ticket++),
				      memory_order_release);
		slot = next;
	}
}

/* Counts `count` ended slots of a segment; the last of all gives it back. Any thread; cache may be NULL. */
static inline void evc_segment_end(struct evc_segment *segment, uint32_t count,
				   struct evc_return_cache *cache)
{
	/* Before the count: afterwards whoever counts the last may give the segment back. */
	uint32_t all = atomic_load_explicit(&segment->capacity, memory_order_relaxed) + 1;

	/* Acquire-release, pairs with itself: all uses of the slots before the segment is used anew. */
	if (atomic_fetch_add_explicit(&segment->ended, count, memory_order_acq_rel) + count != all)
		return;
	if (cache != NULL)
		evc_return_cache_give(cache, segment);
	else
		evc_pool_give(segment);
}

/* Ends one slot of a segment: counted in the cache, and told to the segment when another's turn comes. */
static inline void evc_stream_end_slot(struct evc_envelope *slot, struct evc_return_cache *cache)
{
	struct evc_segment *segment = evc_segment_of(slot);

#ifdef EVC_ADDRESS_SANITIZER
	/* Its first half may still be looked at by evc_mailbox_depths. */
	__asan_poison_memory_region(slot->bytes, sizeof(slot->bytes));
#endif
	if (cache == NULL) {
		evc_segment_end(segment, 1, NULL);
	} else if (evc_likely(cache->segment == segment)) {
		cache->segment_ended++;
	} else {
		if (cache->segment != NULL)
			evc_segment_end(cache->segment, cache->segment_ended, cache);
		cache->segment = segment;
		cache->segment_ended = 1;
	}
}

/* Tells the segment what the cache has counted. The cache's holder. */
static inline void evc_stream_flush(struct evc_return_cache *cache)
{
	struct evc_segment *segment = cache->segment;

	cache->segment = NULL;
	if (segment != NULL)
		evc_segment_end(segment, cache->segment_ended, cache);
}

/*
 * The next slot of the stream if it is the post with this ticket, else NULL. It stays the next until
 * evc_stream_take. Consumer only.
 */
static inline struct evc_envelope *evc_stream_peek(struct evc_stream *stream, uint64_t ticket,
						   struct evc_return_cache *cache)
{
	/* Relaxed: only this thread writes them. */
	struct evc_segment *segment =
		atomic_load_explicit(&stream->read_segment, memory_order_relaxed);
	uint32_t position = atomic_load_explicit(&stream->read_position, memory_order_relaxed);

	if (evc_unlikely(position ==
			 atomic_load_explicit(&segment->capacity, memory_order_relaxed))) {
		/* Pairs with evc_stream_advance: the new segment's fields. */
		struct evc_segment *next =
			atomic_load_explicit(&segment->next, memory_order_acquire);

		if (next == NULL)
			return NULL;
		/* Release, pairs with evc_mailbox_depths. */
		atomic_store_explicit(&stream->read_position, 0, memory_order_relaxed);
		atomic_store_explicit(&stream->read_segment, next, memory_order_release);
		evc_segment_end(segment, 1, cache);
		segment = next;
		position = 0;
	}
	/* D: pairs with P2. */
	if (atomic_load_explicit(&segment->slots[position].next, memory_order_acquire) !=
	    (struct evc_envelope *)evc_ticket_tag(ticket))
		return NULL;
	return &segment->slots[position];
}

static inline void evc_stream_take(struct evc_stream *stream)
{
	uint32_t position = atomic_load_explicit(&stream->read_position, memory_order_relaxed);

	/* Release, pairs with evc_mailbox_depths. */
	atomic_store_explicit(&stream->read_position, position + 1, memory_order_release);
}

#endif
