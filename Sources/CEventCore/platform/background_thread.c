/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "platform/background_thread.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

/*
 * Creates the thread. It would otherwise get the scheduling and the processors of whichever thread had work for it
 * first: beside a real-time thread that stays on one processor, it would delay that one, or never run. A thread of
 * Apple's systems has a scheduling of its own.
 */
static bool create(pthread_t *thread, void *(*run)(void *))
{
#ifdef __linux__
	const struct sched_param parameter = { 0 };
	pthread_attr_t attributes;
	bool is_there;

	if (pthread_attr_init(&attributes) == 0) {
		/* Only what differs is asked for: a filter of system calls may end a process for it. */
		if (sched_getscheduler(0) != SCHED_OTHER) {
			(void)pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
			(void)pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
			(void)pthread_attr_setschedparam(&attributes, &parameter);
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
		is_there = pthread_create(thread, &attributes, run, NULL) == 0;
		/* Without the permission for that scheduling it still gets the processors. */
		if (!is_there && pthread_attr_setinheritsched(&attributes, PTHREAD_INHERIT_SCHED) == 0)
			is_there = pthread_create(thread, &attributes, run, NULL) == 0;
		pthread_attr_destroy(&attributes);
		if (is_there)
			return true;
	}
#endif
	/* Also if the system refuses these, as a filter of its calls may. */
	return pthread_create(thread, NULL, run, NULL) == 0;
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
	is_there = create(thread, run);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return is_there;
}
#endif
