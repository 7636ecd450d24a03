/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Conflated subscriptions on one thread: which envelopes are delivered, in which order, and what is counted. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "keys.h"

#include <stdlib.h>
#include <string.h>

#define KEYS_MOST 1000u
#define STEPS SUITE_SCALE(20000u)

struct conflated {
	struct suite_receiver receiver;
	struct keys keys;
	struct evc_router *router;
	_Atomic uint64_t drops, finalized;
};

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	return true;
}

static void drop(void *context, void *payload)
{
	(void)payload;
	atomic_fetch_add(&((struct conflated *)context)->drops, 1);
}

static void finalize(void *context)
{
	atomic_fetch_add(&((struct conflated *)context)->finalized, 1);
}

/* Opens a receiver whose subscription is a conflated one. */
static const char *open_conflated(struct conflated *conflated, uint64_t count, uint64_t hashes)
{
	struct evc_subscription_options options = {
		.size = sizeof(options),
		.context = conflated, .deliver = deliver, .drop = drop, .finalize = finalize
	};
	struct evc_conflation conflation;

	memset(conflated, 0, sizeof(*conflated));
	conflated->keys = (struct keys){ .count = count, .hashes = hashes };
	conflation = keys_conflation(&conflated->keys);
	EXPECT_NONE(suite_receiver_open(&conflated->receiver, NULL));
	EXPECT_OK(evc_mailbox_add_conflated_subscription(conflated->receiver.mailbox, &options, &conflation,
							 &conflated->receiver.subscription));
	EXPECT_OK(evc_router_create(&conflated->router));
	EXPECT_OK(evc_router_subscribe(conflated->router, 1, conflated->receiver.subscription, 1, false));
	return NULL;
}

static const char *close_conflated(struct conflated *conflated, uint64_t taken, uint64_t superseded)
{
	struct evc_mailbox_statistics statistics;

	evc_mailbox_read_statistics(conflated->receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, taken, "taken");
	EXPECT_EQUAL(statistics.superseded, superseded, "superseded");
	EXPECT_EQUAL(evc_latest_subscription_superseded(conflated->receiver.subscription), superseded,
		     "superseded of the subscription");
	EXPECT_OK(evc_router_unsubscribe(conflated->router, 1, conflated->receiver.subscription));
	evc_router_destroy(conflated->router);
	evc_latest_subscription_release(conflated->receiver.subscription);
	EXPECT(suite_settle(), "the router is held up");
	evc_mailbox_release(conflated->receiver.mailbox);
	EXPECT(suite_quiesce(), "what was retired is held up");
	EXPECT_EQUAL(conflated->finalized, 1, "calls of finalize");
	EXPECT_EQUAL(conflated->keys.ended, conflated->keys.kept, "keys that ended, beside kept ones");
	return NULL;
}

static uint32_t dispatch(struct conflated *conflated, unsigned lane, uint64_t value)
{
	uint32_t receivers = 0;

	if (evc_dispatch_bytes(conflated->router, 1, (enum evc_lane)lane, &value, sizeof(value),
			       _Alignof(uint64_t), &receivers) != EVC_OK)
		return UINT32_MAX;
	return receivers;
}

/* A model: the lanes with the tokens of keys, and the newest event of each key. */
struct model {
	uint32_t tokens[EVC_LANE_COUNT][KEYS_MOST];
	uint32_t depth[EVC_LANE_COUNT];
	bool has_token[EVC_LANE_COUNT][KEYS_MOST];
	bool waits[KEYS_MOST];
	uint64_t newest[KEYS_MOST];
	unsigned lane[KEYS_MOST];
	uint64_t taken, superseded;
};

static void model_post(struct model *model, uint32_t key, unsigned lane, uint64_t value)
{
	model->superseded += model->waits[key];
	model->waits[key] = true;
	model->newest[key] = value;
	model->lane[key] = lane;
	if (model->has_token[lane][key])
		return;
	model->has_token[lane][key] = true;
	model->tokens[lane][model->depth[lane]++] = key;
}

/* The event that is next by D1 to D3; false if none is. */
static bool model_take(struct model *model, unsigned *lane, uint64_t *value)
{
	for (*lane = 0; *lane < EVC_LANE_COUNT;) {
		uint32_t *tokens = model->tokens[*lane], key;

		if (model->depth[*lane] == 0) {
			++*lane;
			continue;
		}
		model->depth[*lane]--;
		if (*lane < EVC_LANE_FIRST_QUEUE) {
			key = tokens[model->depth[*lane]];
		} else {
			key = tokens[0];
			memmove(tokens, tokens + 1, sizeof(*tokens) * model->depth[*lane]);
		}
		model->has_token[*lane][key] = false;
		if (!model->waits[key] || model->lane[key] > *lane)
			continue;
		model->waits[key] = false;
		*lane = model->lane[key];
		*value = model->newest[key];
		model->taken++;
		return true;
	}
	return false;
}

static const char *step(struct conflated *conflated, struct model *model, uint64_t *random, unsigned lanes,
			unsigned number)
{
	unsigned lane, expected_lane;
	uint64_t value, expected;

	/* Stretches of posts, and stretches of takes. */
	if (suite_random(random) % 8 < (number / 700 % 2 ? 6u : 2u)) {
		lane = lanes == 1 ? EVC_LANE_QUEUE_NORMAL : (unsigned)(suite_random(random) % lanes);
		value = suite_random(random);
		model_post(model, (uint32_t)keys_of(&conflated->keys, &value), lane, value);
		EXPECT_EQUAL(dispatch(conflated, lane, value), 1, "receivers");
		return NULL;
	}
	if (!model_take(model, &expected_lane, &expected)) {
		EXPECT_STATUS(suite_take(&conflated->receiver, &lane, &value), EVC_EMPTY);
		return NULL;
	}
	EXPECT_OK(suite_take(&conflated->receiver, &lane, &value));
	EXPECT_EQUAL(value, expected, "the event that was taken");
	EXPECT_EQUAL(lane, expected_lane, "its lane");
	return NULL;
}

static const char *as_the_model(unsigned lanes)
{
	static const uint64_t counts[] = { 1, 2, 3, 7, 64, KEYS_MOST };
	/* Integers; every hash different; some shared; all the same, for which each look walks all keys. */
	static const uint64_t hashes[] = { 0, UINT64_MAX, 5, 1 };
	const uint64_t seed = suite_seed();
	uint64_t random = seed;

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]) * 4; i++) {
		struct conflated conflated;
		struct model *model = calloc(1, sizeof(*model));
		const char *message = NULL;

		EXPECT(model != NULL, "no memory");
		EXPECT_NONE(open_conflated(&conflated, counts[i / 4], hashes[i % 4]));
		for (unsigned number = 0; number < STEPS / (i % 4 == 3 ? 10 : 1) && message == NULL; number++)
			message = step(&conflated, model, &random, lanes, number);
		EXPECT(message == NULL, "%s (seed %llu)", message, (unsigned long long)seed);
		EXPECT(conflated.keys.kept <= counts[i / 4], "more keys were kept than there are");
		EXPECT_NONE(close_conflated(&conflated, model->taken, model->superseded));
		free(model);
	}
	return NULL;
}

static const char *one_lane(void)
{
	return as_the_model(1);
}

static const char *any_lanes(void)
{
	return as_the_model(EVC_LANE_COUNT);
}

static const char *chains(void)
{
	static const unsigned lengths[] = { 1, 2, 6, 7, 8, 21, EVC_DISPATCH_MAX };

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const unsigned length = lengths[i];
		struct conflated conflated;
		struct evc_dispatch dispatch;
		struct evc_envelope *envelope;
		unsigned lane;
		uint64_t value;

		EXPECT_NONE(open_conflated(&conflated, 7, 0));
		for (unsigned round = 0; round < 2; round++) {
			EXPECT_OK(evc_dispatch_begin(conflated.router, 1, EVC_LANE_QUEUE_LOW, sizeof(value),
						     _Alignof(uint64_t), length, &dispatch));
			envelope = dispatch.first;
			for (value = 0; value < length; value++, envelope = evc_dispatch_next(envelope))
				memcpy(evc_envelope_payload(envelope), &value, sizeof(value));
			EXPECT_EQUAL(evc_dispatch_commit(&dispatch), length, "acceptances");
		}
		for (uint64_t key = 0; key < 7 && key < length; key++) {
			EXPECT_OK(suite_take(&conflated.receiver, &lane, &value));
			/* The newest of the key, in the place of its first. */
			EXPECT_EQUAL(value, (length - 1 - key) / 7 * 7 + key, "the event of a key");
		}
		EXPECT_STATUS(suite_take(&conflated.receiver, &lane, &value), EVC_EMPTY);
		EXPECT_NONE(close_conflated(&conflated, length < 7 ? length : 7,
					    2 * length - (length < 7 ? length : 7)));
	}
	return NULL;
}

static const char *flood(uint64_t hashes)
{
	struct evc_pool_statistics before, after;
	struct conflated conflated;
	uint64_t depths[EVC_LANE_COUNT];
	unsigned lane;
	uint64_t value;

	EXPECT_NONE(open_conflated(&conflated, KEYS_MOST, hashes));
	for (uint64_t i = 0; i < 2 * KEYS_MOST; i++)
		EXPECT_EQUAL(dispatch(&conflated, EVC_LANE_QUEUE_NORMAL, i), 1, "receivers");
	evc_pool_read_statistics(&before);
	suite_allocator_install(0, 0);
	for (uint64_t i = 2 * KEYS_MOST; i < 200 * KEYS_MOST; i++)
		EXPECT_EQUAL(dispatch(&conflated, EVC_LANE_QUEUE_NORMAL, i), 1, "receivers");
#ifndef SUITE_ADDRESS_SANITIZER
	/* There slots are not recycled. */
	EXPECT_EQUAL(suite_allocator_read().calls, 0, "allocations");
#endif
	suite_allocator_restore();
	evc_pool_read_statistics(&after);
	/* Other threads of the process may have taken slabs; without conflation it would be 12 MiB. */
	EXPECT(after.slab_bytes <= before.slab_bytes + 1024 * 1024, "the pools grew from %zu to %zu bytes",
	       before.slab_bytes, after.slab_bytes);
	evc_mailbox_depths(conflated.receiver.mailbox, depths);
	EXPECT_EQUAL(depths[EVC_LANE_QUEUE_NORMAL], KEYS_MOST, "depth");
	for (uint64_t key = 0; key < KEYS_MOST; key++) {
		EXPECT_OK(suite_take(&conflated.receiver, &lane, &value));
		EXPECT_EQUAL(value, 199 * KEYS_MOST + key, "the newest event of a key, in the order of the keys");
	}
	EXPECT_STATUS(suite_take(&conflated.receiver, &lane, &value), EVC_EMPTY);
	return close_conflated(&conflated, KEYS_MOST, 199 * KEYS_MOST);
}

static const char *memory(void)
{
	EXPECT_NONE(flood(0));
	return flood(UINT64_MAX);
}

/* Every allocation that a new key needs fails in turn; the keys that are known go on. */
static const char *out_of_memory(void)
{
	/* These share the first bits of their hashes, so that cells are split. */
	for (unsigned failing = 0; failing < 5; failing++) {
		struct evc_mailbox_statistics statistics;
		struct conflated conflated;
		uint64_t refused = 0, accepted = 0, unsent = 0;

		EXPECT_NONE(open_conflated(&conflated, KEYS_MOST, UINT64_MAX));
		for (uint64_t key = 0; key < KEYS_MOST; key++) {
			uint32_t receivers;

			conflated.keys.refuses = key % 5 == 4;
			suite_allocator_install(failing, failing < 4 ? 1 : 0);
			receivers = dispatch(&conflated, EVC_LANE_QUEUE_HIGH, key);
			suite_allocator_restore();
			/* Without even an envelope: only where slots are not recycled. */
			unsent += receivers == UINT32_MAX;
			refused += receivers == 0;
			accepted += receivers == 1;
			conflated.keys.refuses = false;
			EXPECT_EQUAL(dispatch(&conflated, EVC_LANE_QUEUE_HIGH, key), 1, "receivers with memory");
			accepted++;
		}
		EXPECT(SUITE_SLOW ? unsent + refused > 0 : unsent == 0, "an envelope was lacking");
		EXPECT(unsent + refused >= KEYS_MOST / 5, "only %llu were refused", (unsigned long long)refused);
		EXPECT_EQUAL(conflated.keys.kept - conflated.keys.ended, KEYS_MOST, "kept keys");
		evc_mailbox_read_statistics(conflated.receiver.mailbox, &statistics);
		EXPECT_EQUAL(statistics.dropped, refused, "dropped");
		EXPECT_NONE(close_conflated(&conflated, 0, accepted - KEYS_MOST));
		EXPECT_EQUAL(conflated.drops, refused + accepted, "calls of drop");
	}
	return NULL;
}

static const char *closing(bool close)
{
	struct evc_mailbox_statistics statistics;
	struct conflated conflated;
	unsigned lane;
	uint64_t value;

	for (unsigned count = 0; count <= KEYS_MOST; count = count * 3 + 1) {
		EXPECT_NONE(open_conflated(&conflated, KEYS_MOST, 3));
		for (uint64_t i = 0; i < 2 * count; i++)
			EXPECT_EQUAL(dispatch(&conflated, i % EVC_LANE_COUNT, i % (count + 1)), 1, "receivers");
		if (close) {
			evc_mailbox_close(conflated.receiver.mailbox);
			EXPECT_EQUAL(dispatch(&conflated, 0, 0), 0, "receivers after the close");
			EXPECT_STATUS(suite_take(&conflated.receiver, &lane, &value), EVC_CLOSED);
			evc_mailbox_read_statistics(conflated.receiver.mailbox, &statistics);
			EXPECT_EQUAL(statistics.dropped + statistics.superseded, 2 * count, "dropped and superseded");
		}
		EXPECT_NONE(close_conflated(&conflated, 0,
					    evc_latest_subscription_superseded(conflated.receiver.subscription)));
		EXPECT_EQUAL(conflated.drops, 2 * count + close, "calls of drop");
	}
	return NULL;
}

static const char *close_it(void)
{
	return closing(true);
}

static const char *abandon_it(void)
{
	return closing(false);
}

static const char *wrong_arguments(void)
{
	struct evc_subscription_options options = { .size = sizeof(options), .deliver = deliver };
	struct keys keys = { .count = 1, .hashes = 1 };
	struct evc_conflation conflation = keys_conflation(&keys), wrong[4];
	struct evc_subscription *subscription;
	struct suite_receiver receiver;

	for (unsigned i = 0; i < 4; i++)
		wrong[i] = conflation;
	wrong[0].number = NULL;
	wrong[1].is_same = NULL;
	wrong[2].keep = NULL;
	wrong[3].let_go = NULL;
	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	for (unsigned i = 0; i < 4; i++)
		EXPECT_STATUS(evc_mailbox_add_conflated_subscription(receiver.mailbox, &options, &wrong[i],
								     &subscription),
			      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_add_conflated_subscription(receiver.mailbox, &options, NULL, &subscription),
		      EVC_INVALID_ARGUMENT);
	for (unsigned i = 0; i < 2; i++) {
		suite_allocator_install(i, 1);
		EXPECT_STATUS(evc_mailbox_add_conflated_subscription(receiver.mailbox, &options, &conflation,
								     &subscription),
			      EVC_OUT_OF_MEMORY);
		suite_allocator_restore();
	}
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D2 D4 conflation: of each key the newest is taken, in the place of the first", one_lane },
	{ "D1 D4 conflation: the same on any lanes", any_lanes },
	{ "D4 conflation: of a chain the last of each key is the newest", chains },
	{ "D5 conflation: a flood over 1,000 keys takes no memory", memory },
	{ "D4 conflation: an event without memory for its key is refused and counted", out_of_memory },
	{ "D10 conflation: closing drops one event of each key", close_it },
	{ "D10 conflation: a mailbox without a consumer frees all cells", abandon_it },
	{ "conflation: wrong arguments and no memory are answered", wrong_arguments },
};
SUITE_GROUP(suite_conflation, tests);
#endif
