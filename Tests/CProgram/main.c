/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The core as used by a program in plain C (or C++): the public headers and nothing else.
 *
 *     main: dispatch ──► router ──► mailbox ──► evc_thread: check
 *
 * The first part is posted while the consumer is held inside a handler, so that all of it waits and its order
 * is fully determined (D1 to D3). The rest is dispatched while the consumer works; then the order within each
 * queue lane (D2) and "exactly once" (D4) are guaranteed.
 */
#include <eventcore/eventcore.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define EVENTS 100000u
#define HELD 10000u
#define KEY_COUNT 1u
#define KEY_GATE 2u

struct event {
	uint32_t lane;
	uint32_t number;
};

/* Opened once; no thread guesses how long something takes. */
struct gate {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	bool open;
};

#define GATE_CLOSED { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false }

static struct gate consumer_is_held = GATE_CLOSED;
static struct gate consumer_may_go = GATE_CLOSED;
static struct gate held_part_is_done = GATE_CLOSED;

/* Written by the consumer alone; main reads it after the join. */
static struct event arrived[EVENTS];
static uint32_t arrived_count;

static void gate_open(struct gate *gate)
{
	pthread_mutex_lock(&gate->mutex);
	gate->open = true;
	pthread_cond_broadcast(&gate->condition);
	pthread_mutex_unlock(&gate->mutex);
}

static void gate_pass(struct gate *gate)
{
	pthread_mutex_lock(&gate->mutex);
	while (!gate->open)
		pthread_cond_wait(&gate->condition, &gate->mutex);
	pthread_mutex_unlock(&gate->mutex);
}

static bool hold(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	gate_open(&consumer_is_held);
	gate_pass(&consumer_may_go);
	return false;
}

static bool record(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)envelope, (void)owned;
	if (arrived_count < EVENTS)
		memcpy(&arrived[arrived_count], payload, sizeof(struct event));
	if (++arrived_count == HELD)
		gate_open(&held_part_is_done);
	return false;
}

static int wrong(const char *what, unsigned index)
{
	printf("wrong: %s (event %u)\n", what, index);
	return 1;
}

/* Seven and ten have no common divisor, so that neighbours differ and every lane gets a tenth. */
static uint32_t lane_of(uint32_t index)
{
	return index * 7 % EVC_LANE_COUNT;
}

static enum evc_status dispatch(struct evc_router *router, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		struct event event = { lane_of(i), i };
		uint32_t receivers = 0;
		enum evc_status status =
			evc_dispatch_bytes(router, KEY_COUNT, (enum evc_lane)event.lane, &event,
					   sizeof(event), sizeof(uint32_t), &receivers);

		if (status != EVC_OK)
			return status;
		if (receivers != 1)
			return EVC_NOT_FOUND;
	}
	return EVC_OK;
}

/* What waited behind the gate came lane by lane: stacks newest first, queues oldest first. */
static int check_held(void)
{
	const uint32_t each = HELD / EVC_LANE_COUNT;

	for (uint32_t i = 0; i < HELD; i++) {
		uint32_t lane = i / each;

		if (arrived[i].lane != lane)
			return wrong("D1, a later lane came first", i);
		if (i % each == 0)
			continue;
		if (lane < EVC_LANE_FIRST_QUEUE ? arrived[i].number >= arrived[i - 1].number
						: arrived[i].number <= arrived[i - 1].number)
			return wrong("D2 or D3, the order within a lane", i);
	}
	return 0;
}

static int check_all(void)
{
	static unsigned char seen[EVENTS];
	uint32_t last[EVC_LANE_COUNT];
	bool any[EVC_LANE_COUNT];

	memset(any, 0, sizeof(any));
	if (arrived_count != EVENTS)
		return wrong("D4, the number of events that came", arrived_count);
	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t lane = arrived[i].lane, number = arrived[i].number;

		if (number >= EVENTS || lane != lane_of(number))
			return wrong("the payload was changed on its way", i);
		if (seen[number]++ != 0)
			return wrong("D4, an event came twice", number);
		if (lane >= EVC_LANE_FIRST_QUEUE && any[lane] && last[lane] >= number)
			return wrong("D2, a queue lane lost its order", i);
		last[lane] = number;
		any[lane] = true;
	}
	return check_held();
}

static int fail(const char *what, enum evc_status status)
{
	printf("wrong: %s: %s\n", what, evc_status_text(status));
	return 1;
}

int main(void)
{
	struct evc_subscription_options options = { .size = sizeof(options) };
	struct evc_subscription *gate, *counter;
	struct evc_mailbox *mailbox;
	struct evc_thread *thread;
	struct evc_router *router;
	enum evc_status status;
	int result;

	if ((status = evc_router_create(&router)) != EVC_OK)
		return fail("evc_router_create", status);
	if ((status = evc_mailbox_create(NULL, &mailbox)) != EVC_OK)
		return fail("evc_mailbox_create", status);
	options.deliver = hold;
	if ((status = evc_mailbox_add_subscription(mailbox, &options, &gate)) != EVC_OK)
		return fail("evc_mailbox_add_subscription", status);
	options.deliver = record;
	if ((status = evc_mailbox_add_subscription(mailbox, &options, &counter)) != EVC_OK)
		return fail("evc_mailbox_add_subscription", status);
	if ((status = evc_router_subscribe(router, KEY_GATE, gate, 0, false)) != EVC_OK ||
	    (status = evc_router_subscribe(router, KEY_COUNT, counter, 0, false)) != EVC_OK)
		return fail("evc_router_subscribe", status);
	if ((status = evc_thread_start(NULL, mailbox, &thread)) != EVC_OK)
		return fail("evc_thread_start", status);

	status = evc_dispatch_bytes(router, KEY_GATE, EVC_LANE_STACK_HIGHEST, "", 0, 1, NULL);
	if (status != EVC_OK)
		return fail("evc_dispatch_bytes", status);
	gate_pass(&consumer_is_held);
	status = dispatch(router, 0, HELD);
	gate_open(&consumer_may_go);
	/* Later posts may overtake what is still waiting, which is correct: they are another part. */
	if (status == EVC_OK) {
		gate_pass(&held_part_is_done);
		status = dispatch(router, HELD, EVENTS);
	}
	if (status != EVC_OK)
		return fail("evc_dispatch_bytes", status);

	evc_mailbox_close_when_empty(mailbox);
	if ((status = evc_thread_join(thread)) != EVC_OK)
		return fail("evc_thread_join", status);
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
	if ((status = evc_shutdown()) != EVC_OK)
		return fail("evc_shutdown", status);
	result = check_all();
	if (result == 0)
		printf("%u events, %u lanes: ok\n", EVENTS, EVC_LANE_COUNT);
	return result;
}
