/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * The consumer's side of a mailbox: moving envelopes from the inbox to the lanes, and choosing the next.
 * The protocol and its proof are in mailbox_private.h; C1 to C5 below name its steps.
 */
#include "latest.h"
#include "mailbox_private.h"

/* How many envelopes are dealt at once when the lanes ran dry: they stay in the cache until taken. */
#define DEAL_SOME 32u
/* A look that brought fewer than this many is followed by a pause before the next. */
#define PACE_BELOW 16u

/* Tells evc_mailbox_depths that envelopes are on the move. */
static inline void moves_begin(struct evc_mailbox *mailbox)
{
	uint32_t moves = atomic_load_explicit(&mailbox->moves, memory_order_relaxed);

	atomic_store_explicit(&mailbox->moves, moves + 1, memory_order_relaxed);
	/* Pairs with the acquire fence in evc_mailbox_depths: odd before any move. */
	atomic_thread_fence(memory_order_release);
}

static inline void moves_end(struct evc_mailbox *mailbox)
{
	uint32_t moves = atomic_load_explicit(&mailbox->moves, memory_order_relaxed);

	/* Pairs with the acquire load in evc_mailbox_depths: the moves before even. */
	atomic_store_explicit(&mailbox->moves, moves + 1, memory_order_release);
}

/* Deals at most `limit` envelopes of `first ... pending_last`; what remains stays pending. */
static inline void deal(struct evc_mailbox *mailbox, struct evc_envelope *first, uint32_t limit)
{
	struct evc_envelope *last = mailbox->pending_last;
	struct evc_envelope *envelope = first;
	struct evc_envelope *next;

	while (envelope != NULL && limit-- > 0) {
		/* The link must be read before the lane overwrites it. */
		next = envelope == last ? NULL : evc_inbox_link(envelope);
		/* No prefetch further on: it takes lines away that a producer is writing (60 → 70 ns). */
		evc_lanes_put(&mailbox->lanes, envelope);
		envelope = next;
	}
	atomic_store_explicit(&mailbox->pending, envelope, memory_order_relaxed);
}

static inline struct evc_envelope *pending(struct evc_mailbox *mailbox)
{
	/* Relaxed: only this thread writes it. */
	return atomic_load_explicit(&mailbox->pending, memory_order_relaxed);
}

static inline void look(struct evc_mailbox *mailbox)
{
	struct evc_envelope *first = pending(mailbox);

	if (evc_likely(first == NULL && !evc_inbox_has_mail(&mailbox->inbox)))
		return;
	moves_begin(mailbox);
	if (first != NULL)
		deal(mailbox, first, UINT32_MAX);
	first = evc_inbox_splice(&mailbox->inbox, &mailbox->pending_last);
	if (first != NULL)
		deal(mailbox, first, UINT32_MAX);
	moves_end(mailbox);
}

void evc_mailbox_look(struct evc_mailbox *mailbox)
{
	look(mailbox);
}

/*
 * The last look brought only a few envelopes. Taking the inbox costs both sides some cache lines each
 * way, whether it holds one envelope or a hundred: let the producers get ahead by a few.
 */
static void let_them_get_ahead(struct evc_mailbox *mailbox)
{
	uint64_t taken = atomic_load_explicit(&mailbox->taken, memory_order_relaxed);

	if (taken - mailbox->last_look < PACE_BELOW)
		for (unsigned i = 0; i < mailbox->pace; i++)
			evc_pause();
	mailbox->last_look = taken;
}

/*
 * Dry: some of what is pending, or of what the inbox has. In the order of the posts, so that what is left
 * was posted after what is dealt; a LOOKING consumer deals the rest before it takes.
 */
static inline void look_for_some(struct evc_mailbox *mailbox)
{
	struct evc_envelope *first = pending(mailbox);

	if (first == NULL) {
		/* With nothing to take, the tail is left to its producers; see evc_mailbox_take. */
		if (!evc_inbox_has_linked_mail(&mailbox->inbox))
			return;
		let_them_get_ahead(mailbox);
	}
	moves_begin(mailbox);
	if (first == NULL)
		first = evc_inbox_splice(&mailbox->inbox, &mailbox->pending_last);
	deal(mailbox, first, DEAL_SOME);
	moves_end(mailbox);
}

/* LOOKING begins: producers need not raise the alarm any more. */
static __attribute__((noinline)) void begin_looking(struct evc_mailbox *mailbox)
{
	mailbox->covered = 0;
	mailbox->window_takes = 0;
	/* Relaxed: an alarm too many does no harm. */
	atomic_fetch_and_explicit(&mailbox->attention, ~EVC_ATTENTION_LANES, memory_order_relaxed);
}

/* RELYING begins on the urgent lanes of `lane`. */
static __attribute__((noinline)) void begin_relying(struct evc_mailbox *mailbox, unsigned lane)
{
	uint32_t urgent = evc_lanes_urgent(lane);
	uint32_t covered = 0;

	for (unsigned i = 0; i < EVC_LANE_COUNT; i++)
		if ((evc_lanes_urgent(i) & ~urgent) == 0)
			covered |= 1u << i;
	mailbox->close_alarms = 0;
	/* C1, then C2. */
	atomic_fetch_or_explicit(&mailbox->attention, urgent, memory_order_seq_cst);
	look(mailbox);
	mailbox->covered = covered;
}

/*
 * LOOKING, and a window of takes is full. Were most of them from the deepest lane among them, so that
 * its urgent lanes would seldom have raised the alarm? Then rely on it.
 */
static __attribute__((noinline)) void end_window(struct evc_mailbox *mailbox)
{
	uint32_t lanes = 0, urgent, alarms = 0;
	unsigned deepest;

	mailbox->window_takes = 0;
	for (unsigned i = 0; i < EVC_WINDOW; i++)
		lanes |= 1u << mailbox->window_lanes[i];
	deepest = 31u - (unsigned)__builtin_clz(lanes);
	urgent = evc_lanes_urgent(deepest);
	for (unsigned i = 0; i < EVC_WINDOW; i++)
		alarms += (urgent >> mailbox->window_lanes[i]) & 1u;
	if (alarms <= 2)
		begin_relying(mailbox, deepest);
}

/* RELYING, and the alarm was up. If that happens every few takes, looking is cheaper. */
static void note_alarm(struct evc_mailbox *mailbox)
{
	uint64_t taken = atomic_load_explicit(&mailbox->taken, memory_order_relaxed);

	mailbox->close_alarms = taken - mailbox->last_alarm <= 4 ? mailbox->close_alarms + 1 : 0;
	mailbox->last_alarm = taken;
	if (mailbox->close_alarms >= 4 && mailbox->covered != 0)
		begin_looking(mailbox);
}

/* The signal is up. False if the mailbox closes. */
static __attribute__((noinline)) bool attend(struct evc_mailbox *mailbox)
{
	/* C4; pairs with every raise: what the raiser did before. */
	uint32_t signal = atomic_fetch_and_explicit(&mailbox->signal,
						    ~(EVC_SIGNAL_ALARM | EVC_SIGNAL_CONTROL),
						    memory_order_seq_cst);

	if (signal & EVC_SIGNAL_CONTROL && mailbox->options.control != NULL) {
		mailbox->options.control(mailbox->options.context);
		/* It may have posted and closed: the take that follows has to see that (C4 again). */
		signal |= atomic_fetch_and_explicit(&mailbox->signal, ~EVC_SIGNAL_ALARM,
						    memory_order_seq_cst);
	}
	if (signal & EVC_SIGNAL_CLOSE)
		return false;
	if (signal & EVC_SIGNAL_ALARM) {
		note_alarm(mailbox);
		/* C5. */
		look(mailbox);
	}
	return true;
}

/* The next envelope or token, or NULL. */
static struct evc_envelope *next_by_look(struct evc_mailbox *mailbox)
{
	struct evc_lanes *lanes = &mailbox->lanes;
	unsigned lane;

	for (;;) {
		/* C3; as in evc_mailbox_next. */
		if (evc_unlikely(atomic_load_explicit(&mailbox->signal, memory_order_acquire) != 0) &&
		    !attend(mailbox))
			return NULL;
		if (lanes->occupied == 0)
			look_for_some(mailbox);
		if (lanes->occupied == 0)
			return NULL;
		if (mailbox->covered == 0) {
			look(mailbox);
			lane = evc_lanes_first(lanes);
			break;
		}
		lane = evc_lanes_first(lanes);
		if (evc_likely((mailbox->covered >> lane) & 1u))
			return evc_mailbox_take_from(mailbox, lane);
		begin_looking(mailbox);
	}
	mailbox->window_lanes[mailbox->window_takes] = (uint8_t)lane;
	if (evc_unlikely(++mailbox->window_takes == EVC_WINDOW)) {
		/* May deal more to the lanes, so the lane is chosen again. */
		end_window(mailbox);
		lane = evc_lanes_first(lanes);
	}
	return evc_mailbox_take_from(mailbox, lane);
}

struct evc_envelope *evc_mailbox_next_by_token(struct evc_mailbox *mailbox,
					       struct evc_envelope *token)
{
	struct evc_envelope *envelope;

	while (token != NULL && (token->flags & EVC_ENVELOPE_TOKEN)) {
		envelope = evc_latest_take(mailbox, token);
		if (envelope != NULL)
			return envelope;
		/* It stood for nothing: it was no event that was taken. Relaxed: only we write it. */
		atomic_store_explicit(&mailbox->taken,
				      atomic_load_explicit(&mailbox->taken,
							   memory_order_relaxed) - 1,
				      memory_order_relaxed);
		token = next_by_look(mailbox);
	}
	return token;
}

struct evc_envelope *evc_mailbox_next_by_look(struct evc_mailbox *mailbox)
{
	return evc_mailbox_next_by_token(mailbox, next_by_look(mailbox));
}

enum evc_status evc_mailbox_take(struct evc_mailbox *mailbox, struct evc_envelope **out)
{
	for (;;) {
		struct evc_envelope *envelope = evc_mailbox_next(mailbox);

		if (envelope != NULL) {
			*out = envelope;
			return EVC_OK;
		}
		if (!(atomic_load_explicit(&mailbox->signal, memory_order_acquire) &
		      (EVC_SIGNAL_CLOSE | EVC_SIGNAL_DRAIN))) {
			/* A post that is not linked yet may hide others that are complete. */
			if (!evc_inbox_has_mail(&mailbox->inbox))
				return EVC_EMPTY;
			evc_mailbox_look(mailbox);
			continue;
		}
		if (evc_mailbox_end(mailbox))
			return EVC_CLOSED;
	}
}
#endif
