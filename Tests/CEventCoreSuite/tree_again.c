/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Raises that use what the last raise of the same kind found, among raises of other kinds and changes. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#define NODES 6u
#define KEYS 12u
#define STEPS 20000u

static const uint32_t scopes[] = {
	EVC_WALK_RAISE, EVC_WALK_PROPAGATE, EVC_WALK_RAISE | EVC_WALK_PROPAGATE
};

struct place {
	struct evc_handler *handler;
	struct suite_mark mark;
};

/* A chain in which each node is the child of the one before; for each node and key at most one handler. */
static struct evc_node *nodes[NODES];
static struct place places[NODES][KEYS];

/* The numbers of the handlers that a raise must call, in order. Returns how many. */
static unsigned expected(unsigned node, unsigned key, uint32_t scope, unsigned *ids)
{
	unsigned count = 0;

	if (scope & EVC_WALK_RAISE)
		for (unsigned i = node + 1; i > 0; i--)
			if (places[i - 1][key].handler != NULL)
				ids[count++] = places[i - 1][key].mark.id;
	if (scope & EVC_WALK_PROPAGATE)
		for (unsigned i = 0; i < NODES; i++)
			if (places[i][key].handler != NULL)
				ids[count++] = places[i][key].mark.id;
	return count;
}

static const char *raise_and_compare(unsigned node, unsigned key, uint32_t scope)
{
	unsigned ids[2 * NODES];
	unsigned count = expected(node, key, scope, ids);
	struct suite_calls calls = { .count = 0 };

	EXPECT_EQUAL(suite_raise(nodes[node], key + 1, scope, 0, &calls), count > 0 ? EVC_OK : EVC_EMPTY,
		     "the status");
	EXPECT_EQUAL(calls.count, count, "calls");
	for (unsigned i = 0; i < count; i++)
		EXPECT_EQUAL(calls.ids[i], ids[i], "a call");
	return NULL;
}

static const char *change(unsigned node, unsigned key)
{
	struct place *place = &places[node][key];

	if (place->handler == NULL) {
		place->mark = (struct suite_mark){ .id = node * KEYS + key + 1 };
		return suite_handle(nodes[node], key + 1, EVC_HANDLER_RAISE | EVC_HANDLER_PROPAGATE,
				    &place->mark, &place->handler);
	}
	EXPECT_OK(evc_handler_remove(place->handler));
	EXPECT_EQUAL(place->mark.releases, 1, "releases of a handler that no raise holds");
	evc_handler_drop(place->handler);
	place->handler = NULL;
	return NULL;
}

static const char *many_kinds(void)
{
	uint64_t random = suite_seed();

	for (unsigned i = 0; i < NODES; i++)
		EXPECT_NONE(suite_node(i == 0 ? NULL : nodes[i - 1], &nodes[i]));
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned node = (unsigned)(suite_random(&random) % NODES);
		unsigned key = (unsigned)(suite_random(&random) % KEYS);
		uint32_t scope = scopes[suite_random(&random) % 3];

		/* Long runs without a change, and some with many. */
		if (suite_random(&random) % (step / 1000 % 2 == 0 ? 50 : 3) == 0)
			EXPECT_NONE(change(node, key));
		/* Twice, since only the last raise is reused. */
		EXPECT_NONE(raise_and_compare(node, key, scope));
		EXPECT_NONE(raise_and_compare(node, key, scope));
	}
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned key = 0; key < KEYS; key++)
			if (places[i][key].handler != NULL)
				EXPECT_NONE(change(i, key));
	for (unsigned i = NODES; i > 0; i--)
		evc_node_end(nodes[i - 1]);
	return NULL;
}

/* Raises twice, and expects this many calls each time. */
static const char *expect_heard(struct evc_node *node, unsigned count)
{
	for (unsigned i = 0; i < 2; i++) {
		struct suite_calls calls = { .count = 0 };

		EXPECT_EQUAL(suite_raise(node, 1, EVC_WALK_RAISE | EVC_WALK_PROPAGATE, 0, &calls),
			     count > 0 ? EVC_OK : EVC_EMPTY, "the status");
		EXPECT_EQUAL(calls.count, count, "calls");
	}
	return NULL;
}

static const char *unheard(void)
{
	struct suite_mark mark = { .id = 1 }, above_mark = { .id = 2 };
	struct evc_handler *handler, *above;
	struct evc_node *root, *node;

	EXPECT_NONE(suite_node(NULL, &root));
	EXPECT_NONE(suite_node(NULL, &node));
	EXPECT_NONE(suite_handle(root, 1, EVC_HANDLER_RAISE, &above_mark, &above));
	/*
	 * Each change takes effect with the next raise, whether handlers are added or removed or the way to
	 * them changes.
	 */
	EXPECT_NONE(expect_heard(node, 0));
	EXPECT_NONE(suite_handle(node, 1, EVC_HANDLER_PROPAGATE, &mark, &handler));
	EXPECT_NONE(expect_heard(node, 1));
	EXPECT_OK(evc_handler_remove(handler));
	evc_handler_drop(handler);
	EXPECT_NONE(expect_heard(node, 0));
	EXPECT_OK(evc_node_attach(node, root, NULL));
	EXPECT_NONE(expect_heard(node, 1));
	evc_node_detach(node);
	EXPECT_NONE(expect_heard(node, 0));
	/* An event of another type is a different raise. */
	EXPECT_NONE(suite_handle(node, 2, EVC_HANDLER_PROPAGATE, &mark, &handler));
	EXPECT_NONE(expect_heard(node, 0));
	evc_handler_drop(handler);
	evc_handler_drop(above);
	evc_node_end(node);
	evc_node_end(root);
	return NULL;
}

/* Nodes that are made and ended at the same address, as reused memory makes them. */
static const char *unheard_at_an_address(void)
{
	struct suite_mark mark = { .id = 1 };
	struct evc_handler *handler;
	struct evc_node *node;

	for (unsigned i = 0; i < 100; i++) {
		EXPECT_NONE(suite_node(NULL, &node));
		EXPECT_NONE(expect_heard(node, 0));
		evc_node_end(node);
		EXPECT_NONE(suite_node(NULL, &node));
		EXPECT_NONE(suite_handle(node, 1, EVC_HANDLER_RAISE, &mark, &handler));
		EXPECT_NONE(expect_heard(node, 1));
		evc_handler_drop(handler);
		evc_node_end(node);
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "raises of 216 kinds, with changes between: each calls what is there, in order", many_kinds },
	{ "an event without a handler is delivered as soon as one is added", unheard },
	{ "events reach a new node at the address of an old one without handlers", unheard_at_an_address },
};
SUITE_GROUP(suite_tree_again, tests);
#endif
