/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "driven.h"

struct driven driven;

uint64_t driven_note(void *context, uint64_t deadline)
{
	if (driven.count < 4096) {
		driven.values[driven.count] = (uint64_t)(uintptr_t)context;
		driven.times[driven.count] = deadline;
	}
	driven.count++;
	driven.early += fake.time < deadline;
	return 0;
}

void driven_drop(void *context)
{
	(void)context;
	driven.drops++;
}

const struct evc_timer_ops driven_noting = { .fire = driven_note, .drop = driven_drop };

const char *driven_open(struct evc_scheduler **out)
{
	struct evc_scheduler_options options = { .size = sizeof(options), .clock = &fake_clock_ops, .driven = true };

	__builtin_memset(&driven, 0, sizeof(driven));
	fake.time = 1000;
	EXPECT_OK(evc_scheduler_create(&options, out));
	driven.scheduler = *out;
	return NULL;
}

void driven_close(struct evc_scheduler *scheduler)
{
	evc_scheduler_close(scheduler);
	evc_scheduler_release(scheduler);
}

enum evc_status driven_add(struct evc_scheduler *scheduler, uint64_t deadline, uint64_t value,
			   uint64_t *id)
{
	return evc_scheduler_add(scheduler, deadline, &driven_noting, (void *)(uintptr_t)value, id);
}

#endif
