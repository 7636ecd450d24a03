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
 *                           word != ticket | 1: return; time over: compare-and-swap back to ticket
 *   evc_parker_wake     W2  word = (word + 2) & ~1 by compare-and-swap
 *                       W3  if bit 0 was set: ops->wake
 * and of a futex: the look at the word and the falling asleep are one step, and a wake reaches only who
 * is asleep by then (parker_posix.c has the same by its mutex).
 *
 * Asserted: the sleeper takes all the news and ends. A lost wake-up is a sleeper that never ends: an
 * invalid end state. A wake without a sleeper makes no system call: `calls` never exceeds the sleeps.
 *
 * Mutations, each seen to fail:
 *   -DMUTATE    S3 without the comparison (word = ticket | 1 whatever it is): a wake-up between S1 and
 *               S3 is lost ("invalid end state").
 *   -DMUTATE2   W2 without the count (word & ~1): the same, since S3 then finds its ticket again.
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define WAKERS 2

byte word = 0;
byte news = 0;
/* The thread is in the system call, and will be until it is woken. */
bool asleep = false;
/* Ghosts. */
byte handled = 0;
byte sleeps = 0;
byte calls = 0;

proctype sleeper() {
	byte ticket;
	bool again;

	do
	:: handled == ROUNDS * WAKERS -> break
	:: else ->
		ticket = word & 254; /* S1 */
		if
		:: atomic { news > 0 -> handled = handled + news; news = 0 } /* S2 */
		:: atomic { news == 0 -> skip }
			/* S3 */
#ifdef MUTATE
			atomic { word = ticket | 1; again = true; sleeps++ }
#else
			atomic {
				if
				:: word == ticket -> word = ticket | 1; again = true; sleeps++
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
					:: word == (ticket | 1) -> asleep = true
					:: else
					fi
				}
				!asleep;
				if
				:: word != (ticket | 1) -> again = false
				:: word == (ticket | 1) -> skip /* Early, for no reason. */
				:: atomic { /* The time is over. */
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

proctype waker() {
	byte round = 0;
	byte seen;

	do
	:: round == ROUNDS -> break
	:: else ->
		news++; /* W1 */
		atomic { /* W2 */
			seen = word;
#ifdef MUTATE2
			word = word & 254
#else
			word = (word + 2) & 254
#endif
		}
		if
		:: seen & 1 ->
			atomic { asleep = false; calls++; assert(calls <= sleeps) } /* W3 */
		:: else
		fi
		round++
	od
}

init {
	atomic {
		run sleeper();
		run waker();
		run waker();
		run spurious()
	}
}
