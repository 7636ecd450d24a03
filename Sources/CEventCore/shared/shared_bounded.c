/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * What a latest-only subscription (latest.h) and a bound (mailbox/bound.h) do to a shared mailbox. Its workers add to `taken` of the bound at once.
 *
 *   producer                                 worker
 *   B1 set is_blocked         seq_cst        T1 add 1 to `taken`          seq_cst
 *   B2 load `taken`           seq_cst        T2 load is_blocked           seq_cst
 *                                            C1, C2, if it is set
 * Either B2 sees the place, or T2 sees that it is waited for. A worker at work wakes producers when several places are
 * free, and one that finds nothing, or will not look again soon, when one is. The worker whose T1 is the last finds all
 * places free but those of posts that are under way, of which each leads to another T1, or gives its place back.
 */
#include "shared/shared_mailbox_private.h"

_Thread_local EVC_FOUND_AT_START struct evc_shared_consumed *evc_shared_consumed;

static bool is_closed(struct evc_sink *sink)
{
	return evc_shared_is_closed(evc_shared_mailbox_of(sink));
}

static void put_token(struct evc_sink *sink, unsigned lane, struct evc_envelope *token)
{
	evc_slot_set_next(token, NULL);
	evc_shared_lanes_put(&evc_shared_mailbox_of(sink)->lanes, lane, token, 1);
}

static void tell(struct evc_sink *sink, unsigned lane)
{
	(void)lane;
	evc_shared_tell(evc_shared_mailbox_of(sink));
}

static void raise_blocked(struct evc_sink *sink)
{
	atomic_store_explicit(&evc_shared_mailbox_of(sink)->is_blocked, true, memory_order_seq_cst);
}

static void clear_blocked(struct evc_sink *sink)
{
	/* Relaxed: C2 releases it to B0. */
	atomic_store_explicit(&evc_shared_mailbox_of(sink)->is_blocked, false, memory_order_relaxed);
}

static bool is_consumer(struct evc_sink *sink)
{
	for (struct evc_shared_consumed *consumed = evc_shared_consumed; consumed != NULL; consumed = consumed->outer)
		if (consumed->mailbox == evc_shared_mailbox_of(sink))
			return true;
	return false;
}

static enum evc_status post(struct evc_sink *sink, const struct evc_chain *chain)
{
	return evc_shared_post(evc_shared_mailbox_of(sink), chain);
}

const struct evc_mailbox_kind evc_mailbox_kind_shared = {
	.needs = EVC_NEEDS_TOKEN | EVC_NEEDS_SEGMENT, .is_closed = is_closed, .put = put_token, .tell = tell,
	.raise = raise_blocked, .clear = clear_blocked, .is_consumer = is_consumer, .post = post
};

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	return evc_bound_accept(evc_shared_mailbox_of(sink)->bound, chain);
}

bool evc_shared_bound_open(struct evc_shared_mailbox *mailbox, uint64_t capacity, enum evc_overflow overflow,
			   uint64_t block_ns)
{
	mailbox->bound = evc_bound_create(capacity, overflow, block_ns, &evc_mailbox_kind_shared, &mailbox->sink);
	if (mailbox->bound == NULL)
		return false;
	mailbox->sink.accept = accept;
	return true;
}

void evc_shared_unblock(struct evc_shared_mailbox *mailbox)
{
	/* Relaxed: it is not older than what T2 has seen, after which B2 sees the places that this thread has freed. */
	if (evc_unlikely(mailbox->bound != NULL) &&
	    atomic_load_explicit(&mailbox->is_blocked, memory_order_relaxed))
		evc_bound_unblock(mailbox->bound, 1);
}

/* The next of `lanes`, which hold tokens, and of those of the bound; tokens first within a lane. */
static struct evc_envelope *take_of_both(struct evc_shared_mailbox *mailbox, unsigned limit)
{
	struct evc_envelope *envelope = NULL;

	evc_domain_enter();
	for (unsigned lane = 0; lane < limit && envelope == NULL; lane++) {
		envelope = evc_shared_lanes_take_of(&mailbox->lanes, lane);
		if (envelope == NULL)
			envelope = evc_shared_lanes_take_of(mailbox->bound->lanes, lane);
	}
	evc_domain_leave();
	return envelope;
}

struct evc_envelope *evc_shared_take_bounded(struct evc_shared_mailbox *mailbox, unsigned limit)
{
	struct evc_envelope *envelope = mailbox->bound->lanes != NULL ? take_of_both(mailbox, limit)
								      : evc_shared_lanes_take(&mailbox->lanes, limit);

	/* T1. */
	if (envelope != NULL && !(envelope->flags & EVC_ENVELOPE_TOKEN))
		atomic_fetch_add_explicit(&mailbox->bound->taken, 1, memory_order_seq_cst);
	/* T2. */
	if (evc_unlikely(atomic_load_explicit(&mailbox->is_blocked, memory_order_seq_cst)))
		evc_bound_unblock(mailbox->bound, envelope != NULL ? EVC_BOUND_PLACES : 1);
	return envelope;
}
#endif
