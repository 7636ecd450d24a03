/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A slab pool: its owner, which takes TAKES times and ends, two givers, and a trim, TRIMS times. SEGMENTS
 * segments of two slots, PER_SLAB to a slab; there is no other memory. Sequentially consistent.
 *
 * Models these lines of Sources/CEventCore/memory/slab.c and slab_trim.c, by the names that slab.h gives them:
 *   evc_segment_give      G1  free |= slots; if it was 0: evc_segment_list_add
 *   evc_segment_list_add  G2  next = added, compare-and-swap
 *   take                      exchange rest, or added, with NULL; rest = what is left of the list
 *   evc_pool_refill       G3  exchange free with 0; else take_fresh
 *   evc_cursor_end, evc_pool_end
 *   evc_pool_let_go           exchange rest and added with NULL; count, let_go, evc_segment_list_add. Which of the free
 *                             slabs and segments are released is decided by the floor there, and by chance here.
 * Warm and cold segments have a list each there, which work alike; here all are on one.
 *
 * Asserted:
 * - a slot is handed out only if it is not in use; at the end each is free, and on one list (none is lost);
 * - a segment has one listing: it is on one list, or has one holder, or `free` is 0; no other thread touches its fields;
 * - pages and slabs are given back only if each of their slots is free; and no thread touches a freed slab.
 *
 * Mutations, each seen to fail (assertion violated):
 *   -DMUTATE    G1 as a load and a store.
 *   -DMUTATE2   G2 without comparing `free`: on two lists.
 *   -DMUTATE3   G3 as a load and a store: loses what was given back in between.
 *   -DMUTATE4   G2 by a store.
 *   -DMUTATE5   with -DSEGMENTS=3 -DPER_SLAB=1 -DTAKES=9: the owner stores the rest of `added` into `rest` even if
 *               that is not empty.
 *   -DMUTATE6   the trim gives back by a store into `rest`.
 *   -DMUTATE7   the trim counts segments that are not free.
 *   -DMUTATE8   the trim counts free segments, and frees slabs of which it does not hold all.
 *   -DMUTATE9   fields are written after G3.
 *   -DMUTATE10  with -DPER_SLAB=1: the owner takes the first of a list, not the whole of it (ABA).
 */
#ifndef SEGMENTS
#define SEGMENTS 2
#endif
#ifndef PER_SLAB
#define PER_SLAB 2
#endif
#ifndef TAKES
#define TAKES 5
#endif
#ifndef TRIMS
#define TRIMS 2
#endif
#define SLABS (SEGMENTS / PER_SLAB)
#define ALL_FREE 3
#define SLAB(segment) ((segment) / PER_SLAB)

/* Segments are numbered from 1; 0 is NULL. */
byte free[SEGMENTS + 1], next[SEGMENTS + 1];
bool is_released[SEGMENTS + 1];
byte added = 0, rest = 0;
/* The trim's. */
byte held[SLABS];
bool is_doomed[SLABS];
/* Ghosts: slots in use, except by givers: all of them, and those outside the cursor; and the holders of listings. */
byte out[SEGMENTS + 1], user[SEGMENTS + 1];
byte holder[SEGMENTS + 1];
bool is_gone[SLABS];
byte running = 4;
bool has_ended = false;

#if SEGMENTS > 2
#define IS_USED (user[1] != 0 || user[2] != 0 || user[3] != 0)
#else
#define IS_USED (user[1] != 0 || user[2] != 0)
#endif

#define NOBODY 0
#define LISTED 255

inline touch(segment) {
	assert(!is_gone[SLAB(segment - 1)])
}

inline own(segment) {
	touch(segment);
	assert(holder[segment] == _pid)
}

/* The lists' exchanges: everything on them has a new holder. */
inline take_all(list, first) {
	first = list;
	list = 0;
	at = first;
	do
	:: at == 0 -> break
	:: else ->
		touch(at);
		assert(holder[at] == LISTED);
		holder[at] = _pid;
		at = next[at]
	od
}

/* A chain is put on a list. */
inline put_all(list, first) {
	list = first;
	at = first;
	do
	:: at == 0 || holder[at] == LISTED -> break
	:: else ->
		own(at);
		holder[at] = LISTED;
		at = next[at]
	od;
	at = 0
}

/* G2. `last` is the end of the chain. */
inline push(first, last) {
#ifdef MUTATE4
	atomic { own(last); head = added; next[last] = head }
	atomic { put_all(added, first) }
#else
	do
	:: atomic { own(last); head = added; next[last] = head }
		atomic {
			if
			:: added == head -> put_all(added, first); break
			:: else
			fi
		}
	od;
#endif
	head = 0
}

/* `was` is what G1 found. */
inline give(segment, slots) {
#ifdef MUTATE
	was = free[segment];
#endif
	atomic { /* G1 */
		touch(segment);
#ifndef MUTATE
		was = free[segment];
#endif
		assert((out[segment] & slots) == slots);
		out[segment] = out[segment] & ~slots;
		free[segment] = was | slots;
		if
#ifdef MUTATE2
		:: true -> was = 0; holder[segment] = _pid
#else
		:: was == 0 -> assert(holder[segment] == NOBODY); holder[segment] = _pid
		:: else
#endif
		fi
	}
	if
	:: was == 0 -> push(segment, segment)
	:: else
	fi;
	was = 0
}

inline take() {
#ifdef MUTATE10
	segment = added;
	if
	:: segment != 0 ->
		others = next[segment];
		atomic {
			if
			:: added == segment -> holder[segment] = _pid; added = others
			:: else -> segment = 0
			fi;
			others = 0
		}
	:: else
	fi
#else
#ifndef MUTATE5
	if
	:: rest != 0 -> atomic { take_all(rest, segment) }
	:: else
	fi;
#endif
	if
	:: segment == 0 && added != 0 -> atomic { take_all(added, segment) }
	:: else
	fi;
	atomic {
		if
		:: segment != 0 && next[segment] != 0 ->
			own(segment);
			others = next[segment];
			put_all(rest, others);
			others = 0
		:: else
		fi
	}
#ifdef MUTATE5
	if
	:: segment == 0 && rest != 0 -> atomic { take_all(rest, segment) }
	:: else
	fi
#endif
#endif
}

proctype owner() {
	byte takes = TAKES, current, cursor, fresh = 1, segment, others, at, head, was, slot;

	do
	:: takes == 0 -> break
	:: takes > 0 && cursor != 0 ->
		atomic {
			slot = (cursor & 1 -> 1 : 2);
			cursor = cursor & ~slot;
			assert((user[current] & slot) == 0);
			touch(current);
			assert(out[current] & slot);
			user[current] = user[current] | slot;
			slot = 0;
			takes--
		}
	:: takes > 0 && cursor == 0 ->
		/* evc_pool_refill. */
		take();
		if
		:: segment != 0 ->
#ifndef MUTATE9
			atomic { own(segment); is_released[segment] = false }
#endif
#ifdef MUTATE3
			cursor = free[segment];
#endif
			atomic { /* G3 */
				own(segment);
#ifndef MUTATE3
				cursor = free[segment];
#endif
				free[segment] = 0;
				holder[segment] = NOBODY;
				assert((out[segment] & cursor) == 0);
				out[segment] = out[segment] | cursor
			}
#ifdef MUTATE9
			atomic {
				assert(holder[segment] == NOBODY);
				is_released[segment] = false
			}
#endif
		:: segment == 0 && fresh <= SEGMENTS ->
			atomic { segment = fresh; fresh++; cursor = ALL_FREE; out[segment] = ALL_FREE }
		:: else -> takes--
		fi;
		atomic {
			assert(segment == 0 || !is_released[segment]);
			current = segment;
			segment = 0
		}
	od;
	if
	:: cursor != 0 -> give(current, cursor)
	:: else
	fi;
	do
	:: fresh > SEGMENTS -> break
	:: else ->
		atomic { free[fresh] = ALL_FREE; is_released[fresh] = true; holder[fresh] = _pid }
		push(fresh, fresh);
		fresh++
	od;
	atomic { has_ended = true; running-- }
}

proctype giver() {
	byte segment, slots, at, head, was;

	do
	:: atomic {
			IS_USED ->
			if
			:: user[1] != 0 -> segment = 1
			:: user[2] != 0 -> segment = 2
#if SEGMENTS > 2
			:: user[3] != 0 -> segment = 3
#endif
			fi;
			if
			:: user[segment] & 1 -> slots = 1
			:: user[segment] & 2 -> slots = 2
			:: user[segment] == 3 -> slots = 3 /* A return cache. */
			fi;
			user[segment] = user[segment] & ~slots
		}
		give(segment, slots);
		atomic { segment = 0; slots = 0 }
	:: atomic { has_ended && !IS_USED -> break }
	od;
	running--
}

proctype trim() {
	byte rounds = TRIMS, first, second, segment, after, kept, last, at, head;

	do
	:: rounds == 0 -> break
	:: rounds > 0 ->
		atomic { take_all(rest, first) }
		atomic { take_all(added, second) }
		atomic { /* join */
			if
			:: first == 0 -> first = second
			:: else ->
				segment = first;
				do
				:: next[segment] == 0 -> break
				:: else -> segment = next[segment]
				od;
				next[segment] = second
			fi;
			second = 0;
			segment = first
		}
		/* count */
		do
		:: segment == 0 -> break
		:: else ->
			atomic {
				own(segment);
				if
#ifdef MUTATE7
				:: true -> held[SLAB(segment - 1)]++
#else
				:: free[segment] == ALL_FREE -> held[SLAB(segment - 1)]++
				:: else
#endif
				fi;
				segment = next[segment]
			}
		od;
		atomic { /* The choice of is_doomed, which is final: less is left for the floor. */
			at = 0;
			do
			:: at == SLABS -> break
			:: at < SLABS ->
				if
#ifdef MUTATE8
				:: held[at] > 0 -> is_doomed[at] = true
#else
				:: held[at] == PER_SLAB -> is_doomed[at] = true
#endif
				:: true
				fi;
				at++
			od;
			at = 0
		}
		/* let_go */
		segment = first;
		do
		:: segment == 0 -> break
		:: else ->
			atomic {
				own(segment);
				after = next[segment];
				if
#ifdef MUTATE7
				:: is_doomed[SLAB(segment - 1)] ->
#else
				:: free[segment] == ALL_FREE && is_doomed[SLAB(segment - 1)] ->
#endif
					assert(out[segment] == 0);
					held[SLAB(segment - 1)]--;
					if
					:: held[SLAB(segment - 1)] == 0 ->
						is_gone[SLAB(segment - 1)] = true;
						/* Each of its segments must have been processed here. */
						at = SLAB(segment - 1) * PER_SLAB + 1;
						do
						:: at > SLAB(segment - 1) * PER_SLAB + PER_SLAB -> break
						:: else ->
							assert(holder[at] == _pid && out[at] == 0);
							at++
						od;
						at = 0
					:: else
					fi
				:: else ->
					if
					:: free[segment] == ALL_FREE ->
						assert(out[segment] == 0);
						is_released[segment] = true
					:: true
					fi;
					if
					:: kept == 0 -> kept = segment
					:: else -> next[last] = segment
					fi;
					last = segment
				fi;
				segment = after
			}
		od;
		atomic {
			if
			:: kept != 0 -> next[last] = 0
			:: else
			fi;
			at = 0;
			do
			:: at == SLABS -> break
			:: else ->
				if
				:: !is_gone[at] -> held[at] = 0; is_doomed[at] = false
				:: else
				fi;
				at++
			od;
			at = 0
		}
		/* evc_segment_list_add */
		if
#ifdef MUTATE6
		:: kept != 0 -> atomic { put_all(rest, kept) }
#else
		:: kept != 0 -> push(kept, last)
#endif
		:: else
		fi;
		atomic { first = 0; after = 0; kept = 0; last = 0; segment = 0; rounds-- }
	od;
	running--
}

init {
	byte segment, at, found;

	atomic {
		run owner();
		run giver();
		run giver();
		run trim()
	}
	atomic {
		running == 0;
		/* Each segment of a slab that was not freed is free, and on one list. */
		take_all(rest, segment);
		take_all(added, segment);
		segment = 1;
		do
		:: segment > SEGMENTS -> break
		:: else ->
			assert(is_gone[SLAB(segment - 1)] || (holder[segment] == _pid && free[segment] == ALL_FREE));
			segment++
		od
	}
}
