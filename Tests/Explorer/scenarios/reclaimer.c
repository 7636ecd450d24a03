/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The reclaimer: each retired item is reclaimed once, after a grace period, and none is forgotten. */
#include "explorer.h"

#include "platform/allocator.h"
#include "platform/compiler.h"
#include "eventcore/reclaim.h"
#include "platform/domain.h"

#define ITEMS 4u

struct item {
	struct evc_domain_head head;
	uint32_t number;
};

static _Atomic(struct item *) current;
static uint32_t reclaimed[ITEMS];

UNSEEN static void note(uint32_t number)
{
	reclaimed[number]++;
}

UNSEEN static void check_reclaimed(uint32_t number)
{
	if (reclaimed[number] != 1)
		explorer_fail("item %u was reclaimed %u times", number, reclaimed[number]);
}

static void reclaim(struct evc_domain_head *head)
{
	struct item *item = evc_container_of(head, struct item, head);

	note(item->number);
	evc_deallocate(item, sizeof(*item), _Alignof(struct item));
}

static struct item *make(uint32_t number)
{
	struct item *item = evc_allocate(sizeof(*item), _Alignof(struct item));

	item->number = number;
	return item;
}

/* So heavy that four of them make the thread wait for less. */
static void retire(struct item *item)
{
	evc_domain_retire(&item->head, 1u << 18, reclaim);
}

static void replace(uint32_t number)
{
	struct item *item = make(number), *before;

	/* Release: the item for readers; acquire: the one before it, for its end. */
	before = atomic_exchange_explicit(&current, item, memory_order_acq_rel);
	if (before != NULL)
		retire(before);
}

static void *read_twice(void *unused)
{
	for (unsigned i = 0; i < 2; i++) {
		struct item *item;

		evc_domain_enter();
		item = atomic_load_explicit(&current, memory_order_acquire);
		CHECK(item->number < ITEMS);
		CHECK(atomic_load_explicit(&current, memory_order_acquire)->number >= item->number);
		evc_domain_leave();
	}
	return unused;
}

static void *replace_twice(void *unused)
{
	replace(2);
	replace(3);
	return unused;
}

static void replace_under_reader(bool two_writers)
{
	pthread_t reader, writer;

	replace(0);
	reader = explorer_start(read_twice, NULL);
	replace(1);
	if (two_writers) {
		writer = explorer_start(replace_twice, NULL);
		explorer_join(writer);
	} else {
		(void)replace_twice(NULL);
	}
	explorer_join(reader);
	/* Nothing is forgotten: the thread sleeps only when nothing is pending. */
	explorer_settle();
	for (uint32_t i = 0; i < ITEMS - 1; i++)
		check_reclaimed(i);
}

SCENARIO(reclaimer_replace)
{
	replace_under_reader(false);
}

SCENARIO(reclaimer_two_writers)
{
	replace_under_reader(true);
}

static void *retire_one(void *item)
{
	retire(item);
	return NULL;
}

/* Two threads retire at once, and the first of all starts the reclaimer; then one more, when it sleeps. */
SCENARIO(reclaimer_starts)
{
	pthread_t thread;
	struct item *items[ITEMS];

	for (uint32_t i = 0; i < ITEMS; i++)
		items[i] = make(i);
	thread = explorer_start(retire_one, items[0]);
	retire(items[1]);
	explorer_join(thread);
	thread = explorer_start(retire_one, items[2]);
	retire(items[3]);
	explorer_join(thread);
	explorer_settle();
	for (uint32_t i = 0; i < ITEMS; i++)
		check_reclaimed(i);
}

/* A scheduled call is made by the thread, whether it is already running or not. */
static uint32_t calls;

UNSEEN static void note_call(void)
{
	calls++;
}

SCENARIO(reclaimer_calls_later)
{
	struct item *item = make(0);
	pthread_t thread;

	thread = explorer_start(retire_one, item);
	evc_domain_call_later(100, note_call);
	explorer_join(thread);
	explorer_settle();
	check_reclaimed(0);
	CHECK(calls == 1);
}

/* Something is retired while the program first says that it wants the thread. */
SCENARIO(reclaimer_wanted)
{
	struct item *item = make(0);
	pthread_t thread;

	(void)evc_domain_stop();
	thread = explorer_start(retire_one, item);
	evc_reclaimer_start();
	explorer_join(thread);
	explorer_settle();
	check_reclaimed(0);
}

static void *drive(void *budget)
{
	/* Refused while the callback thread has the turn. What a budget leaves is the next turn's. */
	for (unsigned i = 0; i < 2; i++)
		CHECK(evc_reclaim((uintptr_t)budget) != EVC_NOT_PERMITTED);
	return budget;
}

/* A thread that drives, with no time, beside the callback thread and one that retires: nothing is forgotten. */
SCENARIO(reclaimer_driven_beside)
{
	struct item *items[ITEMS];
	pthread_t driver;

	for (uint32_t i = 0; i < ITEMS; i++)
		items[i] = make(i);
	retire(items[0]);
	driver = explorer_start(drive, (void *)(uintptr_t)0);
	retire(items[1]);
	retire(items[2]);
	explorer_join(driver);
	retire(items[3]);
	explorer_settle();
	for (uint32_t i = 0; i < ITEMS; i++)
		check_reclaimed(i);
}
