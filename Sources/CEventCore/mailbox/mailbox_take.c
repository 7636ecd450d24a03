/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * The consumer's side of a mailbox. C1 to C7 are the steps in mailbox_private.h. One file, though long: every
 * way to the next envelope goes through the same steps.
 */
#include "mailbox/mailbox_private.h"
#include "mailbox/stretch.h"

/* The least and longest pause before a drain, in iterations of evc_pause of about 30 ns. */
#define PACE_LEAST 4u
#define PACE_MOST 128u
/* The pause doubles at one envelope in THICK of its iterations or more, and halves below one in THIN. */
#define PACE_THICK 8u
#define PACE_THIN 16u

/* The first lane from `from` on, before `limit`, whose inbox is not empty; `limit` if all are empty. */
static unsigned first_posted(struct evc_mailbox *mailbox, unsigned from, unsigned limit,
			     memory_order order)
{
	while (from < limit && evc_mailbox_inbox_is_empty(mailbox, from, order))
		from++;
	return from;
}

/* The next lane, as C6 finds it. */
struct next_lane {
	/* The first one from `relied` on that is not empty; EVC_LANE_COUNT if all are. */
	unsigned lane;
	/* Its next envelope is not known yet: it lies in the inbox, or is being sorted. */
	bool must_sort;
};

/* C6. `drained`: the lane that was drained last since the take began, unless a signal came after that. */
static inline struct next_lane next_lane(struct evc_mailbox *mailbox, unsigned drained)
{
	uint32_t listed = mailbox->occupied | mailbox->sorting;
	unsigned lane = listed != 0 ? (unsigned)__builtin_ctz(listed) : EVC_LANE_COUNT;
	/* What is in a stack's inbox comes before what is in its list. */
	unsigned limit = lane < EVC_LANE_FIRST_QUEUE && lane != drained ? lane + 1 : lane;
	unsigned posted = first_posted(mailbox, mailbox->relied, limit, memory_order_relaxed);

	if (posted < limit)
		return (struct next_lane){ posted, true };
	return (struct next_lane){ lane, mailbox->sorting >> lane & 1u };
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

/* Drains the inbox of a lane; returns its envelopes, newest first. */
static struct evc_envelope *drain(struct evc_mailbox *mailbox, unsigned lane)
{
	/* Acquires the release of each P1. */
	uintptr_t head = atomic_exchange_explicit(evc_mailbox_head(mailbox, lane), 0,
						  memory_order_acquire);
	struct evc_lane_list *list = &mailbox->lists[lane];
	uint64_t drained = atomic_load_explicit(&list->drained, memory_order_relaxed);

	/* Release, pairs with evc_mailbox_depths: they were removed from the head before. */
	atomic_store_explicit(&list->drained, drained + (head & EVC_HEAD_COUNT), memory_order_release);
	return evc_head_envelope(head);
}

/* Fetches the envelope that is mostly needed soon after this one; another processor wrote it. */
static inline void prefetch_older(const struct evc_envelope *envelope)
{
	evc_prefetch_write((const char *)envelope - EVC_SLOTS_AHEAD * sizeof(*envelope));
}

/* Reverses what was drained from a queue. Adds to `count`, up to EVC_SORT_AT_ONCE; false: it goes on later. */
static bool reverse(struct evc_lane_list *list, uint32_t *count)
{
	struct evc_envelope *first = list->first, *rest = list->rest;

	for (; *count < EVC_SORT_AT_ONCE && rest != NULL; ++*count) {
		struct evc_envelope *older = evc_slot_next(rest);

		prefetch_older(rest);
		evc_slot_set_next(rest, first);
		first = rest;
		rest = older;
	}
	list->first = first;
	list->rest = rest;
	return rest == NULL;
}

/* Puts what was drained from a stack on top of its list, whose first is the next below the oldest; likewise. */
static bool pile(struct evc_lane_list *list, uint32_t *count)
{
	struct evc_envelope *last = list->last, *older = evc_slot_next(last);

	for (; *count < EVC_SORT_AT_ONCE && older != NULL; ++*count) {
		prefetch_older(older);
		last = older;
		older = evc_slot_next(last);
	}
	list->last = last;
	if (older != NULL)
		return false;
	evc_slot_set_next(last, list->first);
	list->first = list->rest;
	list->rest = NULL;
	return true;
}

/*
 * Drains an inbox, or goes on where it stopped, and sorts what was drained into the lane's list: at most
 * EVC_SORT_AT_ONCE envelopes at a time. True if it has drained the inbox.
 */
static bool sort(struct evc_mailbox *mailbox, unsigned lane)
{
	struct evc_lane_list *list = &mailbox->lists[lane];
	bool drains = list->rest == NULL, is_paced = false, is_sorted;
	uint32_t count = 0, bit = 1u << lane;

	if (drains) {
		is_paced = mailbox->paces && (mailbox->occupied | mailbox->sorting) == 0;
		/*
		 * A consumer that drains few envelopes at a time competes with the producers for the lines that they
		 * are about to write. It therefore pauses first: up to 4 µs while events arrive in quick succession,
		 * and hardly at all otherwise. Nanoseconds an event, with and without: one producer 28 and 31, two 31
		 * and 34, four 33 and 36.
		 */
		for (uint32_t i = 0; is_paced && i < mailbox->pace; i++)
			evc_pause();
		list->last = list->rest = drain(mailbox, lane);
	}
	is_sorted = lane < EVC_LANE_FIRST_QUEUE ? pile(list, &count) : reverse(list, &count);
	if (is_paced)
		adapt_pace(mailbox, count);
	mailbox->sorting |= bit;
	if (is_sorted) {
		mailbox->sorting &= ~bit;
		mailbox->occupied |= bit;
	}
	return drains;
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
	/* Relaxed: an interrupt that is missed here is up at the next C3. */
	if (atomic_load_explicit(&mailbox->signal, memory_order_relaxed) & EVC_SIGNAL_CONTROL) {
		/*
		 * Acquire, pairs with evc_mailbox_interrupt. Before the call: an interrupt that comes meanwhile stays up
		 * until after the next envelope, so that many of them do not hold up events.
		 */
		atomic_fetch_and_explicit(&mailbox->signal, ~EVC_SIGNAL_CONTROL, memory_order_acquire);
		/* The alarm stays up: a take in there has to see it. */
		if (mailbox->options.control != NULL)
			mailbox->options.control(mailbox->options.context);
	}
	/* C4; pairs with every raise: what the raising thread did before. `control` may have posted and closed, too. */
	return atomic_fetch_and_explicit(&mailbox->signal, ~EVC_SIGNAL_ALARM, memory_order_seq_cst);
}

/* Handles a signal that is up. False if the mailbox closes, or the time of its pump is over. */
static __attribute__((noinline)) bool attend(struct evc_mailbox *mailbox)
{
	uint32_t signal = evc_mailbox_attend(mailbox);

	if (signal & EVC_SIGNAL_CLOSE)
		return false;
	if (signal & EVC_SIGNAL_ALARM)
		look_before_relied(mailbox);
	/* `control` may have moved the clock. */
	if (mailbox->timed == NULL)
		return true;
	mailbox->timed->is_late = evc_stretch_is_late(mailbox->timed);
	return !mailbox->timed->is_late;
}

/*
 * The same for a mailbox that displaces, whose inboxes hold tokens and what its unbounded subscriptions get. It relies
 * on no alarm, so that nothing is listed for evc_mailbox_next.
 */
static __attribute__((noinline)) struct evc_envelope *next_displaceable(struct evc_mailbox *mailbox)
{
	struct evc_envelope *envelope;
	unsigned own;

	for (;;) {
		/* C3; as in evc_mailbox_next. */
		if (evc_unlikely(atomic_load_explicit(&mailbox->signal, memory_order_relaxed) != 0) &&
		    !attend(mailbox))
			return NULL;
		own = evc_mailbox_first(mailbox);
		envelope = evc_mailbox_take_displaceable(mailbox, own);
		if (envelope != NULL || own == EVC_LANE_COUNT)
			return envelope;
		envelope = evc_mailbox_take_first(mailbox, own);
		if (envelope != NULL)
			return envelope;
	}
}

/* True if the time of the pump is over before the rest of a backlog is sorted: the next one goes on with it. */
static __attribute__((noinline)) bool is_late(struct evc_mailbox *mailbox)
{
	if (mailbox->timed != NULL)
		mailbox->timed->is_late = evc_stretch_has_passed(mailbox->timed);
	return mailbox->timed != NULL && mailbox->timed->is_late;
}

/* The next envelope or token, or NULL. */
static struct evc_envelope *next_by_look(struct evc_mailbox *mailbox)
{
	if (evc_unlikely(mailbox->displaces))
		return next_displaceable(mailbox);
	for (unsigned drained = EVC_LANE_COUNT;;) {
		struct next_lane next;

		/* C3; as in evc_mailbox_next. */
		if (evc_unlikely(atomic_load_explicit(&mailbox->signal, memory_order_relaxed) != 0)) {
			if (!attend(mailbox))
				return NULL;
			/* Whoever raised it may know of more than what was drained. */
			drained = EVC_LANE_COUNT;
		}
		next = next_lane(mailbox, drained);
		if (next.lane == EVC_LANE_COUNT) {
			/* So that no event waits for a producer that is held up before its alarm. */
			if (first_posted(mailbox, 0, mailbox->relied, memory_order_relaxed) ==
			    mailbox->relied)
				return NULL;
			look_before_relied(mailbox);
		} else if (next.must_sort) {
			/* Its envelopes come into view: repeat C3 and C6. */
			if (sort(mailbox, next.lane))
				drained = next.lane;
			if (evc_unlikely(mailbox->sorting >> next.lane & 1u) && is_late(mailbox))
				return NULL;
		} else if (is_long_run(mailbox, next.lane)) {
			rely(mailbox, next.lane);
		} else {
			return evc_mailbox_take_listed(mailbox, next.lane);
		}
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

	/*
	 * Producers may wait for a place. Relaxed: a raise that is missed here is seen by a later look, or before the
	 * consumer sleeps (bound.h).
	 */
	if (evc_unlikely(atomic_load_explicit(&mailbox->signal, memory_order_relaxed) & EVC_SIGNAL_BLOCKED))
		evc_bound_unblock(mailbox->bound, envelope != NULL ? EVC_BOUND_PLACES : 1);
	return envelope;
}

unsigned evc_mailbox_first(struct evc_mailbox *mailbox)
{
	unsigned drained = EVC_LANE_COUNT;

	for (;;) {
		struct next_lane next = next_lane(mailbox, drained);

		if (!next.must_sort)
			return next.lane;
		if (sort(mailbox, next.lane))
			drained = next.lane;
	}
}

struct evc_envelope *evc_mailbox_take_first(struct evc_mailbox *mailbox, unsigned lane)
{
	return evc_mailbox_first_is_next(mailbox, lane) ? evc_mailbox_take_listed(mailbox, lane) : NULL;
}

static enum evc_status take(struct evc_mailbox *mailbox, struct evc_envelope **out)
{
	for (;;) {
		struct evc_envelope *envelope = evc_mailbox_next(mailbox);

		if (envelope != NULL) {
			*out = envelope;
			return EVC_OK;
		}
		if (!evc_mailbox_is_closing(mailbox)) {
			if (!evc_mailbox_has_posts(mailbox, memory_order_seq_cst))
				return EVC_EMPTY;
		} else if (evc_mailbox_end(mailbox)) {
			return EVC_CLOSED;
		}
	}
}

enum evc_status evc_mailbox_take(struct evc_mailbox *mailbox, struct evc_envelope **out)
{
	struct evc_stretch *timed;
	enum evc_status status;

	if (evc_unlikely(mailbox == NULL || out == NULL || mailbox->batches))
		return EVC_INVALID_ARGUMENT;
	/* A take by hand has no deadline, also in a handler of a pump that has one. */
	timed = mailbox->timed;
	mailbox->timed = NULL;
	status = take(mailbox, out);
	mailbox->timed = timed;
	return status;
}
#endif
