/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Places in a tree: a new node or handler takes the place of a removed one, and nodes move, during a walk. */
#include "tree.h"

static uint32_t at_root = 1u << 0;
static uint32_t at_root_and_own = 1u << 0 | 1u << 1;

/*
 * The node before the new one is removed, so that the walk finds the new one in its place. Another thread has
 * added it, whose barrier is not that of the thread that removes the former.
 */
static void *add_third(void *unused)
{
	add_node(3, 0);
	add_handler(3, 3);
	return unused;
}

SCENARIO(tree_add_and_leave)
{
	pthread_t threads[2];

	set_up();
	(void)evc_node_detach(nodes[2]);
	threads[0] = explorer_start(walk_all, &at_root);
	threads[1] = explorer_start(add_third, NULL);
	explorer_join(threads[1]);
	(void)evc_node_detach(nodes[1]);
	explorer_join(threads[0]);
	tear_down(4, 4);
}

/* The same behind a node that has children, which the walk comes back to. */
SCENARIO(tree_add_and_leave_behind)
{
	pthread_t thread;

	set_up();
	add_node(4, 1);
	add_handler(4, 3);
	thread = explorer_start(walk_all, &at_root_and_own);
	add_node(3, 0);
	add_handler(3, 4);
	(void)evc_node_detach(nodes[2]);
	explorer_join(thread);
	tear_down(5, 5);
}

/* The same of handlers. */
static void *add_handler_too(void *unused)
{
	add_handler(1, 3);
	return unused;
}

SCENARIO(tree_add_and_remove)
{
	pthread_t threads[2];

	set_up();
	threads[0] = explorer_start(walk_all, &at_root);
	threads[1] = explorer_start(add_handler_too, NULL);
	explorer_join(threads[1]);
	CHECK(evc_handler_remove(handlers[1]) == EVC_OK);
	mark_removed(1);
	explorer_join(threads[0]);
	tear_down(3, 4);
}

/*
 * A node is detached from another one, which afterwards moves below a third: the first node was never below
 * the third, and neither do its events get there. Its link is a second one, which is retired by itself.
 */
static void set_up_to_leave(void)
{
	set_up();
	add_node(3, 0);
	add_handler(3, 3);
	CHECK(evc_node_attach(nodes[1], nodes[3], NULL) == EVC_OK);
}

static void leave_and_sink(void)
{
	CHECK(evc_node_attach(nodes[1], nodes[0], NULL) == EVC_OK);
	CHECK(evc_node_attach(nodes[3], nodes[2], NULL) == EVC_OK);
}

static void *raise_past_third(void *scope)
{
	uint32_t called[OBJECTS] = { 0 };

	walk_from(1, *(uint32_t *)scope, called);
	check_each_once(called, at_root_and_own);
	if (called[2] != 0)
		explorer_fail("raised to where the node never was");
	return NULL;
}

static void raise_and_leave(uint32_t scope)
{
	pthread_t thread;

	set_up_to_leave();
	thread = explorer_start(raise_past_third, &scope);
	leave_and_sink();
	explorer_join(thread);
	tear_down(4, 4);
}

SCENARIO(tree_raise_and_leave)
{
	raise_and_leave(EVC_WALK_RAISE);
}

SCENARIO(tree_raise_from_here_and_leave)
{
	raise_and_leave(EVC_WALK_RAISE | EVC_WALK_FROM_HERE);
}

/* Captured on the way down, raised on the way up: both use the same path. */
static struct object both[4];

static void add_handler_of_both(unsigned node)
{
	both[node] = (struct object){ .number = node, .is_alive = 1 };
	CHECK(evc_node_add_handler(nodes[node], KEY, EVC_HANDLER_RAISE | EVC_HANDLER_CAPTURE, &both[node], NULL) ==
	      EVC_OK);
}

static void *capture_and_raise(void *unused)
{
	uint32_t called[OBJECTS] = { 0 };

	walk_from(1, EVC_WALK_RAISE | EVC_WALK_CAPTURE, called);
	for (unsigned i = 0; i < 4; i++)
		if (called[i] == 1 || (i < 2 && called[i] == 0))
			explorer_fail("captured and raised: %u at node %u", called[i], i);
	return unused;
}

SCENARIO(tree_raise_and_capture)
{
	static const struct evc_node_options no_options = { .size = sizeof(no_options) };
	pthread_t thread;

	for (unsigned i = 0; i < 4; i++) {
		CHECK(evc_node_create(&no_options, &nodes[i]) == EVC_OK);
		if (i > 0)
			CHECK(evc_node_attach(nodes[i], nodes[0], NULL) == EVC_OK);
		add_handler_of_both(i);
	}
	CHECK(evc_node_attach(nodes[1], nodes[3], NULL) == EVC_OK);
	thread = explorer_start(capture_and_raise, NULL);
	CHECK(evc_node_attach(nodes[1], nodes[2], NULL) == EVC_OK);
	explorer_join(thread);
	tear_down(4, 0);
}

static void *read_depth(void *unused)
{
	size_t depth = evc_node_depth(nodes[1]);

	if (depth != 1 && depth != 2)
		explorer_fail("a depth of %zu", depth);
	return unused;
}

SCENARIO(tree_depth_and_leave)
{
	pthread_t thread;

	set_up_to_leave();
	thread = explorer_start(read_depth, NULL);
	leave_and_sink();
	explorer_join(thread);
	tear_down(4, 4);
}

/* A node moves from one tree to another and back: the walk of its events ends at one of the two roots. */
static void *raise_to_one_root(void *unused)
{
	uint32_t called[OBJECTS] = { 0 };

	walk_from(1, EVC_WALK_RAISE, called);
	check_each_once(called, 1u << 1);
	if (called[0] + called[2] != 1)
		explorer_fail("raised to %u roots", called[0] + called[2]);
	return unused;
}

SCENARIO(tree_raise_and_move)
{
	pthread_t thread;

	set_up();
	(void)evc_node_detach(nodes[2]);
	thread = explorer_start(raise_to_one_root, NULL);
	for (unsigned i = 0; i < 3; i++)
		CHECK(evc_node_attach(nodes[1], nodes[i == 1 ? 0 : 2], NULL) == EVC_OK);
	explorer_join(thread);
	tear_down(3, 3);
}
