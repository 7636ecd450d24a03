/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The depth of a node, read while the nodes above it move and end.
 */
#include "tree.h"

/* A depth is that of a place that the node had. */
static void *read_depth(void *unused)
{
	for (unsigned i = 0; i < 2; i++) {
		size_t depth = evc_node_depth(nodes[1]);

		if (depth != 1 && depth != 3)
			explorer_fail("a depth of %zu", depth);
	}
	return unused;
}

SCENARIO(tree_depth)
{
	pthread_t thread;

	add_node(0, -1);
	add_node(1, 0);
	add_node(2, 0);
	add_node(3, 2);
	thread = explorer_start(read_depth, NULL);
	CHECK(evc_node_attach(nodes[1], nodes[3], NULL) == EVC_OK);
	CHECK(evc_node_attach(nodes[1], nodes[0], NULL) == EVC_OK);
	explorer_join(thread);
	tear_down(4, 0);
}

/* While nodes end beside it. */
SCENARIO(tree_depth_and_end)
{
	pthread_t thread;

	add_node(0, -1);
	add_node(2, 0);
	add_node(3, 2);
	add_node(1, 3);
	thread = explorer_start(read_depth, NULL);
	CHECK(evc_node_attach(nodes[1], nodes[0], NULL) == EVC_OK);
	(void)evc_node_end(nodes[3]);
	nodes[3] = NULL;
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	explorer_join(thread);
	tear_down(2, 0);
}
