/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What a consumer posts to its own mailbox, between its pumps and inside handlers: the same order, the same
 * counts and the same end as any other post, although it need not cross the inbox.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/mailbox_own.h"
#include "model.h"

#define KEYS 3u
/* Two keys of eight bytes, so that events of one kind follow one another or do not, and one of 24. */
static const size_t sizes[KEYS] = { 8, 8, 24 };

struct own {
	struct evc_router *router;
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscriptions[KEYS];
	struct model model;
	uint64_t next, random, delivered, drops;
	unsigned wakes;
	/* How many more events handlers post. */
	unsigned replies;
	/* And `idle`. */
	unsigned idle_posts;
	const char *message;
	bool is_unordered;
	void (*at_drop)(struct own *own);
};

static void wake(void *context)
{
	((struct own *)context)->wakes++;
}

static void drop(void *context, void *payload)
{
	struct own *own = context;

	(void)payload;
	own->drops++;
	if (own->at_drop != NULL)
		own->at_drop(own);
}

/* Dispatches one event with either form of a dispatch; the model learns of it if it is accepted. */
static const char *send(struct own *own, unsigned lane, unsigned kind)
{
	uint64_t payload[3] = { own->next++, 0, 0 };
	uint32_t receivers = 0;
	void *place = NULL;

	if (suite_random(&own->random) % 4 != 0)
		place = evc_dispatch_begin_one(own->router, kind + 1, (enum evc_lane)lane, sizes[kind], 8);
	if (place != NULL) {
		__builtin_memcpy(place, payload, sizes[kind]);
		receivers = evc_dispatch_commit_one(place);
	} else {
		EXPECT_OK(evc_dispatch_bytes(own->router, kind + 1, (enum evc_lane)lane, payload, sizes[kind],
					     8, &receivers));
	}
	if (receivers == 1)
		model_post(&own->model, lane, payload[0]);
	return NULL;
}

static const char *send_some(struct own *own, unsigned count)
{
	unsigned lane = 0, kind = 0;

	for (unsigned i = 0; i < count; i++) {
		/* Runs of one kind, in one lane, mostly a queue. */
		if (i == 0 || suite_random(&own->random) % 8 == 0) {
			kind = (unsigned)(suite_random(&own->random) % KEYS);
			lane = (unsigned)(suite_random(&own->random) % EVC_LANE_COUNT);
			if (suite_random(&own->random) % 2 == 0)
				lane = EVC_LANE_QUEUE_NORMAL;
		}
		EXPECT_NONE(send(own, lane, kind));
	}
	return NULL;
}

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct own *own = context;
	unsigned lane = EVC_LANE_COUNT, found = evc_envelope_lane(envelope);
	uint64_t value, expected = 0;

	__builtin_memcpy(&value, payload, sizeof(value));
	own->delivered++;
	if (own->is_unordered)
		return false;
	if (!model_take(&own->model, &lane, &expected) || value != expected || lane != found || !owned)
		own->message = suite_fail("expected event %llu of lane %u, found %llu of lane %u",
					  (unsigned long long)expected, lane, (unsigned long long)value, found);
	if (own->replies > 0 && suite_random(&own->random) % 2 == 0) {
		const char *message;

		own->replies--;
		message = send_some(own, 1 + (unsigned)(suite_random(&own->random) % 3));
		if (message != NULL)
			own->message = message;
	}
	return false;
}

static void deliver_batch(void *context, void *payload, const struct evc_envelope *envelope,
			  struct evc_batch_walk *walk)
{
	do {
		(void)deliver(context, payload, envelope, true);
		drop(context, payload);
	} while ((payload = evc_batch_next(walk)) != NULL);
}

static void idle(void *context)
{
	struct own *own = context;

	if (own->idle_posts == 0)
		return;
	own->idle_posts--;
	own->message = send(own, EVC_LANE_QUEUE_LOW, 0);
}

static const char *open_own(struct own *own, uint64_t seed, bool batches, bool walks)
{
	const struct evc_mailbox_options options = {
		.size = sizeof(options), .wake = wake, .idle = idle, .context = own, .batches = batches
	};
	const struct evc_subscription_options subscription = {
		.size = sizeof(subscription), .context = own,
		.deliver = deliver,
		.drop = drop,
		.deliver_batch = walks ? deliver_batch : NULL,
	};

	__builtin_memset(own, 0, sizeof(*own));
	own->random = seed;
	EXPECT_OK(evc_mailbox_create(&options, &own->mailbox));
	EXPECT_OK(evc_router_create(&own->router));
	for (unsigned i = 0; i < KEYS; i++) {
		EXPECT_OK(evc_mailbox_add_subscription(own->mailbox, &subscription, &own->subscriptions[i]));
		EXPECT_OK(evc_router_subscribe(own->router, i + 1, own->subscriptions[i], 0, false));
	}
	return NULL;
}

static const char *close_own(struct own *own)
{
	evc_mailbox_release(own->mailbox);
	evc_router_destroy(own->router);
	EXPECT(suite_settle(), "the router's end took too long");
	EXPECT(own->message == NULL, "%s", own->message);
	return NULL;
}

static const char *check_depths(struct own *own)
{
	uint64_t depths[EVC_LANE_COUNT];

	evc_mailbox_depths(own->mailbox, depths);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		EXPECT_EQUAL(depths[lane], own->model.end[lane] - own->model.first[lane], "depth of a lane");
	return NULL;
}

/* A pump with a limit: it counts what it handles, and is at its limit or empty. */
static const char *pump(struct own *own, uint64_t limit)
{
	uint64_t before = own->delivered, handled;
	enum evc_status status = evc_mailbox_pump_until(own->mailbox, limit, EVC_FOREVER, &handled);

	EXPECT_EQUAL(handled, own->delivered - before, "handled");
	EXPECT(status == EVC_OK ? handled == limit : status == EVC_EMPTY && handled < limit,
	       "a pump with a limit of %llu handled %llu, and returned \"%s\"", (unsigned long long)limit,
	       (unsigned long long)handled, evc_status_text(status));
	return NULL;
}

/* One walk: posts of the consumer and, as if by others, around its entries; pumps with limits between them. */
static const char *walk(uint64_t seed, bool batches, bool walks)
{
	static struct own own;
	struct evc_mailbox_statistics statistics;
	struct evc_mailbox *before = NULL;
	bool is_inside = false;

	EXPECT_NONE(open_own(&own, seed, batches, walks));
	for (unsigned step = 0; step < 2000 && own.message == NULL; step++) {
		own.replies = 5;
		if (suite_random(&own.random) % 3 == 0) {
			if (is_inside)
				evc_mailbox_leave(before);
			else
				before = evc_mailbox_enter(own.mailbox);
			is_inside = !is_inside;
		}
		EXPECT_NONE(send_some(&own, (unsigned)(suite_random(&own.random) % 12)));
		EXPECT_NONE(check_depths(&own));
		if (suite_random(&own.random) % 2 == 0)
			EXPECT_NONE(pump(&own, 1 + suite_random(&own.random) % 30));
		/* The lanes of the model have an end, and begin anew when they are empty. */
		if (step % 30 == 29)
			EXPECT_STATUS(evc_mailbox_pump(own.mailbox, UINT64_MAX), EVC_EMPTY);
		EXPECT_NONE(check_depths(&own));
	}
	if (is_inside)
		evc_mailbox_leave(before);
	/* Half of the walks end with what waits. */
	if (seed % 2 == 0) {
		EXPECT_STATUS(evc_mailbox_pump(own.mailbox, UINT64_MAX), EVC_EMPTY);
		EXPECT_EQUAL(own.delivered, own.next, "delivered");
	}
	evc_mailbox_close(own.mailbox);
	EXPECT_STATUS(evc_mailbox_pump(own.mailbox, 1), EVC_CLOSED);
	evc_mailbox_read_statistics(own.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, own.delivered, "taken");
	EXPECT_EQUAL(statistics.taken + statistics.dropped, own.next, "taken and dropped");
	EXPECT_EQUAL(own.drops, own.next, "payloads ended");
	return close_own(&own);
}

static const char *walk_all(bool batches, bool walks)
{
	uint64_t seed = suite_seed();

	for (unsigned i = 0; i < SUITE_SCALE(40); i++) {
		const char *message = walk(seed + i, batches, walks);

		EXPECT(message == NULL, "EVENTCORE_SEED=%llu: %s", (unsigned long long)(seed + i), message);
	}
	return NULL;
}

static const char *one_by_one(void)
{
	return walk_all(false, false);
}

static const char *in_batches(void)
{
	return walk_all(true, false);
}

static const char *walked(void)
{
	return walk_all(true, true);
}

/* Numbers around those at which batches begin and grow. */
static const char *numbers(void)
{
	static const unsigned counts[] = { 0, 1, 2, 3, 5, 6, 7, 13, 14, 61, 62, 125, 126, 1000 };
	static struct own own;

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct evc_mailbox *before;

		EXPECT_NONE(open_own(&own, i, true, true));
		/* The first dispatch of a thread finds the route. */
		EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, 0));
		EXPECT_STATUS(evc_mailbox_pump(own.mailbox, 2), EVC_EMPTY);
		before = evc_mailbox_enter(own.mailbox);
		for (unsigned n = 0; n < counts[i]; n++)
			EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, 0));
		EXPECT_EQUAL(own.wakes, counts[i] > 0 ? 2 : 1, "wakes: one for each arming");
		EXPECT_NONE(check_depths(&own));
		evc_mailbox_leave(before);
		EXPECT_STATUS(evc_mailbox_pump(own.mailbox, counts[i] + 1), EVC_EMPTY);
		EXPECT_EQUAL(own.delivered, counts[i] + 1, "delivered");
		EXPECT_NONE(close_own(&own));
	}
	return NULL;
}

/* D10: a closed mailbox refuses them, whether a batch is open or not, and ends each payload once. */
static const char *closed(void)
{
	for (unsigned waiting = 0; waiting < 4; waiting++) {
		static struct own own;
		struct evc_mailbox *before;

		EXPECT_NONE(open_own(&own, 1, true, false));
		EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, 0));
		EXPECT_STATUS(evc_mailbox_pump(own.mailbox, 2), EVC_EMPTY);
		before = evc_mailbox_enter(own.mailbox);
		for (unsigned n = 0; n < waiting; n++)
			EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, 0));
		evc_mailbox_close_when_empty(own.mailbox);
		for (unsigned n = 0; n < 3; n++)
			EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, n % 2));
		evc_mailbox_leave(before);
		EXPECT_EQUAL(own.drops, 1 + 3, "refused payloads ended");
		EXPECT_STATUS(evc_mailbox_pump(own.mailbox, UINT64_MAX), EVC_CLOSED);
		EXPECT_EQUAL(own.delivered, 1 + waiting, "delivered");
		EXPECT_EQUAL(own.drops, 1 + waiting + 3, "payloads ended");
		EXPECT_NONE(close_own(&own));
	}
	return NULL;
}

/* Two dispatches that overlap, in either order of their ends: each event once, the first to end first. */
static const char *overlapping(void)
{
	static struct own own;

	for (unsigned swapped = 0; swapped < 2; swapped++) {
		struct evc_mailbox *before;
		uint64_t *places[2];

		EXPECT_NONE(open_own(&own, 1, true, false));
		for (unsigned n = 0; n < 2; n++) {
			EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, 0));
			EXPECT_STATUS(evc_mailbox_pump(own.mailbox, 2), EVC_EMPTY);
		}
		before = evc_mailbox_enter(own.mailbox);
		EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, 0));
		for (unsigned n = 0; n < 2; n++) {
			places[n] = evc_dispatch_begin_one(own.router, 1, EVC_LANE_QUEUE_NORMAL, 8, 8);
			EXPECT(places[n] != NULL, "no place for a payload");
			*places[n] = own.next + n;
		}
		EXPECT(places[0] != places[1], "two payloads have one place");
		for (unsigned n = 0; n < 2; n++) {
			EXPECT_EQUAL(evc_dispatch_commit_one(places[swapped ^ n]), 1, "receivers");
			model_post(&own.model, EVC_LANE_QUEUE_NORMAL, own.next + (swapped ^ n));
		}
		own.next += 2;
		evc_mailbox_leave(before);
		EXPECT_STATUS(evc_mailbox_pump(own.mailbox, 9), EVC_EMPTY);
		EXPECT_EQUAL(own.delivered, own.next, "delivered");
		EXPECT_NONE(close_own(&own));
	}
	return NULL;
}

/* The pump goes on with what `idle` has posted, and arms the mailbox afterwards. */
static const char *posted_when_idle(void)
{
	static struct own own;

	EXPECT_NONE(open_own(&own, 1, true, false));
	for (unsigned round = 1; round <= 3; round++) {
		EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, 0));
		own.idle_posts = 2;
		EXPECT_STATUS(evc_mailbox_pump(own.mailbox, UINT64_MAX), EVC_EMPTY);
		EXPECT_EQUAL(own.delivered, 3 * round, "delivered");
		EXPECT_EQUAL(own.wakes, round, "wakes: one for each arming");
	}
	return close_own(&own);
}

/*
 * What was drained is being sorted: an event of its lane goes behind it, through the inbox. Only another
 * thread's urgent post interrupts the sorting, so that the state is made by hand here.
 */
static const char *while_sorting(void)
{
	struct suite_receiver receiver;
	struct evc_envelope *envelope;
	const unsigned lane = EVC_LANE_QUEUE_LOW;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_OK(evc_envelope_create(receiver.subscription, EVC_LANE_QUEUE_LOW, 8, 8, &envelope));
	receiver.mailbox->sorting = 1u << lane;
	EXPECT(!evc_mailbox_append(receiver.mailbox, lane, envelope, 1), "it went into the list");
	receiver.mailbox->sorting = 0;
	EXPECT(evc_mailbox_append(receiver.mailbox, lane, envelope, 1), "it did not go into the list");
	evc_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.drops, 1, "dropped");
	return NULL;
}

/*
 * While a place in an open batch is being written, other dispatches of the thread go elsewhere, and the batch
 * keeps its end: each event arrives once, whatever comes after.
 */
static const char *beside_an_open_place(void)
{
	for (unsigned kind = 0; kind < KEYS; kind++) {
		static struct own own;
		struct evc_mailbox *before;
		uint64_t *place;

		EXPECT_NONE(open_own(&own, 1, true, false));
		/* Overlapping dispatches have no order: the model does not judge it. */
		own.is_unordered = true;
		for (unsigned n = 0; n < KEYS; n++)
			EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, n));
		EXPECT_STATUS(evc_mailbox_pump(own.mailbox, KEYS + 1), EVC_EMPTY);
		before = evc_mailbox_enter(own.mailbox);
		for (unsigned round = 0; round < 50; round++) {
			EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, 0));
			EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, 0));
			place = evc_dispatch_begin_one(own.router, 1, EVC_LANE_QUEUE_NORMAL, 8, 8);
			EXPECT(place != NULL, "no place for a payload");
			*place = own.next++;
			EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, kind));
			EXPECT_EQUAL(evc_dispatch_commit_one(place), 1, "receivers");
		}
		evc_mailbox_leave(before);
		EXPECT_STATUS(evc_mailbox_pump(own.mailbox, UINT64_MAX), EVC_EMPTY);
		EXPECT_EQUAL(own.delivered, own.next, "delivered");
		EXPECT_EQUAL(own.drops, own.next, "payloads ended");
		EXPECT_NONE(close_own(&own));
	}
	return NULL;
}

/* One subscription with events of several sizes: a batch has room for what it is made for. */
static const char *sizes_that_change(void)
{
	static struct own own;
	struct evc_mailbox *before;

	EXPECT_NONE(open_own(&own, 1, true, false));
	before = evc_mailbox_enter(own.mailbox);
	for (unsigned i = 0; i < 400; i++) {
		uint64_t payload[4] = { own.next++, 0, 0, 0 };
		size_t size = i / 5 % 2 == 0 ? 8 : 32;

		EXPECT_OK(evc_dispatch_bytes(own.router, 1, EVC_LANE_QUEUE_NORMAL, payload, size, 8, NULL));
		model_post(&own.model, EVC_LANE_QUEUE_NORMAL, payload[0]);
	}
	evc_mailbox_leave(before);
	EXPECT_STATUS(evc_mailbox_pump(own.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_EQUAL(own.delivered, own.next, "delivered");
	return close_own(&own);
}

static void drop_and_send(struct own *own)
{
	if (own->replies == 0)
		return;
	own->replies--;
	own->message = send(own, EVC_LANE_QUEUE_NORMAL, 0);
}

/* D4 D10: the end of a refused event may dispatch, to the mailbox that has refused it. */
static const char *refused_again(void)
{
	static struct own own;
	struct evc_mailbox *before;

	EXPECT_NONE(open_own(&own, 1, true, false));
	before = evc_mailbox_enter(own.mailbox);
	for (unsigned n = 0; n < 4; n++)
		EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, 0));
	evc_mailbox_close(own.mailbox);
	own.replies = 3;
	own.at_drop = drop_and_send;
	EXPECT_NONE(send(&own, EVC_LANE_QUEUE_NORMAL, 0));
	evc_mailbox_leave(before);
	EXPECT_EQUAL(own.drops, 4, "refused payloads ended");
	EXPECT_STATUS(evc_mailbox_pump(own.mailbox, 1), EVC_CLOSED);
	EXPECT_EQUAL(own.drops, own.next, "payloads ended");
	return close_own(&own);
}

/* How many receivers get an event of the first key, which the consumer posts while its batch is open. */
static const char *expect_receivers(struct own *own, uint32_t expected)
{
	uint64_t payload = own->next;
	uint32_t receivers = 0;

	EXPECT_OK(evc_dispatch_bytes(own->router, 1, EVC_LANE_QUEUE_NORMAL, &payload, 8, 8, &receivers));
	EXPECT_EQUAL(receivers, expected, "receivers");
	own->next += receivers;
	return NULL;
}

/* Enters the mailbox before its first event: what lies in its inbox would not let a batch begin. */
static const char *open_batch(struct own *own, struct evc_mailbox **before)
{
	EXPECT_NONE(open_own(own, 1, true, false));
	own->is_unordered = true;
	*before = evc_mailbox_enter(own->mailbox);
	for (unsigned n = 0; n < 4; n++)
		EXPECT_NONE(expect_receivers(own, 1));
	return NULL;
}

/* D4 D6: what has changed in the router before an own post holds for it, although its batch is open. */
static const char *while_the_router_changes(void)
{
	static struct own own;
	static struct evc_subscription *other;
	const struct evc_subscription_options options = {
		.size = sizeof(options), .context = &own, .deliver = deliver, .drop = drop
	};
	struct evc_mailbox *before;

	EXPECT_NONE(open_own(&own, 1, true, false));
	own.is_unordered = true;
	EXPECT_OK(evc_mailbox_add_subscription(own.mailbox, &options, &other));
	before = evc_mailbox_enter(own.mailbox);
	for (unsigned round = 0; round < 50; round++) {
		for (unsigned n = 0; n < 4; n++)
			EXPECT_NONE(expect_receivers(&own, 1));
		/* A change for another key, after which the batch is still open. */
		EXPECT_OK(evc_router_subscribe(own.router, 2, other, 0, false));
		EXPECT_NONE(expect_receivers(&own, 1));
		EXPECT_OK(evc_router_subscribe(own.router, 1, other, 0, false));
		EXPECT_NONE(expect_receivers(&own, 2));
		EXPECT_OK(evc_router_unsubscribe(own.router, 1, other));
		EXPECT_OK(evc_router_unsubscribe(own.router, 2, other));
		EXPECT_NONE(expect_receivers(&own, 1));
		EXPECT_OK(evc_router_unsubscribe(own.router, 1, own.subscriptions[0]));
		EXPECT_NONE(expect_receivers(&own, 0));
		EXPECT_OK(evc_router_subscribe(own.router, 1, own.subscriptions[0], round + 1, false));
	}
	evc_mailbox_leave(before);
	EXPECT_STATUS(evc_mailbox_pump(own.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_EQUAL(own.delivered, own.next, "delivered");
	return close_own(&own);
}

/* D4: a batch that is open by one router is not for the events of the next one, which may have its address. */
static const char *with_another_router(void)
{
	static struct own own;
	struct evc_mailbox *before;

	EXPECT_NONE(open_batch(&own, &before));
	for (unsigned round = 0; round < 50; round++) {
		EXPECT_NONE(expect_receivers(&own, round % 2 == 0));
		evc_router_destroy(own.router);
		EXPECT_OK(evc_router_create(&own.router));
		EXPECT_NONE(expect_receivers(&own, 0));
		if (round % 2 == 0)
			continue;
		EXPECT_OK(evc_router_subscribe(own.router, 1, own.subscriptions[0], 0, false));
		for (unsigned n = 0; n < 4; n++)
			EXPECT_NONE(expect_receivers(&own, 1));
	}
	evc_mailbox_leave(before);
	EXPECT_STATUS(evc_mailbox_pump(own.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_EQUAL(own.delivered, own.next, "delivered");
	return close_own(&own);
}

struct counted {
	struct own own;
	unsigned notes;
};

static void note(void *context, uint64_t key, uint32_t events, bool is_timed, struct evc_note *note)
{
	(void)key, (void)is_timed, (void)note;
	((struct counted *)context)->notes += events;
}

/* An observer that is set while a batch is open is told of the next own post. */
static const char *with_an_observer(void)
{
	static struct counted counted;
	const struct evc_observer observer = { .context = &counted, .note = note };
	struct evc_mailbox *before;

	counted.notes = 0;
	EXPECT_NONE(open_batch(&counted.own, &before));
	for (unsigned n = 0; n < 4; n++)
		EXPECT_NONE(expect_receivers(&counted.own, 1));
	EXPECT_OK(evc_router_set_observer(counted.own.router, &observer));
	for (unsigned n = 0; n < 4; n++)
		EXPECT_NONE(expect_receivers(&counted.own, 1));
	EXPECT_EQUAL(counted.notes, 4, "events that the observer was told of");
	EXPECT_OK(evc_router_set_observer(counted.own.router, NULL));
	EXPECT_NONE(expect_receivers(&counted.own, 1));
	EXPECT_EQUAL(counted.notes, 4, "events that the observer was told of");
	evc_mailbox_leave(before);
	EXPECT_STATUS(evc_mailbox_pump(counted.own.mailbox, UINT64_MAX), EVC_EMPTY);
	EXPECT_EQUAL(counted.own.delivered, counted.own.next, "delivered");
	return close_own(&counted.own);
}

static const struct evc_suite_test tests[] = {
	{ "D1 D2 D3 a consumer's own posts keep the order of all posts", one_by_one },
	{ "D1 D2 D3 and so do those that join a batch", in_batches },
	{ "D1 D2 D3 and those of a batch that the receiver walks", walked },
	{ "D4 each number of own posts arrives, and wakes an armed mailbox once", numbers },
	{ "D10 a closed mailbox refuses its consumer's posts", closed },
	{ "D4 what a pump's idle function posts is handled before it ends", posted_when_idle },
	{ "D2 an own post does not overtake what is being sorted", while_sorting },
	{ "D4 an own post while a place in a batch is being written", beside_an_open_place },
	{ "D2 D4 own posts of several sizes to one subscription", sizes_that_change },
	{ "D4 D10 the end of a refused own post dispatches", refused_again },
	{ "D4 two dispatches of the consumer overlap", overlapping },
	{ "D4 D6 an own post sees what has changed in the router", while_the_router_changes },
	{ "D4 an own post to a router does not go where one before it led", with_another_router },
	{ "an observer is told of the own posts after it was set", with_an_observer },
};

SUITE_GROUP(suite_own, tests);
#endif
