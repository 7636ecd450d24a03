/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A producer that is preempted in the middle of a post. A signal handler stops it wherever it is, for as long
 * as the test needs. Meanwhile others post, and their events can be taken at once.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/mailbox_private.h"
#include "suite.h"

#include <signal.h>
#include <unistd.h>

static struct {
	struct suite_receiver receiver;
	struct evc_router *router;
	_Atomic bool stop;
	/*
	 * The handler writes to the first when it holds the producer, and reads from the second until it may
	 * go on.
	 */
	int is_held[2], may_go[2];
} held;

/*
 * The producer is not held inside the system's allocator, which may have a lock that all threads share (as that
 * of AddressSanitizer), but as soon as it has left it.
 */
static _Thread_local volatile sig_atomic_t is_allocating, is_due;

static void stop_here(void)
{
	char byte = 0;

	if (write(held.is_held[1], &byte, 1) != 1 || read(held.may_go[0], &byte, 1) != 1)
		_exit(1);
}

static void hold(int number)
{
	(void)number;
	if (is_allocating)
		is_due = 1;
	else
		stop_here();
}

static void leave_allocator(void)
{
	is_allocating = 0;
	if (is_due) {
		is_due = 0;
		stop_here();
	}
}

static void *allocate(void *context, size_t size, size_t alignment)
{
	void *memory;

	is_allocating = 1;
	memory = evc_allocator_default()->allocate(context, size, alignment);
	leave_allocator();
	return memory;
}

static void deallocate(void *context, void *memory, size_t size, size_t alignment)
{
	is_allocating = 1;
	evc_allocator_default()->deallocate(context, memory, size, alignment);
	leave_allocator();
}

static const struct evc_allocator yielding = { .allocate = allocate, .deallocate = deallocate };

static void *flood(void *context)
{
	uint64_t value = 0;
	sigset_t mine;

	(void)context;
	/* The program that runs the tests may have blocked the signal. */
	sigemptyset(&mine);
	sigaddset(&mine, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
	while (!atomic_load_explicit(&held.stop, memory_order_relaxed))
		if (evc_dispatch_bytes(held.router, 1, EVC_LANE_QUEUE_LOWEST, &value, 8, 8, NULL) !=
		    EVC_OK)
			return &held;
	return NULL;
}

/* While the producer is held, everything that others post is next, wherever it was stopped. */
static const char *others_go_on(uint64_t round)
{
	for (unsigned at = 0; at < EVC_LANE_COUNT - 1; at++) {
		uint64_t value = round * 16 + at + 1, found;
		unsigned lane;

		EXPECT_OK(evc_dispatch_bytes(held.router, 1, (enum evc_lane)at, &value, 8, 8, NULL));
		EXPECT_OK(suite_take(&held.receiver, &lane, &found));
		EXPECT_EQUAL(found, value, "the event that was posted beside a held producer");
		EXPECT_EQUAL(lane, at, "its lane");
	}
	return NULL;
}

static const char *hold_and_go_on(pthread_t producer, uint64_t round)
{
	const char *message;
	uint64_t value;
	unsigned lane;
	char byte = 0;

	pthread_kill(producer, SIGUSR2);
	EXPECT(read(held.is_held[0], &byte, 1) == 1, "the producer is not held");
	message = others_go_on(round);
	/* The rest are the producer's own events. They are taken while it is held, so that this ends. */
	while (message == NULL && suite_take(&held.receiver, &lane, &value) == EVC_OK)
		if (value != 0)
			message = suite_fail("found %llu among the producer's own events",
					     (unsigned long long)value);
	EXPECT(write(held.may_go[1], &byte, 1) == 1, "the producer stays held");
	return message;
}

static const char *beside_a_held_producer(void)
{
	struct sigaction action = { .sa_handler = hold, .sa_flags = SA_RESTART }, before;
	const char *message = NULL;
	pthread_t producer;
	void *failure;

	EXPECT(pipe(held.is_held) == 0 && pipe(held.may_go) == 0, "no pipes");
	EXPECT_NONE(suite_receiver_open(&held.receiver, NULL));
	EXPECT_OK(evc_router_create(&held.router));
	EXPECT_OK(evc_router_subscribe(held.router, 1, held.receiver.subscription, 0, false));
	atomic_store(&held.stop, false);
	EXPECT_OK(evc_allocator_install(&yielding));
	sigaction(SIGUSR2, &action, &before);
	pthread_create(&producer, NULL, flood, NULL);
	for (uint64_t round = 0; message == NULL && round < SUITE_SCALE(3000u); round++)
		message = hold_and_go_on(producer, round);
	atomic_store(&held.stop, true);
	pthread_join(producer, &failure);
	sigaction(SIGUSR2, &before, NULL);
	EXPECT_OK(evc_allocator_install(NULL));
	EXPECT_NONE(message);
	EXPECT(failure == NULL, "a dispatch of the held producer failed");
	for (unsigned i = 0; i < 2; i++) {
		close(held.is_held[i]);
		close(held.may_go[i]);
	}
	EXPECT_OK(evc_router_unsubscribe(held.router, 1, held.receiver.subscription));
	evc_router_destroy(held.router);
	EXPECT(suite_settle(), "the callback thread got stuck");
	evc_mailbox_release(held.receiver.mailbox);
	return NULL;
}

/*
 * A producer that has posted and is held up before it raises the alarm, while the consumer relies on the
 * alarm and has nothing else. The steps are taken by hand. Its event may be taken, and no thread waits for
 * the rest of its post.
 */
static const char *before_its_alarm(void)
{
	for (unsigned lane = 0; lane < EVC_LANE_QUEUE_NORMAL; lane++) {
		struct suite_receiver receiver;
		struct evc_envelope *envelope;
		unsigned found;
		uint64_t value;

		EXPECT_NONE(suite_receiver_open(&receiver, NULL));
		EXPECT_NONE(suite_prime(&receiver));
		EXPECT_EQUAL(receiver.mailbox->relied, EVC_LANE_QUEUE_NORMAL, "lanes that need no look");
		EXPECT_OK(evc_envelope_create(receiver.subscription, (enum evc_lane)lane, 8, 8,
					      &envelope));
		evc_mailbox_put(receiver.mailbox, lane, envelope, envelope, 1);
		EXPECT_OK(suite_take(&receiver, &found, &value));
		EXPECT_EQUAL(found, lane, "the lane");
		EXPECT_STATUS(suite_take(&receiver, &found, &value), EVC_EMPTY);
		/* It goes on. */
		evc_mailbox_tell(receiver.mailbox, lane);
		EXPECT_STATUS(suite_take(&receiver, &found, &value), EVC_EMPTY);
		evc_mailbox_release(receiver.mailbox);
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D5 D10 no event waits for a producer that is held before it raises the alarm", before_its_alarm },
	{ "D1 D5 a producer that is held anywhere in a post delays its own event alone",
	  beside_a_held_producer },
};
SUITE_GROUP(suite_held, tests);
#endif
