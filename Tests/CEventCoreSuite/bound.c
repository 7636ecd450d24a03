/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Bounded mailboxes, on one thread: what each overflow policy does, and that every event is accounted for. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "bounded.h"

#include <string.h>

#define LARGEST 100u

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Around each capacity, and three times it. What was accepted first is what is taken. */
static const char *refuses_and_drops_newest(void)
{
	static const uint64_t capacities[] = { 1, 2, 3, 63, 64, 65, LARGEST };

	for (unsigned i = 0; i < 2 * sizeof(capacities) / sizeof(capacities[0]); i++) {
		uint64_t n = capacities[i / 2], counts[] = { 0, 1, n - 1, n, n + 1, 3 * n };
		bool drops = i % 2 != 0;

		for (unsigned j = 0; j < sizeof(counts) / sizeof(counts[0]); j++) {
			uint64_t count = counts[j], fit = least(count, n), over = count - fit, value;
			struct suite_receiver receiver;
			unsigned lane;

			EXPECT_NONE(open_bounded(&receiver, drops ? EVC_OVERFLOW_DROP_NEWEST : EVC_OVERFLOW_REFUSE, n));
			for (uint64_t v = 0; v < count; v++)
				EXPECT_STATUS(suite_post(&receiver, EVC_LANE_QUEUE_NORMAL, v),
					      v < n || drops ? EVC_OK : EVC_FULL);
			EXPECT_NONE(expect_counts(&receiver, (struct counts){
				drops ? count : fit, 0, fit, drops ? 0 : over, drops ? over : 0, fit }));
			for (uint64_t v = 0; v < fit; v++) {
				EXPECT_OK(suite_take(&receiver, &lane, &value));
				EXPECT_EQUAL(value, v, "the value");
			}
			EXPECT_STATUS(suite_take(&receiver, &lane, &value), EVC_EMPTY);
			EXPECT_OK(suite_post(&receiver, EVC_LANE_STACK_LOW, 7));
			EXPECT_OK(suite_take(&receiver, &lane, &value));
			EXPECT_NONE(expect_counts(&receiver, (struct counts){
				(drops ? count : fit) + 1, fit + 1, 0, drops ? 0 : over, drops ? over : 0,
				fit > 0 ? fit : 1 }));
			EXPECT_EQUAL(receiver.drops, drops ? over : 0, "payloads ended");
			evc_mailbox_release(receiver.mailbox);
			EXPECT_EQUAL(receiver.finalized, 1, "finalized");
		}
	}
	return NULL;
}

/* The newest wait, however many came; each lane's are taken in order. */
static const char *drops_oldest(void)
{
	static const uint64_t capacities[] = { 1, 2, 3, 63, 64, 65, LARGEST, 487, 488, 489, 2000 };

	for (unsigned i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		uint64_t n = capacities[i], counts[] = { 0, 1, n - 1, n, n + 1, 3 * n };

		for (unsigned j = 0; j < sizeof(counts) / sizeof(counts[0]); j++) {
			uint64_t count = counts[j], fit = least(count, n), value;
			struct suite_receiver receiver;
			unsigned lane;

			EXPECT_NONE(open_bounded(&receiver, EVC_OVERFLOW_DROP_OLDEST, n));
			for (uint64_t v = 0; v < count; v++)
				EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_LOW, v));
			EXPECT_NONE(expect_counts(&receiver, (struct counts){ count, 0, fit, 0, count - fit, fit }));
			/* More urgent ones displace them, and less urgent ones find no place. */
			for (uint64_t v = 0; v < fit / 2; v++)
				EXPECT_OK(suite_post(&receiver, EVC_LANE_STACK_HIGH, 1000 + v));
			if (fit == n)
				EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_LOWEST, 5));
			for (uint64_t v = fit / 2; v-- > 0;) {
				EXPECT_OK(suite_take(&receiver, &lane, &value));
				EXPECT_EQUAL(value, 1000 + v, "the newest of the stack");
			}
			for (uint64_t v = count - (fit == n ? fit - fit / 2 : fit); v < count && fit == n; v++) {
				EXPECT_OK(suite_take(&receiver, &lane, &value));
				EXPECT_EQUAL(value, v, "the oldest that is left");
			}
			evc_mailbox_release(receiver.mailbox);
			EXPECT_EQUAL(receiver.finalized, 1, "finalized");
		}
	}
	return NULL;
}

/* The model: what waits in each lane, oldest first. */
struct model {
	uint64_t waiting[EVC_LANE_COUNT][LARGEST];
	unsigned count[EVC_LANE_COUNT], total;
	struct counts counts;
};

static void model_remove(struct model *model, unsigned lane, unsigned index)
{
	uint64_t *waiting = model->waiting[lane];

	memmove(&waiting[index], &waiting[index + 1], (--model->count[lane] - index) * sizeof(*waiting));
	model->total--;
}

/* The oldest of the least urgent lane, but none of a more urgent one than `lane`; of a stack the newest. */
static bool model_displace(struct model *model, unsigned lane)
{
	for (unsigned last = EVC_LANE_COUNT; last > lane; last--) {
		unsigned count = model->count[last - 1];

		if (count == 0)
			continue;
		model_remove(model, last - 1, last - 1 < EVC_LANE_FIRST_QUEUE ? count - 1 : 0);
		return true;
	}
	return false;
}

static enum evc_status model_post(struct model *model, enum evc_overflow policy, unsigned capacity, unsigned lane,
				  uint64_t value)
{
	struct counts *counts = &model->counts;

	if (model->total == capacity) {
		if (policy == EVC_OVERFLOW_REFUSE) {
			counts->refused++;
			return EVC_FULL;
		}
		counts->overflowed++;
		counts->accepted++;
		if (policy == EVC_OVERFLOW_DROP_NEWEST || !model_displace(model, lane))
			return EVC_OK;
		counts->accepted--;
	}
	model->waiting[lane][model->count[lane]++] = value;
	model->total++;
	counts->accepted++;
	if (model->total > counts->high_water)
		counts->high_water = model->total;
	return EVC_OK;
}

static const char *take_as(struct suite_receiver *receiver, struct model *model)
{
	unsigned lane = 0, found_lane, index;
	uint64_t value, found;

	while (lane < EVC_LANE_COUNT && model->count[lane] == 0)
		lane++;
	if (lane == EVC_LANE_COUNT) {
		EXPECT_STATUS(suite_take(receiver, &found_lane, &found), EVC_EMPTY);
		return NULL;
	}
	index = lane < EVC_LANE_FIRST_QUEUE ? model->count[lane] - 1 : 0;
	value = model->waiting[lane][index];
	model_remove(model, lane, index);
	model->counts.taken++;
	EXPECT_OK(suite_take(receiver, &found_lane, &found));
	EXPECT_EQUAL(found_lane, lane, "the lane");
	EXPECT_EQUAL(found, value, "the value");
	return NULL;
}

/* D1 to D3 by chance, on all lanes, around a mailbox that is mostly full. */
static const char *as_the_model(void)
{
	static const enum evc_overflow policies[] = { EVC_OVERFLOW_REFUSE, EVC_OVERFLOW_DROP_NEWEST,
						      EVC_OVERFLOW_DROP_OLDEST };
	uint64_t seed = suite_seed(), random = seed;

	for (unsigned round = 0; round < 90; round++) {
		enum evc_overflow policy = policies[round % (sizeof(policies) / sizeof(policies[0]))];
		unsigned capacity = 1 + (unsigned)(suite_random(&random) % (round % 2 != 0 ? 5 : LARGEST));
		unsigned lanes = 1 + (unsigned)(suite_random(&random) % EVC_LANE_COUNT);
		struct model model = { 0 };
		struct suite_receiver receiver;
		const char *message;

		EXPECT_NONE(open_bounded(&receiver, policy, capacity));
		for (uint64_t step = 0; step < 2000; step++) {
			unsigned lane = EVC_LANE_COUNT - 1 - (unsigned)(suite_random(&random) % lanes);

			if (suite_random(&random) % 5 < 3)
				EXPECT_STATUS(suite_post(&receiver, lane, step),
					      model_post(&model, policy, capacity, lane, step));
			else if ((message = take_as(&receiver, &model)) != NULL)
				return suite_fail("%s (seed %llu, round %u)", message, (unsigned long long)seed,
						  round);
			model.counts.waiting = model.total;
			if (step % 10 == 0)
				EXPECT_NONE(expect_counts(&receiver, model.counts));
		}
		EXPECT_NONE(expect_counts(&receiver, model.counts));
		EXPECT_EQUAL(receiver.drops, model.counts.overflowed, "payloads ended");
		evc_mailbox_release(receiver.mailbox);
		EXPECT_EQUAL(receiver.drops, model.counts.overflowed + model.total, "payloads ended");
	}
	return NULL;
}

static const char *make_chain(struct suite_receiver *receiver, uint64_t first, unsigned count,
			      struct evc_chain *chain)
{
	*chain = (struct evc_chain)EVC_CHAIN_EMPTY;
	for (uint64_t value = first; value < first + count; value++) {
		struct evc_envelope *envelope;

		EXPECT_OK(evc_envelope_create(receiver->subscription, EVC_LANE_QUEUE_LOW, sizeof(value),
					      _Alignof(uint64_t), &envelope));
		memcpy(evc_envelope_payload(envelope), &value, sizeof(value));
		evc_chain_append(chain, envelope);
	}
	return NULL;
}

/* Of a chain the first envelopes that fit are accepted; one that does not fit at all stays the caller's. */
static const char *part_of_a_chain(void)
{
	for (unsigned free = 0; free <= 10; free++) {
		for (unsigned drops = 0; drops < 2; drops++) {
			struct suite_receiver receiver;
			struct evc_chain chain;
			unsigned lane, over = free < 7 ? 7 - free : 0;
			uint64_t value;

			EXPECT_NONE(open_bounded(&receiver, drops ? EVC_OVERFLOW_DROP_NEWEST : EVC_OVERFLOW_REFUSE, 10));
			for (unsigned i = 0; i < 10 - free; i++)
				EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_HIGH, i));
			EXPECT_NONE(make_chain(&receiver, 100, 7, &chain));
			EXPECT_STATUS(evc_mailbox_post(receiver.mailbox, &chain),
				      free == 0 && !drops ? EVC_FULL : EVC_OK);
			if (free == 0 && !drops) {
				EXPECT_EQUAL(receiver.drops, 0, "payloads ended");
				for (struct evc_envelope *envelope = chain.first, *next; envelope != NULL; envelope = next) {
					next = evc_dispatch_next(envelope);
					evc_envelope_release(envelope, true);
				}
			} else {
				EXPECT_EQUAL(receiver.drops, over, "payloads ended");
			}
			EXPECT_NONE(expect_counts(&receiver, (struct counts){
				10 - free + (drops ? 7 : 7 - over), 0, 10 - free + 7 - over, drops ? 0 : over,
				drops ? over : 0, 10 - free + 7 - over }));
			for (unsigned i = 0; i < 10 - free; i++)
				EXPECT_OK(suite_take(&receiver, &lane, &value));
			for (unsigned i = 0; i < 7 - over; i++) {
				EXPECT_OK(suite_take(&receiver, &lane, &value));
				EXPECT_EQUAL(value, 100 + i, "the value");
			}
			EXPECT_STATUS(suite_take(&receiver, &lane, &value), EVC_EMPTY);
			evc_mailbox_release(receiver.mailbox);
		}
	}
	return NULL;
}
static const char *refused_options(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 1, .overflow = (enum evc_overflow)(EVC_OVERFLOW_BLOCK + 1) };
	struct evc_mailbox *mailbox;

	EXPECT_STATUS(evc_mailbox_create(&options, &mailbox), EVC_INVALID_ARGUMENT);
	options = (struct evc_mailbox_options){ .size = sizeof(struct evc_mailbox_options), .capacity = UINT64_MAX };
	EXPECT_STATUS(evc_mailbox_create(&options, &mailbox), EVC_INVALID_ARGUMENT);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "a bounded mailbox holds its capacity, and refuses or drops what comes then", refuses_and_drops_newest },
	{ "a mailbox that drops the oldest keeps the newest and the most urgent", drops_oldest },
	{ "D1 D2 D3 a bounded mailbox under each overflow policy: each take is the model's", as_the_model },
	{ "of a chain a bounded mailbox accepts the first envelopes that fit", part_of_a_chain },
	{ "a mailbox refuses a capacity and an overflow policy that do not exist", refused_options },
};
SUITE_GROUP(suite_bound, tests);
#endif
