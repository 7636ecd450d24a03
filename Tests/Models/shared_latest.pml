/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The latest-only slot of a shared mailbox: PRODUCERS producers with two dispatches each on either of two lanes
 * (0 comes before 1), TAKERS workers. Sequentially consistent. The mailbox itself is taken for granted: a post
 * is one step, and a take returns a token of the first lane that has one (shared_queue.pml, shared_stack.pml).
 *
 * Models Sources/CEventCore/shared/shared_latest.c, by the names that the proofs in latest.h and shared_latest.h give
 * the steps:
 *   accept                   P1  put; P2 load the state
 *   post_token                   the rest of P2, with the token of the structure or one from the pool
 *   evc_shared_latest_take   K1  give_token; K2 load the slot, then CAS
 *
 * Events are numbered in the order of their P1; the slot's word is the event, whose lane it tells. Asserted:
 * - each event is taken or superseded, once; what is taken comes in the order of P1; at the end the slot is
 *   empty (D4);
 * - an event whose dispatch has returned has a token on its lane while it is in the slot, in the mailbox or in
 *   the hands of a worker before its K2: the mailbox is not dry (D10), and no later lane is taken from (D1);
 * - an event is not taken before its lane's turn (D1).
 *
 * Mutations, each seen to fail (assertion violated):
 *   -DMUTATE    a producer relies on CLAIMED as on POSTED.
 *   -DMUTATE2   P2 before P1.
 *   -DMUTATE3   K2 before K1.
 *   -DMUTATE4   K2 takes whatever it finds, and puts an event of a later lane back, as with one consumer.
 *   -DMUTATE5   K2 as a load and a store.
 *   -DMUTATE6   the change to POSTED as a plain store: the token has been taken meanwhile.
 */
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef TAKERS
#define TAKERS 2
#endif
#define EVENTS (2 * PRODUCERS)

#define NONE 0
#define CLAIMED 1
#define POSTED 2
#define CONSUMED 3

byte slot = 0;
byte state[2];
/* In the mailbox: tokens of the structure, and from the pool. */
byte own[2];
byte pooled[2];
/* Ghosts, by number of the event; and the tokens that were taken and are before their K2. */
byte numbered = 0, done = 0, last = 0, finished = 0;
byte held[2];
byte lane_of[EVENTS + 1];
bool returned[EVENTS + 1];
bool ended[EVENTS + 1];

#define WAITING (own[0] + own[1] + pooled[0] + pooled[1])

inline finish(event) {
	assert(!ended[event]);
	ended[event] = true;
	done++
}

inline take(event) {
	assert(lane_of[event] <= lane);
	assert(event > last);
	last = event;
	finish(event)
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
			:: seen == CONSUMED -> pooled[lane]++
#else
			:: seen == CLAIMED || seen == CONSUMED -> pooled[lane]++
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

proctype taker() {
	byte lane, event;
	bool is_own;

	do
	:: atomic {
			WAITING > 0;
			lane = (own[0] + pooled[0] > 0 -> 0 : 1);
			assert(slot == 0 || !returned[slot] || lane_of[slot] >= lane || held[lane_of[slot]] > 0);
			if
			:: own[lane] > 0 -> own[lane]--; is_own = true
			:: pooled[lane] > 0 -> pooled[lane]--; is_own = false
			fi;
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
		if /* K1 */
		:: !is_own
		:: is_own ->
			if
			:: atomic { state[lane] == CLAIMED -> state[lane] = CONSUMED }
			:: atomic { state[lane] != CLAIMED -> state[lane] = NONE }
			fi
		fi;
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
		atomic { event = 0; lane = 0; is_own = false }
	:: atomic {
			/* A look that finds the mailbox dry. */
			WAITING == 0 && slot != 0 && returned[slot] && held[lane_of[slot]] == 0;
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
			run producer()
		}
		for (i : 1 .. TAKERS) {
			run taker()
		}
	}
}
