/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * No wake-up is lost. Two threads pass a number back and forth, each asleep while the other has it; a single
 * lost wake-up stops both.
 *
 *     A: number = 2n + 1, wake B       B: sees 2n + 1, number = 2n + 2, wake A
 *        sleep until it is 2n + 2         sleep until it is 2n + 3
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#define ROUNDS SUITE_SCALE(10000u)

struct rally {
	struct evc_parker *parkers[2];
	_Atomic uint64_t number;
	_Atomic bool lost;
};

struct player {
	struct rally *rally;
	unsigned side;
};

/* Sleeps until the number is `wanted`. */
static bool sleep_until(struct rally *rally, unsigned side, uint64_t wanted)
{
	for (;;) {
		uint32_t ticket = evc_parker_prepare(rally->parkers[side]);

		if (atomic_load_explicit(&rally->number, memory_order_acquire) == wanted)
			return true;
		if (evc_parker_wait(rally->parkers[side], ticket, SUITE_LIMIT_NS) == EVC_OK)
			continue;
		if (atomic_load_explicit(&rally->number, memory_order_acquire) == wanted)
			atomic_store(&rally->lost, true);
		return false;
	}
}

static void *play(void *context)
{
	struct player *player = context;
	struct rally *rally = player->rally;

	for (uint64_t i = player->side; i < 2 * ROUNDS; i += 2) {
		if (!sleep_until(rally, player->side, i))
			return NULL;
		atomic_store_explicit(&rally->number, i + 1, memory_order_release);
		(void)evc_parker_wake(rally->parkers[1 - player->side]);
	}
	return NULL;
}

static const char *rally_over(const struct evc_parker_ops *ops)
{
	struct rally rally = { .number = 0 };
	struct player players[2] = { { &rally, 0 }, { &rally, 1 } };
	pthread_t threads[2];

	/* Not every system has a futex. */
	if (ops == NULL)
		return NULL;
	for (unsigned i = 0; i < 2; i++)
		EXPECT_OK(evc_parker_create(ops, &rally.parkers[i]));
	for (unsigned i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, play, &players[i]);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	EXPECT(!rally.lost, "a wake-up was lost at number %llu", (unsigned long long)rally.number);
	EXPECT_EQUAL(rally.number, 2 * ROUNDS, "the last number");
	for (unsigned i = 0; i < 2; i++)
		evc_parker_destroy(rally.parkers[i]);
	return NULL;
}

static const char *futex(void)
{
	return rally_over(evc_parker_futex());
}

static const char *posix(void)
{
	return rally_over(evc_parker_posix());
}

/* A mailbox whose consumer sleeps before nearly every post: the producer waits for each delivery. */
static const char *mailbox_over(const struct evc_parker_ops *ops)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .parker = ops };
	struct suite_receiver receiver;
	struct evc_thread *thread;

	if (ops == NULL)
		return NULL;
	EXPECT_NONE(suite_receiver_open(&receiver, &options));
	EXPECT_OK(evc_thread_start(NULL, receiver.mailbox, &thread));
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t start = evc_clock_now();

		EXPECT_OK(suite_post(&receiver, i % EVC_LANE_COUNT, i));
		EXPECT(suite_await(&receiver.delivered, i + 1), "post %u was not heard", i);
		/* Around the time for which the consumer spins before it sleeps. */
		while (evc_clock_now() - start < 3000 + i % 64 * 100)
			;
	}
	evc_thread_cancel(thread);
	EXPECT_OK(evc_thread_join(thread));
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const char *mailbox_futex(void)
{
	return mailbox_over(evc_parker_futex());
}

static const char *mailbox_posix(void)
{
	return mailbox_over(evc_parker_posix());
}

static const char *real_time_over(void)
{
	const struct evc_parker_ops *all[] = { evc_parker_futex(), evc_parker_posix() };

	for (unsigned i = 0; i < 2; i++) {
		struct evc_parker *parker;
		uint64_t start = evc_clock_now();

		if (all[i] == NULL)
			continue;
		EXPECT_OK(evc_parker_create(all[i], &parker));
		EXPECT_STATUS(evc_parker_wait(parker, evc_parker_prepare(parker), 2000000),
			      EVC_TIMED_OUT);
		EXPECT(evc_clock_now() - start >= 2000000, "timed out early");
		evc_parker_destroy(parker);
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "no wake-up is lost over futex", futex },
	{ "no wake-up is lost over mutex and condition", posix },
	{ "no post is slept through over futex", mailbox_futex },
	{ "no post is slept through over mutex and condition", mailbox_posix },
	{ "a wait ends when its time is over, and not before", real_time_over },
};
SUITE_GROUP(suite_parker_race, tests);
#endif
