/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The callback thread: frees what was retired (domain.h), after a grace period.
 *
 * Why not liburcu's call_rcu: it wakes its thread every 10 ms as long as anything is retired, and a turn
 * (two barriers on all processors, the callbacks of 10 ms) takes 100 us of a processor. In a program
 * that keeps all of them busy, that made the 99th percentile of a stream of events while somebody
 * subscribes. What may wait, which is the snapshots of routers and balancers, waits five times as long here, in
 * fewer turns (Benchmarks/README.md, "Choices").
 *
 *   whoever retires                               the thread
 *   R1 push the item to its list    CAS acq_rel   T1 ticket = evc_parker_prepare
 *   R2 its flag = true: `is_urgent`, exchange     T2 no flag? wait without limit, T1 again
 *      or `is_patient`                            T3 begin = now
 *      was it false?                              T4 ticket; if urgent or many, wait until begin + 10 ms,
 *   R3 patient: a megabyte by now?                   otherwise until begin + 50 ms; woken: T4 again
 *   R4 any of these: evc_parker_wake              T5 both flags = false             store
 *                                                 T6 take all lists, the urgent one first   exchange acq_rel
 *                                                 T7 a grace period; reclaim, the urgent ones last
 * What has no order here is relaxed: T6 and R1 order it. R2 may leave out the exchange if it reads true.
 *
 * Nothing is forgotten: an item is there at T6, or its R1 comes after that and acquires it, so that T5 happens before
 * its R2. Then its flag is true from R2 on, until the T5 of a turn which finds it: if the R1 came after the T6 of that
 * turn too, R2 would not have read what its T5 replaced. And T2 sees the flag, or the R4 of the R2 which found
 * it false ends the wait, and T1 acquires that (parker.c). And what is urgent does not wait for what is patient: of
 * such an item R2 comes before the T5 of its turn, and T4 sees it (R4), or after, and then it waits for nothing: T6
 * has taken it. (The flag is true too early for the next turn then, which is no harm.)
 * Tests/Models/reclaimer.pml models these lines, but for R3.
 *
 * An urgent item comes after all that was retired before it: that was in its list at T6, since the R1 of the
 * urgent one happens before the T6 that takes it, and that before the others.
 *
 * Patient items lie in eight lists, so that the next ones of all are fetched while one is reclaimed: they come
 * from the caches of other processors, and one by one that was most of a turn (0.6 ms of 2,000).
 *
 * A grace period that begins after T6 covers all items of the turn, each of which was out of reach before R1.
 *
 * Progress: retiring is lock-free, but that the first has to start the thread. If that cannot be, each tries
 * again, and items wait until one can.
 *
 * Fork: it waits for `turn`, so that in the child nothing of the core is half done. The thread has that during a
 * turn, but not while it runs a user's code (evc_domain_run_user_code): so fork waits for a grace period at most,
 * and for nothing of the user's, whatever locks its caller has. The child has no thread, and starts one when it
 * retires something, which begins with what was left of the parent's turn (`due`); what the parent's thread was
 * ending at the fork is not ended there. Locks, in this order: `turn`; `starting`, which whoever starts the thread
 * has, and whoever retires something if there is none: in a reclaim there is.
 */
#ifdef EVC_URCU
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "platform/domain.h"

#include "platform/clock.h"
#include "platform/compiler.h"
#include "eventcore/base.h"
#include "platform/parker_private.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* Nanoseconds from the thread's look at the first item to its turn: if one is urgent, and otherwise. */
#define GATHERING UINT64_C(10000000)
#define PATIENCE UINT64_C(50000000)
/* So many bytes of patient ones are urgent. */
#define MANY (UINT64_C(1) << 20)

#define LISTS 8u

static _Alignas(EVC_CACHE_LINE) _Atomic(struct evc_domain_head *) patient[LISTS];
static _Alignas(EVC_CACHE_LINE) _Atomic(struct evc_domain_head *) urgent;
/* Bytes of the patient ones that are pending, about: a limit of memory. */
static _Atomic uint64_t weight;
static _Atomic bool is_urgent, is_patient;
/* When `later` is to be called; 0 = never. */
static _Atomic uint64_t call_at;
static void (*_Atomic later)(void);
/* Constant once `is_running`, which stays. Both change under the mutex `starting`. */
static struct evc_parker parker;
static _Atomic bool is_running;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
/* Held during a turn, but for user code. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool has_turn;
/* Under `turn`: what is still to be reclaimed in it. Its grace period is over. */
static struct {
	struct evc_domain_head *patient[LISTS], *urgent;
} due;

static struct evc_domain_head *in_order(struct evc_domain_head *last)
{
	struct evc_domain_head *first = NULL;

	while (last != NULL) {
		struct evc_domain_head *before = last->next;

		last->next = first;
		first = last;
		last = before;
	}
	return first;
}

/* Reclaims the next of a list, if there is one. It leaves the list before that: a child of fork leaves it alone. */
static bool reclaim_next(struct evc_domain_head **list)
{
	struct evc_domain_head *head = *list;

	if (head == NULL)
		return false;
	*list = head->next;
	__builtin_prefetch(head->next);
	/* It is gone after that. */
	head->reclaim(head);
	return true;
}

static void reclaim_due(void)
{
	bool any;

	do {
		any = false;
		for (unsigned i = 0; i < LISTS; i++)
			any |= reclaim_next(&due.patient[i]);
	} while (any);
	while (reclaim_next(&due.urgent))
		;
}

static void take_turn(void)
{
	pthread_mutex_lock(&turn);
	has_turn = true;
	/* Of a turn into which a fork came. */
	reclaim_due();
	/* T5. Relaxed: T6 releases it. */
	atomic_store_explicit(&is_urgent, false, memory_order_relaxed);
	atomic_store_explicit(&is_patient, false, memory_order_relaxed);
	/* Relaxed: a limit of memory, which need not be exact. */
	atomic_store_explicit(&weight, 0, memory_order_relaxed);
	/* T6. Pairs with R1: its items, and T5. */
	due.urgent = in_order(atomic_exchange_explicit(&urgent, NULL, memory_order_acq_rel));
	for (unsigned i = 0; i < LISTS; i++)
		/* Acquire: for ThreadSanitizer, which does not know the barrier of the grace period that comes next. */
		due.patient[i] = atomic_exchange_explicit(&patient[i], NULL, memory_order_acq_rel);
	evc_domain_synchronize();
	reclaim_due();
	has_turn = false;
	pthread_mutex_unlock(&turn);
}

/* Calls what is due. Returns how long the next wait may be. */
static uint64_t call_later_if_due(void)
{
	/* Relaxed: looked at again below. */
	uint64_t when = atomic_load_explicit(&call_at, memory_order_relaxed);
	uint64_t now = when == 0 ? 0 : evc_clock_now();

	if (when > now)
		return when - now;
	/* Acquire, pairs with evc_domain_call_later: `later`. */
	if (when == 0 || !atomic_compare_exchange_strong_explicit(&call_at, &when, 0, memory_order_acquire,
								  memory_order_relaxed))
		return EVC_FOREVER;
	/* As a turn, for fork. */
	pthread_mutex_lock(&turn);
	atomic_load_explicit(&later, memory_order_relaxed)();
	pthread_mutex_unlock(&turn);
	return 0;
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
	/* Before a turn, in which a reclaim may retire something: it starts no thread. */
	atomic_store_explicit(&is_running, true, memory_order_release);
#ifdef __APPLE__
	pthread_setname_np("evc-reclaimer");
#else
	pthread_setname_np(pthread_self(), "evc-reclaimer");
#endif
	for (;;) {
		uint32_t ticket = evc_parker_prepare(&parker);
		uint64_t begin, age, wait = call_later_if_due();

		/* T2. Relaxed, as in T4: T1 acquires what R4 has told of. */
		if (!atomic_load_explicit(&is_urgent, memory_order_relaxed) &&
		    !atomic_load_explicit(&is_patient, memory_order_relaxed)) {
			if (wait != 0)
				(void)evc_parker_wait(&parker, ticket, wait);
			continue;
		}
		/* T3, T4. */
		begin = evc_clock_now();
		for (;;) {
			uint64_t limit = PATIENCE;

			ticket = evc_parker_prepare(&parker);
			if (atomic_load_explicit(&is_urgent, memory_order_relaxed) ||
			    atomic_load_explicit(&weight, memory_order_relaxed) >= MANY)
				limit = GATHERING;
			age = evc_clock_now() - begin;
			if (age >= limit)
				break;
			(void)evc_parker_wait(&parker, ticket, limit - age);
		}
		take_turn();
	}
	return NULL;
}

static void before_fork(void)
{
	/* In the order of the thread, of which a reclaim may retire something. */
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
	/* The parent's thread, and what it may have been about to do with its parker, are not here. */
	atomic_store_explicit(&is_running, false, memory_order_relaxed);
	parker.ops = NULL;
	/* For what is due, once there is a thread. */
	atomic_store_explicit(&is_urgent, true, memory_order_relaxed);
	after_fork_parent();
}

static void prepare(void)
{
	/* In this order, so that a fork comes by us first, and waits for the end of a grace period with the turn. */
	evc_domain_prepare();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* Starts the thread, unless another has done so, or it cannot be: false. */
static __attribute__((noinline, cold)) bool start(void)
{
	/* Of what a reclaim does: for the program's own handlers, which tell what was wrong. */
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS };
	pthread_t thread;
	sigset_t others, before;
	bool is_there;

	/* First, so that a child of fork is told. */
	pthread_once(&prepared, prepare);
	pthread_mutex_lock(&starting);
	is_there = atomic_load_explicit(&is_running, memory_order_relaxed);
	if (!is_there && (parker.ops != NULL || evc_parker_init(&parker, NULL) == EVC_OK)) {
		/* All other signals are for the program's own threads. */
		sigfillset(&others);
		for (unsigned i = 0; i < sizeof(faults) / sizeof(*faults); i++)
			sigdelset(&others, faults[i]);
		pthread_sigmask(SIG_SETMASK, &others, &before);
		is_there = pthread_create(&thread, NULL, run, NULL) == 0;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (is_there) {
			pthread_detach(thread);
			/* Also by the thread itself. Release: the parker. */
			atomic_store_explicit(&is_running, true, memory_order_release);
		}
	}
	pthread_mutex_unlock(&starting);
	return is_there;
}

/* R1. */
static void push(_Atomic(struct evc_domain_head *) *list, struct evc_domain_head *head)
{
	/* Relaxed: the item is not looked at, only its address. */
	struct evc_domain_head *last = atomic_load_explicit(list, memory_order_relaxed);

	do
		head->next = last;
	/* Release: the item, for T6; acquire: T5 of the turn that has taken what was before it. */
	while (!atomic_compare_exchange_weak_explicit(list, &last, head, memory_order_acq_rel,
						      memory_order_relaxed));
}

/* R2: whether it was false. Relaxed: R1 comes before it, R4 after it. */
static bool raise_flag(_Atomic bool *flag)
{
	return !atomic_load_explicit(flag, memory_order_relaxed) &&
	       !atomic_exchange_explicit(flag, true, memory_order_relaxed);
}

/* R4. */
static void tell(bool is_news)
{
	/* Acquire, pairs with start. */
	if (evc_unlikely(!atomic_load_explicit(&is_running, memory_order_acquire)) && !start())
		return;
	if (is_news)
		(void)evc_parker_wake(&parker);
}

void evc_domain_retire(struct evc_domain_head *head, void (*reclaim)(struct evc_domain_head *))
{
	head->reclaim = reclaim;
	push(&urgent, head);
	tell(raise_flag(&is_urgent));
}

void evc_domain_retire_patiently(struct evc_domain_head *head, size_t bytes,
				 void (*reclaim)(struct evc_domain_head *))
{
	uint64_t before;
	bool is_news;

	head->reclaim = reclaim;
	push(&patient[(uintptr_t)head / EVC_CACHE_LINE % LISTS], head);
	is_news = raise_flag(&is_patient);
	/* R3. */
	before = atomic_fetch_add_explicit(&weight, bytes, memory_order_relaxed);
	is_news |= before < MANY && before + bytes >= MANY;
	tell(is_news);
}

void evc_domain_call_later(uint64_t after, void (*call)(void))
{
	atomic_store_explicit(&later, call, memory_order_relaxed);
	/* Release, pairs with call_later_if_due. */
	atomic_store_explicit(&call_at, evc_clock_after(after), memory_order_release);
	tell(true);
}
#endif
