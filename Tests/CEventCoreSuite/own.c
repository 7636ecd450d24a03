/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What a consumer posts to its own mailbox, between its pumps and inside handlers: the same order, the same
 * counts and the same end as any other post, although it need not cross the inbox.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "own.h"

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
};
SUITE_GROUP(suite_own, tests);
#endif
