/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A mailbox: two producers with POSTS posts together, each on any of LANES lanes, of which the first STACKS are
 * stacks; one consumer, which relies on the alarm whenever it takes from a later lane than `relied`, where the
 * code waits for a long run, and sorts one envelope at a time, where the code sorts 1,024. Sequentially consistent.
 *
 *   -DBATCH     each post of the first producer is a batch of two events.
 *   -DCLOSE     a thread closes the mailbox at any time; -DDRAIN: closes it when it is empty.
 *   -DRELEASE   the consumer releases at any time, and the thread that releases last ends the mailbox.
 *
 * Models these lines of Sources/CEventCore/mailbox, by the names that the proof in mailbox_private.h gives them:
 *   evc_mailbox_put             P1  compare-and-swap of the lane's head, without the attempts that fail
 *   evc_mailbox_tell            P2  attention = load
 *   evc_mailbox_attend_to_post  P3  if the lane is in it and the alarm is down: raise it; SLEEP: wake;
 *                                   ENDED: evc_mailbox_drop_posted
 *   rely                        C1  attention |= the lanes before; C2 first_posted
 *   next_by_look                C3  signal = load; next_lane; sort, rely or take
 *   attend                      C4  clear the alarm; look_before_relied: C5
 *   next_lane                   C6  the heads from `relied` on, one by one; of a stack also if its list has envelopes
 *   evc_mailbox_take_listed     C7
 *   sort                            drain by an exchange, and reverse or pile what was drained
 *   take_again                      C3, and the same envelope again, if its lane is at `relied`
 *   sleep_once                      SLEEP; has_news; wait; take SLEEP back (the parker itself: parker.pml)
 *   close_with, evc_mailbox_end, evc_mailbox_release
 *
 * Envelopes are bits in the order of their P1, so that a set of them is a stack or a queue. Asserted:
 * - D1: no post that happened before a take lies on a lane before the one that is taken from. Those are the posts
 *   that had returned at the last C3, and those that had returned at the P1 of anything that the consumer has seen
 *   since: its producer may have known of them.
 * - D2: what is taken is the oldest on its queue.
 * - D3: none of these posts is newer on the same stack than what is taken; here the posts that had returned when the
 *   take began, or at its last C4.
 * - A look that finds nothing had nothing to find, and no consumer sleeps while a post that has returned waits
 *   (D10): nothing depends on a producer that has not told yet.
 * - D4: at the end each accepted envelope was taken or dropped, once; of those that were accepted before a drain none
 *   is dropped. No thread touches a mailbox that was freed.
 *
 * Mutations, each seen to fail:
 *   -DMUTATE    without C2: `relied` becomes the lane that is taken from.
 *   -DMUTATE2   C2 before C1.
 *   -DMUTATE3   C5 before C4: clears an alarm whose post the look did not see.
 *   -DMUTATE4   without C5.
 *   -DMUTATE5   C5 takes lanes out of `attention` that it still relies on.
 *   -DMUTATE6   P2 before P1.
 *   -DMUTATE7   without P3.
 *   -DMUTATE8   with -DSTACKS=2: without C6: looks at the lane at `relied`, and then at what was drained.
 *   -DMUTATE9   takes from the list of a stack without a look at its inbox.
 *   -DMUTATE10  with -DSTACKS=2, too: without the second round of C3 and C6 after a drain.
 *   -DMUTATE11  with -DPOSTS=4 -DLANES=1: takes from the list of a stack while what came later is being piled.
 *   -DMUTATE12  drains by a load and a store.
 *   -DMUTATE13  takes what is sorted before everything is sorted.
 *   -DMUTATE14  sleeps without a look after SLEEP.
 *   -DMUTATE15  with -DBATCH -DSTACKS=2: takes the next event of a batch without looking at `relied`.
 *   -DMUTATE16  with -DBATCH: takes the next event of a batch even if another envelope lies above it.
 *   -DMUTATE17  with -DBATCH: takes the next event of a batch without C3.
 *   -DMUTATE18  with -DCLOSE: ENDED after the inboxes are dropped.
 *   -DMUTATE19  with -DCLOSE: a producer does not look at ENDED.
 *   -DMUTATE20  with -DCLOSE: drops by a load and a store.
 *   -DMUTATE21  with -DDRAIN: ends without a look.
 *   -DMUTATE22  with -DCLOSE: closes without a look at SLEEP ("invalid end state").
 *   -DMUTATE23  with -DRELEASE: releases before it tells.
 *   -DMUTATE24  with -DPOSTS=4 -DLANES=2 -DSTACKS=2: a stack that was drained in an earlier take counts as drained just now.
 *   -DMUTATE25  a stack that was drained counts as drained just now until the consumer sleeps.
 */
#ifndef POSTS
#define POSTS 3
#endif
#ifndef LANES
#define LANES 3
#endif
#ifndef STACKS
#define STACKS 1
#endif
#define NOTHING LANES

#define LANE_BITS ((1 << LANES) - 1)
#define SLEEP 8
#define CLOSED 16
#define ENDED 32
#define ALARM 1
#define TO_CLOSE 2
#define TO_DRAIN 4

byte attention = 0, signal = 0;
/* Sets of envelopes, by lane: in the inbox; the consumer's: first, rest, sorted. */
byte inbox[LANES], first[LANES], rest[LANES], sorted[LANES];
byte relied = 0;
bool woken = false; /* the parker's word differs from the ticket */
byte running = 3; /* processes that have not ended: they hold a reference */
#ifdef BATCH
byte batches = 0; /* envelopes of which two events are left */
#endif
/*
 * Ghosts: what lies on each lane; what has returned; what was taken or dropped; the known posts (see D1); and for
 * each envelope that the consumer has not seen what had returned at its P1.
 */
byte on_lane[LANES];
byte returned = 0, gone = 0, known = 0, due = 0, posted = 0;
byte knew[POSTS];
#ifdef DRAIN
byte before_close = 0;
#endif
#ifdef RELEASE
bool is_gone = false;
#define TOUCH assert(!is_gone)
#else
#define TOUCH skip
#endif

inline lowest(set, one) {
	one = 1;
	do
	:: set & one -> break
	:: else -> one = one << 1
	od
}

inline highest(set, one) {
	one = 1 << POSTS;
	do
	:: set & one -> break
	:: else -> one = one >> 1
	od
}

/* The consumer has read a head: what the posts below it knew is known. */
inline acquire(set) {
	i = 0;
	do
	:: i == POSTS -> break
	:: else ->
		if
		:: set & (1 << i) -> known = known | (knew[i] & ~gone); due = due | (knew[i] & ~gone); knew[i] = 0
		:: else
		fi;
		i++
	od;
	i = 0
}

/* The envelope has ended. */
inline leave(set) {
	assert((gone & set) == 0);
	gone = gone | set;
	known = known & ~set;
	due = due & ~set;
	returned = returned & ~set;
	i = 0;
	do
	:: i == POSTS -> break
	:: else ->
		knew[i] = (set & (1 << i) -> 0 : knew[i] & ~set);
		if
		:: i < LANES -> on_lane[i] = on_lane[i] & ~set
		:: else
		fi;
		i++
	od;
	i = 0
}

inline drop(set) {
#ifdef DRAIN
	assert((set & before_close) == 0);
#endif
	leave(set)
}

inline drop_posted() {
	at = 0;
	do
	:: at == LANES -> break
	:: else ->
#ifdef MUTATE20
		set = inbox[at];
		atomic { drop(set); set = 0; inbox[at] = 0; at++ }
#else
		atomic { TOUCH; drop(inbox[at]); inbox[at] = 0; at++ }
#endif
	od;
	at = 0
}

/* evc_mailbox_end, once nothing prevents it. */
inline end_now() {
#ifdef MUTATE18
	drop_posted();
#endif
	atomic {
		TOUCH;
		attention = attention | ENDED;
		at = 0;
		do
		:: at == LANES -> break
		:: else ->
			drop((first[at] | rest[at] | sorted[at]));
			first[at] = 0;
			rest[at] = 0;
			sorted[at] = 0;
			at++
		od;
		at = 0
	}
#ifndef MUTATE18
	drop_posted()
#endif
}

/* What follows a thread's last step: the end, or its reference. */
inline let_go() {
#ifdef RELEASE
	atomic { TOUCH; running--; is_last = running == 0 };
	if
	:: is_last -> end_now(); is_gone = true
	:: else
	fi
#else
	running--
#endif
}

proctype producer(byte rounds; bool is_batch) {
	byte lane, me, seen, at, i, set;
	bool is_last;

	do
	:: rounds == 0 || (attention & CLOSED) -> break
	:: rounds > 0 && !(attention & CLOSED) ->
#ifdef MUTATE6
		seen = attention;
#endif
		atomic { /* P1 */
			if
			:: lane = 0
#if LANES > 1
			:: lane = 1
#endif
#if LANES > 2
			:: lane = 2
#endif
			fi;
			TOUCH;
			me = 1 << posted;
			knew[posted] = returned;
			posted++;
			on_lane[lane] = on_lane[lane] | me;
			inbox[lane] = inbox[lane] | me;
#ifdef BATCH
			if
			:: is_batch -> batches = batches | me
			:: else
			fi;
#endif
			rounds--
		}
#ifdef MUTATE23
		if
		:: rounds == 0 -> let_go()
		:: else
		fi;
#endif
#ifndef MUTATE6
		atomic { TOUCH; seen = attention } /* P2 */
#endif
		if
#ifndef MUTATE7
		:: seen & (1 << lane) -> /* P3 */
			if
			:: signal & ALARM
			:: !(signal & ALARM) -> signal = signal | ALARM
			fi
#endif
		:: else
		fi;
		if
		:: seen & SLEEP -> atomic { TOUCH; woken = true }
		:: else
		fi;
		if
#ifndef MUTATE19
		:: seen & ENDED -> drop_posted()
#endif
		:: else
		fi;
		atomic { returned = returned | (me & ~gone); me = 0; seen = 0; lane = 0 }
	od;
#ifdef MUTATE23
	goto done;
#endif
	let_go();
done:
	skip
}

/* The first lane from `lane` on, and before `limit`, whose inbox holds something; `limit` if none does. */
inline first_posted(limit) {
	do
	:: lane >= limit -> break
	:: atomic { lane < limit && inbox[lane] != 0 -> acquire(inbox[lane]); break }
	:: lane < limit && inbox[lane] == 0 -> lane++
	od
}

inline listed(limit) {
	limit = 0;
	do
	:: limit == LANES || first[limit] != 0 || rest[limit] != 0 -> break
	:: else -> limit++
	od
}

inline look_before_relied() {
	lane = 0;
	first_posted(relied);
	atomic {
		relied = lane;
#ifdef MUTATE5
		attention = attention & ~LANE_BITS;
#else
		attention = attention & ~(LANE_BITS & ~((1 << relied) - 1));
#endif
		lane = 0
	}
}

inline publish() {
	attention = attention | ((1 << target) - 1)
}

inline look_again() {
	lane = relied;
	first_posted(target)
}

inline rely() {
	target = lane;
#ifdef MUTATE2
	look_again();
	publish();
#else
	publish(); /* C1 */
#ifdef MUTATE
	lane = target;
#else
	look_again(); /* C2 */
#endif
#endif
	atomic { relied = lane; lane = 0; target = 0 }
}

inline sort() {
#ifdef MUTATE12
	atomic {
		if
		:: rest[lane] == 0 -> acquire(inbox[lane]); rest[lane] = inbox[lane]
		:: else -> target = NOTHING
		fi
	};
	if
	:: target != NOTHING -> inbox[lane] = 0
	:: else -> target = 0
	fi;
#endif
	atomic {
		if
		:: rest[lane] == 0 -> acquire(inbox[lane]); rest[lane] = inbox[lane]; inbox[lane] = 0; fresh = lane
		:: else
#ifdef MUTATE24
			-> fresh = lane
#endif
		fi;
		highest(rest[lane], one);
		rest[lane] = rest[lane] & ~one;
		sorted[lane] = sorted[lane] | one;
		if
#ifdef MUTATE13
		:: true -> first[lane] = first[lane] | sorted[lane]; sorted[lane] = 0
#else
		:: rest[lane] == 0 -> first[lane] = first[lane] | sorted[lane]; sorted[lane] = 0
		:: else
#endif
		fi;
		one = 0
	}
}

/* An event of `one`, which is taken from `lane`. The envelope goes with its last event. */
inline take() {
	/* D1. */
	assert(lane < 1 || (known & on_lane[0]) == 0);
#if LANES > 2
	assert(lane < 2 || (known & on_lane[1]) == 0);
#endif
	/* D3, D2. */
	assert(lane >= STACKS || ((due & on_lane[lane]) >> 1) < one);
	assert(lane < STACKS || (on_lane[lane] & (one - 1)) == 0);
#ifdef BATCH
	batch = 0;
	if
	:: batches & one -> batches = batches & ~one; batch = one
	:: else ->
#endif
		first[lane] = first[lane] & ~one;
		leave(one)
#ifdef BATCH
	fi
#endif
}

proctype consumer() {
	byte lane, limit, one, target, at, i, set, seen, fresh = NOTHING;
	bool is_last, must_sort, has_begun;
#ifdef BATCH
	byte batch;
#endif

next:
#ifdef RELEASE
	if
	:: goto over
	:: true
	fi;
#endif
look:
	atomic { /* C3 */
		seen = signal;
		known = known | returned;
		if
		:: !has_begun -> due = due | returned; has_begun = true
		:: else
		fi;
		if
		:: seen != 0 -> fresh = NOTHING
		:: else
		fi
	};
	if
	:: seen != 0 ->
#ifdef MUTATE3
		look_before_relied();
#endif
		atomic { seen = signal; signal = signal & ~ALARM; due = due | returned } /* C4 */
		if
		:: seen & TO_CLOSE -> goto over
		:: else
		fi;
#if !defined(MUTATE3) && !defined(MUTATE4)
		if
		:: seen & ALARM -> look_before_relied() /* C5 */
		:: else
		fi
#endif
	:: else
	fi;
	atomic {
		seen = 0;
		listed(limit);
		lane = relied
#ifdef MUTATE8
		;
		if
		:: limit < LANES -> lane = limit
		:: else
		fi
#endif
	};
	/* Of a stack the inbox comes first, unless it was drained just now. */
	atomic {
		if
#ifndef MUTATE9
		:: limit < STACKS && limit != fresh -> target = limit + 1
#endif
		:: else -> target = limit
		fi
	};
	first_posted(target); /* C6 */
	atomic {
		must_sort = lane < target;
		if
		:: !must_sort -> lane = limit
		:: else
		fi;
		limit = 0;
		target = 0
	};
	if
	:: lane == NOTHING -> goto dry
#ifdef MUTATE11
	:: lane != NOTHING && (must_sort || (rest[lane] != 0 && (lane >= STACKS || first[lane] == 0))) ->
#elif defined(MUTATE13)
	:: lane != NOTHING && (must_sort || first[lane] == 0) ->
#else
	:: lane != NOTHING && (must_sort || rest[lane] != 0) ->
#endif
		sort();
#ifdef MUTATE10
		if
		:: rest[lane] == 0 -> goto taking
		:: else
		fi;
#endif
		atomic { lane = 0; must_sort = false; goto look }
	:: else ->
		if
		:: lane != relied -> rely(); goto look
		:: lane == relied || lane < STACKS
		fi
	fi;
taking:
	atomic { /* C7 */
		if
		:: lane < STACKS -> highest(first[lane], one)
		:: else -> lowest(first[lane], one)
		fi;
		take()
	};
#ifdef BATCH
	if
	:: batch != 0 ->
		/* take_again. */
		atomic { /* C3 */
			known = known | returned;
			due = due | returned;
#ifndef MUTATE17
			seen = signal
#endif
		};
		atomic {
			if
#ifdef MUTATE15
			:: seen == 0 &&
#else
			:: seen == 0 && relied == lane &&
#endif
#ifdef MUTATE16
			   true ->
#else
			   (lane >= STACKS || inbox[lane] == 0) ->
#endif
				one = batch;
				take()
			:: else
			fi;
			batch = 0;
			seen = 0
		}
	:: else
	fi;
#endif
	atomic {
		lane = 0;
		one = 0;
		must_sort = false;
		has_begun = false;
#ifndef MUTATE25
		fresh = NOTHING;
#endif
		goto next
	}
dry:
	atomic { lane = 0; one = 0; must_sort = false; has_begun = false; fresh = NOTHING; assert(known == 0) }
#if defined(CLOSE) || defined(DRAIN)
	if
	:: signal & TO_DRAIN ->
#ifndef MUTATE21
		/* evc_mailbox_has_posts. */
		first_posted(LANES);
		if
		:: lane != NOTHING -> lane = 0; goto next
		:: else -> lane = 0
		fi;
#endif
		goto over
	:: !(signal & TO_DRAIN)
	fi;
#elif !defined(RELEASE)
	if
	:: running == 1 && gone == (1 << POSTS) - 1 -> goto over
	:: else
	fi;
#endif
	woken = false;
	attention = attention | SLEEP;
#ifndef MUTATE14
	if
	:: signal != 0 -> goto up
	:: signal == 0
	fi;
	first_posted(LANES);
	if
	:: lane != NOTHING -> goto up
	:: else
	fi;
#endif
	do
	:: woken -> break
	:: atomic { !woken && returned != 0 -> assert(false) }
#if !defined(CLOSE) && !defined(DRAIN)
	/* No thread is left to wake it. */
	:: !woken && running == 1 && gone == (1 << posted) - 1 -> break
#endif
	od;
up:
	atomic { attention = attention & ~SLEEP; lane = 0; goto next }
over:
#if defined(CLOSE) || defined(DRAIN)
	end_now();
#endif
	let_go()
}

#if defined(CLOSE) || defined(DRAIN)
proctype closer() {
	byte seen;

#ifdef DRAIN
	atomic { attention = attention | CLOSED; before_close = returned | gone };
	signal = signal | TO_DRAIN;
#else
	attention = attention | CLOSED;
	signal = signal | TO_CLOSE;
#endif
	seen = attention;
	if
#ifndef MUTATE22
	:: seen & SLEEP -> woken = true
#endif
	:: else
	fi
}
#endif

init {
	atomic {
		run producer(POSTS / 2, true);
		run producer(POSTS - POSTS / 2, false);
		run consumer();
#if defined(CLOSE) || defined(DRAIN)
		run closer()
#endif
	}
	atomic {
		running == 0;
#ifdef RELEASE
		is_gone;
#endif
		assert(gone == (1 << posted) - 1)
	}
}
