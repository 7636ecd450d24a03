/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The callback thread, and two threads that retire ITEMS each. Sequentially consistent.
 *
 * Models these lines of Sources/CEventCore/platform/reclaimer.c: R1, R2 and R4, and T1 to T7, with two lists.
 * The parker is an event count whose steps are atomic (parker.pml has its own): a wait ends when there
 * was a wake after the ticket. The wait of T4 may end by time at any step.
 *
 * Asserted: every item is reclaimed, once. The thread ends when it has reclaimed them all; if it sleeps without a
 * limit while an item is pending, that is an invalid end state.
 *
 * Mutations, each seen to fail:
 *   -DMUTATE            R4 left out.
 *   -DMUTATE2           T1 after T2: a wake between the two is lost.
 *   -DMUTATE3           T5 after T6: an item that was retired between the two has no flag.
 *   -DMUTATE4           R2 before R1.
 */
#ifndef ITEMS
#define ITEMS 2
#endif

byte list[2];
bool isPending = false;
byte wakes = 0;
/* Ghost. */
byte reclaimed = 0;

#define GOAL (reclaimed == 2 * ITEMS)

proctype retirer(byte mine) {
	byte round = 0;
	bool isNews;

	do
	:: round == ITEMS -> break
	:: else ->
#ifndef MUTATE4
		list[mine]++; /* R1 */
#endif
		/* R2: the load, and the exchange if it is false. */
		isNews = !isPending;
		if
		:: isNews -> atomic { isNews = !isPending; isPending = true }
		:: else
		fi;
#ifdef MUTATE4
		list[mine]++;
#endif
#ifndef MUTATE
		if /* R4 */
		:: isNews -> wakes++
		:: else
		fi;
#endif
		round++
	od
}

proctype thread() {
	byte ticket;
	byte taken;

	do
	:: GOAL -> break
	:: else ->
#ifndef MUTATE2
		ticket = wakes; /* T1 */
#endif
		if
		:: !isPending -> /* T2 */
#ifdef MUTATE2
			ticket = wakes;
#endif
			wakes != ticket
		:: isPending -> /* T3, T4 */
#ifndef MUTATE3
			isPending = false; /* T5 */
#endif
			atomic { taken = list[0]; list[0] = 0 } /* T6 */
			atomic { taken = taken + list[1]; list[1] = 0 }
#ifdef MUTATE3
			isPending = false;
#endif
			atomic { /* T7 */
				reclaimed = reclaimed + taken;
				taken = 0;
				assert(reclaimed <= 2 * ITEMS)
			}
		fi
	od
}

init {
	atomic {
		run retirer(0);
		run retirer(1);
		run thread()
	}
}
