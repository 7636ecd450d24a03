/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Which workers sleep, which are looking, and which one a post wakes: two producers with POSTS posts in all, and two workers that
 * take, spin or not, and sleep. With -DRETIRE worker 0 may be told to end at any time; with -DSTUCK the first
 * handler holds its worker up until nothing waits, so that the other one has to come. Sequentially consistent.
 *
 * Models these lines of Sources/CEventCore/shared/shared_mailbox.c, shared_mailbox_wake.c and worker.c, by the names that
 * shared_mailbox_private.h gives them:
 *   evc_shared_mailbox_post   P1  put; P2 load attention; no worker sleeps: done (P3)
 *   evc_shared_wake_one       P4  load looking, > 0: done; load the bits, none: done
 *                             P5  CAS looking 0 -> 1, else done
 *   claim                     P6  clear a bit, attention - 1, wake its worker
 *                             P7  none: looking - 1; has some? P4
 *   begin_spin                    if a worker sleeps: looking + 1
 *   prepare_wait              W1  attention + 1, set the bit; W2 looking - 1 if it is looking
 *   sleep_once                W4  has some? W5 sleep
 *   finish_wait               W6  clear the bit, attention - 1; or it was clear: looking
 *   next                      W7  looking - 1 if it is looking; W8 take; if it was looking or comes from W6, and
 *                                 more waits: P4
 *   evc_worker_leave              looking - 1; has some and a bit is set: P4
 *
 * The lanes are a number of envelopes: shared_queue.pml checks that a look finds what was put before. parker.pml checks sleeping
 * and waking: here a wake-up is a bit that a sleep waits for and a look before it does not lose.
 *
 * Asserted when nothing moves any more: nothing waits, unless all workers have ended; no worker is counted as
 * looking, and the sleepers are counted correctly.
 *
 * Mutations, each seen to fail (assertion violated):
 *   -DMUTATE    P2 before P1: the post misses the sleeper, and the sleeper the post.
 *   -DMUTATE2   without W4: the same.
 *   -DMUTATE3   W2 after W4: the post relies on a look that is past.
 *   -DMUTATE4   without P7's second look: a thread that relied on this producer is forgotten.
 *   -DMUTATE5   (with STUCK) W8 does not wake the next: two envelopes, one wake-up.
 *   -DMUTATE6   (with RETIRE) a worker that ends does not wake another one.
 *   -DMUTATE7   (with STUCK) W8 does not wake the next if W4 found something: a post may have relied on this
 *               worker when it was looking, before W2.
 */
#ifndef POSTS
#define POSTS 2
#endif
#define WORKERS 2

byte lanes = 0, posted = 0;
byte attention = 0, looking = 0;
bool bit_of[WORKERS];
bool woken[WORKERS];
bool ended[WORKERS];
/* Worker 0 has been told to end; a handler that does not return has begun. */
bool told = false, stuck = false;


inline wake_one(again, seen, who) {
	again = true;
	do
	:: !again -> break
	:: else ->
		seen = looking; /* P4 */
		if
		:: seen > 0 -> again = false
		:: else ->
			if
			:: atomic { !bit_of[0] && !bit_of[1] -> again = false }
			:: atomic { bit_of[0] || bit_of[1] -> skip }
				atomic { /* P5 */
					if
					:: looking == 0 -> looking = 1
					:: else -> again = false
					fi
				}
				if
				:: !again
				:: else ->
					who = WORKERS;
					atomic { /* P6: one read-modify-write for each worker's bit */
						if
						:: bit_of[0] -> bit_of[0] = false; who = 0
						:: !bit_of[0] && bit_of[1] -> bit_of[1] = false; who = 1
						:: else
						fi
					}
					if
					:: who < WORKERS ->
						attention--;
						woken[who] = true;
						again = false
					:: else ->
						looking--; /* P7 */
#ifdef MUTATE4
						again = false
#else
						again = (lanes > 0)
#endif
					fi
				fi
			fi
		fi
	od;
	atomic { seen = 0; who = 0 }
}

proctype producer() {
	byte seen, who;
	bool again;

	do
	:: atomic { posted == POSTS -> break }
	:: atomic { posted < POSTS -> posted++ }
#ifdef MUTATE
		seen = attention;
		lanes++;
#else
		/* P1: one or two envelopes, one post (one with RETIRE, which has more states). */
		if
		:: lanes++
#ifndef RETIRE
		:: lanes = lanes + 2
#endif
		fi;
		seen = attention; /* P2 */
#endif
		if
		:: seen > 0 -> wake_one(again, seen, who)
		:: else -> seen = 0
		fi
	od
}

proctype worker(byte me) {
	byte seen, who;
	bool again, is_looking = false, passes_on = false, was_looking, got, news;

	do
	:: true ->
		was_looking = is_looking || passes_on;
		passes_on = false;
		if
		:: is_looking -> looking--; is_looking = false /* W7 */
		:: else
		fi;
#ifdef RETIRE
		if
		:: me == 0 && told -> break
		:: else
		fi;
#endif
		atomic { /* W8 */
			got = (lanes > 0);
			if
			:: got -> lanes--
			:: else
			fi
		}
		if
		:: got ->
#ifndef MUTATE5
			if
			:: was_looking ->
				if
				:: attention > 0 && lanes > 0 -> wake_one(again, seen, who)
				:: else
				fi
			:: else
			fi;
#endif
#ifdef STUCK
			/* The first handler does not return before another worker has taken everything else. */
			if
			:: atomic { stuck -> skip }
			:: atomic { !stuck -> stuck = true }
				lanes == 0 && posted == POSTS
			fi;
#endif
			skip
		:: else ->
			/* Spinning, perhaps. */
			if
			:: skip
			:: attention > 0 -> looking++; is_looking = true
			fi;
			if
			:: lanes > 0 -> goto again_
			:: skip
			fi;
			/* Asleep. */
			woken[me] = false;
			attention++; /* W1 */
			bit_of[me] = true;
#ifndef MUTATE3
			if
			:: is_looking -> looking--; is_looking = false /* W2 */
			:: else
			fi;
#endif
#ifdef MUTATE2
			news = false;
#else
			news = (lanes > 0) || (me == 0 && told); /* W4 */
#endif
#ifdef MUTATE3
			if
			:: is_looking -> looking--; is_looking = false
			:: else
			fi;
#endif
			if
			:: news
			:: else ->
end_asleep:
				woken[me] || (me == 0 && told) /* W5 */
			fi;
			atomic { /* W6 */
				if
				:: bit_of[me] -> bit_of[me] = false; got = true
				:: else -> got = false; is_looking = true
				fi
			}
			if
			:: got -> attention--
			:: else
			fi;
#ifndef MUTATE7
			passes_on = true;
#endif
again_:			skip
		fi;
		atomic { got = false; news = false; was_looking = false }
	od;
	/* evc_worker_leave; it stopped looking above. */
#ifndef MUTATE6
	if
	:: (bit_of[0] || bit_of[1]) && lanes > 0 -> wake_one(again, seen, who)
	:: !((bit_of[0] || bit_of[1]) && lanes > 0)
	fi;
#endif
	ended[me] = true
}

#ifdef RETIRE
proctype master() {
	told = true
}
#endif

proctype monitor() {
	timeout ->
		assert(posted == POSTS);
		assert(lanes == 0);
		assert(looking == 0);
		assert(attention == bit_of[0] + bit_of[1])
}

init {
	atomic {
		run producer();
		run producer();
		run worker(0);
		run worker(1);
#ifdef RETIRE
		run master();
#endif
		run monitor()
	}
}
