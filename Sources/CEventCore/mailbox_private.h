/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A mailbox: one inbox that producers share, ten lanes behind it that only the consumer touches.
 *
 * Ten shared lanes would cost 56 to 250 ns for an event, since a producer and the consumer then meet on
 * a line per lane and on the mask that says which lane has something; one shared inbox with private
 * lanes 33, and with the alarm below 12, on a machine whose cores share a cache.
 *
 * How a take keeps D1 without looking into the inbox for each envelope:
 *
 * The consumer is in one of two modes. LOOKING: it looks into the inbox before each take, all of it. That
 * is D1 by itself. RELYING: it has published, in `attention`, a set of lanes; it only looks when the alarm is up,
 * when its lanes run dry, or before it would take from a lane L with urgent(L) not within that set
 * (then it goes back to LOOKING first). A producer loads `attention` after its post, and raises the
 * alarm if the lane of its post is in the set.
 *
 *   producer                                   consumer
 *   P1 exchange inbox tail      seq_cst        C1 set lanes in attention     seq_cst RMW
 *   P2 link                     release        C2 look into the inbox        seq_cst load / exchange
 *   P3 load attention           seq_cst        ...
 *   P4 if in the set: load      seq_cst        C3 load signal before a take  acquire
 *      signal; raise ALARM                     C4 if up: clear it            seq_cst RMW
 *      unless it is up          seq_cst RMW    C5 look into the inbox        seq_cst load / exchange
 *
 * Claim: in RELYING mode, if the signal is down when C3 reads it, then no post that happened before C3
 * and is still in the inbox (or in `pending`) lies on a lane of the published set.
 *   Let such a post lie on a lane of the set. Either its P3 saw the set, or not.
 *   - Not: then P3 precedes C1 in the single order of seq_cst operations, hence so does P1, and the
 *     look C2 took the post out and dealt it. (Before RELYING begins all of `pending` is dealt.)
 *   - It saw the set: then P4 raised the alarm before the post returned, or found it up. The post
 *     happened before C3, and C3 read it down, so a C4 came after that raise; if P4 found the alarm
 *     up, the clearing C4 is after P4's load in the single order. Either way P1 precedes C4, and C5,
 *     which follows C4, took the post out. Contradiction.
 * Since every lane that could come before the next take from L is in urgent(L), and urgent(L) is within
 * the set, the take is the one that D1 asks for. Queue lanes keep their order because the inbox does and
 * envelopes are dealt in its order. Tests/Models/mailbox.pml checks this protocol over all interleavings
 * of small cases.
 *
 * Sleeping uses the same two steps: set SLEEP (C1), look (C2); a producer that sees SLEEP in P3 wakes.
 * A mailbox that is pumped is armed by the same bit: mailbox_pump.c.
 * Closing: CLOSED in `attention` refuses later posts; a post that began before and sees CLOSED in P3
 * looks after the inbox itself, under `end_mutex`, if the consumer has ended.
 */
#ifndef EVC_MAILBOX_PRIVATE_H
#define EVC_MAILBOX_PRIVATE_H

#include "envelope.h"
#include "inbox.h"
#include "eventcore/mailbox.h"
#include "lanes.h"

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

#define EVC_WINDOW 16u
/*
 * Turns of a spin loop between two looks of a consumer that is in no hurry: about half a microsecond.
 * Of 1, 4, 8, 16, 32 and 1,024, one-to-one took 130, 75, 60, 60, 55 and 45 ns.
 */
#define EVC_PAUSES 16u

struct evc_mailbox {
	struct evc_sink sink;
	struct evc_mailbox_options options;
	struct evc_parker *parker;
	/*
	 * Lanes and SLEEP: written by the consumer, and SLEEP of a pumped one cleared by whoever wakes it.
	 * CLOSED: by whoever closes. Read by producers after every post, so it shares its line only with what seldom changes.
	 */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t attention;
	_Atomic uint32_t references;

	struct evc_inbox inbox;

	/* Written by producers that raise the alarm and by controllers; read before every take. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t signal;

	/* From here on the consumer's, unless it says otherwise. */
	_Alignas(EVC_CACHE_LINE) struct evc_lanes lanes;
	/* Taken out of the inbox, not yet dealt. Atomic for evc_mailbox_depths, which reads it. */
	_Atomic(struct evc_envelope *) pending;
	struct evc_envelope *pending_last;
	/* Odd while the consumer moves envelopes from the inbox to the lanes: evc_mailbox_depths. */
	_Atomic uint32_t moves;
	/*
	 * RELYING: one bit for each lane whose urgent lanes are all in `attention`, so that a take from
	 * it needs no look. LOOKING: none.
	 */
	uint32_t covered;
	/* LOOKING: the lanes of the takes since the window began. */
	uint32_t window_takes;
	uint8_t window_lanes[16];
	/* evc_mailbox_run: how long to pause before a look that would find little; and `taken` at the last. */
	uint32_t pace;
	uint64_t last_look;
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
	/* Guards `ended` and, once that is set, the consumer's side of the inbox. */
	pthread_mutex_t end_mutex;
	bool ended;
	/* Guards the list of subscriptions. Never held together with end_mutex. */
	pthread_mutex_t subscription_mutex;
	struct evc_subscription *subscriptions;
	/* Under the same mutex: those in front of the mailbox, and what was superseded in others (latest.h). */
	struct evc_latest *latests;
	uint64_t superseded;
};

/* mailbox.c: posts a chain that the mailbox may not refuse, as if it had been posted before the close. */
void evc_mailbox_post_always(struct evc_mailbox *mailbox, const struct evc_chain *chain);
/* mailbox_consume.c: goes on after a token was taken, as evc_mailbox_next. */
struct evc_envelope *evc_mailbox_next_by_token(struct evc_mailbox *mailbox,
					       struct evc_envelope *token);
/* mailbox_consume.c: the way of evc_mailbox_next that looks. */
struct evc_envelope *evc_mailbox_next_by_look(struct evc_mailbox *mailbox);
/* mailbox_consume.c: moves everything from the inbox to the lanes. */
void evc_mailbox_look(struct evc_mailbox *mailbox);
/* mailbox_close.c: the consumer's end. False if it has to handle more first. */
bool evc_mailbox_end(struct evc_mailbox *mailbox);
/* mailbox_pump.c: SLEEP was seen in `attention`. */
void evc_mailbox_wake_consumer(struct evc_mailbox *mailbox);
/* mailbox_close.c: frees what came after the consumer's end. */
void evc_mailbox_reap(struct evc_mailbox *mailbox);

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
