/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The reclaimer: each retired item is reclaimed once, after a grace period, and none is forgotten. */
#include "explorer.h"

#include "platform/allocator.h"
#include "platform/compiler.h"
#include "platform/domain.h"

#define ITEMS 4u

struct item {
	struct evc_domain_head head;
	uint32_t number;
	bool is_urgent;
};

static _Atomic(struct item *) current;
static uint32_t reclaimed[ITEMS], moment[ITEMS], moments;

UNSEEN static void note(uint32_t number)
{
	reclaimed[number]++;
	moment[number] = ++moments;
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

static void retire(struct item *item)
{
	if (item->is_urgent)
		evc_domain_retire(&item->head, reclaim);
	else
		evc_domain_retire_patiently(&item->head, 100, reclaim);
}

static void replace(uint32_t number, bool is_urgent)
{
	struct item *item = make(number), *before;

	item->is_urgent = is_urgent;
	/* Acquire: `is_urgent`; release: the item for readers. */
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

static void *replace_twice(void *is_urgent)
{
	replace(2, is_urgent != NULL);
	replace(3, is_urgent == NULL);
	return NULL;
}

static void replace_under_reader(bool is_urgent, bool two_writers)
{
	pthread_t reader, writer;

	replace(0, is_urgent);
	reader = explorer_start(read_twice, NULL);
	replace(1, !is_urgent);
	if (two_writers) {
		writer = explorer_start(replace_twice, is_urgent ? &moments : NULL);
		explorer_join(writer);
	} else {
		replace(2, is_urgent);
		replace(3, is_urgent);
	}
	explorer_join(reader);
	/* Nothing is forgotten: the thread sleeps only when nothing is pending. */
	explorer_settle();
	for (uint32_t i = 0; i < ITEMS - 1; i++)
		check_reclaimed(i);
}

SCENARIO(reclaimer_urgent)
{
	replace_under_reader(true, false);
}

SCENARIO(reclaimer_patient)
{
	replace_under_reader(false, false);
}

SCENARIO(reclaimer_two_writers)
{
	replace_under_reader(true, true);
}

static void *retire_one(void *item)
{
	retire(item);
	return NULL;
}

/* Two threads retire at once, and the first of all starts the reclaimer; then one more, when it sleeps. */
static void retire_at_once(bool first, bool second)
{
	pthread_t thread;
	struct item *items[ITEMS];

	for (uint32_t i = 0; i < ITEMS; i++) {
		items[i] = make(i);
		items[i]->is_urgent = i % 2 == 0 ? first : second;
	}
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

SCENARIO(reclaimer_starts)
{
	retire_at_once(true, true);
}

SCENARIO(reclaimer_starts_patient)
{
	retire_at_once(false, false);
}

SCENARIO(reclaimer_starts_mixed)
{
	retire_at_once(true, false);
}

/* An urgent item is reclaimed after all that were retired before it (domain.h). */
SCENARIO(reclaimer_order)
{
	struct item *items[ITEMS];

	for (uint32_t i = 0; i < ITEMS; i++) {
		items[i] = make(i);
		items[i]->is_urgent = i % 2 != 0;
		retire(items[i]);
	}
	explorer_settle();
	for (uint32_t i = 0; i < ITEMS; i++)
		check_reclaimed(i);
	CHECK(moment[0] < moment[1] && moment[1] < moment[3] && moment[2] < moment[3]);
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

	item->is_urgent = true;
	thread = explorer_start(retire_one, item);
	evc_domain_call_later(100, note_call);
	explorer_join(thread);
	explorer_settle();
	check_reclaimed(0);
	CHECK(calls == 1);
}
