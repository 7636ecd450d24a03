/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Walks of more than one chunk: the first one is that of a node with four handlers, where the walk goes on afterwards
 * whatever became of the node, of those above it, and of those beside it.
 */
#include "tree.h"

/* Nobody else. */
static uint32_t last = 1u << 4;
static uint32_t first_and_last = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4;

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

SCENARIO(tree_chunks_add)
{
	pthread_t thread;

	set_up_chunks();
	thread = explorer_start(walk_all, &first_and_last);
	add_node(4, 3);
	add_handler(4, 5);
	explorer_join(thread);
	tear_down(5, 6);
}

/* Those above move. */
SCENARIO(tree_chunks_move)
{
	pthread_t thread;

	set_up_chunks();
	thread = explorer_start(walk_all, &last);
	CHECK(evc_node_attach(nodes[3], nodes[2], NULL) == EVC_OK);
	explorer_join(thread);
	tear_down(4, 5);
}

/* The one above ends: whoever goes on from below it must not look at it. */
SCENARIO(tree_chunks_end_above)
{
	pthread_t thread;

	set_up_chunks();
	thread = explorer_start(walk_all, &last);
	(void)evc_node_end(nodes[3]);
	nodes[3] = NULL;
	explorer_join(thread);
	tear_down(4, 5);
}

/* The one where the walk stands ends. */
SCENARIO(tree_chunks_end)
{
	pthread_t thread;

	set_up_chunks();
	thread = explorer_start(walk_all, &last);
	(void)evc_node_end(nodes[1]);
	nodes[1] = NULL;
	for (unsigned i = 0; i < 4; i++)
		mark_removed(i);
	explorer_join(thread);
	tear_down(4, 5);
}

/* Those of the second chunk are held as well. */
SCENARIO(tree_chunks_remove)
{
	pthread_t thread;

	set_up_chunks();
	thread = explorer_start(walk_all, &last);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(evc_handler_remove(handlers[i]) == EVC_OK);
		mark_removed(i);
	}
	(void)evc_node_end(nodes[1]);
	nodes[1] = NULL;
	mark_removed(2);
	mark_removed(3);
	explorer_join(thread);
	tear_down(4, 5);
}
