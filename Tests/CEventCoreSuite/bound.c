/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Bounded mailboxes, one step after the other: what each overflow policy does, and that every event is accounted for. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "bounded.h"

#include <stdio.h>
#include <string.h>

#define LARGEST 100u
#define THREADS 3u
#define STEPS 2000u

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
		if (policy == EVC_OVERFLOW_REFUSE || policy == EVC_OVERFLOW_BLOCK) {
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

/*
 * Threads that post and take by chance, one at a time, so that the model knows the order. The seed says whose turn it is,
 * too. All that is here belongs to whoever has the lock.
 */
struct play {
	struct suite_receiver receiver;
	struct model model;
	enum evc_overflow policy;
	unsigned capacity, lanes, threads;
	uint64_t random, step;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned turn;
	/* Empty: as the model so far. */
	char wrong[512];
};

static const char *play_step(struct play *play)
{
	unsigned lane = EVC_LANE_COUNT - 1 - (unsigned)(suite_random(&play->random) % play->lanes);

	if (suite_random(&play->random) % 5 < 3)
		EXPECT_STATUS(suite_post(&play->receiver, lane, play->step),
			      model_post(&play->model, play->policy, play->capacity, lane, play->step));
	else
		EXPECT_NONE(take_as(&play->receiver, &play->model));
	play->model.counts.waiting = play->model.total;
	if (play->step % 10 == 0)
		EXPECT_NONE(expect_counts(&play->receiver, play->model.counts));
	return NULL;
}

struct player {
	struct play *play;
	unsigned index;
	pthread_t thread;
};

static void *play_turns(void *opaque)
{
	struct player *player = opaque;
	struct play *play = player->play;
	const char *message;

	pthread_mutex_lock(&play->lock);
	while (play->step < STEPS && play->wrong[0] == '\0') {
		if (play->turn != player->index) {
			pthread_cond_wait(&play->changed, &play->lock);
			continue;
		}
		if ((message = play_step(play)) != NULL)
			snprintf(play->wrong, sizeof(play->wrong), "%s", message);
		play->step++;
		if (suite_random(&play->random) % 8 == 0)
			play->turn = (unsigned)(suite_random(&play->random) % play->threads);
		if (play->turn != player->index)
			pthread_cond_broadcast(&play->changed);
	}
	pthread_cond_broadcast(&play->changed);
	pthread_mutex_unlock(&play->lock);
	return NULL;
}

/* D1 to D3, on all lanes, around a mailbox that is mostly full. A post that blocks has a time that passes at once. */
static const char *as_the_model(unsigned threads)
{
	uint64_t seed = suite_seed();
	struct play play = { .random = seed, .threads = threads, .lock = PTHREAD_MUTEX_INITIALIZER,
			     .changed = PTHREAD_COND_INITIALIZER };

	for (unsigned round = 0; round < 80; round++) {
		struct evc_mailbox_options options = { .size = sizeof(options), .block_ns = 1 };
		struct player players[THREADS];

		play.policy = options.overflow = (enum evc_overflow)(round % (EVC_OVERFLOW_BLOCK + 1));
		play.capacity = 1 + (unsigned)(suite_random(&play.random) % (round / 4 % 2 != 0 ? 5 : LARGEST));
		play.lanes = 1 + (unsigned)(suite_random(&play.random) % EVC_LANE_COUNT);
		play.model = (struct model){ .total = 0 };
		play.step = play.turn = 0;
		options.capacity = play.capacity;
		EXPECT_NONE(suite_receiver_open(&play.receiver, &options));
		for (unsigned i = 0; i < threads; i++) {
			players[i] = (struct player){ .play = &play, .index = i };
			pthread_create(&players[i].thread, NULL, play_turns, &players[i]);
		}
		for (unsigned i = 0; i < threads; i++)
			pthread_join(players[i].thread, NULL);
		EXPECT(play.wrong[0] == '\0', "%s (seed %llu, round %u, step %llu)", play.wrong, (unsigned long long)seed,
		       round, (unsigned long long)play.step);
		EXPECT_NONE(expect_counts(&play.receiver, play.model.counts));
		EXPECT_EQUAL(play.receiver.drops, play.model.counts.overflowed, "payloads ended");
		evc_mailbox_release(play.receiver.mailbox);
		EXPECT_EQUAL(play.receiver.drops, play.model.counts.overflowed + play.model.total, "payloads ended");
	}
	return NULL;
}

static const char *alone_as_the_model(void)
{
	return as_the_model(1);
}

static const char *together_as_the_model(void)
{
	return as_the_model(THREADS);
}

static const char *make_chain(struct suite_receiver *receiver, uint64_t first, unsigned count,
			      struct evc_chain *chain)
{
	*chain = (struct evc_chain)EVC_CHAIN_EMPTY;
	for (uint64_t value = first; value < first + count; value++)
		EXPECT_OK(suite_append(chain, receiver->subscription, EVC_LANE_QUEUE_LOW, value));
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
	{ "D1 D2 D3 a bounded mailbox under each overflow policy: each take is the model's", alone_as_the_model },
	{ "D1 D2 D3 a bounded mailbox that threads post to and take from in turn: each take is the model's", together_as_the_model },
	{ "of a chain a bounded mailbox accepts the first envelopes that fit", part_of_a_chain },
	{ "a mailbox refuses a capacity and an overflow policy that do not exist", refused_options },
};
SUITE_GROUP(suite_bound, tests);
#endif
