/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "eventcore/base.h"

#include <time.h>

uint64_t evc_clock_now(void)
{
	struct timespec now;

#ifdef __APPLE__
	/* DispatchTime counts the time awake there, and so does this clock. */
	clock_gettime(CLOCK_UPTIME_RAW, &now);
#else
	clock_gettime(CLOCK_MONOTONIC, &now);
#endif
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
#endif
