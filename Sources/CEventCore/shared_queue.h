/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A queue lane of a shared mailbox: many producers, many takers, first in first out, unbounded.
 *
 * A list of segments of EVC_QUEUE_CELLS cells. A producer draws a ticket from the last segment's `tail`
 * and writes its chain into that cell; a taker reads the cell at the first segment's `head` and takes
 * by advancing `head`. A taker that finds the cell of a drawn ticket empty for long voids it, so that a
 * preempted producer holds up nobody; that producer draws another ticket. It is the array queue of
 * P. Ramalhete and A. Correia ("FAAArrayQueue", 2016; after A. Morrison and Y. Afek's LCRQ, PPoPP 2013),
 * with a compare-and-swap on `head` in place of takers' tickets, so that taking from an empty queue
 * changes nothing, and with chains: a cell holds the first envelope of a chain that was posted
 * as one, and takers replace it by the next until the last, so that nobody's post comes in between.
 *
 * Synchronization, all within a read section of the domain:
 *   producer: evc_shared_queue_put              taker: evc_shared_queue_take
 *   Q1 load lane tail            acquire        T1 load lane head               acquire
 *   Q2 add 1 to segment tail     acq_rel        T2 load segment head            acquire
 *   Q3 CAS cell: empty → chain   seq_cst        T3 load cell                    acquire
 *   full:                                       T4 empty: load segment tail     acquire
 *   Q4 CAS next: NULL → segment  seq_cst        T5 drawn: CAS cell: empty → void  relaxed
 *      whose first cell is filled               T6 last of chain: CAS segment head: h → h + 1  acq_rel
 *   Q5 CAS lane tail: old → next release        T7 more: CAS cell: envelope → its next  acq_rel
 *                                               T8 all taken: load next         acquire
 *                                               T9 CAS lane tail, then lane head: old → next  acq_rel
 *   Q3, Q4 pair with T3, T8: the envelopes before they are seen. Q5, T9 pair with Q1, T1.
 *   T6 and T7 pair with T2 and T3 of other takers. Q3 and Q4 are sequentially consistent for the mailbox's
 *   "publish, then look" alone (shared_mailbox_private.h).
 *
 * Linearization. A put takes effect at the Q2 whose Q3 succeeds, or at its Q4. A take takes effect at T6 or T7.
 *  - Order: cells are taken in the order of their tickets, and T6 at h succeeds only while all before h
 *    were taken or void. A chain's envelopes succeed each other in one cell. Hence first in, first out, and
 *    chains stay together.
 *  - Once: a cell changes from empty to void, or to a chain and then along it; never back. T3's value of
 *    a cell whose chain is at its last envelope is final, so that T6, of which one taker succeeds for each h,
 *    gives that envelope to one taker. T7 succeeds only while the envelope is the cell's, and no envelope is
 *    in a cell twice before the taker has ended it.
 *  - Empty: T4 finds tail <= h. `head` was at least h before (T2), and never falls; so at T4 no ticket
 *    was drawn whose cell was not taken or void. Or T8 finds no next segment, when all cells of the
 *    last one are taken or void. In both cases the queue was empty at that load.
 *  - Void: the put whose ticket is void has not taken effect, and takes effect with a later ticket, before
 *    it returns: a producer's order is kept.
 * A take that follows a put (the put happened before) finds it, or that it was taken: by coherence the
 * loads T1 to T8 see at least what the put wrote.
 *
 * Progress: put is lock-free: Q3 fails only if a taker has gone on past it. Take is lock-free: T6, T7 and
 * T9 fail only if another taker has succeeded. Between Q2 and Q3 a taker waits a bounded time, then voids.
 *
 * Reclamation: T9 takes the tail off a segment before the head, so that nobody finds it from then on; who
 * is still in it is in a section, and it goes back to its pool a grace period later. An envelope that T3
 * read may be taken and used anew while this taker looks at its link for T7: the link is then any slot that
 * was in use after the section began, whose memory the section keeps, and T7 fails. Envelopes themselves need
 * no grace period.
 *
 * Tests/Models/shared_queue.pml models these lines.
 */
#ifndef EVC_SHARED_QUEUE_H
#define EVC_SHARED_QUEUE_H

#include "domain.h"
#include "thread_record.h"

/* A segment is a block of the largest pool class: 4096 bytes, of which 192 are not cells. */
#define EVC_QUEUE_CLASS (EVC_CLASS_COUNT - 1)
#define EVC_QUEUE_CELLS 488u

/* Cells hold the address of an envelope, and in its lowest bits: */
#define EVC_CELL_MORE ((uintptr_t)1)
#define EVC_CELL_VOID ((uintptr_t)2)

struct evc_queue_segment {
	/* Takers. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t head;
	_Atomic(struct evc_queue_segment *) next;
	/* Counts the segments of a lane; constant. */
	uint64_t number;
	struct evc_domain_head retired;
	/* Producers. Runs beyond EVC_QUEUE_CELLS by one for each producer that finds it full. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t tail;
	/* Each written by its producer once, then by takers. */
	_Alignas(EVC_CACHE_LINE) _Atomic uintptr_t cells[EVC_QUEUE_CELLS];
};

static_assert(sizeof(struct evc_queue_segment) <= 64u << EVC_QUEUE_CLASS, "a segment is one block");

struct evc_shared_queue {
	_Alignas(EVC_CACHE_LINE) _Atomic(struct evc_queue_segment *) head;
	_Alignas(EVC_CACHE_LINE) _Atomic(struct evc_queue_segment *) tail;
	/* Envelopes in chains beyond one for each cell. */
	_Atomic uint64_t extra;
};

/* False = out of memory. */
bool evc_shared_queue_open(struct evc_shared_queue *queue);
/* Of an empty queue that nobody uses any more. */
void evc_shared_queue_close(struct evc_shared_queue *queue);

/*
 * A segment for evc_shared_queue_put, and back if it was not used. NULL = out of memory. The thread that
 * puts, outside of sections: it may allocate.
 */
struct evc_queue_segment *evc_queue_segment_create(void);
void evc_queue_segment_untake(struct evc_queue_segment *segment);

/*
 * Q4 and Q5: true if the chain was put into `*spare`, which is NULL then. `*spare` may be NULL if the full
 * segment has a next one already.
 */
bool evc_shared_queue_append(struct evc_shared_queue *queue, struct evc_queue_segment *full,
			     uintptr_t cell, struct evc_queue_segment **spare);
/* T8 and T9: leaves a segment that is all taken. False if it is the last: the queue is empty. */
bool evc_shared_queue_advance(struct evc_shared_queue *queue, struct evc_queue_segment *done);
/* T5 with the wait before it: what the cell holds then. */
uintptr_t evc_shared_queue_await(_Atomic uintptr_t *cell);

/*
 * Puts the chain that begins with `first` and has `count` envelopes. False if it takes a new segment and
 * `*spare` is NULL: then nothing was put. Within a section.
 */
static inline bool evc_shared_queue_put(struct evc_shared_queue *queue, struct evc_envelope *first,
					uint32_t count, struct evc_queue_segment **spare)
{
	uintptr_t value = (uintptr_t)first | (count > 1 ? EVC_CELL_MORE : 0);

	if (evc_unlikely(count > 1))
		/* Relaxed: a statistic; before the put, so that it never falls below zero. */
		atomic_fetch_add_explicit(&queue->extra, count - 1, memory_order_relaxed);
	for (;;) {
		/* Q1. */
		struct evc_queue_segment *segment =
			atomic_load_explicit(&queue->tail, memory_order_acquire);
		/* Q2. */
		uint64_t ticket =
			atomic_fetch_add_explicit(&segment->tail, 1, memory_order_acq_rel);

		if (evc_likely(ticket < EVC_QUEUE_CELLS)) {
			uintptr_t expected = 0;

			/* Q3. */
			if (evc_likely(atomic_compare_exchange_strong_explicit(
				    &segment->cells[ticket], &expected, value, memory_order_seq_cst,
				    memory_order_relaxed)))
				return true;
		} else if (*spare == NULL &&
			   atomic_load_explicit(&segment->next, memory_order_relaxed) == NULL) {
			if (count > 1)
				atomic_fetch_sub_explicit(&queue->extra, count - 1,
							  memory_order_relaxed);
			return false;
		} else if (evc_shared_queue_append(queue, segment, value, spare)) {
			return true;
		}
	}
}

/* Takes the oldest envelope; NULL if there is none. Within a section. */
static inline struct evc_envelope *evc_shared_queue_take(struct evc_shared_queue *queue)
{
	for (;;) {
		/* T1, T2. */
		struct evc_queue_segment *segment =
			atomic_load_explicit(&queue->head, memory_order_acquire);
		uint64_t head = atomic_load_explicit(&segment->head, memory_order_acquire);
		struct evc_envelope *envelope, *next;
		uintptr_t value, rest;

		if (evc_unlikely(head >= EVC_QUEUE_CELLS)) {
			if (!evc_shared_queue_advance(queue, segment))
				return NULL;
			continue;
		}
		/* T3. */
		value = atomic_load_explicit(&segment->cells[head], memory_order_acquire);
		if (value == 0) {
			/* T4. */
			if (atomic_load_explicit(&segment->tail, memory_order_acquire) <= head)
				return NULL;
			value = evc_shared_queue_await(&segment->cells[head]);
		}
		envelope = (struct evc_envelope *)(value & ~(EVC_CELL_MORE | EVC_CELL_VOID));
		if (evc_likely(!(value & EVC_CELL_MORE))) {
			/* T6; past a void cell, whoever is first. */
			if (atomic_compare_exchange_strong_explicit(&segment->head, &head, head + 1,
								    memory_order_acq_rel,
								    memory_order_relaxed) &&
			    envelope != NULL)
				return envelope;
			continue;
		}
		/* T7. Acquire: the links were written by the producer; see "Reclamation" for stale ones. */
		next = atomic_load_explicit(&envelope->next, memory_order_acquire);
		if (evc_unlikely(next == NULL))
			continue;
		rest = (uintptr_t)next |
		       (atomic_load_explicit(&next->next, memory_order_acquire) != NULL ? EVC_CELL_MORE
											: 0);
		if (atomic_compare_exchange_strong_explicit(&segment->cells[head], &value, rest,
							    memory_order_acq_rel,
							    memory_order_relaxed)) {
			atomic_fetch_sub_explicit(&queue->extra, 1, memory_order_relaxed);
			return envelope;
		}
	}
}

/*
 * True unless the queue was empty at a moment during the call. Within a section. Wait-free. `in_flight` says
 * whether a put that has drawn its ticket and not yet filled its cell counts, which costs the producers
 * a cache line.
 */
static inline bool evc_shared_queue_has_some(struct evc_shared_queue *queue, bool in_flight)
{
	/* T1, T2. */
	struct evc_queue_segment *segment = atomic_load_explicit(&queue->head, memory_order_acquire);
	uint64_t head = atomic_load_explicit(&segment->head, memory_order_acquire);

	/* T8. */
	if (evc_unlikely(head >= EVC_QUEUE_CELLS))
		return atomic_load_explicit(&segment->next, memory_order_acquire) != NULL;
	/* T3, T4. */
	return atomic_load_explicit(&segment->cells[head], memory_order_acquire) != 0 ||
	       (in_flight && atomic_load_explicit(&segment->tail, memory_order_acquire) > head);
}

/* How many envelopes wait: exact while nothing moves. Within a section. Wait-free. */
uint64_t evc_shared_queue_depth(struct evc_shared_queue *queue);

#endif
