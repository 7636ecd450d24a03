/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A timer that fires against threads that cancel it: one slot for a timer, which an adder takes TIMERS times; the runner,
 * which may set it again; and cancellers with any id that was ever given. Sequentially consistent. It is always due.
 *
 * Models these lines of Sources/CEventCore/scheduler, by the states of timer.h:
 *   scheduler.c      evc_scheduler_add   F1 take the slot   F2 word = PENDING   F3 into the heap
 *                    withdraw            W1 CAS id → CANCELLED: the caller has the context back
 *                                        W2 was it FIRING: CAS → LAST; once more if it was set again between the two
 *                    discard             W3 into the list of cancelled ones
 *   scheduler_run.c  take_due            T1 out of the heap; CAS PENDING → FIRING, or its canceller owns it
 *                    fire_due            T2 fire
 *                    settle              T3 to be set again: CAS FIRING → PENDING, into the heap; or T4 free
 *   scheduler_lock.c evc_scheduler_apply  D1 a cancelled one: out of the heap, and free
 *   timer.c          evc_timer_give_all  FREE, of the next generation
 *
 * Asserted: a context ends once: it is given back by the cancel that says so, or it is the scheduler's until it is
 * dropped. Nothing fires after it was given back, nor is taken to fire after a cancel said "for the last time". A cancel
 * that finds nothing belongs to a timer that has ended, or that another one has cancelled. All timers end.
 *
 * Mutations, each seen to fail:
 *   -DMUTATE    W1 without the generation.
 *   -DMUTATE2   T3 by a store.
 *   -DMUTATE3   T1 by a store.
 *   -DMUTATE4   a slot that keeps its generation.
 *   -DMUTATE5   W2 gives up where the timer was set again between the two.
 */
#define TIMERS 3
#define CANCELLERS 2
#define FIRES 2

#define FREE 0
#define PENDING 1
#define FIRING 2
#define CANCELLED 3
#define LAST 4

/* The word; an id is the generation. */
byte state = FREE;
byte generation = 0;
bool isFree = true;
bool isInHeap = false;
bool isInList = false;

/* Ghosts, of each timer: its generation, how it ended, how often it fired. */
#define WITH_SCHEDULER 0
#define GIVEN_BACK 1
#define DROPPED 2
byte added = 0;
byte timerOf[16];
byte idOf[TIMERS];
byte became[TIMERS];
bool isStopped[TIMERS];
byte fired[TIMERS];
byte ended = 0;

inline give() {
	atomic {
#ifndef MUTATE4
		generation++;
#endif
		state = FREE;
		isFree = true
	}
}

proctype adder() {
	do
	:: added == TIMERS -> break
	:: else ->
		atomic { isFree -> isFree = false } /* F1 */
		atomic { /* F2, F3. */
			state = PENDING;
			idOf[added] = generation;
			timerOf[generation] = added;
			added++;
			isInHeap = true
		}
	od;
	ended++
}

#ifdef MUTATE
#define IS_ID true
#else
#define IS_ID (generation == id)
#endif

proctype canceller() {
	byte which = 0, id, seen, seenGeneration;

	added > 0;
	do
	:: which + 1 < added -> which++
	:: break
	od;
	id = idOf[which];
	do
	:: atomic { IS_ID && state == PENDING -> /* W1 */
			state = CANCELLED;
			assert(became[which] == WITH_SCHEDULER);
			became[which] = GIVEN_BACK
		}
		isInList = true; /* W3 */
		break
	:: atomic { !(IS_ID && state == PENDING) ->
			seen = state;
			seenGeneration = generation
		}
		if
		:: seenGeneration == id && seen == FIRING ->
			atomic { /* W2 */
				if
				:: generation == id && state == FIRING ->
					state = LAST;
					isStopped[which] = true;
					seen = LAST
				:: else ->
					seen = state;
					seenGeneration = generation
				fi
			}
		:: else
		fi;
		if
#ifndef MUTATE5
		:: seenGeneration == id && (seen == PENDING || seen == FIRING)
#endif
		:: else -> /* Not found, or stopped. */
			assert(became[which] != WITH_SCHEDULER || isStopped[which]);
			break
		fi
	od;
	ended++
}

proctype runner() {
	byte now, seen;
	bool isAgain, isTaken;

	do
	:: atomic { isInList -> isInList = false } /* D1 */
		isInHeap = false;
		give()
	:: isInHeap ->
		isInHeap = false; /* T1 */
		seen = state;
		isTaken = false;
		if
		:: seen == PENDING ->
			atomic {
				if
#ifdef MUTATE3
				:: seen == PENDING ->
#else
				:: state == PENDING ->
#endif
					state = FIRING;
					isTaken = true;
					now = timerOf[generation];
					assert(became[now] == WITH_SCHEDULER && !isStopped[now])
				:: else
				fi
			}
		:: else
		fi;
		if
		:: isTaken ->
			atomic { /* T2 */
				assert(became[now] == WITH_SCHEDULER);
				fired[now]++
			}
			if
			:: fired[now] < FIRES -> isAgain = true
			:: isAgain = false
			fi;
			seen = state;
			if
			:: isAgain && seen == FIRING -> /* T3 */
#ifdef MUTATE2
				state = PENDING;
				isInHeap = true
#else
				atomic {
					if
					:: state == FIRING -> state = PENDING; isInHeap = true
					:: else -> isAgain = false
					fi
				}
#endif
			:: else -> isAgain = false
			fi;
			if
			:: !isAgain -> /* T4 */
				atomic {
					assert(became[now] == WITH_SCHEDULER);
					became[now] = DROPPED
				}
				give()
			:: else
			fi
		:: else
		fi
	:: ended == CANCELLERS + 1 && !isInHeap && !isInList ->
		now = 0;
		do
		:: now == TIMERS -> break
		:: else -> assert(became[now] != WITH_SCHEDULER); now++
		od;
		break
	od
}

init {
	atomic {
		byte i = 0;

		run adder();
		do
		:: i == CANCELLERS -> break
		:: else -> run canceller(); i++
		od;
		run runner()
	}
}
