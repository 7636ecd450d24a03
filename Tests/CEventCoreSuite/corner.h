/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* For tests of threads of the core's own: what they must not get from whichever thread starts them. */
#ifndef EVC_SUITE_CORNER_H
#define EVC_SUITE_CORNER_H

/* The file that includes this defines _GNU_SOURCE first, for the processors of a thread. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

struct suite_corner {
	int scheduling;
	cpu_set_t processors;
	bool takes_signals;
};

/* Gives the calling thread another scheduling, on one processor; everybody may have both. */
static inline bool suite_corner_enter(void)
{
	struct sched_param parameter = { 0 };
	const int processor = sched_getcpu();
	int policy;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((unsigned)processor, &one);
	/* Behind the back of glibc, which remembers what it has read. */
	return processor >= 0 && sched_setaffinity(0, sizeof(one), &one) == 0 &&
	       pthread_getschedparam(pthread_self(), &policy, &parameter) == 0 &&
	       sched_setscheduler(0, SCHED_BATCH, &parameter) == 0;
}

/* Notes what the calling thread has. */
static inline void suite_corner_look(struct suite_corner *corner)
{
	sigset_t blocked;

	corner->scheduling = sched_getscheduler(0);
	(void)sched_getaffinity(0, sizeof(corner->processors), &corner->processors);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	corner->takes_signals = sigismember(&blocked, SIGTERM) != 1;
}

/* NULL if it has this scheduling, and the processors of the process's first thread. */
static inline const char *suite_corner_is_left(const struct suite_corner *corner, int scheduling)
{
	cpu_set_t expected;

	EXPECT_EQUAL(sched_getaffinity(getpid(), sizeof(expected), &expected), 0, "the processors of the first thread");
	EXPECT_EQUAL(corner->scheduling, scheduling, "the scheduling of the core's thread");
	EXPECT(CPU_EQUAL(&corner->processors, &expected), "the core's thread may use %d processors, the first thread %d",
	       CPU_COUNT(&corner->processors), CPU_COUNT(&expected));
	return NULL;
}
#endif
