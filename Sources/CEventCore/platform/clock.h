/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Deadlines on the core's clock. */
#ifndef EVC_CLOCK_H
#define EVC_CLOCK_H

#include "eventcore/base.h"

static inline uint64_t evc_sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The time `timeout` nanoseconds from now; EVC_FOREVER if the clock cannot represent it. */
static inline uint64_t evc_clock_after(uint64_t timeout)
{
	uint64_t now;

	if (timeout == EVC_FOREVER)
		return EVC_FOREVER;
	now = evc_clock_now();
	return timeout < EVC_FOREVER - now ? now + timeout : EVC_FOREVER;
}

/* How long it is until `end`: 0 if that has passed, EVC_FOREVER if it never comes. */
static inline uint64_t evc_clock_left(uint64_t end)
{
	uint64_t now;

	if (end == EVC_FOREVER)
		return EVC_FOREVER;
	now = evc_clock_now();
	return now < end ? end - now : 0;
}

#endif
