/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "lanes/shared_stack.h"

/*
 * Compilers use cmpxchg16b only where they are told to: not inlined, which clang would do across that border (in one
 * source, or at link time), and then call a function of libatomic. ThreadSanitizer understands the builtin.
 */
#if defined(__x86_64__)
#define DOUBLE_WIDTH __attribute__((target("cx16"), noinline))
#else
#define DOUBLE_WIDTH
#endif

/* The words as they lie in memory, which is what the compare-and-swap compares. */
union pair {
	struct {
		struct evc_envelope *newest;
		uintptr_t posted;
	};
	evc_stack_words words;
};

static inline evc_stack_words join(struct evc_envelope *newest, uintptr_t posted)
{
	union pair pair = { .newest = newest, .posted = posted };

	return pair.words;
}

static inline union pair split(evc_stack_words words)
{
	return (union pair){ .words = words };
}

/* S1, U1. The two loads may belong to different moments: then the CAS fails. */
static inline evc_stack_words load(struct evc_shared_stack *stack)
{
	uintptr_t posted = evc_shared_stack_posted(stack);

	return join(atomic_load_explicit(&stack->newest, memory_order_acquire), posted);
}

DOUBLE_WIDTH void evc_shared_stack_put(struct evc_shared_stack *stack, struct evc_envelope *first,
				       uint32_t count)
{
	struct evc_envelope *newest = first, *next;
	evc_stack_words found, expected;

	/* Reverse the chain: later envelopes are newer. */
	next = evc_slot_next(first);
	for (uint32_t i = 1; i < count; i++) {
		struct evc_envelope *envelope = next;

		next = evc_slot_next(envelope);
		evc_slot_set_next(envelope, newest);
		newest = envelope;
	}
	found = load(stack);
	do {
		expected = found;
		/* S2. */
		evc_slot_set_next(first, split(expected).newest);
		/* S3: a full barrier, which the mailbox's "publish, then look" needs as well. */
		found = __sync_val_compare_and_swap(&stack->words, expected,
						    join(newest, split(expected).posted + count));
	} while (found != expected);
}

DOUBLE_WIDTH struct evc_envelope *evc_shared_stack_pop(struct evc_shared_stack *stack)
{
	evc_stack_words found = load(stack), expected;
	struct evc_envelope *newest;

	do {
		expected = found;
		newest = split(expected).newest;
		if (newest == NULL)
			return NULL;
		/* U2, U3. */
		found = __sync_val_compare_and_swap(
			&stack->words, expected, join(evc_slot_next(newest), split(expected).posted));
	} while (found != expected);
	/* Relaxed: a figure. */
	atomic_fetch_add_explicit(&stack->taken, 1, memory_order_relaxed);
	return newest;
}
#endif
