/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * A mailbox with EVC_OVERFLOW_DROP_OLDEST (bound.h). Its events wait in shared lanes, of which producers may take as
 * the consumer does. The consumer takes as a worker does (shared/worker.c), and sleeps and ends as that of any
 * mailbox does: a put into a shared lane is sequentially consistent, as P1 is.
 */
#include "mailbox/mailbox_private.h"
#include "memory/spares.h"

static void count_popped(struct evc_bound *bound, unsigned lane)
{
	if (lane < EVC_LANE_FIRST_QUEUE)
		atomic_fetch_add_explicit(&bound->popped[lane], 1, memory_order_relaxed);
}

/* Finds a place for an event of this lane. False: there is none. `*victim`: the event that had the place. */
static bool find_place(struct evc_bound *bound, unsigned lane, struct evc_envelope **victim)
{
	*victim = NULL;
	if (evc_likely(evc_bound_admit(bound, 1) > 0))
		return true;
	*victim = evc_shared_lanes_take_last(bound->lanes, lane);
	if (*victim == NULL)
		/* The consumer may have taken all of them meanwhile. */
		return evc_bound_admit_by_look(bound, 1) > 0;
	count_popped(bound, (*victim)->lane);
	return true;
}

static void post(struct evc_mailbox *mailbox, struct evc_envelope *envelope)
{
	struct evc_bound *bound = mailbox->bound;
	unsigned lane = envelope->lane;
	struct evc_envelope *victim;

	if (evc_unlikely(!find_place(bound, lane, &victim))) {
		evc_mailbox_drop_by_policy(mailbox, envelope, true);
		return;
	}
	evc_slot_set_next(envelope, NULL);
	/* P1. */
	evc_shared_lanes_put(bound->lanes, lane, envelope, 1);
	evc_mailbox_tell(mailbox, lane);
	/* Last, since the end of a payload is user code, which may dispatch. */
	if (evc_unlikely(victim != NULL))
		evc_mailbox_drop_by_policy(mailbox, victim, false);
}

enum evc_status evc_mailbox_accept_displacing(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_mailbox *mailbox = evc_container_of(sink, struct evc_mailbox, sink);
	struct evc_thread_record *record = evc_thread_record();
	struct evc_envelope *envelope = chain->first, *next;
	uint32_t segments = 0;

	if (evc_unlikely(envelope == NULL))
		return EVC_INVALID_ARGUMENT;
	/* Relaxed: as in mailbox_post.c. */
	if (evc_unlikely(atomic_load_explicit(&mailbox->attention, memory_order_relaxed) &
			 EVC_ATTENTION_CLOSED))
		return EVC_CLOSED;
	/* All memory that may be needed: each lane may fill its segment, and each further one takes a full one. */
	for (uint32_t lanes = chain->lanes >> EVC_LANE_FIRST_QUEUE; lanes != 0; lanes &= lanes - 1)
		segments += 1 + chain->count / EVC_QUEUE_CELLS;
	if (evc_unlikely(record == NULL || (segments > 0 && !evc_spares_provide(record, EVC_NEEDS_SEGMENT, segments, false))))
		return EVC_OUT_OF_MEMORY;
	for (uint32_t left = chain->count; left > 0; left--, envelope = next) {
		next = evc_slot_next(envelope);
		post(mailbox, envelope);
	}
	return EVC_OK;
}

bool evc_mailbox_has_displaceable(struct evc_mailbox *mailbox)
{
	/* C2, for the relaxed looks that follow; pairs with the put. */
	atomic_thread_fence(memory_order_seq_cst);
	return evc_shared_lanes_have_some(mailbox->bound->lanes);
}

void evc_mailbox_add_displaceable(struct evc_mailbox *mailbox, uint64_t depths[EVC_LANE_COUNT])
{
	struct evc_bound *bound = mailbox->bound;
	unsigned lane = 0;

	for (; lane < EVC_LANE_FIRST_QUEUE; lane++) {
		/* In this order, so that the difference is not below 0. Modulo the size of `posted`. */
		uintptr_t popped = (uintptr_t)atomic_load_explicit(&bound->popped[lane], memory_order_acquire);

		depths[lane] += (uintptr_t)(evc_shared_stack_posted(&bound->lanes->stacks[lane]) - popped);
	}
	evc_domain_enter();
	for (; lane < EVC_LANE_COUNT; lane++)
		depths[lane] += evc_shared_lanes_depth(bound->lanes, lane);
	evc_domain_leave();
}

struct evc_envelope *evc_mailbox_take_displaceable(struct evc_mailbox *mailbox, unsigned limit)
{
	struct evc_bound *bound = mailbox->bound;
	unsigned lane;
	struct evc_envelope *envelope = evc_shared_lanes_take(bound->lanes, limit, &lane);

	if (envelope == NULL)
		return NULL;
	count_popped(bound, lane);
	/*
	 * Counted as if it had come from the inbox, so that the inbox's depth stays what it is. Relaxed, and not by
	 * evc_mailbox_count_left: after the mailbox has ended several threads do this.
	 */
	atomic_fetch_add_explicit(&mailbox->drained[lane], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&mailbox->left[lane], 1, memory_order_relaxed);
	return envelope;
}
#endif
