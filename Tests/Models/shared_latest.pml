/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The latest-only slot of a shared mailbox: PRODUCERS producers with OTHERS dispatches each, the first with ROUNDS,
 * on either of two lanes (0 comes before 1), TAKERS workers. Sequentially consistent. The mailbox itself is
 * assumed to be correct: a put is one step, a take returns a token of the first lane that has one (shared_queue.pml, shared_stack.pml), and a token
 * of which the workers were told does not wait while all of them sleep (shared_wake.pml).
 *
 * Models these lines of Sources/CEventCore/latest/latest.h, latest.c and shared/shared_mailbox.c, by the names
 * that the proof in latest.h gives the steps:
 *   put                      P1  exchange the slot
 *   post_token               P2  load the state; POSTED: done; else compare-and-swap: a new number, CLAIMED
 *   accept                       put_token, then CLAIMED → POSTED
 *                            P3  tell, even if another put the token; P4 end what P1 found
 *   evc_latest_take          K1  give_token; K2 load the slot, then CAS
 *
 * Events are numbered in the order of their P1; the slot's word is the event, which contains its lane. Asserted:
 * - each event is taken or superseded, once; they are taken in the order of P1; at the end the slot is
 *   empty (D4);
 * - an event whose dispatch has returned has a token on its lane while it is in the slot, in the mailbox or with
 *   a worker before its K2, and the workers were told: the mailbox is not empty (D10), no later lane is
 *   taken from (D1), and the event waits for no producer (D5);
 * - an event is not taken before its lane's turn (D1);
 * - of each lane at most one token waits whose claim was not taken over.
 *
 * Mutations, each seen to fail (assertion violated):
 *   -DMUTATE    a producer relies on CLAIMED as on POSTED.
 *   -DMUTATE2   P2 before P1.
 *   -DMUTATE3   K2 before K1.
 *   -DMUTATE4   K2 takes any event that it finds, and puts an event of a later lane back, as with one consumer.
 *   -DMUTATE5   K2 as a load and a store.
 *   -DMUTATE6   settles by a plain store: the token has been taken meanwhile.
 *   -DMUTATE7   K1 ignores the state's number: another producer's token is posted twice.
 *   -DMUTATE8   a producer that finds POSTED does not tell.
 *   -DMUTATE9   settles before it puts.
 */
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef TAKERS
#define TAKERS 2
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
/* The numbers of the tokens in the mailbox, as bits, and of those that the workers were told of. */
byte tokens[2];
byte told[2];
/* Ghosts: the numbers whose claim another producer took over; tokens that were taken and have not reached their K2. */
byte over[2];
byte held[2];
/* And by number of the event. */
byte numbered = 0, done = 0, last = 0, finished = 0;
byte lane_of[EVENTS + 1];
bool returned[EVENTS + 1];
bool over_with[EVENTS + 1];

#define WAITING (tokens[0] + tokens[1])

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

inline take(event) {
	assert(lane_of[event] <= lane);
	assert(event > last);
	last = event;
	finish(event)
}

inline tell(lane) {
	told[lane] = told[lane] | tokens[lane]
}

proctype producer(byte rounds) {
	byte lane, me, old, seen, number;

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
			tell(lane)
#endif
		:: else
		fi;
#ifndef MUTATE8
		tell(lane); /* P3 */
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

proctype taker() {
	byte lane, number, event;

	do
	:: atomic {
			WAITING > 0;
			lane = (tokens[0] != 0 -> 0 : 1);
			assert(slot == 0 || !returned[slot] || lane_of[slot] >= lane || held[lane_of[slot]] > 0);
			choose(lane, number);
			remove(lane, number);
			held[lane]++
		}
#ifdef MUTATE3
		atomic {
			event = slot;
			if
			:: event != 0 && lane_of[event] <= lane -> slot = 0; take(event)
			:: else
			fi;
			event = 0;
			held[lane]--
		}
#endif
		taken(lane, number); /* K1 */
#ifdef MUTATE4
		atomic { event = slot; slot = 0 };
		if
		:: event == 0 -> held[lane]--
		:: event != 0 && lane_of[event] <= lane -> atomic { take(event); held[lane]-- }
		:: event != 0 && lane_of[event] > lane ->
			atomic {
				if
				:: slot == 0 -> slot = event
				:: else -> finish(event)
				fi;
				held[lane]--
			}
		fi;
#endif
#ifdef MUTATE5
		event = slot;
		if
		:: event == 0 || lane_of[event] > lane -> held[lane]--
		:: else -> atomic { slot = 0; take(event); held[lane]-- }
		fi;
#endif
#if !defined(MUTATE3) && !defined(MUTATE4) && !defined(MUTATE5)
		/* K2. */
		do
		:: atomic {
				event = slot;
				if
				:: event == 0 || lane_of[event] > lane -> held[lane]--; break
				:: else
				fi
			}
			atomic {
				if
				:: slot == event -> slot = 0; take(event); held[lane]--; break
				:: else
				fi
			}
		od;
#endif
		atomic { event = 0; lane = 0; number = 0 }
	:: atomic {
			/* A look that finds the mailbox empty. */
			told[0] + told[1] == 0 && slot != 0 && returned[slot] && held[lane_of[slot]] == 0;
			assert(false)
		}
	:: atomic {
			WAITING == 0 && finished == PRODUCERS && held[0] + held[1] == 0;
			assert(slot == 0 && done == EVENTS);
			break
		}
	od
}

init {
	atomic {
		byte i;
		for (i : 1 .. PRODUCERS) {
			run producer((i == 1 -> ROUNDS : OTHERS))
		}
		for (i : 1 .. TAKERS) {
			run taker()
		}
	}
}
