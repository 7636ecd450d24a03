/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Latest-only subscriptions of a shared mailbox, on one thread that alternates between workers: which event
 * is taken by which worker, and what is counted.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "place.h"

#include "lanes/shared_queue.h"
#include "memory/subscription.h"

#include <string.h>

static const char *dispatch(struct place *place, uint64_t key, unsigned lane, uint64_t value)
{
	uint32_t receivers = 0;

	EXPECT_OK(evc_dispatch_bytes(place->router, key, (enum evc_lane)lane, &value, sizeof(value),
				     _Alignof(uint64_t), &receivers));
	EXPECT_EQUAL(receivers, 1, "receivers");
	return NULL;
}

static const char *expect_take(struct evc_worker *worker, unsigned lane, uint64_t value)
{
	unsigned found_lane;
	uint64_t found;

	EXPECT_OK(shared_take(worker, &found_lane, &found));
	EXPECT_EQUAL(found, value, "the event that was taken");
	EXPECT_EQUAL(found_lane, lane, "its lane");
	return NULL;
}

static const char *expect_empty(struct evc_worker *worker)
{
	unsigned lane;
	uint64_t value;

	EXPECT_STATUS(shared_take(worker, &lane, &value), EVC_EMPTY);
	return NULL;
}

static const char *expect_taken(struct place *place, uint64_t taken, uint64_t dropped)
{
	struct evc_mailbox_statistics statistics;

	evc_shared_mailbox_read_statistics(place->receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, taken, "taken");
	EXPECT_EQUAL(statistics.dropped, dropped, "dropped");
	return NULL;
}

static const char *newest_of_some(void)
{
	static const unsigned counts[] = { 0, 1, 2, 3, 4, 5, 64, 1000 };

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct evc_worker *one, *two;
		struct place place;
		uint64_t superseded = counts[i] > 1 ? counts[i] - 1 : 0;

		EXPECT_NONE(place_open(&place));
		EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &one));
		EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &two));
		for (unsigned value = 1; value <= counts[i]; value++)
			EXPECT_NONE(dispatch(&place, PLACE_LATEST, EVC_LANE_QUEUE_NORMAL, value));
		if (counts[i] > 0)
			EXPECT_NONE(expect_take(i % 2 ? one : two, EVC_LANE_QUEUE_NORMAL, counts[i]));
		EXPECT_NONE(expect_empty(one));
		EXPECT_NONE(expect_empty(two));
		EXPECT_EQUAL(place.drops, superseded, "calls of drop");
		EXPECT_NONE(expect_taken(&place, counts[i] > 0, 0));
		evc_worker_destroy(one);
		evc_worker_destroy(two);
		EXPECT_NONE(place_close(&place, superseded));
	}
	return NULL;
}

/* Every order of three posts on any lanes, with an ordinary event on each lane; two workers alternate. */
static const char *every_three_lanes(void)
{
	/* How many a place has: to close one takes 60 ms. */
	enum { EACH = EVC_LANE_COUNT * EVC_LANE_COUNT };
	struct place place;

	for (unsigned code = 0; code < EACH * EVC_LANE_COUNT; code++) {
		unsigned lanes[3] = { code % EVC_LANE_COUNT, code / EVC_LANE_COUNT % EVC_LANE_COUNT,
				      code / EVC_LANE_COUNT / EVC_LANE_COUNT };
		struct evc_worker *workers[2];
		unsigned turn = 0;

		if (code % EACH == 0)
			EXPECT_NONE(place_open(&place));
		for (unsigned i = 0; i < 2; i++)
			EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &workers[i]));
		for (unsigned i = 0; i < 3; i++)
			EXPECT_NONE(dispatch(&place, PLACE_LATEST, lanes[i], 100 + i));
		for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
			EXPECT_NONE(dispatch(&place, PLACE_PLAIN, lane, lane));
		for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
			bool stack = lane < EVC_LANE_FIRST_QUEUE;

			if (stack)
				EXPECT_NONE(expect_take(workers[turn++ % 2], lane, lane));
			if (lane == lanes[2])
				EXPECT_NONE(expect_take(workers[turn++ % 2], lane, 102));
			if (!stack)
				EXPECT_NONE(expect_take(workers[turn++ % 2], lane, lane));
		}
		EXPECT_NONE(expect_empty(workers[turn % 2]));
		EXPECT_NONE(expect_taken(&place, (code % EACH + 1) * (1 + EVC_LANE_COUNT), 0));
		EXPECT_EQUAL(place.drops, 2 * (code % EACH + 1), "calls of drop");
		for (unsigned i = 0; i < 2; i++)
			evc_worker_destroy(workers[i]);
		if (code % EACH == EACH - 1)
			EXPECT_NONE(place_close(&place, 2 * EACH));
	}
	return NULL;
}

/* The token is posted anew as soon as it was taken, while the first event is still being handled. */
static const char *next_while_handled(void)
{
	struct evc_envelope *first, *second;
	struct evc_worker *one, *two;
	struct place place;

	EXPECT_NONE(place_open(&place));
	EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &one));
	EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &two));
	EXPECT_NONE(dispatch(&place, PLACE_LATEST, EVC_LANE_STACK_HIGH, 1));
	EXPECT_OK(evc_worker_take(one, &first));
	EXPECT_NONE(dispatch(&place, PLACE_LATEST, EVC_LANE_STACK_HIGH, 2));
	EXPECT_NONE(dispatch(&place, PLACE_LATEST, EVC_LANE_STACK_HIGH, 3));
	EXPECT_OK(evc_worker_take(two, &second));
	EXPECT_EQUAL(*(uint64_t *)evc_envelope_payload(first), 1, "the first");
	EXPECT_EQUAL(*(uint64_t *)evc_envelope_payload(second), 3, "the second");
	evc_worker_recycle(one, first, true);
	EXPECT_NONE(expect_empty(one));
	/* The subscription outlives its owner and its routes for what is being handled. */
	EXPECT_OK(evc_router_unsubscribe(place.router, PLACE_LATEST, place.latest));
	EXPECT(suite_settle(), "the router is held up");
	evc_latest_subscription_release(place.latest);
	EXPECT_EQUAL(place.finalized, 0, "calls of finalize");
	evc_worker_recycle(two, second, true);
	EXPECT_EQUAL(place.finalized, 1, "calls of finalize");
	evc_worker_destroy(one);
	evc_worker_destroy(two);
	evc_router_destroy(place.router);
	EXPECT(suite_settle(), "the router is held up");
	evc_shared_mailbox_release(place.receiver.mailbox);
	EXPECT(suite_quiesce(), "the end of a subscription is held up");
	return NULL;
}

static bool count(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	atomic_fetch_add(&((struct place *)context)->handled, 1);
	return true;
}

static const char *depth(void)
{
	uint64_t depths[EVC_LANE_COUNT];
	struct evc_worker *worker;
	struct place place;

	EXPECT_NONE(place_open(&place));
	EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &worker));
	for (unsigned newest = 0; newest < EVC_LANE_COUNT; newest++) {
		EXPECT_NONE(dispatch(&place, PLACE_LATEST, newest, newest));
		evc_shared_mailbox_depths(place.receiver.mailbox, depths);
		for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
			EXPECT_EQUAL(depths[lane], lane == newest, "depth of a lane");
	}
	EXPECT_NONE(expect_take(worker, EVC_LANE_COUNT - 1, EVC_LANE_COUNT - 1));
	evc_shared_mailbox_depths(place.receiver.mailbox, depths);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		EXPECT_EQUAL(depths[lane], 0, "depth of a lane after the take");
	evc_worker_destroy(worker);
	return place_close(&place, EVC_LANE_COUNT - 1);
}

/* A latest-only subscription of a worker's own mailbox has a slot of its own. */
static const char *own_slot(void)
{
	struct evc_subscription *own;
	struct evc_worker *worker;
	struct place place;
	struct evc_subscription_options options = {
		.size = sizeof(options), .context = &place, .deliver = count, .drop = place_drop,
	};

	EXPECT_NONE(place_open(&place));
	EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &worker));
	EXPECT_OK(evc_mailbox_add_latest_subscription(evc_worker_mailbox(worker), &options, &own));
	EXPECT_OK(evc_router_subscribe(place.router, 3, own, 0, false));
	EXPECT_NONE(dispatch(&place, PLACE_LATEST, EVC_LANE_QUEUE_NORMAL, 1));
	for (unsigned value = 2; value <= 4; value++)
		EXPECT_NONE(dispatch(&place, 3, EVC_LANE_QUEUE_NORMAL, value));
	EXPECT_NONE(dispatch(&place, 3, EVC_LANE_QUEUE_HIGH, 5));
	EXPECT_NONE(dispatch(&place, 3, EVC_LANE_QUEUE_LOW, 6));
	EXPECT_NONE(dispatch(&place, PLACE_LATEST, EVC_LANE_QUEUE_NORMAL, 7));
	EXPECT_NONE(expect_take(worker, EVC_LANE_QUEUE_NORMAL, 7));
	EXPECT_NONE(expect_take(worker, EVC_LANE_QUEUE_LOW, 6));
	EXPECT_NONE(expect_empty(worker));
	EXPECT_EQUAL(evc_latest_subscription_superseded(own), 4, "superseded of the worker's");
	evc_latest_subscription_release(own);
	evc_router_destroy(place.router);
	EXPECT(suite_settle(), "the router is held up");
	EXPECT_EQUAL(evc_latest_subscription_superseded(place.latest), 1, "superseded");
	evc_worker_destroy(worker);
	evc_latest_subscription_release(place.latest);
	evc_shared_mailbox_release(place.receiver.mailbox);
	EXPECT(suite_quiesce(), "the end of a subscription is held up");
	return NULL;
}

static const char *refused(void)
{
	struct evc_shared_subscription_options options = { .size = sizeof(options) };
	struct evc_subscription *made;
	struct place place;
	uint32_t receivers = 7;
	uint64_t value = 1;

	EXPECT_NONE(place_open(&place));
	EXPECT_STATUS(evc_shared_mailbox_add_latest_subscription(place.receiver.mailbox, &options,
								 &made),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_shared_mailbox_add_latest_subscription(NULL, &options, &made),
		      EVC_INVALID_ARGUMENT);
	EXPECT_NONE(dispatch(&place, PLACE_LATEST, EVC_LANE_QUEUE_NORMAL, 1));
	evc_shared_mailbox_close(place.receiver.mailbox);
	EXPECT_OK(evc_dispatch_bytes(place.router, PLACE_LATEST, EVC_LANE_QUEUE_NORMAL, &value,
				     sizeof(value), _Alignof(uint64_t), &receivers));
	EXPECT_EQUAL(receivers, 0, "receivers of a closed mailbox");
	/* The one that waits goes with the last reference. */
	evc_router_destroy(place.router);
	EXPECT(suite_settle(), "the router is held up");
	evc_latest_subscription_release(place.latest);
	EXPECT_EQUAL(place.finalized, 0, "calls of finalize");
	evc_shared_mailbox_release(place.receiver.mailbox);
	/* The dispatch ends the refused event, with the same function. */
	EXPECT_EQUAL(place.drops, 2, "calls of drop");
	EXPECT_EQUAL(place.finalized, 1, "calls of finalize");
	EXPECT(suite_quiesce(), "the end of a subscription is held up");
	return NULL;
}

/* Without memory for a token nothing is accepted, and nothing is superseded. */
static const char *no_memory(void)
{
	static struct evc_queue_segment *segments[8192];
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_worker *worker;
	struct place place;
	enum evc_status status;
	unsigned count = 0;
	bool is_out;

	EXPECT_NONE(place_open(&place));
	EXPECT_OK(evc_worker_create(place.receiver.mailbox, NULL, &worker));
	/* One event waits, and has its token. */
	EXPECT_NONE(dispatch(&place, PLACE_LATEST, EVC_LANE_QUEUE_HIGH, 1));
	EXPECT_OK(suite_append(&chain, place.latest, EVC_LANE_QUEUE_LOW, 2));
	suite_allocator_install(0, UINT64_MAX);
	while (count < 8192 && (segments[count] = evc_queue_segment_create()) != NULL)
		count++;
	is_out = count < 8192;
	status = place.latest->sink->accept(place.latest->sink, &chain);
	while (count > 0)
		evc_spare_give(evc_thread_record_current, EVC_SPARE_SEGMENT, segments[--count]);
	suite_allocator_restore();
	EXPECT(is_out, "memory is not out");
	EXPECT_STATUS(status, EVC_OUT_OF_MEMORY);
	EXPECT_NONE(expect_take(worker, EVC_LANE_QUEUE_HIGH, 1));
	EXPECT_NONE(expect_empty(worker));
	/* It still belongs to the caller, who may try again. */
	EXPECT_OK(place.latest->sink->accept(place.latest->sink, &chain));
	EXPECT_NONE(expect_take(worker, EVC_LANE_QUEUE_LOW, 2));
	EXPECT_NONE(expect_taken(&place, 2, 0));
	evc_worker_destroy(worker);
	return place_close(&place, 0);
}

static const struct evc_suite_test tests[] = {
	{ "D4 of the waiting events the newest is taken, by whichever worker comes first", newest_of_some },
	{ "D1 the newest is on its own lane, whatever lanes the others were on", every_three_lanes },
	{ "a worker may take the next while another handles the one before", next_while_handled },
	{ "D4 one event waits, whatever lanes have tokens, and counts in its own", depth },
	{ "D1 a latest-only subscription of one worker has a slot of its own", own_slot },
	{ "D12 a closed mailbox refuses, and a wrong argument is a status", refused },
	{ "D12 without memory a dispatch is refused, and nothing is lost", no_memory },
};
SUITE_GROUP(suite_shared_latest, tests);
#endif
