/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Which handlers are called in which order, on one thread without changes meanwhile. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#define KEY UINT64_C(0x5001)

/*
 *        1
 *      / | \
 *     2  3  4        node n has the marks n (propagate), 10 + n (raise), 20 + n (capture)
 *    / \    |
 *   5   6   7
 */
struct family {
	struct evc_node *nodes[8];
	struct suite_mark marks[32];
};

static const char *make(struct family *family)
{
	static const unsigned parents[8] = { 0, 0, 1, 1, 1, 2, 2, 4 };

	*family = (struct family){ .nodes = { NULL } };
	for (unsigned i = 0; i < 32; i++)
		family->marks[i].id = i;
	for (unsigned i = 1; i < 8; i++) {
		EXPECT_NONE(suite_node(family->nodes[parents[i]], &family->nodes[i]));
		EXPECT_NONE(suite_handle(family->nodes[i], KEY, EVC_HANDLER_PROPAGATE,
					 &family->marks[i], NULL));
		EXPECT_NONE(suite_handle(family->nodes[i], KEY, EVC_HANDLER_RAISE,
					 &family->marks[10 + i], NULL));
		EXPECT_NONE(suite_handle(family->nodes[i], KEY, EVC_HANDLER_CAPTURE,
					 &family->marks[20 + i], NULL));
	}
	return NULL;
}

static const char *end(struct family *family)
{
	for (unsigned i = 7; i > 0; i--)
		evc_node_end(family->nodes[i]);
	for (unsigned i = 1; i < 8; i++)
		for (unsigned part = 0; part < 30; part += 10)
			EXPECT_EQUAL(family->marks[part + i].releases, 1, "releases of a handler");
	return NULL;
}

static const char *phases(void)
{
	struct suite_calls calls = { .count = 0 };
	struct family family;

	EXPECT_NONE(make(&family));
	EXPECT_OK(suite_raise(family.nodes[6], KEY, SUITE_ALL_PHASES, 0, &calls));
	EXPECT_NONE(suite_expect_calls(&calls, 21, 22, 26, 16, 12, 11, 1, 2, 5, 6, 3, 4, 7, 0));
	return end(&family);
}

static const char *scopes(void)
{
	static const uint32_t here = EVC_WALK_PROPAGATE | EVC_WALK_FROM_HERE;
	struct suite_calls calls = { .count = 0 };
	struct family family;

	EXPECT_NONE(make(&family));
	EXPECT_OK(suite_raise(family.nodes[5], KEY, EVC_WALK_RAISE, 0, &calls));
	EXPECT_NONE(suite_expect_calls(&calls, 15, 12, 11, 0));
	calls.count = 0;
	EXPECT_OK(suite_raise(family.nodes[2], KEY, here, 0, &calls));
	EXPECT_NONE(suite_expect_calls(&calls, 2, 5, 6, 0));
	calls.count = 0;
	EXPECT_OK(suite_raise(family.nodes[2], KEY, here | EVC_WALK_RAISE, 0, &calls));
	EXPECT_NONE(suite_expect_calls(&calls, 12, 11, 2, 5, 6, 0));
	calls.count = 0;
	EXPECT_OK(suite_raise(family.nodes[7], KEY, EVC_WALK_CAPTURE, 0, &calls));
	EXPECT_NONE(suite_expect_calls(&calls, 21, 24, 27, 0));
	calls.count = 0;
	EXPECT_OK(suite_raise(family.nodes[7], KEY, EVC_WALK_PROPAGATE, 0, &calls));
	EXPECT_NONE(suite_expect_calls(&calls, 1, 2, 5, 6, 3, 4, 7, 0));
	EXPECT_STATUS(suite_raise(family.nodes[7], KEY + 1, SUITE_ALL_PHASES, 0, &calls),
		      EVC_EMPTY);
	return end(&family);
}

static const char *consumed(void)
{
	static const unsigned order[] = { 21, 22, 26, 16, 12, 11, 1, 2, 5, 6, 3, 4, 7 };
	struct family family;

	EXPECT_NONE(make(&family));
	for (unsigned i = 0; i < 13; i++) {
		struct suite_calls calls = { .count = 0 };

		EXPECT_OK(suite_raise(family.nodes[6], KEY, SUITE_ALL_PHASES, order[i], &calls));
		EXPECT_EQUAL(calls.count, i + 1, "calls until it was consumed");
		EXPECT_EQUAL(calls.ids[i], order[i], "the last call");
	}
	return end(&family);
}

static const char *within_a_node(void)
{
	static struct suite_mark marks[200];
	struct suite_calls calls = { .count = 0 };
	struct evc_node *root, *node;
	struct evc_walk *walk;
	unsigned next = 0;

	EXPECT_NONE(suite_node(NULL, &root));
	EXPECT_NONE(suite_node(root, &node));
	for (unsigned i = 0; i < 200; i++) {
		marks[i] = (struct suite_mark){ .id = i + 1 };
		EXPECT_NONE(suite_handle(node, 1 + i % 2,
					 i < 6 ? EVC_HANDLER_RAISE | EVC_HANDLER_CAPTURE
					       : EVC_HANDLER_PROPAGATE,
					 &marks[i], NULL));
	}
	EXPECT_OK(suite_raise(node, 1, EVC_WALK_RAISE | EVC_WALK_CAPTURE, 0, &calls));
	EXPECT_NONE(suite_expect_calls(&calls, 1, 3, 5, 1, 3, 5, 0));
	/* More than the first window holds. */
	EXPECT_OK(evc_walk_begin(node, 2, EVC_WALK_PROPAGATE, &walk));
	do {
		for (uint32_t i = 0; i < walk->count; i++, next++) {
			struct suite_mark *mark = evc_handler_object(walk->handlers[i]);

			EXPECT_EQUAL(mark->id, 8 + 2 * next, "the next handler");
			EXPECT(walk->objects[i] == mark, "the object of handler %u", next);
			EXPECT(evc_walk_will_call(walk, i), "a handler was refused");
		}
	} while (evc_walk_next(walk) == EVC_OK);
	evc_walk_end(walk);
	EXPECT_EQUAL(next, 97, "handlers of key 2");
	EXPECT_EQUAL(evc_node_remove_handlers(node, 1, EVC_HANDLER_CONSUME), 0, "handlers that consume");
	EXPECT_EQUAL(evc_node_remove_handlers(node, 1, EVC_HANDLER_RAISE), 3,
		     "handlers that are called on the way up, among others");
	EXPECT_EQUAL(evc_node_remove_handlers(node, 2, 0), 100, "handlers of that key");
	EXPECT_EQUAL(evc_node_remove_handlers(node, 0, 0), 97, "the other handlers");
	EXPECT_STATUS(suite_raise(node, 1, SUITE_ALL_PHASES, 0, NULL), EVC_EMPTY);
	for (unsigned i = 0; i < 200; i++)
		EXPECT_EQUAL(marks[i].releases, 1, "releases");
	evc_node_end(node);
	evc_node_end(root);
	return NULL;
}

/* Bits of masks are removed where that is cheap; in any case no handler is lost and none comes back. */
static const char *masks(void)
{
	static struct suite_mark marks[3];
	struct evc_node *root, *wide[20], *leaf;
	struct suite_calls calls = { .count = 0 };
	struct evc_handler *handler;

	for (unsigned i = 0; i < 3; i++)
		marks[i] = (struct suite_mark){ .id = i + 1 };
	EXPECT_NONE(suite_node(NULL, &root));
	for (unsigned i = 0; i < 20; i++)
		EXPECT_NONE(suite_node(root, &wide[i]));
	EXPECT_NONE(suite_node(wide[7], &leaf));
	EXPECT_NONE(suite_handle(leaf, KEY, EVC_HANDLER_PROPAGATE, &marks[0], &handler));
	EXPECT_OK(evc_handler_remove(handler));
	EXPECT_STATUS(evc_handler_remove(handler), EVC_NOT_FOUND);
	evc_handler_drop(handler);
	EXPECT_EQUAL(marks[0].releases, 1, "releases");
	EXPECT_STATUS(suite_raise(wide[3], KEY, SUITE_ALL_PHASES, 0, &calls), EVC_EMPTY);
	EXPECT_NONE(suite_handle(leaf, KEY, EVC_HANDLER_PROPAGATE, &marks[1], NULL));
	evc_node_detach(wide[7]);
	EXPECT_STATUS(suite_raise(wide[3], KEY, SUITE_ALL_PHASES, 0, &calls), EVC_EMPTY);
	EXPECT_NONE(suite_handle(leaf, KEY + 1, EVC_HANDLER_PROPAGATE, &marks[2], NULL));
	EXPECT_OK(evc_node_attach(wide[7], wide[9], NULL));
	EXPECT_OK(suite_raise(wide[3], KEY + 1, SUITE_ALL_PHASES, 0, &calls));
	EXPECT_OK(suite_raise(wide[3], KEY, SUITE_ALL_PHASES, 0, &calls));
	EXPECT_NONE(suite_expect_calls(&calls, 3, 2, 0));
	evc_node_end(leaf);
	for (unsigned i = 0; i < 20; i++)
		evc_node_end(wide[i]);
	evc_node_end(root);
	EXPECT_EQUAL(marks[1].releases + marks[2].releases, 2, "releases");
	return NULL;
}

static const char *moves(void)
{
	struct suite_calls calls = { .count = 0 };
	struct family family;
	void *former;
	int owner;

	EXPECT_NONE(make(&family));
	EXPECT_STATUS(evc_node_attach(family.nodes[1], family.nodes[7], &former),
		      EVC_NOT_PERMITTED);
	EXPECT_STATUS(evc_node_attach(family.nodes[2], family.nodes[2], NULL), EVC_NOT_PERMITTED);
	EXPECT_STATUS(evc_node_attach(family.nodes[7], family.nodes[7], NULL), EVC_NOT_PERMITTED);
	EXPECT_OK(evc_node_attach(family.nodes[2], family.nodes[7], &former));
	EXPECT_STATUS(evc_node_attach(family.nodes[4], family.nodes[5], NULL), EVC_NOT_PERMITTED);
	EXPECT_OK(suite_raise(family.nodes[6], KEY, SUITE_ALL_PHASES, 0, &calls));
	EXPECT_NONE(suite_expect_calls(&calls, 21, 24, 27, 22, 26, 16, 12, 17, 14, 11, 1, 3, 4, 7,
				       2, 5, 6, 0));
	/* It is attached where it already is: it becomes the last. */
	calls.count = 0;
	EXPECT_OK(evc_node_attach(family.nodes[3], family.nodes[1], &former));
	EXPECT_OK(evc_node_attach(family.nodes[5], family.nodes[2], &former));
	EXPECT_OK(suite_raise(family.nodes[1], KEY, EVC_WALK_PROPAGATE, 0, &calls));
	EXPECT_NONE(suite_expect_calls(&calls, 1, 4, 7, 2, 6, 5, 3, 0));
	evc_tree_lock();
	EXPECT(evc_node_parent(family.nodes[2]) == family.nodes[7], "the parent");
	EXPECT(evc_node_first_child(family.nodes[1]) == family.nodes[4], "the first child");
	EXPECT(evc_node_next_sibling(family.nodes[4]) == family.nodes[3], "its sibling");
	EXPECT(evc_node_next_sibling(family.nodes[3]) == NULL, "no further sibling");
	EXPECT(evc_node_next_sibling(family.nodes[1]) == NULL, "no sibling of a root");
	EXPECT_EQUAL(evc_node_child_count(family.nodes[2]), 2, "children");
	EXPECT_EQUAL(evc_handler_key(evc_handler_next(evc_node_first_handler(family.nodes[2]))),
		     KEY, "key of the second handler");
	evc_tree_unlock();
	EXPECT_NONE(end(&family));
	/* Owners. */
	{
		struct evc_node_options options = { sizeof(options), &owner, NULL };
		struct evc_node *parent, *child;

		EXPECT_OK(evc_node_create(&options, &parent));
		EXPECT_OK(evc_node_create(NULL, &child));
		EXPECT(evc_node_detach(child) == NULL, "no owner of no parent");
		EXPECT_OK(evc_node_attach(child, parent, &former));
		EXPECT(former == NULL, "there was no former parent");
		EXPECT_OK(evc_node_attach(child, parent, &former));
		EXPECT(former == &owner, "the former parent's owner");
		EXPECT(evc_node_end(child) == &owner, "the parent's owner");
		EXPECT(evc_node_end(parent) == NULL, "no owner of no parent");
	}
	return NULL;
}

static const char *arguments(void)
{
	struct evc_handler *handler;
	struct evc_node *node;
	struct evc_walk *walk;

	EXPECT_STATUS(evc_node_create(NULL, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_OK(evc_node_create(NULL, &node));
	EXPECT_STATUS(evc_node_attach(node, NULL, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_node_add_handler(node, 0, EVC_HANDLER_RAISE, NULL, &handler),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_node_add_handler(node, 1, EVC_HANDLER_CONSUME, NULL, &handler),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_walk_begin(node, 0, EVC_WALK_RAISE, &walk), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_walk_begin(node, 1, EVC_WALK_FROM_HERE, &walk), EVC_INVALID_ARGUMENT);
	evc_node_end(node);
	return NULL;
}

#define SPINE 56u

/*
 * A comb: each node of a spine has the next one as its first child and a leaf as its second, so that the way
 * back has a sibling at each node, more than a walk notes. `before` handlers come first and form the first
 * chunk, so that the leaves are collected one after the other in the second; `step`: which leaves have a
 * handler, from the deepest on.
 */
static const char *comb(unsigned before, unsigned step)
{
	static struct suite_mark marks[SUITE_LOG];
	struct evc_node *nodes[2 * SPINE], *root, *spine;
	struct suite_calls calls = { .count = 0 };
	unsigned expected[SUITE_LOG], count = 0, made = 0;

	EXPECT_NONE(suite_node(NULL, &root));
	EXPECT_NONE(suite_node(root, &spine));
	for (unsigned i = 0; i < before; i++) {
		marks[count] = (struct suite_mark){ .id = count + 1 };
		expected[count] = count + 1;
		EXPECT_NONE(suite_handle(spine, KEY, EVC_HANDLER_PROPAGATE, &marks[count], NULL));
		count++;
	}
	nodes[made++] = spine;
	for (unsigned i = 0; i < SPINE; i++) {
		unsigned leaf = made + 1;

		EXPECT_NONE(suite_node(spine, &nodes[made]));
		EXPECT_NONE(suite_node(spine, &nodes[leaf]));
		spine = nodes[made];
		made += 2;
		if (made == 2 * SPINE - 1)
			break;
	}
	for (unsigned leaf = made - 1; leaf >= 2; leaf -= 2) {
		if (((made - 1 - leaf) / 2) % step != 0 && leaf != 2)
			continue;
		marks[count] = (struct suite_mark){ .id = count + 1 };
		expected[count] = count + 1;
		EXPECT_NONE(suite_handle(nodes[leaf], KEY, EVC_HANDLER_PROPAGATE, &marks[count],
					 NULL));
		count++;
	}
	EXPECT(count <= SUITE_LOG, "too many for the log");
	for (unsigned round = 0; round < 2; round++) {
		calls.count = 0;
		EXPECT_OK(suite_raise(root, KEY, EVC_WALK_PROPAGATE, 0, &calls));
		EXPECT_EQUAL(calls.count, count, "calls");
		for (unsigned i = 0; i < count; i++)
			EXPECT_EQUAL(calls.ids[i], expected[i], "the next call");
	}
	for (unsigned i = made; i > 0; i--)
		evc_node_end(nodes[i - 1]);
	evc_node_end(root);
	return NULL;
}

static const char *combs(void)
{
	for (unsigned before = 0; before <= 5; before++)
		for (unsigned step = 1; step <= SPINE; step++)
			EXPECT_NONE(comb(before, step));
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "trees: capture, raise and propagate go in their order", phases },
	{ "trees: a walk goes where its scope says", scopes },
	{ "trees: consuming ends an event at each place", consumed },
	{ "trees: handlers of a node are called as they were added, and removed by key and mode",
	  within_a_node },
	{ "trees: nothing is lost by masks, stale ones included", masks },
	{ "trees: a node moves with all below it, and never below itself", moves },
	{ "trees: a walk comes back from a deep comb, tooth by tooth", combs },
	{ "D12 trees: what breaks a rule is refused", arguments },
};
SUITE_GROUP(suite_tree_order, tests);
#endif
