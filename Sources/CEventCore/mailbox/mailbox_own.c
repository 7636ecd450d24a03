/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/mailbox_own.h"

/* The box of a batch is at least BOX_LEAST bytes, and that of each one behind it twice as large, up to BOX_MOST. */
#define BOX_LEAST ((size_t)128)
#define BOX_MOST ((size_t)4096)

_Thread_local EVC_FOUND_AT_START struct evc_consumed *evc_consumed_current;

static inline struct evc_mailbox *mailbox_of(struct evc_consumed *consumed)
{
	return evc_container_of(consumed, struct evc_mailbox, own);
}

/* Counts events as posted and drained, and wakes the consumer of an armed mailbox: the loop itself. */
static inline void did_append(struct evc_mailbox *mailbox, unsigned lane, uint32_t events)
{
	_Atomic uint64_t *drained = &mailbox->lists[lane].drained;

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
	if (lane < mailbox->relied || (mailbox->sorting >> lane & 1u) || evc_consumed_is_writing(&mailbox->own) ||
	    !evc_mailbox_inbox_is_empty(mailbox, lane, memory_order_relaxed))
		return false;
	list = &mailbox->lists[lane];
	if (lane < EVC_LANE_FIRST_QUEUE) {
		evc_slot_set_next(envelope, list->first);
		list->first = envelope;
	} else {
		evc_slot_set_next(envelope, NULL);
		if (mailbox->occupied >> lane & 1u)
			evc_slot_set_next(list->last, envelope);
		else
			list->first = envelope;
		list->last = envelope;
		/* What was last is not last any more. */
		evc_consumed_close(&mailbox->own);
	}
	mailbox->occupied |= 1u << lane;
	did_append(mailbox, lane, events);
	return true;
}

/* True if a batch of the consumer's, whether it is open or not, can take another event. Those of producers are full. */
static bool has_room(const struct evc_envelope *envelope)
{
	return envelope->batch.end != (unsigned char *)envelope->batch.box + envelope->batch.box->size;
}

/* True if it is a batch that such events may join: one of the consumer's that was closed meanwhile. */
static bool may_reopen(const struct evc_envelope *last, uint32_t step, size_t alignment)
{
	return (last->flags & EVC_ENVELOPE_BATCH) && last->batch.step == (int32_t)step && has_room(last) &&
	       (alignment <= 1 || (uintptr_t)last->batch.end % alignment == 0);
}

/* Makes a batch for events like those of `last`. NULL = out of memory. */
static struct evc_envelope *make_batch(const struct evc_envelope *last, uint32_t step, size_t alignment)
{
	struct evc_thread_record *record = evc_thread_record_current;
	struct evc_envelope *envelope;
	size_t size = BOX_LEAST;

	if ((last->flags & EVC_ENVELOPE_BATCH) && !has_room(last))
		while (size < BOX_MOST && size / 2 < last->batch.box->size)
			size *= 2;
	/* As many events as fit. */
	size -= alignment > sizeof(struct evc_box) ? alignment : sizeof(struct evc_box);
	envelope = evc_batch_create(record, last->lane, size - size % step, alignment, step);
	if (evc_likely(envelope != NULL))
		evc_envelope_init(envelope, last->subscription, 0, last->generation, last->lane,
				  EVC_ENVELOPE_BOXED | EVC_ENVELOPE_BATCH);
	return envelope;
}

/* True if the open batch is for such events, whatever the router has changed meanwhile for others. */
static bool is_open_for(const struct evc_consumed *own, const struct evc_consumed_kind *kind,
			const struct evc_subscription *subscription, uint32_t generation)
{
	return own->batch != NULL && own->subscription == subscription && own->generation == generation &&
	       own->kind.lane == kind->lane && own->kind.size == kind->size &&
	       own->kind.alignment == kind->alignment && evc_consumed_has_place(own);
}

static void *begin(struct evc_consumed *own, const struct evc_consumed_kind *kind,
		   struct evc_subscription *subscription, uint32_t generation)
{
	struct evc_mailbox *mailbox = mailbox_of(own);
	uint32_t step = (uint32_t)evc_batch_stride(kind->size, kind->alignment);
	unsigned lane = kind->lane;
	struct evc_envelope *last;

	if (is_open_for(own, kind, subscription, generation)) {
		own->kind = *kind;
		return evc_consumed_take(own);
	}
	if (evc_consumed_is_writing(own))
		return NULL;
	/* What is in a list was admitted to it: the lane is neither before `relied` nor being sorted. */
	if (!mailbox->sink.takes_batches || !((mailbox->occupied & EVC_QUEUES) >> lane & 1u) ||
	    !evc_mailbox_inbox_is_empty(mailbox, lane, memory_order_relaxed))
		return NULL;
	last = mailbox->lists[lane].last;
	if (last->subscription != subscription || last->generation != generation || last->time != 0 ||
	    (last->flags & (EVC_ENVELOPE_TOKEN | EVC_ENVELOPE_HOLDS)))
		return NULL;
	own->is_first = !may_reopen(last, step, kind->alignment);
	if (own->is_first)
		last = make_batch(last, step, kind->alignment);
	if (last == NULL)
		return NULL;
	own->batch = &last->batch;
	own->limit = (unsigned char *)last->batch.box + last->batch.box->size;
	own->kind = *kind;
	own->subscription = subscription;
	own->generation = generation;
	own->inbox = evc_mailbox_head(mailbox, lane);
	own->joined = &mailbox->lists[lane].drained;
	return evc_consumed_take(own);
}

static struct evc_envelope *envelope_of(struct evc_batch *batch)
{
	return evc_container_of(batch, struct evc_envelope, batch);
}

/* The mailbox has closed: the event ends, and its batch if it has no other. */
static uint32_t refuse(struct evc_consumed *own)
{
	struct evc_subscription *subscription = own->subscription;
	struct evc_envelope *envelope = envelope_of(own->batch);
	bool is_first = own->is_first;
	void *payload = own->place;

	/* First, since `drop` is user code, which may dispatch. */
	own->is_first = false;
	evc_consumed_close(own);
	if (subscription->drop != NULL)
		subscription->drop(subscription->context, payload);
	if (is_first)
		evc_envelope_end(envelope, false, mailbox_of(own)->returns);
	return 0;
}

/* The first event of a batch posts it. */
static void post_first(struct evc_consumed *own)
{
	struct evc_mailbox *mailbox = mailbox_of(own);
	struct evc_envelope *envelope = envelope_of(own->batch);
	struct evc_batch *batch = own->batch;
	struct evc_consumed_kind kind = own->kind;

	own->is_first = false;
	batch->end += batch->step;
	evc_mailbox_post_one(mailbox, envelope->lane, envelope, 1);
	/* Unless it had to go through the inbox, it is the last one now, and open. */
	if ((mailbox->occupied >> kind.lane & 1u) && mailbox->lists[kind.lane].last == envelope) {
		own->batch = batch;
		own->kind = kind;
	} else {
		evc_consumed_close(own);
	}
}

static uint32_t commit(struct evc_consumed *own)
{
	struct evc_mailbox *mailbox = mailbox_of(own);
	struct evc_batch *batch = own->batch;

	if (evc_unlikely(evc_mailbox_is_closed(mailbox)))
		return refuse(own);
	if (own->is_first) {
		post_first(own);
		return 1;
	}
	batch->end += batch->step;
	did_append(mailbox, envelope_of(batch)->lane, 1);
	return 1;
}

struct evc_mailbox *evc_mailbox_enter(struct evc_mailbox *mailbox)
{
	struct evc_consumed *before = evc_consumed_current;

	if (evc_unlikely(mailbox->bound != NULL) && mailbox->bound->entries++ == 0)
		atomic_store_explicit(&mailbox->bound->consumer, (uintptr_t)pthread_self(), memory_order_relaxed);
	evc_consumed_current = &mailbox->own;
	return before != NULL ? mailbox_of(before) : NULL;
}

void evc_mailbox_leave(struct evc_mailbox *before)
{
	struct evc_mailbox *mailbox = mailbox_of(evc_consumed_current);

	if (evc_unlikely(mailbox->bound != NULL) && --mailbox->bound->entries == 0)
		atomic_store_explicit(&mailbox->bound->consumer, 0, memory_order_relaxed);
	evc_consumed_current = before != NULL ? &before->own : NULL;
}

void *evc_mailbox_consumed(struct evc_mailbox *mailbox)
{
	return &mailbox->own;
}

void evc_mailbox_own_init(struct evc_mailbox *mailbox)
{
	mailbox->own = (struct evc_consumed){
		/* Each event of a bounded mailbox is admitted by its sink. */
		.sink = mailbox->bound == NULL ? &mailbox->sink : NULL,
		.begin = begin,
		.commit = commit,
		.attention = &mailbox->attention,
	};
}
#endif
