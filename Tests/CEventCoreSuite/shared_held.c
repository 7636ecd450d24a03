/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Workers that are held: for the others such a worker does not exist until it is admitted. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "shared.h"

static _Atomic uint64_t controls;

static void control(void *context)
{
	(void)context;
	atomic_fetch_add_explicit(&controls, 1, memory_order_release);
}

/*
 *     held worker               the other one        main
 *     asleep                    asleep               post 1: the other one is woken
 *                               ends                 post 2: nobody comes
 *     interrupted, twice: looks at its own alone
 *                                                    admit
 *     handles 2
 */
static const char *holds_a_worker(void)
{
	for (unsigned drains = 0; drains < 2; drains++) {
		struct evc_mailbox_options options = { .size = sizeof(options), .control = control };
		struct shared_receiver receiver;
		struct evc_thread *threads[2];
		struct evc_worker *workers[2];

		controls = 0;
		EXPECT_NONE(shared_open(&receiver));
		for (unsigned i = 0; i < 2; i++) {
			EXPECT_OK(evc_worker_create(receiver.mailbox, i ? NULL : &options, &workers[i]));
			if (i == 0)
				evc_worker_hold(workers[i]);
			EXPECT_OK(evc_thread_start_worker(NULL, workers[i], &threads[i]));
		}
		EXPECT(shared_all_asleep(receiver.mailbox, 1), "not one worker sleeps for all");
		EXPECT_OK(shared_post(&receiver, 3, 1));
		EXPECT(suite_await(&receiver.delivered, 1), "the one that is not held was not woken");
		evc_thread_cancel(threads[1]);
		EXPECT_OK(evc_thread_join(threads[1]));
		evc_worker_destroy(workers[1]);
		EXPECT_OK(shared_post(&receiver, 3, 1));
		/* The second time, it has looked after the first interrupt. */
		for (uint64_t i = 1; i <= 2; i++) {
			evc_mailbox_interrupt(evc_worker_mailbox(workers[0]));
			EXPECT(suite_await(&controls, i), "an interrupt was slept through");
		}
		EXPECT_EQUAL(receiver.delivered, 1, "deliveries while the worker is held");
		if (drains)
			evc_shared_mailbox_close_when_empty(receiver.mailbox);
		evc_worker_admit(workers[0]);
		EXPECT(suite_await(&receiver.delivered, 2), "nobody came once it was admitted");
		if (!drains)
			evc_shared_mailbox_close(receiver.mailbox);
		EXPECT_OK(evc_thread_join(threads[0]));
		evc_worker_destroy(workers[0]);
		evc_shared_mailbox_release(receiver.mailbox);
	}
	return NULL;
}

/* Admitted at any moment of its start, and closed while it is held. Two who would be it, too, are refused. */
static const char *admits_at_any_moment(void)
{
	for (unsigned round = 0; round < SUITE_SCALE(3000u); round++) {
		struct shared_receiver receiver;
		struct evc_thread *thread, *second;
		struct evc_worker *worker;

		EXPECT_NONE(shared_open(&receiver));
		EXPECT_OK(evc_worker_create(receiver.mailbox, NULL, &worker));
		evc_worker_hold(worker);
		EXPECT_OK(evc_thread_start_worker(NULL, worker, &thread));
		EXPECT_STATUS(evc_worker_run(worker), EVC_NOT_PERMITTED);
		EXPECT_STATUS(evc_thread_start_worker(NULL, worker, &second), EVC_NOT_PERMITTED);
		EXPECT_OK(shared_post(&receiver, round % EVC_LANE_COUNT, 1));
		if (round % 2) {
			for (uint64_t start = evc_clock_now(); evc_clock_now() - start < round % 64 * 1000;)
				;
			evc_worker_admit(worker);
			EXPECT(suite_await(&receiver.delivered, 1), "round %u: slept through", round);
		}
		evc_thread_cancel(thread);
		EXPECT_OK(evc_thread_join(thread));
		evc_worker_destroy(worker);
		EXPECT_EQUAL(receiver.delivered, round % 2, "deliveries of a round");
		evc_shared_mailbox_release(receiver.mailbox);
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "shared: a worker that is held takes from its own mailbox alone until it is admitted",
	  holds_a_worker },
	{ "shared: a worker may be admitted at any moment, and end without", admits_at_any_moment },
};
SUITE_GROUP(suite_shared_held, tests);
#endif
