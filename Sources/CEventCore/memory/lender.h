/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Sinks that lend a stream to each thread that dispatches to them, so that the event is written where its
 * consumer reads it. For sinks that do not, a dispatch takes envelopes from the thread's pool, and has
 * the sink accept them.
 *
 * All of it on the dispatching thread.
 */
#ifndef EVC_LENDER_H
#define EVC_LENDER_H

#include "eventcore/sink.h"
#include "memory/stream.h"

struct evc_lender {
	/* An envelope may stand for several events (batch.h). */
	bool takes_batches;
	/* The thread's stream to the sink without a reservation. NULL = out of memory. */
	struct evc_stream *(*lend)(struct evc_sink *sink, struct evc_thread_record *record);
	/* The thread's stream to the sink with the reservation that begins with `first`. */
	struct evc_stream *(*find)(struct evc_sink *sink, struct evc_thread_record *record,
				   const struct evc_envelope *first);
	/* Posts the `count` reserved slots, whose lanes are in the set. EVC_CLOSED: they stay reserved. */
	enum evc_status (*publish)(struct evc_sink *sink, struct evc_stream *stream, uint32_t count,
				   uint32_t lanes);
};

#endif
