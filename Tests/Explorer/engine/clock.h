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
	/* The same without fences: what ThreadSanitizer, which does not know them, takes to happen before. */
	uint32_t unfenced[FIBERS];
	/* The last such fence, counted from 1; 0 = none. */
	uint32_t fence;
};

/* Fiber `number`, whose clock this is, has released something: what follows is later. */
static inline void clock_tick(struct clock *clock, unsigned number)
{
	clock->unfenced[number] = ++clock->at[number];
}

static inline void clock_join(struct clock *clock, const struct clock *other)
{
	for (unsigned i = 0; i < FIBERS; i++)
		if (clock->at[i] < other->at[i])
			clock->at[i] = other->at[i];
	for (unsigned i = 0; i < FIBERS; i++)
		if (clock->unfenced[i] < other->unfenced[i])
			clock->unfenced[i] = other->unfenced[i];
	if (clock->fence < other->fence)
		clock->fence = other->fence;
}

#endif
