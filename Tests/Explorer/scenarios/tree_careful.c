/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A handler changes the tree under its own walk, which looks from then on before each call whether the next handler is
 * still in its place; and another thread changes it as well.
 */
#include "tree.h"

static unsigned moved, below;

/* The call of object 1 changes the tree. */
static void *walk_and_change(void *scope)
{
	uint32_t called[OBJECTS] = { 0 };
	struct evc_walk *walk;

	if (evc_walk_begin(nodes[1], KEY, *(uint32_t *)scope, &walk) != EVC_OK)
		return NULL;
	do {
		for (uint32_t i = 0; i < walk->count; i++) {
			uint32_t before = atomic_load_explicit(&removed, memory_order_acquire);
			struct object *object = walk->objects[i];

			if (!evc_walk_will_call(walk, i))
				continue;
			call(object, before);
			called[object->number]++;
			if (object->number == 1)
				CHECK(evc_node_attach(nodes[moved], nodes[below], NULL) == EVC_OK);
		}
	} while (evc_walk_next(walk) == EVC_OK);
	evc_walk_end(walk);
	check_each_once(called, 0);
	return NULL;
}

/* 1 below 2 below 0, and 3 beside them. */
static pthread_t start(uint32_t *scope)
{
	set_up();
	CHECK(evc_node_attach(nodes[1], nodes[2], NULL) == EVC_OK);
	add_node(3, 0);
	add_handler(3, 3);
	return explorer_start(walk_and_change, scope);
}

/* The node is moved by its own handler, the one above it by the other thread. */
SCENARIO(tree_careful_raise)
{
	uint32_t scope = EVC_WALK_RAISE;
	pthread_t thread;

	moved = 2;
	below = 3;
	thread = start(&scope);
	add_node(4, -1);
	CHECK(evc_node_attach(nodes[0], nodes[4], NULL) == EVC_OK);
	explorer_join(thread);
	tear_down(5, 4);
}

/* What is not to be called any more is let go of while the walk looks for places. */
static void wait_while_careful(uint32_t scope)
{
	pthread_t thread;

	moved = 3;
	below = 1;
	thread = start(&scope);
	CHECK(evc_handler_remove(handlers[0]) == EVC_OK);
	mark_removed(0);
	CHECK(evc_handler_remove_and_wait(handlers[1]) == EVC_OK);
	mark_removed(1);
	objects[1].called[0] = 0;
	CHECK(evc_handler_remove_and_wait(handlers[2]) == EVC_OK);
	mark_removed(2);
	objects[2].called[0] = 0;
	explorer_join(thread);
	tear_down(4, 4);
}

SCENARIO(tree_careful_wait)
{
	wait_while_careful(EVC_WALK_RAISE);
}

SCENARIO(tree_careful_wait_no_barrier)
{
	explorer_take_barrier_away();
	wait_while_careful(EVC_WALK_RAISE);
}
