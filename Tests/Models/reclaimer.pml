/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The callback thread: two threads that retire ITEMS each, one of them urgent items. Sequentially consistent.
 *
 * Models these lines of Sources/CEventCore/platform/reclaimer.c: R1, R2 and R4, and T1 to T7; the patient lists are a single one.
 * The parker is an event count whose steps are atomic (parker.pml has its own): a wait ends when there
 * was a wake after the ticket. The long wait of T4 may end by time at any step.
 *
 * Asserted: every item is reclaimed, once. The thread ends when it has reclaimed them all; if it sleeps without a
 * limit while an item is pending, that is an invalid end state. Where PATIENT is defined, the long wait
 * never ends by time: urgent items are reclaimed nevertheless.
 *
 * Mutations, each seen to fail:
 *   -DMUTATE            R4 left out.
 *   -DMUTATE2           T1 after T2: a wake between the two is lost.
 *   -DMUTATE3           T5 after T6: an item that was retired between the two has no flag.
 *   -DMUTATE4           R2 before R1.
 *   -DMUTATE5           T6 takes the urgent list last: an item comes before one that was retired before it.
 */
#ifndef ITEMS
#define ITEMS 2
#endif

byte urgent = 0;
byte patient = 0;
bool isUrgent = false;
bool isPatient = false;
byte wakes = 0;
/* Ghosts. */
byte reclaimedUrgent = 0;
byte reclaimedPatient = 0;
/* How many patient items had been retired when the last urgent one was. */
byte retired = 0;
byte before = 0;

#ifdef PATIENT
#define GOAL (reclaimedUrgent == ITEMS)
#else
#define GOAL (reclaimedUrgent == ITEMS && reclaimedPatient == ITEMS)
#endif

inline raise(flag) {
	/* The load, and the exchange if it is false. */
	isNews = !flag;
	if
	:: isNews -> atomic { isNews = !flag; flag = true }
	:: else
	fi
}

inline wake() {
#ifndef MUTATE
	if
	:: isNews -> wakes++
	:: else
	fi
#else
	skip
#endif
}

proctype urgentRetirer() {
	byte round = 0;
	bool isNews;

	do
	:: round == ITEMS -> break
	:: else ->
#ifdef MUTATE4
		raise(isUrgent); /* R2 */
		atomic { urgent++; before = retired } /* R1 */
#else
		atomic { urgent++; before = retired } /* R1 */
		raise(isUrgent); /* R2 */
#endif
		wake(); /* R4 */
		round++
	od
}

proctype patientRetirer() {
	byte round = 0;
	bool isNews;

	do
	:: round == ITEMS -> break
	:: else ->
		atomic { patient++; retired++ } /* R1 */
		raise(isPatient); /* R2 */
		wake(); /* R4 */
		round++
	od
}

proctype thread() {
	byte ticket;
	byte takenUrgent;
	byte takenPatient;
	byte due;

	do
	:: GOAL -> break
	:: else ->
#ifndef MUTATE2
		ticket = wakes; /* T1 */
#endif
		if
		:: !isUrgent && !isPatient -> /* T2: read one after the other in the code, which sees no less. */
#ifdef MUTATE2
			ticket = wakes;
#endif
			wakes != ticket
		:: isUrgent || isPatient ->
			do /* T4 */
			:: ticket = wakes;
				if
				:: isUrgent -> break
				:: !isUrgent ->
					if
					:: wakes != ticket
#ifndef PATIENT
					:: break
#endif
					fi
				fi
			od;
#ifndef MUTATE3
			isUrgent = false; /* T5 */
			isPatient = false;
#endif
#ifdef MUTATE5
			atomic { takenPatient = patient; patient = 0 }
			atomic { takenUrgent = urgent; urgent = 0; due = before }
#else
			atomic { takenUrgent = urgent; urgent = 0; due = before } /* T6 */
			atomic { takenPatient = patient; patient = 0 }
#endif
#ifdef MUTATE3
			isUrgent = false;
			isPatient = false;
#endif
			atomic { /* T7: the patient ones first. */
				reclaimedPatient = reclaimedPatient + takenPatient;
				assert(takenUrgent == 0 || reclaimedPatient >= due);
				reclaimedUrgent = reclaimedUrgent + takenUrgent;
				assert(reclaimedUrgent <= ITEMS && reclaimedPatient <= ITEMS)
			}
		fi
	od
}

init {
	atomic {
		run urgentRetirer();
		run patientRetirer();
		run thread()
	}
}
