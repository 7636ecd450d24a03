/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * The consumer's side of a mailbox: moving envelopes from the streams to the lanes, and choosing the next.
 * The protocol and its proof are in mailbox_private.h; C1 to C5 below name its steps.
 */
#include "platform/backoff.h"
#include "mailbox/latest.h"
#include "mailbox/mailbox_private.h"

/* How many envelopes are dealt at once when the lanes ran dry: they stay in the cache until taken. */
#define DEAL_SOME 32u
/*
 * The dry consumer that finds fewer than this many pauses before it takes them. Close behind a producer its
 * processor fetches ahead the very lines that are being written: one to one takes 37 ns an event if it
 * goes up to 16, 31 with 64, 21 with 128, 20 with 256 and more.
 */
#define PACE_BELOW 128u
/* How long, in turns of evc_pause of about 30 ns: see let_them_get_ahead. */
#define PACE_LEAST 4u
#define PACE_MOST 128u
/* One post in so many turns is thick; one in so many is thin. */
#define PACE_THICK 8u
#define PACE_THIN 16u

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

/*
 * The stream whose next slot has this ticket is not the one of the ticket before. Its producer may be
 * between P1 and P2, so that no stream shows the ticket yet.
 */
static __attribute__((noinline)) struct evc_envelope *
search(struct evc_mailbox *mailbox, uint64_t ticket, struct evc_return_cache *cache)
{
	for (unsigned turn = 0;; turn++) {
		/* Acquire, pairs with publish_reserved: a stream may be newer than our view of the list. */
		struct evc_stream *stream = atomic_load_explicit(
			&mailbox->announced[ticket % EVC_ANNOUNCED], memory_order_acquire);
		struct evc_envelope *slot;

		if (stream != NULL && (slot = evc_stream_peek(stream, ticket, cache)) != NULL) {
			mailbox->current = stream;
			return slot;
		}
		/* Acquire, pairs with add_stream. */
		stream = atomic_load_explicit(&mailbox->streams, memory_order_acquire);
		for (; stream != NULL; stream = stream->next_in_mailbox) {
			slot = evc_stream_peek(stream, ticket, cache);
			if (slot != NULL) {
				mailbox->current = stream;
				return slot;
			}
		}
		evc_backoff(turn);
	}
}

/*
 * Takes the post with the next ticket out of its stream; it has been drawn. Segments that this goes past
 * are given back through the cache, which may be NULL.
 */
static inline struct evc_envelope *take_posted(struct evc_mailbox *mailbox,
					       struct evc_return_cache *cache)
{
	/* Relaxed, here and below: only this thread writes it. */
	uint64_t ticket = atomic_load_explicit(&mailbox->dealt, memory_order_relaxed);
	struct evc_envelope *slot = NULL;

	if (evc_likely(mailbox->current != NULL))
		slot = evc_stream_peek(mailbox->current, ticket, cache);
	if (evc_unlikely(slot == NULL))
		slot = search(mailbox, ticket, cache);
	evc_stream_take(mailbox->current);
	atomic_store_explicit(&mailbox->dealt, ticket + 1, memory_order_relaxed);
	return slot;
}

/* The first envelope of the chain that a slot stands for. */
static inline struct evc_envelope *chain_of(const struct evc_envelope *slot)
{
	return (struct evc_envelope *)(uintptr_t)evc_slot_time(slot);
}

/* Deals a slot that stands for several events: a batch, or a chain. */
static __attribute__((noinline)) void deal_several(struct evc_mailbox *mailbox, struct evc_envelope *slot)
{
	struct evc_envelope *envelope, *next;

	if (evc_slot_lane(slot) != EVC_SLOT_CHAIN) {
		evc_lanes_put_batch(&mailbox->lanes, slot);
		return;
	}
	for (envelope = chain_of(slot); envelope != NULL; envelope = next) {
		next = evc_slot_next(envelope);
		evc_lanes_put(&mailbox->lanes, envelope);
	}
	evc_slot_set_next(slot, NULL);
	evc_stream_end_slot(slot, &mailbox->returns);
}

/* Deals the next `count` posts. */
static inline void deal(struct evc_mailbox *mailbox, uint64_t count)
{
	while (count-- > 0) {
		struct evc_envelope *slot = take_posted(mailbox, &mailbox->returns);

		if (evc_likely(evc_slot_lane(slot) < EVC_LANE_COUNT))
			evc_lanes_put(&mailbox->lanes, slot);
		else
			deal_several(mailbox, slot);
	}
}

struct evc_envelope *evc_mailbox_collect(struct evc_mailbox *mailbox, uint64_t count)
{
	struct evc_envelope *first = NULL, *last = NULL;

	moves_begin(mailbox);
	while (count-- > 0) {
		/* Without the cache, which belongs to the consumer even after its end. */
		struct evc_envelope *slot = take_posted(mailbox, NULL);
		struct evc_envelope *envelope = slot;

		if (evc_slot_lane(slot) == EVC_SLOT_CHAIN) {
			envelope = chain_of(slot);
			evc_slot_set_next(slot, NULL);
			evc_stream_end_slot(slot, NULL);
		} else {
			evc_slot_set_next(slot, NULL);
		}
		if (first == NULL)
			first = envelope;
		else
			evc_slot_set_next(last, envelope);
		for (last = envelope; evc_slot_next(last) != NULL;)
			last = evc_slot_next(last);
	}
	moves_end(mailbox);
	return first;
}

static inline void look(struct evc_mailbox *mailbox)
{
	/* C2, C5. */
	uint64_t count = evc_mailbox_undealt(mailbox, memory_order_seq_cst);

	if (evc_likely(count == 0))
		return;
	moves_begin(mailbox);
	deal(mailbox, count);
	moves_end(mailbox);
}

void evc_mailbox_look(struct evc_mailbox *mailbox)
{
	look(mailbox);
}

/*
 * Pauses for longer while posts come thick, up to a few microseconds, and hardly at all while they do not,
 * so that an event that comes alone does not wait. Returns how many have been posted then.
 */
static uint64_t let_them_get_ahead(struct evc_mailbox *mailbox, uint64_t count)
{
	uint32_t pace = mailbox->pace;
	uint64_t came;

	if (pace == 0) {
		mailbox->pace = PACE_LEAST;
		return count;
	}
	for (unsigned i = 0; i < pace; i++)
		evc_pause();
	/* Relaxed: as in look_for_some. */
	came = evc_mailbox_undealt(mailbox, memory_order_relaxed) - count;
	if (came * PACE_THICK >= pace)
		mailbox->pace = pace < PACE_MOST / 2 ? pace * 2 : PACE_MOST;
	else if (came * PACE_THIN < pace)
		mailbox->pace = pace > PACE_LEAST * 2 ? pace / 2 : PACE_LEAST;
	return count + came;
}

/*
 * Dry: some of what has been posted. In the order of the posts, so that what is left was posted after
 * what is dealt; a LOOKING consumer deals the rest before it takes.
 *
 * Few posts are no good: the consumer then reads lines that their producer is about to write to, and
 * both wait for each other at every event. It lets the producers get ahead by some first.
 */
static inline void look_for_some(struct evc_mailbox *mailbox)
{
	/* Relaxed: with nothing to take, nothing is ordered by it. */
	uint64_t count = evc_mailbox_undealt(mailbox, memory_order_relaxed);

	if (count == 0)
		return;
	if (count < PACE_BELOW && mailbox->paces)
		count = let_them_get_ahead(mailbox, count);
	moves_begin(mailbox);
	deal(mailbox, count < DEAL_SOME ? count : DEAL_SOME);
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
	if (evc_unlikely(mailbox->options.batches))
		return EVC_INVALID_ARGUMENT;
	for (;;) {
		struct evc_envelope *envelope = evc_mailbox_next(mailbox);

		if (envelope != NULL) {
			*out = envelope;
			return EVC_OK;
		}
		if (!(atomic_load_explicit(&mailbox->signal, memory_order_acquire) &
		      (EVC_SIGNAL_CLOSE | EVC_SIGNAL_DRAIN))) {
			if (evc_mailbox_undealt(mailbox, memory_order_seq_cst) == 0)
				return EVC_EMPTY;
			continue;
		}
		if (evc_mailbox_end(mailbox))
			return EVC_CLOSED;
	}
}
#endif
