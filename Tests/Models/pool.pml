/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A pool of 4 slots in two slabs: its owner takes 5 times, a giver sends each slot back, a trimmer trims
 * twice and dooms a slab whenever it holds all of it. Chains are of one slot each, and a grab keeps one
 * chain where the code keeps GRAB_CHAINS. Sequentially consistent.
 *
 * Models these lines of Sources/CEventCore/memory/pool.c and pool_trim.c:
 *   evc_pool_refill      chains; if reserve: R1 exchange reserve; if returned: R2 exchange returned;
 *                        keep the first of the list, R3 store the rest into reserve; else bump
 *   evc_pool_push_chains head = load; last->next_chain = head; G compare-and-swap returned
 *   trim_pool            T1 exchange reserve, T2 exchange returned, join, count_slots, doom
 *   send_back            retire the doomed, push the others
 *
 * Asserted: the owner gets no slot that somebody holds or that was retired; at the end each slot is in
 * exactly one place: a list, the fresh part of the slab, or retired.
 *
 * Mutations, each seen to fail ("assertion violated"):
 *   -DMUTATE    the refill does not empty `reserve` before it stores there: what it held is lost.
 *   -DMUTATE2   T2 as a load and a store: what was pushed between them is lost.
 *   -DMUTATE3   T1 as a load and a store: the owner grabs the list that the trimmer also holds.
 */
#define SLOTS 4
#define TAKES 5
#define TRIMS 2
#define NONE 0

byte next_chain[SLOTS + 1] = NONE;
byte returned = NONE, reserve = NONE;
/* The owner's own. */
byte chains = NONE;
byte fresh = 1;
bool owner_done = false;
/* Ghosts. */
bool held[SLOTS + 1] = false;
bool retired[SLOTS + 1] = false;

chan flight = [SLOTS] of { byte };

/* Any thread, with a `head` of its own. */
inline push(s) {
	head = returned;
	do
	:: next_chain[s] = head;
		atomic { /* G */
			if
			:: returned == head -> returned = s; break
			:: else -> head = returned
			fi
		}
	od;
	head = NONE
}

proctype owner() {
	byte takes = 0, slot, list;

	do
	:: takes == TAKES -> break
	:: else ->
		slot = NONE;
		list = NONE;
		if
		:: chains != NONE -> slot = chains; chains = next_chain[slot]
		:: else ->
#ifndef MUTATE
			if
			:: reserve != NONE -> atomic { list = reserve; reserve = NONE } /* R1 */
			:: reserve == NONE
			fi;
#endif
			if
			:: list == NONE && returned != NONE ->
				atomic { list = returned; returned = NONE } /* R2 */
			:: else
			fi;
			if
			:: list != NONE ->
				slot = list;
				list = next_chain[slot];
				if
				:: list != NONE -> reserve = list /* R3 */
				:: else
				fi
			:: list == NONE && fresh <= SLOTS -> slot = fresh; fresh++
			:: else /* Out of memory. */
			fi
		fi;
		atomic {
			if
			:: slot != NONE ->
				assert(!held[slot] && !retired[slot]);
				held[slot] = true;
				flight ! slot
			:: else
			fi;
			takes++;
			slot = NONE;
			list = NONE
		}
	od;
	owner_done = true
}

proctype giver() {
	byte slot, head;

	do
	:: atomic { flight ? slot -> held[slot] = false };
		push(slot);
		slot = NONE
	:: owner_done && empty(flight) -> break
	od
}

/* The slots 1, 2 are one slab, 3, 4 the other. */
inline count_and_doom() {
	d_step {
		mine = 0;
		slot = list;
		do
		:: slot == NONE -> break
		:: else ->
			assert(!held[slot] && !retired[slot] && !(mine & (1 << slot)));
			mine = mine | (1 << slot);
			slot = next_chain[slot]
		od;
		doomed = 0;
		if
		:: (mine & 6) == 6 -> doomed = 6
		:: else
		fi;
		if
		:: (mine & 24) == 24 -> doomed = doomed | 24
		:: else
		fi;
		mine = 0
	}
}

proctype trimmer() {
	byte trims = 0, list, more, slot, next, mine, doomed, head;

	do
	:: trims == TRIMS -> break
	:: else ->
#ifdef MUTATE3
		list = reserve;
		reserve = NONE;
#else
		atomic { list = reserve; reserve = NONE } /* T1 */
#endif
#ifdef MUTATE2
		more = returned;
		returned = NONE;
#else
		atomic { more = returned; returned = NONE } /* T2 */
#endif
		/* join */
		if
		:: list == NONE -> list = more
		:: else ->
			slot = list;
			do
			:: next_chain[slot] == NONE -> break
			:: else -> slot = next_chain[slot]
			od;
			next_chain[slot] = more
		fi;
		more = NONE;
		count_and_doom();
		/* send_back */
		slot = list;
		list = NONE;
		do
		:: slot == NONE -> break
		:: else ->
			next = next_chain[slot];
			if
			:: doomed & (1 << slot) -> retired[slot] = true
			:: else -> push(slot)
			fi;
			slot = next
		od;
		atomic { trims++; next = NONE; doomed = 0 }
	od
}

inline count(from) {
	slot = from;
	do
	:: slot == NONE -> break
	:: else ->
		assert(!(seen & (1 << slot)) && !retired[slot] && !held[slot]);
		seen = seen | (1 << slot);
		slot = next_chain[slot]
	od
}

init {
	byte slot, seen;

	atomic {
		run owner();
		run giver();
		run trimmer()
	}
	_nr_pr == 1;
	d_step {
		count(returned);
		count(reserve);
		count(chains);
		slot = 1;
		do
		:: slot > SLOTS -> break
		:: else ->
			/* Retired, fresh, or in one of the lists. */
			assert(retired[slot] || slot >= fresh || (seen & (1 << slot)));
			slot++
		od
	}
}
