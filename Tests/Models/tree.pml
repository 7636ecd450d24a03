/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Two walkers walk over a tree of one handler, one of them twice, while a third thread changes something else and
 * then removes the handler. Inside the first walk of each a second one may begin, which finds nothing. Sequentially
 * consistent: tree_reclaim.h argues about the memory orders; the letters are those of that file. Only the outer walk
 * holds anything, so that `holds` is both `holds` and `holder` of the code:
 *   evc_walker_collect   W1 epoch = clock; W2 word = epoch, collecting; evc_walker_attend: J, or `holds`
 *   evc_collect_chunk    W3 is the handler linked?; W4 publish it
 *   evc_walker_leave     W5 word = walks; W8 word = idle; W6 wanted: evc_tree_reclaim
 *   evc_walk_end         W7 publish nothing; W8
 *   retire, evc_tree_count_change
 *                        U1 unlink; U2 clock = now
 *   sift                 U3 take in walkers that have joined; U3 to U5 for each that is present; U6 wanted, and once more;
 *                        A; deferred or freed
 *   evc_tree_unlock      reclaim as often as requested; unlock; requested? trylock
 *   evc_tree_reclaim     requested = 1; trylock
 * One walker is present at first, the other absent. Any that is idle may become absent.
 *
 * Asserted: a walker that has published the handler and calls it does not find it freed, nor one that reads the tree;
 * it is freed once; a walker is on one list at most; in the end the handler is freed in every case.
 *
 * Mutations, each seen to fail (assertion violated):
 *   -DMUTATE    a walker that collects holds nothing (without U4).
 *   -DMUTATE2   `wanted` without the second look of U6: the walk has passed W6 or W8, and no thread reclaims.
 *   -DMUTATE3   without W8's look.
 *   -DMUTATE4   a walk that does not get the mutex leaves no request.
 *   -DMUTATE5   without the look after unlocking.
 *   -DMUTATE6   W4 after W5.
 *   -DMUTATE7   U2 before U1: an epoch of now says nothing.
 *   -DMUTATE8   the walk that reclaims forgets what it holds itself (without `holder`).
 *   -DMUTATE9   without J.
 *   -DMUTATE10  A stores what it should compare and swap.
 *   -DMUTATE11  a W2 takes `wanted` away and does not note it.
 *   -DMUTATE12  walkers that have joined are taken in before U1.
 *   -DMUTATE13  W3 before J.
 */
#define WALKERS 2
#define NOBODY WALKERS

bool linked = true, freed = false, deferred = false;
byte clock = 1, left = 0;
/* The word: 0, or the epoch + 1 of one that collects; and its bits. */
byte collects[WALKERS];
bool walks[WALKERS], wanted[WALKERS], absent[WALKERS];
bool present[WALKERS], joined[WALKERS];
bool published[WALKERS], holds[WALKERS];
bool requested = false, mutex = false;
byte done = 0;

/* U4, U5. */
inline look(w) {
#ifdef MUTATE
	held = published[w];
#else
	if
	:: seen != 0 && seen - 1 < left -> held = true
	:: else -> held = published[w]
	fi
#endif
}

/* U3: one exchange for all. */
inline take_in() {
	d_step {
		w = 0;
		do
		:: w < WALKERS ->
			if
			:: joined[w] -> assert(!present[w]); present[w] = true; joined[w] = false
			:: else
			fi;
			w++
		:: else -> break
		od;
		w = 0
	}
}

/* A, of one whose word was idle. */
inline become_absent(w) {
	if
	:: true
	:: true ->
#ifdef MUTATE10
		absent[w] = true;
		present[w] = false
#else
		d_step {
			if
			:: collects[w] == 0 && !walks[w] -> absent[w] = true; wanted[w] = false; present[w] = false
			:: else
			fi
		}
#endif
	fi
}

/* Without an item, if `left` is 0. */
inline look_at_all() {
#ifndef MUTATE12
	take_in();
#endif
	w = 0;
	any = false;
	do
	:: w < WALKERS && !present[w] -> w++
	:: w < WALKERS && present[w] ->
		d_step { seen = collects[w]; is_busy = (seen != 0 || walks[w]) };
		if
		:: !is_busy -> become_absent(w)
		:: is_busy && left != 0 ->
			look(w);
			if
			:: held && w == me ->
#ifndef MUTATE8
				holds[w] = true;
#endif
				any = true
			:: held && w != me ->
				d_step { seen = collects[w]; wanted[w] = true };
#ifndef MUTATE2
				look(w);
#endif
				any = any || held
			:: else
			fi
		:: else
		fi;
		w++
	:: w == WALKERS -> break
	od;
	w = 0
}

inline sift() {
	look_at_all();
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

/* W1, W2, J. */
inline collect() {
	epoch = clock;
	d_step {
		was_absent = absent[me];
		is_wanted = wanted[me];
		absent[me] = false;
		wanted[me] = false;
		walks[me] = false;
		collects[me] = epoch + 1
	};
#ifndef MUTATE11
	if
	:: is_wanted -> holds[me] = true
	:: else
	fi;
#endif
#ifdef MUTATE13
	found = linked;
#endif
#ifndef MUTATE9
	if
	:: was_absent ->
		d_step { assert(!joined[me] && !present[me]); joined[me] = true }
	:: else
	fi;
#endif
	is_wanted = false;
	was_absent = false;
	epoch = 0
}

/* W5 or W8, and W6. */
inline leave(is_in_walk, may_let_go) {
	d_step {
		is_wanted = wanted[me];
		wanted[me] = false;
		collects[me] = 0;
		walks[me] = is_in_walk
	};
#ifdef MUTATE3
	if
	:: is_wanted && is_in_walk -> go_over()
#else
	if
	:: is_wanted || (holds[me] && may_let_go) ->
		if
		:: may_let_go -> holds[me] = false
		:: else
		fi;
		go_over()
#endif
	:: else
	fi;
	is_wanted = false;
	got = false
}

proctype walker(byte me; byte rounds) {
	byte w, seen, epoch;
	bool any, held, got, is_busy, is_wanted, was_absent, found;

	do
	:: rounds > 0 ->
		rounds--;
		collect();
#ifndef MUTATE13
		found = linked;
#endif
		if
		:: found -> assert(!freed)
		:: else
		fi;
#ifndef MUTATE6
		published[me] = found;
#endif
		leave(true, false);
#ifdef MUTATE6
		published[me] = found;
#endif
		/* In a call: a walk of its own. */
		if
		:: found -> collect(); leave(true, false)
		:: true
		fi;
		/* It is called. */
		if
		:: found -> assert(!freed)
		:: else
		fi;
		found = false;
		published[me] = false;
		leave(false, true)
	:: else -> break
	od;
	done++
}

proctype remover() {
	byte w, seen;
	bool any, held, is_busy;
	byte me = NOBODY;

	/* Another change. */
	atomic { !mutex -> mutex = true };
	clock++;
	look_at_all();
	unlock();
	atomic { !mutex -> mutex = true };
#ifdef MUTATE12
	take_in();
#endif
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
		present[0] = true;
		absent[1] = true;
		run walker(0, 1);
		run walker(1, 2);
		run remover()
	};
	done == WALKERS + 1;
	assert(freed)
}
