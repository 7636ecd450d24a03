/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "live.h"

struct live live;

static uint64_t note(void *context, uint64_t deadline)
{
	(void)context;
	if (atomic_load(&fake.time) < deadline)
		atomic_fetch_add(&live.early, 1);
	if (atomic_exchange(&live.last_deadline, deadline) > deadline)
		atomic_fetch_add(&live.disorder, 1);
	atomic_fetch_add_explicit(&live.fired, 1, memory_order_release);
	return 0;
}

static void drop(void *context)
{
	(void)context;
	atomic_fetch_add(&live.dropped, 1);
}

const struct evc_timer_ops live_noting = { .fire = note, .drop = drop };

void live_reset(void)
{
	atomic_store(&fake.time, 1000);
	atomic_store(&fake.sleeps, 0);
	atomic_store(&fake.restless, 0);
	atomic_store(&fake.wakes, 0);
	atomic_store(&live.fired, 0);
	atomic_store(&live.dropped, 0);
	atomic_store(&live.early, 0);
	atomic_store(&live.disorder, 0);
	atomic_store(&live.last_deadline, 0);
}

#endif
