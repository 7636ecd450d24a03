/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The depth of a node, as of one moment, whatever others move, and without taking the lock. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include <string.h>

#define KEY UINT64_C(51)
#define CHAIN 6u
#define MOVES SUITE_SCALE(200000u)

static struct {
	/* Each node is above the next. */
	struct evc_node *chain[CHAIN];
	struct evc_node *root, *middle, *moving, *leaf;
	_Atomic uint64_t is_over, wrong;
} scene;

static const char *set_up(void)
{
	memset(&scene, 0, sizeof(scene));
	for (unsigned i = 0; i < CHAIN; i++)
		EXPECT_NONE(suite_node(i > 0 ? scene.chain[i - 1] : NULL, &scene.chain[i]));
	EXPECT_NONE(suite_node(NULL, &scene.root));
	EXPECT_NONE(suite_node(scene.root, &scene.middle));
	EXPECT_NONE(suite_node(scene.middle, &scene.moving));
	EXPECT_NONE(suite_node(scene.moving, &scene.leaf));
	return NULL;
}

static void tear_down(void)
{
	evc_node_end(scene.leaf);
	evc_node_end(scene.moving);
	evc_node_end(scene.middle);
	evc_node_end(scene.root);
	for (unsigned i = CHAIN; i > 0; i--)
		evc_node_end(scene.chain[i - 1]);
}

static void detach_and_ask(struct suite_mark *mark)
{
	struct evc_node **nodes = mark->context;

	/* The depth of a node whose handler runs, and which ends meanwhile. */
	mark->id = (unsigned)evc_node_depth(nodes[1]);
	(void)evc_node_detach(nodes[1]);
	mark->id = 10 * mark->id + (unsigned)evc_node_depth(nodes[1]);
	if (evc_node_attach(nodes[1], nodes[0], NULL) != EVC_OK)
		return;
	mark->id = 10 * mark->id + (unsigned)evc_node_depth(nodes[1]);
	evc_node_end(nodes[1]);
	mark->id = 10 * mark->id + (unsigned)evc_node_depth(nodes[1]);
}

static const char *as_it_is(void)
{
	struct evc_node *nodes[2];
	struct suite_mark mark = { .act = detach_and_ask, .context = nodes };

	EXPECT_NONE(set_up());
	for (unsigned i = 0; i < CHAIN; i++)
		EXPECT_EQUAL(evc_node_depth(scene.chain[i]), i, "nodes above");
	EXPECT_OK(evc_node_attach(scene.moving, scene.chain[4], NULL));
	EXPECT_EQUAL(evc_node_depth(scene.leaf), 6, "nodes above one that was moved");
	(void)evc_node_detach(scene.chain[4]);
	EXPECT_EQUAL(evc_node_depth(scene.leaf), 2, "nodes above one whose tree was cut");
	EXPECT_OK(evc_node_attach(scene.chain[4], scene.chain[3], NULL));
	nodes[0] = scene.root;
	EXPECT_NONE(suite_node(nodes[0], &nodes[1]));
	EXPECT_NONE(suite_handle(nodes[1], KEY, EVC_HANDLER_RAISE, &mark, NULL));
	EXPECT_OK(suite_raise(nodes[1], KEY, EVC_WALK_RAISE, 0, NULL));
	EXPECT_EQUAL(mark.id, 1010, "depths of a node that is detached, attached and ended");
	EXPECT_EQUAL(mark.releases, 1, "releases");
	tear_down();
	return NULL;
}

/* The leaf is at depth 3 or 7; at 2 only if its way was read partly before and partly after the moves. */
static void *asks(void *unused)
{
	while (!atomic_load(&scene.is_over)) {
		size_t depth = evc_node_depth(scene.leaf);

		if (depth != 3 && depth != 7)
			atomic_fetch_add(&scene.wrong, 1);
	}
	return unused;
}

static const char *move(void)
{
	for (unsigned i = 0; i < MOVES; i++) {
		EXPECT_OK(evc_node_attach(scene.moving, scene.chain[CHAIN - 1], NULL));
		(void)evc_node_detach(scene.middle);
		/* Another node, perhaps at the same address. */
		if (i % 2 == 0) {
			evc_node_end(scene.middle);
			EXPECT_NONE(suite_node(NULL, &scene.middle));
		}
		EXPECT_OK(evc_node_attach(scene.middle, scene.root, NULL));
		EXPECT_OK(evc_node_attach(scene.moving, scene.middle, NULL));
	}
	return NULL;
}

static const char *at_one_moment(void)
{
	const char *message;
	pthread_t threads[2];

	EXPECT_NONE(set_up());
	for (unsigned i = 0; i < 2; i++)
		EXPECT_EQUAL(pthread_create(&threads[i], NULL, asks, NULL), 0, "thread");
	message = move();
	atomic_store(&scene.is_over, 1);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	EXPECT_NONE(message);
	EXPECT_EQUAL(scene.wrong, 0, "depths that the leaf never had");
	tear_down();
	return NULL;
}

static void *asks_once(void *opened)
{
	if (evc_node_depth(scene.leaf) == 3)
		suite_gate_open(opened);
	return NULL;
}

static const char *beside_the_lock(void)
{
	struct suite_gate asked = SUITE_GATE;
	pthread_t thread;
	bool is_done;

	EXPECT_NONE(set_up());
	evc_tree_lock();
	EXPECT_EQUAL(pthread_create(&thread, NULL, asks_once, &asked), 0, "thread");
	is_done = suite_gate_pass(&asked);
	evc_tree_unlock();
	pthread_join(thread, NULL);
	EXPECT(is_done, "who asks waits for the mutex of the trees");
	tear_down();
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "trees: the depth of a node is that of its place, and none once it has ended", as_it_is },
	{ "trees: the depth of a node is one that it had, while others move what is above it", at_one_moment },
	{ "trees: the depth of a node is had while another has the mutex", beside_the_lock },
};
SUITE_GROUP(suite_tree_depth, tests);
#endif
