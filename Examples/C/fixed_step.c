/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A simulation in fixed steps that gets its events from other threads, in C11: one mailbox, pumped by the loop itself,
 * and no thread but those of this program.
 *
 *     sensor threads ──► router ──► mailbox ──► the loop: pump, step, evc_reclaim
 *     driven scheduler ──► (once in 50 steps) ──►┘
 */
#include <eventcore/eventcore.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SENSORS 2u
#define READINGS 50000u
#define STEP UINT64_C(1000000)

enum { KEY_READING = 1, KEY_REPORT = 2 };

struct reading {
	uint32_t sensor;
	uint32_t number;
};

struct simulation {
	struct evc_router *router;
	struct evc_mailbox *mailbox;
	uint64_t time, readings, reports;
	uint32_t last[SENSORS];
};

static void check(enum evc_status status, const char *what)
{
	if (status == EVC_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, evc_status_text(status));
	exit(1);
}

static bool take_reading(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct simulation *simulation = context;
	const struct reading *reading = payload;

	(void)envelope, (void)owned;
	/* Each sensor's readings come in its order (D2), and each once (D4). */
	if (reading->number != ++simulation->last[reading->sensor]) {
		fprintf(stderr, "reading %" PRIu32 " of sensor %" PRIu32 " came out of order\n", reading->number,
			reading->sensor);
		exit(1);
	}
	simulation->readings++;
	return false;
}

static bool report(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct simulation *simulation = context;

	(void)payload, (void)envelope, (void)owned;
	simulation->reports++;
	return false;
}

/* The timer fires in the simulation's time, by way of the router as everything else. */
static uint64_t ask_for_report(void *context, uint64_t deadline)
{
	struct simulation *simulation = context;

	check(evc_dispatch_bytes(simulation->router, KEY_REPORT, EVC_LANE_QUEUE_HIGH, "", 0, 1, NULL), "dispatch");
	return deadline + 50 * STEP;
}

static uint64_t now(void *context)
{
	return ((const struct simulation *)context)->time;
}

static void never_sleeps(void *context, struct evc_parker *parker, uint32_t ticket, uint64_t deadline)
{
	(void)context, (void)parker, (void)ticket, (void)deadline;
}

struct sensor {
	struct evc_router *router;
	uint32_t number;
};

static void *sense(void *opaque)
{
	const struct sensor *sensor = opaque;

	for (uint32_t i = 1; i <= READINGS; i++) {
		struct reading reading = { sensor->number, i };

		check(evc_dispatch_bytes(sensor->router, KEY_READING, EVC_LANE_QUEUE_NORMAL, &reading, sizeof(reading),
					 sizeof(uint32_t), NULL),
		      "dispatch");
	}
	return NULL;
}

static struct evc_subscription *subscribe(struct simulation *simulation, uint64_t key,
					  bool (*deliver)(void *, void *, const struct evc_envelope *, bool))
{
	struct evc_subscription_options options = {
		.size = sizeof(options), .context = simulation, .deliver = deliver
	};
	struct evc_subscription *subscription;

	check(evc_mailbox_add_subscription(simulation->mailbox, &options, &subscription), "add a subscription");
	check(evc_router_subscribe(simulation->router, key, subscription, 0, false), "subscribe");
	return subscription;
}

int main(void)
{
	static const struct evc_timer_ops every_fifty_steps = { .fire = ask_for_report };
	struct simulation simulation = { .time = 0 };
	struct evc_scheduler_clock clock = { &simulation, now, never_sleeps };
	struct evc_scheduler_options driven = { .size = sizeof(driven), .clock = &clock, .driven = true };
	struct evc_scheduler *scheduler;
	struct sensor sensors[SENSORS];
	pthread_t threads[SENSORS];
	uint64_t steps = 0;

	if (evc_version() / 1000 != EVC_VERSION / 1000) {
		fprintf(stderr, "compiled for EventCore %u, and runs with %" PRIu32 "\n", (unsigned)EVC_VERSION, evc_version());
		return 1;
	}
	check(evc_router_create(&simulation.router), "make a router");
	check(evc_mailbox_create(NULL, &simulation.mailbox), "make a mailbox");
	subscribe(&simulation, KEY_READING, take_reading);
	subscribe(&simulation, KEY_REPORT, report);
	check(evc_scheduler_create(&driven, &scheduler), "make a scheduler");
	check(evc_scheduler_add(scheduler, 50 * STEP, &every_fifty_steps, &simulation, NULL), "add a timer");
	for (uint32_t i = 0; i < SENSORS; i++) {
		sensors[i] = (struct sensor){ simulation.router, i };
		if (pthread_create(&threads[i], NULL, sense, &sensors[i]) != 0)
			return 1;
	}

	/* As fast as it goes: a game would sleep until the next step is due. */
	while (simulation.readings < (uint64_t)SENSORS * READINGS || simulation.reports < 20) {
		enum evc_status status;

		simulation.time += STEP;
		(void)evc_scheduler_run_due(scheduler, simulation.time, NULL);
		/* Half a step for events; what is left keeps its order for the next one. */
		status = evc_mailbox_pump_until(simulation.mailbox, 10000, evc_clock_now() + STEP / 2, NULL);
		if (status != EVC_OK && status != EVC_EMPTY && status != EVC_TIMED_OUT)
			check(status, "pump");
		steps++;
		/* What routes and threads have left behind, at most 50 us of it. */
		status = evc_reclaim(50000);
		if (status != EVC_OK && status != EVC_TIMED_OUT)
			check(status, "reclaim");
	}
	for (uint32_t i = 0; i < SENSORS; i++)
		pthread_join(threads[i], NULL);

	evc_scheduler_close(scheduler);
	evc_scheduler_release(scheduler);
	evc_router_destroy(simulation.router);
	evc_mailbox_close(simulation.mailbox);
	evc_mailbox_release(simulation.mailbox);
	check(evc_shutdown(), "shut down");
	printf("%" PRIu64 " readings, each sensor's in order: ok\n", simulation.readings);
	return steps == 0;
}
