/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Which stream a thread posts to a mailbox through. Everything here is called on the record's thread.
 *
 * A thread has one stream for each mailbox it posts to, and one more for each dispatch that is between
 * its two steps when another begins (a stream is in one dispatch at a time, since what it publishes has
 * to be in the order of its slots).
 */
#ifndef EVC_STREAM_TABLE_H
#define EVC_STREAM_TABLE_H

#include "memory/stream.h"
#include "memory/thread_record.h"

/* The part of the two below whose cache missed: the stream with this reservation, or NULL. */
struct evc_stream *evc_stream_table_find(struct evc_stream_table *table, uint64_t mailbox_number,
					 const struct evc_envelope *reserved);

/* Adds a stream. False = out of memory. */
bool evc_stream_table_add(struct evc_stream_table *table, struct evc_stream *stream);

/* Frees this thread's streams to a mailbox that has ended. */
void evc_stream_table_forget(struct evc_stream_table *table, uint64_t mailbox_number);

/* Frees the streams whose mailboxes have ended. */
void evc_stream_table_sweep(struct evc_stream_table *table);

/* A stream of this thread to the mailbox with this number that is in no dispatch, or NULL. */
static inline struct evc_stream *evc_stream_for(struct evc_stream_table *table,
						uint64_t mailbox_number)
{
	struct evc_stream_cache_entry *entry =
		&table->cache[mailbox_number % EVC_STREAM_CACHE_SIZE];

	/* A mailbox that is posted to has not ended, so that its stream is still there. */
	if (evc_likely(entry->mailbox_number == mailbox_number && entry->stream->reserved == NULL))
		return entry->stream;
	return evc_stream_table_find(table, mailbox_number, NULL);
}

/* The stream to the mailbox with this number whose reservation begins with this slot. */
static inline struct evc_stream *evc_stream_with(struct evc_stream_table *table,
						 uint64_t mailbox_number,
						 const struct evc_envelope *first)
{
	struct evc_stream_cache_entry *entry =
		&table->cache[mailbox_number % EVC_STREAM_CACHE_SIZE];

	if (evc_likely(entry->mailbox_number == mailbox_number && entry->stream->reserved == first))
		return entry->stream;
	return evc_stream_table_find(table, mailbox_number, first);
}

#endif
