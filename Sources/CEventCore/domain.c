/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#if defined(__has_include)
#if !__has_include(<urcu/urcu-bp.h>)
/* clang-format off: one sentence, as the compiler prints it */
#error "EventCore needs liburcu: install it with 'apt-get install liburcu-dev' (Debian, Ubuntu), 'dnf install userspace-rcu-devel' (Fedora), 'apk add userspace-rcu-dev' (Alpine) or 'brew install liburcu' (Homebrew), or build without the package trait URCU (swift build --disable-default-traits)."
/* clang-format on */
#define EVC_LIBURCU_MISSING 1
#endif
#endif

#ifndef EVC_LIBURCU_MISSING
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifdef EVC_LGPL_INLINE
/* Opt-in: liburcu's sections are compiled into this file, which makes it a work based on it. */
#define _LGPL_SOURCE
#endif
#include "compiler.h"
#include "domain.h"
#include "eventcore/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/urcu-bp.h>

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

_Static_assert(sizeof(struct rcu_head) <= sizeof(((struct evc_domain_head *)0)->words),
	       "evc_domain_head.words must hold liburcu's rcu_head");

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static bool barrier_available;

static void before_fork(void)
{
	urcu_bp_call_rcu_before_fork();
	urcu_bp_before_fork();
}

static void after_fork_parent(void)
{
	urcu_bp_after_fork_parent();
	urcu_bp_call_rcu_after_fork_parent();
}

static void after_fork_child(void)
{
	urcu_bp_after_fork_child();
	urcu_bp_call_rcu_after_fork_child();
}

#if defined(__linux__)
static bool membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}
#endif

static void prepare(void)
{
	/* Without these a child of fork hangs in its first grace period. */
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
#if defined(__linux__)
	barrier_available = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
#endif
}

void evc_domain_enter(void)
{
	pthread_once(&prepared, prepare);
	urcu_bp_read_lock();
}

/*
 * liburcu orders what came before a retirement, and what was read in a section that a grace period waits for,
 * before the reclaim; but ThreadSanitizer does not see inside it. The stamp is the same edge in C11
 * atomics. One location for all is enough, as an edge too many harms nobody; sections, which are many, pay
 * for it only where the sanitizer looks. (It sees no missing grace period, with or without;
 * AddressSanitizer does.)
 */
static _Atomic unsigned retire_stamp;

void evc_domain_leave(void)
{
#ifdef EVC_THREAD_SANITIZER
	/* Pairs with reclaim. */
	atomic_fetch_add_explicit(&retire_stamp, 1, memory_order_release);
#endif
	urcu_bp_read_unlock();
}

static void reclaim(struct rcu_head *rcu)
{
	struct evc_domain_head *head = (struct evc_domain_head *)(void *)rcu;

	/* Pairs with evc_domain_retire and evc_domain_leave: what those threads did before the reclaim. */
	(void)atomic_load_explicit(&retire_stamp, memory_order_acquire);
	head->reclaim(head);
}

void evc_domain_retire(struct evc_domain_head *head, void (*reclaim_head)(struct evc_domain_head *))
{
	pthread_once(&prepared, prepare);
	head->reclaim = reclaim_head;
	/* Pairs with reclaim. A read-modify-write, so that earlier retirers stay in the chain. */
	atomic_fetch_add_explicit(&retire_stamp, 1, memory_order_acq_rel);
	urcu_bp_call_rcu((struct rcu_head *)(void *)head->words, reclaim);
}

bool evc_barrier_everywhere(void)
{
	pthread_once(&prepared, prepare);
#if defined(__linux__)
	return barrier_available && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
#else
	return false;
#endif
}
#endif
#endif
