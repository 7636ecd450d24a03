/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "memory/spares.h"

/* The first word of a slot that lies in the list. */
struct spare {
	struct spare *next;
};

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
	spares->first = spare->next;
	spares->count--;
	return spare;
}

void evc_spare_give(struct evc_thread_record *record, unsigned class_index, void *slot)
{
	struct evc_spares *spares = spares_of(record, class_index);
	struct spare *spare = slot;

	spare->next = spares->first;
	spares->first = spare;
	spares->count++;
}

/* Has so many spares at least. */
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

bool evc_spares_provide(struct evc_thread_record *record, unsigned needs)
{
	return (!(needs & EVC_NEEDS_TOKEN) || fill(record, EVC_TOKEN_CLASS, 1)) &&
	       (!(needs & EVC_NEEDS_SEGMENT) || fill(record, EVC_QUEUE_CLASS, 1));
}

bool evc_spares_reserve(struct evc_thread_record *record, unsigned needs, uint32_t count)
{
	uint32_t tokens = needs & EVC_NEEDS_TOKEN ? count : 0;
	uint32_t segments = needs & EVC_NEEDS_SEGMENT ? count : 0;

	if (!fill(record, EVC_TOKEN_CLASS, record->tokens.reserved + tokens) ||
	    !fill(record, EVC_QUEUE_CLASS, record->segments.reserved + segments))
		return false;
	record->tokens.reserved += tokens;
	record->segments.reserved += segments;
	return true;
}

void evc_spares_unreserve(struct evc_thread_record *record, unsigned needs, uint32_t count)
{
	if (needs & EVC_NEEDS_TOKEN)
		record->tokens.reserved -= count;
	if (needs & EVC_NEEDS_SEGMENT)
		record->segments.reserved -= count;
}

static void end(struct evc_spares *spares)
{
	while (spares->first != NULL) {
		struct spare *spare = spares->first;

		spares->first = spare->next;
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
