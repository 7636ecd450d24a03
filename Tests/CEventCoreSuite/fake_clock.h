/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A scheduler's clock that the test moves; a thread that sleeps by it sleeps until it is woken, whatever the
 * deadline.
 */
#ifndef EVC_SUITE_FAKE_CLOCK_H
#define EVC_SUITE_FAKE_CLOCK_H

#include "suite.h"

struct fake_clock {
	_Atomic uint64_t time;
	/* Written by the scheduler's thread before it counts the sleep. */
	_Atomic uint64_t deadline;
	_Atomic(struct evc_parker *) parker;
	_Atomic uint64_t sleeps;
	/* How often a sleep returns at once without a reason. */
	_Atomic uint64_t restless;
	_Atomic uint64_t wakes;
};
extern struct fake_clock fake;

extern const struct evc_scheduler_clock fake_clock_ops;
/* The system's parker, with its wake-ups counted. */
extern const struct evc_parker_ops fake_clock_parker;

#endif
