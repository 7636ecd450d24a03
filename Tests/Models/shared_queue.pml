/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A queue lane of a shared mailbox: two producers that put PUTS in all, the last of them a chain of two with
 * -DCHAIN, and two takers, over segments of two cells. Sequentially consistent.
 *
 * Models these lines of Sources/CEventCore/lanes/shared_queue.h and shared_queue.c:
 *   evc_shared_queue_put      Q1  load lane tail
 *                             Q2  load the segment's hint; pass cells that are filled
 *                             Q3  CAS cell: empty -> chain; store the hint
 *   evc_shared_queue_append   Q4  CAS next: none -> a segment whose first cell is filled
 *                             Q5  CAS lane tail: full -> next
 *   evc_shared_queue_take     T1  load lane head; T2 load segment head; T3 load cell: empty?
 *                             T4  CAS segment head: h -> h + 1
 *                             T5  load the link and the link's link; CAS cell: envelope -> next
 *   evc_shared_queue_advance  T6  load next: none? T7 CAS lane tail, CAS lane head, retire
 *
 * Envelopes are numbers in the order in which their puts take effect, so that the link of e is e + 1, read
 * through `more[e]`: whether e is not the last of its chain. One that was taken may be used again: its link is
 * then arbitrary, which the model assumes at once.
 *
 * Asserted: each take gets the next in that order; a take that finds nothing had nothing to find at its T3 or
 * T6; no thread finds a segment that was retired before it began; everything is taken.
 *
 * Mutations, each seen to fail (assertion violated):
 *   -DMUTATE    the hint is stored one too far: a gap, behind which envelopes stay.
 *   -DMUTATE2   T7 without the tail: a producer finds a retired segment.
 *   -DMUTATE3   T4 without the comparison: an envelope twice.
 *   -DMUTATE4   (with CHAIN) T5 without the comparison: the same.
 */
#ifndef PUTS
#define PUTS 5
#endif
#define CELLS 2
#define SEGMENTS 5
#ifdef CHAIN
#define ALL (PUTS + 1)
#else
#define ALL PUTS
#endif

/* Cell c of segment s is cells[s * CELLS + c]: 0, or an envelope. */
byte cells[10];
byte next_of[SEGMENTS], hint[SEGMENTS], head[SEGMENTS];
bool retired[SEGMENTS];
byte lane_head = 0, lane_tail = 0;
/* Segments that are in use; 0 is the first, and "none" as a next one. */
byte made = 1;
/* Ghosts: puts begun and in effect (as envelopes), takes. */
byte begun = 0, effective = 0, taken = 0;
bool more[ALL + 2];
bool recycled[ALL + 2];

/* The put takes effect: its `n` envelopes get the next numbers. */
inline effect() {
	e = effective + 1;
	more[e] = (n == 2);
	effective = effective + n
}

proctype producer() {
	byte s, c, e, n, spare;
	bool ok;

	do
	:: atomic { begun == PUTS -> break }
	:: atomic {
		begun < PUTS -> begun++;
		n = 1;
#ifdef CHAIN
		if
		:: begun == PUTS -> n = 2
		:: else
		fi;
#endif
		ok = false
	   }
		do
		:: ok -> break
		:: else ->
			atomic { s = lane_tail; assert(!retired[s]) } /* Q1 */
			c = hint[s]; /* Q2 */
			do
			:: ok || c >= CELLS -> break
			:: else ->
				atomic { /* Q3 */
					if
					:: cells[s * CELLS + c] == 0 ->
						effect();
						cells[s * CELLS + c] = e;
						ok = true
					:: else -> c++
					fi
				}
			od;
			if
			:: ok ->
#ifdef MUTATE
				hint[s] = c + 2
#else
				hint[s] = c + 1
#endif
			:: else ->
				/* Q4 */
				atomic {
					if
					:: next_of[s] == 0 ->
						assert(made < SEGMENTS);
						spare = made;
						made++;
						effect();
						cells[spare * CELLS] = e;
						hint[spare] = 1;
						next_of[s] = spare;
						ok = true
					:: else
					fi
				};
				/* Q5 */
				atomic {
					if
					:: lane_tail == s -> lane_tail = next_of[s]
					:: else
					fi
				}
			fi
		od;
		atomic { s = 0; c = 0; e = 0; n = 0; spare = 0; ok = false }
	od
}

proctype taker() {
	byte s, h, v, rest, x;
	bool got, got_more;

	do
	:: atomic { taken == ALL -> break }
	:: atomic { taken < ALL -> s = lane_head; assert(!retired[s]) } /* T1 */
		h = head[s]; /* T2 */
		got = false;
		if
		:: h >= CELLS ->
			atomic { /* T6 */
				x = next_of[s];
				assert(x != 0 || taken == effective)
			};
			if
			:: x == 0
			:: else ->
#ifndef MUTATE2
				atomic { /* T7 */
					if
					:: lane_tail == s -> lane_tail = x
					:: else
					fi
				};
#endif
				atomic {
					if
					:: lane_head == s -> lane_head = x; retired[s] = true
					:: else
					fi
				}
			fi
		:: else ->
			atomic { /* T3 */
				v = cells[s * CELLS + h];
				got_more = more[v] && v != 0;
				assert(v != 0 || taken == effective)
			};
			if
			:: v == 0
			:: v != 0 && !got_more ->
				atomic { /* T4 */
					if
#ifdef MUTATE3
					:: true ->
#else
					:: head[s] == h ->
#endif
						head[s] = h + 1;
						got = true
					:: else
					fi;
					if
					:: got ->
						assert(v == taken + 1);
						taken++;
						recycled[v] = true
					:: else
					fi
				}
			:: v != 0 && got_more ->
				/* T5: the link, which is arbitrary once another taker has taken v. */
				if
				:: recycled[v] -> rest = ALL + 1
				:: else -> rest = v + 1
				fi;
				atomic {
					if
#ifdef MUTATE4
					:: true ->
#else
					:: cells[s * CELLS + h] == v ->
#endif
						cells[s * CELLS + h] = rest;
						assert(v == taken + 1 && rest == v + 1);
						taken++;
						recycled[v] = true
					:: else
					fi
				}
			fi
		fi;
		atomic { s = 0; h = 0; v = 0; rest = 0; x = 0; got = false; got_more = false }
	od
}

init {
	atomic {
		run producer();
		run producer();
		run taker();
		run taker()
	}
}
