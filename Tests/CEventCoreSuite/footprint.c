/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The memory that stays: of a burst of which little waits, of threads that have ended, of an idle consumer.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include "mailbox/mailbox_private.h"
#include "memory/subscription.h"

#include <string.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

static size_t slab_bytes(void)
{
	struct evc_pool_statistics statistics;

	evc_pool_read_statistics(&statistics);
	return statistics.slab_bytes;
}

/*
 * Trims until the slabs have this size: a trim leaves alone what was used before it, and one may already be
 * running.
 */
static bool trim_down_to(size_t bytes)
{
	for (unsigned i = 0; i < 100 && slab_bytes() > bytes; i++) {
		evc_pool_trim();
		if (!suite_quiesce())
			return false;
	}
	return slab_bytes() <= bytes;
}

#ifndef SUITE_ADDRESS_SANITIZER

/*
 * A burst to two lanes. One event in `apart` waits in the end: they are more than a segment apart, so that each would
 * keep a segment.
 */
struct burst {
	struct suite_receiver receiver;
	unsigned events, apart;
	size_t size;
};

static bool post_sized(struct suite_receiver *receiver, enum evc_lane lane, uint64_t value, size_t size)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope;

	if (evc_envelope_create(receiver->subscription, lane, size, _Alignof(uint64_t), &envelope) != EVC_OK)
		return false;
	memcpy(evc_envelope_payload(envelope), &value, sizeof(value));
	evc_chain_append(&chain, envelope);
	return receiver->subscription->sink->accept(receiver->subscription->sink, &chain) == EVC_OK;
}

static void *post_burst(void *context)
{
	struct burst *burst = context;

	for (unsigned i = 0; i < burst->events; i++)
		if (!post_sized(&burst->receiver, i % burst->apart == 0 ? EVC_LANE_QUEUE_LOWEST : EVC_LANE_QUEUE_NORMAL, i,
				burst->size))
			return burst;
	return NULL;
}

/* `slots`: what one event takes of the slab pools, in bytes. */
static const char *few_wait_of(unsigned events, unsigned apart, size_t size, size_t slots)
{
	const unsigned left = (events + apart - 1) / apart;
	struct burst burst = { .events = events, .apart = apart, .size = size };
	struct evc_mailbox *mailbox;
	pthread_t thread;
	void *failure;
	size_t before, limit;
	uint64_t value;
	unsigned lane;

	EXPECT(trim_down_to(slab_bytes()), "the callback thread got stuck");
	(void)trim_down_to(EVC_POOL_FLOOR_BYTES);
	before = slab_bytes();
	EXPECT_NONE(suite_receiver_open(&burst.receiver, NULL));
	mailbox = burst.receiver.mailbox;
	pthread_create(&thread, NULL, post_burst, &burst);
	pthread_join(thread, &failure);
	EXPECT(failure == NULL, "a post failed");
	for (unsigned i = 0; i < events - left; i++)
		EXPECT_OK(suite_take(&burst.receiver, &lane, &value));
	EXPECT_STATUS(evc_mailbox_wait(mailbox, 0), EVC_OK);
	/* Slots in the consumer's cache are returned when it takes more, or is idle. */
	evc_return_cache_flush(mailbox->by_hand);
	limit = before + 2 * left * slots + ((size_t)1 << 20);
	EXPECT(trim_down_to(limit), "%u events of %zu bytes wait, and %zu bytes stay beside the %zu before", left, size,
	       slab_bytes() - before, before);
	for (unsigned i = 0; i < left; i++) {
		EXPECT_OK(suite_take(&burst.receiver, &lane, &value));
		EXPECT_EQUAL(value, i * apart, "an event that waited");
	}
	evc_mailbox_release(mailbox);
	return NULL;
}

static const char *few_wait(void)
{
	EXPECT_NONE(few_wait_of(400000, 390, 8, 64));
	EXPECT_NONE(few_wait_of(400000, 390, 100, 64 + 128));
	return few_wait_of(20000, 50, 4000, 64 + 4096);
}

/* One event in `APART` is for a receiver that is slow; the others lie beside it. It keeps a segment, and no more. */
#define APART 390u

static struct suite_receiver fast, slow;

static void *post_to_both(void *events)
{
	for (unsigned i = 0; i < *(unsigned *)events; i++)
		if (suite_post(i % APART == 0 ? &slow : &fast, EVC_LANE_QUEUE_NORMAL, i) != EVC_OK)
			return events;
	return NULL;
}

static const char *slow_receiver(void)
{
	unsigned events = 400000, left = (events + APART - 1) / APART, lane;
	pthread_t thread;
	void *failure;
	size_t before, limit;
	uint64_t value;

	(void)trim_down_to(EVC_POOL_FLOOR_BYTES);
	before = slab_bytes();
	EXPECT_NONE(suite_receiver_open(&fast, NULL));
	EXPECT_NONE(suite_receiver_open(&slow, NULL));
	pthread_create(&thread, NULL, post_to_both, &events);
	pthread_join(thread, &failure);
	EXPECT(failure == NULL, "a post failed");
	for (unsigned i = 0; i < events - left; i++)
		EXPECT_OK(suite_take(&fast, &lane, &value));
	evc_return_cache_flush(fast.mailbox->by_hand);
	limit = before + (left << EVC_SEGMENT_SHIFT) + ((size_t)1 << 20);
	EXPECT(trim_down_to(limit), "%u events wait, and %zu bytes stay", left, slab_bytes() - before);
	for (unsigned i = 0; i < left; i++) {
		EXPECT_OK(suite_take(&slow, &lane, &value));
		EXPECT_EQUAL(value, i * APART, "an event that waited");
	}
	evc_return_cache_flush(slow.mailbox->by_hand);
	EXPECT(trim_down_to(before), "%zu bytes stay for nothing", slab_bytes() - before);
	evc_mailbox_release(fast.mailbox);
	evc_mailbox_release(slow.mailbox);
	return NULL;
}

/*
 * A thread that has used its slabs up to the last slot, and whose slabs were given back, goes on, and ends.
 */
static void *use_up(void *context)
{
	struct suite_receiver *receiver = context;
	static struct evc_envelope *envelopes[4 * 63 * 64];
	const unsigned count = sizeof(envelopes) / sizeof(*envelopes);

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < count; i++)
			if (evc_envelope_create(receiver->subscription, EVC_LANE_QUEUE_LOW, 8, 8,
						&envelopes[i]) != EVC_OK)
				return receiver;
		for (unsigned i = 0; i < count; i++)
			evc_envelope_release(envelopes[i], true);
		/* The first trim leaves alone what was used before; and slabs wait for a grace period. */
		for (unsigned i = 0; i < 3; i++) {
			evc_pool_trim();
			if (!suite_quiesce())
				return receiver;
		}
	}
	return NULL;
}

static const char *used_up(void)
{
	struct suite_receiver receiver;
	pthread_t thread;
	void *failure;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	pthread_create(&thread, NULL, use_up, &receiver);
	pthread_join(thread, &failure);
	EXPECT(failure == NULL, "no memory, or the callback thread got stuck");
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

/*
 * Ended threads of which one envelope was kept while their pages were given back one by one: then everything
 * is given back.
 */
static const char *kept_by_one(void)
{
	struct burst burst = { .events = 400000, .apart = 390, .size = 8 };
	struct suite_receiver *receiver = &burst.receiver;
	uint64_t value;
	size_t before;
	unsigned lane;

	(void)trim_down_to(EVC_POOL_FLOOR_BYTES);
	before = slab_bytes();
	EXPECT_NONE(suite_receiver_open(receiver, NULL));
	for (unsigned i = 0; i < 3; i++) {
		pthread_t thread;
		void *failure;

		pthread_create(&thread, NULL, post_burst, &burst);
		pthread_join(thread, &failure);
		EXPECT(failure == NULL, "a post failed");
	}
	for (unsigned i = 0; i < 3 * burst.events - 1; i++)
		EXPECT_OK(suite_take(receiver, &lane, &value));
	evc_return_cache_flush(receiver->mailbox->by_hand);
	EXPECT(trim_down_to(before + ((size_t)1 << 19)), "%zu bytes stay for one event", slab_bytes() - before);
	EXPECT_OK(suite_take(receiver, &lane, &value));
	evc_return_cache_flush(receiver->mailbox->by_hand);
	EXPECT(trim_down_to(before), "%zu bytes stay for nothing", slab_bytes() - before);
	evc_mailbox_release(receiver->mailbox);
	return NULL;
}

#define THREADS 300u

static pthread_barrier_t all_have_posted;

static void *post_once(void *context)
{
	enum evc_status status = suite_post(context, EVC_LANE_QUEUE_NORMAL, 1);

	pthread_barrier_wait(&all_have_posted);
	return status == EVC_OK ? NULL : context;
}

static const char *threads_come_and_go(void)
{
	static pthread_t threads[THREADS];
	struct suite_receiver receiver;
	size_t before, during;
	uint64_t value;
	unsigned lane;

	(void)trim_down_to(EVC_POOL_FLOOR_BYTES);
	before = slab_bytes();
	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	pthread_barrier_init(&all_have_posted, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&threads[i], NULL, post_once, &receiver) == 0, "no thread");
	for (unsigned i = 0; i < THREADS; i++) {
		void *failure;

		pthread_join(threads[i], &failure);
		EXPECT(failure == NULL, "a post failed");
	}
	pthread_barrier_destroy(&all_have_posted);
	during = slab_bytes();
	EXPECT(during >= before + THREADS / 2 * 8192, "each thread has memory of its own: %zu bytes",
	       during - before);
	for (unsigned i = 0; i < THREADS; i++)
		EXPECT_OK(suite_take(&receiver, &lane, &value));
	EXPECT_STATUS(evc_mailbox_wait(receiver.mailbox, 0), EVC_TIMED_OUT);
	EXPECT(trim_down_to(before), "%zu bytes stay of %u threads that have ended, beside %zu before",
	       slab_bytes() - before, THREADS, before);
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}
#endif

/* The sleeps of a consumer: none has a time limit. */

static _Atomic uint64_t sleeps, short_sleeps;

static void wait(void *state, const uint32_t *word, uint32_t expected, uint64_t timeout)
{
	atomic_fetch_add(&sleeps, 1);
	if (timeout != EVC_FOREVER)
		atomic_fetch_add(&short_sleeps, 1);
	evc_parker_posix()->wait(state, word, expected, timeout);
}

static const char *sleeps_for_good(void)
{
	struct evc_parker_ops ops = *evc_parker_posix();
	struct evc_mailbox_options options = { .size = sizeof(options), .parker = &ops };
	struct suite_receiver receiver;
	struct evc_thread *thread;

	ops.wait = wait;
	atomic_store(&sleeps, 0);
	atomic_store(&short_sleeps, 0);
	EXPECT_NONE(suite_receiver_open(&receiver, &options));
	EXPECT_OK(evc_thread_start(NULL, receiver.mailbox, &thread));
	for (unsigned round = 1; round <= 4; round++) {
		for (unsigned i = 0; i < 5000; i++)
			EXPECT_OK(suite_post(&receiver, i % 10, i));
		EXPECT(suite_await(&receiver.delivered, 5000 * round), "the consumer got stuck");
	}
	EXPECT(suite_await(&sleeps, 1), "the consumer does not sleep");
	EXPECT_EQUAL(atomic_load(&short_sleeps), 0, "sleeps with an end of their own");
	evc_thread_cancel(thread);
	EXPECT_OK(evc_thread_join(thread));
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

/* What a mailbox takes before its first event, with what the allocator adds where that can be asked. */

#define IDLE 100u
#define IDLE_BYTES 1024u

static size_t idle_bytes;
/* Others allocate, too. */
static pthread_t idle_maker;

static void *allocate(void *context, size_t size, size_t alignment)
{
	void *memory = evc_allocator_default()->allocate(context, size, alignment);

	if (!pthread_equal(pthread_self(), idle_maker))
		return memory;
#ifdef __GLIBC__
	size = malloc_usable_size(memory);
#endif
	idle_bytes += size;
	return memory;
}

static void deallocate(void *context, void *memory, size_t size, size_t alignment)
{
	evc_allocator_default()->deallocate(context, memory, size, alignment);
}

static const char *is_small(void)
{
	static const struct evc_allocator counting = { NULL, allocate, deallocate };
	struct evc_mailbox *mailboxes[IDLE];

	idle_bytes = 0;
	idle_maker = pthread_self();
	EXPECT_OK(evc_allocator_install(&counting));
	for (unsigned i = 0; i < IDLE; i++)
		EXPECT_OK(evc_mailbox_create(NULL, &mailboxes[i]));
	EXPECT_OK(evc_allocator_install(NULL));
	for (unsigned i = 0; i < IDLE; i++)
		evc_mailbox_release(mailboxes[i]);
	EXPECT(idle_bytes <= IDLE * IDLE_BYTES, "%zu bytes each", idle_bytes / IDLE);
	return NULL;
}

/* A sink that counts its posts. */

static unsigned posts, envelopes;

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_envelope *next = chain->first, *envelope;

	(void)sink;
	posts++;
	for (uint32_t i = 0; i < chain->count; i++) {
		envelope = next;
		next = evc_slot_next(envelope);
		envelopes++;
		evc_envelope_release(envelope, true);
	}
	return EVC_OK;
}

static void count_nothing(struct evc_sink *sink)
{
	(void)sink;
}

static const char *one_post(void)
{
	static struct evc_sink sinks[2] = { { accept, count_nothing, count_nothing, false, 0, NULL, NULL, NULL },
					    { accept, count_nothing, count_nothing, false, 0, NULL, NULL, NULL } };
	static struct evc_subscription subscriptions[64];
	struct evc_router *router;
	uint32_t receivers;
	uint64_t value = 1;

	EXPECT_OK(evc_router_create(&router));
	/* Alternately, so that they are not adjacent by themselves. */
	for (unsigned i = 0; i < 64; i++) {
		subscriptions[i].sink = &sinks[i % 2];
		EXPECT_OK(evc_router_subscribe(router, 1, &subscriptions[i], 0, false));
	}
	posts = envelopes = 0;
	EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_LOW, &value, 8, 8, &receivers));
	EXPECT_EQUAL(receivers, 64, "receivers");
	EXPECT_EQUAL(envelopes, 64, "envelopes");
	EXPECT_EQUAL(posts, 2, "posts to two sinks");
	evc_router_destroy(router);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static const struct evc_suite_test tests[] = {
#ifndef SUITE_ADDRESS_SANITIZER
	{ "a few events that wait keep no memory of the many in other lanes that were handled", few_wait },
	{ "an event for a slow receiver keeps a segment, and no more", slow_receiver },
	{ "threads that come and go leave no memory behind", threads_come_and_go },
	{ "a thread whose slabs are used up to the last slot and go back goes on", used_up },
	{ "what one event kept goes when it has gone", kept_by_one },
#endif
	{ "a consumer without anything to do sleeps until it is woken", sleeps_for_good },
	{ "an idle mailbox takes a KiB at most", is_small },
	{ "D4 several subscriptions of one sink get one post", one_post },
};
SUITE_GROUP(suite_footprint, tests);
#endif
