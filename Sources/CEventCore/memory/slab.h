/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Slots of fixed sizes for envelopes and boxes. Each thread that dispatches has a slab pool for each size;
 * only that thread takes slots, and any thread gives them back.
 *
 *   slab      256 KiB, aligned to its size. Its first 4 KiB are its header: a descriptor for each segment.
 *   segment   4 KiB of slots of one size, and 32 KiB of the largest. Its descriptor has a bit for each slot
 *             that was given back.
 *   slot      64 bytes to 8 KiB, a power of two, at a multiple of its size.
 *
 * Giving a slot back sets one bit in its segment's descriptor. The taker therefore reads nothing of the slot, whose
 * line is still in the cache of the thread that gave it back; an envelope that waits keeps its own slot and no
 * other; and a segment is used again with whichever slots are free.
 *
 * Synchronization:
 *   field             owner thread      giving threads          trim
 *   segment->free     G3 exchange 0     G1 fetch-or             fetch-or 0
 *   list->added       exchange NULL     G2 push, CAS (warm)     exchange NULL, then push
 *   list->rest        exchange, store   -                       exchange NULL
 *   cursor, bump      read, write       -                       of a thread that has ended
 * A segment has one listing. It belongs to the owner until the segment is used or listed for the first time, to
 * whoever has taken the segment off a list, from there to G3, and to nobody while `free` is 0. A G1 that finds `free`
 * 0 makes a listing by G2. So a segment with a bit set is on one list or with one holder, and never on a list twice.
 * G1 releases what was done with the slot, G3 acquires it. Only the owner stores into `rest`, and only after it has
 * emptied it, so that a plain store loses nothing. Both parts of a list
 * are taken whole, so that there is no ABA. Tests/Models/slab.pml models G1 to G3 beside a trim.
 *
 * Progress: taking is wait-free while a segment has a slot. The next segment costs one or two exchanges, or fresh
 * memory if no slot was returned. Giving back is lock-free: a fetch-or for up to 64 slots through a cache.
 * Ownership: a slot has one holder: its slab pool, a return cache, or the user.
 *
 * J. Bonwick's slabs (USENIX 1994), with a word of bits as the free list. Measured against chains of free slots and
 * against streams of slots for each receiver: Documentation/Choices.md.
 */
#ifndef EVC_SLAB_H
#define EVC_SLAB_H

#include "memory/slot.h"
#include "platform/compiler.h"
#include "platform/domain.h"

/* The explorer has half of it: it makes and frees the segments one by one. */
#ifndef EVC_SLAB_SIZE
#define EVC_SLAB_SIZE ((size_t)256 * 1024)
#endif
/* A descriptor for each of the smallest segments, the first of which lies under them. */
#define EVC_SLAB_HEADER ((EVC_SLAB_SIZE >> EVC_SEGMENT_SHIFT) * EVC_CACHE_LINE)

/* Class n has slots of 64 << n bytes. Class 0 is that of envelopes. */
#define EVC_CLASS_COUNT 8u
/* From this class on a segment has 32 KiB. */
#define EVC_CLASS_LARGE 6u
#define EVC_SEGMENT_SHIFT 12u
#define EVC_LARGE_SEGMENT_SHIFT 15u

struct evc_pool;

struct evc_segment {
	_Atomic uint64_t free;
	/* The rest belongs to the holder of the listing. */
	struct evc_segment *next;
	/* It has no pages: they were given back to the system, or never used, and come when they are written to. */
	bool is_released;
};

struct evc_slab {
	union {
		struct {
			/* Constant. */
			struct evc_pool *pool;
			uint8_t segment_shift;
			uint8_t slot_shift;
			/* Trim only: its free segments that are held, and their unreleased bytes. */
			uint32_t held;
			size_t held_bytes;
			bool is_doomed;
			struct evc_domain_head retired;
		};
		/* The position of the first segment's descriptor, where the header itself lies. */
		_Alignas(EVC_CACHE_LINE) unsigned char header[EVC_CACHE_LINE];
	};
	/* Number n describes the memory at n << segment_shift; numbers begin at 1. */
	struct {
		_Alignas(EVC_CACHE_LINE) struct evc_segment segment;
	} segments[];
};

/* The free slots that a thread takes from at the moment. */
struct evc_cursor {
	char *memory;
	uint64_t free;
};

/* Listed segments: those that were added since the owner looked, and what it left of those before. */
struct evc_segment_list {
	_Atomic(struct evc_segment *) added, rest;
};

struct evc_pool {
	/* The owner's: the slab with segments that were never used, or NULL, and how many are in use. */
	struct evc_slab *fresh;
	uint32_t fresh_used;
	/* Constant. */
	uint8_t slot_shift;
	uint8_t segment_shift;
	/* Segments taken since the last trim; 0: at rest. Owner and trim; relaxed, a statistic. */
	_Atomic uint32_t taken;
	/* How many cursors have taken a segment, and so hold one at most times. The owner; the trim reads it, relaxed. */
	_Atomic uint32_t cursors;
	/*
	 * The slabs, and the bytes of their segments that are in use, or free and not released. Owner and trim. Acquire as
	 * `bytes` grows, pairs with the release of the trim that leaves the slab pool alone for it (evc_pool_let_go).
	 * Otherwise relaxed, since they must be exact only after the owner has ended.
	 */
	_Atomic size_t slabs, bytes;

	/* On a line of its own: other threads write here while the owner works above. */
	_Alignas(EVC_CACHE_LINE) struct evc_segment_list warm;
	/* Those without pages. A list of their own, since a thread that must not wait passes them over. */
	struct evc_segment_list cold;
};

/* Slots that were given back and not yet marked in their segments. One holder, no atomics. */
#define EVC_RETURN_WAYS 16u
struct evc_return_cache {
	struct {
		/* Where the segment's memory begins. */
		uintptr_t memory;
		uint64_t given;
	} ways[EVC_RETURN_WAYS];
};

void evc_pool_init(struct evc_pool *pool, unsigned class_index);

/* The slow path of evc_pool_take: finds another segment for the cursor. NULL = out of memory. */
void *evc_pool_refill(struct evc_pool *pool, struct evc_cursor *cursor);

/* The same without the allocator, a system call or a page fault: false if no free segment is at hand. */
bool evc_pool_try_refill(struct evc_pool *pool, struct evc_cursor *cursor);

static inline bool evc_segment_list_has(const struct evc_segment_list *list)
{
	return atomic_load_explicit(&list->added, memory_order_relaxed) != NULL ||
	       atomic_load_explicit(&list->rest, memory_order_relaxed) != NULL;
}

/* False if the next refill would need the allocator. Owner only; relaxed, since others only add segments, or trim. */
static inline bool evc_pool_has_segments(const struct evc_pool *pool)
{
	return pool->fresh != NULL || evc_segment_list_has(&pool->warm) || evc_segment_list_has(&pool->cold);
}

/* Gives back everything that an ending owner holds: the cursors first. */
void evc_cursor_end(struct evc_cursor *cursor);
void evc_pool_end(struct evc_pool *pool);

/* Marks all slots of a cache in their segments. The cache's holder only. `cache` may be NULL. */
void evc_return_cache_flush(struct evc_return_cache *cache);

/* Gives one slot back without a cache. Any thread. */
void evc_pool_give(void *slot);

/* G2, for several linked segments. */
void evc_segment_list_add(struct evc_segment_list *list, struct evc_segment *first, struct evc_segment *last);

/* slab_trim.c: the slab pool has so many slabs more, and uses so many bytes more of their segments. The owner. */
void evc_pool_grow(struct evc_pool *pool, size_t slabs, size_t bytes);
/*
 * slab_trim.c: it has more than `floor` and what its cursors hold, or more slabs than that has segments. A slab's header
 * does not count: without it there is no segment.
 */
bool evc_pool_exceeds(const struct evc_pool *pool, size_t floor);
/* slab_trim.c: gives free memory beyond `floor` back. True: it is more than that, but busy, and was left alone. */
bool evc_pool_let_go(struct evc_pool *pool, size_t floor);
/* slab_trim.c: a segment was returned; arms the trim if there may be something for the system. Lock-free. */
void evc_pool_note_return(void);
/* slab_trim.c: a thread has ended; its slab pools keep nothing. Lock-free. */
void evc_pool_note_end(void);

/* The value of `free` of a segment whose slots are all free. */
static inline uint64_t evc_pool_all_free(const struct evc_pool *pool)
{
	return UINT64_MAX >> (64u - (1u << (pool->segment_shift - pool->slot_shift)));
}

static inline struct evc_slab *evc_slab_of(const void *memory)
{
	return (struct evc_slab *)((uintptr_t)memory & ~(uintptr_t)(EVC_SLAB_SIZE - 1));
}

static inline unsigned evc_slab_capacity(const struct evc_slab *slab)
{
	return (unsigned)(EVC_SLAB_SIZE >> slab->segment_shift) - 1;
}

static inline struct evc_segment *evc_slab_segment(struct evc_slab *slab, size_t number)
{
	return &slab->segments[number - 1].segment;
}

static inline char *evc_segment_memory(struct evc_segment *segment)
{
	struct evc_slab *slab = evc_slab_of(segment);
	size_t number = ((uintptr_t)segment & (EVC_SLAB_SIZE - 1)) / EVC_CACHE_LINE;

	return (char *)slab + (number << slab->segment_shift);
}

static_assert(sizeof(struct evc_segment) <= EVC_CACHE_LINE, "a descriptor has a line");
static_assert(offsetof(struct evc_slab, segments) == EVC_CACHE_LINE, "evc_segment_memory counts on it");
static_assert(EVC_SLAB_HEADER <= (size_t)1 << EVC_SEGMENT_SHIFT, "the header lies in the first segment");

/* Takes a slot of the cursor's segment, which has one. Owner only. */
static inline void *evc_cursor_take(struct evc_cursor *cursor, unsigned slot_shift)
{
	uint64_t free = cursor->free;

	cursor->free = free & (free - 1);
	return cursor->memory + ((size_t)__builtin_ctzll(free) << slot_shift);
}

/* Takes a slot. Owner only. NULL = out of memory. */
static inline void *evc_pool_take(struct evc_pool *pool, struct evc_cursor *cursor)
{
	/* Never under AddressSanitizer. */
	return evc_likely(cursor->free != 0) ? evc_cursor_take(cursor, pool->slot_shift)
					     : evc_pool_refill(pool, cursor);
}

/* G1, and G2 if it makes the listing. */
void evc_segment_give(struct evc_segment *segment, uint64_t slots);
/* Gives back a slot of any slab pool. `cache` may be NULL. */
void evc_return_cache_give_any(struct evc_return_cache *cache, void *slot);

/*
 * The same for a slot of the first class; `cache` is not NULL. Slots mostly end in the order of their bits,
 * so that a segment's slots are marked after its last one.
 */
static inline void evc_return_cache_give_smallest(struct evc_return_cache *cache, void *slot)
{
	const uintptr_t size = (uintptr_t)1 << EVC_SEGMENT_SHIFT, last = size - EVC_CACHE_LINE;
	uintptr_t memory = (uintptr_t)slot & ~(size - 1);
	unsigned way = (unsigned)(memory >> EVC_SEGMENT_SHIFT) % EVC_RETURN_WAYS;

	/* Never under AddressSanitizer, where every slot is a block of its own. */
	if (evc_likely(cache->ways[way].memory == memory && ((uintptr_t)slot & last) != last))
		cache->ways[way].given |= UINT64_C(1) << (((uintptr_t)slot & last) / EVC_CACHE_LINE);
	else
		evc_return_cache_give_any(cache, slot);
}

#endif
