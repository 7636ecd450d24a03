/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The alarm protocol: 2 producers with POSTS posts together on any of three lanes (0 a stack, 1 and 2 queues),
 * one consumer that changes between LOOKING and RELYING whenever the code might, deals one post where
 * the code deals 32, and sleeps when it finds nothing. Sequentially consistent. With POSTS=3 all
 * three lanes are searched, with POSTS=4 and TWO_LANES the lanes 0 and 2, which keeps it to a minute.
 *
 * Models these lines of Sources/CEventCore/mailbox/mailbox.c, mailbox_consume.c and mailbox_wait.c, by the names
 * that the proof in mailbox_private.h gives them:
 *   publish_reserved    P1  ticket = fetch-add of tickets (P2, the ticket in its slot, is stream.pml's: it
 *                           only makes a look wait)
 *                       P3  attention = load
 *   post_attention      P4  if lane in attention and the alarm is down: raise it; if SLEEP: wake
 *   begin_relying       C1  attention |= urgent(lane); C2 look(); covered = ...
 *   begin_looking           covered = 0; attention &= ~lanes
 *   evc_mailbox_next_by_look
 *                       C3  if signal: attend()
 *   attend              C4  clear the alarm; maybe begin_looking(); C5 look()
 *   look                    load tickets; deal all that have drawn one below
 *   look_for_some           load tickets; if there are undealt ones: deal the first DEAL_SOME
 *   park                    prepare; C1 attention |= SLEEP; C2 has_news(); wait; attention &= ~SLEEP
 *
 * Envelopes are bits in the order of their P1, so that a set of them is a list in the order of tickets.
 *
 * Asserted at each take: of the posts that had returned when the take began none comes before the one
 * taken (D1, D2, D3); a take that finds nothing had nothing to find; all comes once (D4). A wake-up
 * that is lost is an invalid end state.
 *
 * Mutations, each seen to fail (assertion violated, unless it says otherwise):
 *   -DMUTATE    without C2: what was posted before the set was published stays undealt.
 *   -DMUTATE2   C5 before C4: clears an alarm whose post the look did not see.
 *   -DMUTATE3   without the step back to LOOKING before a take from a lane that is not covered.
 *   -DMUTATE4   P3 before P1: the producer misses the set and the consumer misses the post; it shows
 *               first as a producer that misses SLEEP ("invalid end state").
 *   -DMUTATE5   sleeping without the look after SLEEP was set ("invalid end state").
 */
#ifndef POSTS
#define POSTS 4
#endif
#define ALL ((1 << POSTS) - 1)
#define NOTHING 9

/* urgent(0) = {0}, urgent(1) = {0}, urgent(2) = {0, 1}; bits of lanes. */
#define URGENT(l) (l == 2 -> 3 : 1)
/* The lanes whose urgent lanes are all in urgent(l). */
#define COVERED(l) (l == 2 -> 7 : 3)

byte attention = 0; /* bits of lanes */
bool sleep = false; /* SLEEP of attention: the same word, see P3 */
bool alarm = false;
bool woken = false; /* the parker's word differs from the ticket */
byte undealt = 0, dealt = 0; /* sets of envelopes: in the streams, in the lanes */
byte covered = 0;
/* Ghosts: what lies on each lane, what has returned, what was taken, how many were posted. */
byte on_lane[3];
byte returned = 0, taken = 0, posted = 0;

proctype producer(byte rounds) {
	byte round = 0, lane, me, seen;
	bool seen_sleep;

	do
	:: round == rounds -> break
	:: else ->
#ifdef MUTATE4
		atomic { seen = attention; seen_sleep = sleep };
#endif
		atomic { /* P1 */
			if
			:: lane = 0
#ifndef TWO_LANES
			:: lane = 1
#endif
			:: lane = 2
			fi;
			me = 1 << posted;
			posted++;
			on_lane[lane] = on_lane[lane] | me;
			undealt = undealt | me
		}
#ifndef MUTATE4
		atomic { seen = attention; seen_sleep = sleep } /* P3 */
#endif
		if
		:: seen & (1 << lane) -> /* P4 */
			if
			:: alarm
			:: !alarm -> alarm = true
			fi
		:: else
		fi;
		if
		:: seen_sleep -> woken = true
		:: else
		fi;
		atomic { returned = returned | me; round++; me = 0; seen = 0; seen_sleep = false; lane = 0 }
	od
}

/*
 * The load of `tickets` decides what is dealt; that dealing takes a while changes nothing, since only the
 * consumer reads the lanes.
 */
inline look() {
	atomic { dealt = dealt | undealt; undealt = 0 }
}

inline lowest(set, bit_) {
	bit_ = 1;
	do
	:: set & bit_ -> break
	:: else -> bit_ = bit_ << 1
	od
}

inline highest(set, bit_) {
	bit_ = 8;
	do
	:: set & bit_ -> break
	:: else -> bit_ = bit_ >> 1
	od
}

inline look_for_some() {
	atomic {
		if
		:: undealt == 0
		:: else ->
			lowest(undealt, one);
			dealt = dealt | one;
			undealt = undealt & ~one;
			one = 0
		fi
	}
}

inline first_lane() {
	if
	:: dealt & on_lane[0] -> lane = 0
	:: else ->
		if
		:: dealt & on_lane[1] -> lane = 1
		:: else -> lane = 2
		fi
	fi
}

inline begin_looking() {
	atomic { covered = 0; attention = 0 }
}

inline begin_relying(l) {
	attention = attention | URGENT(l); /* C1 */
#ifndef MUTATE
	look(); /* C2 */
#endif
	covered = COVERED(l)
}

/* D1 to D3: nothing of `known` comes before the envelope that is taken from `lane`. */
inline take_and_check() {
	atomic {
		if
		:: lane == 0 -> highest((dealt & on_lane[0]), one)
		:: else -> lowest((dealt & on_lane[lane]), one)
		fi;
		assert(lane == 0 || (known & on_lane[0]) == 0);
		assert(lane != 2 || (known & on_lane[1]) == 0);
		assert(lane != 0 || (known & on_lane[0]) < 2 * one);
		assert(lane == 0 || (known & on_lane[lane] & (one - 1)) == 0);
		assert((taken & one) == 0);
		taken = taken | one;
		/* Only to have fewer states: where it lay is of no interest any more. */
		on_lane[lane] = on_lane[lane] & ~one;
		dealt = dealt & ~one;
		one = 0
	}
}

proctype consumer() {
	byte known, lane, one;

	do
	:: taken == ALL -> break
	:: else ->
		known = returned & ~taken;
again:
		/* C3 */
		if
		:: !alarm
		:: alarm ->
#ifdef MUTATE2
			look();
			alarm = false;
#else
			alarm = false; /* C4 */
#endif
			if
			:: covered != 0 -> begin_looking()
			:: skip
			fi;
#ifndef MUTATE2
			look() /* C5 */
#endif
		fi;
		if
		:: covered == 0 -> look()
		:: covered != 0 && dealt == 0 -> look_for_some()
		:: else
		fi;
		if
		:: dealt == 0 ->
			assert(known == 0);
			lane = NOTHING
		:: else ->
			first_lane();
			if
			:: covered == 0 ->
				/* The end of a window, which may have been about any lane. */
				if
				:: begin_relying(0); first_lane()
				:: begin_relying(1); first_lane()
				:: begin_relying(2); first_lane()
				:: skip
				fi
#ifndef MUTATE3
			:: covered != 0 && !(covered & (1 << lane)) ->
				begin_looking();
				goto again
#endif
			:: else
			fi;
			take_and_check()
		fi;
		if
		:: lane == NOTHING ->
			woken = false; /* prepare */
			sleep = true; /* C1 */
#ifndef MUTATE5
			if
			:: alarm || dealt != 0 || undealt != 0 /* C2 */
			:: else -> woken
			fi;
#else
			woken;
#endif
			sleep = false
		:: else
		fi;
		known = 0
	od
}

init {
	atomic {
		run producer(2);
		run producer(POSTS - 2);
		run consumer()
	}
}
