/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The inbox: 2 producers with 2 posts each, one of them a chain of two in its second case (CHAIN), and
 * one consumer. Sequentially consistent: what the release and acquire orders add is argued in inbox.h.
 *
 * Models these lines of Sources/CEventCore/inbox.h:
 *   evc_inbox_post      A  previous = atomic_exchange(&inbox->tail, last)
 *                       B  atomic_store(&previous->next, first)
 *   evc_inbox_has_mail     stub.next != NULL || tail != &stub
 *   evc_inbox_splice       first = evc_inbox_link(&inbox->stub)        (waits for B)
 *                       S  atomic_store(&inbox->stub.next, NULL)
 *                       C  *last = atomic_exchange(&inbox->tail, &inbox->stub)
 *   evc_inbox_link      D  next = atomic_load(&envelope->next)         (waits for B)
 * and evc_chain_append's envelope->next = NULL before a post.
 *
 * Asserted: each post comes out once, in the order of the producers' exchanges, which keeps each
 * producer's own order; and the consumer never waits for ever (no invalid end state).
 *
 * Mutations, each seen to fail:
 *   -DMUTATE    without S: after the second splice the consumer takes up the first list again
 *               ("assertion violated out[k] == order[k]").
 *   -DMUTATE2   S after C: a producer's B in between is wiped out, and the consumer waits for ever
 *               ("invalid end state").
 */
#define N 4          /* posts: 1 and 2 by producer 0, 3 and 4 by producer 1; 0 is the stub */
#define NONE 255

byte next[5] = NONE;
byte tail = 0;
/* Ghost: the order of the exchanges A, and what came out. */
byte order[N];
byte ordered = 0;
byte taken = 0;

inline post(first_, last_) {
	d_step {
		next[last_] = NONE;
		if
		:: first_ != last_ -> next[first_] = last_
		:: else
		fi
	}
	atomic { /* A */
		previous = tail;
		tail = last_;
		order[ordered] = first_;
		ordered++;
		if
		:: first_ != last_ -> order[ordered] = last_; ordered++
		:: else
		fi
	}
	next[previous] = first_ /* B */
}

proctype producer(byte mine) {
	byte previous;
#ifdef CHAIN
	if
	:: post(mine, mine); post(mine + 1, mine + 1)
	:: post(mine, mine + 1)
	fi
#else
	post(mine, mine);
	post(mine + 1, mine + 1)
#endif
}

proctype consumer() {
	byte first, last, current;

	do
	:: taken == N -> break
	:: taken < N ->
		/* has_mail; spinning without mail is no progress, so it is a guard here. */
		(next[0] != NONE || tail != 0);
		(next[0] != NONE);
		first = next[0];
#ifdef MUTATE
		skip;
#else
#ifndef MUTATE2
		next[0] = NONE; /* S */
#endif
#endif
		atomic { last = tail; tail = 0 } /* C */
#ifdef MUTATE2
		next[0] = NONE;
#endif
		current = first;
		do
		:: atomic {
			assert(current != 0 && taken < N);
			assert(order[taken] == current);
			taken++
		   }
		   if
		   :: current == last -> break
		   :: else -> (next[current] != NONE); current = next[current] /* D */
		   fi
		od
	od
	assert(taken == N && tail == 0)
}

init {
	atomic {
		run producer(1);
		run producer(3);
		run consumer()
	}
}
