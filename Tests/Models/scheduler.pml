/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The scheduler's sleep and its end: adders that set one timer each, and the runner; with -DCLOSE a
 * thread that closes. Sequentially consistent. Time stands still, so that no timer fires.
 *
 * Models these lines of Sources/CEventCore:
 *   scheduler.c       publish                A1 into the heap if the lock is free, else into `added`
 *                                            A2 load sleeps_until   A3 wake if the deadline is earlier
 *                     evc_scheduler_add      after it: look at `closed`, withdraw
 *   scheduler_lock.c  evc_scheduler_lock     waits for the mutex; the tries before it are left out
 *   scheduler_run.c   run, fire_due          R1 ... R7, as numbered in scheduler_private.h
 *                     evc_scheduler_close    closed = true, wake
 * and of a parker (parker.pml) that a wake after the ticket makes the wait return.
 *
 * Asserted: once all adders are done, a runner that sleeps does so until a time at which no timer's deadline
 * has passed, whether the timer is in the heap or still in `added`. With -DCLOSE: in the end every
 * timer was dropped by the runner or taken back by its adder, never both, and the runner has ended.
 *
 * Mutations, each seen to fail:
 *   -DMUTATE    without R3: `sleeps_until` is still 0 while the runner applies changes.
 *   -DMUTATE2   A2 before A1.
 *   -DMUTATE3   R1 after R5: the wake of A3 comes before the ticket.
 *   -DMUTATE4   with -DCLOSE: an adder that does not look at `closed` again.
 */
#define ADDERS 3
#define NEVER 15

/* Bit i: the timer of adder i, whose deadline is i + 1. */
byte heap = 0;
byte added = 0;
bool lock = false;
byte sleeps_until = 0;
/* The parker's count of wake-ups. */
byte wakes = 0;
bool closed = false;

/* Ghosts. */
byte done = 0;
byte taken_back = 0;
byte dropped = 0;
bool runner_ended = false;

inline take_lock() { atomic { !lock -> lock = true } }

inline unlock() { lock = false }

inline apply() { atomic { heap = heap | added; added = 0 } }

inline earliest(result) {
	if
	:: heap & 1 -> result = 1
	:: !(heap & 1) && (heap & 2) -> result = 2
	:: !(heap & 3) && (heap & 4) -> result = 3
	:: heap == 0 -> result = NEVER
	fi
}

proctype adder(byte number) {
	byte until;
	bool got;

	if
	:: closed -> goto end
	:: else
	fi;
#ifdef MUTATE2
	until = sleeps_until;
#endif
	/* A1 */
	atomic {
		got = !lock;
		lock = true
	}
	if
	:: got ->
		apply();
		heap = heap | (1 << number);
		unlock()
	:: else -> added = added | (1 << number)
	fi;
#ifndef MUTATE2
	until = sleeps_until; /* A2 */
#endif
	if
	:: number + 1 < until -> wakes++ /* A3 */
	:: else
	fi;
#ifndef MUTATE4
	/* The compare-and-swap on the timer's word: the runner has dropped it, or it is taken back. */
	if
	:: closed ->
		atomic {
			if
			:: !(dropped & (1 << number)) -> taken_back = taken_back | (1 << number)
			:: else
			fi
		}
	:: else
	fi;
#endif
end:
	done++
}

proctype runner() {
	byte ticket, next;

	do
	:: closed -> break
	:: else ->
#ifndef MUTATE3
		ticket = wakes; /* R1 */
#endif
		take_lock(); /* R2 */
#ifndef MUTATE
		sleeps_until = NEVER; /* R3 */
#endif
		apply(); /* R4 */
		earliest(next);
		sleeps_until = next; /* R5 */
		unlock();
#ifdef MUTATE3
		ticket = wakes;
#endif
		if
		:: closed
		:: else ->
			/* R6 */
end_asleep:		if
			:: wakes != ticket
#ifndef CLOSE
			:: done == ADDERS && wakes == ticket ->
				assert(!((heap | added) & 1) || next <= 1);
				assert(!((heap | added) & 2) || next <= 2);
				assert(!((heap | added) & 4) || next <= 3);
				break
#endif
			fi
		fi;
		sleeps_until = 0 /* R7 */
	od;
	/* evc_scheduler_drop_all */
	take_lock();
	apply();
	atomic { dropped = heap & ~taken_back; heap = 0 }
	unlock();
	runner_ended = true
}

#ifdef CLOSE
proctype closer() {
	closed = true;
	wakes++
}
#endif

init {
	atomic {
		run runner();
		run adder(0);
		run adder(1);
		run adder(2);
#ifdef CLOSE
		run closer()
#endif
	}
#ifdef CLOSE
	done == ADDERS && runner_ended;
	/* What came after the runner's last look is in the heap or in `added`, and its adder took it back. */
	assert(((heap | added) & ~taken_back) == 0);
	assert((dropped & taken_back) == 0);
#endif
}
