/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#define _GNU_SOURCE 1
#include "platform/own_thread.h"

#include "platform/compiler.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

void evc_own_thread_set_name(const char *name)
{
#ifdef __APPLE__
	pthread_setname_np(name);
#else
	pthread_setname_np(pthread_self(), name);
#endif
}

static const struct sched_param usual;

/* The scheduling of a thread, 0: the calling one; the usual one if it cannot be read. Without glibc the calling one's. */
static void read_scheduling(pid_t thread, int *policy, struct sched_param *parameter)
{
	*policy = SCHED_OTHER;
	*parameter = usual;
#if defined(__linux__) && defined(__GLIBC__)
	/* From the system: glibc remembers what it has read or set itself, whatever was set since. Stubs in musl. */
	int found = sched_getscheduler(thread);

	if (found >= 0 && sched_getparam(thread, parameter) == 0)
		*policy = found & ~SCHED_RESET_ON_FORK;
#else
	(void)thread;
	(void)pthread_getschedparam(pthread_self(), policy, parameter);
#endif
}

/*
 * Creates the thread. It would otherwise get the scheduling and the processors of whichever thread had work for it
 * first: beside a real-time thread that stays on one processor, it would delay that one, or never run. A thread of
 * Apple's systems has a scheduling of its own.
 */
static bool create(pthread_t *thread, void *(*run)(void *), void *context, int policy,
		   const struct sched_param *parameter)
{
#ifdef __linux__
	struct sched_param own_parameter;
	pthread_attr_t attributes;
	int own_policy;
	bool is_there;

	if (pthread_attr_init(&attributes) == 0) {
		read_scheduling(0, &own_policy, &own_parameter);
		/* Only what differs is asked for: a filter of system calls may end a process for it. */
		if (own_policy != policy || own_parameter.sched_priority != parameter->sched_priority) {
			(void)pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
			/* glibc takes no other ones than the usual and two for real time. */
			if (pthread_attr_setschedpolicy(&attributes, policy) != 0) {
				(void)pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
				parameter = &usual;
			}
			(void)pthread_attr_setschedparam(&attributes, parameter);
		}
/* Not in musl, nor in Android's library. */
#ifdef __GLIBC__
		cpu_set_t own, processors;

		/* Those of the process's first thread too. */
		if (sched_getaffinity(0, sizeof(own), &own) == 0 &&
		    sched_getaffinity(getpid(), sizeof(processors), &processors) == 0) {
			CPU_OR(&processors, &processors, &own);
			if (!CPU_EQUAL(&processors, &own))
				(void)pthread_attr_setaffinity_np(&attributes, sizeof(processors), &processors);
		}
#endif
		is_there = pthread_create(thread, &attributes, run, context) == 0;
		/* Without the permission for that scheduling it still gets the processors. */
		if (!is_there && pthread_attr_setinheritsched(&attributes, PTHREAD_INHERIT_SCHED) == 0)
			is_there = pthread_create(thread, &attributes, run, context) == 0;
		pthread_attr_destroy(&attributes);
		if (is_there)
			return true;
	}
#else
	(void)policy, (void)parameter;
#endif
	/* Also if the system refuses these, as a filter of its calls may. */
	return pthread_create(thread, NULL, run, context) == 0;
}

bool evc_own_thread_create(pthread_t *thread, void *(*run)(void *), void *context)
{
	struct sched_param parameter;
	int policy;

	read_scheduling(getpid(), &policy, &parameter);
	return create(thread, run, context, policy, &parameter);
}

bool evc_background_thread_create(pthread_t *thread, void *(*run)(void *))
{
	/* Left to the program's own handlers, which can report them. */
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS };
	sigset_t others, before;
	bool is_there;

	/* All other signals are left to the program's own threads. */
	sigfillset(&others);
	for (unsigned i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&others, faults[i]);
	pthread_sigmask(SIG_SETMASK, &others, &before);
	is_there = create(thread, run, NULL, SCHED_OTHER, &usual);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return is_there;
}

/* 0 for none. Relaxed: a handle, which one thread gets; the join orders the rest. */
static _Atomic(pthread_t) last_thread;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void forget(void)
{
	/* The parent's threads do not exist in a child of fork. */
	atomic_store_explicit(&last_thread, (pthread_t)0, memory_order_relaxed);
}

static void prepare_fork(void)
{
	pthread_atfork(NULL, NULL, forget);
}

pthread_t evc_last_thread_become(void)
{
	pthread_once(&fork_once, prepare_fork);
#ifdef EVC_THREAD_SANITIZER
	/* It reports a thread that nobody has joined when the program ends, such as the last one. */
	pthread_detach(pthread_self());
	return (pthread_t)0;
#else
	return atomic_exchange_explicit(&last_thread, pthread_self(), memory_order_relaxed);
#endif
}

void evc_last_thread_join(pthread_t last)
{
	if (last != (pthread_t)0)
		pthread_join(last, NULL);
}

void evc_last_thread_end(void)
{
	evc_last_thread_join(atomic_exchange_explicit(&last_thread, (pthread_t)0, memory_order_relaxed));
}
#endif
