/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Two walkers walk twice each over a tree of one handler, while a third thread removes it. Sequentially consistent:
 * what the orders add is argued in tree_reclaim.h, whose letters these are:
 *   evc_walker_collect   W1 epoch = clock; W2 word = epoch, collecting
 *   collect_chunk        W3 is the handler linked?; W4 publish it
 *   evc_walker_leave     W5 word = 0; W6 wanted, taken by an exchange: evc_tree_go_over
 *   evc_walk_end         W7 publish nothing; W8 as W6, or if it held the handler itself when it went over
 *   retire, evc_tree_count_change
 *                        U1 unlink; U2 clock = now
 *   sift                 U3 to U5 for each walker; U6 wanted = 1, and once more; deferred or freed
 *   evc_tree_unlock      gone over as often as requested; unlock; requested? trylock
 *   evc_tree_go_over     requested = 1; trylock
 *
 * Asserted: a walker that has published the handler and calls it does not find it freed, nor one that reads the tree;
 * it is freed once; in the end it is freed, whatever happened.
 *
 * Mutations, each seen to fail (assertion violated):
 *   -DMUTATE    a walker that collects holds nothing (without U4).
 *   -DMUTATE2   `wanted` without the second look of U6: the walk has passed W6 or W8, and nobody comes.
 *   -DMUTATE3   without W8.
 *   -DMUTATE4   a walk that does not get the mutex leaves no word.
 *   -DMUTATE5   without the look after unlocking.
 *   -DMUTATE6   W4 after W5.
 *   -DMUTATE7   U2 before U1: an epoch of now says nothing.
 *   -DMUTATE8   what is in its own hands is forgotten by the walk that goes over (without `holds`).
 */
#define WALKERS 2
#define NOBODY WALKERS

bool linked = true, freed = false, deferred = false;
byte clock = 1, left = 0;
/* 0, or the epoch + 1. */
byte word[WALKERS];
bool published[WALKERS], wanted[WALKERS], holds[WALKERS];
bool requested = false, mutex = false;
byte done = 0;

/* U3, U4, U5. */
inline look(w) {
	seen = word[w];
#ifdef MUTATE
	held = published[w];
#else
	if
	:: seen != 0 && seen - 1 < left -> held = true
	:: else -> held = published[w]
	fi
#endif
}

inline sift() {
	w = 0;
	any = false;
	do
	:: w < WALKERS ->
		look(w);
		if
		:: held && w == me ->
#ifndef MUTATE8
			holds[w] = true;
#endif
			any = true
		:: held && w != me ->
			wanted[w] = true;
#ifndef MUTATE2
			look(w);
#endif
			any = any || held
		:: else
		fi;
		w++
	:: else -> break
	od;
	if
	:: any -> deferred = true
	:: else ->
		assert(!freed);
		freed = true
	fi
}

/* With the mutex. */
inline unlock() {
	do
	:: true ->
		do
		:: atomic { requested -> requested = false };
			if
			:: deferred -> deferred = false; sift()
			:: else
			fi
		:: atomic { !requested -> break }
		od;
		mutex = false;
#ifdef MUTATE5
		break
#else
		if
		:: !requested -> break
		:: else
		fi;
		atomic {
			if
			:: !mutex -> mutex = true
			:: else -> break
			fi
		}
#endif
	od
}

inline go_over() {
#ifndef MUTATE4
	requested = true;
#endif
	atomic {
		if
		:: !mutex -> mutex = true; got = true
		:: else -> got = false
		fi
	};
	if
	:: got -> unlock()
	:: else
	fi
}

inline take_wanted() {
	atomic { is_wanted = wanted[me]; wanted[me] = false }
}

proctype walker(byte me) {
	byte w, seen, epoch, round = 0;
	bool any, held, got, is_wanted, found;

	do
	:: round < 2 ->
		round++;
		epoch = clock;
		word[me] = epoch + 1;
		found = linked;
		if
		:: found -> assert(!freed)
		:: else
		fi;
#ifndef MUTATE6
		published[me] = found;
#endif
		word[me] = 0;
#ifdef MUTATE6
		published[me] = found;
#endif
		take_wanted();
		if
		:: is_wanted -> go_over()
		:: else
		fi;
		/* It is called. */
		if
		:: found -> assert(!freed)
		:: else
		fi;
		published[me] = false;
#ifndef MUTATE3
		take_wanted();
		if
		:: is_wanted || holds[me] -> holds[me] = false; go_over()
		:: else
		fi
#endif
	:: else -> break
	od;
	done++
}

proctype remover() {
	byte w, seen;
	bool any, held;
	byte me = NOBODY;

	atomic { !mutex -> mutex = true };
	left = clock + 1;
#ifdef MUTATE7
	clock = left;
	linked = false;
#else
	linked = false;
	clock = left;
#endif
	sift();
	unlock();
	done++
}

init {
	atomic {
		run walker(0);
		run walker(1);
		run remover()
	};
	done == WALKERS + 1;
	assert(freed)
}
