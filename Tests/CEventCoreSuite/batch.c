/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Batches whose events lie side by side: taken one by one, in the order of the model, whatever comes between;
 * counted by event; ended where nobody handles them.
 */
#ifdef EVC_URCU
#include "model.h"

#define KEY 7u
#define MOST 512u

struct batched {
	struct suite_receiver receiver;
	struct evc_router *router;
	struct evc_subscription *subscription;
	uint64_t values[MOST];
	unsigned lanes[MOST];
	unsigned count, drops;
	/* What the handler does once, with the event of this value. */
	uint64_t at;
	const char *(*act)(struct batched *batched);
	const char *message;
};

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct batched *batched = context;
	uint64_t value;

	(void)owned;
	__builtin_memcpy(&value, payload, sizeof(value));
	if (evc_envelope_payload((struct evc_envelope *)envelope) != payload)
		batched->message = "the envelope has another payload than was delivered";
	batched->lanes[batched->count] = evc_envelope_lane(envelope);
	batched->values[batched->count++] = value;
	if (batched->act != NULL && value == batched->at) {
		const char *message = batched->act(batched);

		if (message != NULL)
			batched->message = message;
	}
	return value % 2 == 0;
}

static void drop(void *context, void *payload)
{
	(void)payload;
	((struct batched *)context)->drops++;
}

/* How the receiver walks its batches: so many events in a call, and whether it asks once more at the end. */
struct walking {
	unsigned most;
	bool asks_again;
};

/* NULL: not at all. One test at a time. */
static const struct walking *walking;

static void deliver_batch(void *context, void *payload, const struct evc_envelope *envelope,
			  struct evc_batch_walk *walk)
{
	struct batched *batched = context;

	for (unsigned i = 1; payload != NULL; i++) {
		if (!deliver(context, payload, envelope, true))
			drop(context, payload);
		if (i == walking->most)
			return;
		payload = evc_batch_next(walk);
	}
	if (walking->asks_again && evc_batch_next(walk) != NULL)
		batched->message = "a walk that was over went on";
}

static const char *open_batched(struct batched *batched)
{
	const struct evc_mailbox_options options = { .batches = true };
	const struct evc_subscription_options subscription = {
		.context = batched,
		.deliver = deliver,
		.drop = drop,
		.deliver_batch = walking != NULL ? deliver_batch : NULL,
	};

	__builtin_memset(batched, 0, sizeof(*batched));
	EXPECT_NONE(suite_receiver_open(&batched->receiver, &options));
	EXPECT_OK(evc_mailbox_add_subscription(batched->receiver.mailbox, &subscription,
					       &batched->subscription));
	EXPECT_OK(evc_router_create(&batched->router));
	EXPECT_OK(evc_router_subscribe(batched->router, KEY, batched->subscription, 0, false));
	return NULL;
}

static const char *close_batched(struct batched *batched)
{
	EXPECT(batched->message == NULL, "%s", batched->message);
	evc_mailbox_release(batched->receiver.mailbox);
	evc_router_destroy(batched->router);
	EXPECT(suite_settle(), "the router's end took too long");
	return NULL;
}

/* Dispatches the values `first`, `first` + 1, ... as one. `*together` tells whether they went side by side. */
static const char *dispatch(struct batched *batched, unsigned lane, uint64_t first, unsigned count,
			    uint32_t *accepted, bool *together)
{
	struct evc_dispatch dispatch;
	struct evc_envelope *envelope;

	EXPECT_OK(evc_dispatch_begin_batch(batched->router, KEY, (enum evc_lane)lane, 8, 8, count,
					   &dispatch));
	EXPECT_EQUAL(dispatch.payloads, dispatch.receivers * count, "payloads");
	envelope = dispatch.first;
	if (together != NULL)
		*together = dispatch.array != NULL;
	for (unsigned i = 0; i < dispatch.payloads; i++) {
		uint64_t value = first + i % count;

		if (dispatch.array != NULL) {
			((uint64_t *)dispatch.array)[i] = value;
			continue;
		}
		__builtin_memcpy(evc_envelope_payload(envelope), &value, sizeof(value));
		envelope = evc_dispatch_next(envelope);
	}
	*accepted = evc_dispatch_commit(&dispatch);
	return NULL;
}

/* The same, to be accepted. */
static const char *send(struct batched *batched, unsigned lane, uint64_t first, unsigned count)
{
	uint32_t accepted = 0;

	EXPECT_NONE(dispatch(batched, lane, first, count, &accepted, NULL));
	EXPECT_EQUAL(accepted, 1, "receivers");
	return NULL;
}

/* The first dispatch finds the route, and goes the long way. */
static const char *warm(struct batched *batched)
{
	EXPECT_NONE(send(batched, EVC_LANE_QUEUE_NORMAL, 0, 2));
	EXPECT_STATUS(evc_mailbox_pump(batched->receiver.mailbox, MOST), EVC_EMPTY);
	batched->count = batched->drops = 0;
	return NULL;
}

static const char *expect_taken(struct batched *batched, struct model *model, uint64_t seed)
{
	for (unsigned i = 0; i < batched->count; i++) {
		unsigned lane = 0;
		uint64_t value = 0;

		EXPECT(model_take(model, &lane, &value) && lane == batched->lanes[i] &&
			       value == batched->values[i],
		       "seed %llu, take %u: expected %llu of lane %u, found %llu of lane %u",
		       (unsigned long long)seed, i, (unsigned long long)value, lane,
		       (unsigned long long)batched->values[i], batched->lanes[i]);
	}
	batched->count = 0;
	return NULL;
}

/* D1 to D3: batches of 1 to 5 and pumps of 1 to 6 by chance, on all lanes and on few. */
static const char *order(void)
{
	static struct model model;
	struct batched batched;
	uint64_t seed = suite_seed(), random = seed, value = 1;

	for (unsigned round = 0; round < SUITE_SCALE(2000); round++) {
		const unsigned lanes = round % 3 == 0 ? EVC_LANE_COUNT : 1 + round % 4;

		if (round % 50 == 0)
			EXPECT_NONE(open_batched(&batched));
		if (round % 50 == 0)
			EXPECT_NONE(warm(&batched));
		__builtin_memset(&model, 0, sizeof(model));
		for (unsigned step = 0; step < 12; step++) {
			if (suite_random(&random) % 3 != 0) {
				unsigned lane = (unsigned)(suite_random(&random) % lanes + 3) %
						EVC_LANE_COUNT;
				unsigned count = 1 + (unsigned)(suite_random(&random) % 5);

				EXPECT_NONE(send(&batched, lane, value, count));
				for (unsigned i = 0; i < count; i++)
					model_post(&model, lane, value++);
			} else {
				(void)!evc_mailbox_pump(batched.receiver.mailbox,
							1 + suite_random(&random) % 6);
				EXPECT_NONE(expect_taken(&batched, &model, seed));
			}
		}
		EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, MOST), EVC_EMPTY);
		EXPECT_NONE(expect_taken(&batched, &model, seed));
		if (round % 50 == 49 || round + 1 == SUITE_SCALE(2000))
			EXPECT_NONE(close_batched(&batched));
	}
	return NULL;
}

static const char *send_urgent(struct batched *batched)
{
	return send(batched, EVC_LANE_STACK_HIGHEST, 100, 3);
}

/* D1: what a handler dispatches overtakes the rest of the batch, whichever way the consumer looks. */
static const char *overtaken(void)
{
	static const uint64_t expected[] = { 1, 2, 102, 101, 100, 3, 4 };

	for (unsigned relying = 0; relying < 2; relying++) {
		struct batched batched;

		EXPECT_NONE(open_batched(&batched));
		EXPECT_NONE(warm(&batched));
		/* A long run from one lane is what it takes to rely on the alarm. */
		for (unsigned i = 0; relying && i < 2; i++) {
			EXPECT_NONE(send(&batched, EVC_LANE_QUEUE_NORMAL, 0, 64));
			EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, MOST), EVC_EMPTY);
			batched.count = 0;
		}
		batched.at = 2;
		batched.act = send_urgent;
		EXPECT_NONE(send(&batched, EVC_LANE_QUEUE_NORMAL, 1, 4));
		EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, MOST), EVC_EMPTY);
		EXPECT_EQUAL(batched.count, 7, "deliveries");
		for (unsigned i = 0; i < 7; i++)
			EXPECT_EQUAL(batched.values[i], expected[i], "the value delivered");
		/* Odd ones are not moved out. */
		EXPECT_EQUAL(batched.drops - 64 * relying, 3, "drops");
		EXPECT_NONE(close_batched(&batched));
	}
	return NULL;
}

static const char *depth_is(struct batched *batched, unsigned lane, uint64_t expected)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_mailbox_depths(batched->receiver.mailbox, depths);
	EXPECT_EQUAL(depths[lane], expected, "depth");
	return NULL;
}

static const char *look_at_depth(struct batched *batched)
{
	return depth_is(batched, EVC_LANE_QUEUE_LOW, 61 + 5);
}

/* Depths, statistics and the limit of a pump count events, before they are sorted and in the middle. */
static const char *counted(void)
{
	struct evc_mailbox_statistics statistics;
	struct batched batched;
	struct evc_envelope *envelope;

	EXPECT_NONE(open_batched(&batched));
	EXPECT_STATUS(evc_mailbox_take(batched.receiver.mailbox, &envelope), EVC_INVALID_ARGUMENT);
	EXPECT_NONE(warm(&batched));
	EXPECT_NONE(send(&batched, EVC_LANE_QUEUE_LOW, 0, 64));
	EXPECT_NONE(send(&batched, EVC_LANE_QUEUE_LOW, 64, 5));
	EXPECT_NONE(depth_is(&batched, EVC_LANE_QUEUE_LOW, 69));
	batched.at = 2;
	batched.act = look_at_depth;
	EXPECT_OK(evc_mailbox_pump(batched.receiver.mailbox, 63));
	EXPECT_EQUAL(batched.count, 63, "deliveries up to the limit");
	EXPECT_NONE(depth_is(&batched, EVC_LANE_QUEUE_LOW, 6));
	EXPECT_OK(evc_mailbox_pump(batched.receiver.mailbox, 1));
	EXPECT_NONE(depth_is(&batched, EVC_LANE_QUEUE_LOW, 5));
	EXPECT_OK(evc_mailbox_pump(batched.receiver.mailbox, 2));
	evc_mailbox_close(batched.receiver.mailbox);
	batched.drops = 0;
	EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, 1), EVC_CLOSED);
	evc_mailbox_read_statistics(batched.receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, 2 + 66, "taken");
	EXPECT_EQUAL(statistics.dropped, 3, "dropped");
	EXPECT_EQUAL(batched.drops, 3, "payloads ended");
	EXPECT_NONE(close_batched(&batched));
	return NULL;
}

static const char *close_mailbox(struct batched *batched)
{
	evc_mailbox_close(batched->receiver.mailbox);
	return NULL;
}

/* D10: the rest of a batch is dropped, by event, when its handler closes the mailbox; so is one not sorted. */
static const char *closed_inside(void)
{
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane += 5) {
		struct evc_mailbox_statistics statistics;
		struct batched batched;

		EXPECT_NONE(open_batched(&batched));
		EXPECT_NONE(warm(&batched));
		EXPECT_NONE(send(&batched, lane, 0, 9));
		batched.at = 4;
		batched.act = close_mailbox;
		EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, MOST), EVC_CLOSED);
		EXPECT_EQUAL(batched.count, 5, "deliveries");
		evc_mailbox_read_statistics(batched.receiver.mailbox, &statistics);
		EXPECT_EQUAL(statistics.dropped, 4, "dropped");
		EXPECT_EQUAL(batched.drops, 4 + 2, "payloads ended");
		EXPECT_NONE(close_batched(&batched));
	}
	return NULL;
}

/* A receiver that has closed between the two steps; a dispatch that is taken back. Nothing is left over. */
static const char *refused(void)
{
	struct batched batched;
	struct evc_dispatch open;
	uint32_t accepted = 1;
	bool together = false;

	EXPECT_NONE(open_batched(&batched));
	EXPECT_NONE(warm(&batched));
	for (unsigned i = 0; i < 200; i++) {
		EXPECT_OK(evc_dispatch_begin_batch(batched.router, KEY, EVC_LANE_QUEUE_NORMAL, 8, 8,
						   64, &open));
		EXPECT(open.array != NULL, "abandoned dispatch %u is not side by side", i);
		evc_dispatch_abandon(&open);
	}
	EXPECT_NONE(send(&batched, EVC_LANE_QUEUE_NORMAL, 0, 64));
	EXPECT_STATUS(evc_mailbox_pump(batched.receiver.mailbox, MOST), EVC_EMPTY);
	EXPECT_EQUAL(batched.count, 64, "deliveries");
	evc_mailbox_close(batched.receiver.mailbox);
	batched.drops = 0;
	EXPECT_NONE(dispatch(&batched, EVC_LANE_STACK_LOW, 0, 3, &accepted, &together));
	EXPECT(together, "the refused batch was not side by side");
	EXPECT_EQUAL(accepted, 0, "receivers of a closed mailbox");
	EXPECT_EQUAL(batched.drops, 3, "payloads ended");
	EXPECT_NONE(close_batched(&batched));
	return NULL;
}

/* One event, more than a box of a pool holds, a strict alignment, two receivers: an envelope for each. */
static const char *apart(void)
{
	static const struct {
		size_t size, alignment;
		uint32_t events;
		bool together;
	} cases[] = {
		{ 8, 8, 1, false },   { 8, 8, 2, true },    { 0, 1, 64, true },
		{ 24, 8, 64, true },  { 63, 1, 64, true },  { 64, 8, 64, false },
		{ 64, 8, 63, true },  { 2040, 8, 2, true }, { 2041, 8, 2, false },
		{ 8, 32, 4, false },  { 9, 8, 64, true },
	};
	struct suite_receiver other;
	struct batched batched;
	struct evc_dispatch open;

	EXPECT_NONE(open_batched(&batched));
	EXPECT_NONE(warm(&batched));
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		EXPECT_OK(evc_dispatch_begin_batch(batched.router, KEY, EVC_LANE_QUEUE_NORMAL,
						   cases[i].size, cases[i].alignment,
						   cases[i].events, &open));
		EXPECT_EQUAL(open.array != NULL, cases[i].together, "side by side");
		evc_dispatch_abandon(&open);
	}
	EXPECT_NONE(suite_receiver_open(&other, NULL));
	EXPECT_OK(evc_router_subscribe(batched.router, KEY, other.subscription, 0, false));
	EXPECT_OK(evc_dispatch_begin_batch(batched.router, KEY, EVC_LANE_QUEUE_NORMAL, 8, 8, 2, &open));
	EXPECT(open.array == NULL && open.receivers == 2, "two receivers share a batch");
	evc_dispatch_abandon(&open);
	EXPECT_STATUS(evc_dispatch_begin_batch(batched.router, KEY, EVC_LANE_QUEUE_NORMAL, 8, 8, 65,
					       &open),
		      EVC_INVALID_ARGUMENT);
	EXPECT_OK(evc_router_unsubscribe(batched.router, KEY, other.subscription));
	evc_mailbox_release(other.mailbox);
	EXPECT_NONE(close_batched(&batched));
	return NULL;
}

static const char *walked(const char *(*test)(void))
{
	static const struct walking ways[] = {
		{ 0, false }, { 0, true }, { 1, false }, { 2, true },
	};
	const char *failure = NULL;

	for (unsigned i = 0; failure == NULL && i < sizeof(ways) / sizeof(ways[0]); i++) {
		walking = &ways[i];
		failure = test();
	}
	walking = NULL;
	return failure;
}

static const char *walked_order(void)
{
	return walked(order);
}

static const char *walked_overtaken(void)
{
	return walked(overtaken);
}

static const char *walked_counted(void)
{
	return walked(counted);
}

static const char *walked_closed_inside(void)
{
	return walked(closed_inside);
}

static const struct evc_suite_test tests[] = {
	{ "D1 D2 D3 batches by chance: each take is the model's", order },
	{ "D1 an urgent batch overtakes the rest of another", overtaken },
	{ "depths, statistics and limits count the events of a batch", counted },
	{ "D10 the rest of a batch is dropped by event", closed_inside },
	{ "D1 D2 D3 batches by chance, walked by the receiver", walked_order },
	{ "D1 an urgent batch overtakes the rest of one that the receiver walks", walked_overtaken },
	{ "depths, statistics and limits, where the receiver walks its batches", walked_counted },
	{ "D10 the rest of a batch that the receiver walks is dropped by event", walked_closed_inside },
	{ "D4 a batch that is refused or taken back leaves nothing", refused },
	{ "batches that cannot go side by side go apart", apart },
};

SUITE_GROUP(suite_batch, tests);
#endif
