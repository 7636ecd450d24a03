/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Several walks: simultaneous, one after the other, one inside the other. */
#include "tree.h"

static uint32_t others = 1u << 0 | 1u << 1;
static uint32_t own = 1u << 1;

/* Two walks, and changes that pass memory from one walk to the next. */
static void *walk_up_too(void *unused)
{
	walk_number = 1;
	(void)walk_up(&own);
	return unused;
}

SCENARIO(tree_two_walks)
{
	pthread_t threads[2];

	set_up();
	threads[0] = explorer_start(walk_down, &others);
	threads[1] = explorer_start(walk_up_too, NULL);
	CHECK(evc_handler_remove(handlers[2]) == EVC_OK);
	mark_removed(2);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	add_node(3, 1);
	add_handler(3, 3);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down(4, 4);
}

/* The first walk of a thread that has only read the tree until then, beside a change that looks at what walks hold. */
static void *read_then_walk(void *unused)
{
	CHECK(evc_node_depth(nodes[1]) == 1);
	return walk_up_too(unused);
}

SCENARIO(tree_reads_then_walks)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(read_then_walk, NULL);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	mark_removed(2);
	explorer_join(thread);
	tear_down(3, 3);
}

/* The same beside one that waits for a handler. */
SCENARIO(tree_reads_then_is_waited_for)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(read_then_walk, NULL);
	mark_removed(2);
	CHECK(evc_handler_remove_and_wait(handlers[2]) == EVC_OK);
	explorer_join(thread);
	tear_down(3, 3);
}

/* Walks one after the other in one thread, while nodes are made and ended: memory that is used again. */
static void *walk_twice(void *unused)
{
	uint32_t called[OBJECTS] = { 0 }, again[OBJECTS] = { 0 };

	walk_from(1, EVC_WALK_PROPAGATE, called);
	check_each_once(called, others);
	walk_from(1, EVC_WALK_RAISE | EVC_WALK_CAPTURE, again);
	check_each_once(again, others);
	return unused;
}

SCENARIO(tree_reuse)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_twice, NULL);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	mark_removed(2);
	for (unsigned i = 0; i < 2; i++) {
		add_node(3, 0);
		add_handler(3, 3 + i);
		(void)evc_node_end(nodes[3]);
		mark_removed(3 + i);
	}
	nodes[3] = NULL;
	explorer_join(thread);
	tear_down(3, 5);
}

/* A walk inside a call of another one, while handlers of both are removed. */
static void *walk_in_walk(void *unused)
{
	uint32_t inner[OBJECTS] = { 0 };
	struct evc_walk *walk;

	if (evc_walk_begin(nodes[1], KEY, EVC_WALK_PROPAGATE, &walk) != EVC_OK)
		return unused;
	do {
		for (uint32_t i = 0; i < walk->count; i++) {
			uint32_t before = atomic_load_explicit(&removed, memory_order_acquire);

			if (!evc_walk_will_call(walk, i))
				continue;
			call(walk->objects[i], before);
			if (((struct object *)walk->objects[i])->number != 1)
				continue;
			walk_number = 1;
			walk_from(2, EVC_WALK_RAISE, inner);
			walk_number = 0;
		}
	} while (evc_walk_next(walk) == EVC_OK);
	evc_walk_end(walk);
	return unused;
}

SCENARIO(tree_walk_in_walk)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_in_walk, NULL);
	CHECK(evc_handler_remove_and_wait(handlers[2]) == EVC_OK);
	mark_removed(2);
	objects[2].called[0] = objects[2].called[1] = 0;
	CHECK(evc_handler_remove_and_wait(handlers[0]) == EVC_OK);
	mark_removed(0);
	explorer_join(thread);
	tear_down(3, 3);
}

/*
 * A walk of a tree that has not changed since the last one reuses what that found, unless a change comes
 * meanwhile.
 */
static void *walk_again(void *those)
{
	for (unsigned i = 0; i < 3; i++)
		(void)walk_down(those);
	return NULL;
}

SCENARIO(tree_walk_again)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_again, &others);
	CHECK(evc_handler_remove(handlers[2]) == EVC_OK);
	mark_removed(2);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	explorer_join(thread);
	tear_down(3, 3);
}
