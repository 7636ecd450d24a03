/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Walks of more than one chunk. The first chunk is that of a node with four handlers, where the walk
 * continues afterwards, whatever happened to the node, to those above it, and to those beside it. The change
 * begins with the last call of that chunk.
 */
#include "tree.h"

static uint32_t first = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3;
static const uint32_t first_and_last = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4;

/* The root, a node, below that one with four handlers; and the last one beside them. */
static void set_up_chunks(void)
{
	add_node(0, -1);
	add_node(3, 0);
	add_node(1, 3);
	for (unsigned i = 0; i < 4; i++)
		add_handler(1, i);
	add_node(2, 0);
	add_handler(2, 4);
}

static void walk_while(void *(*change)(void *), uint32_t those)
{
	set_up_chunks();
	start_other_at(3, change);
	(void)walk_all(&those);
	explorer_join(other_thread);
}

static void *add(void *unused)
{
	add_node(4, 3);
	add_handler(4, 5);
	return unused;
}

SCENARIO(tree_chunks_add)
{
	walk_while(add, first_and_last);
	tear_down(5, 6);
}

/* Those above move. */
static void *move(void *unused)
{
	CHECK(evc_node_attach(nodes[3], nodes[2], NULL) == EVC_OK);
	return unused;
}

SCENARIO(tree_chunks_move)
{
	walk_while(move, first_and_last);
	tear_down(4, 5);
}

/* The one above ends: a walk that continues from below must not read it. */
static void *end_above(void *unused)
{
	(void)evc_node_end(nodes[3]);
	nodes[3] = NULL;
	return unused;
}

SCENARIO(tree_chunks_end_above)
{
	walk_while(end_above, first_and_last);
	tear_down(4, 5);
}

/* The one where the walk stands ends. */
static void *end_position(void *unused)
{
	(void)evc_node_end(nodes[1]);
	nodes[1] = NULL;
	return unused;
}

SCENARIO(tree_chunks_end)
{
	walk_while(end_position, first_and_last);
	tear_down(4, 5);
}

/* It moves, for the second time, so that its link goes without it. */
static void *move_position(void *unused)
{
	CHECK(evc_node_attach(nodes[1], nodes[2], NULL) == EVC_OK);
	return unused;
}

SCENARIO(tree_chunks_leave)
{
	set_up_chunks();
	CHECK(evc_node_attach(nodes[1], nodes[0], NULL) == EVC_OK);
	CHECK(evc_node_attach(nodes[2], nodes[0], NULL) == EVC_OK);
	start_other_at(3, move_position);
	(void)walk_all((void *)(uintptr_t)&first_and_last);
	explorer_join(other_thread);
	tear_down(4, 5);
}

/* The same with handlers that the second chunk has, for which the window grows. */
static void *end_last(void *unused)
{
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	return unused;
}

SCENARIO(tree_chunks_end_last)
{
	walk_while(end_last, first);
	tear_down(4, 5);
}

/* The root ends, with the first chunk; the next walk has another root. */
static void *end_root(void *unused)
{
	(void)evc_node_end(nodes[0]);
	nodes[0] = NULL;
	return unused;
}

SCENARIO(tree_chunks_end_root)
{
	uint32_t called[OBJECTS] = { 0 }, again[OBJECTS] = { 0 };

	set_up_chunks();
	start_other_at(3, end_root);
	walk_from(2, EVC_WALK_PROPAGATE, called);
	check_each_once(called, first);
	walk_from(2, EVC_WALK_PROPAGATE, again);
	check_each_once(again, 0);
	explorer_join(other_thread);
	tear_down(4, 5);
}

/*
 * While the walk still raises: the first chunk of the propagation, and where the next one begins, are found
 * meanwhile.
 */
SCENARIO(tree_chunks_end_above_early)
{
	uint32_t called[OBJECTS] = { 0 };

	set_up_chunks();
	add_handler(0, 5);
	start_other_at(5, end_above);
	walk_from(0, EVC_WALK_RAISE | EVC_WALK_PROPAGATE, called);
	CHECK(called[5] == 2 && called[4] == 1);
	explorer_join(other_thread);
	tear_down(4, 6);
}

/*
 * The next walk reuses what this one has found, chunk by chunk, while the node where the first chunk ends moves. The walk
 * may have missed the change before that one.
 */
static void *attach_and_move(void *unused)
{
	CHECK(evc_node_attach(nodes[4], nodes[2], NULL) == EVC_OK);
	return move_position(unused);
}

SCENARIO(tree_chunks_cached)
{
	uint32_t called[OBJECTS] = { 0 };

	set_up_chunks();
	add_node(4, -1);
	(void)walk_all((void *)(uintptr_t)&first_and_last);
	other_thread = explorer_start(attach_and_move, NULL);
	walk_from(0, EVC_WALK_PROPAGATE, called);
	CHECK(called[4] == 1);
	explorer_join(other_thread);
	tear_down(5, 5);
}
