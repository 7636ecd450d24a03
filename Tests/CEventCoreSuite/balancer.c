/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A balancer on one thread: which receiver gets which envelope, and what the envelope contains. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "crew.h"

/* The receiver with the least promised; of several the last. */
static uint32_t choose_least(void *context, const struct evc_balancer_choice *choice)
{
	uint32_t best = 0;

	(void)context;
	for (uint32_t i = 1; i < choice->count; i++)
		if (evc_load_promised(evc_balancer_choice_load(choice, i)) <=
		    evc_load_promised(evc_balancer_choice_load(choice, best)))
			best = i;
	return best;
}

static const char *turns(void)
{
	struct crew crew;

	for (unsigned n = 1; n <= CREW_MOST; n++) {
		const unsigned bursts[] = { n - 1, n, n + 1, 3 * n };
		uint64_t posted = 0, taken = 0;

		EXPECT_NONE(crew_open(&crew, n, NULL));
		for (unsigned b = 0; b < 4; b++) {
			for (unsigned i = 0; i < bursts[b]; i++, posted++)
				EXPECT_NONE(crew_post_values(&crew, posted, 1, EVC_OK));
			for (; taken < posted; taken++)
				EXPECT_NONE(crew_expect_next(&crew.receivers[n == 1 ? 0 : taken % n],
							     taken));
			for (unsigned i = 0; i < n; i++)
				EXPECT_NONE(crew_expect_nothing(&crew.receivers[i]));
		}
		EXPECT_NONE(crew_close(&crew));
	}
	return NULL;
}

/* Two balancers, as for two types of events, with the same receivers. */
static const char *common_turns(void)
{
	struct evc_balancer *own, *both[2];
	uint32_t turn = 0;
	struct evc_balancer_options options = { .size = sizeof(options), .turn = &turn };
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 3, NULL));
	own = crew.balancer;
	for (unsigned b = 0; b < 2; b++) {
		EXPECT_OK(evc_balancer_create(&options, &both[b]));
		for (unsigned i = 0; i < 3; i++)
			EXPECT_OK(evc_balancer_add(both[b], crew.receivers[i].subscription, i + 1,
						   false, &crew.loads[i]));
	}
	for (uint64_t i = 0; i < 12; i++) {
		/* Two events to each balancer, so that separate counters would give 0, 1, 0, 1. */
		crew.balancer = both[i / 2 % 2];
		EXPECT_NONE(crew_post_values(&crew, i, 1, EVC_OK));
		EXPECT_NONE(crew_expect_next(&crew.receivers[i % 3], i));
	}
	EXPECT_EQUAL(turn, 12, "turns");
	for (unsigned b = 0; b < 2; b++)
		evc_balancer_release(both[b]);
	crew.balancer = own;
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

static const char *chosen(void)
{
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 3, crew_choose_answer));
	for (crew.answer = 0; crew.answer < 7; crew.answer++) {
		EXPECT_NONE(crew_post_values(&crew, crew.answer, 1, EVC_OK));
		EXPECT_NONE(crew_expect_next(&crew.receivers[crew.answer % 3], crew.answer));
	}
	EXPECT_EQUAL(crew.asked, 7, "questions");
	EXPECT_NONE(crew_close(&crew));
	/* With one receiver `choose` is not asked. */
	EXPECT_NONE(crew_open(&crew, 1, crew_choose_answer));
	EXPECT_NONE(crew_post_values(&crew, 9, 1, EVC_OK));
	EXPECT_EQUAL(crew.asked, 0, "questions about one receiver");
	EXPECT_NONE(crew_expect_next(&crew.receivers[0], 9));
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

static const char *loads(void)
{
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 3, choose_least));
	/* One promise for each envelope, also within a chain. */
	EXPECT_NONE(crew_post_values(&crew, 0, 2, EVC_OK));
	EXPECT_NONE(crew_post_values(&crew, 2, 4, EVC_OK));
	for (unsigned i = 0; i < 3; i++) {
		EXPECT_EQUAL(evc_load_promised(&crew.loads[i]), 2, "promises");
		EXPECT_NONE(crew_expect_next(&crew.receivers[i], 2 - i));
		EXPECT_NONE(crew_expect_next(&crew.receivers[i], 5 - i));
	}
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

static const char *unchanged(void)
{
	struct crew crew;
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	uint64_t before = evc_clock_now();

	EXPECT_NONE(crew_open(&crew, 2, crew_choose_answer));
	crew.answer = 1;
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		EXPECT_NONE(crew_append(&crew, &chain, lane, 100 + lane));
		evc_envelope_set_time(chain.last, lane + 1);
	}
	EXPECT_OK(crew_post(&crew, &chain));
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		struct evc_envelope *envelope;

		EXPECT_OK(evc_mailbox_take(crew.receivers[1].mailbox, &envelope));
		EXPECT_EQUAL(evc_envelope_lane(envelope), lane, "D1: the lane");
		EXPECT_EQUAL(evc_envelope_time(envelope), lane + 1, "D8: the time");
		EXPECT_EQUAL(*(uint64_t *)evc_envelope_payload(envelope), 100 + lane, "the payload");
		EXPECT_EQUAL(evc_envelope_generation(envelope), 2, "the receiver's generation");
		evc_mailbox_recycle(crew.receivers[1].mailbox, envelope, true);
	}
	/* A receiver that wants the time gets it, even if the router does not know that yet. */
	EXPECT_OK(evc_balancer_add(crew.balancer, crew.receivers[1].subscription, 7, true,
				   &crew.loads[1]));
	EXPECT_EQUAL(evc_balancer_count(crew.balancer), 2, "receivers");
	EXPECT_NONE(crew_post_values(&crew, 0, 1, EVC_OK));
	{
		struct evc_envelope *envelope;

		EXPECT_OK(evc_mailbox_take(crew.receivers[1].mailbox, &envelope));
		EXPECT(evc_envelope_time(envelope) >= before, "D8: no time");
		EXPECT_EQUAL(evc_envelope_generation(envelope), 7, "the new generation");
		evc_mailbox_recycle(crew.receivers[1].mailbox, envelope, true);
	}
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

static const char *chains(void)
{
	static const unsigned lengths[] = { 2, 63, 64, 65, 128, 300 };
	struct crew crew;

	for (unsigned n = 2; n <= CREW_MOST; n++) {
		EXPECT_NONE(crew_open(&crew, n, NULL));
		for (unsigned l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
			uint64_t before[CREW_MOST], sum = 0;

			for (unsigned i = 0; i < n; i++)
				before[i] = evc_load_promised(&crew.loads[i]);
			EXPECT_NONE(crew_post_values(&crew, 0, lengths[l], EVC_OK));
			for (unsigned i = 0; i < n; i++) {
				uint64_t count = evc_load_promised(&crew.loads[i]) - before[i];
				uint64_t last = 0, value;
				unsigned lane;

				for (uint64_t j = 0; j < count; j++, last = value) {
					EXPECT_OK(suite_take(&crew.receivers[i], &lane, &value));
					EXPECT(j == 0 || value > last, "D2: %llu after %llu",
					       (unsigned long long)value, (unsigned long long)last);
				}
				EXPECT_NONE(crew_expect_nothing(&crew.receivers[i]));
				sum += count;
			}
			EXPECT_EQUAL(sum, lengths[l], "envelopes of a chain");
		}
		EXPECT_NONE(crew_close(&crew));
	}
	return NULL;
}

static const char *routed(void)
{
	struct evc_router *router;
	struct crew crew;
	unsigned char large[200] = { 0 };
	uint32_t accepted;

	EXPECT_NONE(crew_open(&crew, 2, NULL));
	EXPECT_OK(evc_router_create(&router));
	EXPECT_OK(evc_router_subscribe(router, 1, evc_balancer_subscription(crew.balancer), 0,
				       false));
	for (unsigned i = 0; i < 10; i++) {
		EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_STACK_LOW, large, sizeof(large), 8,
					     &accepted));
		EXPECT_EQUAL(accepted, 1, "receivers, of which the balancer is one");
	}
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_EQUAL(evc_load_promised(&crew.loads[i]), 5, "promises");
		evc_mailbox_close(crew.receivers[i].mailbox);
	}
	EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_STACK_LOW, large, sizeof(large), 8,
				     &accepted));
	EXPECT_EQUAL(accepted, 0, "receivers that have closed");
	EXPECT_EQUAL(crew.drops, 1, "payloads that the dispatch ended");
	evc_router_destroy(router);
	EXPECT(suite_settle(), "the callback thread got stuck");
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

/* One event for a receiver itself and for the balancer that leads to it, in each order. */
static const char *twice(void)
{
	struct evc_router *router;
	struct crew crew;
	unsigned lane;
	uint64_t value;
	uint32_t accepted;

	for (unsigned first = 0; first < 2; first++) {
		EXPECT_NONE(crew_open(&crew, 1, NULL));
		EXPECT_OK(evc_router_create(&router));
		for (unsigned i = 0; i < 2; i++)
			EXPECT_OK(evc_router_subscribe(
				router, 1,
				i == first ? crew.receivers[0].subscription
					   : evc_balancer_subscription(crew.balancer),
				0, false));
		/* Enough to use up the first segments and use them again. */
		for (uint64_t i = 0; i < 1000; i++) {
			EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, &i, sizeof(i),
						     8, &accepted));
			EXPECT_EQUAL(accepted, 2, "receivers");
			if (i % 100 != 99)
				continue;
			for (uint64_t taken = 0; taken < 200; taken++) {
				EXPECT_OK(suite_take(&crew.receivers[0], &lane, &value));
				EXPECT_EQUAL(value, i - 99 + taken / 2, "D2: the payload");
			}
			EXPECT_NONE(crew_expect_nothing(&crew.receivers[0]));
		}
		EXPECT_EQUAL(evc_load_promised(&crew.loads[0]), 1000, "promises");
		evc_router_destroy(router);
		EXPECT(suite_settle(), "the callback thread got stuck");
		EXPECT_NONE(crew_close(&crew));
	}
	return NULL;
}

/* An envelope that another thread made is passed on unchanged, and returns to that thread's slab pool. */
static void *make_for(void *context)
{
	struct crew *crew = context;
	struct evc_chain chain = EVC_CHAIN_EMPTY;

	return (void *)(uintptr_t)(crew_append(crew, &chain, EVC_LANE_QUEUE_NORMAL, 7) == NULL
					   ? chain.first
					   : NULL);
}

static const char *stranger(void)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *made, *taken;
	pthread_t thread;
	void *result;
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 2, NULL));
	EXPECT_EQUAL(pthread_create(&thread, NULL, make_for, &crew), 0, "thread");
	EXPECT_EQUAL(pthread_join(thread, &result), 0, "join");
	made = result;
	EXPECT(made != NULL, "no envelope");
	evc_chain_append(&chain, made);
	EXPECT_OK(crew_post(&crew, &chain));
	EXPECT_OK(evc_mailbox_take(crew.receivers[0].mailbox, &taken));
	EXPECT(taken == made, "another envelope came");
	EXPECT_EQUAL(*(uint64_t *)evc_envelope_payload(taken), 7, "the payload");
	evc_mailbox_recycle(crew.receivers[0].mailbox, taken, true);
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

/* After anything but EVC_OK nothing has changed (base.h): the subscription has no load yet. */
static const char *another_load(void)
{
	struct evc_load load = { 0 };
	struct crew crew;
	enum evc_status status;

	EXPECT_NONE(crew_open(&crew, 0, NULL));
	EXPECT_NONE(suite_receiver_open(&crew.receivers[0], NULL));
	crew.count = 1;
	suite_allocator_install(0, UINT64_MAX);
	status = evc_balancer_add(crew.balancer, crew.receivers[0].subscription, 0, false, &load);
	suite_allocator_restore();
	EXPECT_STATUS(status, EVC_OUT_OF_MEMORY);
	EXPECT_OK(evc_balancer_add(crew.balancer, crew.receivers[0].subscription, 0, false, &crew.loads[0]));
	EXPECT_STATUS(evc_balancer_add(crew.balancer, crew.receivers[0].subscription, 0, false, &load),
		      EVC_INVALID_ARGUMENT);
	EXPECT_EQUAL(evc_balancer_count(crew.balancer), 1, "receivers");
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

static const char *plain_turns(void)
{
	return crew_plainly(turns);
}

static const char *plain_loads(void)
{
	return crew_plainly(loads);
}

static const char *plain_unchanged(void)
{
	return crew_plainly(unchanged);
}

static const char *plain_routed(void)
{
	return crew_plainly(routed);
}

static const char *plain_twice(void)
{
	return crew_plainly(twice);
}

static const char *plain_stranger(void)
{
	return crew_plainly(stranger);
}

static const struct evc_suite_test tests[] = {
	{ "D4 a balancer without a choice takes its receivers in turn, for n-1, n, n+1, 3n", turns },
	{ "D4 balancers that share their turns take them over all of their events", common_turns },
	{ "a balancer asks once for each envelope, and not about one receiver", chosen },
	{ "a balancer counts what it promises before it posts", loads },
	{ "D1 D8 lane, time and payload survive a balancer", unchanged },
	{ "D2 a chain is spread, and each receiver has its part in order", chains },
	{ "D4 a balancer is one receiver in a router, boxes too", routed },
	{ "D2 D4 one event for a receiver and for the balancer above it", twice },
	{ "D4 a balancer passes on an envelope that another thread made", stranger },
	{ "a receiver that no memory was left for is added with another load", another_load },
	{ "D4 plain payloads: a balancer takes its receivers in turn", plain_turns },
	{ "plain payloads: a balancer counts what it promises before it posts", plain_loads },
	{ "D1 D8 plain payloads: lane, time and payload survive a balancer", plain_unchanged },
	{ "D4 plain payloads: a balancer is one receiver in a router, boxes too", plain_routed },
	{ "D2 D4 plain payloads: for a receiver and for the balancer above it", plain_twice },
	{ "D4 plain payloads: an envelope that another thread made", plain_stranger },
};
SUITE_GROUP(suite_balancer, tests);
#endif
