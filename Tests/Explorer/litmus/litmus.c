/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Does the engine simulate C11? Small programs whose outcomes the standard defines, under their names in the
 * literature. Each outcome must be found, and no other.
 *
 * Not here: load buffering (LB), whose surprising outcome the engine leaves out (engine/memory.c).
 */
#include "explorer.h"

static _Atomic int x, y, z;
static int plain;
static int r[8];

static void run(unsigned count, void *(*const *functions)(void *))
{
	pthread_t threads[4];

	for (unsigned i = 0; i < count; i++)
		threads[i] = explorer_start(functions[i], NULL);
	for (unsigned i = 0; i < count; i++)
		explorer_join(threads[i]);
}

#define STORE(object, value, order) atomic_store_explicit(&(object), value, memory_order_##order)
#define LOAD(object, order) atomic_load_explicit(&(object), memory_order_##order)
#define ADD(object, order) atomic_fetch_add_explicit(&(object), 1, memory_order_##order)
#define FENCE(order) atomic_thread_fence(memory_order_##order)

/* A thread of a litmus test, and a test of two, three or four of them. */
#define THREAD(name, ...)                                                                          \
	static void *name(void *unused)                                                            \
	{                                                                                          \
		(void)unused;                                                                      \
		__VA_ARGS__;                                                                       \
		return NULL;                                                                       \
	}
#define RUN(...)                                                                                   \
	do {                                                                                       \
		void *(*const functions[])(void *) = { __VA_ARGS__ };                              \
		run(sizeof(functions) / sizeof(*functions), functions);                            \
	} while (0)

/* Store buffering. */
#define STORE_BUFFERING(name, store, load, between, outcomes)                                      \
	THREAD(name##_1, STORE(x, 1, store); between; r[0] = LOAD(y, load))                        \
	THREAD(name##_2, STORE(y, 1, store); between; r[1] = LOAD(x, load))                        \
	LITMUS(name, outcomes)                                                                     \
	{                                                                                          \
		RUN(name##_1, name##_2);                                                           \
		explorer_outcome("%d,%d", r[0], r[1]);                                             \
	}
#define NOTHING ((void)0)
STORE_BUFFERING(sb_relaxed, relaxed, relaxed, NOTHING, "0,0 0,1 1,0 1,1")
STORE_BUFFERING(sb_acquire_release, release, acquire, NOTHING, "0,0 0,1 1,0 1,1")
STORE_BUFFERING(sb_seq_cst, seq_cst, seq_cst, NOTHING, "0,1 1,0 1,1")
STORE_BUFFERING(sb_store_seq_cst_alone, seq_cst, acquire, NOTHING, "0,0 0,1 1,0 1,1")
STORE_BUFFERING(sb_fences, relaxed, relaxed, FENCE(seq_cst), "0,1 1,0 1,1")
STORE_BUFFERING(sb_fences_acq_rel, relaxed, relaxed, FENCE(acq_rel), "0,0 0,1 1,0 1,1")

/* A seq_cst read-modify-write is no fence for weaker operations around it. */
THREAD(sb_rmw_1, STORE(x, 1, relaxed); ADD(z, seq_cst); r[0] = LOAD(y, relaxed))
THREAD(sb_rmw_2, STORE(y, 1, relaxed); FENCE(seq_cst); r[1] = LOAD(x, relaxed))
LITMUS(sb_exchange_is_no_fence, "0,0 0,1 1,0 1,1")
{
	RUN(sb_rmw_1, sb_rmw_2);
	explorer_outcome("%d,%d", r[0], r[1]);
}

/* One side with seq_cst operations, the other with a fence (P0668). */
THREAD(sb_mixed_1, STORE(x, 1, seq_cst); r[0] = LOAD(y, seq_cst))
THREAD(sb_mixed_2, STORE(y, 1, relaxed); FENCE(seq_cst); r[1] = LOAD(x, relaxed))
LITMUS(sb_operations_against_fence, "0,1 1,0 1,1")
{
	RUN(sb_mixed_1, sb_mixed_2);
	explorer_outcome("%d,%d", r[0], r[1]);
}

/* Message passing: r[0] the flag, r[1] the message. */
#define MESSAGE_PASSING(name, before, store, load, after, outcomes)                                \
	THREAD(name##_1, STORE(x, 1, relaxed); before; STORE(y, 1, store))                         \
	THREAD(name##_2, r[0] = LOAD(y, load); after; r[1] = LOAD(x, relaxed))                     \
	LITMUS(name, outcomes)                                                                     \
	{                                                                                          \
		RUN(name##_1, name##_2);                                                           \
		explorer_outcome("%d,%d", r[0], r[1]);                                             \
	}
MESSAGE_PASSING(mp_release_acquire, NOTHING, release, acquire, NOTHING, "0,0 0,1 1,1")
MESSAGE_PASSING(mp_relaxed, NOTHING, relaxed, relaxed, NOTHING, "0,0 0,1 1,0 1,1")
MESSAGE_PASSING(mp_store_relaxed, NOTHING, relaxed, acquire, NOTHING, "0,0 0,1 1,0 1,1")
MESSAGE_PASSING(mp_load_relaxed, NOTHING, release, relaxed, NOTHING, "0,0 0,1 1,0 1,1")
MESSAGE_PASSING(mp_seq_cst_store_relaxed_load, NOTHING, seq_cst, relaxed, NOTHING, "0,0 0,1 1,0 1,1")
MESSAGE_PASSING(mp_fences, FENCE(release), relaxed, relaxed, FENCE(acquire), "0,0 0,1 1,1")
MESSAGE_PASSING(mp_fence_and_acquire, FENCE(release), relaxed, acquire, NOTHING, "0,0 0,1 1,1")
MESSAGE_PASSING(mp_release_and_fence, NOTHING, release, relaxed, FENCE(acquire), "0,0 0,1 1,1")
MESSAGE_PASSING(mp_fence_before_alone, FENCE(release), relaxed, relaxed, NOTHING, "0,0 0,1 1,0 1,1")
MESSAGE_PASSING(mp_wrong_fence, FENCE(acquire), relaxed, relaxed, FENCE(acquire), "0,0 0,1 1,0 1,1")
MESSAGE_PASSING(mp_fences_seq_cst, FENCE(seq_cst), relaxed, relaxed, FENCE(seq_cst), "0,0 0,1 1,1")

/* The message is not an atomic object: a race, unless it is passed by the flag. */
#define PLAIN_MESSAGE(name, store, load, outcomes)                                                 \
	THREAD(name##_1, plain = 1; STORE(y, 1, store))                                            \
	THREAD(name##_2, r[0] = LOAD(y, load); r[1] = r[0] ? plain : -1)                           \
	LITMUS(name, outcomes)                                                                     \
	{                                                                                          \
		RUN(name##_1, name##_2);                                                           \
		explorer_outcome("%d,%d", r[0], r[1]);                                             \
	}
PLAIN_MESSAGE(mp_plain, release, acquire, "0,-1 1,1")
PLAIN_MESSAGE(mp_plain_store_relaxed, relaxed, acquire, "! data race")
PLAIN_MESSAGE(mp_plain_load_relaxed, release, relaxed, "! data race")

/* Release sequences: a read-modify-write of another thread continues one, a store of any thread ends it. */
THREAD(rs_1, STORE(x, 1, relaxed); STORE(y, 1, release))
THREAD(rs_2, ADD(y, relaxed))
THREAD(rs_3, r[0] = LOAD(y, acquire); r[1] = LOAD(x, relaxed))
LITMUS(release_sequence_modify, "0,0 0,1 1,0 1,1 2,1")
{
	RUN(rs_1, rs_2, rs_3);
	explorer_outcome("%d,%d", r[0], r[1]);
}

THREAD(rs_own_1, STORE(x, 1, relaxed); STORE(y, 1, release); STORE(y, 2, relaxed))
LITMUS(release_sequence_ends_at_store, "0,0 0,1 1,1 2,0 2,1")
{
	RUN(rs_own_1, rs_3);
	explorer_outcome("%d,%d", r[0], r[1]);
}

/* Independent reads of independent writes. */
#define INDEPENDENT(name, store, load, between, outcomes)                                          \
	THREAD(name##_1, STORE(x, 1, store))                                                       \
	THREAD(name##_2, STORE(y, 1, store))                                                       \
	THREAD(name##_3, r[0] = LOAD(x, load); between; r[1] = LOAD(y, load))                      \
	THREAD(name##_4, r[2] = LOAD(y, load); between; r[3] = LOAD(x, load))                      \
	LITMUS(name, outcomes)                                                                     \
	{                                                                                          \
		RUN(name##_1, name##_2, name##_3, name##_4);                                       \
		explorer_outcome("%d%d%d%d", r[0], r[1], r[2], r[3]);                              \
	}
#define ALL_BUT_IRIW                                                                               \
	"0000 0001 0010 0011 0100 0101 0110 0111 1000 1001 1011 1100 1101 1110 1111"
INDEPENDENT(iriw_acquire, release, acquire, NOTHING, ALL_BUT_IRIW " 1010")
INDEPENDENT(iriw_seq_cst, seq_cst, seq_cst, NOTHING, ALL_BUT_IRIW)
INDEPENDENT(iriw_fences, relaxed, relaxed, FENCE(seq_cst), ALL_BUT_IRIW)

/* Coherence: two reads, and a read after a write. */
THREAD(corr_1, STORE(x, 1, relaxed); STORE(x, 2, relaxed))
THREAD(corr_2, r[0] = LOAD(x, relaxed); r[1] = LOAD(x, relaxed))
LITMUS(corr, "0,0 0,1 0,2 1,1 1,2 2,2")
{
	RUN(corr_1, corr_2);
	explorer_outcome("%d,%d", r[0], r[1]);
}

THREAD(cowr_1, STORE(x, 1, relaxed); r[0] = LOAD(x, relaxed))
THREAD(cowr_2, STORE(x, 2, relaxed); r[1] = LOAD(x, relaxed))
LITMUS(cowr, "1,2 2,2 1,1")
{
	RUN(cowr_1, cowr_2);
	explorer_outcome("%d,%d", r[0], r[1]);
}

/* Two stores to each of two objects. */
#define TWO_PLUS_TWO(name, order, between, outcomes)                                               \
	THREAD(name##_1, STORE(x, 1, order); between; STORE(y, 2, order))                          \
	THREAD(name##_2, STORE(y, 1, order); between; STORE(x, 2, order))                          \
	LITMUS(name, outcomes)                                                                     \
	{                                                                                          \
		RUN(name##_1, name##_2);                                                           \
		explorer_outcome("%d,%d", LOAD(x, relaxed), LOAD(y, relaxed));                     \
	}
TWO_PLUS_TWO(two_plus_two_relaxed, relaxed, NOTHING, "1,1 1,2 2,1 2,2")
TWO_PLUS_TWO(two_plus_two_release, release, NOTHING, "1,1 1,2 2,1 2,2")
TWO_PLUS_TWO(two_plus_two_seq_cst, seq_cst, NOTHING, "1,2 2,1 2,2")
TWO_PLUS_TWO(two_plus_two_fences, relaxed, FENCE(seq_cst), "1,2 2,1 2,2")

/* A store between two others: R, and S of the literature. */
THREAD(r_1, STORE(x, 1, relaxed); FENCE(seq_cst); STORE(y, 1, relaxed))
THREAD(r_2, STORE(y, 2, relaxed); FENCE(seq_cst); r[0] = LOAD(x, relaxed))
LITMUS(r_fences, "1,0 1,1 2,1")
{
	RUN(r_1, r_2);
	explorer_outcome("%d,%d", LOAD(y, relaxed), r[0]);
}

THREAD(r_relaxed_1, STORE(x, 1, relaxed); STORE(y, 1, relaxed))
THREAD(r_relaxed_2, STORE(y, 2, relaxed); r[0] = LOAD(x, relaxed))
LITMUS(r_relaxed, "1,0 1,1 2,0 2,1")
{
	RUN(r_relaxed_1, r_relaxed_2);
	explorer_outcome("%d,%d", LOAD(y, relaxed), r[0]);
}

THREAD(s_1, STORE(x, 2, relaxed); STORE(y, 1, release))
THREAD(s_2, r[0] = LOAD(y, acquire); STORE(x, 1, relaxed))
LITMUS(s_acquire, "0,1 0,2 1,1")
{
	RUN(s_1, s_2);
	explorer_outcome("%d,%d", r[0], LOAD(x, relaxed));
}

/* Happens-before is transitive: write to read causality. */
THREAD(wrc_1, STORE(x, 1, relaxed); STORE(y, 1, release))
THREAD(wrc_2, r[0] = LOAD(y, acquire); if (r[0] != 0) STORE(z, 1, release))
THREAD(wrc_3, r[1] = LOAD(z, acquire); r[2] = r[1] ? LOAD(x, relaxed) : 9)
LITMUS(wrc, "0,0,9 1,0,9 1,1,1")
{
	RUN(wrc_1, wrc_2, wrc_3);
	explorer_outcome("%d,%d,%d", r[0], r[1], r[2]);
}

/* Read-modify-writes: none is lost, and one of two is first. */
THREAD(rmw_1, r[0] = ADD(x, relaxed))
THREAD(rmw_2, r[1] = ADD(x, relaxed))
LITMUS(modify_is_atomic, "0,1,2 1,0,2")
{
	RUN(rmw_1, rmw_2);
	explorer_outcome("%d,%d,%d", r[0], r[1], LOAD(x, relaxed));
}

/* With a store of another thread between them, or before both, or behind both: no two read the same. */
THREAD(rmw_3, STORE(x, 5, relaxed))
LITMUS(modify_is_atomic_beside_store, "0,1,5 0,5,6 1,0,5 5,0,6 5,6,7 6,5,7")
{
	RUN(rmw_1, rmw_2, rmw_3);
	explorer_outcome("%d,%d,%d", r[0], r[1], LOAD(x, relaxed));
}

/* A read-modify-write need not read the newest store, unless something orders it: message passing to one. */
#define MODIFY_PASSING(name, store, load, modify, outcomes)                                        \
	THREAD(name##_1, STORE(x, 1, relaxed); STORE(y, 1, store))                                 \
	THREAD(name##_2, r[0] = LOAD(y, load); r[1] = modify)                                      \
	LITMUS(name, outcomes)                                                                     \
	{                                                                                          \
		RUN(name##_1, name##_2);                                                           \
		explorer_outcome("%d,%d,%d", r[0], r[1], LOAD(x, relaxed));                        \
	}
MODIFY_PASSING(mp_modify, release, acquire, ADD(x, relaxed), "0,0,1 0,1,2 1,1,2")
MODIFY_PASSING(mp_modify_store_relaxed, relaxed, acquire, ADD(x, seq_cst), "0,0,1 0,1,2 1,0,1 1,1,2")
MODIFY_PASSING(mp_modify_load_relaxed, release, relaxed, ADD(x, acq_rel), "0,0,1 0,1,2 1,0,1 1,1,2")

/* A weak compare-and-swap that fails for no reason may read a store that it could not replace. */
static int compare_weakly_with_0(void)
{
	int expected = 0;

	return atomic_compare_exchange_weak_explicit(&x, &expected, 5, memory_order_relaxed, memory_order_relaxed)
		       ? 9
		       : expected;
}
THREAD(weak_1, ADD(x, relaxed); STORE(y, 1, relaxed))
THREAD(weak_2, r[0] = LOAD(y, relaxed); r[1] = compare_weakly_with_0())
LITMUS(compare_weakly, "0,0,1 0,1,1 0,9,6 1,0,1 1,1,1")
{
	RUN(weak_1, weak_2);
	explorer_outcome("%d,%d,%d", r[0], r[1], LOAD(x, relaxed));
}

/* Nor need a compare-and-swap that succeeds. */
static int compare_with_0(void)
{
	int expected = 0;

	return atomic_compare_exchange_strong_explicit(&x, &expected, 2, memory_order_relaxed, memory_order_relaxed);
}

MODIFY_PASSING(mp_compare, release, acquire, compare_with_0(), "0,0,1 0,1,1 1,0,1")
MODIFY_PASSING(mp_compare_relaxed, relaxed, relaxed, compare_with_0(), "0,0,1 0,1,1 1,0,1 1,1,1")

/* Store buffering where read-modify-writes take the place of the loads. */
#define MODIFY_BUFFERING(name, store, modify, between, outcomes)                                   \
	THREAD(name##_1, STORE(x, 1, store); between; r[0] = ADD(y, modify))                       \
	THREAD(name##_2, STORE(y, 1, store); between; r[1] = ADD(x, modify))                       \
	LITMUS(name, outcomes)                                                                     \
	{                                                                                          \
		RUN(name##_1, name##_2);                                                           \
		explorer_outcome("%d,%d", r[0], r[1]);                                             \
	}
MODIFY_BUFFERING(sb_modify_acq_rel, release, acq_rel, NOTHING, "0,0 0,1 1,0 1,1")
MODIFY_BUFFERING(sb_modify_seq_cst, seq_cst, seq_cst, NOTHING, "0,1 1,0 1,1")
MODIFY_BUFFERING(sb_modify_seq_cst_alone, release, seq_cst, NOTHING, "0,0 0,1 1,0 1,1")
MODIFY_BUFFERING(sb_modify_fences, relaxed, relaxed, FENCE(seq_cst), "0,1 1,0 1,1")

/* A thread's own store is before its read-modify-write, and that before its load. */
THREAD(own_1, STORE(x, 1, relaxed); r[0] = ADD(x, relaxed); r[1] = LOAD(x, relaxed))
LITMUS(modify_own, "1,2 1,5 5,6")
{
	RUN(own_1, rmw_3);
	explorer_outcome("%d,%d", r[0], r[1]);
}

/* A release sequence goes on to a read-modify-write of its last store, and not past the next store. */
THREAD(rs_two_1, STORE(x, 1, relaxed); STORE(y, 10, release); STORE(y, 20, relaxed))
LITMUS(release_sequence_modify_between, "0,0 0,1 1,0 1,1 10,1 11,1 20,0 20,1 21,0 21,1")
{
	RUN(rs_two_1, rs_2, rs_3);
	explorer_outcome("%d,%d", r[0], r[1]);
}

/* A weak compare-and-swap may fail without a reason, a strong one only if it finds another value. */
static void compare(bool weak)
{
	int expected = 0;
	bool done = weak ? atomic_compare_exchange_weak_explicit(&x, &expected, 1, memory_order_relaxed,
								 memory_order_relaxed)
			 : atomic_compare_exchange_strong_explicit(&x, &expected, 1, memory_order_relaxed,
								   memory_order_relaxed);

	explorer_outcome("%d,%d", done, expected);
}

LITMUS(compare_weak, "0,0 1,0")
{
	compare(true);
}

LITMUS(compare_strong, "1,0")
{
	compare(false);
}

/* A failing one is a load, also of a store that is not the newest. */
THREAD(cas_1, STORE(x, 1, relaxed); STORE(x, 2, relaxed))
THREAD(cas_2, int expected = 2; r[0] = atomic_compare_exchange_strong_explicit(
				       &x, &expected, 3, memory_order_relaxed, memory_order_relaxed);
       r[1] = expected)
LITMUS(compare_reads_old, "0,0 0,1 1,2")
{
	RUN(cas_1, cas_2);
	explorer_outcome("%d,%d", r[0], r[1]);
}

/* A mutex orders, and one thread waits for the other. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter;
THREAD(mutex_1, pthread_mutex_lock(&mutex); r[0] = counter++; pthread_mutex_unlock(&mutex))
THREAD(mutex_2, pthread_mutex_lock(&mutex); r[1] = counter++; pthread_mutex_unlock(&mutex))
LITMUS(mutex_excludes, "0,1 1,0")
{
	RUN(mutex_1, mutex_2);
	explorer_outcome("%d,%d", r[0], r[1]);
}

/* The compiler's builtins behave in the same way. */
static int with_builtins;

static void *add_with_builtins(void *unused)
{
	(void)__sync_fetch_and_add(&with_builtins, 1);
	return unused;
}

LITMUS(builtins, "1 2")
{
	pthread_t thread = explorer_start(add_with_builtins, NULL);
	int seen = __atomic_add_fetch(&with_builtins, 1, __ATOMIC_RELAXED);

	explorer_join(thread);
	CHECK(__atomic_load_n(&with_builtins, __ATOMIC_RELAXED) == 2);
	explorer_outcome("%d", seen);
}
