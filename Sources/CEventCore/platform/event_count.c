/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "platform/event_count.h"

#include "platform/clock.h"
#include "platform/parker_private.h"

bool evc_event_count_open(struct evc_event_count *event_count)
{
	atomic_init(&event_count->count, 0);
	event_count->ops = NULL;
	return evc_parker_open(&event_count->ops, &event_count->state) == EVC_OK;
}

void evc_event_count_close(struct evc_event_count *event_count)
{
	if (event_count->ops->close != NULL)
		event_count->ops->close(event_count->state);
}

void evc_event_count_wait(struct evc_event_count *event_count, uint32_t seen, uint64_t end)
{
	uint64_t now = end == EVC_FOREVER ? 0 : evc_clock_now();

	event_count->ops->wait(event_count->state, (const uint32_t *)(const void *)&event_count->count, seen,
			       end == EVC_FOREVER ? EVC_FOREVER : now < end ? end - now : 0);
}

void evc_event_count_advance(struct evc_event_count *event_count)
{
	/* Pairs with W1. */
	atomic_fetch_add_explicit(&event_count->count, 1, memory_order_release);
	event_count->ops->wake(event_count->state, (const uint32_t *)(const void *)&event_count->count);
}
#endif
