/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The latencies of the core in plain C.
 *
 *     idle wake:  main: pause, dispatch ──► mailbox ──► evc_thread: wakes, notes the time
 *     ping-pong:  evc_thread ──► mailbox ──► evc_thread ──► mailbox ──► the first one again
 */
#include "check.h"

#include <eventcore/eventcore.h>

#include <stdatomic.h>
#include <string.h>

struct event {
	uint64_t words[3];
};

struct side {
	struct evc_router *router;
	/* The key that this side gets, and the one it answers with; 0: no answer. */
	uint64_t key, answer;
	/* Written by the side's own thread. */
	uint64_t *samples;
	uint64_t count;
	uint64_t target;
	struct evb_gate done;
	struct evc_mailbox *mailbox;
	struct evc_thread *thread;
};

static void dispatch(struct evc_router *router, uint64_t key, uint64_t value)
{
	struct event event = { { value, 0, 0 } };

	EVB_REQUIRE(evc_dispatch_bytes(router, key, EVC_LANE_QUEUE_NORMAL, &event, sizeof(event), 8,
				       NULL) == EVC_OK,
		    "a dispatch failed");
}

static bool note(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	const uint64_t now = evb_now();
	struct side *side = context;

	(void)envelope, (void)owned;
	side->samples[side->count] = now - ((struct event *)payload)->words[0];
	if (++side->count == side->target)
		evb_gate_set(&side->done, true);
	return false;
}

static bool answer(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct side *side = context;

	(void)envelope, (void)owned;
	EVB_REQUIRE(((struct event *)payload)->words[0] == ++side->count, "an event is missing");
	if (side->target == 0)
		dispatch(side->router, side->answer, side->count);
	else if (side->count == side->target)
		evb_gate_set(&side->done, true);
	else
		dispatch(side->router, side->answer, side->count + 1);
	return false;
}

static void open_side(struct side *side, enum evc_wait_strategy strategy,
		      bool (*deliver)(void *, void *, const struct evc_envelope *, bool))
{
	const struct evc_mailbox_options mailbox = { .size = sizeof(mailbox), .strategy = strategy };
	const struct evc_subscription_options options = { .size = sizeof(options), .context = side, .deliver = deliver };
	static const struct evb_gate closed = EVB_GATE;
	struct evc_subscription *subscription;

	side->done = closed;
	EVB_REQUIRE(evc_mailbox_create(&mailbox, &side->mailbox) == EVC_OK, "no mailbox");
	EVB_REQUIRE(evc_mailbox_add_subscription(side->mailbox, &options, &subscription) == EVC_OK,
		    "no subscription");
	EVB_REQUIRE(evc_router_subscribe(side->router, side->key, subscription, 0, false) == EVC_OK,
		    "no route");
	EVB_REQUIRE(evc_thread_start(NULL, side->mailbox, &side->thread) == EVC_OK, "no thread");
}

static void close_side(struct side *side)
{
	evc_thread_cancel(side->thread);
	EVB_REQUIRE(evc_thread_join(side->thread) == EVC_OK, "no join");
	evc_mailbox_release(side->mailbox);
}

void evb_raw_wakes(unsigned count, uint64_t gap, bool spinning, uint64_t *samples)
{
	struct side side = { .key = 1, .samples = samples, .target = count };

	EVB_REQUIRE(evc_router_create(&side.router) == EVC_OK, "no router");
	open_side(&side, EVC_WAIT_PARK, note);
	for (unsigned i = 0; i < count; i++) {
		evb_pause_for(gap, spinning);
		dispatch(side.router, 1, evb_now());
	}
	evb_gate_pass(&side.done);
	close_side(&side);
	evc_router_destroy(side.router);
}

uint64_t evb_raw_ping_pong(uint64_t rounds)
{
	struct side ping = { .key = 1, .answer = 2 };
	struct side pong = { .key = 2, .answer = 1, .target = rounds };
	uint64_t start, time;

	EVB_REQUIRE(evc_router_create(&ping.router) == EVC_OK, "no router");
	pong.router = ping.router;
	open_side(&ping, EVC_WAIT_SPIN, answer);
	open_side(&pong, EVC_WAIT_SPIN, answer);
	start = evb_now();
	dispatch(ping.router, 1, 1);
	evb_gate_pass(&pong.done);
	time = evb_now() - start;
	close_side(&ping);
	close_side(&pong);
	evc_router_destroy(ping.router);
	return time;
}
