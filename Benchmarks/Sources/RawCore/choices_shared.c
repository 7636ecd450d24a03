/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The shared mailbox beside what one would write instead: ten deques under one mutex, with a condition
 * that is signalled if somebody waits.
 *
 *     producer ──► ten lanes ──┬──► worker: add up
 *                              └──► worker: add up
 */
#include "check.h"

#include <eventcore/eventcore.h>

#include <stdatomic.h>
#include <string.h>

#define MOST_WORKERS 8u

/* Of one worker, on a line of its own. */
struct tally {
	_Alignas(EVC_CACHE_LINE) uint64_t sum;
	uint64_t work;
	_Atomic uint64_t *left;
	struct evb_gate *done;
};

struct event {
	uint64_t words[3];
};

static void handle(struct tally *tally, uint64_t value)
{
	tally->sum += value;
	if (tally->work != 0)
		evb_pause_for(tally->work, true);
	if (atomic_fetch_sub_explicit(tally->left, 1, memory_order_acq_rel) == 1)
		evb_gate_set(tally->done, true);
}

static unsigned next_lane(uint64_t *random, bool random_lanes)
{
	if (!random_lanes)
		return EVC_LANE_QUEUE_NORMAL;
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (unsigned)((uint32_t)*random * (uint64_t)EVC_LANE_COUNT >> 32);
}

static void check(const struct tally *tallies, unsigned workers, uint64_t events)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < workers; i++)
		sum += tallies[i].sum;
	EVB_REQUIRE(sum == events * (events + 1) / 2, "the checksum is wrong");
}

/* The core's. */

static bool deliver(void *worker, void *context, void *payload, struct evc_envelope *envelope,
		    bool owned)
{
	uint64_t value;

	(void)context, (void)envelope, (void)owned;
	memcpy(&value, payload, sizeof(value));
	handle(worker, value);
	return true;
}

uint64_t evb_choice_shared(unsigned workers, uint64_t work, bool random_lanes, uint64_t events)
{
	const struct evc_shared_subscription_options options = { .size = sizeof(options), .deliver = deliver };
	struct evb_gate done = EVB_GATE;
	_Atomic uint64_t left = events;
	struct tally tallies[MOST_WORKERS];
	struct evc_shared_mailbox *mailbox;
	struct evc_subscription *subscription;
	struct evc_worker *made[MOST_WORKERS];
	struct evc_thread *threads[MOST_WORKERS];
	struct evc_router *router;
	uint64_t random = 0x9E3779B97F4A7C15u, start, time;

	EVB_REQUIRE(workers <= MOST_WORKERS, "there is room for eight");
	EVB_REQUIRE(evc_router_create(&router) == EVC_OK, "no router");
	EVB_REQUIRE(evc_shared_mailbox_create(&mailbox) == EVC_OK, "no mailbox");
	EVB_REQUIRE(evc_shared_mailbox_add_subscription(mailbox, &options, &subscription) == EVC_OK,
		    "no subscription");
	EVB_REQUIRE(evc_router_subscribe(router, 1, subscription, 0, false) == EVC_OK, "no route");
	for (unsigned i = 0; i < workers; i++) {
		struct evc_mailbox_options own = { .size = sizeof(own), .context = &tallies[i] };

		tallies[i] = (struct tally){ 0, work, &left, &done };
		EVB_REQUIRE(evc_worker_create(mailbox, &own, &made[i]) == EVC_OK, "no worker");
		EVB_REQUIRE(evc_thread_start_worker(NULL, made[i], &threads[i]) == EVC_OK,
			    "no thread");
	}
	start = evb_now();
	for (uint64_t i = 1; i <= events; i++) {
		enum evc_lane lane = (enum evc_lane)next_lane(&random, random_lanes);
		struct evc_dispatch dispatch;
		uint64_t *words;

		EVB_REQUIRE(evc_dispatch_begin(router, 1, lane, sizeof(struct event), 8, 1,
					       &dispatch) == EVC_OK,
			    "a dispatch failed");
		/* Field by field; see throughput.c. */
		words = evc_envelope_payload(dispatch.first);
		words[0] = i;
		words[1] = words[2] = 0;
		evc_dispatch_commit(&dispatch);
	}
	evb_gate_pass(&done);
	time = evb_now() - start;
	evc_shared_mailbox_close(mailbox);
	for (unsigned i = 0; i < workers; i++) {
		EVB_REQUIRE(evc_thread_join(threads[i]) == EVC_OK, "no join");
		evc_worker_destroy(made[i]);
	}
	check(tallies, workers, events);
	evc_router_destroy(router);
	evc_shared_mailbox_release(mailbox);
	return time;
}

/* Ten deques, a mutex, a condition. */

struct deque {
	struct event *events;
	/* A power of two. */
	size_t capacity;
	/* Never wrapped: the place is the number modulo the capacity. */
	size_t first, end;
};

struct deques {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	struct deque lanes[EVC_LANE_COUNT];
	uint32_t occupied;
	unsigned waiting;
	bool closed;
};

static void put(struct deque *deque, struct event event)
{
	if (deque->end - deque->first == deque->capacity) {
		size_t capacity = deque->capacity != 0 ? deque->capacity * 2 : 64;
		struct event *events = malloc(capacity * sizeof(*events));

		EVB_REQUIRE(events != NULL, "no memory");
		for (size_t i = deque->first; i != deque->end; i++)
			events[i & (capacity - 1)] = deque->events[i & (deque->capacity - 1)];
		free(deque->events);
		deque->events = events;
		deque->capacity = capacity;
	}
	deque->events[deque->end++ & (deque->capacity - 1)] = event;
}

struct deque_worker {
	struct deques *deques;
	struct tally *tally;
};

static void *work(void *argument)
{
	struct deque_worker *self = argument;
	struct deques *deques = self->deques;

	for (;;) {
		struct event event;
		struct deque *deque;
		unsigned lane;

		pthread_mutex_lock(&deques->mutex);
		while (deques->occupied == 0 && !deques->closed) {
			deques->waiting++;
			pthread_cond_wait(&deques->condition, &deques->mutex);
			deques->waiting--;
		}
		if (deques->occupied == 0) {
			pthread_mutex_unlock(&deques->mutex);
			return NULL;
		}
		lane = (unsigned)__builtin_ctz(deques->occupied);
		deque = &deques->lanes[lane];
		event = deque->events[(lane < EVC_LANE_FIRST_QUEUE ? --deque->end : deque->first++) &
				      (deque->capacity - 1)];
		if (deque->first == deque->end)
			deques->occupied &= ~(1u << lane);
		pthread_mutex_unlock(&deques->mutex);
		handle(self->tally, event.words[0]);
	}
}

uint64_t evb_choice_mutex_deques(unsigned workers, uint64_t duration, bool random_lanes,
				 uint64_t events)
{
	struct deques deques = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, { { 0 } }, 0,
				 0, false };
	struct evb_gate done = EVB_GATE;
	_Atomic uint64_t left = events;
	struct tally tallies[MOST_WORKERS];
	struct deque_worker made[MOST_WORKERS];
	pthread_t threads[MOST_WORKERS];
	uint64_t random = 0x9E3779B97F4A7C15u, start, time;

	EVB_REQUIRE(workers <= MOST_WORKERS, "there is room for eight");
	for (unsigned i = 0; i < workers; i++) {
		tallies[i] = (struct tally){ 0, duration, &left, &done };
		made[i] = (struct deque_worker){ &deques, &tallies[i] };
		threads[i] = evb_start(work, &made[i]);
	}
	start = evb_now();
	for (uint64_t i = 1; i <= events; i++) {
		unsigned lane = next_lane(&random, random_lanes);
		bool signal;

		pthread_mutex_lock(&deques.mutex);
		put(&deques.lanes[lane], (struct event){ { i, 0, 0 } });
		deques.occupied |= 1u << lane;
		signal = deques.waiting != 0;
		pthread_mutex_unlock(&deques.mutex);
		if (signal)
			pthread_cond_signal(&deques.condition);
	}
	evb_gate_pass(&done);
	time = evb_now() - start;
	pthread_mutex_lock(&deques.mutex);
	deques.closed = true;
	pthread_cond_broadcast(&deques.condition);
	pthread_mutex_unlock(&deques.mutex);
	for (unsigned i = 0; i < workers; i++)
		evb_join(threads[i]);
	check(tallies, workers, events);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		free(deques.lanes[lane].events);
	return time;
}
