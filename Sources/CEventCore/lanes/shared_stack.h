/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A stack lane of a shared mailbox: many producers, many takers, last in first out, unbounded.
 *
 * R. K. Treiber's stack (IBM RJ 5118, 1986), linked through the envelopes themselves. Beside the pointer to
 * the newest envelope lies the count of all that were ever put; one double-width compare-and-swap changes
 * both. The count protects against ABA (an envelope that was taken, used again and put again while a taker
 * was reading its link), and also yields the depth of the lane, with a count of those that were taken.
 *
 * Synchronization, takers within a read section of the domain:
 *   producer: evc_shared_stack_put             taker: evc_shared_stack_take
 *   S1 load `posted`, then `newest`  acquire   U1 load `posted`, then `newest`     acquire
 *   S2 link the oldest to `newest`   relaxed   U2 load the newest's link           relaxed
 *   S3 CAS (newest, posted) →        seq_cst   U3 CAS (newest, posted) →           seq_cst
 *      (mine, posted + n)                         (its link, posted)
 * S3 pairs with U1: the envelopes, with their links, before they are seen.
 *
 * Linearization: S3; U3; for an empty stack U1's load of `newest`, which is NULL. U3 succeeds only if
 * `posted` is what U1 read, so that nothing was put since. Then the newest of U1 was the newest all the time
 * (takes alone never bring an envelope back), and U2 read its current link. `posted` has 64 bits and does not
 * wrap around. Progress: lock-free; S3 and U3 fail only if another has succeeded.
 *
 * Reclamation: an envelope that was taken may be used again at once; U2 then reads an arbitrary link, and U3
 * fails. Its memory is still there: a slab is unmapped a grace period after its last slot was freed
 * (slab_trim.c), and the taker's section delays that. Measured: Documentation/Choices.md.
 *
 * Tests/Models/shared_stack.pml models these lines.
 */
#ifndef EVC_SHARED_STACK_H
#define EVC_SHARED_STACK_H

#include "memory/slot.h"

/* Two words that a compare-and-swap changes together. */
#if UINTPTR_MAX == UINT64_MAX
__extension__ typedef unsigned __int128 evc_stack_words;
#else
typedef uint64_t evc_stack_words;
#endif

/* All zero: an empty stack. */
struct evc_shared_stack {
	union {
		_Alignas(EVC_CACHE_LINE) struct {
			_Atomic(struct evc_envelope *) newest;
			/* The number of envelopes that were ever put. */
			_Atomic(uintptr_t) posted;
		};
		evc_stack_words words;
	};
	/* The number of envelopes that were ever taken: in the line that the taker has just written. */
	_Atomic uintptr_t taken;
};

/* Puts a chain, whose last envelope becomes the newest. Lock-free. Needs no section. */
void evc_shared_stack_put(struct evc_shared_stack *stack, struct evc_envelope *first,
			  uint32_t count);

/* The part of evc_shared_stack_take for a stack that is not empty. */
struct evc_envelope *evc_shared_stack_pop(struct evc_shared_stack *stack);

static inline bool evc_shared_stack_is_empty(struct evc_shared_stack *stack)
{
	/* Relaxed: a taker loads it again, by U1. */
	return atomic_load_explicit(&stack->newest, memory_order_relaxed) == NULL;
}

/* Takes the newest envelope; NULL if there is none. Lock-free. Within a section. */
static inline struct evc_envelope *evc_shared_stack_take(struct evc_shared_stack *stack)
{
	return evc_shared_stack_is_empty(stack) ? NULL : evc_shared_stack_pop(stack);
}

/* The number of envelopes that were ever put. */
static inline uintptr_t evc_shared_stack_posted(struct evc_shared_stack *stack)
{
	return atomic_load_explicit(&stack->posted, memory_order_acquire);
}

/* The number of envelopes that wait; exact while nothing is put or taken. */
static inline uintptr_t evc_shared_stack_depth(struct evc_shared_stack *stack)
{
	/* Relaxed: a figure of a moment. What was taken may be seen before what was posted. */
	intptr_t depth = (intptr_t)(evc_shared_stack_posted(stack) -
				    atomic_load_explicit(&stack->taken, memory_order_relaxed));

	return depth > 0 ? (uintptr_t)depth : 0;
}

#endif
