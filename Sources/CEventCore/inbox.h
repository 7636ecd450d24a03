/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The inbox: a wait-free list with many producers and one consumer, which takes all of it at once.
 *
 * The algorithm is Dmitry Vyukov's MPSC node queue (1024cores.net, "Non-intrusive MPSC node-based
 * queue") in the splicing form of liburcu's wfcqueue, in C11 atomics, which ThreadSanitizer
 * understands. Measured beside the called cds_wfcq: see Benchmarks/README.md, "Choices".
 *
 * Synchronization:
 *   producer: evc_inbox_post          consumer: evc_inbox_splice, evc_inbox_link
 *   A  exchange tail (seq_cst)        C  exchange tail with the stub (seq_cst)
 *   B  store previous->next (release) D  load next (acquire)
 *   B pairs with D: payload and fields of the posted envelopes before they are seen.
 *   A and C are sequentially consistent because the mailbox's alarm protocol orders them with its
 *   loads (mailbox.c).
 *
 * Progress: post is wait-free. Between A and B the list has a gap there; the consumer that comes to it
 * waits for B, which is one store away unless the producer was preempted.
 * Tests/Models/inbox.pml models evc_inbox_post, evc_inbox_splice and evc_inbox_link.
 */
#ifndef EVC_INBOX_H
#define EVC_INBOX_H

#include "slot.h"

struct evc_inbox {
	/* Producers and, at a splice, the consumer. */
	_Alignas(EVC_CACHE_LINE) _Atomic(struct evc_envelope *) tail;
	/* Its `next` is written by the first producer after a splice; the other fields are unused. */
	_Alignas(EVC_CACHE_LINE) struct evc_envelope stub;
};

static inline void evc_inbox_init(struct evc_inbox *inbox)
{
	atomic_init(&inbox->stub.next, NULL);
	atomic_init(&inbox->tail, &inbox->stub);
}

/* Posts the chain first ... last, where last->next is NULL. Any thread. */
static inline void evc_inbox_post(struct evc_inbox *inbox, struct evc_envelope *first,
				  struct evc_envelope *last)
{
	struct evc_envelope *previous =
		atomic_exchange_explicit(&inbox->tail, last, memory_order_seq_cst);

	atomic_store_explicit(&previous->next, first, memory_order_release);
}

/*
 * True if the first post since the last splice is linked. Consumer only. The stub's link is on a line that
 * this first post writes and the others leave alone, so that looking at it takes nothing from them.
 */
static inline bool evc_inbox_has_linked_mail(struct evc_inbox *inbox)
{
	/* Relaxed: evc_inbox_splice reads it again, with acquire. */
	return atomic_load_explicit(&inbox->stub.next, memory_order_relaxed) != NULL;
}

/* True if anything was posted since the last splice, linked or not. Consumer only. */
static inline bool evc_inbox_has_mail(struct evc_inbox *inbox)
{
	return evc_inbox_has_linked_mail(inbox) ||
	       /* Sequentially consistent: the second half of the mailbox's "publish, then look". */
	       atomic_load_explicit(&inbox->tail, memory_order_seq_cst) != &inbox->stub;
}

/* Waits for a producer that is between A and B. */
struct evc_envelope *evc_inbox_await_link(_Atomic(struct evc_envelope *) *link);

/* The envelope after `envelope` in a spliced list of which it is not the last. Consumer only. */
static inline struct evc_envelope *evc_inbox_link(struct evc_envelope *envelope)
{
	/* D: pairs with B. */
	struct evc_envelope *next = atomic_load_explicit(&envelope->next, memory_order_acquire);

	return evc_likely(next != NULL) ? next : evc_inbox_await_link(&envelope->next);
}

/* Takes everything. Returns the first envelope and sets `*last`; NULL if there is none. Consumer only. */
static inline struct evc_envelope *evc_inbox_splice(struct evc_inbox *inbox,
						    struct evc_envelope **last)
{
	struct evc_envelope *first;

	if (!evc_inbox_has_mail(inbox))
		return NULL;
	first = evc_inbox_link(&inbox->stub);
	/* The next line brings both home: begin with the one that is not an exchange. */
	__builtin_prefetch(first, 1);
	/* Before C: the producer that finds the stub at the tail links to it afterwards. */
	atomic_store_explicit(&inbox->stub.next, NULL, memory_order_relaxed);
	*last = atomic_exchange_explicit(&inbox->tail, &inbox->stub, memory_order_seq_cst);
	return first;
}

#endif
