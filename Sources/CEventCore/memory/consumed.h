/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What a thread consumes, and where the next event for it alone may be written: a dispatch by the consumer
 * itself need not make an envelope for each event, nor post it. Only the consumer touches the structure, so
 * that nothing here has an order. A router knows no more of it than this; mailbox/mailbox_own.c has the rest.
 *
 * The open batch is one that later events may join, as long as they are of its kind, and the router is in the
 * state in which the batch's subscription was found for their key (`version`, router_private.h). Such an event
 * needs no route: the state that is unchanged says that the route is, too.
 */
#ifndef EVC_CONSUMED_H
#define EVC_CONSUMED_H

#include "memory/slot.h"
#include "memory/subscription.h"

/* For which events a batch is open: the state of a router, and what the dispatch says. */
struct evc_consumed_kind {
	/* 0: for none. */
	uint64_t version;
	uint64_t key;
	size_t size, alignment;
	uint32_t lane;
};

struct evc_consumed {
	/* Constant. */
	struct evc_sink *sink;
	/*
	 * Makes a place for an event of `sink`, if it need not have an envelope of its own; otherwise NULL. `kind`
	 * is for the next ones.
	 */
	void *(*begin)(struct evc_consumed *consumed, const struct evc_consumed_kind *kind,
		       struct evc_subscription *subscription, uint32_t generation);
	/* The rare part of evc_consumed_commit. 0: the receiver has closed, and the event has ended. */
	uint32_t (*commit)(struct evc_consumed *consumed);

	/* The open batch; NULL if there is none. It has room until `limit`, and the next place is at its end. */
	struct evc_batch *batch;
	unsigned char *limit;
	/*
	 * The last place that was given. It is being written while it is the end of the batch, and is the batch's
	 * until this one is closed, so that no other payload has its address.
	 */
	void *place;
	/* It is the first of the batch, which is posted by the commit. */
	bool is_first;
	struct evc_consumed_kind kind;
	struct evc_subscription *subscription;
	uint32_t generation;
	/* The batch is open while nothing is in this inbox, which is while it is at most EVC_HEAD_COUNT. */
	const _Atomic uintptr_t *inbox;
	/* What joins is counted here. Only the consumer writes it. */
	_Atomic uint64_t *joined;
	/* More than EVC_ATTENTION_LANES: a commit has more to do. */
	const _Atomic uint32_t *attention;
};

/* A Swift loop joins the batch without a call: Sources/EventCore/Routing/OpenBatch.swift. */
static_assert(offsetof(struct evc_consumed, batch) == 24, "see OpenBatch.swift");
static_assert(offsetof(struct evc_consumed, limit) == 32, "see OpenBatch.swift");
static_assert(offsetof(struct evc_consumed, kind.version) == 56, "see OpenBatch.swift");
static_assert(offsetof(struct evc_consumed, kind.key) == 64, "see OpenBatch.swift");
static_assert(offsetof(struct evc_consumed, kind.lane) == 88, "see OpenBatch.swift");
static_assert(offsetof(struct evc_consumed, inbox) == 112, "see OpenBatch.swift");
static_assert(offsetof(struct evc_consumed, joined) == 120, "see OpenBatch.swift");
static_assert(offsetof(struct evc_consumed, attention) == 128, "see OpenBatch.swift");
static_assert(offsetof(struct evc_batch, end) == 16, "see OpenBatch.swift");
static_assert(offsetof(struct evc_batch, step) == 24, "see OpenBatch.swift");

/* The low bits of the head of an inbox, which count. */
#define EVC_HEAD_COUNT ((uintptr_t)63)
/* The low bits of what producers attend to after a post, one for each lane. */
#define EVC_ATTENTION_LANES ((1u << EVC_LANE_COUNT) - 1)

static_assert(sizeof(((struct evc_consumed_kind *)NULL)->lane) == 4, "see OpenBatch.swift");
static_assert(EVC_HEAD_COUNT == 63 && EVC_ATTENTION_LANES == 1023, "see OpenBatch.swift");

/* Of the calling thread; NULL: nothing. */
extern _Thread_local EVC_FOUND_AT_START struct evc_consumed *evc_consumed_current;

/* Nothing joins the open batch any more. */
static inline void evc_consumed_close(struct evc_consumed *consumed)
{
	consumed->batch = NULL;
	consumed->place = NULL;
	consumed->kind.version = 0;
}

/* True from `begin` to `commit`. */
static inline bool evc_consumed_is_writing(const struct evc_consumed *consumed)
{
	return consumed->batch != NULL && consumed->place == consumed->batch->end;
}

/* True if the open batch, which there is, has a place. */
static inline __attribute__((always_inline)) bool evc_consumed_has_place(const struct evc_consumed *consumed)
{
	unsigned char *end = consumed->batch->end;

	/* Relaxed: by coherence not older than what happened before; nothing is read through it. */
	return end != consumed->place && end != consumed->limit &&
	       atomic_load_explicit(consumed->inbox, memory_order_relaxed) <= EVC_HEAD_COUNT;
}

/* Takes the place that there is. */
static inline void *evc_consumed_take(struct evc_consumed *consumed)
{
	consumed->place = consumed->batch->end;
	return consumed->place;
}

/* True if an event may join the open batch: it is for such events, the router is unchanged, and it has a place. */
static inline __attribute__((always_inline)) bool
evc_consumed_may_join(const struct evc_consumed *consumed, uint64_t version, uint64_t key, unsigned lane, size_t size,
		      size_t alignment)
{
	const struct evc_consumed_kind *kind = &consumed->kind;

	return kind->version == version && kind->key == key && kind->lane == lane && kind->size == size &&
	       kind->alignment == alignment && evc_consumed_has_place(consumed);
}

/*
 * True if a commit has nothing to do but to append: the batch is posted, and the receiver neither closed nor armed.
 * Relaxed: as for every post, and this thread has armed the mailbox, or a pump that happened before.
 */
static inline bool evc_consumed_may_append(const struct evc_consumed *consumed)
{
	return !consumed->is_first &&
	       atomic_load_explicit(consumed->attention, memory_order_relaxed) <= EVC_ATTENTION_LANES;
}

/* The event at the end of the open batch is written. */
static inline void evc_consumed_append(struct evc_consumed *consumed)
{
	/* It is not being written any more. */
	consumed->batch->end += consumed->batch->step;
	/* Release, as in `drain` (mailbox_take.c). */
	atomic_store_explicit(consumed->joined,
			      atomic_load_explicit(consumed->joined, memory_order_relaxed) + 1,
			      memory_order_release);
}

/* Ends the dispatch of the event in `place`. 0: the receiver has closed, and the event has ended. */
static inline __attribute__((always_inline)) uint32_t evc_consumed_commit(struct evc_consumed *consumed)
{
	if (evc_unlikely(!evc_consumed_may_append(consumed)))
		return consumed->commit(consumed);
	evc_consumed_append(consumed);
	return 1;
}

#endif
