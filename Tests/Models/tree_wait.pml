/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Two threads remove a handler and wait until it is not running, while a walk calls it and then another handler, which
 * returns only when both have come back: so a wake-up that is lost is a deadlock. The walk's stores of `calling` lie in
 * a store buffer until a barrier everywhere, a locked operation or the processor writes them. The letters are those of
 * tree_wait.h; `calling` is 1 in the handler, 2 in the other, 0 in none. `changed` is the clock: whether it counts the
 * removal, and `removal` is last_removal. The walk reuses what the walk before has found, the handler, as long as the
 * clock has not changed, and looks for it in the tree otherwise. With -DFENCE the system has no barrier everywhere, and
 * the walk a fence.
 *
 * Another thread asks meanwhile whether the handler is active.
 *
 * Asserted: no removal returns while the handler runs, it does not run after one has returned, no call begins
 * after a thread was told that it has ended; and all removals return.
 *
 * Mutations, each seen to fail:
 *   -DMUTATE    without V4.
 *   -DMUTATE2   without V7 and the second V6.
 *   -DMUTATE3   without V3.
 *   -DMUTATE4   V5 after V6.
 *   -DMUTATE5   V6 and V7 not under the mutex: a thread that finds a walk asked by the other relies on a V7 that is still to come.
 *   -DMUTATE6   V8 before `awaited` is cleared.
 *   -DMUTATE7   the removal not under the mutex: a thread that finds the handler removed by the other comes before its C.
 *   -DMUTATE8   C and E after V4.
 *   -DMUTATE9   a thread that asks whether it is active learns of a removal that is not announced.
 *   -DMUTATE10  E before C.
 *   -DMUTATE11  last_removal is read after the chunk was found.
 */
#define WAITERS 2

byte calling = 0, buffer = 0;
bool buffered = false;
bool removed = false, linked = true, changed = false, removal = false, awaited = false, running = false, mutex = false;
bool told = false;
byte wakes = 0, back = 0;

/* TSO: the oldest store first, of which there is room for one. */
inline store_calling(value) {
	atomic { !buffered -> buffer = value; buffered = true }
}

active proctype processor() {
end:
	do
	:: atomic { buffered -> calling = buffer; buffered = false }
	od
}

inline flush() {
	atomic {
		if
		:: buffered -> calling = buffer; buffered = false
		:: else
		fi
	}
}

inline go_on() {
#ifdef FENCE
	flush();
#endif
#ifdef MUTATE3
	skip
#else
	if
	:: awaited ->
#ifdef MUTATE6
		flush();
		wakes++;
		awaited = false
#else
		/* Locked operations. */
		atomic { flush(); awaited = false };
		wakes++
#endif
	:: else
	fi
#endif
}

active proctype walk() {
	bool is_there, is_found, was_told, seen;

#ifndef MUTATE11
	seen = removal;
#endif
	is_found = !changed;
	if
	:: !is_found -> is_found = linked
	:: else
	fi;
#ifdef MUTATE11
	seen = removal;
#endif
	store_calling(1);
	go_on();
	was_told = told;
	/* V2. */
	is_there = (removal == seen);
	if
	:: !is_there -> is_there = !removed
	:: else
	fi;
	is_there = is_there && is_found;
	if
	:: is_there ->
		assert(back == 0 && !was_told);
		running = true;
		running = false
	:: else
	fi;
	store_calling(2);
	go_on();
	/* The other handler. */
	back == WAITERS;
	store_calling(0)
}

active proctype asking() {
#ifdef MUTATE9
	told = removed
#else
	told = (removed && removal)
#endif
}

/* Without the barrier everywhere, the walk has the fence. */
inline barrier() {
#ifdef FENCE
	skip
#else
	flush()
#endif
}

inline look() {
	atomic {
		is_running = (calling == 1);
		is_new = is_running && !awaited;
		if
		:: is_running -> awaited = true
		:: else
		fi
	}
}

active [WAITERS] proctype waiter() {
	byte ticket;
	bool is_running, is_new;

#ifndef MUTATE7
	atomic { !mutex -> mutex = true };
#endif
	/* By the first of the two threads. */
	if
	:: !removed ->
		removed = true; /* R */
		linked = false;
#ifndef MUTATE8
#ifdef MUTATE10
		removal = true;
#endif
		changed = true; /* C */
		removal = true /* E */
#endif
	:: else
	fi;
#ifndef MUTATE7
	mutex = false;
#endif
#ifndef MUTATE
	barrier();
#endif
#ifdef MUTATE8
	changed = true;
	removal = true;
#endif
	do
	:: true ->
#ifndef MUTATE4
		ticket = wakes;
#endif
#ifndef MUTATE5
		atomic { !mutex -> mutex = true };
#endif
		look();
#ifndef MUTATE2
		do
		:: is_running && is_new -> barrier(); look()
		:: else -> break
		od;
#endif
#ifndef MUTATE5
		mutex = false;
#endif
#ifdef MUTATE4
		ticket = wakes;
#endif
		if
		:: !is_running -> break
		:: else
		fi;
		wakes != ticket
	od;
	assert(!running);
	back++
}
