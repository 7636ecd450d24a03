/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Waiting for handlers that others follow, for handlers that a walk skips, and for a walk whose thread does
 * not end: its end would wake the waiting threads.
 */
#include "tree.h"

static unsigned waited_for;

static void *walk_all_once(void *unused)
{
	static uint32_t none = 0;

	(void)walk_all(&none);
	return unused;
}

static void remove_and_wait(unsigned which)
{
	CHECK(evc_handler_remove_and_wait(handlers[which]) == EVC_OK);
	mark_removed(which);
	/* A race with a call that still runs, if there is one. */
	objects[which].called[0] = 0;
}

SCENARIO(tree_wait_for_first)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_all_once, NULL);
	remove_and_wait(0);
	remove_and_wait(1);
	explorer_join(thread);
	tear_down(3, 3);
}

/* The one behind it is skipped. */
static void *wait_and_skip(void *unused)
{
	CHECK(evc_handler_remove(handlers[1]) == EVC_OK);
	mark_removed(1);
	remove_and_wait(0);
	return unused;
}

SCENARIO(tree_wait_and_skip)
{
	set_up();
	start_other_at(0, wait_and_skip);
	(void)walk_all_once(NULL);
	explorer_join(other_thread);
	tear_down(3, 3);
}

/* The wait begins when the handler is called; this thread, which walks, does not end. */
static void *wait_for_it(void *unused)
{
	remove_and_wait(waited_for);
	return unused;
}

static void wait_for(unsigned which)
{
	waited_for = which;
	set_up();
	start_other_at(which, wait_for_it);
	(void)walk_all_once(NULL);
	explorer_join(other_thread);
	tear_down(3, 3);
}

SCENARIO(tree_wait_in_time)
{
	wait_for(1);
}

SCENARIO(tree_wait_in_time_for_last)
{
	wait_for(2);
}

SCENARIO(tree_wait_in_time_no_barrier)
{
	explorer_take_barrier_away();
	wait_for(1);
}

SCENARIO(tree_wait_in_time_for_last_no_barrier)
{
	explorer_take_barrier_away();
	wait_for(2);
}

/* A handler that is said to have ended has ended for all walks, also if others were removed before. */
static void *look_and_walk(void *unused)
{
	uint32_t called[OBJECTS] = { 0 };
	bool is_over = !evc_handler_is_active(handlers[1]);

	walk_number = 1;
	if (is_over)
		mark_removed(1);
	walk_from(0, EVC_WALK_PROPAGATE, called);
	if (is_over && called[1] != 0)
		explorer_fail("a call of what is not active");
	return unused;
}

SCENARIO(tree_is_active_after_another)
{
	pthread_t thread;

	add_node(0, -1);
	add_handler(0, 1);
	add_handler(0, 0);
	CHECK(evc_handler_remove(handlers[0]) == EVC_OK);
	/* The very first walk tries the barrier, which would create an order. */
	(void)walk_all_once(NULL);
	thread = explorer_start(look_and_walk, NULL);
	CHECK(evc_handler_remove(handlers[1]) == EVC_OK);
	explorer_join(thread);
	tear_down(1, 2);
}

/* A thread that learns this tells the walk's thread. */
static pthread_t remover;

static void *remove_it(void *unused)
{
	CHECK(evc_handler_remove(handlers[1]) == EVC_OK);
	return unused;
}

static void *look_and_tell(void *unused)
{
	if (!evc_handler_is_active(handlers[1]))
		mark_removed(1);
	return unused;
}

static void start_both(void)
{
	remover = explorer_start(remove_it, NULL);
	start_other();
}

SCENARIO(tree_is_active_is_told)
{
	add_node(0, -1);
	add_handler(0, 2);
	add_handler(0, 1);
	add_handler(0, 0);
	CHECK(evc_handler_remove(handlers[0]) == EVC_OK);
	start_other_at(2, look_and_tell);
	meanwhile = start_both;
	(void)walk_all_once(NULL);
	explorer_join(remover);
	explorer_join(other_thread);
	tear_down(1, 3);
}
