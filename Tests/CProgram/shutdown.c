/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A program without a hidden thread: it frees by evc_reclaim, and ends the core by evc_shutdown, which leaves nothing
 * behind. A process of its own, since the core must be in use by nobody else. Run it under valgrind too.
 */
#include <eventcore/eventcore.h>

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 20u

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("wrong, in line %d: %s\n", __LINE__, #condition);                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static unsigned delivered, finalized;
static pthread_t finalized_on;

/* How many threads the process has; 1 where nobody tells. One that was joined may still be listed for a moment. */
static unsigned threads(void)
{
#ifdef __SANITIZE_THREAD__
	/* The sanitizer has threads of its own. */
	return 1;
#else
	DIR *folder = opendir("/proc/self/task");
	unsigned count = 0;

	if (folder == NULL)
		return 1;
	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count - 2;
#endif
}

static bool becomes_one_thread(void)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		if (threads() == 1)
			return true;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < 20);
	return false;
}

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	delivered++;
	/* Refused in a handler, where it would end what is running. */
	if (context != NULL) {
		EXPECT(evc_shutdown() == EVC_NOT_PERMITTED);
		EXPECT(evc_unregister_thread() == EVC_NOT_PERMITTED);
		/* But this may be called anywhere. */
		EXPECT(evc_reclaim(EVC_FOREVER) == EVC_OK);
	}
	return false;
}

static void finalize(void *context)
{
	(void)context;
	finalized++;
	finalized_on = pthread_self();
	/* The mailbox is still there. */
	EXPECT(evc_shutdown() == EVC_NOT_PERMITTED);
}

struct world {
	struct evc_router *router;
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscription;
};

static struct world open_world(void *context, void (*end)(void *))
{
	struct evc_mailbox_options options = { .size = sizeof(options), .finalize = end };
	struct evc_subscription_options handler = {
		.size = sizeof(handler), .context = context, .deliver = deliver
	};
	struct world world;

	EXPECT(evc_router_create(&world.router) == EVC_OK);
	EXPECT(evc_mailbox_create(&options, &world.mailbox) == EVC_OK);
	EXPECT(evc_mailbox_add_subscription(world.mailbox, &handler, &world.subscription) == EVC_OK);
	EXPECT(evc_router_subscribe(world.router, 1, world.subscription, 0, false) == EVC_OK);
	return world;
}

static void send(struct world *world, uint32_t count)
{
	static const unsigned char large[5000];

	for (uint32_t i = 0; i < count; i++)
		EXPECT(evc_dispatch_bytes(world->router, 1, EVC_LANE_QUEUE_NORMAL, i % 16 == 0 ? large : (void *)&i,
					  i % 16 == 0 ? sizeof(large) : sizeof(i), 4, NULL) == EVC_OK);
}

static void close_world(struct world *world)
{
	EXPECT(evc_router_unsubscribe(world->router, 1, world->subscription) == EVC_OK);
	evc_mailbox_close(world->mailbox);
	evc_mailbox_release(world->mailbox);
	evc_router_destroy(world->router);
}

/* Without a thread: what was replaced waits for evc_reclaim, whose thread calls `finalize`. */
static void driven(void)
{
	struct world world = open_world(&world, finalize);

	delivered = finalized = 0;
	send(&world, 20000);
	EXPECT(evc_mailbox_pump(world.mailbox, 5) == EVC_OK);
	EXPECT(evc_mailbox_pump(world.mailbox, EVC_FOREVER) == EVC_EMPTY && delivered == 20000);
	close_world(&world);
	EXPECT(threads() == 1);
	EXPECT(evc_reclaim(EVC_FOREVER) == EVC_OK);
	/* This thread's route cache keeps the last routes. */
	EXPECT(finalized == 0);
	EXPECT(evc_unregister_thread() == EVC_OK);
	EXPECT(evc_reclaim(EVC_FOREVER) == EVC_OK);
	EXPECT(finalized == 1 && pthread_equal(finalized_on, pthread_self()));
	EXPECT(threads() == 1);
}

/* A budget of 0 frees some each time, until all is free. */
static void in_pieces(void)
{
	enum evc_status status;
	unsigned calls = 0;

	finalized = 0;
	for (unsigned i = 0; i < 300; i++) {
		struct world world = open_world(NULL, finalize);

		close_world(&world);
	}
	do {
		status = evc_reclaim(0);
		calls++;
		EXPECT(status == EVC_OK || status == EVC_TIMED_OUT);
	} while (status != EVC_OK);
	EXPECT(calls > 20 && finalized == 300);
}

static void await_trim(void)
{
	struct evc_pool_statistics before, now;
	struct timespec start, time;

	evc_pool_read_statistics(&before);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		EXPECT(evc_reclaim(EVC_FOREVER) == EVC_OK);
		evc_pool_read_statistics(&now);
		clock_gettime(CLOCK_MONOTONIC, &time);
		EXPECT(time.tv_sec - start.tv_sec < 20);
	} while (now.trims == before.trims);
}

/* A shutdown that is refused forgets no memory: what is returned after it, and after the next trim, is trimmed too. */
static void refused(void)
{
	struct world world = open_world(NULL, finalize);

	send(&world, 20000);
	EXPECT(evc_shutdown() == EVC_NOT_PERMITTED);
	await_trim();
	EXPECT(evc_mailbox_pump(world.mailbox, EVC_FOREVER) == EVC_EMPTY);
	await_trim();
	close_world(&world);
}

static void *post_elsewhere(void *opaque)
{
	struct world *world = opaque;

	send(world, 100);
	return NULL;
}

/* Two threads wait here for each other, again and again. (Not every system has pthread_barrier_t.) */
struct meeting {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	unsigned arrivals;
};

static void meet(struct meeting *meeting)
{
	unsigned both;

	pthread_mutex_lock(&meeting->mutex);
	both = meeting->arrivals++ / 2 * 2 + 2;
	pthread_cond_broadcast(&meeting->condition);
	while (meeting->arrivals < both)
		pthread_cond_wait(&meeting->condition, &meeting->mutex);
	pthread_mutex_unlock(&meeting->mutex);
}

struct guest {
	struct world *world;
	struct meeting *meeting;
};

/* A thread that lives on after its last call. */
static void *post_and_stay(void *opaque)
{
	struct guest *guest = opaque;

	send(guest->world, 100);
	meet(guest->meeting);
	meet(guest->meeting);
	EXPECT(evc_unregister_thread() == EVC_OK);
	meet(guest->meeting);
	meet(guest->meeting);
	return NULL;
}

static uint64_t fire(void *context, uint64_t deadline)
{
	(void)deadline;
	EXPECT(evc_shutdown() == EVC_NOT_PERMITTED);
	meet(context);
	return 0;
}

static void threads_and_timers(void)
{
	static const struct evc_timer_ops ops = { .fire = fire, .takes_late = true };
	struct evc_scheduler *scheduler;
	struct meeting meeting = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };
	struct meeting firing = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };
	pthread_t one, guest;
	struct world world = open_world(NULL, finalize);
	struct guest staying = { &world, &meeting };

	EXPECT(evc_scheduler_create(NULL, &scheduler) == EVC_OK);
	EXPECT(evc_scheduler_add(scheduler, 0, &ops, &firing, NULL) == EVC_OK);
	EXPECT(pthread_create(&one, NULL, post_elsewhere, &world) == 0);
	EXPECT(pthread_create(&guest, NULL, post_and_stay, &staying) == 0);
	pthread_join(one, NULL);
	meet(&meeting);
	/* Not a loop that reads a flag: valgrind runs one thread at a time and may never leave it. */
	meet(&firing);
	/* In use: everything goes on. */
	EXPECT(evc_shutdown() == EVC_NOT_PERMITTED);
	send(&world, 1);
	evc_scheduler_close(scheduler);
	EXPECT(evc_scheduler_join(scheduler) == EVC_OK);
	evc_scheduler_release(scheduler);
	close_world(&world);
	/* The other thread still has memory of the core. */
	EXPECT(evc_shutdown() == EVC_NOT_PERMITTED);
	meet(&meeting);
	meet(&meeting);
	EXPECT(evc_shutdown() == EVC_OK);
	meet(&meeting);
	pthread_join(guest, NULL);
	EXPECT(becomes_one_thread());
}

static void trees(void)
{
	struct evc_node *root, *child;
	struct evc_walk *walk;

	EXPECT(evc_node_create(NULL, &root) == EVC_OK && evc_node_create(NULL, &child) == EVC_OK);
	EXPECT(evc_node_attach(child, root, NULL) == EVC_OK);
	EXPECT(evc_node_add_handler(root, 1, EVC_HANDLER_RAISE, NULL, NULL) == EVC_OK);
	EXPECT(evc_walk_begin(child, 1, EVC_WALK_RAISE, &walk) == EVC_OK);
	EXPECT(evc_shutdown() == EVC_NOT_PERMITTED);
	evc_walk_end(walk);
	EXPECT(evc_shutdown() == EVC_NOT_PERMITTED);
	EXPECT(evc_walk_begin(child, 1, EVC_WALK_RAISE, &walk) == EVC_OK);
	evc_walk_end(walk);
	(void)evc_node_end(child);
	(void)evc_node_end(root);
}

/* With the core's thread, which the shutdown ends. */
static void with_thread(void)
{
	struct world world;

	finalized = 0;
	evc_reclaimer_start();
	world = open_world(NULL, finalize);
	send(&world, 10);
	close_world(&world);
	EXPECT(threads() <= 2);
	EXPECT(evc_shutdown() == EVC_OK);
	EXPECT(finalized == 1 && becomes_one_thread());
}

static void start_reclaimer(void *context)
{
	(void)context;
	finalized++;
	evc_reclaimer_start();
}

/* What ends last asks for the core's thread: the shutdown ends that one, too. */
static void started_at_the_end(void)
{
	struct world world = open_world(NULL, start_reclaimer);

	finalized = 0;
	close_world(&world);
	EXPECT(finalized == 0);
	EXPECT(evc_shutdown() == EVC_OK);
	EXPECT(finalized == 1 && becomes_one_thread());
}

int main(void)
{
	EXPECT(evc_shutdown() == EVC_OK);
	refused();
	EXPECT(evc_shutdown() == EVC_OK);
	for (unsigned i = 0; i < ROUNDS; i++) {
		driven();
		EXPECT(evc_shutdown() == EVC_OK);
		in_pieces();
		threads_and_timers();
		trees();
		EXPECT(evc_shutdown() == EVC_OK);
		with_thread();
		started_at_the_end();
	}
	printf("%u starts and ends of the core: ok\n", 5 * ROUNDS + 1);
	return 0;
}
