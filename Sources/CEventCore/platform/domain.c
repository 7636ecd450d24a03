/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#if defined(__has_include)
#if !__has_include(<urcu/urcu-bp.h>)
/* clang-format off: one sentence, as the compiler prints it */
#error "EventCore needs liburcu: install it with 'apt-get install liburcu-dev' (Debian, Ubuntu), 'dnf install userspace-rcu-devel' (Fedora), 'apk add userspace-rcu-dev' (Alpine) or 'brew install userspace-rcu' (Homebrew), or build without the package trait URCU (swift build --disable-default-traits)."
/* clang-format on */
#define EVC_LIBURCU_MISSING 1
#endif
#endif

#ifndef EVC_LIBURCU_MISSING
#define _GNU_SOURCE 1
#ifdef EVC_LGPL_INLINE
/* Opt-in: liburcu's sections are compiled into this file, which makes it a work based on it. */
#define _LGPL_SOURCE
#endif
#include "platform/compiler.h"
#include "platform/domain.h"
#include "platform/require.h"
#include "eventcore/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <urcu/urcu-bp.h>

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool barrier_available;

static bool membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}
#endif

static pthread_once_t prepared = PTHREAD_ONCE_INIT;

/*
 * A library that can be unloaded takes liburcu along, which has a destructor for threads that have used it; they may
 * end later. So liburcu stays. (Not in a program, which is not unloaded, and cannot always load.)
 */
#if defined(__linux__) && defined(__PIC__) && !defined(__PIE__) && !defined(EVC_TRAITS)
#include <dlfcn.h>
static void keep_liburcu(void)
{
	Dl_info found;

	if (dladdr((void *)(uintptr_t)urcu_bp_read_lock, &found) != 0)
		(void)dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}
#else
static void keep_liburcu(void)
{
}
#endif

static void prepare(void)
{
	keep_liburcu();
	/* Without these a child of fork hangs in its first grace period. */
	pthread_atfork(urcu_bp_before_fork, urcu_bp_after_fork_parent, urcu_bp_after_fork_child);
#if defined(__linux__)
	barrier_available = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
#endif
}

void evc_domain_prepare(void)
{
	pthread_once(&prepared, prepare);
}

void evc_domain_enter(void)
{
	evc_domain_prepare();
	urcu_bp_read_lock();
}

/*
 * The end of a grace period in C11 atomics, for ThreadSanitizer, which does not see inside liburcu. One stamp
 * for all sections is enough: a superfluous edge does no harm. (It does not detect a missing grace period
 * with or without it; AddressSanitizer does.)
 */
static _Atomic unsigned leave_stamp;

void evc_domain_leave(void)
{
#ifdef EVC_THREAD_SANITIZER
	/* Pairs with evc_domain_synchronize. */
	atomic_fetch_add_explicit(&leave_stamp, 1, memory_order_release);
#endif
	urcu_bp_read_unlock();
}

void evc_domain_synchronize(void)
{
	urcu_bp_synchronize_rcu();
	/* Pairs with evc_domain_leave. */
	(void)atomic_load_explicit(&leave_stamp, memory_order_acquire);
}

bool evc_barrier_everywhere(void)
{
	evc_domain_prepare();
#if defined(__linux__)
	if (!barrier_available)
		return false;
	/*
	 * A caller that has once found the system call working has left out its own fences since then. Nothing else
	 * can replace them: going on would mean calling handlers that were removed (D6). The second call takes
	 * milliseconds, but needs no memory, for lack of which the first may fail.
	 */
	EVC_REQUIRE(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) || membarrier(MEMBARRIER_CMD_SHARED),
		    "EventCore needs the membarrier system call once it has worked, and it fails now: allow it in the "
		    "program's system call filter, or set that filter before the first use of EventCore.");
	return true;
#else
	return false;
#endif
}
#endif
#endif
