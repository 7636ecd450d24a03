/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * The consumer's side of a mailbox: which envelope is next. The protocol and its proof are in mailbox_private.h; C1
 * to C7 name its steps.
 */
#include "mailbox/mailbox_private.h"

/* How long a dry consumer pauses, in turns of evc_pause of about 30 ns. */
#define PACE_LEAST 4u
#define PACE_MOST 128u
/* One post in so many turns is thick; one in so many is thin. */
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

/* The first lane from `from` on, and before `limit`, whose inbox holds something; `limit` if none does. */
static unsigned first_posted(struct evc_mailbox *mailbox, unsigned from, unsigned limit,
			     memory_order order)
{
	while (from < limit && evc_head_envelope(head_of(mailbox, from, order)) == NULL)
		from++;
	return from;
}

/* C6: the first lane from `relied` on that holds something; EVC_LANE_COUNT if none does. */
static inline unsigned first_lane(struct evc_mailbox *mailbox)
{
	uint32_t listed = mailbox->occupied | mailbox->turning;
	unsigned limit = listed != 0 ? (unsigned)__builtin_ctz(listed) : EVC_LANE_COUNT;

	return first_posted(mailbox, mailbox->relied, limit, memory_order_acquire);
}

/*
 * A dry consumer that takes what few posts there are fights the producers for the lines that they are about to write.
 * So it lets them get ahead by some first: for longer while posts come thick, up to a few microseconds, and hardly
 * at all while they do not, so that an event that comes alone does not wait.
 */
static void let_them_get_ahead(struct evc_mailbox *mailbox)
{
	for (uint32_t i = 0; i < mailbox->pace; i++)
		evc_pause();
}

/* So many envelopes came of a grab. */
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

/* Grabs what waits in the inbox of a queue, newest first. */
static struct evc_envelope *grab(struct evc_mailbox *mailbox, unsigned lane)
{
	/* The envelopes' own release (P1) is what this acquires. */
	uintptr_t head = atomic_exchange_explicit(evc_mailbox_head(mailbox, lane), 0,
						  memory_order_acquire);
	uint64_t grabbed = atomic_load_explicit(&mailbox->grabbed[lane], memory_order_relaxed);

	/* Release, pairs with evc_mailbox_depths: they have left the head. */
	atomic_store_explicit(&mailbox->grabbed[lane], grabbed + (head & EVC_HEAD_COUNT),
			      memory_order_release);
	return evc_head_envelope(head);
}

/* Has the list of a queue filled, some envelopes at a time, turned round from the newest to the oldest. */
static void turn(struct evc_mailbox *mailbox, unsigned lane)
{
	struct evc_lane_list *list = list_of(mailbox, lane);
	struct evc_envelope *turned = list->turned, *rest = list->rest;
	bool is_paced = false;
	uint32_t count = 0;

	if (rest == NULL) {
		is_paced = mailbox->paces && (mailbox->occupied | mailbox->turning) == 0;
		if (is_paced)
			let_them_get_ahead(mailbox);
		rest = grab(mailbox, lane);
		turned = NULL;
	}
	for (; count < EVC_TURN_AT_ONCE && rest != NULL; count++) {
		struct evc_envelope *older = evc_slot_next(rest);

		/* Nearly always so far before it, and written by another processor. */
		evc_prefetch_write((const char *)rest - 4 * sizeof(*rest));
		evc_slot_set_next(rest, turned);
		turned = rest;
		rest = older;
	}
	if (is_paced)
		adapt_pace(mailbox, count);
	list->turned = turned;
	list->rest = rest;
	if (rest != NULL) {
		mailbox->turning |= 1u << lane;
		return;
	}
	mailbox->turning &= ~(1u << lane);
	mailbox->occupied |= 1u << lane;
	list->first = turned;
}

/* C7 for a stack whose head is still `top`; NULL if it is not. */
static struct evc_envelope *pop(struct evc_mailbox *mailbox, unsigned lane, uintptr_t top)
{
	_Atomic uintptr_t *head = evc_mailbox_head(mailbox, lane);
	struct evc_envelope *envelope = evc_head_envelope(top);
	uintptr_t below = (uintptr_t)evc_slot_next(envelope) | (top & EVC_HEAD_COUNT);

	/* A batch stays on top until its last event is taken, so that newer posts lie above what is left of it. */
	if (evc_unlikely((envelope->flags & EVC_ENVELOPE_BATCH) && envelope->batch.left > 1)) {
		/* Relaxed, here and below: `top` was acquired when it was read. */
		if (atomic_load_explicit(head, memory_order_relaxed) != top)
			return NULL;
	} else if (!atomic_compare_exchange_strong_explicit(head, &top, below, memory_order_relaxed,
							    memory_order_relaxed)) {
		return NULL;
	}
	evc_mailbox_count_left(mailbox, lane, 1);
	return envelope;
}

/* Whether the consumer has taken from one lane for so long that it had better rely on the alarm. */
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

/* The lanes before `lane` are empty by C6: relies on the alarm for them. */
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
	/* Posts there need not raise the alarm any more. Relaxed: an alarm too many does no harm. */
	atomic_fetch_and_explicit(&mailbox->attention,
				  ~(((1u << EVC_LANE_COUNT) - 1) & ~((1u << mailbox->relied) - 1)),
				  memory_order_relaxed);
}

uint32_t evc_mailbox_attend(struct evc_mailbox *mailbox)
{
	/* C4; pairs with every raise: what the raiser did before. */
	uint32_t signal = atomic_fetch_and_explicit(&mailbox->signal,
						    ~(EVC_SIGNAL_ALARM | EVC_SIGNAL_CONTROL),
						    memory_order_seq_cst);

	if (signal & EVC_SIGNAL_CONTROL && mailbox->options.control != NULL) {
		mailbox->options.control(mailbox->options.context);
		/*
		 * It may have posted and closed: the take that follows has to see that (C4 again). An interrupt that
		 * came meanwhile stays up, for after the next envelope: a stream of them holds up nothing.
		 */
		signal |= atomic_fetch_and_explicit(&mailbox->signal, ~EVC_SIGNAL_ALARM,
						    memory_order_seq_cst);
	}
	return signal;
}

/* The signal is up. False if the mailbox closes. */
static __attribute__((noinline)) bool attend(struct evc_mailbox *mailbox)
{
	uint32_t signal = evc_mailbox_attend(mailbox);

	if (signal & EVC_SIGNAL_CLOSE)
		return false;
	if (signal & EVC_SIGNAL_ALARM)
		look_before_relied(mailbox);
	return true;
}

/* The next envelope or token, or NULL. */
static struct evc_envelope *next_by_look(struct evc_mailbox *mailbox)
{
	uintptr_t seen = 0;

	for (;;) {
		unsigned lane;

		/* C3; as in evc_mailbox_next. */
		if (evc_unlikely(atomic_load_explicit(&mailbox->signal, memory_order_relaxed) != 0) &&
		    !attend(mailbox))
			return NULL;
		lane = first_lane(mailbox);
		if (lane == EVC_LANE_COUNT) {
			/* Dry: and nobody waits for a producer that is held up between its P1 and its alarm. */
			if (first_posted(mailbox, 0, mailbox->relied, memory_order_acquire) ==
			    mailbox->relied)
				return NULL;
			look_before_relied(mailbox);
			continue;
		}
		if (lane < EVC_LANE_FIRST_QUEUE) {
			uintptr_t top = head_of(mailbox, lane, memory_order_acquire);
			struct evc_envelope *envelope;

			/* It came into view: C3 and C6 once more. */
			if (top != seen) {
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
			turn(mailbox, lane);
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
		/* It stood for nothing: it was no event that was taken. */
		token = next_by_look(mailbox);
	}
	return token;
}

struct evc_envelope *evc_mailbox_next_by_look(struct evc_mailbox *mailbox)
{
	return evc_mailbox_next_by_token(mailbox, next_by_look(mailbox));
}

unsigned evc_mailbox_first(struct evc_mailbox *mailbox, struct evc_envelope **top)
{
	struct evc_envelope *seen = NULL;

	for (;;) {
		unsigned lane = first_lane(mailbox);

		if (lane >= EVC_LANE_FIRST_QUEUE) {
			if (lane == EVC_LANE_COUNT || ((mailbox->occupied >> lane) & 1u))
				return lane;
			turn(mailbox, lane);
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
	if (evc_unlikely(mailbox == NULL || out == NULL || mailbox->options.batches))
		return EVC_INVALID_ARGUMENT;
	for (;;) {
		struct evc_envelope *envelope = evc_mailbox_next(mailbox);

		if (envelope != NULL) {
			*out = envelope;
			return EVC_OK;
		}
		if (!evc_mailbox_closes(mailbox)) {
			if (!evc_mailbox_has_posts(mailbox, memory_order_seq_cst))
				return EVC_EMPTY;
			continue;
		}
		if (evc_mailbox_end(mailbox))
			return EVC_CLOSED;
	}
}
#endif
