/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "dispatchers.h"

#include <eventcore/pool.h>

#include <string.h>

static void *run(void *context)
{
	struct dispatcher *dispatcher = context;

	for (uint64_t i = 1; dispatcher->events == 0 || i <= dispatcher->events; i++) {
		uint64_t value = dispatcher->index << 32 | i;
		unsigned lane = dispatcher->lane >= 0
					? (unsigned)dispatcher->lane
					: suite_random(&dispatcher->random) % EVC_LANE_COUNT;
		uint32_t receivers = 0;

		dispatcher->status = evc_dispatch_bytes(dispatcher->router, dispatcher->key,
							(enum evc_lane)lane, &value, sizeof(value),
							_Alignof(uint64_t), &receivers);
		if (dispatcher->status != EVC_OK || (dispatcher->events == 0 && receivers == 0))
			break;
		atomic_fetch_add_explicit(&dispatcher->accepted, receivers, memory_order_release);
	}
	return NULL;
}

static void start_again(struct dispatchers *dispatchers)
{
	for (unsigned i = 0; i < dispatchers->count; i++)
		pthread_create(&dispatchers->threads[i], NULL, run, &dispatchers->each[i]);
}

void dispatchers_start(struct dispatchers *dispatchers, struct evc_router *router, uint64_t key,
		       unsigned count, uint64_t events, int lane)
{
	memset(dispatchers, 0, sizeof(*dispatchers));
	dispatchers->seed = suite_seed();
	dispatchers->count = count;
	for (unsigned i = 0; i < count; i++)
		dispatchers->each[i] = (struct dispatcher){
			.router = router,
			.key = key,
			.index = i,
			.events = events,
			.lane = lane,
			.random = dispatchers->seed + i,
		};
	start_again(dispatchers);
}

const char *dispatchers_join(struct dispatchers *dispatchers, uint64_t *accepted)
{
	*accepted = 0;
	for (unsigned i = 0; i < dispatchers->count; i++) {
		pthread_join(dispatchers->threads[i], NULL);
		EXPECT_OK(dispatchers->each[i].status);
		*accepted += dispatchers->each[i].accepted;
	}
	return NULL;
}

const char *dispatchers_flood(struct dispatchers *dispatchers, uint64_t *accepted)
{
	/* The first flood takes the slabs that threads need which run at one time. */
	const uint64_t events[] = { SUITE_SCALE(100000u), SUITE_SCALE(1000000u) };
	/* If a thread was held up, other threads may have had a few of its slots. */
	const size_t limits[] = { 2 * 256 * 1024, 256 * 1024 };
	struct evc_pool_statistics before, after;

	EXPECT_NONE(dispatchers_join(dispatchers, accepted));
	for (unsigned flood = 0; flood < 2; flood++) {
		evc_pool_read_statistics(&before);
		for (unsigned i = 0; i < dispatchers->count; i++)
			dispatchers->each[i].events = events[flood];
		start_again(dispatchers);
		EXPECT_NONE(dispatchers_join(dispatchers, accepted));
		evc_pool_read_statistics(&after);
		EXPECT(after.slab_bytes <= before.slab_bytes + dispatchers->count * limits[flood],
		       "the pools grew from %zu to %zu bytes", before.slab_bytes, after.slab_bytes);
	}
	return NULL;
}

const char *dispatchers_expect_all(const struct dispatchers *dispatchers,
				   const struct evc_mailbox_statistics *statistics, uint64_t accepted)
{
	EXPECT(statistics->taken + statistics->superseded + statistics->dropped == accepted,
	       "accepted %llu, but %llu taken, %llu superseded, %llu dropped (seed %llu)",
	       (unsigned long long)accepted, (unsigned long long)statistics->taken,
	       (unsigned long long)statistics->superseded,
	       (unsigned long long)statistics->dropped, (unsigned long long)dispatchers->seed);
	return NULL;
}
#endif
