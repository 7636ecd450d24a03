/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* One file, though long: the thread, the caller who drives, and the shutdown take the same turns. */
/*
 * Frees what was retired (domain.h), after a grace period: on the callback thread, if the program has asked for it
 * (evc_reclaimer_start), or on the thread that calls evc_reclaim, or in evc_shutdown.
 *
 * Why not liburcu's call_rcu: it wakes its thread every 10 ms as long as anything is retired. Here items wait
 * five times as long, in fewer turns (Documentation/Choices.md).
 *
 *   retiring thread                              callback thread
 *   R1 push the item to a list      CAS acq_rel  T1 ticket = evc_parker_prepare
 *   R2 is_pending = true            exchange     T2 not pending? wait without limit, T1 again
 *      was it false?                             T3 begin = now
 *   R3 a megabyte by now?                        T4 ticket; wait until begin + 10 ms if it is a megabyte,
 *   R4 either: evc_parker_wake                      otherwise until begin + 50 ms; woken: T4 again
 *                                                T5 is_pending = false              store
 *                                                T6 take all lists                  exchange acq_rel
 *                                                T7 a grace period; reclaim
 * Operations without an order here are relaxed: T6 and R1 order them. R2 may skip the exchange if it reads
 * true.
 *
 * No item is forgotten. Either it is in its list at T6, or its R1 comes after T6 and acquires it, so that T5
 * happens before its R2. In the second case the flag is true from R2 until the T5 of a turn that finds the
 * item: if the R1 came after the T6 of that turn too, R2 would have read what that T5 stored. T2 sees the
 * flag, or the R4 that belongs to the R2 that found it false ends the wait, and T1 acquires that (parker.c).
 * Tests/Models/reclaimer.pml models these lines, except R3.
 *
 * There are eight lists, so that the next items of all of them are prefetched while one is reclaimed. They
 * come from the caches of other processors; one after the other this was most of a turn (0.6 ms for 2,000).
 *
 * A grace period that begins after T6 covers all items of the turn, since each was unreachable before R1.
 *
 * Progress: retiring is lock-free, except that the first call starts the thread, if one is wanted. If it cannot be
 * started, each call tries again, and items wait until one succeeds.
 *
 * A thread that drives does T5 to T7 when it likes, under `turn`; it does not wait for the mutex. What it leaves when
 * its time is over stays in `due`, with `is_pending` set as after R2, so that the next turn of anyone begins with it.
 *
 * Fork: it waits for `turn`, so that no operation of the core is half done in the child. The thread holds
 * `turn` during a turn, but not while it runs user code (evc_domain_run_user_code). A fork therefore waits
 * for a grace period at most, and never for user code, whatever locks its caller holds. The child has no
 * callback thread; it starts one when it retires something, and that thread begins with the rest of the
 * parent's turn (`due`). What the parent's thread was finalizing at the fork is not finalized in the child.
 * Locks, in this order: `turn`; `starting`, which is held by whoever starts the thread, and by whoever
 * retires something while there is no thread, which is never the case in a reclaim.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "platform/domain.h"

#include "platform/clock.h"
#include "platform/compiler.h"
#include "eventcore/reclaim.h"
#include "platform/own_thread.h"
#include "platform/parker_private.h"

#include <pthread.h>
#include <stdatomic.h>

/* Nanoseconds from the look at the first item to the turn: if there are MANY bytes, and otherwise. */
#define GATHERING UINT64_C(10000000)
#define PATIENCE UINT64_C(50000000)
#define MANY (UINT64_C(1) << 20)

#define LISTS 8u
/* What a turn without time reclaims, so that it gets on. */
#define LEAST 8u

static _Alignas(EVC_CACHE_LINE) _Atomic(struct evc_domain_head *) retired[LISTS];
/* Bytes of the pending items, roughly: limits the memory. */
static _Atomic uint64_t weight;
static _Atomic bool is_pending;
/* When to call `later`; 0 = never. */
static _Atomic uint64_t call_at;
static void (*_Atomic later)(void);
/* Whether the program wants a thread. Relaxed: it orders nothing. */
static _Atomic bool is_wanted;
/* Constant while `is_running`. They change under the mutex `starting`. */
static _Alignas(EVC_CACHE_LINE) struct evc_parker parker;
static pthread_t thread;
static _Atomic bool is_running;
/* Relaxed: the wake and the ticket order it, as what R4 announces. */
static _Atomic bool is_stopping;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
/* Held during a turn, except while user code runs. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool has_turn;
/* The same, but also while user code runs. */
static _Thread_local bool reclaims;
/* Under `turn`: what is still to be reclaimed in it; its grace period is over. */
static struct evc_domain_head *due[LISTS];

/* Reclaims what is due, until the deadline, but LEAST items in any case. Returns whether that was all. */
static bool reclaim_due(uint64_t deadline)
{
	uint64_t count = 0, before;

	do {
		before = count;
		for (unsigned i = 0; i < LISTS; i++) {
			struct evc_domain_head *head = due[i];

			if (head == NULL)
				continue;
			/* It leaves the list first: a child of fork must not repeat it. */
			due[i] = head->next;
			__builtin_prefetch(head->next);
			/* The item must not be touched after this. */
			head->reclaim(head);
			count++;
		}
	} while (count > before && (count < LEAST || deadline == EVC_FOREVER || evc_clock_now() < deadline));
	for (unsigned i = 0; i < LISTS; i++)
		if (due[i] != NULL)
			return false;
	return true;
}

static bool is_any_retired(void)
{
	for (unsigned i = 0; i < LISTS; i++)
		/* Relaxed: what others retire meanwhile may be left to the next turn. */
		if (atomic_load_explicit(&retired[i], memory_order_relaxed) != NULL)
			return true;
	return false;
}

/* T5 to T7, under `turn`. Returns whether everything was reclaimed. */
static bool take_turn(uint64_t deadline)
{
	/* The rest of a turn that was interrupted by a fork or a deadline. */
	bool is_done = reclaim_due(deadline), any = false;

	if (!is_done)
		return false;
	/* Before T5, not after it: a load may miss what an exchange finds. Relaxed: the flag stays as it is. */
	if (!atomic_load_explicit(&is_pending, memory_order_relaxed) && !is_any_retired())
		return true;
	/* T5. Relaxed: T6 releases it. */
	atomic_store_explicit(&is_pending, false, memory_order_relaxed);
	/* Relaxed: an approximate limit. */
	atomic_store_explicit(&weight, 0, memory_order_relaxed);
	for (unsigned i = 0; i < LISTS; i++) {
		/* T6. Release, pairs with R1: T5. Acquire: for ThreadSanitizer, which does not see T7. */
		due[i] = atomic_exchange_explicit(&retired[i], NULL, memory_order_acq_rel);
		any |= due[i] != NULL;
	}
	if (!any)
		return true;
	evc_domain_synchronize();
	is_done = reclaim_due(deadline);
	if (!is_done)
		atomic_store_explicit(&is_pending, true, memory_order_relaxed);
	return is_done;
}

static void begin_turn(void)
{
	pthread_mutex_lock(&turn);
	has_turn = reclaims = true;
}

static void end_turn(void)
{
	has_turn = reclaims = false;
	pthread_mutex_unlock(&turn);
}

/* How long it is until the scheduled call. 0: it is due. */
static uint64_t until_call(void)
{
	/* Relaxed: looked at again below. */
	uint64_t when = atomic_load_explicit(&call_at, memory_order_relaxed);

	return when == 0 ? EVC_FOREVER : evc_clock_left(when);
}

/* Makes the scheduled call if it is due, under `turn`, for the sake of fork. */
static void call_if_due(void)
{
	uint64_t when = atomic_load_explicit(&call_at, memory_order_relaxed);

	/* Acquire, pairs with evc_domain_call_later: `later`. */
	if (when != 0 && until_call() == 0 &&
	    atomic_compare_exchange_strong_explicit(&call_at, &when, 0, memory_order_acquire, memory_order_relaxed))
		atomic_load_explicit(&later, memory_order_relaxed)();
}

void evc_domain_run_user_code(void (*call)(void *context), void *context)
{
	if (!has_turn) {
		call(context);
		return;
	}
	has_turn = false;
	pthread_mutex_unlock(&turn);
	call(context);
	pthread_mutex_lock(&turn);
	has_turn = true;
}

static void *run(void *opaque)
{
	(void)opaque;
	/* Before the first turn, in which a reclaim may retire something: it then starts no thread. */
	atomic_store_explicit(&is_running, true, memory_order_release);
	evc_own_thread_set_name("evc-reclaimer");
	for (;;) {
		uint32_t ticket = evc_parker_prepare(&parker);
		uint64_t begin, age, wait = until_call();

		if (wait == 0) {
			begin_turn();
			call_if_due();
			end_turn();
		}
		if (evc_unlikely(atomic_load_explicit(&is_stopping, memory_order_relaxed)))
			return NULL;
		/* T2. Relaxed, as in T4: T1 acquires what R4 announced. */
		if (!atomic_load_explicit(&is_pending, memory_order_relaxed)) {
			if (wait != 0)
				(void)evc_parker_wait(&parker, ticket, wait);
			continue;
		}
		/* T3, T4. */
		begin = evc_clock_now();
		for (;;) {
			uint64_t limit;

			ticket = evc_parker_prepare(&parker);
			limit = atomic_load_explicit(&weight, memory_order_relaxed) < MANY ? PATIENCE
											   : GATHERING;
			age = evc_clock_now() - begin;
			if (age >= limit || atomic_load_explicit(&is_stopping, memory_order_relaxed))
				break;
			(void)evc_parker_wait(&parker, ticket, limit - age);
		}
		begin_turn();
		(void)take_turn(EVC_FOREVER);
		end_turn();
	}
}

static void before_fork(void)
{
	/* In the thread's order: a reclaim may retire something. */
	pthread_mutex_lock(&turn);
	pthread_mutex_lock(&starting);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&starting);
	pthread_mutex_unlock(&turn);
}

static void after_fork_child(void)
{
	/* The parent's thread, and whatever it was about to do with its parker, do not exist here. */
	atomic_store_explicit(&is_running, false, memory_order_relaxed);
	atomic_store_explicit(&is_stopping, false, memory_order_relaxed);
	parker.ops = NULL;
	/* So that a new thread reclaims what is due; it is started for what is retired or scheduled next. */
	atomic_store_explicit(&is_pending, true, memory_order_relaxed);
	atomic_store_explicit(&call_at, 0, memory_order_relaxed);
	after_fork_parent();
}

static void prepare(void)
{
	/* In this order: a fork waits for the end of a grace period first, by means of `turn`. */
	evc_domain_prepare();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* Starts the thread, unless another call has done so. False if it cannot be started. */
static __attribute__((noinline, cold)) bool start(void)
{
	bool is_there;

	/* First, so that a child of fork is prepared. */
	pthread_once(&prepared, prepare);
	pthread_mutex_lock(&starting);
	is_there = atomic_load_explicit(&is_running, memory_order_relaxed);
	if (!is_there && (parker.ops != NULL || evc_parker_init(&parker, NULL) == EVC_OK)) {
		is_there = evc_background_thread_create(&thread, run);
		if (is_there)
			/* The thread does this too. Release: the parker. */
			atomic_store_explicit(&is_running, true, memory_order_release);
	}
	pthread_mutex_unlock(&starting);
	return is_there;
}

/* R4. */
static void tell(bool is_news)
{
	/* Acquire, pairs with start. */
	if (evc_unlikely(!atomic_load_explicit(&is_running, memory_order_acquire))) {
		/* Pairs with evc_reclaimer_start: this sees that the thread is wanted, or that one what there is to do. */
		atomic_thread_fence(memory_order_seq_cst);
		if (!atomic_load_explicit(&is_wanted, memory_order_relaxed) || !start())
			return;
	}
	if (is_news)
		(void)evc_parker_wake(&parker);
}

void evc_domain_retire(struct evc_domain_head *head, size_t bytes, void (*reclaim)(struct evc_domain_head *))
{
	_Atomic(struct evc_domain_head *) *list = &retired[(uintptr_t)head / EVC_CACHE_LINE % LISTS];
	/* Relaxed: only the item's address is used. */
	struct evc_domain_head *last = atomic_load_explicit(list, memory_order_relaxed);
	uint64_t before;
	bool is_news;

	head->reclaim = reclaim;
	do
		head->next = last;
	/* R1. Release: the item, for T6; acquire: T5 of the turn that has taken what was before it. */
	while (!atomic_compare_exchange_weak_explicit(list, &last, head, memory_order_acq_rel,
						      memory_order_relaxed));
	/* R2. Relaxed: R1 comes before it, R4 after it. */
	is_news = !atomic_load_explicit(&is_pending, memory_order_relaxed) &&
		  !atomic_exchange_explicit(&is_pending, true, memory_order_relaxed);
	/* R3. */
	before = atomic_fetch_add_explicit(&weight, bytes, memory_order_relaxed);
	is_news |= before < MANY && before + bytes >= MANY;
	tell(is_news);
}

void evc_domain_call_later(uint64_t after, void (*call)(void))
{
	uint64_t when = atomic_load_explicit(&call_at, memory_order_relaxed);

	if (when != 0)
		return;
	atomic_store_explicit(&later, call, memory_order_relaxed);
	/* Release, pairs with call_if_due. */
	if (atomic_compare_exchange_strong_explicit(&call_at, &when, evc_clock_after(after), memory_order_release,
						    memory_order_relaxed))
		tell(true);
}

void evc_reclaimer_start(void)
{
	/* Read first: every object of a program may say it. */
	if (atomic_load_explicit(&is_wanted, memory_order_relaxed))
		return;
	atomic_store_explicit(&is_wanted, true, memory_order_relaxed);
	/* Pairs with tell. */
	atomic_thread_fence(memory_order_seq_cst);
	/* `is_pending` alone: what a call of evc_reclaim had no time for. */
	if (atomic_load_explicit(&is_pending, memory_order_relaxed) || is_any_retired() ||
	    atomic_load_explicit(&call_at, memory_order_relaxed) != 0)
		tell(true);
}

enum evc_status evc_reclaim(uint64_t budget)
{
	bool is_done;

	if (reclaims)
		return EVC_NOT_PERMITTED;
	/* A fork waits for this thread, as for the callback thread. */
	pthread_once(&prepared, prepare);
	if (pthread_mutex_trylock(&turn) != 0)
		return EVC_TIMED_OUT;
	has_turn = reclaims = true;
	is_done = take_turn(evc_clock_after(budget));
	call_if_due();
	end_turn();
	if (!is_done)
		tell(true);
	return is_done ? EVC_OK : EVC_TIMED_OUT;
}

bool evc_domain_is_reclaiming(void)
{
	return reclaims;
}

bool evc_domain_stop(void)
{
	bool was_wanted = atomic_exchange_explicit(&is_wanted, false, memory_order_relaxed);
	bool was_running;

	pthread_mutex_lock(&starting);
	was_running = atomic_load_explicit(&is_running, memory_order_relaxed);
	atomic_store_explicit(&is_stopping, was_running, memory_order_relaxed);
	pthread_mutex_unlock(&starting);
	if (!was_running)
		return was_wanted;
	(void)evc_parker_wake(&parker);
	/* Without the mutex: the thread may be in user code, for which a fork does not wait. */
	pthread_join(thread, NULL);
	pthread_mutex_lock(&starting);
	atomic_store_explicit(&is_running, false, memory_order_relaxed);
	atomic_store_explicit(&is_stopping, false, memory_order_relaxed);
	pthread_mutex_unlock(&starting);
	return was_wanted;
}

void evc_domain_reclaim_all(void)
{
	pthread_once(&prepared, prepare);
	begin_turn();
	do
		(void)take_turn(EVC_FOREVER);
	while (is_any_retired());
	end_turn();
}

size_t evc_domain_blocks(void)
{
	return parker.ops != NULL && parker.ops->open != NULL ? 1 : 0;
}

void evc_domain_end(void)
{
	atomic_store_explicit(&call_at, 0, memory_order_relaxed);
	if (parker.ops != NULL)
		evc_parker_close(&parker);
	parker.ops = NULL;
}
#endif
