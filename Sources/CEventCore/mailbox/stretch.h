/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * How many more events a pump with a deadline may begin. It looks at the clock between two *stretches* of events, since
 * a look before each event would cost more than many handlers. A stretch has
 * - as many events as are expected to take EVC_LOOK_NS at the pace of the stretch before, or as long as is left, if
 *   that is less;
 * - at most twice as many as the one before, of which the first has one: handlers that turn slow all at once are found
 *   by a look after no more events than the pump has delivered so far;
 * - no more than are over before the deadline if each of them takes 8 µs (EVC_STRETCH_SLOW), and than EVC_STRETCH_MOST;
 * - its end at the first event of a subscription under this deadline: what is known of the pace is about others.
 * Figures: Documentation/Choices.md. A clock of the caller's, which may be moved by handlers, is looked at before each
 * event.
 */
#ifndef EVC_STRETCH_H
#define EVC_STRETCH_H

#include "eventcore/base.h"
#include "memory/subscription.h"
#include "platform/compiler.h"

/* At 26 to 36 ns for a look: 2 % of handlers that are shorter than this. */
#define EVC_LOOK_NS UINT64_C(2000)
#define EVC_STRETCH_MOST UINT64_C(128)
/* 8 µs, as a power of two. */
#define EVC_STRETCH_SLOW 13

struct evc_stretch {
	/* Until the next look at the clock. */
	uint64_t left;
	/* After that. */
	uint64_t behind;
	/* EVC_FOREVER if there is none; then all events are in `left`, and the rest is not used. */
	uint64_t deadline;
	/* How many events the stretch has, and when it began. */
	uint64_t length;
	uint64_t began;
	/* The caller's clock, whose stretches have one event; NULL: the core's. */
	const struct evc_clock *clock;
};

/* Before an event begins, which `left` still counts. Returns how many events the stretch has from here on. */
static inline uint64_t evc_stretch_meet(struct evc_stretch *stretch, struct evc_subscription *subscription,
					uint64_t left)
{
	if (evc_likely(subscription->met == stretch->deadline))
		return left;
	subscription->met = stretch->deadline;
	if (stretch->deadline == EVC_FOREVER)
		return left;
	stretch->behind += left - 1;
	stretch->length = 1;
	return 1;
}

/* Begins the next stretch, after `left` has come to 0. False: the limit or the deadline has come. */
bool evc_stretch_next(struct evc_stretch *stretch);

#endif
