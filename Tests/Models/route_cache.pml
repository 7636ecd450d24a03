/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The route cache against threads that subscribe and unsubscribe: one key, READERS threads that dispatch ROUNDS times
 * each, and a writer that makes CHANGES changes. Sequentially consistent.
 *
 *   -DNESTED    a thread may dispatch once more between the beginning and the end of a dispatch.
 *
 * Models these lines of Sources/CEventCore/routing:
 *   router_private.h  evc_route_cache_hits    H1 load current, compare with the cached address
 *   snapshot.c        evc_snapshot_acquire    H2 enter, load current, references + 1, leave
 *   route_cache.c     evc_router_look_up      H3 keep it in the cache, unless a dispatch of this thread has begun
 *                                             (`pins`); release the evicted one
 *   dispatch_any.c    commit                  H4 use it; release it if the cache does not hold it
 *   snapshot.c        publish                 U1 exchange current   U2 retire the former one
 *                     release_retired, end    U3 after a grace period: references - 1, and the end
 * A snapshot is its address; one that was freed is used again. A grace period waits for each section that was open.
 *
 * Asserted: what a dispatch uses exists from H1 to H4, and is not older than the changes that had returned when the
 * dispatch began: after an unsubscribe nothing is received that is dispatched later (D6), after a subscribe it is (D4).
 * At the end no snapshot is left but the current one.
 *
 * Mutations, each seen to fail:
 *   -DMUTATE    a cache that takes no reference.
 *   -DMUTATE2   H2 without a section.
 *   -DMUTATE3   U3 without a grace period.
 *   -DMUTATE4   a cache that hits without a look at current.
 *   -DMUTATE5   with -DNESTED: H3 evicts what a dispatch of this thread has begun with.
 *   -DMUTATE6   a change returns before U1.
 */
#ifndef READERS
#define READERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef CHANGES
#define CHANGES 2
#endif
/* Addresses, from 1; 0 is none. */
#define SNAPSHOTS 4

byte current = 1;
byte references[SNAPSHOTS];
bool isThere[SNAPSHOTS];
/* Odd: in a section. */
byte sections[READERS];
chan retired = [SNAPSHOTS] of { byte, bool };

/* Ghosts: the change that made a snapshot, and the last one that has returned. */
byte madeBy[SNAPSHOTS];
byte returned = 0;
byte ended = 0;

inline release(which) {
	atomic {
		assert(isThere[which] && references[which] > 0);
		references[which]--;
		if
		:: references[which] == 0 -> retired!which, false
		:: else
		fi
	}
}

/* H1 to H3: `which` is what the dispatch uses, `isOwned` whether it holds that itself. */
inline lookUp(which, isOwned, seen) {
	seen = returned;
	if
#ifdef MUTATE4
	:: cached != 0 -> which = cached; isOwned = false
	:: else ->
#else
	:: atomic { current == cached -> which = cached; isOwned = false }
	:: atomic { current != cached -> skip };
#endif
#ifndef MUTATE2
		sections[me]++;
#endif
		which = current;
		atomic {
#ifndef MUTATE
			if
			:: which != 0 -> assert(isThere[which]); references[which]++
			:: else
			fi;
#endif
#ifndef MUTATE2
			sections[me]++
#else
			skip
#endif
		}
#ifdef MUTATE5
		isOwned = false;
#else
		isOwned = pins != 0;
#endif
		if
		:: !isOwned ->
			evicted = cached;
			cached = which;
#ifndef MUTATE
			if
			:: evicted != 0 -> release(evicted)
			:: else
			fi;
			evicted = 0
#endif
		:: else
		fi
	fi;
	d_step {
		assert(which == 0 || (isThere[which] && madeBy[which] >= seen));
		seen = 0
	}
}

/* H4. */
inline use(which, isOwned) {
	assert(which == 0 || isThere[which]);
#ifndef MUTATE
	if
	:: isOwned && which != 0 -> release(which)
	:: else
	fi
#else
	skip
#endif
}

proctype reader(byte me) {
	byte round = 0, pins = 0, cached = 0, evicted = 0;
	byte first = 0, inner = 0, seen = 0;
	bool ownsFirst = false, ownsInner = false;

	do
	:: round == ROUNDS -> break
	:: else ->
		lookUp(first, ownsFirst, seen);
		pins++;
#ifdef NESTED
		if
		:: lookUp(inner, ownsInner, seen);
			use(inner, ownsInner);
			inner = 0;
			ownsInner = false
		:: skip
		fi;
#endif
		use(first, ownsFirst);
		pins--;
		first = 0;
		ownsFirst = false;
		round++
	od;
#ifndef MUTATE
	if
	:: cached != 0 -> release(cached)
	:: else
	fi;
#endif
	ended++
}

proctype writer() {
	byte change = 0, old = 0, new = 0;

	do
	:: change == CHANGES -> break
	:: else ->
		change++;
#ifdef MUTATE6
		returned = change;
#endif
		atomic {
			if
			:: new = 0
			:: !isThere[1] -> new = 1
			:: !isThere[2] -> new = 2
			:: !isThere[3] -> new = 3
			fi;
			if
			:: new != 0 -> isThere[new] = true; references[new] = 1; madeBy[new] = change
			:: else
			fi
		}
		atomic { old = current; current = new } /* U1 */
		if /* U2 */
		:: old != 0 -> retired!old, true
		:: else
		fi;
#ifndef MUTATE6
		returned = change
#endif
	od;
	ended++
}

/* U3, on the callback thread. */
proctype reclaimer() {
	byte which, i;
	byte open[READERS];
	bool isOwners;

	do
	:: retired?which, isOwners ->
#ifndef MUTATE3
		atomic {
			i = 0;
			do
			:: i == READERS -> break
			:: else -> open[i] = sections[i]; i++
			od
		}
		i = 0;
		do
		:: i == READERS -> break
		:: else -> open[i] % 2 == 0 || sections[i] != open[i]; i++
		od;
#endif
		atomic {
			if
			:: isOwners -> references[which]--
			:: else
			fi;
			if
			:: references[which] == 0 -> isThere[which] = false
			:: else
			fi
		}
	:: empty(retired) && ended == READERS + 1 ->
		assert(current == 0 || references[current] == 1);
		i = 1;
		do
		:: i == SNAPSHOTS -> break
		:: else -> assert(isThere[i] == (i == current)); i++
		od;
		break
	od
}

init {
	atomic {
		byte i = 0;

		isThere[1] = true;
		references[1] = 1;
		do
		:: i == READERS -> break
		:: else -> run reader(i); i++
		od;
		run writer();
		run reclaimer()
	}
}
