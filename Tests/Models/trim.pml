/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * When memory goes back: the requests for a trim. The owner of a slab pool takes TAKES times and ends, two givers give
 * everything back, and the callback thread trims whenever that is scheduled. SEGMENTS segments of two slots, of which
 * the floor is one. Sequentially consistent. The lists are sets here: slab.pml has how they are linked.
 *
 * Models these lines of Sources/CEventCore/memory/slab.c and slab_trim.c:
 *   evc_pool_grow             the bytes; surplus + 1; arm
 *   evc_segment_give          G1; list, if nothing was free; then evc_pool_note_return: if surplus != 0, arm
 *   evc_pool_refill           all lists are taken, and all but one segment put back; G3; taken
 *   evc_pool_trim             not scheduled any more; before = surplus; a pool of no more than the floor is left alone,
 *                             as is one that was busy; else its lists are taken, what is free beyond the floor goes,
 *                             the others are listed again; surplus from before to 0, if no more than the floor is left;
 *                             if it was busy, arm
 *
 * Asserted, when all is given back and nothing is scheduled: no more than the floor is left. And that comes: there are
 * only so many trims as the owner and the givers account for, so that an idle program has no timer.
 *
 * Mutations, each seen to fail (assertion violated):
 *   -DMUTATE    the trim sets surplus to 0 whatever has grown meanwhile.
 *   -DMUTATE2   a giver asks for the trim before it lists.
 *   -DMUTATE3   a trim that finds the pool busy asks for no other one.
 *   -DMUTATE4   a trim is scheduled until its end.
 *   -DMUTATE5   a giver asks only when it lists, and not when the last slot of a listed segment comes back.
 *   -DMUTATE6   surplus grows before the bytes do.
 *   -DMUTATE7   a trim that finds more than the floor asks for another one, for ever.
 */
#ifndef SEGMENTS
#define SEGMENTS 3
#endif
#ifndef TAKES
#define TAKES 4
#endif
#define FLOOR 1
#define SLOTS 2
/* One for each growth, each segment that fills up or is listed, each time that the pool was busy, and the end. */
#define MOST_TRIMS (5 * TAKES + 1)

byte bytes = 0; /* In segments. */
byte surplus = 0;
bool taken = false;
bool is_scheduled = false;
byte free[SEGMENTS];
bool is_listed[SEGMENTS];
bool is_released[SEGMENTS];
/* What the owner has taken and the givers have not given back yet. */
byte in_use[SEGMENTS];
bool has_ended = false;
/* Ghost. */
byte trims = 0;

inline arm() { is_scheduled = true }

inline grow() {
#ifdef MUTATE6
	surplus++;
	bytes++;
#else
	bytes++;
	surplus++;
#endif
	arm()
}

inline note_return() {
	if
	:: surplus != 0 -> arm()
	:: else
	fi
}

inline list(which) {
	assert(!is_listed[which]);
	is_listed[which] = true
}

/* SLOTS or fewer of a segment. `before` and `after` are the caller's. */
inline give(which, slots) {
	atomic { /* G1 */
		before = free[which];
		free[which] = free[which] + slots;
		after = free[which];
		assert(after <= SLOTS)
	}
#ifdef MUTATE2
	if
	:: before == 0 || after == SLOTS -> note_return()
	:: else
	fi;
#endif
	if
	:: before == 0 -> list(which)
	:: else
	fi;
#ifndef MUTATE2
	if
#ifdef MUTATE5
	:: before == 0 -> note_return()
#else
	:: before == 0 || after == SLOTS -> note_return()
#endif
	:: else
	fi
#endif
}

proctype owner() {
	byte takes = 0, cursor = 0, current = 0, fresh = 0, before, after, i;
	bool mine[SEGMENTS];
	bool found;

	do
	:: takes == TAKES -> break
	:: else ->
		if
		:: cursor > 0
		:: else ->
			atomic { /* take */
				found = false;
				for (i : 0 .. SEGMENTS - 1) {
					mine[i] = is_listed[i];
					is_listed[i] = false;
					if
					:: mine[i] && !found -> found = true; current = i; mine[i] = false
					:: else
					fi
				}
			}
			atomic { /* The others stay for the trim. */
				for (i : 0 .. SEGMENTS - 1) {
					if
					:: mine[i] -> list(i); mine[i] = false
					:: else
					fi
				}
			}
			if
			:: found && is_released[current] -> is_released[current] = false; grow()
			:: found && !is_released[current]
			:: !found && fresh < SEGMENTS -> current = fresh; fresh++; grow(); free[current] = SLOTS
			:: !found && fresh == SEGMENTS -> goto out_of_memory
			fi;
			atomic { cursor = free[current]; free[current] = 0 } /* G3 */
			taken = true
		fi;
		cursor--;
		takes++;
		in_use[current]++
	od;
out_of_memory:
	/* evc_cursor_end, and the end of the thread. */
	if
	:: cursor > 0 -> give(current, cursor)
	:: else
	fi;
	has_ended = true
}

proctype giver() {
	byte which, before, after, i;

	do
	:: has_ended && in_use[0] == 0 && in_use[1] == 0 && in_use[2] == 0 -> break
	:: atomic { in_use[0] > 0 -> in_use[0]--; which = 0 } give(which, 1)
	:: atomic { in_use[1] > 0 -> in_use[1]--; which = 1 } give(which, 1)
	:: atomic { in_use[2] > 0 -> in_use[2]--; which = 2 } give(which, 1)
	od
}

proctype callback() {
	byte before, free_bytes, i;
	bool held[SEGMENTS];
	bool is_small, is_busy, has_surplus;

end:
	do
	:: atomic {
		is_scheduled ->
		trims++;
		assert(trims <= MOST_TRIMS);
#ifndef MUTATE4
		is_scheduled = false;
#endif
		before = surplus
	}
		is_small = bytes <= FLOOR;
		is_busy = false;
		if
		:: is_small
		:: else -> atomic { is_busy = taken; taken = false }
		fi;
		if
		:: is_small || is_busy
		:: else ->
			atomic {
				free_bytes = 0;
				for (i : 0 .. SEGMENTS - 1) { held[i] = is_listed[i]; is_listed[i] = false }
			}
			for (i : 0 .. SEGMENTS - 1) {
				if
				:: held[i] && free[i] == SLOTS && !is_released[i] -> free_bytes++
				:: else
				fi
			}
			for (i : 0 .. SEGMENTS - 1) {
				if
				:: held[i] && free[i] == SLOTS && !is_released[i] && free_bytes > FLOOR ->
					d_step { is_released[i] = true; bytes--; free_bytes-- }
				:: else
				fi
			}
			atomic {
				for (i : 0 .. SEGMENTS - 1) {
					if
					:: held[i] -> list(i); held[i] = false
					:: else
					fi
				}
			}
		fi;
		has_surplus = bytes > FLOOR;
		if
		:: !has_surplus ->
#ifdef MUTATE
			surplus = 0
#else
			d_step {
				if
				:: surplus == before -> surplus = 0
				:: else
				fi
			}
#endif
		:: else
		fi;
		if
#ifdef MUTATE7
		:: has_surplus -> arm()
#endif
#ifndef MUTATE3
		:: is_busy -> arm()
#endif
		:: else
		fi
#ifdef MUTATE4
		;
		is_scheduled = false
#endif
	od
}

/* All have ended but the callback thread, which waits. */
proctype rest() {
	timeout ->
	assert(has_ended && !is_scheduled);
	assert(bytes <= FLOOR)
}

init {
	atomic {
		run owner();
		run giver();
		run giver();
		run callback();
		run rest()
	}
}
