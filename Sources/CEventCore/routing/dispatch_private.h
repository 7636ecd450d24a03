/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The steps that the short ways of a dispatch (dispatch.c) have in common with the long one
 * (dispatch_any.c).
 */
#ifndef EVC_DISPATCH_PRIVATE_H
#define EVC_DISPATCH_PRIVATE_H

#include "memory/envelope.h"
#include "memory/lender.h"
#include "routing/router_private.h"

/* Any number of receivers and events, boxes, the clock, a cache that misses, wrong arguments. */
enum evc_status evc_dispatch_begin_any(struct evc_router *router, uint64_t key, enum evc_lane lane,
				       size_t size, size_t alignment, uint32_t events,
				       struct evc_dispatch *out);

/* Several receivers or events, or what evc_dispatch_begin_any has begun. */
uint32_t evc_dispatch_commit_any(struct evc_dispatch *dispatch);

/* The receiver has closed: ends the payloads of its `count` envelopes, then the envelopes. */
void evc_dispatch_refuse(struct evc_envelope *first, uint32_t count, struct evc_stream *stream);

static inline void evc_dispatch_end(struct evc_dispatch *dispatch)
{
	struct evc_thread_record *record = dispatch->record;

	if (record != NULL)
		record->pins--;
	if (dispatch->snapshot != NULL)
		evc_snapshot_release(dispatch->snapshot);
	dispatch->first = NULL;
	dispatch->record = NULL;
	dispatch->snapshot = NULL;
	dispatch->stream = NULL;
}

/*
 * Posts the `count` envelopes of one receiver, which lie in the stream, or come from the pool if there is
 * none.
 *
 * Not by way of the mailbox's header: a router knows sinks only. A direct call of the one sink that
 * nearly all subscriptions have would save 1 ns; it is not worth the knowledge.
 */
static inline bool evc_dispatch_post(struct evc_envelope *first, struct evc_envelope *last, uint32_t count,
			uint32_t lanes, struct evc_stream *stream)
{
	struct evc_sink *sink = first->subscription->sink;
	enum evc_status status;

	if (evc_likely(stream != NULL)) {
		status = sink->lender->publish(sink, stream, count, lanes);
	} else {
		struct evc_chain chain = { first, last, count, lanes };

		status = sink->accept(sink, &chain);
	}
	if (evc_likely(status == EVC_OK))
		return true;
	evc_dispatch_refuse(first, count, stream);
	return false;
}

#endif
