/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Vector clocks: how much of each fiber is known. `at[n] >= t` says that what fiber n did at its tick t
 * happens before. A sequentially consistent fence that happens before is identified by its number, which
 * covers everything before it.
 */
#ifndef EXPLORER_CLOCK_H
#define EXPLORER_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FIBERS 12u

struct clock {
	uint32_t at[FIBERS];
	/* The last such fence, counted from 1; 0 = none. */
	uint32_t fence;
};

static inline void clock_join(struct clock *clock, const struct clock *other)
{
	for (unsigned i = 0; i < FIBERS; i++)
		if (clock->at[i] < other->at[i])
			clock->at[i] = other->at[i];
	if (clock->fence < other->fence)
		clock->fence = other->fence;
}

#endif
