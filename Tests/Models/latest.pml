/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The latest-only slot: PRODUCERS producers with two dispatches each on either of two lanes (0 comes
 * before 1), one consumer. Sequentially consistent. The mailbox itself is taken for granted: a post is one
 * step, and a take returns a token of the first lane that has one (mailbox.pml).
 *
 * Models Sources/CEventCore/mailbox/latest.c, by the names that the proof in latest.h gives the steps:
 *   accept              P1  exchange the slot; P2 load the state
 *   post_token              the rest of P2, with the token that has the state or one without
 *   evc_latest_take     K1  give_token; K2 exchange the slot; K3 put back
 *
 * Events are numbered in the order of their P1. Asserted:
 * - each event is delivered or superseded, once; what is delivered comes in the order of P1; at the end
 *   the slot is empty (D4);
 * - an event whose dispatch has returned has a token on its lane while it is in the slot: the mailbox is
 *   not dry (D10), and no later lane is taken from first (D1);
 * - an event is not delivered before its lane's turn (D1).
 *
 * Mutations, each seen to fail (assertion violated):
 *   -DMUTATE    a producer relies on CLAIMED as on POSTED: its event waits for another producer's post.
 *   -DMUTATE2   P2 before P1.
 *   -DMUTATE3   K2 before K1.
 *   -DMUTATE4   K3 as a plain store: an older event overwrites a newer one.
 *   -DMUTATE5   without K3: delivers on the lane of whatever token came first.
 *   -DMUTATE6   the change to POSTED as a plain store: the token has been taken meanwhile.
 *   -DMUTATE7   the consumer resets the state to NONE in any case: the token is posted by two at once.
 */
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#define EVENTS (2 * PRODUCERS)

#define NONE 0
#define CLAIMED 1
#define POSTED 2
#define CONSUMED 3

byte slot = 0;
byte state[2];
/* In the mailbox: tokens that have the state of their lane, and others. */
byte own[2];
byte others[2];
/* Ghosts, by number of the event. */
byte numbered = 0, done = 0, last = 0, finished = 0;
byte lane_of[EVENTS + 1];
bool returned[EVENTS + 1];
bool ended[EVENTS + 1];

inline finish(event) {
	assert(!ended[event]);
	ended[event] = true;
	done++
}

proctype producer() {
	byte round = 0, lane, me, old, seen;

	do
	:: round == 2 -> break
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
		if
		:: seen == POSTED
#ifdef MUTATE
		:: seen == CLAIMED
#endif
		:: else ->
			atomic { seen = state[lane]; if :: seen == NONE -> state[lane] = CLAIMED :: else fi }
			if
			:: seen == NONE ->
				atomic { assert(own[lane] == 0); own[lane] = 1 };
#ifdef MUTATE6
				state[lane] = POSTED
#else
				atomic {
					seen = state[lane];
					if :: seen == CLAIMED -> state[lane] = POSTED :: else fi
				}
				if
				:: seen == CLAIMED
				:: else -> state[lane] = NONE
				fi
#endif
			:: seen == POSTED
#ifdef MUTATE
			:: seen == CLAIMED
			:: seen == CONSUMED -> others[lane]++
#else
			:: seen == CLAIMED || seen == CONSUMED -> others[lane]++
#endif
			fi
		fi;
		atomic {
			returned[me] = true;
			if
			:: old != 0 -> finish(old)
			:: else
			fi;
			round++;
			me = 0;
			old = 0;
			seen = 0;
			lane = 0
		}
	od;
	finished++
}

proctype consumer() {
	byte lane, event;
	bool is_own;

	do
	:: atomic {
			own[0] + own[1] + others[0] + others[1] > 0;
			lane = (own[0] + others[0] > 0 -> 0 : 1);
			assert(slot == 0 || !returned[slot] || lane_of[slot] >= lane);
			if
			:: own[lane] > 0 -> own[lane]--; is_own = true
			:: others[lane] > 0 -> others[lane]--; is_own = false
			fi
		}
#ifdef MUTATE3
		atomic { event = slot; slot = 0 };
#endif
		if /* K1 */
		:: !is_own
		:: is_own ->
#ifdef MUTATE7
			state[lane] = NONE
#else
			if
			:: atomic { state[lane] == CLAIMED -> state[lane] = CONSUMED }
			:: atomic { state[lane] != CLAIMED -> state[lane] = NONE }
			fi
#endif
		fi;
#ifndef MUTATE3
		atomic { event = slot; slot = 0 }; /* K2 */
#endif
		if
		:: event == 0
#ifdef MUTATE5
		:: event != 0 ->
#else
		:: event != 0 && lane_of[event] <= lane ->
#endif
			atomic {
				assert(lane_of[event] <= lane);
				assert(event > last);
				last = event;
				finish(event)
			}
#ifndef MUTATE5
		:: event != 0 && lane_of[event] > lane ->
#ifdef MUTATE4
			slot = event
#else
			atomic { /* K3 */
				if
				:: slot == 0 -> slot = event
				:: else -> finish(event)
				fi
			}
#endif
#endif
		fi;
		event = 0
	:: atomic {
			/* A look that finds the mailbox dry. */
			own[0] + own[1] + others[0] + others[1] == 0 && slot != 0 && returned[slot];
			assert(false)
		}
	:: atomic {
			own[0] + own[1] + others[0] + others[1] == 0 && finished == PRODUCERS;
			assert(slot == 0 && done == EVENTS);
			break
		}
	od
}

init {
	atomic {
		byte i;
		for (i : 1 .. PRODUCERS) {
			run producer()
		}
		run consumer()
	}
}
