/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/stretch.h"

#include "platform/clock.h"

bool evc_stretch_has_passed(const struct evc_stretch *stretch)
{
	if (stretch->clock != NULL)
		return evc_stretch_is_late(stretch);
	return stretch->deadline != EVC_FOREVER && evc_clock_now() >= stretch->deadline;
}

static bool next_by_callers_clock(struct evc_stretch *stretch)
{
	if (evc_stretch_is_late(stretch))
		return false;
	stretch->left = 1;
	stretch->behind--;
	return true;
}

bool evc_stretch_next(struct evc_stretch *stretch)
{
	uint64_t now, rest, span, took, most, events = 2 * stretch->length;

	if (stretch->behind == 0)
		return false;
	if (evc_unlikely(stretch->clock != NULL))
		return next_by_callers_clock(stretch);
	now = evc_clock_now();
	if (now >= stretch->deadline)
		return false;
	rest = stretch->deadline - now;
	span = evc_sooner(rest, EVC_LOOK_NS);
	/* The clock's ticks may be coarse: one nanosecond more, against a division by zero. */
	took = now - stretch->began + 1;
	/* Short handlers pay for no division. */
	if (evc_unlikely(span < 2 * took))
		events = span * stretch->length / took;
	if (evc_unlikely(took >> EVC_STRETCH_SLOW != 0))
		stretch->known = now;
	most = evc_sooner(rest >> EVC_STRETCH_SLOW, EVC_STRETCH_MOST);
	events = evc_sooner(events, most > EVC_STRETCH_NEAR ? most : EVC_STRETCH_NEAR);
	events = evc_sooner(events > 0 ? events : 1, stretch->behind);
	stretch->length = stretch->left = events;
	stretch->behind -= events;
	stretch->began = now;
	return true;
}
#endif
