/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The latest-only slot: PRODUCERS producers with OTHERS dispatches each, the first with ROUNDS, on either of two
 * lanes (0 comes before 1), one consumer. Sequentially consistent. The mailbox is assumed to be correct
 * (mailbox.pml): a take returns a token of the first lane that has one of which the consumer was told since it was
 * put there; it may or may not find one of which it was not told. With -DCLOSE the consumer ends at any time, and
 * tokens are dropped by it and by producers that post afterwards.
 *
 * Models these lines of Sources/CEventCore/latest/latest.h, latest.c and mailbox/mailbox.c, by the
 * names that the proof in latest.h gives the steps:
 *   put                 P1  exchange the slot
 *   post_token          P2  load the state; POSTED: done; else compare-and-swap: a new number, CLAIMED
 *   accept                  evc_mailbox_put, then CLAIMED → POSTED of the same number
 *                       P3  evc_mailbox_tell, even if another put the token; P4 end what P1 found
 *   evc_latest_take     K1  give_token: → NONE if the state has the token's number; K2 load the slot, then CAS
 *   evc_latest_drop     K1, K2
 *
 * Events are numbered in the order of their P1; the slot's word is the event, which contains its lane. Asserted:
 * - each event is delivered, superseded or dropped, once; they are delivered in the order of P1; at the end
 *   the slot is empty (D4);
 * - an event whose dispatch has returned has a token on its lane while it is in the slot, of which the consumer
 *   was told: the consumer does not sleep (D10), takes from no later lane first (D1), and waits for no producer (D5);
 * - an event is not delivered before its lane's turn (D1);
 * - of each lane at most one token waits whose claim was not taken over.
 *
 * Mutations, each seen to fail (assertion violated):
 *   -DMUTATE    a producer relies on CLAIMED as on POSTED: its event waits for another producer's post.
 *   -DMUTATE2   P2 before P1.
 *   -DMUTATE3   K2 before K1.
 *   -DMUTATE4   K2 as a load and a store: a newer event is lost.
 *   -DMUTATE5   K2 takes any event that it finds: delivers it on the lane of the first token.
 *   -DMUTATE6   settles by a plain store: the token has been taken meanwhile.
 *   -DMUTATE7   K1 ignores the state's number: another producer's token is posted twice.
 *   -DMUTATE8   a producer that finds POSTED does not tell: it relies on one that has put and settled, and has not told.
 *   -DMUTATE9   settles before it puts.
 *   -DMUTATE10  with -DCLOSE: a producer does not look at ENDED: its token stays ("invalid end state").
 */
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef OTHERS
#define OTHERS ROUNDS
#endif
#define EVENTS (ROUNDS + OTHERS * (PRODUCERS - 1))

#define NONE 0
#define CLAIMED 1
#define POSTED 2
#define WHERE(state) (state & 3)
#define NUMBER(state) (state >> 2)

byte slot = 0;
byte state[2];
/* The numbers of the tokens in the mailbox, as bits, and of those that the consumer was told of. */
byte tokens[2];
byte told[2];
bool ended = false;
/* Ghosts: the numbers whose claim another producer took over; and arrays by the number of the event. */
byte over[2];
byte numbered = 0, done = 0, last = 0, finished = 0;
byte lane_of[EVENTS + 1];
bool returned[EVENTS + 1];
bool over_with[EVENTS + 1];

inline finish(event) {
	assert(!over_with[event]);
	over_with[event] = true;
	done++
}

inline put(lane, number) {
	atomic {
		assert((over[lane] & (1 << number)) || (tokens[lane] & ~over[lane]) == 0);
		tokens[lane] = tokens[lane] | (1 << number)
	}
}

inline settle(lane, number) {
#ifdef MUTATE6
	state[lane] = (number << 2) | POSTED
#else
	atomic {
		if
		:: state[lane] == ((number << 2) | CLAIMED) -> state[lane] = (number << 2) | POSTED
		:: else
		fi
	}
#endif
}

/* K1, of a token that was taken from its lane. */
inline taken(lane, number) {
	atomic {
		if
#ifdef MUTATE7
		:: true -> state[lane] = (NUMBER(state[lane]) << 2) | NONE
#else
		:: NUMBER(state[lane]) == number -> state[lane] = (number << 2) | NONE
		:: else
#endif
		fi
	}
}

inline remove(lane, number) {
	tokens[lane] = tokens[lane] & ~(1 << number);
	told[lane] = told[lane] & ~(1 << number)
}

/* The number of a token that waits on the lane. */
inline choose(lane, number) {
	number = 1;
	do
	:: tokens[lane] >> (number + 1) -> number++
	:: tokens[lane] & (1 << number) -> break
	od
}

/* Drops what waits, after the end: one token after the other. */
inline drop_all(lane, number, event) {
	do
	:: atomic {
			tokens[0] + tokens[1] != 0 ->
			lane = (tokens[0] != 0 -> 0 : 1);
			choose(lane, number);
			remove(lane, number)
		}
		taken(lane, number);
		do
		:: atomic {
				event = slot;
				if
				:: event == 0 -> break
				:: else
				fi
			}
			atomic {
				if
				:: slot == event -> slot = 0; finish(event); break
				:: else
				fi
			}
		od;
		atomic { event = 0; lane = 0; number = 0 }
	:: atomic { tokens[0] + tokens[1] == 0 -> break }
	od
}

inline tell(lane, event) {
	atomic {
		told[lane] = told[lane] | tokens[lane];
#ifndef MUTATE10
		saw_end = ended
#endif
	}
	if
	:: saw_end -> drop_all(at, other, event)
	:: else
	fi;
	saw_end = false
}

proctype producer(byte rounds) {
	byte lane, me, old, seen, number, at, other, event;
	bool saw_end;

	do
	:: rounds == 0 -> break
	:: else ->
		if
		:: lane = 0
		:: lane = 1
		fi;
#ifdef MUTATE2
		seen = state[lane];
#endif
		atomic { /* P1 */
			numbered++;
			me = numbered;
			lane_of[me] = lane;
			old = slot;
			slot = me
		}
#ifndef MUTATE2
		seen = state[lane]; /* P2 */
#endif
		do
		:: WHERE(seen) == POSTED -> break
#ifdef MUTATE
		:: WHERE(seen) == CLAIMED -> break
#endif
		:: else ->
			atomic {
				if
				:: state[lane] == seen ->
					if
					:: WHERE(seen) == CLAIMED -> over[lane] = over[lane] | (1 << NUMBER(seen))
					:: else
					fi;
					number = NUMBER(seen) + 1;
					state[lane] = (number << 2) | CLAIMED;
					break
				:: else -> seen = state[lane]
				fi
			}
		od;
		if
		:: number != 0 ->
#ifdef MUTATE9
			settle(lane, number);
#endif
			put(lane, number);
#ifndef MUTATE9
			settle(lane, number);
#endif
#ifdef MUTATE8
			tell(lane, event)
#endif
		:: else
		fi;
#ifndef MUTATE8
		tell(lane, event); /* P3 */
#endif
		atomic { /* P4 */
			returned[me] = true;
			if
			:: old != 0 -> finish(old)
			:: else
			fi;
			rounds--;
			me = 0;
			old = 0;
			seen = 0;
			number = 0;
			lane = 0
		}
	od;
	finished++
}

#ifdef MUTATE5
#define IS_LATER(event) false
#else
#define IS_LATER(event) (lane_of[event] > lane)
#endif

/* K2. */
inline look(event) {
	do
	:: atomic {
			event = slot;
			if
			:: event == 0 || IS_LATER(event) -> break
			:: else
			fi
		}
		atomic {
			if
#ifdef MUTATE4
			:: true ->
#else
			:: slot == event ->
#endif
				slot = 0;
				assert(lane_of[event] <= lane);
				assert(event > last);
				last = event;
				finish(event);
				break
#ifndef MUTATE4
			:: else
#endif
			fi
		}
	od
}

proctype consumer() {
	byte lane, number, event;

	do
	:: atomic {
			tokens[0] != 0 || (tokens[1] != 0 && told[0] == 0) ->
			if
			:: tokens[0] != 0 -> lane = 0
			:: tokens[1] != 0 && told[0] == 0 -> lane = 1
			fi;
			assert(slot == 0 || !returned[slot] || lane_of[slot] >= lane);
			choose(lane, number);
			remove(lane, number)
		}
#ifdef MUTATE3
		look(event);
#endif
		taken(lane, number); /* K1 */
#ifndef MUTATE3
		look(event);
#endif
		atomic { event = 0; lane = 0; number = 0 }
	:: atomic {
			/* A look that finds the mailbox empty. */
			told[0] + told[1] == 0 && slot != 0 && returned[slot] ->
			assert(false)
		}
#ifdef CLOSE
	:: ended = true; break
#else
	:: atomic { tokens[0] + tokens[1] == 0 && finished == PRODUCERS -> break }
#endif
	od;
#ifdef CLOSE
	drop_all(lane, number, event);
#endif
	atomic {
		finished == PRODUCERS && tokens[0] + tokens[1] == 0 ->
		assert(slot == 0 && done == EVENTS)
	}
}

init {
	atomic {
		byte i;
		for (i : 1 .. PRODUCERS) {
			run producer((i == 1 -> ROUNDS : OTHERS))
		}
		run consumer()
	}
}
