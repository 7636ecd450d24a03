/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A stack lane of a shared mailbox: three threads, each of which takes an envelope and puts it back, ROUNDS
 * times, on a stack that begins with two. Sequentially consistent.
 *
 * Models these lines of Sources/CEventCore/lanes/shared_stack.h and shared_stack.c:
 *   evc_shared_stack_put   S1  load posted, load newest (two loads)
 *                          S2  link := newest
 *                          S3  CAS (newest, posted) -> (mine, posted + 1)
 *   evc_shared_stack_pop   U1  load posted, load newest (two loads); NULL: empty
 *                          U2  load the newest's link
 *                          U3  CAS (newest, posted) -> (link, posted)
 * An envelope that was taken is put again at once: its link is overwritten while a slow taker reads it.
 *
 * Asserted: each take gets what a stack would give (a ghost that S3 and U3 change as one step); a take that finds
 * nothing had nothing to find at its second load; no envelope is lost.
 *
 * Mutations, each seen to fail (assertion violated):
 *   -DMUTATE    U3 compares the pointer alone: ABA.
 *   -DMUTATE2   posted is loaded last: it says nothing about the link.
 *   -DMUTATE3   S3 leaves posted as it is: ABA.
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define THREADS 3

byte newest = 2, posted = 2;
byte link[4];
/* Ghost: the stack as it must be, and its height. */
byte stack[4];
byte height = 2;
byte done = 0;


proctype thread() {
	byte round = 0, n, p, mine, next;
	bool ok;

	do
	:: round == ROUNDS -> break
	:: else ->
		mine = 0;
		do
		:: true ->
			/* U1 */
#ifndef MUTATE2
			p = posted;
#endif
			atomic { n = newest; assert(n != 0 || height == 0) };
			if
			:: n == 0 -> break
			:: else
			fi;
			next = link[n]; /* U2 */
#ifdef MUTATE2
			p = posted;
#endif
			atomic { /* U3 */
				if
#ifdef MUTATE
				:: newest == n ->
#else
				:: newest == n && posted == p ->
#endif
					assert(height > 0 && stack[height - 1] == n);
					height--;
					newest = next;
					mine = n;
					ok = true
				:: else -> ok = false
				fi
			}
			if
			:: ok -> break
			:: else
			fi
		od;
		do
		:: mine == 0 -> break
		:: else ->
			p = posted; /* S1 */
			n = newest;
			link[mine] = n; /* S2 */
			atomic { /* S3 */
				if
				:: newest == n && posted == p ->
					stack[height] = mine;
					height++;
					newest = mine;
#ifndef MUTATE3
					posted = posted + 1;
#endif
					mine = 0
				:: else
				fi
			}
		od;
		atomic { round++; n = 0; p = 0; next = 0; ok = false }
	od;
	atomic {
		done++;
		assert(done < THREADS || height == 2)
	}
}

init {
	atomic {
		link[2] = 1;
		stack[0] = 1;
		stack[1] = 2;
		run thread();
		run thread();
		run thread()
	}
}
