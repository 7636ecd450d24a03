/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "sensors.h"

#include <stddef.h>

#ifdef SENSORS_CORE
#include <eventcore/eventcore.h>

#include <stdlib.h>

struct sensors {
	struct evc_router *router;
	uint64_t reading_key, measure_key;
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscription;
	struct evc_thread *thread;
	/* The thread's, until it is joined. */
	uint64_t dispatched;
};

static bool measure(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct sensors *sensors = context;
	const struct measure *wanted = payload;

	(void)envelope, (void)owned;
	for (uint32_t i = 1; i <= wanted->count; i++) {
		struct reading reading = { wanted->sensor, i, wanted->sensor + i / 1000.0 };

		if (evc_dispatch_bytes(sensors->router, sensors->reading_key, EVC_LANE_QUEUE_NORMAL, &reading,
				       sizeof(reading), _Alignof(struct reading), NULL) == EVC_OK)
			sensors->dispatched++;
	}
	return false;
}

struct sensors *sensors_start(struct evc_router *router, uint64_t reading_key, uint64_t measure_key)
{
	struct sensors *sensors = calloc(1, sizeof(*sensors));
	struct evc_subscription_options handler = { .size = sizeof(handler), .context = sensors, .deliver = measure };
	struct evc_thread_options named = { .size = sizeof(named), .name = "sensors" };

	if (sensors == NULL)
		return NULL;
	sensors->router = router;
	sensors->reading_key = reading_key;
	sensors->measure_key = measure_key;
	if (evc_mailbox_create(NULL, &sensors->mailbox) != EVC_OK)
		goto no_mailbox;
	if (evc_mailbox_add_subscription(sensors->mailbox, &handler, &sensors->subscription) != EVC_OK ||
	    evc_thread_start(&named, sensors->mailbox, &sensors->thread) != EVC_OK)
		goto no_thread;
	if (evc_router_subscribe(router, measure_key, sensors->subscription, 0, false) == EVC_OK)
		return sensors;
	evc_thread_cancel(sensors->thread);
	(void)!evc_thread_join(sensors->thread);
no_thread:
	evc_mailbox_release(sensors->mailbox);
no_mailbox:
	free(sensors);
	return NULL;
}

uint64_t sensors_stop(struct sensors *sensors)
{
	uint64_t dispatched;

	(void)!evc_router_unsubscribe(sensors->router, sensors->measure_key, sensors->subscription);
	evc_mailbox_close_when_empty(sensors->mailbox);
	(void)!evc_thread_join(sensors->thread);
	evc_mailbox_release(sensors->mailbox);
	dispatched = sensors->dispatched;
	free(sensors);
	return dispatched;
}
#else
/* The package was built without the lock-free core: there is no router to start with. */
struct sensors *sensors_start(struct evc_router *router, uint64_t reading_key, uint64_t measure_key)
{
	(void)router, (void)reading_key, (void)measure_key;
	return NULL;
}

uint64_t sensors_stop(struct sensors *sensors)
{
	(void)sensors;
	return 0;
}
#endif
