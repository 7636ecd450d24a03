/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The parker: one sleeper, two wakers with ROUNDS news each, and a sleeper that may also time out.
 * Sequentially consistent.
 *
 * Models these lines of Sources/CEventCore/platform/parker.c:
 *   evc_parker_prepare  S1  ticket = word & ~1
 *   the caller          S2  look for the news
 *   evc_parker_wait     S3  compare-and-swap word: ticket -> ticket | 1, else return
 *                       S4  ops->wait: sleeps while word == ticket | 1; may return early
 *                           word != ticket | 1: S5; time over: compare-and-swap back to ticket
 *                       S5  if bit 0 is set: word = (word + 2) & ~1 by compare-and-swap
 *   evc_parker_wake     W2  word = word + 2
 *                       W3  if bit 0 was set: ops->wake
 *                       W4  compare-and-swap word: what W2 made -> without bit 0
 * and of a futex: the look at the word and falling asleep are one step, and a wake reaches only a
 * thread that is asleep by then (parker_posix.c has the same by its mutex).
 *
 * Asserted: the sleeper sees all the news and ends: a lost wake-up is a sleeper that never ends, an invalid end
 * state. And it does not sleep while there is news whose waker has returned: it does not depend on a waker that
 * has still to make its system call. Bit 0 is clear when the sleeper is not about to sleep.
 *
 * Mutations, each seen to fail:
 *   -DMUTATE    S3 without the comparison (word = ticket | 1 in any case): a wake-up between S1 and S3 is lost.
 *   -DMUTATE2   W2 without the count: the same, since S3 then finds its ticket again.
 *   -DMUTATE3   W2 clears bit 0: the next waker returns without a system call, and the first may be held up.
 *   -DMUTATE4   S5 without the addition: W4 clears the bit of the next sleep.
 *   -DMUTATE5   W4 clears the bit without comparing.
 *   -DMUTATE6   W4 before W3: as MUTATE3.
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define WAKERS 2

byte word = 0;
/* The news of each waker: how many it has published, and how many the sleeper has seen. */
byte sent[WAKERS], seen[WAKERS];
/* The thread is in the system call, and will be until it is woken. */
bool asleep = false;
/* Ghost: for how many of them the waker has returned. */
byte told[WAKERS];

#define IS_NEWS (sent[0] != seen[0] || sent[1] != seen[1])
#define IS_TOLD (told[0] > seen[0] || told[1] > seen[1])

proctype sleeper() {
	byte ticket, old;
	bool again;

	do
	:: seen[0] + seen[1] == ROUNDS * WAKERS -> break
	:: else ->
		assert(!(word & 1));
		ticket = word & 254; /* S1 */
		if
		:: atomic { IS_NEWS -> seen[0] = sent[0]; seen[1] = sent[1] } /* S2 */
		:: atomic { !IS_NEWS -> skip }
			/* S3 */
#ifdef MUTATE
			atomic { word = ticket | 1; again = true }
#else
			atomic {
				if
				:: word == ticket -> word = ticket | 1; again = true
				:: else -> again = false
				fi
			}
#endif
			do
			:: !again -> break
			:: again ->
				/* S4: asleep only if the word is as expected. */
				atomic {
					if
					:: word == (ticket | 1) -> assert(!IS_TOLD); asleep = true
					:: else
					fi
				}
				!asleep;
				if
				:: word != (ticket | 1) ->
					again = false;
					/* S5. */
					old = word;
					do
					:: !(old & 1) -> break
					:: old & 1 ->
						atomic {
							if
#ifdef MUTATE4
							:: word == old -> word = old & 254; break
#else
							:: word == old -> word = (old + 2) & 254; break
#endif
							:: else -> old = word
							fi
						}
					od;
					old = 0
				:: word == (ticket | 1) -> skip /* Early, without a reason. */
				:: atomic { /* The time limit has passed. */
					word == (ticket | 1) -> word = ticket; again = false
				   }
				fi
			od
		fi
	od
}

/* Early returns and time-outs: a few, or the search would not end. */
proctype spurious() {
end_unused: /* May remain unused. */
	atomic { asleep -> asleep = false };
end_half_used:
	atomic { asleep -> asleep = false }
}

inline call() {
	asleep = false /* W3 */
}

inline clear() {
	atomic { /* W4 */
		if
#ifdef MUTATE5
		:: true -> word = word & 254
#else
		:: word == made -> word = made & 254
		:: else
#endif
		fi
	}
}

proctype waker(byte me) {
	byte made;

	do
	:: sent[me] == ROUNDS -> break
	:: else ->
		sent[me]++; /* W1 */
		atomic { /* W2 */
#ifdef MUTATE2
			made = word
#else
			word = word + 2;
			made = word
#endif
#ifdef MUTATE3
			;
			word = word & 254
#endif
		}
		if
		:: made & 1 ->
#ifdef MUTATE6
			clear();
			call()
#else
			call();
			clear()
#endif
		:: else
		fi;
		atomic {
			made = 0;
			told[me] = sent[me];
			assert(!asleep || !IS_TOLD)
		}
	od
}

init {
	atomic {
		run sleeper();
		run waker(0);
		run waker(1);
		run spurious()
	}
}
