/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "lanes/shared_queue.h"

struct evc_queue_segment *evc_queue_segment_create(void)
{
	struct evc_thread_record *record = evc_thread_record();
	struct evc_queue_segment *segment;

	if (record == NULL)
		return NULL;
	segment = evc_spare_take(record, EVC_SPARE_SEGMENT);
	if (segment == NULL)
		return NULL;
	atomic_init(&segment->head, 0);
	atomic_init(&segment->next, NULL);
	segment->number = 0;
	atomic_init(&segment->tail, 0);
	for (unsigned i = 0; i < EVC_QUEUE_CELLS; i++)
		atomic_init(&segment->cells[i], 0);
	return segment;
}

static void reclaim(struct evc_domain_head *head)
{
	evc_pool_give(evc_container_of(head, struct evc_queue_segment, retired));
}

bool evc_shared_queue_open(struct evc_shared_queue *queue)
{
	struct evc_queue_segment *segment = evc_queue_segment_create();

	if (segment == NULL)
		return false;
	atomic_init(&queue->head, segment);
	atomic_init(&queue->tail, segment);
	atomic_init(&queue->extra, 0);
	return true;
}

void evc_shared_queue_close(struct evc_shared_queue *queue)
{
	/* Relaxed: no other thread uses the queue any more, so that no section has seen it. */
	struct evc_queue_segment *segment =
		atomic_load_explicit(&queue->head, memory_order_relaxed);
	struct evc_queue_segment *next;

	for (; segment != NULL; segment = next) {
		next = atomic_load_explicit(&segment->next, memory_order_relaxed);
		evc_pool_give(segment);
	}
}

bool evc_shared_queue_append(struct evc_shared_queue *queue, struct evc_queue_segment *full, uintptr_t cell)
{
	/* Acquire, as Q1 through it. */
	struct evc_queue_segment *next = atomic_load_explicit(&full->next, memory_order_acquire);
	bool is_put = false;

	if (next == NULL) {
		struct evc_queue_segment *segment = evc_queue_segment_create();

		segment->number = full->number + 1;
		/* Relaxed: Q4 publishes them. */
		atomic_store_explicit(&segment->cells[0], cell, memory_order_relaxed);
		atomic_store_explicit(&segment->tail, 1, memory_order_relaxed);
		/* Q4. Acquire on failure: the other producer's segment. */
		is_put = atomic_compare_exchange_strong_explicit(&full->next, &next, segment,
								 memory_order_seq_cst, memory_order_acquire);
		if (is_put)
			next = segment;
		else
			/* The thread has a record: the segment came from it. */
			evc_spare_give(evc_thread_record_current, EVC_SPARE_SEGMENT, segment);
	}
	/* Q5: by whichever producer is first. */
	atomic_compare_exchange_strong_explicit(&queue->tail, &full, next, memory_order_release,
						memory_order_relaxed);
	return is_put;
}

bool evc_shared_queue_advance(struct evc_shared_queue *queue, struct evc_queue_segment *done)
{
	/* T6. */
	struct evc_queue_segment *next = atomic_load_explicit(&done->next, memory_order_acquire);
	struct evc_queue_segment *expected = done;

	if (next == NULL)
		return false;
	/* T7. The tail first: once it has left a segment it never comes back to it. */
	if (atomic_load_explicit(&queue->tail, memory_order_relaxed) == done)
		atomic_compare_exchange_strong_explicit(&queue->tail, &expected, next,
							memory_order_release, memory_order_relaxed);
	expected = done;
	/* Release, both: the next segment, and of the head, that the tail has left this one. */
	if (atomic_compare_exchange_strong_explicit(&queue->head, &expected, next,
						    memory_order_release, memory_order_relaxed))
		evc_domain_retire(&done->retired, sizeof(*done), reclaim);
	return true;
}

/* Where the first cell that is not taken was at one moment, counted from the first cell ever. */
static uint64_t head_position(struct evc_shared_queue *queue)
{
	/* Acquire, pairs with T7: the segment's fields. */
	struct evc_queue_segment *first = atomic_load_explicit(&queue->head, memory_order_acquire);

	/* Relaxed: T4 releases nothing. */
	return first->number * EVC_QUEUE_CELLS + atomic_load_explicit(&first->head, memory_order_relaxed);
}

/* The same for the first cell that is empty. `head` was read before: it is not behind. */
static uint64_t tail_position(struct evc_shared_queue *queue, uint64_t head)
{
	struct evc_queue_segment *last = atomic_load_explicit(&queue->tail, memory_order_acquire);
	uint64_t first = last->number * EVC_QUEUE_CELLS;
	/* A hint, which may be too low. Acquire, pairs with Q3's: what was taken before that put is not counted. */
	uint64_t tail = atomic_load_explicit(&last->tail, memory_order_acquire);

	if (first + tail < head)
		tail = head - first;
	/* Acquire, as above. */
	while (tail < EVC_QUEUE_CELLS && atomic_load_explicit(&last->cells[tail], memory_order_acquire) != 0)
		tail++;
	return first + tail;
}

/* Too low rather than too high if others take meanwhile: a reader that is held up in the middle sees no crowd. */
uint64_t evc_shared_queue_depth(struct evc_shared_queue *queue)
{
	uint64_t before, tail, head = head_position(queue);

	for (unsigned looks = 0; looks < 4; looks++) {
		before = head;
		/* Relaxed: nothing is released by it, and a chain that is being put may be counted too early anyhow. */
		tail = tail_position(queue, head) + atomic_load_explicit(&queue->extra, memory_order_relaxed);
		head = head_position(queue);
		if (head == before)
			break;
	}
	return tail > head ? tail - head : 0;
}
#endif
