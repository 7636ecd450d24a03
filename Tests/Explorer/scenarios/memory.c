/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Memory: slots that circulate between their owner, the threads that return them, and the trim; boxes of
 * several receivers; a new allocator.
 */
#include "post.h"

#include "eventcore/allocator.h"
#include "eventcore/parker.h"
#include "eventcore/pool.h"
#include "platform/allocator.h"
#include "memory/slab.h"
#include "memory/thread_record.h"

#include <string.h>

#define SLOTS 8u
/* Two slots a segment. */
#define SMALL_CLASS 5u
/* Four slots a segment, and three segments a slab. */
#define LARGE_CLASS 7u

static struct evc_pool pool;
static struct evc_cursor cursor;
static _Atomic(char *) handed[SLOTS];

/* A slot in use; its next user must come after. */
static void hand_out(unsigned which)
{
	char *slot = evc_pool_take(&pool, &cursor);

	CHECK(slot != NULL);
	slot[0] = (char)which;
	atomic_store_explicit(&handed[which], slot, memory_order_release);
}

static void *give_back(void *count)
{
	for (unsigned i = 0; i < *(unsigned *)count; i++) {
		char *slot;

		while ((slot = atomic_load_explicit(&handed[i], memory_order_acquire)) == NULL)
			sched_yield();
		CHECK(slot[0] == (char)i);
		evc_pool_give(slot);
	}
	return NULL;
}

static void *let_go(void *times)
{
	for (unsigned i = 0; i < *(unsigned *)times; i++)
		(void)evc_pool_let_go(&pool, 0);
	return NULL;
}

static unsigned two = 2, three = 3, four = 4, all = SLOTS;

/* The owner takes what another thread gives back at the same time: no slot is used twice, and none is lost. */
SCENARIO(memory_slots)
{
	pthread_t giver;

	evc_pool_init(&pool, SMALL_CLASS);
	giver = explorer_start(give_back, &all);
	for (unsigned i = 0; i < SLOTS; i++)
		hand_out(i);
	explorer_join(giver);
	evc_cursor_end(&cursor);
}

/* The trim runs while the lists are taken and filled. */
SCENARIO(memory_slots_and_trim)
{
	pthread_t giver, trim;

	evc_pool_init(&pool, SMALL_CLASS);
	for (unsigned i = 0; i < 4; i++)
		hand_out(i);
	giver = explorer_start(give_back, &four);
	trim = explorer_start(let_go, &three);
	for (unsigned i = 4; i < 6; i++)
		hand_out(i);
	explorer_join(trim);
	explorer_join(giver);
	evc_cursor_end(&cursor);
}

/* A slab is given to the system as soon as its last slot is returned, and not before. */
SCENARIO(memory_slab_goes)
{
	pthread_t giver, trim;

	evc_pool_init(&pool, LARGE_CLASS);
	for (unsigned i = 0; i < 4; i++)
		hand_out(i);
	evc_cursor_end(&cursor);
	evc_pool_end(&pool);
	giver = explorer_start(give_back, &four);
	trim = explorer_start(let_go, &two);
	explorer_join(trim);
	explorer_join(giver);
	for (unsigned i = 0; i < 2; i++)
		(void)evc_pool_let_go(&pool, 0);
	CHECK(atomic_load_explicit(&pool.bytes, memory_order_relaxed) == 0);
	explorer_settle();
}

/* What ended threads leave behind is released without further calls, whenever they end. */
static void *use_memory(void *unused)
{
	struct evc_thread_record *record = evc_thread_record();

	evc_pool_give(evc_pool_take(&record->pools[LARGE_CLASS], &record->boxes[0][LARGE_CLASS]));
	return unused;
}

SCENARIO(memory_of_threads_goes)
{
	struct evc_pool_statistics statistics;
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++)
		threads[i] = explorer_start(use_memory, NULL);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	explorer_settle();
	evc_pool_read_statistics(&statistics);
	CHECK(statistics.slab_bytes == 0);
}

/* So is what is returned later, whether a trim has just run or is about to. */
static void *hand_out_and_end(void *unused)
{
	struct evc_thread_record *record = evc_thread_record();
	char *slot = evc_pool_take(&record->pools[LARGE_CLASS], &record->boxes[0][LARGE_CLASS]);

	atomic_store_explicit(&handed[0], slot, memory_order_release);
	return unused;
}

SCENARIO(memory_that_comes_back_goes)
{
	struct evc_pool_statistics statistics;

	explorer_join(explorer_start(hand_out_and_end, NULL));
	evc_pool_give(atomic_load_explicit(&handed[0], memory_order_relaxed));
	explorer_settle();
	evc_pool_read_statistics(&statistics);
	CHECK(statistics.slab_bytes == 0);
}

/* The same for a segment whose slots are all returned at once. */
static void *take_segment_and_end(void *unused)
{
	struct evc_thread_record *record = evc_thread_record();

	for (unsigned i = 0; i < 4; i++)
		atomic_store_explicit(&handed[i],
				      evc_pool_take(&record->pools[LARGE_CLASS], &record->boxes[0][LARGE_CLASS]),
				      memory_order_release);
	return unused;
}

SCENARIO(memory_segment_that_comes_back_goes)
{
	static struct evc_return_cache cache;
	struct evc_pool_statistics statistics;

	explorer_join(explorer_start(take_segment_and_end, NULL));
	for (unsigned i = 0; i < 4; i++)
		evc_return_cache_give_any(&cache, atomic_load_explicit(&handed[i], memory_order_relaxed));
	explorer_settle();
	evc_pool_read_statistics(&statistics);
	CHECK(statistics.slab_bytes == 0);
}

/* What a running thread has beyond its floor is released when it is returned, however late. */
static struct evc_return_cache cache;

static void use_beyond_floor(struct evc_thread_record *record, bool rests)
{
	struct evc_pool_statistics statistics;
	char *slots[20];

	for (unsigned i = 0; i < 20; i++)
		slots[i] = evc_pool_take(&record->pools[LARGE_CLASS], &record->boxes[0][LARGE_CLASS]);
	/* Until no trim is scheduled any more, though nothing could go. */
	if (rests)
		explorer_settle();
	for (unsigned i = 0; i < 20; i++)
		evc_return_cache_give_any(&cache, slots[i]);
	explorer_settle();
	evc_pool_read_statistics(&statistics);
	/* Of two slabs the first is gone, and the second has two segments. */
	CHECK(statistics.slab_bytes <= EVC_POOL_FLOOR_BYTES / 4 + EVC_SLAB_HEADER);
}

SCENARIO(memory_beyond_floor_goes)
{
	use_beyond_floor(evc_thread_record(), false);
}

SCENARIO(memory_beyond_floor_goes_later)
{
	use_beyond_floor(evc_thread_record(), true);
}

/* What it uses then is no more than that, and asks for no trim. */
SCENARIO(memory_within_floor_stays)
{
	struct evc_thread_record *record = evc_thread_record();
	struct evc_pool_statistics before, after;

	use_beyond_floor(record, false);
	/* The last trim, or this thread, may have an old value of what has grown: after these two nobody has. */
	evc_pool_trim();
	evc_pool_trim();
	evc_pool_read_statistics(&before);
	for (unsigned i = 0; i < 8; i++)
		evc_return_cache_give_any(&cache,
					  evc_pool_take(&record->pools[LARGE_CLASS], &record->boxes[0][LARGE_CLASS]));
	explorer_settle();
	evc_pool_read_statistics(&after);
	CHECK(after.trims == before.trims);
}

/* Also if they had been idle for so long that no trim was scheduled. */
static struct evc_parker *parker;
static _Atomic bool is_over;

static void *use_memory_and_rest(void *unused)
{
	uint32_t ticket;

	(void)use_memory(unused);
	while (ticket = evc_parker_prepare(parker), !atomic_load_explicit(&is_over, memory_order_acquire))
		(void)evc_parker_wait(parker, ticket, EVC_FOREVER);
	return unused;
}

SCENARIO(memory_of_idle_thread_goes)
{
	struct evc_pool_statistics statistics;
	pthread_t thread;

	CHECK(evc_parker_create(NULL, &parker) == EVC_OK);
	thread = explorer_start(use_memory_and_rest, NULL);
	explorer_settle();
	atomic_store_explicit(&is_over, true, memory_order_release);
	(void)evc_parker_wake(parker);
	explorer_join(thread);
	explorer_settle();
	evc_pool_read_statistics(&statistics);
	CHECK(statistics.slab_bytes == 0);
	evc_parker_destroy(parker);
}

/* Events in boxes. */
struct big {
	struct event event;
	char rest[120];
};

static struct evc_mailbox *mailboxes[2];

static void end_big(void *context, void *payload)
{
	(void)context;
	memset(payload, 0, sizeof(struct big));
}

static void set_up_boxes(struct evc_router **router)
{
	struct evc_subscription_options options = tally_options();
	struct evc_subscription *subscription;

	*router = make_router();
	options.drop = end_big;
	for (unsigned i = 0; i < 2; i++) {
		mailboxes[i] = make_mailbox(NULL);
		CHECK(evc_mailbox_add_subscription(mailboxes[i], &options, &subscription) == EVC_OK);
		subscribe(*router, subscription);
	}
}

static void *dispatch_big(void *router)
{
	struct big big = { .rest = "" };
	uint32_t receivers;

	CHECK(evc_dispatch_bytes(router, KEY, EVC_LANE_QUEUE_NORMAL, &big, sizeof(big), _Alignof(struct big),
				 &receivers) == EVC_OK);
	CHECK(receivers == 2);
	return NULL;
}

static void *run(void *mailbox)
{
	CHECK(evc_mailbox_run(mailbox) == EVC_CLOSED);
	return NULL;
}

static void *take_and_end(void *mailbox)
{
	struct evc_envelope *envelope;

	CHECK(evc_mailbox_take(mailbox, &envelope) == EVC_OK);
	CHECK(((struct event *)evc_envelope_payload(envelope))->number == 0);
	evc_mailbox_recycle(mailbox, envelope, false);
	return NULL;
}

static void box_of_two(void *(*receive)(void *))
{
	struct evc_router *router;
	pthread_t thread;

	set_up_boxes(&router);
	(void)dispatch_big(router);
	for (unsigned i = 0; i < 2; i++)
		evc_mailbox_close_when_empty(mailboxes[i]);
	thread = explorer_start(receive, mailboxes[1]);
	(void)receive(mailboxes[0]);
	explorer_join(thread);
}

/* A receiver that finds itself the last one owns the payload, and may change it. */
SCENARIO(memory_box_is_owned)
{
	box_of_two(run);
	CHECK(tally.handled[0] == 2);
}

/* The last receiver ends the payload, after all others have read it. */
SCENARIO(memory_box_ends)
{
	box_of_two(take_and_end);
}

/* Another allocator is installed while memory is allocated: its table is complete. */
static struct evc_allocator table;

static void *allocate_none(void *context, size_t size, size_t alignment)
{
	(void)context, (void)size, (void)alignment;
	return NULL;
}

static void deallocate_none(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context, (void)size, (void)alignment;
	CHECK(memory == NULL);
}

static void *allocate(void *unused)
{
	(void)evc_allocate(16, 8);
	return unused;
}

static void *deallocate(void *unused)
{
	evc_deallocate(NULL, 16, 8);
	return unused;
}

SCENARIO(memory_allocator)
{
	pthread_t threads[2] = { explorer_start(allocate, NULL), explorer_start(deallocate, NULL) };

	table = (struct evc_allocator){ .allocate = allocate_none, .deallocate = deallocate_none };
	CHECK(evc_allocator_install(&table) == EVC_OK);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
}
