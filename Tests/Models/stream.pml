/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Streams: producer 0 posts POSTS events, one by one or two at once, and may take a reservation of two back;
 * producer 1 posts OTHERS, one by one. Segments have 2 slots, and the first of each stream has one left, so
 * that two posts change the segment, and four use one anew. The consumer merges the streams by ticket. It
 * ends an envelope at once, keeps one back for as long as it likes (a stack), or hands one to another thread
 * (evc_envelope_release). Sequentially consistent: what the orders add is argued in stream.h. Two posts and
 * two; and four and one without that other thread (ALONE): four and two with it would take minutes.
 *
 * Models these lines of Sources/CEventCore, by the names of stream.h:
 *   evc_stream_reserve   at the end of the segment: evc_stream_advance; slots are set aside
 *   evc_stream_advance   a segment from the pool, made ready; L  segment->next = it; stand there
 *   evc_stream_withdraw  W  segment->next = NULL; what was added goes back to the pool; stand as before
 *   publish_reserved     P1 ticket = fetch-add of tickets
 *   evc_stream_publish   P2 slot->next = the ticket, slot by slot
 *   look                 C5 load tickets; deal all below
 *   search, evc_stream_peek
 *                        at the end of a segment that has a next one: go there, and count one more for
 *                        the old one; D  a slot that shows the ticket is its post
 *   evc_lanes_put        slot->next = a pointer: the slot shows no ticket any more
 *   evc_stream_end_slot, evc_stream_flush
 *                        count in the cache; tell the segment when another's turn comes, or before sleep
 *   evc_segment_end      ended += count; was it the last: give the segment back
 *
 * Not modelled: depth readers, which only look (mailbox_depth.c), and the pool's lists (pool.pml): here the
 * owner takes any segment that is free.
 *
 * Asserted: each post comes out once, in the order of the tickets; nothing is written to a slot that is in
 * use; no segment is given back that is free already, or while a slot of it is in use, or while its producer or
 * the consumer still refers to it; nobody touches one that was given back; in the end none is lost. A wait
 * for ever is an invalid end state.
 *
 * Mutations, each seen to fail (assertion violated, unless it says otherwise):
 *   -DMUTATE    going past a segment is not counted: it is given back while it is still read or written.
 *   -DMUTATE2   P2 before P1: two producers show the same ticket; it shows first as one that nobody
 *               shows ("invalid end state").
 *   -DMUTATE3   `ended` is set to 0 after L and P2: ends are forgotten.
 *   -DMUTATE4   a slot keeps its ticket from its last use, in another mailbox.
 *   -DMUTATE5   evc_segment_end reads the capacity after it has counted.
 *   -DMUTATE6   without W: the consumer goes past a segment at whose end the producer still stands.
 *   -DMUTATE7   a withdrawal that does not step back: its slots never show a ticket ("invalid end state").
 */
#ifndef POSTS
#define POSTS 2
#endif
#ifndef OTHERS
#define OTHERS 2
#endif
#define ALL (POSTS + OTHERS)
/* Segments 0 to 2 are producer 0's, 3 and 4 producer 1's. */
#define SEGMENTS 5
#define NONE 9
#define FULL 3 /* capacity + 1 */

/* 0: no ticket, else the ticket + 1. */
byte shown[10];
byte next[SEGMENTS] = NONE;
byte ended[SEGMENTS];
byte tickets = 0;
/* The producer's part, and the consumer's, of either stream. */
byte at[2], from[2] = NONE;
byte reading[2], position[2];
/* Ghosts: which event a slot holds (0: not in use), what each ticket stands for, what is free. */
byte holds[10];
byte order[ALL];
bool is_free[SEGMENTS];
bool came[8];
byte dealt = 0, gone = 0;
/* A slot on its way to another thread, + 1. */
byte handed = 0;
bool over = false;

inline give(seg) {
	atomic {
		assert(!is_free[seg]);
		assert(holds[2 * seg] == 0 && holds[2 * seg + 1] == 0);
		assert(seg != at[0] && seg != at[1] && seg != from[0] && seg != from[1]);
		assert(seg != reading[0] && seg != reading[1]);
		is_free[seg] = true;
		/* The pool's link. */
		next[seg] = NONE
	}
}

/* evc_segment_end. */
inline end_segment(seg, count) {
	atomic {
		assert(!is_free[seg]);
		ended[seg] = ended[seg] + count;
#ifdef MUTATE
		last = (ended[seg] == FULL - 1)
#else
		last = (ended[seg] == FULL)
#endif
	}
#ifdef MUTATE5
	assert(!is_free[seg]);
#endif
	if
	:: last -> give(seg); last = false
	:: else
	fi
}

/* evc_stream_advance of stream p; the new segment is `fresh`. */
inline advance(p) {
	atomic {
		if
		:: p == 0 && is_free[0] -> fresh = 0
		:: p == 0 && is_free[1] -> fresh = 1
		:: p == 0 && is_free[2] -> fresh = 2
		:: p == 1 && is_free[4] -> fresh = 4
		fi;
		is_free[fresh] = false;
		next[fresh] = NONE;
#ifndef MUTATE3
		ended[fresh] = 0
#endif
	}
	atomic {
		assert(!is_free[at[p]]);
		next[at[p]] = fresh; /* L */
		at[p] = fresh;
		fresh = NONE;
		slot = 0
	}
}

inline reserve_one(p, which) {
#ifdef MUTATE6
	if
	:: slot == 2 && next[at[p]] != NONE -> atomic { at[p] = next[at[p]]; slot = 0 }
	:: else
	fi;
#endif
	if
	:: slot == 2 -> advance(p)
	:: else
	fi;
	atomic {
		assert(!is_free[at[p]] && holds[2 * at[p] + slot] == 0);
		which = 2 * at[p] + slot;
		if
		:: from[p] == NONE -> from[p] = at[p]
		:: else
		fi;
		slot++
	}
}

/* P1 and P2 for `count` slots. */
inline publish(p, count) {
	atomic {
		holds[first] = event;
		if
		:: count == 2 -> holds[second] = event + 1
		:: else
		fi;
		from[p] = NONE
	}
#ifdef MUTATE2
	ticket = tickets;
	shown[first] = ticket + 1;
#endif
	atomic { /* P1 */
		ticket = tickets;
		order[tickets] = event;
		tickets++;
		if
		:: count == 2 -> order[tickets] = event + 1; tickets++
		:: else
		fi
	}
#ifndef MUTATE2
	shown[first] = ticket + 1; /* P2 */
#endif
	if
	:: count == 2 -> shown[second] = ticket + 2
	:: else
	fi;
#ifdef MUTATE3
	ended[at[p]] = 0;
#endif
	atomic { event = event + count; first = 0; second = 0; ticket = 0 }
}

proctype one_or_two() {
	byte event = 1, slot = 1, first, second, ticket, fresh = NONE, before, added;
	bool withdrew = false;

	do
	:: event > POSTS -> break
	:: event <= POSTS -> reserve_one(0, first); publish(0, 1)
	:: event < POSTS -> reserve_one(0, first); reserve_one(0, second); publish(0, 2)
	:: event <= POSTS && !withdrew ->
		withdrew = true;
		reserve_one(0, first);
		reserve_one(0, second);
		/* evc_stream_withdraw */
#ifdef MUTATE7
		from[0] = NONE;
#else
		before = from[0];
#ifdef MUTATE6
		atomic { at[0] = before; from[0] = NONE; slot = first % 2 };
#else
		atomic { added = next[before]; next[before] = NONE }; /* W */
		atomic { at[0] = before; from[0] = NONE; slot = first % 2 };
		if
		:: added != NONE -> give(added)
		:: else
		fi;
#endif
#endif
		atomic { first = 0; second = 0; before = 0; added = 0 }
	od
}

proctype one_by_one() {
	byte event = POSTS + 1, slot = 1, first, second, ticket, fresh = NONE;

	do
	:: event > ALL -> break
	:: else -> reserve_one(1, first); publish(1, 1)
	od
}

/* Ends a slot: its payload is not looked at any more. */
inline end_use(which) {
	atomic {
		assert(holds[which] != 0);
		holds[which] = 0;
		gone++
	}
}

inline flush() {
	if
	:: counted != 0 ->
		atomic { segment = cached; count = counted; counted = 0; cached = NONE };
		end_segment(segment, count);
		atomic { segment = 0; count = 0 }
	:: else
	fi
}

/* evc_stream_end_slot. */
inline end_slot(which) {
	end_use(which);
	if
	:: which / 2 != cached -> flush(); cached = which / 2
	:: else
	fi;
	counted++
}

proctype consumer() {
	byte known, slot, kept = 0, cached = NONE, counted = 0, segment, count, p;
	bool last;

	do
	:: dealt < tickets ->
		known = tickets; /* C5 */
		do
		:: dealt == known -> break
		:: else ->
			/* search: until one of the streams shows the ticket. */
			do
			:: atomic { position[0] == 2 && next[reading[0]] != NONE -> p = 0 };
				goto past
			:: atomic { position[1] == 2 && next[reading[1]] != NONE -> p = 1 };
past:
				atomic {
					segment = reading[p];
					reading[p] = next[segment];
					position[p] = 0
				}
#ifndef MUTATE
				end_segment(segment, 1);
#endif
				segment = 0
			:: atomic { position[0] < 2 && shown[2 * reading[0] + position[0]] == dealt + 1 ->
				p = 0 };
				break
			:: atomic { position[1] < 2 && shown[2 * reading[1] + position[1]] == dealt + 1 ->
				p = 1 };
				break
			od;
			atomic {
				assert(!is_free[reading[p]]);
				slot = 2 * reading[p] + position[p];
				/* The post that drew this ticket, and for the first time. */
				assert(dealt < tickets && holds[slot] == order[dealt] && holds[slot] != 0);
				assert(!came[holds[slot]]);
				came[holds[slot]] = true;
				position[p]++;
				dealt++;
				shown[slot] = 0
			}
			if
			:: end_slot(slot)
			:: atomic { kept == 0 -> kept = slot + 1 }
#ifndef ALONE
			:: atomic { handed == 0 -> handed = slot + 1 }
#endif
			fi;
			slot = 0
		od;
		known = 0
	:: dealt == tickets && counted != 0 -> flush() /* before sleep */
	:: atomic { kept != 0 -> slot = kept - 1; kept = 0 }; end_slot(slot); slot = 0
	:: dealt == ALL && kept == 0 && counted == 0 -> break
	od;
	over = true
}

/* evc_envelope_release on another thread. */
proctype releaser() {
	byte slot, segment;
	bool last;

	do
	:: atomic { handed != 0 -> slot = handed - 1; handed = 0; segment = slot / 2 };
		end_use(slot);
		end_segment(segment, 1);
		atomic { slot = 0; segment = 0 }
	:: over && handed == 0 -> break
	od
}

init {
	byte i;

	atomic {
		/* One slot of each first segment has been used and ended. */
		at[0] = 0; at[1] = 3;
		reading[0] = 0; reading[1] = 3;
		position[0] = 1; position[1] = 1;
		ended[0] = 1; ended[3] = 1;
		is_free[1] = true; is_free[2] = true; is_free[4] = true;
		ended[1] = FULL; ended[2] = FULL; ended[4] = FULL;
#ifdef MUTATE4
		shown[2] = 2; shown[4] = 2;
#endif
		run one_or_two();
		run one_by_one();
#ifndef ALONE
		run releaser();
#endif
		run consumer()
	}
	_nr_pr == 1 ->
	atomic {
		assert(dealt == ALL && gone == ALL);
		for (i : 0 .. 4) {
#ifdef MUTATE6
			/* What stays linked is not lost by that. */
			assert(is_free[i] || i == at[0] || i == reading[0] || i == next[at[0]] ||
			       i > 2)
#else
			assert(is_free[i] || i == at[0] || i == at[1] || i == reading[0] ||
			       i == reading[1])
#endif
		}
	}
}
