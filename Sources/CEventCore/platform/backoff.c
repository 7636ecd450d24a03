/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "platform/backoff.h"

#include "platform/compiler.h"

#include <sched.h>
#include <time.h>

void evc_backoff(unsigned turn)
{
	if (turn < 100) {
		evc_pause();
	} else if (turn < 200) {
		sched_yield();
	} else {
		/* A real-time thread has to sleep to let a preempted one run. */
		struct timespec nap = { 0, 20000 };

		nanosleep(&nap, NULL);
	}
}
#endif
