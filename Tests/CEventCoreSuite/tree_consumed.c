/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Consuming an event stops the walk: handlers behind it are not even collected, except the rest of a chunk.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include "tree/tree_collect.h"

#define KEY UINT64_C(41)
#define NODES 1000u

static struct evc_node *nodes[NODES];
static struct suite_mark marks[NODES];

/* Each node has `children` children, in the order of their indices: 1 makes a chain. */
static const char *make(unsigned children)
{
	for (unsigned i = 0; i < NODES; i++) {
		marks[i] = (struct suite_mark){ .id = i + 1 };
		EXPECT_NONE(suite_node(i == 0 ? NULL : nodes[(i - 1) / children], &nodes[i]));
		EXPECT_NONE(suite_handle(nodes[i], KEY, EVC_HANDLER_PROPAGATE, &marks[i], NULL));
	}
	return NULL;
}

static void end(void)
{
	for (unsigned i = NODES; i > 0; i--)
		evc_node_end(nodes[i - 1]);
}

/* How many handlers a raise at a node had collected when the `calls`-th was called. */
static const char *collect(struct evc_node *node, unsigned calls, unsigned *collected)
{
	struct evc_walk *walk;
	unsigned called = 0;

	EXPECT_OK(evc_walk_begin(node, KEY, SUITE_ALL_PHASES, &walk));
	for (;;) {
		for (uint32_t i = 0; i < walk->count; i++) {
			EXPECT(evc_walk_will_call(walk, i), "a handler is refused");
			if (++called < calls)
				continue;
			*collected = atomic_load(&((struct evc_tree_walk *)(void *)walk)->published);
			evc_walk_end(walk);
			return NULL;
		}
		EXPECT_OK(evc_walk_next(walk));
	}
}

static const char *consumed(void)
{
	static const unsigned shapes[] = { 1, 2, 10, NODES };

	for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		struct suite_mark other = { .id = NODES + 1 };
		unsigned collected;

		EXPECT_NONE(make(shapes[s]));
		/* Twice: the second raise uses what the first one, and then a complete one, has found. */
		for (unsigned lap = 0; lap < 4; lap++) {
			/* The second and the third lap take from the cache, and look for none. */
			const unsigned chunk = lap == 1 || lap == 2 ? EVC_CACHED_CHUNK : EVC_CHUNK;

			for (unsigned calls = 1; calls < NODES; calls += calls < 10 ? 1 : 97) {
				EXPECT_NONE(collect(nodes[0], calls, &collected));
				EXPECT(collected >= calls && collected < calls + chunk,
				       "%u children each: %u calls, %u collected", shapes[s], calls,
				       collected);
			}
			/* What the raises before have found. */
			EXPECT_NONE(collect(nodes[0], 1, &collected));
			EXPECT(collected <= EVC_CACHED_CHUNK, "one call, %u collected", collected);
			if (lap == 1) {
				EXPECT_NONE(collect(nodes[0], NODES, &collected));
				EXPECT_EQUAL(collected, NODES, "collected for all");
			}
			/* What was found before is outdated. */
			if (lap == 2)
				EXPECT_NONE(suite_handle(nodes[7], KEY + 1, EVC_HANDLER_RAISE,
							 &other, NULL));
		}
		end();
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "trees: an event that is consumed early has not looked for those behind, but for a chunk",
	  consumed },
};
SUITE_GROUP(suite_tree_consumed, tests);
#endif
