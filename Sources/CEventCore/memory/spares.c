/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "memory/spares.h"

/*
 * The first word of a slot in the list. Atomic because a token's slot may have been an envelope of a shared
 * stack, and a late taker may still read this word as that envelope's link (shared_stack.h, U2); its
 * compare-and-swap then fails. Relaxed: the list belongs to one thread.
 */
struct spare {
	_Atomic(struct spare *) next;
};

static struct spare *next_of(struct spare *spare)
{
	return atomic_load_explicit(&spare->next, memory_order_relaxed);
}

static struct evc_spares *spares_of(struct evc_thread_record *record, unsigned class_index)
{
	return class_index == EVC_TOKEN_CLASS ? &record->tokens : &record->segments;
}

static void *take_fresh(struct evc_thread_record *record, unsigned class_index)
{
	return evc_pool_take(&record->pools[class_index], &record->boxes[class_index]);
}

void *evc_spare_take(struct evc_thread_record *record, unsigned class_index)
{
	struct evc_spares *spares = spares_of(record, class_index);
	struct spare *spare = spares->first;

	if (spare == NULL)
		return take_fresh(record, class_index);
	spares->first = next_of(spare);
	spares->count--;
	return spare;
}

void evc_spare_give(struct evc_thread_record *record, unsigned class_index, void *slot)
{
	struct evc_spares *spares = spares_of(record, class_index);
	struct spare *spare = slot;

	atomic_store_explicit(&spare->next, spares->first, memory_order_relaxed);
	spares->first = spare;
	spares->count++;
}

/* Sets slots aside until there are at least `count`. False = out of memory. */
static bool fill(struct evc_thread_record *record, unsigned class_index, uint32_t count)
{
	while (spares_of(record, class_index)->count < count) {
		void *slot = take_fresh(record, class_index);

		if (slot == NULL)
			return false;
		evc_spare_give(record, class_index, slot);
	}
	return true;
}

bool evc_spares_fill(struct evc_thread_record *record, uint32_t tokens, uint32_t segments)
{
	return fill(record, EVC_TOKEN_CLASS, tokens) && fill(record, EVC_QUEUE_CLASS, segments);
}

static void end(struct evc_spares *spares)
{
	while (spares->first != NULL) {
		struct spare *spare = spares->first;

		spares->first = next_of(spare);
		evc_pool_give(spare);
	}
	spares->count = spares->reserved = 0;
}

void evc_spares_end(struct evc_thread_record *record)
{
	end(&record->tokens);
	end(&record->segments);
}
#endif
