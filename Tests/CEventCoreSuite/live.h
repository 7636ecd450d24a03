/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Counts of a scheduler's timers by several threads, on the clock that the test moves or on the real one. */
#ifndef EVC_SUITE_LIVE_H
#define EVC_SUITE_LIVE_H

#include "fake_clock.h"

struct live {
	_Atomic uint64_t fired, dropped, early, disorder;
	_Atomic uint64_t last_deadline;
};
extern struct live live;

/* The clock is at 1000, and nothing is counted. */
void live_reset(void);

/* Counts, by the clock that the test moves. */
extern const struct evc_timer_ops live_noting;

#endif
