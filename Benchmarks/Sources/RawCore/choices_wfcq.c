/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * liburcu's wfcqueue by its called functions (without _LGPL_SOURCE, as an MIT program may use it), with
 * nodes of 64 bytes from a pool that the consumer hands them back to in chains. Compare choices_core.c.
 *
 *     producer: node ──► cds_wfcq ──► dequeue, add up
 *               ◄── chains of 32 ──
 */
#include "check.h"

#if __has_include(<urcu/wfcqueue.h>)
#include <urcu/wfcqueue.h>

#include <sched.h>
#include <stdatomic.h>

#define CHAIN 32u

struct node {
	_Alignas(64) struct cds_wfcq_node link;
	/* In the pool: the next node; at the head of a returned chain also the chain before it. */
	struct node *next;
	struct node *chain;
	uint64_t payload[3];
};

struct queue {
	/* The lines of the consumer and of the producers apart, as the core has them. */
	_Alignas(64) struct __cds_wfcq_head head;
	_Alignas(64) struct cds_wfcq_tail tail;
	/* Chains on their way back: pushed by the consumer, taken all at once by the producer. */
	_Alignas(64) _Atomic(struct node *) returned;
	/* The producer's. */
	_Alignas(64) struct node *free;
	struct node *chains;
	/* The consumer's. */
	_Alignas(64) struct node *open;
	unsigned open_count;
	uint64_t events;
	uint64_t sum;
};

/* Kept over all runs, as the core keeps its slots: the runs follow each other. */
static struct node *kept;

static struct node *take_node(struct queue *queue)
{
	struct node *node;

	if (queue->free == NULL) {
		if (queue->chains == NULL)
			queue->chains = atomic_exchange_explicit(&queue->returned, NULL,
								 memory_order_acquire);
		if (queue->chains != NULL) {
			queue->free = queue->chains;
			queue->chains = queue->free->chain;
		} else {
			enum { SLAB = 4096 };
			struct node *slab = aligned_alloc(64, SLAB * sizeof(*slab));

			EVB_REQUIRE(slab != NULL, "no memory");
			for (unsigned i = 0; i < SLAB; i++)
				slab[i].next = i + 1 < SLAB ? &slab[i + 1] : NULL;
			queue->free = slab;
		}
	}
	node = queue->free;
	queue->free = node->next;
	return node;
}

static void return_open(struct queue *queue)
{
	if (queue->open == NULL)
		return;
	queue->open->chain = atomic_load_explicit(&queue->returned, memory_order_relaxed);
	/* Release: the chain before it is seen; pairs with the exchange in take_node. */
	while (!atomic_compare_exchange_weak_explicit(&queue->returned, &queue->open->chain,
						      queue->open, memory_order_release,
						      memory_order_relaxed))
		;
	queue->open = NULL;
	queue->open_count = 0;
}

static void post(struct queue *queue, uint64_t value)
{
	struct node *node = take_node(queue);

	cds_wfcq_node_init(&node->link);
	node->payload[0] = value;
	node->payload[1] = node->payload[2] = 0;
	cds_wfcq_enqueue(&queue->head, &queue->tail, &node->link);
}

static bool take(struct queue *queue)
{
	struct cds_wfcq_node *link = __cds_wfcq_dequeue_nonblocking(&queue->head, &queue->tail);
	struct node *node;

	if (link == NULL || link == CDS_WFCQ_WOULDBLOCK)
		return false;
	node = (struct node *)link;
	queue->sum += node->payload[0];
	node->next = queue->open;
	queue->open = node;
	if (++queue->open_count == CHAIN)
		return_open(queue);
	return true;
}

static void *consume(void *argument)
{
	struct queue *queue = argument;

	for (uint64_t left = queue->events; left != 0;)
		if (take(queue))
			left--;
	return NULL;
}

static void open_queue(struct queue *queue)
{
	__cds_wfcq_init(&queue->head, &queue->tail);
	queue->chains = kept;
}

static void close_queue(struct queue *queue)
{
	struct node *chain;

	EVB_REQUIRE(queue->sum == queue->events * (queue->events + 1) / 2, "the checksum is wrong");
	return_open(queue);
	/* Every list that is left becomes a chain of what is kept. */
	kept = queue->chains;
	if (queue->free != NULL) {
		queue->free->chain = kept;
		kept = queue->free;
	}
	chain = atomic_load_explicit(&queue->returned, memory_order_acquire);
	while (chain != NULL) {
		struct node *next = chain->chain;

		chain->chain = kept;
		kept = chain;
		chain = next;
	}
}

uint64_t evb_choice_called_wfcq(uint64_t events)
{
	struct queue queue = { .events = events };
	uint64_t start, time;
	pthread_t thread;

	open_queue(&queue);
	thread = evb_start(consume, &queue);
	start = evb_now();
	for (uint64_t i = 1; i <= events; i++)
		post(&queue, i);
	evb_join(thread);
	time = evb_now() - start;
	close_queue(&queue);
	return time;
}

uint64_t evb_choice_called_wfcq_alone(uint64_t events)
{
	struct queue queue = { .events = events };
	uint64_t start, time;

	open_queue(&queue);
	start = evb_now();
	for (uint64_t i = 1; i <= events; i++) {
		post(&queue, i);
		EVB_REQUIRE(take(&queue), "what was posted is not there");
	}
	time = evb_now() - start;
	close_queue(&queue);
	return time;
}

bool evb_has_wfcq(void)
{
	return true;
}
#else
uint64_t evb_choice_called_wfcq(uint64_t events)
{
	(void)events;
	EVB_REQUIRE(false, "liburcu's headers are missing");
	return 0;
}

uint64_t evb_choice_called_wfcq_alone(uint64_t events)
{
	return evb_choice_called_wfcq(events);
}

bool evb_has_wfcq(void)
{
	return false;
}
#endif
