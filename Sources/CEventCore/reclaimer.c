/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "reclaimer.h"

#include "compiler.h"
#include "domain.h"
#include "eventcore/base.h"
#include "parker_private.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* Nanoseconds from the thread's look at the first item to its turn: if one is urgent, and otherwise. */
#define GATHERING UINT64_C(10000000)
#define PATIENCE UINT64_C(50000000)
/* So many bytes of patient ones are urgent. */
#define MANY (UINT64_C(1) << 20)

static _Alignas(EVC_CACHE_LINE) _Atomic(struct evc_domain_head *) pending;
/* Bytes of the patient ones that are pending, about: a limit of memory. */
static _Atomic uint64_t weight;
static _Atomic bool urgent;
/* Constant once `is_running`, which stays. Both change under the mutex `starting`. */
static struct evc_parker parker;
static _Atomic bool is_running;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
/* Held during a turn. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

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

static void take_turn(void)
{
	struct evc_domain_head *head;

	pthread_mutex_lock(&turn);
	/* T5. */
	atomic_store_explicit(&urgent, false, memory_order_seq_cst);
	/* Relaxed: a limit of memory, which need not be exact. */
	atomic_store_explicit(&weight, 0, memory_order_relaxed);
	/* T6. */
	head = in_order(atomic_exchange_explicit(&pending, NULL, memory_order_seq_cst));
	evc_domain_synchronize();
	while (head != NULL) {
		struct evc_domain_head *next = head->next;

		/* It is gone after that. */
		head->reclaim(head);
		head = next;
	}
	pthread_mutex_unlock(&turn);
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
		uint64_t begin, age;

		/* T2. */
		if (atomic_load_explicit(&pending, memory_order_seq_cst) == NULL) {
			(void)evc_parker_wait(&parker, ticket, EVC_FOREVER);
			continue;
		}
		/* T3, T4. */
		begin = evc_clock_now();
		for (;;) {
			uint64_t limit = PATIENCE;

			ticket = evc_parker_prepare(&parker);
			if (atomic_load_explicit(&urgent, memory_order_seq_cst) ||
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

/* Starts the thread, unless another has done so, or it cannot be: false. */
static __attribute__((noinline, cold)) bool start(void)
{
	/* Of what a reclaim does: for the program's own handlers, which tell what was wrong. */
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS };
	pthread_t thread;
	sigset_t others, before;
	bool is_there;

	/* First, so that a child of fork is told. */
	evc_domain_prepare();
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

/* `bytes`: 0 = it is urgent. */
static void retire(struct evc_domain_head *head, size_t bytes)
{
	/* Relaxed: the item is not looked at, only its address. */
	struct evc_domain_head *last = atomic_load_explicit(&pending, memory_order_relaxed);
	bool is_news;

	/* R1. */
	do
		head->next = last;
	while (!atomic_compare_exchange_weak_explicit(&pending, &last, head, memory_order_seq_cst,
						      memory_order_relaxed));
	/* R2 to R4. */
	is_news = last == NULL;
	if (bytes == 0) {
		is_news |= !atomic_exchange_explicit(&urgent, true, memory_order_seq_cst);
	} else {
		uint64_t before = atomic_fetch_add_explicit(&weight, bytes, memory_order_relaxed);

		is_news |= before < MANY && before + bytes >= MANY;
	}
	/* Acquire, pairs with start. */
	if (evc_unlikely(!atomic_load_explicit(&is_running, memory_order_acquire)) && !start())
		return;
	/* R5. */
	if (is_news)
		(void)evc_parker_wake(&parker);
}

void evc_reclaimer_before_fork(void)
{
	/* In the order of the thread, of which a reclaim may retire something. */
	pthread_mutex_lock(&turn);
	pthread_mutex_lock(&starting);
}

void evc_reclaimer_after_fork(bool is_child)
{
	/* The parent's thread, and what it may have been about to do with its parker, are not here. */
	if (is_child) {
		atomic_store_explicit(&is_running, false, memory_order_relaxed);
		parker.ops = NULL;
	}
	pthread_mutex_unlock(&starting);
	pthread_mutex_unlock(&turn);
}

void evc_domain_retire(struct evc_domain_head *head, void (*reclaim)(struct evc_domain_head *))
{
	head->reclaim = reclaim;
	retire(head, 0);
}

void evc_domain_retire_patiently(struct evc_domain_head *head, size_t bytes,
				 void (*reclaim)(struct evc_domain_head *))
{
	head->reclaim = reclaim;
	retire(head, bytes);
}
#endif
