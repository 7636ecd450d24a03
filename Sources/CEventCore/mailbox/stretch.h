/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * How many more events a pump with a deadline may begin. It looks at the clock between two *stretches* of events, since
 * a look before each event would cost more than many handlers. A stretch has
 * - as many events as are expected to take EVC_LOOK_NS at the pace of the stretch before, or as long as is left, if
 *   that is less;
 * - at most twice as many as the one before, of which the first has one: handlers that turn slow all at once are found
 *   by a look after no more events than the pump has delivered so far;
 * - at most EVC_STRETCH_MOST, and more than EVC_STRETCH_NEAR only as far as they are over before the deadline if each of
 *   them takes 8 us (EVC_STRETCH_SLOW);
 * - its end at the first event of a subscription in this pump, and at the first one after a stretch that took longer than
 *   8 us: what is known of the pace is about others. So an event of a slow kind has no other behind it in its stretch.
 * Figures: Documentation/Choices.md. A clock of the caller's, which may be moved by handlers, is looked at before each
 * event, and again behind `control` and `idle`, which may move it too. While a backlog is sorted, either clock is.
 */
#ifndef EVC_STRETCH_H
#define EVC_STRETCH_H

#include "eventcore/base.h"
#include "memory/subscription.h"
#include "platform/compiler.h"

/* At 26 to 36 ns for a look. */
#define EVC_LOOK_NS UINT64_C(2000)
#define EVC_STRETCH_MOST UINT64_C(128)
#define EVC_STRETCH_NEAR UINT64_C(32)
/* 8 us, as a power of two. */
#define EVC_STRETCH_SLOW 13

struct evc_stretch {
	/* Until the next look at the clock. */
	uint64_t left;
	/* After that. The rest of the structure is not used by evc_stretch_next if this is 0 from the beginning. */
	uint64_t behind;
	/* EVC_FOREVER: none. */
	uint64_t deadline;
	/* How many events the stretch has, and when it began. */
	uint64_t length;
	uint64_t began;
	/* Since when the subscriptions that have `met` this are known to be of the pace that was measured; 0: no deadline. */
	uint64_t known;
	/* The caller's clock, whose stretches have one event; NULL: the core's. */
	const struct evc_clock *clock;
	/* Whether the deadline has come in `control`, on a caller's clock, or while a backlog was sorted. */
	bool is_late;
};

/* Before an event begins, which `left` still counts. Returns how many events the stretch has from here on. */
static inline uint64_t evc_stretch_meet(struct evc_stretch *stretch, struct evc_subscription *subscription,
					uint64_t left)
{
	if (evc_likely(subscription->met == stretch->known))
		return left;
	subscription->met = stretch->known;
	if (stretch->known == 0)
		return left;
	stretch->behind += left - 1;
	stretch->length = 1;
	return 1;
}

/* True if a caller's clock has reached the deadline. */
static inline bool evc_stretch_is_late(const struct evc_stretch *stretch)
{
	return stretch->clock != NULL && stretch->clock->now(stretch->clock->context) >= stretch->deadline;
}

/* The same of either clock, if there is a deadline. */
bool evc_stretch_has_passed(const struct evc_stretch *stretch);

/* Begins the next stretch, after `left` has come to 0. False: the limit or the deadline has come. */
bool evc_stretch_next(struct evc_stretch *stretch);

#endif
