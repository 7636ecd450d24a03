/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A mailbox: a stream for each thread that posts (stream.h), which the consumer merges by ticket, and
 * ten lanes behind them that only the consumer touches.
 *
 * Ten shared lanes would cost 56 to 250 ns for an event, since a producer and the consumer then meet on
 * a line per lane and on the mask that says which lane has something. Here producers meet each other on
 * the ticket counter alone, and the consumer on the lines that carry the events.
 *
 * How a take keeps D1 without looking at the tickets for each envelope:
 *
 * The consumer is in one of two modes. LOOKING: before each take it looks, which is to deal every post
 * that has drawn a ticket to its lane. That is D1 by itself. RELYING: it has published, in `attention`,
 * a set of lanes; it only looks when the alarm is up, when its lanes run dry, or before it would take
 * from a lane L with urgent(L) not within that set (then it goes back to LOOKING first). A producer
 * loads `attention` after its post, and raises the alarm if the lane of its post is in the set.
 *
 *   producer                                   consumer
 *   P1 draw a ticket            seq_cst RMW    C1 set lanes in attention     seq_cst RMW
 *   P2 show it in the slot      release        C2 look: load tickets         seq_cst
 *   P3 load attention           seq_cst        ...
 *   P4 if in the set: load      seq_cst        C3 load signal before a take  acquire
 *      signal; raise ALARM                     C4 if up: clear it            seq_cst RMW
 *      unless it is up          seq_cst RMW    C5 look: load tickets         seq_cst
 *
 * A look that loads T from `tickets` deals all posts with a ticket below T, in the order of the tickets,
 * and waits for the P2 of one that has drawn its ticket and not shown it yet.
 *
 * Claim: in RELYING mode, if the signal is down when C3 reads it, then no post that happened before C3
 * and is not dealt yet lies on a lane of the published set.
 *   Let such a post lie on a lane of the set. Either its P3 saw the set, or not.
 *   - Not: then P3 precedes C1 in the single order of seq_cst operations, hence so does P1, and the
 *     look C2 dealt the post.
 *   - It saw the set: then P4 raised the alarm before the post returned, or found it up. The post
 *     happened before C3, and C3 read it down, so a C4 came after that raise; if P4 found the alarm
 *     up, the clearing C4 is after P4's load in the single order. Either way P1 precedes C4, and C5,
 *     which follows C4, dealt the post. Contradiction.
 * Since every lane that could come before the next take from L is in urgent(L), and urgent(L) is within
 * the set, the take is the one that D1 asks for. Queue lanes keep one order for all producers because
 * posts are dealt in the order of their tickets, and a post that returned before another began has the
 * lower one. Tests/Models/mailbox.pml checks this protocol over all interleavings of small cases.
 *
 * Sleeping uses the same two steps: set SLEEP (C1), look (C2); a producer that sees SLEEP in P3 wakes.
 * A mailbox that is pumped is armed by the same bit: mailbox_pump.c.
 * Closing: CLOSED in `attention` refuses later posts; a post that began before and sees CLOSED in P3
 * frees what is left itself, under `end_mutex`, if the consumer has ended.
 */
#ifndef EVC_MAILBOX_PRIVATE_H
#define EVC_MAILBOX_PRIVATE_H

#include "memory/envelope.h"
#include "eventcore/mailbox.h"
#include "mailbox/lanes.h"
#include "memory/stream.h"

#include <pthread.h>

/* Bits of `attention`, above one bit for each lane. */
#define EVC_ATTENTION_LANES ((1u << EVC_LANE_COUNT) - 1)
#define EVC_ATTENTION_SLEEP (1u << 16)
#define EVC_ATTENTION_CLOSED (1u << 17)

/* Bits of `signal`. ALARM and CONTROL are cleared by the consumer; the others stay. */
#define EVC_SIGNAL_ALARM 1u
#define EVC_SIGNAL_CONTROL 2u
#define EVC_SIGNAL_DRAIN 4u
#define EVC_SIGNAL_CLOSE 8u

/* Up to so many streams the one with the next ticket is found by looking at each. */
#define EVC_FEW_STREAMS 8u
/* Beyond, producers announce where their ticket is: the last so many. */
#define EVC_ANNOUNCED 16u

#define EVC_WINDOW 16u
/* Turns of a spin loop between two looks of a consumer that is in no hurry: about half a microsecond. */
#define EVC_PAUSES 16u

struct evc_mailbox {
	struct evc_sink sink;
	struct evc_mailbox_options options;
	struct evc_parker *parker;
	/* Never used twice in a process: by it a thread finds its stream. */
	uint64_t number;
	/*
	 * Lanes and SLEEP: written by the consumer, and SLEEP of a pumped one cleared by whoever wakes it.
	 * CLOSED: by whoever closes. Read by producers after every post, so it shares its line only with what
	 * seldom changes.
	 */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t attention;
	_Atomic uint32_t references;
	/* Pushed to by a thread's first post, read by the consumer and by readers of depths. */
	_Atomic(struct evc_stream *) streams;
	_Atomic uint32_t stream_count;
	/* There are more than a few. Written once by a producer, read by all. */
	_Atomic bool announces;

	/* How many tickets were drawn. Producers, and the consumer when it looks. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t tickets;
	/* Written by producers between P1 and P2, read by the consumer that does not find a ticket. */
	_Alignas(EVC_CACHE_LINE) _Atomic(struct evc_stream *) announced[EVC_ANNOUNCED];

	/* Written by producers that raise the alarm and by controllers; read before every take. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t signal;

	/* From here on the consumer's, unless it says otherwise. */
	_Alignas(EVC_CACHE_LINE) struct evc_lanes lanes;
	/* Posts with a lower ticket are in the lanes. Atomic for evc_mailbox_depths, which reads it. */
	_Atomic uint64_t dealt;
	/* The stream of the last post that was dealt; NULL before the first. */
	struct evc_stream *current;
	/* Odd while the consumer moves envelopes from the streams to the lanes: evc_mailbox_depths. */
	_Atomic uint32_t moves;
	/*
	 * RELYING: one bit for each lane whose urgent lanes are all in `attention`, so that a take from
	 * it needs no look. LOOKING: none.
	 */
	uint32_t covered;
	/* LOOKING: the lanes of the takes since the window began. */
	uint32_t window_takes;
	uint8_t window_lanes[16];
	/* evc_mailbox_run: whether and how long to pause before a look that would find little; 0: not once. */
	bool paces;
	uint32_t pace;
	/* EVC_WAIT_PARK: how many more spins before a sleep may be in vain. */
	uint32_t grace_left;
	/* RELYING: alarms in short order, and `taken` at the last one. */
	uint32_t close_alarms;
	uint64_t last_alarm;
	struct evc_return_cache returns;
	/* Written by the consumer, read by anybody (relaxed: statistics). */
	_Atomic uint64_t taken;

	/* Off the hot path. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t dropped;
	/* Guards `ended` and, once that is set, the consumer's side of the streams. */
	pthread_mutex_t end_mutex;
	bool ended;
	/* Guards the list of subscriptions. Never held together with end_mutex. */
	pthread_mutex_t subscription_mutex;
	struct evc_subscription *subscriptions;
	/* Under the same mutex: those in front of the mailbox, and what was superseded in others (latest.h). */
	struct evc_latest *latests;
	uint64_t superseded;
};

/*
 * mailbox.c: a post in two steps, of which only the first may fail: this thread's stream with room for a
 * slot, or NULL; then the one slot that was reserved there, which the mailbox does not refuse, as if it had been
 * posted before the close.
 */
struct evc_stream *evc_mailbox_prepare_post(struct evc_mailbox *mailbox);
void evc_mailbox_post_reserved(struct evc_mailbox *mailbox, struct evc_stream *stream, uint32_t lanes);
/* mailbox_consume.c: goes on after a token was taken, as evc_mailbox_next. */
struct evc_envelope *evc_mailbox_next_by_token(struct evc_mailbox *mailbox,
					       struct evc_envelope *token);
/* mailbox_consume.c: the way of evc_mailbox_next that looks. */
struct evc_envelope *evc_mailbox_next_by_look(struct evc_mailbox *mailbox);
/* mailbox_consume.c: moves everything that has drawn a ticket to the lanes. */
void evc_mailbox_look(struct evc_mailbox *mailbox);
/*
 * mailbox_consume.c: takes the next `count` posts out of the streams, which have drawn their tickets,
 * and returns the envelopes in the order of the tickets, linked by `next`.
 */
struct evc_envelope *evc_mailbox_collect(struct evc_mailbox *mailbox, uint64_t count);
/* mailbox_close.c: the consumer's end. False if it has to handle more first. */
bool evc_mailbox_end(struct evc_mailbox *mailbox);
/* mailbox_pump.c: SLEEP was seen in `attention`. */
void evc_mailbox_wake_consumer(struct evc_mailbox *mailbox);
/* mailbox_close.c: frees what came after the consumer's end. */
void evc_mailbox_reap(struct evc_mailbox *mailbox);

/* How many posts have not been dealt. Consumer only. */
static inline uint64_t evc_mailbox_undealt(struct evc_mailbox *mailbox, memory_order order)
{
	return atomic_load_explicit(&mailbox->tickets, order) -
	       /* Relaxed: only the consumer writes it. */
	       atomic_load_explicit(&mailbox->dealt, memory_order_relaxed);
}

/* An event was taken of a batch that stays in its lane, since others are left. */
static inline void evc_mailbox_count_take(struct evc_mailbox *mailbox, unsigned lane)
{
	/* Relaxed: only the consumer writes it. */
	atomic_store_explicit(&mailbox->taken,
			      atomic_load_explicit(&mailbox->taken, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	evc_lanes_count(&mailbox->lanes, lane, (uint32_t)-1);
}

static inline struct evc_envelope *evc_mailbox_take_from(struct evc_mailbox *mailbox, unsigned lane)
{
	/* Relaxed: only the consumer writes it. */
	atomic_store_explicit(&mailbox->taken,
			      atomic_load_explicit(&mailbox->taken, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	return evc_lanes_take(&mailbox->lanes, lane);
}

/* The envelope that is next, or NULL if none is or the mailbox ends. Consumer only. */
static inline struct evc_envelope *evc_mailbox_next(struct evc_mailbox *mailbox)
{
	uint32_t occupied = mailbox->lanes.occupied;

	/* C3; pairs with the raises in post_attention, interrupt and close. */
	if (evc_likely(atomic_load_explicit(&mailbox->signal, memory_order_acquire) == 0 &&
		       (occupied & -occupied & mailbox->covered) != 0)) {
		struct evc_envelope *envelope =
			evc_mailbox_take_from(mailbox, evc_lanes_first(&mailbox->lanes));

		return evc_likely(!(envelope->flags & EVC_ENVELOPE_TOKEN))
			       ? envelope
			       : evc_mailbox_next_by_token(mailbox, envelope);
	}
	return evc_mailbox_next_by_look(mailbox);
}

#endif
