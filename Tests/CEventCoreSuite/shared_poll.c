/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Workers that a loop polls in place of a thread. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "shared.h"

/* Which worker got what, in order. */
static struct heard {
	const void *worker;
	uint64_t value;
} heard[64];
static unsigned heard_count, controls, idles;

static void hear(void *worker_context, uint64_t value, unsigned lane)
{
	(void)lane;
	heard[heard_count++] = (struct heard){ worker_context, value };
}

static void control(void *context)
{
	(void)context;
	controls++;
}

static void idle(void *context)
{
	(void)context;
	idles++;
}

static const char *poll(struct evc_worker *worker, const void *context, uint64_t value)
{
	unsigned before = heard_count;

	EXPECT_OK(evc_worker_poll(worker));
	EXPECT_EQUAL(heard_count, before + 1, "D4: deliveries of one poll");
	EXPECT(heard[before].worker == context && heard[before].value == value,
	       "D1: expected %llu, found %llu", (unsigned long long)value,
	       (unsigned long long)heard[before].value);
	return NULL;
}

static const char *open(struct shared_receiver *receiver, struct evc_worker *workers[2], int names[2])
{
	heard_count = controls = idles = 0;
	EXPECT_NONE(shared_open(receiver));
	receiver->hear = hear;
	for (unsigned i = 0; i < 2; i++) {
		struct evc_mailbox_options options = {
			.size = sizeof(options),
			.context = &names[i], .control = control, .idle = idle
		};

		EXPECT_OK(evc_worker_create(receiver->mailbox, &options, &workers[i]));
	}
	return NULL;
}

static const char *one_by_one(void)
{
	struct shared_receiver receiver;
	struct evc_worker *workers[2];
	int names[2];

	EXPECT_STATUS(evc_worker_poll(NULL), EVC_INVALID_ARGUMENT);
	EXPECT_NONE(open(&receiver, workers, names));
	EXPECT_STATUS(evc_worker_poll(workers[0]), EVC_EMPTY);
	EXPECT_EQUAL(idles, 1, "calls of idle");
	EXPECT_OK(shared_post_chain(&receiver, EVC_LANE_QUEUE_NORMAL, 1, 3));
	EXPECT_NONE(poll(workers[1], &names[1], 1));
	/* D1: anew for each event. */
	EXPECT_OK(shared_post(&receiver, EVC_LANE_QUEUE_HIGH, 9));
	EXPECT_NONE(poll(workers[0], &names[0], 9));
	EXPECT_NONE(poll(workers[0], &names[0], 2));
	EXPECT_NONE(poll(workers[1], &names[1], 3));
	EXPECT_STATUS(evc_worker_poll(workers[1]), EVC_EMPTY);
	evc_mailbox_interrupt(evc_worker_mailbox(workers[0]));
	EXPECT_STATUS(evc_worker_poll(workers[0]), EVC_EMPTY);
	EXPECT_EQUAL(controls, 1, "calls of control");
	/* One retires; the other handles what waits before it ends. */
	EXPECT_OK(shared_post(&receiver, EVC_LANE_QUEUE_NORMAL, 4));
	evc_mailbox_close_when_empty(evc_worker_mailbox(workers[0]));
	EXPECT_STATUS(evc_worker_poll(workers[0]), EVC_CLOSED);
	evc_shared_mailbox_close_when_empty(receiver.mailbox);
	EXPECT_NONE(poll(workers[1], &names[1], 4));
	EXPECT_STATUS(evc_worker_poll(workers[1]), EVC_CLOSED);
	for (unsigned i = 0; i < 2; i++)
		evc_worker_destroy(workers[i]);
	evc_shared_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.delivered, 5, "deliveries");
	EXPECT_EQUAL(receiver.drops, 0, "drops");
	return NULL;
}

static const char *held(void)
{
	struct shared_receiver receiver;
	struct evc_worker *workers[2];
	int names[2];

	EXPECT_NONE(open(&receiver, workers, names));
	evc_worker_hold(workers[0]);
	EXPECT_OK(shared_post_chain(&receiver, EVC_LANE_QUEUE_NORMAL, 1, 2));
	EXPECT_STATUS(evc_worker_poll(workers[0]), EVC_EMPTY);
	EXPECT_STATUS(evc_worker_wait(workers[0], 100000), EVC_TIMED_OUT);
	EXPECT_STATUS(evc_worker_wait(workers[1], 100000), EVC_OK);
	evc_worker_admit(workers[0]);
	EXPECT_STATUS(evc_worker_wait(workers[0], 100000), EVC_OK);
	EXPECT_NONE(poll(workers[0], &names[0], 1));
	evc_shared_mailbox_close(receiver.mailbox);
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_STATUS(evc_worker_poll(workers[i]), EVC_CLOSED);
		evc_worker_destroy(workers[i]);
	}
	evc_shared_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.delivered, 1, "deliveries");
	EXPECT_EQUAL(receiver.drops, 1, "D10: drops");
	return NULL;
}

static enum evc_status left;

static void leave(void *worker_context, uint64_t value, unsigned lane)
{
	(void)worker_context, (void)value, (void)lane;
	left = evc_unregister_thread();
}

/* What runs here keeps what the thread has: a worker's handlers are handlers (reclaim.h). */
static const char *leaves_inside(void)
{
	struct shared_receiver receiver;
	struct shared_workers workers;
	struct evc_worker *polled[2];
	int names[2];

	EXPECT_NONE(open(&receiver, polled, names));
	receiver.hear = leave;
	left = EVC_OK;
	EXPECT_OK(shared_post(&receiver, EVC_LANE_QUEUE_NORMAL, 1));
	EXPECT_OK(evc_worker_poll(polled[0]));
	EXPECT_STATUS(left, EVC_NOT_PERMITTED);
	left = EVC_OK;
	EXPECT_OK(shared_post(&receiver, EVC_LANE_QUEUE_NORMAL, 2));
	EXPECT_NONE(shared_start(&workers, &receiver, 1, NULL, NULL));
	EXPECT(suite_await(&receiver.delivered, 2), "nothing was handled");
	evc_shared_mailbox_close(receiver.mailbox);
	EXPECT_NONE(shared_join(&workers));
	EXPECT_STATUS(left, EVC_NOT_PERMITTED);
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_STATUS(evc_worker_poll(polled[i]), EVC_CLOSED);
		evc_worker_destroy(polled[i]);
	}
	evc_shared_mailbox_release(receiver.mailbox);
	return NULL;
}

/* What `idle` posts, to a mailbox with one place. */
static struct shared_receiver *full;
static enum evc_status first_post, second_post;
static uint64_t waited;

static void post_two(void *context)
{
	uint64_t began;

	(void)context;
	first_post = shared_post(full, EVC_LANE_QUEUE_NORMAL, 1);
	began = evc_clock_now();
	second_post = shared_post(full, EVC_LANE_QUEUE_NORMAL, 2);
	waited = evc_clock_now() - began;
}

/* Nobody else would free a place: as in a handler, and as by evc_worker_run. */
static const char *idle_posts(void)
{
	/* A wait that is not refused takes so long, and fails the test. */
	const uint64_t block_ns = UINT64_C(3000000000);
	struct evc_mailbox_options options = { .size = sizeof(options), .idle = post_two };
	struct shared_receiver receiver;
	struct evc_worker *worker;

	EXPECT_NONE(shared_open_bounded(&receiver, 1, EVC_OVERFLOW_BLOCK, block_ns));
	full = &receiver;
	EXPECT_OK(evc_worker_create(receiver.mailbox, &options, &worker));
	EXPECT_STATUS(evc_worker_poll(worker), EVC_EMPTY);
	EXPECT_STATUS(first_post, EVC_OK);
	EXPECT_STATUS(second_post, EVC_FULL);
	EXPECT(waited < block_ns, "`idle` of a polled worker waited for a place in its own mailbox");
	EXPECT_OK(evc_worker_poll(worker));
	evc_shared_mailbox_close(receiver.mailbox);
	EXPECT_STATUS(evc_worker_poll(worker), EVC_CLOSED);
	evc_worker_destroy(worker);
	evc_shared_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.delivered, 1, "deliveries");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "a polled worker's idle is refused a place in its own full mailbox, and does not wait for it", idle_posts },
	{ "D1, D4: a poll delivers the one event that is next, or none", one_by_one },
	{ "D7 a handler that a worker runs cannot unregister its thread", leaves_inside },
	{ "D10: a polled worker that is held leaves shared events alone until it is admitted", held },
};
SUITE_GROUP(suite_shared_poll, tests);
#endif
