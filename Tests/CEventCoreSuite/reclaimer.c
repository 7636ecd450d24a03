/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The callback thread: each retired item is reclaimed once, and none while a section is open that was open at
 * its retirement.
 */
#include "platform/config.h"

#ifdef EVC_URCU
/* For the processors of a thread. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "platform/domain.h"
#include "eventcore/reclaim.h"
#include "suite.h"
#if defined(__linux__) && defined(__GLIBC__)
#include "corner.h"
#endif

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long the thread gathers items before a turn, in nanoseconds (reclaimer.c). */
#define PATIENCE UINT64_C(50000000)
/* 4,096 of these are a megabyte. */
#define WEIGHT 256u

struct item {
	struct evc_domain_head head;
	struct list *list;
	bool is_reclaimed;
};

struct list {
	struct item *items;
	/* Written by the callback thread; read when the gate was opened. */
	bool any_twice;
	uint32_t count;
	_Atomic uint32_t reclaimed;
	struct suite_gate gate;
};

static void reclaimed(struct evc_domain_head *head)
{
	struct item *item = (struct item *)(void *)head;
	struct list *list = item->list;

	list->any_twice |= item->is_reclaimed;
	item->is_reclaimed = true;
	if (atomic_fetch_add_explicit(&list->reclaimed, 1, memory_order_release) + 1 == list->count)
		suite_gate_open(&list->gate);
}

static const char *retire(uint32_t count)
{
	/* Static, as it may still be used after a time-out. */
	static struct list list;

	list = (struct list){ .count = count, .gate = SUITE_GATE };
	list.items = calloc(count, sizeof(*list.items));
	EXPECT(list.items != NULL, "no memory");
	for (uint32_t i = 0; i < count; i++) {
		list.items[i].list = &list;
		evc_domain_retire(&list.items[i].head, WEIGHT, reclaimed);
	}
	EXPECT(suite_gate_pass(&list.gate), "%u of %u items came back", list.reclaimed, count);
	EXPECT(!list.any_twice, "an item came back twice");
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	EXPECT_EQUAL(list.reclaimed, count, "items that came back");
	free(list.items);
	return NULL;
}

static const char *once(void)
{
	/* About a megabyte, for which the thread does not wait longer. */
	static const uint32_t counts[] = { 1, 2, 4095, 4096, 4097, 3 * 4096 };

	for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		EXPECT_NONE(retire(counts[i]));
	return NULL;
}

static const char *after_sections(void)
{
	/* Static, as above. */
	static struct list list;
	static struct item item;
	uint64_t begin;

	item = (struct item){ .list = &list };
	list = (struct list){ .items = &item, .count = 1, .gate = SUITE_GATE };
	evc_domain_enter();
	evc_domain_retire(&item.head, WEIGHT, reclaimed);
	begin = evc_clock_now();
	/* A thread that did not wait for this section would be done by then. */
	while (evc_clock_now() - begin < 2 * PATIENCE)
		EXPECT_EQUAL(atomic_load_explicit(&list.reclaimed, memory_order_relaxed), 0,
			     "items that came back inside a section");
	evc_domain_leave();
	EXPECT(suite_gate_pass(&list.gate), "the item did not come back");
	return NULL;
}

#define FORKS 20u
#define TIMES 8u

struct again {
	struct evc_domain_head head;
	uint32_t left;
	struct suite_gate gate;
};

static void retired_again(struct evc_domain_head *head)
{
	struct again *again = (struct again *)(void *)head;

	if (--again->left == 0)
		suite_gate_open(&again->gate);
	else
		evc_domain_retire(head, WEIGHT, retired_again);
}

static const char *beside_forks(void)
{
	/* Static, as above. */
	static struct again again;

	again = (struct again){ .left = TIMES, .gate = SUITE_GATE };
	evc_domain_retire(&again.head, WEIGHT, retired_again);
	for (unsigned i = 0; i < FORKS; i++) {
		int status;
		pid_t child = fork();

		EXPECT(child >= 0, "fork failed");
		if (child == 0)
			_exit(0);
		EXPECT(waitpid(child, &status, 0) == child && status == 0, "a child failed");
	}
	EXPECT(suite_gate_pass(&again.gate), "an item that retired itself again did not come back");
	return NULL;
}

#define BEHIND 20u
/* A child whose callback thread is started there; ThreadSanitizer would end it (fork.c). */
#if defined(SUITE_THREAD_SANITIZER)
#define CHILD_RECLAIMS false
#else
#define CHILD_RECLAIMS true
#endif

/* Items of one turn. Reclaiming the first one runs user code that wants the lock of the forking thread. */
static struct {
	struct evc_domain_head heads[BEHIND + 1];
	pthread_mutex_t lock;
	struct suite_gate entered;
	_Atomic uint64_t ended, reclaimed;
} scene;

static void end_of_user(void *context)
{
	(void)context;
	suite_gate_open(&scene.entered);
	pthread_mutex_lock(&scene.lock);
	atomic_fetch_add(&scene.ended, 1);
	pthread_mutex_unlock(&scene.lock);
}

static void reclaimed_with_user(struct evc_domain_head *head)
{
	(void)head;
	evc_domain_run_user_code(end_of_user, NULL);
	atomic_fetch_add(&scene.reclaimed, 1);
}

static void reclaimed_behind(struct evc_domain_head *head)
{
	(void)head;
	atomic_fetch_add(&scene.reclaimed, 1);
}

/*
 * The items behind it are reclaimed in the child as well, with what is retired there; the first one's user
 * code is not run twice.
 */
static int in_child(void *context)
{
	static struct evc_domain_head own;

	(void)context;
	if (!CHILD_RECLAIMS)
		return 0;
	evc_domain_retire(&own, WEIGHT, reclaimed_behind);
	return suite_await(&scene.reclaimed, BEHIND + 1) && suite_quiesce() &&
			       atomic_load(&scene.reclaimed) == BEHIND + 1 && atomic_load(&scene.ended) == 0
		       ? 0
		       : 1;
}

static const char *beside_user_code(void)
{
	char said[SUITE_SAID];
	int status;

	memset(&scene, 0, sizeof(scene));
	scene.entered = (struct suite_gate)SUITE_GATE;
	pthread_mutex_init(&scene.lock, NULL);
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	pthread_mutex_lock(&scene.lock);
	for (unsigned i = 1; i <= BEHIND; i++)
		evc_domain_retire(&scene.heads[i], WEIGHT, reclaimed_behind);
	/* The last one of a list is reclaimed first. */
	evc_domain_retire(&scene.heads[0], WEIGHT, reclaimed_with_user);
	EXPECT(suite_gate_pass(&scene.entered), "nothing was reclaimed");
	/* Holding the lock that the end of the user's object waits for. */
	EXPECT_NONE(suite_in_child(in_child, NULL, &status, said));
	pthread_mutex_unlock(&scene.lock);
	EXPECT(suite_await(&scene.reclaimed, BEHIND + 1), "not all came back in the parent");
	EXPECT_EQUAL(atomic_load(&scene.ended), 1, "ends of the user's object");
	EXPECT(!WIFSIGNALED(status), "the child was ended by signal %d: %.200s", WTERMSIG(status), said);
	EXPECT_EQUAL(WEXITSTATUS(status), 0, "the child's status");
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	return NULL;
}

static const char *wanted_behind_a_driver(void)
{
	/* More than a turn without time reclaims. Static, as above. */
	static struct item items[100];
	static struct list list;

	list = (struct list){ .items = items, .count = 100, .gate = SUITE_GATE };
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	(void)evc_domain_stop();
	for (unsigned i = 0; i < 100; i++) {
		items[i] = (struct item){ .list = &list };
		evc_domain_retire(&items[i].head, WEIGHT, reclaimed);
	}
	EXPECT_EQUAL(evc_reclaim(0), EVC_TIMED_OUT, "the status of a reclaim without time");
	evc_reclaimer_start();
	EXPECT(suite_gate_pass(&list.gate), "%u items came back", list.reclaimed);
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	return NULL;
}

/* All of them in one of the lists, which go by the address. */
static const char *eight_without_time(void)
{
	/* Static, as above. */
	static struct {
		_Alignas(4096) struct item item;
	} items[100];
	static struct list list;
	uint32_t before = 0, found;
	enum evc_status status;

	list = (struct list){ .count = 100, .gate = SUITE_GATE };
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	(void)evc_domain_stop();
	for (unsigned i = 0; i < 100; i++) {
		items[i].item = (struct item){ .list = &list };
		evc_domain_retire(&items[i].item.head, WEIGHT, reclaimed);
	}
	do {
		status = evc_reclaim(0);
		found = list.reclaimed;
		EXPECT(status == EVC_OK || found - before >= 8, "a reclaim without time freed %u items", found - before);
		before = found;
	} while (status == EVC_TIMED_OUT);
	EXPECT_OK(status);
	EXPECT_EQUAL(list.reclaimed, 100, "items that came back");
	evc_reclaimer_start();
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	return NULL;
}

#if defined(__linux__) && defined(__GLIBC__)
static struct {
	struct evc_domain_head head;
	struct suite_corner corner;
	struct suite_gate gate;
} looked;

static void look(struct evc_domain_head *head)
{
	(void)head;
	suite_corner_look(&looked.corner);
	suite_gate_open(&looked.gate);
}

static void *start_from_a_corner(void *is_in_corner)
{
	*(bool *)is_in_corner = suite_corner_enter();
	evc_domain_retire(&looked.head, WEIGHT, look);
	evc_reclaimer_start();
	return NULL;
}

static const char *not_in_a_corner(void)
{
	static const struct suite_gate shut = SUITE_GATE;
	bool is_in_corner = false;
	pthread_t corner;

	EXPECT(suite_quiesce(), "the callback thread got stuck");
	(void)evc_domain_stop();
	looked.gate = shut;
	EXPECT_EQUAL(pthread_create(&corner, NULL, start_from_a_corner, &is_in_corner), 0, "a thread");
	(void)pthread_join(corner, NULL);
	EXPECT(suite_gate_pass(&looked.gate), "the item did not come back");
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	EXPECT(is_in_corner, "the thread that had work first could not be set as the test wants it");
	EXPECT(!looked.corner.takes_signals, "the callback thread takes signals of the program");
	return suite_corner_is_left(&looked.corner, SCHED_OTHER);
}
#endif

static const struct evc_suite_test tests[] = {
#if defined(__linux__) && defined(__GLIBC__)
	{ "the callback thread does not stay where the thread stays that had work for it first", not_in_a_corner },
#endif
	{ "a reclaim without time frees eight items, however they are listed", eight_without_time },
	{ "the callback thread takes over what a driver had no time for", wanted_behind_a_driver },
	{ "a fork does not wait for user code that a reclaim runs, and its child goes on behind it",
	  beside_user_code },
	{ "what is retired comes back once", once },
	{ "a reclaim may retire what it got once more, while the program forks", beside_forks },
	{ "what is retired inside a section comes back after it", after_sections },
};
SUITE_GROUP(suite_reclaimer, tests);
#endif
