/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A queue lane of a shared mailbox: many producers, many takers, first in first out, unbounded.
 *
 * M. M. Michael and M. L. Scott's queue (PODC 1996) with segments of EVC_QUEUE_CELLS cells in place of single
 * nodes: a compare-and-swap fills the next free cell, advancing `head` takes the oldest, and a segment is
 * left when all its cells were taken. A cell holds the first envelope of a chain that was posted as one;
 * takers replace it by the next one until the last, so that no other post comes in between.
 *
 * Synchronization, all within a read section of the domain:
 *   producer: evc_shared_queue_put              taker: evc_shared_queue_take
 *   Q1 load lane tail            acquire        T1 load lane head               acquire
 *   Q2 load segment tail (a hint) acquire       T2 load segment head            relaxed
 *      and pass the cells that are filled       T3 load cell                    acquire
 *   Q3 CAS cell: empty → chain   seq_cst        T4 last of chain: CAS segment head: h → h + 1  relaxed
 *      store the hint            release        T5 more: CAS cell: envelope → its next         relaxed
 *   full:                                       T6 all taken: load next         acquire
 *   Q4 CAS next: NULL → segment  seq_cst        T7 CAS lane tail, then lane head: old → next   release
 *      whose first cell is filled
 *   Q5 CAS lane tail: old → next release
 * Q3, Q4 pair with T3, T6: the envelopes before they are seen. A Q3 that fails acquires the cell that it passes, which
 * the hint covers then. Q5, T7 pair with Q1, T1. T2, T4 and T5 only
 * distinguish takers from each other: the content of a chain was written before its Q3, which T3 acquires,
 * also by way of the T5 of others (read-modify-writes, which continue what Q3 has released). Q3 and Q4 are
 * sequentially consistent only for the mailbox's "publish, then look" (shared_mailbox_private.h).
 *
 * Linearization: a put at its Q3 or Q4, a take at its T4 or T5, a take from an empty queue at its T3 or T6.
 * - Filled without a gap: a producer passes only filled cells, and the hint is never beyond the first empty one; Q3
 *   succeeds only at an empty cell; a segment gets a next one only when it is full. So each put adds the cell after
 *   those that are filled.
 * - Order: cells are taken in the order in which they were filled, and T4 at h succeeds only if all before h were
 *   taken. A chain's envelopes follow each other in one cell.
 * - Once: a cell changes from empty to a chain, then along it (T5 succeeds only while the envelope is the cell's),
 *   and never back. At the last of its chain it changes no more, so that T4, which succeeds once at each h, gives it
 *   away.
 * - Empty: at T3 the cell at h is empty, hence all after it, and all before it were taken, since `head` was h (T2).
 *   Or at T6 no segment follows one whose cells were all taken.
 * If a put happened before a take, the take finds its envelope, or that it was taken: by coherence T1 to T6 see at
 * least what the put wrote, and the filled cells before it, including those that the hint made it pass, which is why
 * Q2 acquires it.
 *
 * Progress: lock-free: Q3 and Q4 fail only if another put has succeeded, T4, T5 and T7 only if another take has.
 *
 * Reclamation: T7 moves the tail off a segment before the head, so that no thread finds it from then on. Threads
 * that are still in it are in a section, and it returns to its slab pool a grace period later. An envelope that T3
 * read may be taken and used again while this taker reads its link for T5: the link is then that of any slot in use
 * after the section began, whose memory the section keeps, and T5 fails. Envelopes themselves need no grace period.
 *
 * Measured against single nodes for each envelope, liburcu's rculfqueue, and tickets drawn by fetch-and-add
 * (P. Ramalhete and A. Correia's FAAArrayQueue, after LCRQ). The model is Tests/Models/shared_queue.pml.
 */
#ifndef EVC_SHARED_QUEUE_H
#define EVC_SHARED_QUEUE_H

#include "platform/domain.h"
#include "memory/spares.h"

/* A segment is a slot of EVC_QUEUE_CLASS: 4096 bytes, of which cells take all but 192. The explorer has fewer. */
#ifndef EVC_QUEUE_CELLS
#define EVC_QUEUE_CELLS 488u
#endif

/* A cell holds 0, or an envelope's address and in the lowest bit whether more of its chain follow. */
#define EVC_CELL_MORE ((uintptr_t)1)

struct evc_queue_segment {
	/* Written by takers. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t head;
	_Atomic(struct evc_queue_segment *) next;
	/* The segment's ordinal in its lane; constant. */
	uint64_t number;
	struct evc_domain_head retired;
	/* Written by producers: the first empty cell, or a filled one before it. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t tail;
	/* Each is written by its producer once, then by takers if it is a chain. */
	_Alignas(EVC_CACHE_LINE) _Atomic uintptr_t cells[EVC_QUEUE_CELLS];
};

static_assert(sizeof(struct evc_queue_segment) <= 64u << EVC_QUEUE_CLASS, "a segment is one block");

struct evc_shared_queue {
	_Alignas(EVC_CACHE_LINE) _Atomic(struct evc_queue_segment *) head;
	_Alignas(EVC_CACHE_LINE) _Atomic(struct evc_queue_segment *) tail;
	/* The envelopes of chains, without the first of each cell. */
	_Atomic uint64_t extra;
};

/* False = out of memory. */
bool evc_shared_queue_open(struct evc_shared_queue *queue);
/* The queue is empty and no longer used. */
void evc_shared_queue_close(struct evc_shared_queue *queue);

/* Makes a segment of a spare. NULL = out of memory, without a spare. */
struct evc_queue_segment *evc_queue_segment_create(void);

/* Q4 and Q5: true if the chain was put into a new segment. False: another producer has added one. */
bool evc_shared_queue_append(struct evc_shared_queue *queue, struct evc_queue_segment *full, uintptr_t cell);
/* T6 and T7: leaves a segment whose cells were all taken. False if it is the last one: the queue is empty. */
bool evc_shared_queue_advance(struct evc_shared_queue *queue, struct evc_queue_segment *done);

/* Puts the chain of `count` envelopes that begins with `first`. Within a section; a segment is set aside. */
static inline void evc_shared_queue_put(struct evc_shared_queue *queue, struct evc_envelope *first,
					uint32_t count)
{
	uintptr_t value = (uintptr_t)first | (count > 1 ? EVC_CELL_MORE : 0);

	if (evc_unlikely(count > 1))
		/* Relaxed: a statistic. Before the put, so that it never falls below zero. */
		atomic_fetch_add_explicit(&queue->extra, count - 1, memory_order_relaxed);
	for (;;) {
		/* Q1. */
		struct evc_queue_segment *segment =
			atomic_load_explicit(&queue->tail, memory_order_acquire);
		/* Q2. Acquire, pairs with Q3 of others: who sees our cell sees the skipped ones filled. */
		uint64_t cell = atomic_load_explicit(&segment->tail, memory_order_acquire);

		for (; cell < EVC_QUEUE_CELLS; cell++) {
			uintptr_t expected = 0;

			/*
			 * Q3. Where it fails acquire, as Q2: the hint, which covers that cell then, releases what was
			 * taken before it was filled (tail_position).
			 */
			if (evc_likely(atomic_compare_exchange_strong_explicit(
				    &segment->cells[cell], &expected, value, memory_order_seq_cst,
				    memory_order_acquire))) {
				/* Release: pairs with Q2. */
				atomic_store_explicit(&segment->tail, cell + 1, memory_order_release);
				return;
			}
		}
		if (evc_shared_queue_append(queue, segment, value))
			return;
	}
}

/* Takes the oldest envelope; NULL if there is none. Within a section. */
static inline struct evc_envelope *evc_shared_queue_take(struct evc_shared_queue *queue)
{
	for (;;) {
		/* T1, T2. */
		struct evc_queue_segment *segment =
			atomic_load_explicit(&queue->head, memory_order_acquire);
		uint64_t head = atomic_load_explicit(&segment->head, memory_order_relaxed);
		struct evc_envelope *envelope, *next;
		uintptr_t value, rest;

		if (evc_unlikely(head >= EVC_QUEUE_CELLS)) {
			if (!evc_shared_queue_advance(queue, segment))
				return NULL;
			continue;
		}
		/* T3. */
		value = atomic_load_explicit(&segment->cells[head], memory_order_acquire);
		if (value == 0)
			return NULL;
		envelope = (struct evc_envelope *)(value & ~EVC_CELL_MORE);
		if (evc_likely(!(value & EVC_CELL_MORE))) {
			/* T4. */
			if (evc_likely(atomic_compare_exchange_strong_explicit(
				    &segment->head, &head, head + 1, memory_order_relaxed,
				    memory_order_relaxed)))
				return envelope;
			continue;
		}
		/* T5. Relaxed: the producer wrote the links before Q3; for stale ones see "Reclamation". */
		next = evc_slot_next(envelope);
		if (evc_unlikely(next == NULL))
			continue;
		rest = (uintptr_t)next | (evc_slot_next(next) != NULL ? EVC_CELL_MORE : 0);
		if (atomic_compare_exchange_strong_explicit(&segment->cells[head], &value, rest,
							    memory_order_relaxed,
							    memory_order_relaxed)) {
			atomic_fetch_sub_explicit(&queue->extra, 1, memory_order_relaxed);
			return envelope;
		}
	}
}

/* True unless the queue was empty at some moment during the call. Within a section. Wait-free. */
static inline bool evc_shared_queue_has_some(struct evc_shared_queue *queue)
{
	/* T1, T2. */
	struct evc_queue_segment *segment = atomic_load_explicit(&queue->head, memory_order_acquire);
	uint64_t head = atomic_load_explicit(&segment->head, memory_order_relaxed);

	/* T6, T3. Relaxed: nothing is taken. */
	if (evc_unlikely(head >= EVC_QUEUE_CELLS))
		return atomic_load_explicit(&segment->next, memory_order_relaxed) != NULL;
	return atomic_load_explicit(&segment->cells[head], memory_order_relaxed) != 0;
}

/* The number of envelopes that wait; exact while nothing is put or taken. Within a section. */
uint64_t evc_shared_queue_depth(struct evc_shared_queue *queue);

#endif
