/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Sleeping and waking: no post is missed by sleeping workers, a post wakes one worker, and none while another
 * is on its way.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "shared.h"

#include "shared/shared_mailbox_private.h"

#include <string.h>

#define ROUNDS SUITE_SCALE(20000u)

/* The workers sleep before nearly every post: the producer waits for each delivery. */
static const char *rally(const struct evc_parker_ops *ops, unsigned count, unsigned burst)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .parker = ops };
	struct shared_receiver receiver;
	struct shared_workers workers;
	uint64_t posted = 0;

	/* Not every system has a futex. */
	if (ops == NULL)
		return NULL;
	EXPECT_NONE(shared_open(&receiver));
	EXPECT_NONE(shared_start(&workers, &receiver, count, &options, NULL));
	for (unsigned i = 0; i < ROUNDS / burst; i++) {
		uint64_t start = evc_clock_now();

		for (unsigned j = 0; j < burst; j++)
			EXPECT_OK(shared_post(&receiver, (i + j) % EVC_LANE_COUNT, 1));
		posted += burst;
		EXPECT(suite_await(&receiver.delivered, posted), "round %u: a post was slept through",
		       i);
		/* Around the moment at which they fall asleep, where the race is. */
		while (evc_clock_now() - start < i % 64 * 200)
			;
	}
	evc_shared_mailbox_close(receiver.mailbox);
	EXPECT_NONE(shared_join(&workers));
	evc_shared_mailbox_release(receiver.mailbox);
	return NULL;
}

static const char *futex(void)
{
	for (unsigned workers = 1; workers <= 3; workers++) {
		EXPECT_NONE(rally(evc_parker_futex(), workers, 1));
		EXPECT_NONE(rally(evc_parker_futex(), workers, 3));
	}
	return NULL;
}

static const char *posix(void)
{
	EXPECT_NONE(rally(evc_parker_posix(), 2, 1));
	return rally(evc_parker_posix(), 3, 4);
}

/* A chain of n events to n sleeping workers, each of which waits in its handler until all have one. */
static struct {
	_Atomic uint64_t come;
	struct suite_gate all;
} meeting;

static void meet(void *worker_context, uint64_t value, unsigned lane)
{
	(void)worker_context, (void)value, (void)lane;
	atomic_fetch_add(&meeting.come, 1);
	(void)suite_gate_pass(&meeting.all);
}

static const char *each_wakes_the_next(void)
{
	for (unsigned count = 1; count <= 6; count++) {
		struct suite_gate shut = SUITE_GATE;
		struct shared_receiver receiver;
		struct shared_workers workers;

		meeting.come = 0;
		meeting.all = shut;
		EXPECT_NONE(shared_open(&receiver));
		receiver.hear = meet;
		EXPECT_NONE(shared_start(&workers, &receiver, count, NULL, NULL));
		EXPECT(shared_all_asleep(receiver.mailbox, count), "the workers do not sleep");
		EXPECT_OK(shared_post_chain(&receiver, count % EVC_LANE_COUNT, 0, count));
		EXPECT(suite_await(&meeting.come, count), "%u of %u workers came",
		       (unsigned)meeting.come, count);
		suite_gate_open(&meeting.all);
		evc_shared_mailbox_close(receiver.mailbox);
		EXPECT_NONE(shared_join(&workers));
		evc_shared_mailbox_release(receiver.mailbox);
	}
	return NULL;
}

/*
 * Two events for two workers; the first handler does not return before the second has begun: whichever worker
 * a post relied on must wake the other one.
 */
static void wait_for_both(void *worker_context, uint64_t value, unsigned lane)
{
	(void)worker_context, (void)lane;
	atomic_fetch_add_explicit(&meeting.come, 1, memory_order_release);
	(void)suite_await(&meeting.come, 2 * value);
}

static const char *fetches_the_other(void)
{
	static const enum evc_wait_strategy strategies[] = { EVC_WAIT_PARK, EVC_WAIT_SPIN_THEN_PARK };

	for (unsigned s = 0; s < 2; s++) {
		struct evc_mailbox_options options = { .size = sizeof(options), .strategy = strategies[s], .spin_ns = 3000 };
		struct shared_receiver receiver;
		struct shared_workers workers;

		meeting.come = 0;
		EXPECT_NONE(shared_open(&receiver));
		receiver.hear = wait_for_both;
		EXPECT_NONE(shared_start(&workers, &receiver, 2, &options, NULL));
		for (uint64_t i = 1; i <= ROUNDS / 2; i++) {
			uint64_t start = evc_clock_now();

			EXPECT_OK(shared_post(&receiver, (unsigned)(i % EVC_LANE_COUNT), i));
			EXPECT_OK(shared_post(&receiver, (unsigned)(i % EVC_LANE_COUNT), i));
			EXPECT(suite_await(&receiver.delivered, 2 * i), "round %u: one came alone",
			       (unsigned)i);
			/* From spinning to asleep. */
			while (evc_clock_now() - start < i % 64 * 200)
				;
		}
		evc_shared_mailbox_close(receiver.mailbox);
		EXPECT_NONE(shared_join(&workers));
		evc_shared_mailbox_release(receiver.mailbox);
	}
	return NULL;
}

/* Sleeps and wakes that the test counts and holds up. */
static struct {
	_Atomic uint64_t sleeping;
	_Atomic uint64_t wakes;
} faked;

static void fake_wait(void *state, const uint32_t *word, uint32_t expected, uint64_t timeout)
{
	atomic_fetch_add(&faked.sleeping, 1);
	evc_parker_futex()->wait(state, word, expected, timeout);
	atomic_fetch_sub(&faked.sleeping, 1);
}

static void fake_wake(void *state, const uint32_t *word)
{
	atomic_fetch_add(&faked.wakes, 1);
	evc_parker_futex()->wake(state, word);
}

static const struct evc_parker_ops fake_ops = { NULL, NULL, fake_wait, fake_wake };

static struct suite_gate held, hold;

static void stand(void *worker_context, uint64_t value, unsigned lane)
{
	(void)worker_context, (void)lane;
	if (value != 0)
		return;
	suite_gate_open(&held);
	(void)suite_gate_pass(&hold);
}

/*
 *     worker A, worker B     main
 *     asleep                 post 0: one system call
 *     one stands in it
 *     the other sleeps       post 1: one more
 *     handles it, sleeps
 *                            let go: none
 */
static const char *one_call_each(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .parker = &fake_ops };
	struct suite_gate shut = SUITE_GATE;
	struct shared_receiver receiver;
	struct shared_workers workers;

	if (evc_parker_futex() == NULL)
		return NULL;
	memset(&faked, 0, sizeof(faked));
	held = shut;
	hold = shut;
	EXPECT_NONE(shared_open(&receiver));
	receiver.hear = stand;
	EXPECT_NONE(shared_start(&workers, &receiver, 2, &options, NULL));
	EXPECT(shared_all_asleep(receiver.mailbox, 2) && suite_await(&faked.sleeping, 2), "no sleep");
	EXPECT_OK(shared_post(&receiver, 3, 0));
	EXPECT(suite_gate_pass(&held), "nobody came");
	EXPECT_EQUAL(faked.wakes, 1, "system calls for the first post");
	EXPECT(shared_all_asleep(receiver.mailbox, 1), "the other one does not sleep");
	EXPECT_OK(shared_post(&receiver, 7, 1));
	EXPECT(suite_await(&receiver.delivered, 1), "the second was not handled");
	EXPECT_EQUAL(faked.wakes, 2, "system calls for two posts");
	EXPECT(shared_all_asleep(receiver.mailbox, 1), "the other one does not sleep again");
	suite_gate_open(&hold);
	EXPECT(shared_all_asleep(receiver.mailbox, 2), "not both sleep again");
	EXPECT_EQUAL(faked.wakes, 2, "system calls in all");
	evc_shared_mailbox_close(receiver.mailbox);
	EXPECT_NONE(shared_join(&workers));
	evc_shared_mailbox_release(receiver.mailbox);
	return NULL;
}

static _Atomic uint64_t controls;

static void control(void *context)
{
	(void)context;
	atomic_fetch_add_explicit(&controls, 1, memory_order_release);
}

/* A sleeping worker wakes for its own mailbox, for an interrupt and for its own end, and for these alone. */
static const char *interrupt(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .control = control };
	struct shared_receiver receiver;
	struct shared_workers workers;

	controls = 0;
	EXPECT_NONE(shared_open(&receiver));
	EXPECT_NONE(shared_start(&workers, &receiver, 2, &options, NULL));
	for (uint64_t i = 1; i <= 100; i++) {
		EXPECT(shared_all_asleep(receiver.mailbox, 2), "the workers do not sleep");
		evc_mailbox_interrupt(evc_worker_mailbox(workers.workers[i % 2]));
		EXPECT(suite_await(&controls, i), "interrupt %u was slept through", (unsigned)i);
	}
	EXPECT(shared_all_asleep(receiver.mailbox, 2), "the workers do not sleep");
	evc_thread_cancel(workers.threads[0]);
	EXPECT_OK(evc_thread_join(workers.threads[0]));
	evc_worker_destroy(workers.workers[0]);
	EXPECT_OK(shared_post(&receiver, 0, 1));
	EXPECT(suite_await(&receiver.delivered, 1), "the one that is left was not woken");
	evc_thread_cancel(workers.threads[1]);
	EXPECT_OK(evc_thread_join(workers.threads[1]));
	evc_worker_destroy(workers.workers[1]);
	evc_shared_mailbox_release(receiver.mailbox);
	return NULL;
}

/* A post that wakes a worker that is closed at the same moment: another worker takes the event. */
static const char *retire_race(void)
{
	for (unsigned round = 0; round < SUITE_SCALE(3000u); round++) {
		struct shared_receiver receiver;
		struct shared_workers workers;

		EXPECT_NONE(shared_open(&receiver));
		EXPECT_NONE(shared_start(&workers, &receiver, 2, NULL, NULL));
		if (round % 2)
			EXPECT(shared_all_asleep(receiver.mailbox, 2), "the workers do not sleep");
		if (round % 3 == 0)
			evc_thread_cancel(workers.threads[0]);
		EXPECT_OK(shared_post(&receiver, round % EVC_LANE_COUNT, 1));
		if (round % 3)
			evc_thread_cancel(workers.threads[0]);
		EXPECT(suite_await(&receiver.delivered, 1), "round %u: lost with a worker", round);
		evc_shared_mailbox_close_when_empty(receiver.mailbox);
		EXPECT_NONE(shared_join(&workers));
		evc_shared_mailbox_release(receiver.mailbox);
	}
	return NULL;
}

static const char *times_out(void)
{
	static const enum evc_wait_strategy strategies[] = { EVC_WAIT_PARK, EVC_WAIT_SPIN_THEN_PARK,
							     EVC_WAIT_YIELD, EVC_WAIT_SPIN };

	for (unsigned i = 0; i < 4; i++) {
		struct evc_mailbox_options options = { .size = sizeof(options), .strategy = strategies[i], .spin_ns = 1000 };
		struct shared_receiver receiver;
		struct evc_worker *worker;
		uint64_t start = evc_clock_now();

		EXPECT_NONE(shared_open(&receiver));
		EXPECT_OK(evc_worker_create(receiver.mailbox, &options, &worker));
		EXPECT_STATUS(evc_worker_wait(worker, 2000000), EVC_TIMED_OUT);
		EXPECT(evc_clock_now() - start >= 2000000, "timed out early");
		EXPECT_EQUAL(receiver.mailbox->looking, 0, "workers counted as looking");
		EXPECT_EQUAL(receiver.mailbox->attention, 0, "workers counted as asleep");
		EXPECT_OK(shared_post(&receiver, 5, 1));
		EXPECT_OK(evc_worker_wait(worker, EVC_FOREVER));
		evc_worker_destroy(worker);
		evc_shared_mailbox_release(receiver.mailbox);
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "shared: no post is slept through over futex", futex },
	{ "shared: no post is slept through over mutex and condition", posix },
	{ "shared: n envelopes wake n workers, each by the one before it", each_wakes_the_next },
	{ "shared: of two envelopes the second fetches the other worker", fetches_the_other },
	{ "D5 shared: a post to sleeping workers makes one system call, to others none", one_call_each },
	{ "shared: a sleeping worker wakes for its own mailbox and its own end", interrupt },
	{ "D4 shared: a wake-up of a worker that ends goes on to the next", retire_race },
	{ "shared: a wait ends when its time is over, and not before", times_out },
};
SUITE_GROUP(suite_shared_wake, tests);
#endif
