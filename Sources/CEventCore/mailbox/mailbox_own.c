/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/mailbox_own.h"

/* A batch has room for ROOM_LEAST events, and each one behind it for twice as many, up to ROOM_MOST. */
#define ROOM_LEAST 4u
#define ROOM_MOST 64u

_Thread_local EVC_FOUND_AT_START struct evc_consumed *evc_consumed_current;

static inline struct evc_mailbox *mailbox_of(struct evc_consumed *consumed)
{
	return evc_container_of(consumed, struct evc_mailbox, own);
}

static inline bool inbox_is_empty(struct evc_mailbox *mailbox, unsigned lane)
{
	/* Relaxed: by coherence not older than what happened before; nothing is read through it. */
	return evc_head_envelope(atomic_load_explicit(evc_mailbox_head(mailbox, lane),
						      memory_order_relaxed)) == NULL;
}

/* Counts events as posted and drained, and wakes the consumer of an armed mailbox: the loop itself. */
static inline void did_append(struct evc_mailbox *mailbox, unsigned lane, uint32_t events)
{
	_Atomic uint64_t *drained = &mailbox->lists[lane - EVC_LANE_FIRST_QUEUE].drained;

	/* Release, as in `drain`. Only the consumer writes it. */
	atomic_store_explicit(drained, atomic_load_explicit(drained, memory_order_relaxed) + events,
			      memory_order_release);
	/* Relaxed: this thread has armed the mailbox, or a pump that happened before. */
	if (evc_unlikely(atomic_load_explicit(&mailbox->attention, memory_order_relaxed) &
			 EVC_ATTENTION_SLEEP))
		evc_mailbox_wake_consumer(mailbox);
}

bool evc_mailbox_append(struct evc_mailbox *mailbox, unsigned lane, struct evc_envelope *envelope,
			uint32_t events)
{
	struct evc_lane_list *list;

	/* A place that is being written has to stay the end of its list, if it is in one. */
	if (lane < EVC_LANE_FIRST_QUEUE || lane < mailbox->relied || (mailbox->sorting >> lane & 1u) ||
	    mailbox->own.place != NULL || !inbox_is_empty(mailbox, lane))
		return false;
	list = &mailbox->lists[lane - EVC_LANE_FIRST_QUEUE];
	evc_slot_set_next(envelope, NULL);
	if (mailbox->occupied >> lane & 1u)
		evc_slot_set_next(list->last, envelope);
	else
		list->first = envelope;
	list->last = envelope;
	mailbox->occupied |= 1u << lane;
	/* What was last is not last any more. */
	mailbox->own.end = mailbox->own.next;
	did_append(mailbox, lane, events);
	return true;
}

/* Makes a batch for events like those of `last`, of `step` bytes each. NULL = out of memory. */
static struct evc_envelope *make_batch(const struct evc_envelope *last, uint32_t step, size_t alignment)
{
	struct evc_thread_record *record = evc_thread_record_current;
	uint32_t room = ROOM_LEAST;
	struct evc_envelope *envelope;
	struct evc_box *box;

	if (last->flags & EVC_ENVELOPE_BATCH) {
		room = 2 * (uint32_t)((last->batch.box->size - last->batch.box->offset) / step);
		room = room < ROOM_LEAST ? ROOM_LEAST : room < ROOM_MOST ? room : ROOM_MOST;
	}
	box = evc_box_create(record, (size_t)room * step, alignment, 1);
	if (evc_unlikely(box == NULL))
		return NULL;
	envelope = evc_envelope_take(record, last->lane);
	if (evc_unlikely(envelope == NULL)) {
		evc_box_free(box, NULL);
		return NULL;
	}
	envelope->subscription = last->subscription;
	envelope->time = 0;
	envelope->generation = last->generation;
	envelope->lane = last->lane;
	envelope->flags = EVC_ENVELOPE_BOXED | EVC_ENVELOPE_BATCH;
	envelope->events = 1;
	envelope->batch = (struct evc_batch){
		.box = box, .payload = evc_box_payload(box), .step = (int32_t)step, .left = 0
	};
	return envelope;
}

static void *begin(struct evc_consumed *own, struct evc_subscription *subscription, uint32_t generation,
		   unsigned lane, size_t size, size_t alignment)
{
	struct evc_mailbox *mailbox = mailbox_of(own);
	size_t step = evc_batch_stride(size, alignment);
	struct evc_envelope *last;

	/* What is in a list was admitted to it: the lane is neither before `relied` nor being sorted. */
	if (!mailbox->sink.takes_batches || !(mailbox->occupied >> lane & 1u) ||
	    !inbox_is_empty(mailbox, lane))
		return NULL;
	last = mailbox->lists[lane - EVC_LANE_FIRST_QUEUE].last;
	if (last->subscription != subscription || last->generation != generation || last->time != 0 ||
	    (last->flags & (EVC_ENVELOPE_TOKEN | EVC_ENVELOPE_HOLDS)))
		return NULL;
	last = make_batch(last, (uint32_t)step, alignment);
	if (last == NULL)
		return NULL;
	own->next = last->batch.payload;
	own->end = own->next + (last->batch.box->size - last->batch.box->offset);
	own->subscription = subscription;
	own->form = evc_consumed_form(lane, size, alignment);
	own->generation = generation;
	own->inbox = evc_mailbox_head(mailbox, lane);
	own->batch = last;
	own->place = own->next;
	return own->place;
}

/* The mailbox has closed: the event ends, and its batch if it has no other. */
static __attribute__((noinline)) bool refuse(struct evc_consumed *own)
{
	struct evc_subscription *subscription = own->subscription;
	void *payload = own->place;

	/* First, since `drop` is user code, which may dispatch. */
	own->place = NULL;
	own->end = own->next;
	if (own->batch->batch.left == 0) {
		own->batch->batch.left = 1;
		evc_envelope_end(own->batch, false, &mailbox_of(own)->returns);
	} else if (subscription->drop != NULL) {
		subscription->drop(subscription->context, payload);
	}
	return false;
}

/* The first event of a batch posts it. */
static __attribute__((noinline)) bool commit_first(struct evc_consumed *own)
{
	struct evc_mailbox *mailbox = mailbox_of(own);
	struct evc_envelope *batch = own->batch;
	unsigned char *end = own->end;

	own->place = NULL;
	own->next += batch->batch.step;
	batch->batch.left = 1;
	evc_mailbox_post_one(mailbox, batch->lane, batch, 1);
	/* Unless it had to go through the inbox, it is the last one now. */
	if ((mailbox->occupied >> batch->lane & 1u) &&
	    mailbox->lists[batch->lane - EVC_LANE_FIRST_QUEUE].last == batch)
		own->end = end;
	return true;
}

static bool commit(struct evc_consumed *own)
{
	struct evc_mailbox *mailbox = mailbox_of(own);
	struct evc_batch *batch = &own->batch->batch;

	/* Relaxed: as for every post. */
	if (evc_unlikely(atomic_load_explicit(&mailbox->attention, memory_order_relaxed) &
			 EVC_ATTENTION_CLOSED))
		return refuse(own);
	/* What is in a list has events left. */
	if (evc_unlikely(batch->left == 0))
		return commit_first(own);
	own->place = NULL;
	own->next += batch->step;
	batch->left++;
	did_append(mailbox, own->batch->lane, 1);
	return true;
}

struct evc_mailbox *evc_mailbox_enter(struct evc_mailbox *mailbox)
{
	struct evc_consumed *before = evc_consumed_current;

	if (evc_unlikely(mailbox->bound != NULL))
		evc_bound_enter(mailbox->bound);
	evc_consumed_current = &mailbox->own;
	return before != NULL ? mailbox_of(before) : NULL;
}

void evc_mailbox_leave(struct evc_mailbox *before)
{
	struct evc_mailbox *mailbox = mailbox_of(evc_consumed_current);

	if (evc_unlikely(mailbox->bound != NULL))
		evc_bound_leave(mailbox->bound);
	evc_consumed_current = before != NULL ? &before->own : NULL;
}

void evc_mailbox_own_init(struct evc_mailbox *mailbox)
{
	mailbox->own = (struct evc_consumed){
		/* Each event of a bounded mailbox is admitted by its sink. */
		.sink = mailbox->bound == NULL ? &mailbox->sink : NULL,
		.begin = begin,
		.commit = commit,
	};
}
#endif
