/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * D1 while a producer runs freely. After each post the producer announces how far it is; everything announced
 * before a take began happened before it, and limits what the take may return:
 *
 *     producer                          consumer
 *     post i; posted = i + 1
 *                                       known = posted
 *                                       take: nothing that is known may come before it
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <string.h>

#define EVENTS SUITE_SCALE(400000u)

struct live {
	struct suite_receiver receiver;
	uint8_t *lanes;
	_Atomic uint64_t posted;
	uint64_t seed;
	enum evc_status status;
};

static uint8_t lane_memory[400000];
static bool gone[400000];

static void *produce(void *context)
{
	struct live *live = context;

	for (uint64_t i = 0; i < EVENTS; i++) {
		live->status = suite_post(&live->receiver, live->lanes[i], i);
		if (live->status != EVC_OK)
			return NULL;
		/* Release: pairs with the consumer's load; the post happened before it. */
		atomic_store_explicit(&live->posted, i + 1, memory_order_release);
	}
	return NULL;
}

/* Known and waiting events of each lane: numbers in the order of their posts. */
static uint32_t waiting[EVC_LANE_COUNT][400000];
static uint32_t first[EVC_LANE_COUNT], end[EVC_LANE_COUNT];

/* Adds what the producer has announced by now, without what was taken already. */
static uint64_t learn(struct live *live, uint64_t known)
{
	/* Acquire: pairs with produce. */
	uint64_t posted = atomic_load_explicit(&live->posted, memory_order_acquire);

	for (; known < posted; known++)
		if (!gone[known])
			waiting[live->lanes[known]][end[live->lanes[known]]++] = (uint32_t)known;
	return known;
}

/* The event that must be next unless an unknown one is more urgent; UINT64_MAX if no known one waits. */
static uint64_t next_known(unsigned *lane)
{
	for (unsigned l = 0; l < EVC_LANE_COUNT; l++) {
		bool stack = l < EVC_LANE_FIRST_QUEUE;

		while (first[l] < end[l] && gone[waiting[l][stack ? end[l] - 1 : first[l]]])
			stack ? end[l]-- : first[l]++;
		if (first[l] == end[l])
			continue;
		*lane = l;
		return waiting[l][stack ? end[l] - 1 : first[l]];
	}
	return UINT64_MAX;
}

static const char *check(struct live *live, uint64_t known, unsigned lane, uint64_t number)
{
	unsigned best = EVC_LANE_COUNT;
	uint64_t expected = next_known(&best);

	EXPECT(number < EVENTS && !gone[number], "D4, seed %llu: %llu came twice",
	       (unsigned long long)live->seed, (unsigned long long)number);
	gone[number] = true;
	if (number >= known) {
		/* Posted meanwhile: it may be taken before known events, but not after them. */
		EXPECT(lane < best || (lane == best && lane < EVC_LANE_FIRST_QUEUE),
		       "D1, seed %llu: lane %u was waiting, found a later post on lane %u",
		       (unsigned long long)live->seed, best, lane);
		return NULL;
	}
	EXPECT(number == expected, "D1, seed %llu: expected event %llu of lane %u, found %llu of %u",
	       (unsigned long long)live->seed, (unsigned long long)expected, best,
	       (unsigned long long)number, lane);
	return NULL;
}

/* Posts to the usual lane, and so many of a hundred to a random lane. */
static const char *run(uint64_t seed, uint8_t usual, unsigned random_percent)
{
	static struct live live;
	pthread_t producer;
	uint64_t known = 0, taken = 0, number, state = seed, start = evc_clock_now();
	unsigned lane;

	live = (struct live){ .lanes = lane_memory, .seed = seed };
	memset(gone, 0, sizeof(gone));
	memset(first, 0, sizeof(first));
	memset(end, 0, sizeof(end));
	for (unsigned i = 0; i < EVENTS; i++)
		lane_memory[i] = suite_random(&state) % 100 < random_percent
					 ? (uint8_t)(suite_random(&state) % EVC_LANE_COUNT)
					 : usual;
	EXPECT_NONE(suite_receiver_open(&live.receiver, NULL));
	pthread_create(&producer, NULL, produce, &live);
	while (taken < EVENTS) {
		known = learn(&live, known);
		if (suite_take(&live.receiver, &lane, &number) != EVC_OK) {
			unsigned best = 0;

			EXPECT(next_known(&best) == UINT64_MAX, "D1, seed %llu: found nothing, lane %u"
			       " was waiting", (unsigned long long)seed, best);
			EXPECT(evc_clock_now() - start < SUITE_LIMIT_NS, "the producer got stuck");
			continue;
		}
		EXPECT_NONE(check(&live, known, lane, number));
		taken++;
	}
	pthread_join(producer, NULL);
	EXPECT_OK(live.status);
	evc_mailbox_release(live.receiver.mailbox);
	return NULL;
}

static const char *seldom_urgent(void)
{
	return run(suite_seed(), EVC_LANE_QUEUE_NORMAL, 2);
}

static const char *every_lane(void)
{
	return run(suite_seed(), EVC_LANE_QUEUE_NORMAL, 100);
}

static const char *one_stack(void)
{
	return run(suite_seed(), EVC_LANE_STACK_NORMAL, 2);
}

static const struct evc_suite_test tests[] = {
	{ "D1 D4 no take passes over a post that returned, with a few urgent posts", seldom_urgent },
	{ "D1 D4 no take passes over a post that returned, on random lanes", every_lane },
	{ "D3 D4 no take passes over a newer post that returned, on a stack", one_stack },
};
SUITE_GROUP(suite_order_live, tests);
#endif
