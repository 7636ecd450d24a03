/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A driven scheduler on a clock that the test moves, and timers that note when they fire. */
#ifndef EVC_SUITE_DRIVEN_H
#define EVC_SUITE_DRIVEN_H

#include "fake_clock.h"

/* What happened to the timers, in order: the value of each, and the time. */
struct driven {
	uint64_t values[4096];
	uint64_t times[4096];
	size_t count;
	size_t drops;
	uint64_t early;
	/* What a timer does, and the interval of one that repeats. */
	struct evc_scheduler *scheduler;
	uint64_t id;
	uint64_t interval;
	enum evc_status status;
	unsigned nested;
};
extern struct driven driven;

/* Clears the notes, and sets the clock to 1000. */
const char *driven_open(struct evc_scheduler **out);
void driven_close(struct evc_scheduler *scheduler);

/* The functions of a timer whose context is a number. */
uint64_t driven_note(void *context, uint64_t deadline);
void driven_drop(void *context);
extern const struct evc_timer_ops driven_noting;

/* Adds a timer that notes `value`. `id` may be NULL. */
enum evc_status driven_add(struct evc_scheduler *scheduler, uint64_t deadline, uint64_t value,
			   uint64_t *id);

#endif
