/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The core's domain.c without liburcu: sections and grace periods exactly as promised, and no stronger.
 *
 * A grace period ends when all sections that were open at its beginning have ended, and what they did happens
 * before its end. At both ends there is a fence on all threads: a section that begins later sees what came
 * before the grace period.
 */
#include "engine.h"

#include "platform/domain.h"
#include "eventcore/base.h"

static KEPT unsigned depth[FIBERS];
/* The ordinal of the section that a fiber is in; 0 = none. */
static KEPT uint64_t section[FIBERS], sections;
/*
 * What all ended sections did; and, for a fiber that waits for a grace period, the sections that it waits
 * for.
 */
static KEPT struct clock left, left_for[FIBERS];
static KEPT uint64_t waits_until[FIBERS];
static KEPT bool has_no_barrier;

void domain_reset(void)
{
	memset(depth, 0, sizeof(depth));
	memset(section, 0, sizeof(section));
	memset(&left, 0, sizeof(left));
	memset(waits_until, 0, sizeof(waits_until));
	sections = 0;
	has_no_barrier = false;
}

void explorer_take_barrier_away(void)
{
	has_no_barrier = true;
}

bool domain_is_inside(void)
{
	return depth[fiber_number()] > 0;
}

void evc_domain_prepare(void)
{
}

void evc_domain_enter(void)
{
	unsigned number = fiber_number();

	fiber_point();
	if (depth[number]++ == 0)
		section[number] = ++sections;
	trace("enters a section");
}

void evc_domain_leave(void)
{
	unsigned number = fiber_number();

	fiber_point();
	if (depth[number] == 0)
		explorer_fail("leaves a section that it is not in");
	trace("leaves a section");
	if (--depth[number] > 0)
		return;
	clock_join(&left, fiber_clock(number));
	for (unsigned i = 0; i < fiber_count(); i++)
		if (section[number] <= waits_until[i])
			clock_join(&left_for[i], fiber_clock(number));
	section[number] = 0;
	clock_tick(fiber_clock(number), number);
	fiber_wake(section, FIBERS);
}

static bool any_open(uint64_t until)
{
	for (unsigned i = 0; i < fiber_count(); i++)
		if (section[i] != 0 && section[i] <= until)
			return true;
	return false;
}

void evc_domain_synchronize(void)
{
	unsigned number = fiber_number();

	if (domain_is_inside())
		explorer_fail("waits for a grace period inside a section");
	fiber_point();
	trace("a grace period begins");
	memory_fence_everywhere();
	left_for[number] = left;
	waits_until[number] = sections;
	while (any_open(waits_until[number]))
		fiber_sleep(section, UINT64_MAX);
	waits_until[number] = 0;
	memory_fence_everywhere();
	clock_join(fiber_clock(number), &left_for[number]);
	trace("a grace period ends");
}

bool evc_barrier_everywhere(void)
{
	fiber_point();
	trace("a barrier everywhere");
	if (has_no_barrier)
		return false;
	memory_fence_everywhere();
	return true;
}
