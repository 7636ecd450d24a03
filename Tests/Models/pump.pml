/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The pump: POSTERS producers with ROUNDS posts each, one closer (with -DCLOSE), and a pump process for each
 * wake-up, which runs until it has armed the mailbox and lost the right to go on. Sequentially consistent.
 *
 * Models these lines of Sources/CEventCore, by the names that mailbox_pump.c gives them:
 *   evc_mailbox_put, _tell      P1  compare-and-swap of the lane's head; P2 attention = load
 *   close_with                  P1  signal |= CLOSE; P2
 *   evc_mailbox_wake_consumer   P4  clear SLEEP; P5 if it was set: wake
 *   evc_mailbox_pump                take everything; then arm
 *   arm                         C1  set SLEEP; C2 has_news; C6 clear SLEEP; C7 if it was set: go on
 *
 * Asserted: one consumer at a time (`owner`: from the wake-up, or from a C6 that won, to C1); at the end
 * everything was taken, and the close was seen. A lost wake-up is an invalid end state or a post untaken.
 *
 * Mutations, each seen to fail:
 *   -DMUTATE    without C2: a post between the last take and C1 is never taken.
 *   -DMUTATE2   P4 as a load and a store: two wake-ups for one arming, two consumers.
 *   -DMUTATE3   C7 goes on even if another thread cleared the bit: two consumers.
 *   -DMUTATE4   P2 before P1.
 */
#ifndef POSTERS
#define POSTERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define POST 0
#define CLOSING 1

byte waiting = 0; /* posts in the inboxes */
byte taken = 0, posted = 0;
bool closing = false, ended = false;
bool sleep = true; /* a new mailbox is armed */
byte owners = 0;
byte running = 0; /* processes that have not ended */

inline own() {
	owners++;
	assert(owners == 1)
}

proctype pump() {
	bool news;

	own();
again:
	do
	:: closing -> ended = true; owners--; goto done
	:: waiting > 0 -> atomic { taken = taken + waiting; waiting = 0 }
	:: else -> break
	od;
	atomic { owners--; sleep = true } /* C1: from here on the next pump may run */
#ifndef MUTATE
	news = closing; /* C2: the signal and the inboxes are loads of their own */
	news = news || waiting > 0;
	if
	:: !news
	:: news -> /* C6, C7 */
#ifdef MUTATE3
		sleep = false;
		own();
		goto again
#else
		atomic {
			if
			:: sleep -> sleep = false; own(); goto again
			:: else
			fi
		}
#endif
	fi;
#endif
done:
	running--
}

inline wake_consumer() {
#ifdef MUTATE2
	if
	:: sleep -> sleep = false; atomic { running++; run pump() }
	:: else
	fi
#else
	atomic { /* P4, P5 */
		if
		:: sleep -> sleep = false; running++; run pump()
		:: else
		fi
	}
#endif
}

inline publish(what) {
	atomic { /* P1 */
		if
		:: what == POST -> waiting++; posted++
		:: else -> closing = true
		fi
	}
}

inline speak(what) {
#ifdef MUTATE4
	seen = sleep;
	publish(what);
#else
	publish(what);
	seen = sleep; /* P2 */
#endif
	if
	:: seen -> wake_consumer()
	:: else
	fi;
	seen = false
}

proctype poster() {
	bool seen;
	byte i;

	for (i : 1 .. ROUNDS) {
		speak(POST)
	}
	i = 0;
	running--
}

proctype closer() {
	bool seen;

	speak(CLOSING);
	running--
}

init {
	byte i;

	atomic {
		for (i : 1 .. POSTERS) {
			running++;
			run poster()
		}
#ifdef CLOSE
		running++;
		run closer()
#endif
	}
	running == 0;
#ifdef CLOSE
	assert(ended);
#else
	assert(taken == posted && sleep);
#endif
	assert(owners == 0)
}
