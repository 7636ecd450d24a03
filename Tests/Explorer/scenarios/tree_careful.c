/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A handler changes the tree during its own walk, which from then on checks before each call whether the next
 * handler is still in its place; and another thread changes the tree as well.
 */
#include "tree.h"

static uint32_t none = 0;

/* 1 below 2 below 0, and 3 beside them; the events of 1 are raised. */
static void set_up_to_raise(void)
{
	set_up();
	CHECK(evc_node_attach(nodes[1], nodes[2], NULL) == EVC_OK);
	add_node(3, 0);
	add_handler(3, 3);
	add_node(4, 0);
}

/* The node above is moved by the handler, and by the other thread. */
static void *move_again(void *unused)
{
	CHECK(evc_node_attach(nodes[2], nodes[4], NULL) == EVC_OK);
	return unused;
}

static void move_and_start(void)
{
	start_other();
	CHECK(evc_node_attach(nodes[2], nodes[3], NULL) == EVC_OK);
}

SCENARIO(tree_careful_raise)
{
	set_up_to_raise();
	start_other_at(1, move_again);
	meanwhile = move_and_start;
	(void)walk_up(&none);
	explorer_join(other_thread);
	tear_down(5, 4);
}

/*
 * A handler that must not be called any more is released while the walk checks places, between the handler
 * that is waited for and the next one.
 */
static void *remove_and_wait(void *unused)
{
	CHECK(evc_handler_remove(handlers[0]) == EVC_OK);
	mark_removed(0);
	CHECK(evc_handler_remove_and_wait(handlers[1]) == EVC_OK);
	mark_removed(1);
	objects[1].called[0] = 0;
	return unused;
}

/* And that is the next one. */
static void *remove_and_wait_for_next(void *unused)
{
	CHECK(evc_handler_remove_and_wait(handlers[2]) == EVC_OK);
	mark_removed(2);
	objects[2].called[0] = 0;
	return unused;
}

static void change_and_start(void)
{
	CHECK(evc_node_attach(nodes[4], nodes[3], NULL) == EVC_OK);
	start_other();
}

static void raise_while(void *(*function)(void *))
{
	set_up_to_raise();
	start_other_at(1, function);
	meanwhile = change_and_start;
	(void)walk_up(&none);
	explorer_join(other_thread);
	tear_down(5, 4);
}

SCENARIO(tree_careful_wait)
{
	raise_while(remove_and_wait);
}

SCENARIO(tree_careful_wait_for_next)
{
	raise_while(remove_and_wait_for_next);
}

SCENARIO(tree_careful_wait_for_next_no_barrier)
{
	explorer_take_barrier_away();
	raise_while(remove_and_wait_for_next);
}
