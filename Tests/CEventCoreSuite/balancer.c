/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A balancer on one thread: who gets what, what an envelope is when it arrives, and what happens when
 * receivers have closed, retired, or changed while one was being chosen.
 */
#ifdef EVC_URCU
#include "suite.h"

#include "subscription.h"

#include <string.h>

#define MOST 5u

/* So many receivers with a load each, and a balancer for them. */
struct crew {
	struct evc_balancer *balancer;
	struct suite_receiver receivers[MOST];
	struct evc_load loads[MOST];
	unsigned count;
	/* What `choose` answers, and how often it was asked. */
	uint32_t answer;
	uint64_t asked;
	uint64_t drops;
	uint64_t finalized;
};

static uint32_t choose_answer(void *context, const struct evc_balancer_choice *choice)
{
	struct crew *crew = context;

	(void)choice;
	crew->asked++;
	return crew->answer;
}

/* The least promised; the last of them. */
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

static void drop(void *context, void *payload)
{
	(void)payload;
	((struct crew *)context)->drops++;
}

static void finalize(void *context)
{
	((struct crew *)context)->finalized++;
}

static const char *crew_open(struct crew *crew, unsigned count,
			     uint32_t (*choose)(void *, const struct evc_balancer_choice *))
{
	struct evc_balancer_options options = { choose, drop, finalize, crew };

	memset(crew, 0, sizeof(*crew));
	crew->count = count;
	EXPECT_OK(evc_balancer_create(&options, &crew->balancer));
	for (unsigned i = 0; i < count; i++) {
		EXPECT_NONE(suite_receiver_open(&crew->receivers[i], NULL));
		EXPECT_OK(evc_balancer_add(crew->balancer, crew->receivers[i].subscription, i + 1,
					   false, &crew->loads[i]));
	}
	EXPECT_EQUAL(evc_balancer_count(crew->balancer), count, "receivers");
	return NULL;
}

/* Frees all, and checks that nothing is held any more. */
static const char *crew_close(struct crew *crew)
{
	evc_balancer_release(crew->balancer);
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	EXPECT_EQUAL(crew->finalized, 1, "calls of finalize");
	for (unsigned i = 0; i < crew->count; i++) {
		evc_mailbox_release(crew->receivers[i].mailbox);
		EXPECT_EQUAL(crew->receivers[i].finalized, 1, "calls of a receiver's finalize");
	}
	return NULL;
}

static const char *append(struct crew *crew, struct evc_chain *chain, unsigned lane, uint64_t value)
{
	struct evc_envelope *envelope;

	EXPECT_OK(evc_envelope_create(evc_balancer_subscription(crew->balancer),
				      (enum evc_lane)lane, sizeof(value), _Alignof(uint64_t),
				      &envelope));
	memcpy(evc_envelope_payload(envelope), &value, sizeof(value));
	evc_chain_append(chain, envelope);
	return NULL;
}

static enum evc_status post(struct crew *crew, const struct evc_chain *chain)
{
	struct evc_sink *sink = evc_balancer_subscription(crew->balancer)->sink;

	return sink->accept(sink, chain);
}

/* Posts the values first ... first + count - 1 as one chain. */
static const char *post_values(struct crew *crew, uint64_t first, unsigned count,
			       enum evc_status expected)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope, *next;

	for (unsigned i = 0; i < count; i++)
		EXPECT_NONE(append(crew, &chain, EVC_LANE_QUEUE_NORMAL, first + i));
	EXPECT_STATUS(post(crew, &chain), expected);
	if (expected == EVC_OK)
		return NULL;
	/* Still the poster's: the same chain in the same order. */
	envelope = chain.first;
	for (unsigned i = 0; i < count; i++, envelope = next) {
		EXPECT(envelope != NULL, "the chain lost envelopes");
		EXPECT_EQUAL(*(uint64_t *)evc_envelope_payload(envelope), first + i,
			     "a payload of a refused chain");
		EXPECT(evc_envelope_subscription(envelope) ==
			       evc_balancer_subscription(crew->balancer),
		       "a refused envelope is addressed to a receiver");
		next = evc_dispatch_next(envelope);
		evc_envelope_release(envelope, false);
	}
	EXPECT(envelope == NULL, "the chain has more envelopes than before");
	return NULL;
}

static const char *expect_next(struct suite_receiver *receiver, uint64_t value)
{
	unsigned lane;
	uint64_t found;

	EXPECT_OK(suite_take(receiver, &lane, &found));
	EXPECT_EQUAL(found, value, "the payload");
	return NULL;
}

static const char *expect_nothing(struct suite_receiver *receiver)
{
	unsigned lane;
	uint64_t found;

	EXPECT_STATUS(suite_take(receiver, &lane, &found), EVC_EMPTY);
	return NULL;
}

static const char *turns(void)
{
	struct crew crew;

	for (unsigned n = 1; n <= MOST; n++) {
		const unsigned bursts[] = { n - 1, n, n + 1, 3 * n };
		uint64_t posted = 0, taken = 0;

		EXPECT_NONE(crew_open(&crew, n, NULL));
		for (unsigned b = 0; b < 4; b++) {
			for (unsigned i = 0; i < bursts[b]; i++, posted++)
				EXPECT_NONE(post_values(&crew, posted, 1, EVC_OK));
			for (; taken < posted; taken++)
				EXPECT_NONE(expect_next(&crew.receivers[n == 1 ? 0 : taken % n],
							taken));
			for (unsigned i = 0; i < n; i++)
				EXPECT_NONE(expect_nothing(&crew.receivers[i]));
		}
		EXPECT_NONE(crew_close(&crew));
	}
	return NULL;
}

static const char *chosen(void)
{
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 3, choose_answer));
	for (crew.answer = 0; crew.answer < 7; crew.answer++) {
		EXPECT_NONE(post_values(&crew, crew.answer, 1, EVC_OK));
		EXPECT_NONE(expect_next(&crew.receivers[crew.answer % 3], crew.answer));
	}
	EXPECT_EQUAL(crew.asked, 7, "questions");
	EXPECT_NONE(crew_close(&crew));
	/* One receiver is no choice. */
	EXPECT_NONE(crew_open(&crew, 1, choose_answer));
	EXPECT_NONE(post_values(&crew, 9, 1, EVC_OK));
	EXPECT_EQUAL(crew.asked, 0, "questions about one receiver");
	EXPECT_NONE(expect_next(&crew.receivers[0], 9));
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

static const char *loads(void)
{
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 3, choose_least));
	/* One promise after the other, also within a chain. */
	EXPECT_NONE(post_values(&crew, 0, 2, EVC_OK));
	EXPECT_NONE(post_values(&crew, 2, 4, EVC_OK));
	for (unsigned i = 0; i < 3; i++) {
		EXPECT_EQUAL(evc_load_promised(&crew.loads[i]), 2, "promises");
		EXPECT_NONE(expect_next(&crew.receivers[i], 2 - i));
		EXPECT_NONE(expect_next(&crew.receivers[i], 5 - i));
	}
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

static const char *unchanged(void)
{
	struct crew crew;
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	uint64_t before = evc_clock_now();

	EXPECT_NONE(crew_open(&crew, 2, choose_answer));
	crew.answer = 1;
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		EXPECT_NONE(append(&crew, &chain, lane, 100 + lane));
		evc_envelope_set_time(chain.last, lane + 1);
	}
	EXPECT_OK(post(&crew, &chain));
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		struct evc_envelope *envelope;

		EXPECT_OK(evc_mailbox_take(crew.receivers[1].mailbox, &envelope));
		EXPECT_EQUAL(evc_envelope_lane(envelope), lane, "D1: the lane");
		EXPECT_EQUAL(evc_envelope_time(envelope), lane + 1, "D8: the time");
		EXPECT_EQUAL(*(uint64_t *)evc_envelope_payload(envelope), 100 + lane, "the payload");
		EXPECT_EQUAL(evc_envelope_generation(envelope), 2, "the receiver's generation");
		evc_mailbox_recycle(crew.receivers[1].mailbox, envelope, true);
	}
	/* A receiver that wants the time gets one, though the router did not know of it yet. */
	EXPECT_OK(evc_balancer_add(crew.balancer, crew.receivers[1].subscription, 7, true,
				   &crew.loads[1]));
	EXPECT_EQUAL(evc_balancer_count(crew.balancer), 2, "receivers");
	EXPECT_NONE(post_values(&crew, 0, 1, EVC_OK));
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

	for (unsigned n = 2; n <= MOST; n++) {
		EXPECT_NONE(crew_open(&crew, n, NULL));
		for (unsigned l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
			uint64_t before[MOST], sum = 0;

			for (unsigned i = 0; i < n; i++)
				before[i] = evc_load_promised(&crew.loads[i]);
			EXPECT_NONE(post_values(&crew, 0, lengths[l], EVC_OK));
			for (unsigned i = 0; i < n; i++) {
				uint64_t count = evc_load_promised(&crew.loads[i]) - before[i];
				uint64_t last = 0, value;
				unsigned lane;

				for (uint64_t j = 0; j < count; j++, last = value) {
					EXPECT_OK(suite_take(&crew.receivers[i], &lane, &value));
					EXPECT(j == 0 || value > last, "D2: %llu after %llu",
					       (unsigned long long)value, (unsigned long long)last);
				}
				EXPECT_NONE(expect_nothing(&crew.receivers[i]));
				sum += count;
			}
			EXPECT_EQUAL(sum, lengths[l], "envelopes of a chain");
		}
		EXPECT_NONE(crew_close(&crew));
	}
	return NULL;
}

static const char *closed(void)
{
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 3, choose_answer));
	evc_mailbox_close(crew.receivers[0].mailbox);
	EXPECT_NONE(post_values(&crew, 1, 1, EVC_OK));
	EXPECT_NONE(expect_next(&crew.receivers[1], 1));
	EXPECT_EQUAL(evc_load_promised(&crew.loads[0]), 0, "promises of one that refused");
	EXPECT_NONE(post_values(&crew, 2, 3, EVC_OK));
	for (uint64_t value = 2; value < 5; value++)
		EXPECT_NONE(expect_next(&crew.receivers[1], value));
	/* A retired one is passed over like a closed one. */
	EXPECT_EQUAL(evc_load_retire(&crew.loads[1]), 4, "promises in all");
	EXPECT_NONE(post_values(&crew, 5, 1, EVC_OK));
	EXPECT_NONE(post_values(&crew, 6, 2, EVC_OK));
	for (uint64_t value = 5; value < 8; value++)
		EXPECT_NONE(expect_next(&crew.receivers[2], value));
	EXPECT_EQUAL(evc_load_promised(&crew.loads[1]), 4, "promises after the retirement");
	EXPECT_EQUAL(evc_balancer_refused(crew.balancer), 0, "refused envelopes");
	/* Nobody is left: everything goes back as it came. */
	evc_mailbox_close(crew.receivers[2].mailbox);
	EXPECT_NONE(post_values(&crew, 0, 1, EVC_CLOSED));
	EXPECT_NONE(post_values(&crew, 10, 2, EVC_CLOSED));
	EXPECT_NONE(post_values(&crew, 20, 100, EVC_CLOSED));
	EXPECT_EQUAL(evc_balancer_refused(crew.balancer), 103, "refused envelopes");
	EXPECT_EQUAL(crew.drops, 103, "payloads that the poster ended");
	EXPECT_EQUAL(evc_load_promised(&crew.loads[2]), 3, "promises of the last");
	for (unsigned i = 0; i < 3; i++)
		EXPECT_OK(evc_balancer_remove(crew.balancer, crew.receivers[i].subscription));
	EXPECT_NONE(post_values(&crew, 0, 3, EVC_CLOSED));
	EXPECT_EQUAL(evc_balancer_count(crew.balancer), 0, "receivers");
	EXPECT_STATUS(evc_balancer_remove(crew.balancer, crew.receivers[0].subscription),
		      EVC_NOT_FOUND);
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

/* A sink that accepts so many envelopes and then closes. */
struct short_sink {
	struct evc_sink sink;
	struct evc_subscription subscription;
	uint32_t room;
	uint64_t references;
	uint64_t accepted;
};

static enum evc_status short_accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct short_sink *self = (struct short_sink *)(void *)sink;
	struct evc_envelope *envelope = chain->first, *next;

	if (chain->count > self->room)
		return EVC_CLOSED;
	self->room -= chain->count;
	self->accepted += chain->count;
	for (uint32_t i = 0; i < chain->count; i++, envelope = next) {
		next = evc_dispatch_next(envelope);
		evc_envelope_release(envelope, true);
	}
	return EVC_OK;
}

static void short_retain(struct evc_sink *sink)
{
	((struct short_sink *)(void *)sink)->references++;
}

static void short_release(struct evc_sink *sink)
{
	((struct short_sink *)(void *)sink)->references--;
}

static const char *half(void)
{
	struct short_sink narrow = { .sink = { short_accept, short_retain, short_release, NULL },
				     .room = 70 };
	struct evc_load load = { 0 };
	struct crew crew;

	narrow.subscription.sink = &narrow.sink;
	EXPECT_NONE(crew_open(&crew, 0, NULL));
	EXPECT_OK(evc_balancer_add(crew.balancer, &narrow.subscription, 0, false, &load));
	/* The first 64 are placed together, and are gone when the next 36 find nobody. */
	EXPECT_NONE(post_values(&crew, 0, 100, EVC_OK));
	EXPECT_EQUAL(narrow.accepted, 64, "placed envelopes");
	EXPECT_EQUAL(evc_balancer_refused(crew.balancer), 36, "D4: counted envelopes");
	EXPECT_EQUAL(crew.drops, 36, "D4: ended payloads");
	EXPECT_EQUAL(evc_load_promised(&load), 64, "promises");
	EXPECT_NONE(crew_close(&crew));
	EXPECT_EQUAL(narrow.references, 0, "references of the sink");
	return NULL;
}

/* While one is chosen, all that were there are replaced by another. */
static uint32_t choose_late(void *context, const struct evc_balancer_choice *choice)
{
	struct crew *crew = context;

	(void)choice;
	if (crew->asked++ > 0)
		return 0;
	if (evc_balancer_add(crew->balancer, crew->receivers[2].subscription, 0, false,
			     &crew->loads[2]) != EVC_OK)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		if (evc_balancer_remove(crew->balancer, crew->receivers[i].subscription) != EVC_OK)
			return 0;
		(void)evc_load_retire(&crew->loads[i]);
	}
	return 0;
}

static const char *looks_again(void)
{
	struct crew crew;

	for (unsigned length = 1; length <= 100; length += 33) {
		EXPECT_NONE(crew_open(&crew, 3, choose_late));
		EXPECT_OK(evc_balancer_remove(crew.balancer, crew.receivers[2].subscription));
		EXPECT_NONE(post_values(&crew, 0, length, EVC_OK));
		for (uint64_t value = 0; value < length; value++)
			EXPECT_NONE(expect_next(&crew.receivers[2], value));
		EXPECT_EQUAL(evc_balancer_refused(crew.balancer), 0, "refused envelopes");
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

static const char *out_of_memory(void)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_balancer *balancer;
	enum evc_status status;
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 3, NULL));
	suite_allocator_install(0, 1);
	EXPECT_STATUS(evc_balancer_create(NULL, &balancer), EVC_OUT_OF_MEMORY);
	EXPECT_OK(evc_balancer_create(NULL, &balancer));
	suite_allocator_restore();
	evc_balancer_release(balancer);
	suite_allocator_install(0, 1);
	EXPECT_STATUS(evc_balancer_remove(crew.balancer, crew.receivers[1].subscription),
		      EVC_OUT_OF_MEMORY);
	suite_allocator_restore();
	EXPECT_EQUAL(evc_balancer_count(crew.balancer), 3, "receivers after a failed removal");
	EXPECT_OK(evc_balancer_remove(crew.balancer, crew.receivers[1].subscription));
	suite_allocator_install(0, 1);
	EXPECT_STATUS(evc_balancer_add(crew.balancer, crew.receivers[1].subscription, 0, false,
				       &crew.loads[1]),
		      EVC_OUT_OF_MEMORY);
	suite_allocator_restore();
	EXPECT_EQUAL(evc_balancer_count(crew.balancer), 2, "receivers after a failed addition");
	for (unsigned i = 0; i < 64; i++)
		EXPECT_NONE(append(&crew, &chain, EVC_LANE_QUEUE_NORMAL, i));
	/* The first posts make this thread's streams to the receivers. */
	EXPECT_STATUS(post(&crew, &chain), EVC_OK);
	chain = (struct evc_chain)EVC_CHAIN_EMPTY;
	for (unsigned i = 0; i < 64; i++)
		EXPECT_NONE(append(&crew, &chain, EVC_LANE_QUEUE_NORMAL, i));
	/* Those after them need no memory. */
	suite_allocator_install(0, UINT64_MAX);
	status = post(&crew, &chain);
	suite_allocator_restore();
	EXPECT_STATUS(status, EVC_OK);
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

static const char *mistakes(void)
{
	struct evc_chain nothing = EVC_CHAIN_EMPTY;
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 1, NULL));
	EXPECT_STATUS(evc_balancer_create(NULL, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_add(NULL, crew.receivers[0].subscription, 0, false,
				       &crew.loads[0]),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_add(crew.balancer, NULL, 0, false, &crew.loads[0]),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_add(crew.balancer, crew.receivers[0].subscription, 0, false,
				       NULL),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_add(crew.balancer, evc_balancer_subscription(crew.balancer), 0,
				       false, &crew.loads[0]),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_remove(crew.balancer, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(post(&crew, &nothing), EVC_INVALID_ARGUMENT);
	EXPECT_EQUAL(evc_balancer_count(crew.balancer), 1, "receivers");
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 a balancer without a choice takes its receivers in turn, for n-1, n, n+1, 3n", turns },
	{ "a balancer asks once for each envelope, and not about one receiver", chosen },
	{ "a balancer counts what it promises before it posts", loads },
	{ "D1 D8 lane, time and payload survive a balancer", unchanged },
	{ "D2 a chain is spread, and each receiver has its part in order", chains },
	{ "D4 what a closed or retired receiver would get goes to another, or back", closed },
	{ "D4 what is left of a chain when the last receiver closes is counted", half },
	{ "D4 a balancer looks again when all that it knew were replaced", looks_again },
	{ "D4 a balancer is one receiver in a router, boxes too", routed },
	{ "D12 a balancer out of memory stays as it was", out_of_memory },
	{ "D12 a balancer refuses what breaks a rule", mistakes },
};
SUITE_GROUP(suite_balancer, tests);
#endif
