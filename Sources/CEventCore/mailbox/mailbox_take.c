/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * The consumer's side of a mailbox. C1 to C7 are the steps in mailbox_private.h. One file, though long: every
 * way to the next envelope goes through the same steps.
 */
#include "mailbox/mailbox_private.h"

/* The least and longest pause before a drain, in iterations of evc_pause of about 30 ns. */
#define PACE_LEAST 4u
#define PACE_MOST 128u
/* The pause doubles at one envelope in THICK of its iterations or more, and halves below one in THIN. */
#define PACE_THICK 8u
#define PACE_THIN 16u

static uintptr_t head_of(struct evc_mailbox *mailbox, unsigned lane, memory_order order)
{
	return atomic_load_explicit(evc_mailbox_head(mailbox, lane), order);
}

static inline struct evc_lane_list *list_of(struct evc_mailbox *mailbox, unsigned lane)
{
	return &mailbox->lists[lane - EVC_LANE_FIRST_QUEUE];
}

/* The first lane from `from` on, before `limit`, whose inbox is not empty; `limit` if all are empty. */
static unsigned first_posted(struct evc_mailbox *mailbox, unsigned from, unsigned limit,
			     memory_order order)
{
	while (from < limit && evc_head_envelope(head_of(mailbox, from, order)) == NULL)
		from++;
	return from;
}

/* C6: the first lane from `relied` on that is not empty; EVC_LANE_COUNT if all are. */
static inline unsigned first_lane(struct evc_mailbox *mailbox)
{
	uint32_t listed = mailbox->occupied | mailbox->sorting;
	unsigned limit = listed != 0 ? (unsigned)__builtin_ctz(listed) : EVC_LANE_COUNT;

	return first_posted(mailbox, mailbox->relied, limit, memory_order_acquire);
}

/*
 * A consumer that drains few envelopes at a time competes with the producers for the lines that they are
 * about to write. It therefore pauses first: up to 4 µs while events arrive in quick succession, and hardly
 * at all otherwise. Nanoseconds an event, with and without: one producer 28 and 31, two 31 and 34, four 33
 * and 36.
 */
static void await_more(struct evc_mailbox *mailbox)
{
	for (uint32_t i = 0; i < mailbox->pace; i++)
		evc_pause();
}

/* Adapts the pause to the number of envelopes that a drain has found. */
static void adapt_pace(struct evc_mailbox *mailbox, uint32_t came)
{
	uint32_t pace = mailbox->pace;

	if (pace == 0)
		mailbox->pace = PACE_LEAST;
	else if (came * PACE_THICK >= pace)
		mailbox->pace = pace < PACE_MOST / 2 ? pace * 2 : PACE_MOST;
	else if (came * PACE_THIN < pace)
		mailbox->pace = pace > PACE_LEAST * 2 ? pace / 2 : PACE_LEAST;
}

/* Drains the inbox of a queue; returns its envelopes, newest first. */
static struct evc_envelope *drain(struct evc_mailbox *mailbox, unsigned lane)
{
	/* Acquires the release of each P1. */
	uintptr_t head = atomic_exchange_explicit(evc_mailbox_head(mailbox, lane), 0,
						  memory_order_acquire);
	struct evc_lane_list *list = list_of(mailbox, lane);
	uint64_t drained = atomic_load_explicit(&list->drained, memory_order_relaxed);

	/* Release, pairs with evc_mailbox_depths: they were removed from the head before. */
	atomic_store_explicit(&list->drained, drained + (head & EVC_HEAD_COUNT), memory_order_release);
	return evc_head_envelope(head);
}

/* Drains and reverses a queue's inbox, at most EVC_SORT_AT_ONCE envelopes at a time, into the lane's list. */
static void sort(struct evc_mailbox *mailbox, unsigned lane)
{
	struct evc_lane_list *list = list_of(mailbox, lane);
	struct evc_envelope *sorted = list->first, *rest = list->rest;
	bool is_paced = false;
	uint32_t count = 0;

	if (rest == NULL) {
		is_paced = mailbox->paces && (mailbox->occupied | mailbox->sorting) == 0;
		if (is_paced)
			await_more(mailbox);
		rest = drain(mailbox, lane);
		list->last = rest;
	}
	for (; count < EVC_SORT_AT_ONCE && rest != NULL; count++) {
		struct evc_envelope *older = evc_slot_next(rest);

		/* The envelope that far before it is mostly needed soon; another processor wrote it. */
		evc_prefetch_write((const char *)rest - EVC_SLOTS_AHEAD * sizeof(*rest));
		evc_slot_set_next(rest, sorted);
		sorted = rest;
		rest = older;
	}
	if (is_paced)
		adapt_pace(mailbox, count);
	list->first = sorted;
	list->rest = rest;
	if (rest != NULL) {
		mailbox->sorting |= 1u << lane;
		return;
	}
	mailbox->sorting &= ~(1u << lane);
	mailbox->occupied |= 1u << lane;
}

/* C7 for a stack whose head is still `top`; NULL if it is not. */
static struct evc_envelope *pop(struct evc_mailbox *mailbox, unsigned lane, uintptr_t top)
{
	_Atomic uintptr_t *head = evc_mailbox_head(mailbox, lane);
	struct evc_envelope *envelope = evc_head_envelope(top);
	uintptr_t below = (uintptr_t)evc_slot_next(envelope) | (top & EVC_HEAD_COUNT);

	/* A batch stays on top until its last event is taken, so that newer posts lie above its rest. */
	if (evc_unlikely((envelope->flags & EVC_ENVELOPE_BATCH) && !evc_batch_is_last(&envelope->batch))) {
		/* Relaxed, here and below: `top` was acquired when it was read. */
		if (atomic_load_explicit(head, memory_order_relaxed) != top)
			return NULL;
	} else if (!atomic_compare_exchange_strong_explicit(head, &top, below, memory_order_relaxed,
							    memory_order_relaxed)) {
		return NULL;
	}
	/* As in evc_mailbox_take_listed. */
	__builtin_prefetch(evc_head_envelope(below), 1);
	evc_mailbox_count_taken(mailbox, lane, envelope);
	return envelope;
}

/* True if the consumer has taken from one lane so often in succession that it should rely on the alarm. */
static inline bool is_long_run(struct evc_mailbox *mailbox, unsigned lane)
{
	if (lane == mailbox->relied)
		return false;
	if (lane != mailbox->run_lane) {
		mailbox->run_lane = lane;
		mailbox->run_length = 0;
	}
	return ++mailbox->run_length > EVC_RUN;
}

/* Relies on the alarm for the lanes before `lane`, which are empty by C6. */
static __attribute__((noinline)) void rely(struct evc_mailbox *mailbox, unsigned lane)
{
	mailbox->run_length = 0;
	/* C1, then C2. */
	atomic_fetch_or_explicit(&mailbox->attention, (1u << lane) - 1, memory_order_seq_cst);
	mailbox->relied = first_posted(mailbox, mailbox->relied, lane, memory_order_seq_cst);
}

/* C5, after C4. */
static void look_before_relied(struct evc_mailbox *mailbox)
{
	mailbox->relied = first_posted(mailbox, 0, mailbox->relied, memory_order_seq_cst);
	/* Posts to the lanes from `relied` on need no alarm. Relaxed: a superfluous one does no harm. */
	atomic_fetch_and_explicit(&mailbox->attention,
				  ~(((1u << EVC_LANE_COUNT) - 1) & ~((1u << mailbox->relied) - 1)),
				  memory_order_relaxed);
}

uint32_t evc_mailbox_attend(struct evc_mailbox *mailbox)
{
	/* C4; pairs with every raise: what the raising thread did before. */
	uint32_t signal = atomic_fetch_and_explicit(&mailbox->signal,
						    ~(EVC_SIGNAL_ALARM | EVC_SIGNAL_CONTROL),
						    memory_order_seq_cst);

	if (signal & EVC_SIGNAL_CONTROL && mailbox->options.control != NULL) {
		mailbox->options.control(mailbox->options.context);
		/*
		 * It may have posted and closed, which the next take must see (C4 again). An interrupt that
		 * came meanwhile stays up until after the next envelope: many of them do not hold up events.
		 */
		signal |= atomic_fetch_and_explicit(&mailbox->signal, ~EVC_SIGNAL_ALARM,
						    memory_order_seq_cst);
	}
	return signal;
}

/* Handles a signal that is up. False if the mailbox closes. */
static __attribute__((noinline)) bool attend(struct evc_mailbox *mailbox)
{
	uint32_t signal = evc_mailbox_attend(mailbox);

	if (signal & EVC_SIGNAL_CLOSE)
		return false;
	if (signal & EVC_SIGNAL_ALARM)
		look_before_relied(mailbox);
	return true;
}

/*
 * The same for a mailbox that displaces, whose inboxes hold tokens alone. It relies on no alarm, so that nothing is
 * listed for evc_mailbox_next.
 */
static __attribute__((noinline)) struct evc_envelope *next_displaceable(struct evc_mailbox *mailbox)
{
	struct evc_envelope *envelope, *top = NULL;
	unsigned own;

	for (;;) {
		/* C3; as in evc_mailbox_next. */
		if (evc_unlikely(atomic_load_explicit(&mailbox->signal, memory_order_relaxed) != 0) &&
		    !attend(mailbox))
			return NULL;
		own = evc_mailbox_first(mailbox, &top);
		envelope = evc_mailbox_take_displaceable(mailbox, own);
		if (envelope != NULL || own == EVC_LANE_COUNT)
			return envelope;
		envelope = evc_mailbox_take_first(mailbox, own, top);
		if (envelope != NULL)
			return envelope;
	}
}

/* The next envelope or token, or NULL. */
static struct evc_envelope *next_by_look(struct evc_mailbox *mailbox)
{
	uintptr_t seen = 0;

	if (evc_unlikely(mailbox->displaces))
		return next_displaceable(mailbox);
	for (;;) {
		unsigned lane;

		/* C3; as in evc_mailbox_next. */
		if (evc_unlikely(atomic_load_explicit(&mailbox->signal, memory_order_relaxed) != 0) &&
		    !attend(mailbox))
			return NULL;
		lane = first_lane(mailbox);
		if (lane == EVC_LANE_COUNT) {
			/* So that no event waits for a producer that is held up before its alarm. */
			if (first_posted(mailbox, 0, mailbox->relied, memory_order_acquire) ==
			    mailbox->relied)
				return NULL;
			look_before_relied(mailbox);
			continue;
		}
		if (lane < EVC_LANE_FIRST_QUEUE) {
			uintptr_t top = head_of(mailbox, lane, memory_order_acquire);
			struct evc_envelope *envelope;

			/* It has just come into view: repeat C3 and C6. */
			if (top != seen) {
				/* The pop reads the envelope, then writes the head: fetch both at once. */
				evc_prefetch_write(evc_mailbox_head(mailbox, lane));
				evc_prefetch_write(evc_head_envelope(top));
				seen = top;
				continue;
			}
			if (is_long_run(mailbox, lane)) {
				rely(mailbox, lane);
				continue;
			}
			envelope = pop(mailbox, lane, top);
			if (evc_likely(envelope != NULL))
				return envelope;
			continue;
		}
		if (!((mailbox->occupied >> lane) & 1u)) {
			sort(mailbox, lane);
			continue;
		}
		if (!is_long_run(mailbox, lane))
			return evc_mailbox_take_listed(mailbox, lane);
		rely(mailbox, lane);
	}
}

struct evc_envelope *evc_mailbox_next_by_token(struct evc_mailbox *mailbox,
					       struct evc_envelope *token)
{
	struct evc_envelope *envelope;

	while (token != NULL && (token->flags & EVC_ENVELOPE_TOKEN)) {
		envelope = evc_mailbox_take_latest(mailbox, token);
		if (envelope != NULL)
			return envelope;
		/* The token stood for no event; look for the next one. */
		token = next_by_look(mailbox);
	}
	return token;
}

struct evc_envelope *evc_mailbox_next_by_look(struct evc_mailbox *mailbox)
{
	struct evc_envelope *envelope = evc_mailbox_next_by_token(mailbox, next_by_look(mailbox));

	evc_mailbox_did_look(mailbox, envelope != NULL);
	return envelope;
}

unsigned evc_mailbox_first(struct evc_mailbox *mailbox, struct evc_envelope **top)
{
	struct evc_envelope *seen = NULL;

	for (;;) {
		unsigned lane = first_lane(mailbox);

		if (lane >= EVC_LANE_FIRST_QUEUE) {
			if (lane == EVC_LANE_COUNT || ((mailbox->occupied >> lane) & 1u))
				return lane;
			sort(mailbox, lane);
			continue;
		}
		*top = evc_head_envelope(head_of(mailbox, lane, memory_order_acquire));
		if (*top == seen)
			return lane;
		seen = *top;
	}
}

struct evc_envelope *evc_mailbox_take_first(struct evc_mailbox *mailbox, unsigned lane,
					    struct evc_envelope *top)
{
	uintptr_t head;

	if (lane >= EVC_LANE_FIRST_QUEUE)
		return evc_mailbox_take_listed(mailbox, lane);
	head = head_of(mailbox, lane, memory_order_relaxed);
	return evc_head_envelope(head) == top ? pop(mailbox, lane, head) : NULL;
}

enum evc_status evc_mailbox_take(struct evc_mailbox *mailbox, struct evc_envelope **out)
{
	if (evc_unlikely(mailbox == NULL || out == NULL || mailbox->sink.takes_batches))
		return EVC_INVALID_ARGUMENT;
	for (;;) {
		struct evc_envelope *envelope = evc_mailbox_next(mailbox);

		if (envelope != NULL) {
			*out = envelope;
			return EVC_OK;
		}
		if (!evc_mailbox_is_closing(mailbox)) {
			if (!evc_mailbox_has_posts(mailbox, memory_order_seq_cst))
				return EVC_EMPTY;
			continue;
		}
		if (evc_mailbox_end(mailbox))
			return EVC_CLOSED;
	}
}
#endif
