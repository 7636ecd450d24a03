/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The callback thread: two that retire ITEMS each, one of them what is urgent. Sequentially consistent.
 *
 * Models these lines of Sources/CEventCore/reclaimer.c: R1 to R3, with one wake for R2 and R3 as in
 * reclaimer.c, and T1 to T7. The parker is an event count whose steps are atomic (parker.pml has its
 * own): a wait ends when there was a wake after the ticket. The long wait of T4 may end by time at any step.
 *
 * Asserted: every item is reclaimed, once. The thread ends when it has them all; one that sleeps without a
 * limit while an item is pending is an invalid end state. Where PATIENT is defined, the long wait
 * never ends by time: what is urgent is reclaimed all the same.
 *
 * Mutations, each seen to fail:
 *   -DMUTATE            no wake for R2.
 *   -DMUTATE2           T1 after T2: a wake between the two is lost.
 *   -DPATIENT -DMUTATE3 no wake for R3.
 *   -DPATIENT -DMUTATE4 T5 after T6: an item that was retired between the two is not urgent any more.
 *   -DPATIENT -DMUTATE5 R3 before R1.
 */
#ifndef ITEMS
#define ITEMS 2
#endif

byte pending = 0;
bool urgent = false;
byte wakes = 0;
/* Of what is pending or in a turn: the urgent ones. Ghost. */
byte pendingUrgent = 0;
byte reclaimed = 0;
byte reclaimedUrgent = 0;

#ifdef PATIENT
#define GOAL (reclaimedUrgent == ITEMS)
#else
#define GOAL (reclaimed == 2 * ITEMS)
#endif

proctype retirer(bool isUrgent) {
	byte round = 0;
	bool isNews;

	do
	:: round == ITEMS -> break
	:: else ->
#ifdef MUTATE5
		if
		:: isUrgent -> atomic { isNews = !urgent; urgent = true }; if :: isNews -> wakes++ :: else fi
		:: else
		fi;
#endif
		atomic { /* R1, R2 */
#ifdef MUTATE
			isNews = false;
#else
			isNews = pending == 0;
#endif
			pending++;
			pendingUrgent = pendingUrgent + isUrgent
		}
#ifndef MUTATE5
		if /* R3 */
		:: isUrgent ->
			atomic {
#ifndef MUTATE3
				isNews = isNews || !urgent;
#endif
				urgent = true
			}
		:: else
		fi;
#endif
		if
		:: isNews -> wakes++
		:: else
		fi;
		round++
	od
}

proctype thread() {
	byte ticket;
	byte taken;
	byte takenUrgent;

	do
	:: GOAL -> break
	:: else ->
#ifndef MUTATE2
		ticket = wakes; /* T1 */
#endif
		if
		:: pending == 0 -> /* T2 */
#ifdef MUTATE2
			ticket = wakes;
#endif
			wakes != ticket
		:: pending > 0 ->
			do /* T4 */
			:: ticket = wakes;
				if
				:: urgent -> break
				:: !urgent ->
					if
					:: wakes != ticket
#ifndef PATIENT
					:: break
#endif
					fi
				fi
			od;
#ifdef MUTATE4
			atomic { taken = pending; takenUrgent = pendingUrgent; pending = 0; pendingUrgent = 0 }
			urgent = false;
#else
			urgent = false; /* T5 */
			atomic { /* T6 */
				taken = pending; takenUrgent = pendingUrgent; pending = 0; pendingUrgent = 0
			}
#endif
			atomic { /* T7 */
				reclaimed = reclaimed + taken;
				reclaimedUrgent = reclaimedUrgent + takenUrgent;
				assert(reclaimed <= 2 * ITEMS)
			}
		fi
	od
}

init {
	atomic {
		run retirer(true);
		run retirer(false);
		run thread()
	}
}
