/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "fake_clock.h"

struct fake_clock fake;

static uint64_t fake_now(void *context)
{
	(void)context;
	return atomic_load(&fake.time);
}

static void fake_sleep(void *context, struct evc_parker *parker, uint32_t ticket, uint64_t deadline)
{
	(void)context;
	if (atomic_load(&fake.restless) > 0) {
		atomic_fetch_sub(&fake.restless, 1);
		return;
	}
	fake.parker = parker;
	atomic_store(&fake.deadline, deadline);
	atomic_fetch_add_explicit(&fake.sleeps, 1, memory_order_release);
	(void)evc_parker_wait(parker, ticket, EVC_FOREVER);
}

const struct evc_scheduler_clock fake_clock_ops = { NULL, fake_now, fake_sleep };

/* The system's parker, with its wake-ups counted. */
static const struct evc_parker_ops *base(void)
{
	return evc_parker_futex() != NULL ? evc_parker_futex() : evc_parker_posix();
}

static void *count_open(void)
{
	return base()->open != NULL ? base()->open() : &fake;
}

static void count_close(void *state)
{
	if (base()->close != NULL)
		base()->close(state);
}

static void count_wait(void *state, const uint32_t *word, uint32_t expected, uint64_t timeout)
{
	base()->wait(state, word, expected, timeout);
}

static void count_wake(void *state, const uint32_t *word)
{
	atomic_fetch_add(&fake.wakes, 1);
	base()->wake(state, word);
}

const struct evc_parker_ops fake_clock_parker = { count_open, count_close, count_wait, count_wake };
#endif
