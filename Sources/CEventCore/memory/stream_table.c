/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "memory/stream_table.h"

#include "memory/memory.h"

#define FIRST_LISTS 16u

static struct evc_stream **list_for(struct evc_stream_table *table, uint64_t mailbox_number)
{
	/* Numbers are counted up, which spreads them by itself. */
	return &table->lists[mailbox_number & (table->list_count - 1)];
}

struct evc_stream *evc_stream_table_find(struct evc_stream_table *table, uint64_t mailbox_number,
					 const struct evc_envelope *reserved)
{
	struct evc_stream *stream;

	if (table->lists == NULL)
		return NULL;
	for (stream = *list_for(table, mailbox_number); stream != NULL;
	     stream = stream->next_in_record) {
		if (stream->mailbox_number == mailbox_number && stream->reserved == reserved) {
			table->cache[mailbox_number % EVC_STREAM_CACHE_SIZE] =
				(struct evc_stream_cache_entry){ mailbox_number, stream };
			return stream;
		}
	}
	return NULL;
}

static void sweep_list(struct evc_stream_table *table, struct evc_stream **link)
{
	while (*link != NULL) {
		struct evc_stream *stream = *link;

		/* Acquire, pairs with evc_stream_end: nobody else has it any more. */
		if (!atomic_load_explicit(&stream->dead, memory_order_acquire)) {
			link = &stream->next_in_record;
			continue;
		}
		*link = stream->next_in_record;
		evc_stream_destroy(stream);
		table->stream_count--;
	}
}

static void free_lists(struct evc_stream_table *table)
{
	if (table->lists != NULL)
		evc_deallocate(table->lists, table->list_count * sizeof(*table->lists),
			       EVC_CACHE_LINE);
}

static void free_lists_if_empty(struct evc_stream_table *table)
{
	if (table->stream_count > 0)
		return;
	free_lists(table);
	table->lists = NULL;
	table->list_count = 0;
}

void evc_stream_table_sweep(struct evc_stream_table *table)
{
	for (size_t i = 0; i < table->list_count; i++)
		sweep_list(table, &table->lists[i]);
	free_lists_if_empty(table);
}

void evc_stream_table_forget(struct evc_stream_table *table, uint64_t mailbox_number)
{
	if (table->lists == NULL)
		return;
	sweep_list(table, list_for(table, mailbox_number));
	free_lists_if_empty(table);
}

/* Makes room for one more. False = out of memory. */
static bool grow(struct evc_stream_table *table)
{
	struct evc_stream_table larger = { .list_count = table->list_count * 2 };
	struct evc_stream *stream, *next;

	if (larger.list_count == 0)
		larger.list_count = FIRST_LISTS;
	larger.lists = evc_allocate(larger.list_count * sizeof(*larger.lists), EVC_CACHE_LINE);
	if (larger.lists == NULL)
		return false;
	for (size_t i = 0; i < larger.list_count; i++)
		larger.lists[i] = NULL;
	for (size_t i = 0; i < table->list_count; i++) {
		for (stream = table->lists[i]; stream != NULL; stream = next) {
			struct evc_stream **list = list_for(&larger, stream->mailbox_number);

			next = stream->next_in_record;
			stream->next_in_record = *list;
			*list = stream;
		}
	}
	free_lists(table);
	table->lists = larger.lists;
	table->list_count = larger.list_count;
	return true;
}

bool evc_stream_table_add(struct evc_stream_table *table, struct evc_stream *stream)
{
	struct evc_stream **list;

	/* At every doubling, so that a sweep costs O(1) for each stream that is added. */
	if (table->stream_count >= table->sweep_at) {
		evc_stream_table_sweep(table);
		table->sweep_at = table->stream_count * 2 + FIRST_LISTS;
	}
	/* Without memory the lists get longer, and only the first list is a must. */
	if (table->stream_count >= table->list_count && !grow(table) && table->lists == NULL)
		return false;
	list = list_for(table, stream->mailbox_number);
	stream->next_in_record = *list;
	*list = stream;
	table->stream_count++;
	return true;
}
#endif
