/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Trees: a walk finds what existed when it began, each once and in order, whatever changes meanwhile; removed
 * handlers are not called any more; objects are released once.
 */
#include "tree.h"

static uint32_t others = 1u << 0 | 1u << 1;

/* A handler is removed during a walk. */
SCENARIO(tree_remove)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_down, &others);
	CHECK(evc_handler_remove(handlers[2]) == EVC_OK);
	mark_removed(2);
	explorer_join(thread);
	tear_down(3, 3);
}

/* After remove_and_wait no call is running either: what the handler used may be freed. */
static void *use_object(void *number)
{
	uint32_t called[OBJECTS] = { 0 };

	walk_number = *(unsigned *)number;
	walk_from(1, EVC_WALK_PROPAGATE, called);
	check_each_once(called, others);
	return NULL;
}

static void remove_and_wait(unsigned walkers)
{
	static unsigned numbers[2] = { 0, 1 };
	pthread_t threads[2];

	set_up();
	explorer_forbid_idling(true);
	for (unsigned i = 0; i < walkers; i++)
		threads[i] = explorer_start(use_object, &numbers[i]);
	CHECK(evc_handler_remove_and_wait(handlers[2]) == EVC_OK);
	mark_removed(2);
	/* A race with a call that still runs, if there is one. */
	objects[2].called[0] = objects[2].called[1] = 0;
	for (unsigned i = 0; i < walkers; i++)
		explorer_join(threads[i]);
	explorer_forbid_idling(false);
	tear_down(3, 3);
}

SCENARIO(tree_remove_and_wait)
{
	remove_and_wait(1);
}

SCENARIO(tree_remove_and_wait_two)
{
	remove_and_wait(2);
}

SCENARIO(tree_remove_and_wait_no_barrier)
{
	explorer_take_barrier_away();
	remove_and_wait(1);
}

SCENARIO(tree_remove_and_wait_two_no_barrier)
{
	explorer_take_barrier_away();
	remove_and_wait(2);
}

/* A node is detached, and one ended, during a walk. */
SCENARIO(tree_detach)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_down, &others);
	(void)evc_node_detach(nodes[2]);
	explorer_join(thread);
	tear_down(3, 3);
}

SCENARIO(tree_end)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_down, &others);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	mark_removed(2);
	explorer_join(thread);
	tear_down(3, 3);
}

/* A node moves from one parent to another: the walk finds it once at most, and all others. */
static uint32_t all_but_moved = 1u << 0 | 1u << 1 | 1u << 3;

SCENARIO(tree_move)
{
	pthread_t thread;

	set_up();
	add_node(3, 1);
	add_handler(3, 3);
	thread = explorer_start(walk_down, &all_but_moved);
	CHECK(evc_node_attach(nodes[2], nodes[3], NULL) == EVC_OK);
	explorer_join(thread);
	tear_down(4, 4);
}

/* An event is raised while the way to the root changes: a node on the way moves below another one. */
static uint32_t own = 1u << 1;

SCENARIO(tree_raise)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_up, &own);
	CHECK(evc_node_attach(nodes[1], nodes[2], NULL) == EVC_OK);
	(void)evc_node_detach(nodes[1]);
	explorer_join(thread);
	tear_down(3, 3);
}

/* Added meanwhile: found by the walk or not, but never incomplete. */
SCENARIO(tree_add)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_down, &others);
	add_node(3, 2);
	add_handler(3, 3);
	add_handler(1, 4);
	CHECK(evc_handler_remove(handlers[4]) == EVC_OK);
	mark_removed(4);
	explorer_join(thread);
	tear_down(4, 5);
}

/* A thread that finds a handler inactive knows that no later call begins. */
static void *look_and_walk(void *unused)
{
	uint32_t called[OBJECTS] = { 0 };
	bool is_over = !evc_handler_is_active(handlers[2]);

	walk_number = 1;
	if (is_over)
		mark_removed(2);
	walk_from(1, EVC_WALK_PROPAGATE, called);
	if (is_over && called[2] != 0)
		explorer_fail("a call of what is not active");
	return unused;
}

SCENARIO(tree_is_active)
{
	pthread_t threads[2];

	set_up();
	threads[0] = explorer_start(look_and_walk, NULL);
	threads[1] = explorer_start(walk_down, &others);
	CHECK(evc_handler_remove(handlers[2]) == EVC_OK);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down(3, 3);
}

/* The pointer is dropped while the tree frees the handler: the memory is freed once, after both. */
static void *drop_third(void *unused)
{
	CHECK(evc_handler_object(handlers[2]) == &objects[2]);
	evc_handler_drop(handlers[2]);
	return unused;
}

SCENARIO(tree_drop)
{
	pthread_t threads[2];

	set_up();
	threads[0] = explorer_start(walk_down, &others);
	threads[1] = explorer_start(drop_third, NULL);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	mark_removed(2);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down(3, 2);
	CHECK(released[2] == 1);
}
