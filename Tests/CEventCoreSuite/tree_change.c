/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What handlers do to the tree through which their event is raised, on one thread; and a random mixture of
 * all of it against a model.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include <string.h>

#define KEY UINT64_C(77)
#define NODES 12u
#define STEPS 24u

/* Nodes, and their state in a model of twenty lines. */
struct world {
	struct evc_node *nodes[NODES];
	/* 0: none, else the parent's index + 1. */
	unsigned parent[NODES];
	bool has_ended[NODES];
	/* Joining order among siblings: the later, the larger. */
	unsigned joined[NODES];
	unsigned clock;
	struct suite_mark marks[NODES];
	struct evc_handler *handlers[NODES];
	bool is_handled[NODES];
	/* What the walk that is under way may still call, by the model. */
	bool may_call[NODES];
	unsigned walk_root;
	unsigned expected[NODES], expected_count, called_count;
	bool went_wrong;
	uint64_t random;
	unsigned changes_per_call;
};

static bool is_below(const struct world *world, unsigned node, unsigned above)
{
	while (node != above && world->parent[node] != 0)
		node = world->parent[node] - 1;
	return node == above;
}

/*
 * What leaves its place below the walk's root is not called any more; moving the root itself has no effect.
 */
static void forbid_below(struct world *world, unsigned node)
{
	for (unsigned i = 0; i < NODES; i++)
		if (is_below(world, i, node) &&
		    !(is_below(world, i, world->walk_root) &&
		      is_below(world, world->walk_root, node)))
			world->may_call[i] = false;
}

static void preorder(struct world *world, unsigned node)
{
	unsigned last = 0;

	if (world->is_handled[node])
		world->expected[world->expected_count++] = node;
	for (;;) {
		unsigned next = NODES;

		for (unsigned i = 0; i < NODES; i++)
			if (world->parent[i] == node + 1 && world->joined[i] > last &&
			    (next == NODES || world->joined[i] < world->joined[next]))
				next = i;
		if (next == NODES)
			return;
		last = world->joined[next];
		preorder(world, next);
	}
}

static void change(struct world *world)
{
	unsigned node = (unsigned)(suite_random(&world->random) % NODES);
	unsigned other = (unsigned)(suite_random(&world->random) % NODES);
	enum evc_status status;

	if (world->has_ended[node])
		return;
	switch (suite_random(&world->random) % 8) {
	case 0:
	case 1:
	case 2:
		if (world->has_ended[other])
			return;
		status = evc_node_attach(world->nodes[node], world->nodes[other], NULL);
		if (status != (is_below(world, other, node) ? EVC_NOT_PERMITTED : EVC_OK))
			world->went_wrong = true;
		if (status == EVC_OK) {
			forbid_below(world, node);
			world->parent[node] = other + 1;
			world->joined[node] = ++world->clock;
		}
		return;
	case 3:
	case 4:
		if (world->parent[node] != 0)
			forbid_below(world, node);
		evc_node_detach(world->nodes[node]);
		world->parent[node] = 0;
		return;
	case 5:
		if (world->is_handled[node]) {
			if (evc_handler_remove(world->handlers[node]) != EVC_OK)
				world->went_wrong = true;
			evc_handler_drop(world->handlers[node]);
			world->is_handled[node] = world->may_call[node] = false;
		}
		return;
	case 6:
		if (!world->is_handled[node]) {
			if (evc_node_add_handler(world->nodes[node], KEY, EVC_HANDLER_PROPAGATE,
						 &world->marks[node],
						 &world->handlers[node]) != EVC_OK)
				world->went_wrong = true;
			world->is_handled[node] = true;
		}
		return;
	default:
		/* Rarely, or no node would be left. */
		if (suite_random(&world->random) % 8 != 0)
			return;
		for (unsigned i = 0; i < NODES; i++) {
			if (world->parent[i] == node + 1) {
				forbid_below(world, i);
				world->parent[i] = 0;
			}
		}
		world->may_call[node] = false;
		world->parent[node] = 0;
		world->has_ended[node] = true;
		evc_node_end(world->nodes[node]);
		if (world->is_handled[node])
			evc_handler_drop(world->handlers[node]);
		world->is_handled[node] = false;
		return;
	}
}

static void act(struct suite_mark *mark)
{
	struct world *world = mark->context;

	/* Only those that may not be called any more are skipped. */
	while (world->called_count < world->expected_count &&
	       !world->may_call[world->expected[world->called_count]])
		world->called_count++;
	if (world->called_count == world->expected_count ||
	    world->expected[world->called_count] != mark->id - 1)
		world->went_wrong = true;
	world->called_count++;
	for (unsigned i = 0; i < world->changes_per_call; i++)
		change(world);
}

static const char *random_tree(uint64_t seed, unsigned changes_per_call)
{
	static struct world world;
	unsigned last = 0;

	memset(&world, 0, sizeof(world));
	world.random = seed;
	for (unsigned i = 0; i < NODES; i++) {
		world.marks[i] = (struct suite_mark){ .id = i + 1, .act = act, .context = &world };
		EXPECT_NONE(suite_node(NULL, &world.nodes[i]));
	}
	for (unsigned i = 0; i < 2 * NODES; i++)
		change(&world);
	world.changes_per_call = changes_per_call;
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned node = (unsigned)(suite_random(&world.random) % NODES);
		enum evc_status status;

		/* Often nothing has changed since the last raise at the same node. */
		if (step % 3 == 0)
			change(&world);
		else if (step % 3 == 1)
			node = last;
		last = node;
		if (world.has_ended[node])
			continue;
		for (world.walk_root = node; world.parent[world.walk_root] != 0;)
			world.walk_root = world.parent[world.walk_root] - 1;
		world.expected_count = world.called_count = 0;
		preorder(&world, world.walk_root);
		memset(world.may_call, true, sizeof(world.may_call));
		status = suite_raise(world.nodes[node], KEY, EVC_WALK_RAISE | EVC_WALK_PROPAGATE, 0,
				     NULL);
		EXPECT(status == EVC_OK || status == EVC_EMPTY, "a raise came to \"%s\"",
		       evc_status_text(status));
		while (world.called_count < world.expected_count &&
		       !world.may_call[world.expected[world.called_count]])
			world.called_count++;
		EXPECT(!world.went_wrong && world.called_count == world.expected_count,
		       "seed %llu, step %u, %u changes: call %u of %u is wrong",
		       (unsigned long long)seed, step, changes_per_call, world.called_count,
		       world.expected_count);
	}
	for (unsigned i = 0; i < NODES; i++) {
		if (world.is_handled[i])
			evc_handler_drop(world.handlers[i]);
		if (!world.has_ended[i])
			evc_node_end(world.nodes[i]);
	}
	return NULL;
}

static const char *random_trees(void)
{
	uint64_t seed = suite_seed();

	for (uint64_t i = 0; i < SUITE_SCALE(20000u); i++)
		EXPECT_NONE(random_tree(seed + i, (unsigned)(i % 4)));
	return NULL;
}

/*
 * A root with 150 children of two handlers each, at which events are raised again and again: what the last
 * walk found is reused up to where something changes.
 */
#define WIDE 150u

struct wide {
	struct evc_node *root, *children[WIDE];
	struct suite_mark marks[2 * WIDE];
	struct evc_handler *handlers[2 * WIDE];
	unsigned calls[2 * WIDE], count;
};

static const char *raise_wide(struct wide *wide, unsigned at, unsigned what)
{
	struct evc_walk *walk;

	wide->count = 0;
	EXPECT_OK(evc_walk_begin(wide->root, KEY, EVC_WALK_RAISE | EVC_WALK_PROPAGATE, &walk));
	do {
		for (uint32_t i = 0; i < walk->count; i++) {
			struct suite_mark *mark = walk->objects[i];

			if (!evc_walk_will_call(walk, i))
				continue;
			wide->calls[wide->count++] = mark->id;
			if (mark->id != at)
				continue;
			if (what == 0) {
				evc_walk_end(walk);
				return NULL;
			}
			/* A later one, or itself. */
			if (what == 1)
				EXPECT_OK(evc_handler_remove(wide->handlers[(at + 90) % (2 * WIDE)]));
			else if (what == 2)
				evc_node_detach(wide->children[(at / 2 + 20) % WIDE]);
			else if (what == 3)
				evc_node_detach(wide->children[at / 2]);
			else
				EXPECT_OK(evc_node_attach(wide->children[at / 2], wide->root, NULL));
		}
	} while (evc_walk_next(walk) == EVC_OK);
	evc_walk_end(walk);
	return NULL;
}

static const char *again(unsigned at, unsigned what)
{
	static struct wide wide;
	const unsigned child = what == 2 ? (at / 2 + 20) % WIDE : at / 2;
	unsigned next = 0;

	memset(&wide, 0, sizeof(wide));
	EXPECT_NONE(suite_node(NULL, &wide.root));
	for (unsigned i = 0; i < 2 * WIDE; i++) {
		wide.marks[i] = (struct suite_mark){ .id = i };
		if (i % 2 == 0)
			EXPECT_NONE(suite_node(wide.root, &wide.children[i / 2]));
		EXPECT_NONE(suite_handle(wide.children[i / 2], KEY, EVC_HANDLER_PROPAGATE,
					 &wide.marks[i], &wide.handlers[i]));
	}
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_NONE(raise_wide(&wide, at, 0));
		EXPECT_EQUAL(wide.count, at + 1, "calls until it was consumed");
	}
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_NONE(raise_wide(&wide, 2 * WIDE, 0));
		EXPECT_EQUAL(wide.count, 2 * WIDE, "calls where nothing changes");
	}
	EXPECT_NONE(raise_wide(&wide, at, what));
	for (unsigned i = 0; i < 2 * WIDE; i++) {
		if ((what == 1 && i == (at + 90) % (2 * WIDE) && i > at) ||
		    (what >= 2 && i / 2 == child && i > at))
			continue;
		EXPECT(next < wide.count && wide.calls[next] == i,
		       "change %u in call %u: call %u is not of %u", what, at, next, i);
		next++;
	}
	EXPECT_EQUAL(wide.count, next, "calls where something changes");
	EXPECT_NONE(raise_wide(&wide, 2 * WIDE, 0));
	EXPECT_EQUAL(wide.count, 2 * WIDE - (what == 1 ? 1 : what < 4 ? 2 : 0),
		     "calls after the change");
	for (unsigned i = 0; i < 2 * WIDE; i++)
		evc_handler_drop(wide.handlers[i]);
	for (unsigned i = 0; i < WIDE; i++)
		evc_node_end(wide.children[i]);
	evc_node_end(wide.root);
	for (unsigned i = 0; i < 2 * WIDE; i++)
		EXPECT_EQUAL(wide.marks[i].releases, 1, "releases");
	return NULL;
}

static const char *changes_between(void)
{
	for (unsigned at = 0; at < 2 * WIDE; at += SUITE_SLOW ? 21 : 1)
		for (unsigned what = 1; what <= 4; what++)
			EXPECT_NONE(again(at, what));
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 D6 trees: what the last walk found is called again, up to where something changes",
	  changes_between },
	{ "D4 D6 D7 trees: random trees that their handlers change, against a model",
	  random_trees },
};
SUITE_GROUP(suite_tree_change, tests);
#endif
