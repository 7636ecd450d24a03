/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* When handlers are released: promptly, once, and whichever handler does it. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include "tree/tree_private.h"

#include <stdlib.h>
#include <string.h>

#define KEY UINT64_C(9)
#define BOTH (EVC_WALK_RAISE | EVC_WALK_PROPAGATE)

/* root with five children; every node has a handler that does something when it is called */
struct row {
	struct evc_node *root, *children[5];
	struct suite_mark marks[6];
	struct evc_handler *handlers[6];
	unsigned at;
	void (*act)(struct row *row, unsigned id);
	/* How many were released when the handler had acted. */
	uint64_t released;
	const char *message;
};

static uint64_t releases(struct row *row)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < 6; i++)
		count += atomic_load_explicit(&row->marks[i].releases, memory_order_acquire);
	return count;
}

static void act(struct suite_mark *mark)
{
	struct row *row = mark->context;

	if (mark->id != row->at)
		return;
	row->act(row, mark->id);
	row->released = releases(row);
}

static const char *make(struct row *row, unsigned at, void (*what)(struct row *, unsigned))
{
	memset(row, 0, sizeof(*row));
	row->at = at;
	row->act = what;
	EXPECT_NONE(suite_node(NULL, &row->root));
	for (unsigned i = 0; i < 6; i++) {
		row->marks[i] = (struct suite_mark){ .id = i + 1, .act = act, .context = row };
		if (i > 0)
			EXPECT_NONE(suite_node(row->root, &row->children[i - 1]));
		EXPECT_NONE(suite_handle(i > 0 ? row->children[i - 1] : row->root, KEY,
					 EVC_HANDLER_PROPAGATE, &row->marks[i],
					 &row->handlers[i]));
	}
	return NULL;
}

static const char *end(struct row *row)
{
	for (unsigned i = 0; i < 5; i++)
		if (row->children[i] != NULL)
			evc_node_end(row->children[i]);
	if (row->root != NULL)
		evc_node_end(row->root);
	for (unsigned i = 0; i < 6; i++) {
		evc_handler_drop(row->handlers[i]);
		EXPECT_EQUAL(row->marks[i].releases, 1, "releases of a handler");
	}
	return row->message;
}

static void remove_itself(struct row *row, unsigned id)
{
	if (evc_handler_remove_and_wait(row->handlers[id - 1]) != EVC_NOT_PERMITTED)
		row->message = "waiting inside of the handler itself was not refused";
	if (evc_handler_remove(row->handlers[id - 1]) != EVC_OK)
		row->message = "the handler could not remove itself";
}

static void remove_next(struct row *row, unsigned id)
{
	if (evc_handler_remove_and_wait(row->handlers[id]) != EVC_OK)
		row->message = "the next handler could not be removed";
}

static void remove_last(struct row *row, unsigned id)
{
	(void)id;
	if (evc_handler_remove(row->handlers[5]) != EVC_OK)
		row->message = "the last handler could not be removed";
}

static void end_itself(struct row *row, unsigned id)
{
	evc_node_end(row->children[id - 2]);
	row->children[id - 2] = NULL;
}

static void end_root(struct row *row, unsigned id)
{
	(void)id;
	evc_node_end(row->root);
	row->root = NULL;
}

static void detach_two(struct row *row, unsigned id)
{
	(void)id;
	evc_node_detach(row->children[2]);
	evc_node_detach(row->children[4]);
}

static void attach_next(struct row *row, unsigned id)
{
	struct evc_node *node;

	(void)id;
	if (suite_node(row->root, &node) != NULL || evc_node_attach(node, row->root, NULL) != EVC_OK)
		row->message = "a node could not be attached";
	if (evc_node_attach(row->children[0], row->root, NULL) != EVC_OK)
		row->message = "a node could not be moved";
	evc_node_end(node);
}

/* The first four are collected first, the other two afterwards. */
static const char *inside(void)
{
	struct suite_calls calls = { .count = 0 };
	struct row row;

#define RAISE(at, what, released_inside, ...)                                                      \
	do {                                                                                       \
		calls.count = 0;                                                                   \
		EXPECT_NONE(make(&row, at, what));                                                 \
		EXPECT_OK(suite_raise(row.root, KEY, BOTH, 0, &calls));                            \
		EXPECT_NONE(suite_expect_calls(&calls, __VA_ARGS__, 0));                           \
		EXPECT_EQUAL(row.released, released_inside, #what ": released inside");            \
	} while (0)
#define AFTER(released_after)                                                                      \
	do {                                                                                       \
		EXPECT_EQUAL(releases(&row), released_after, "released after the raise");          \
		EXPECT_NONE(end(&row));                                                            \
	} while (0)

	for (unsigned at = 1; at <= 6; at++) {
		RAISE(at, remove_itself, 0, 1, 2, 3, 4, 5, 6);
		AFTER(1);
	}
	RAISE(1, remove_next, 0, 1, 3, 4, 5, 6);
	AFTER(1);
	RAISE(4, remove_next, 1, 1, 2, 3, 4, 6);
	AFTER(1);
	RAISE(1, remove_last, 1, 1, 2, 3, 4, 5);
	AFTER(1);
	for (unsigned at = 2; at <= 6; at++) {
		RAISE(at, end_itself, 0, 1, 2, 3, 4, 5, 6);
		AFTER(1);
	}
	RAISE(1, end_root, 0, 1);
	AFTER(1);
	RAISE(4, end_root, 1, 1, 2, 3, 4);
	AFTER(1);
	RAISE(1, detach_two, 0, 1, 2, 3, 5);
	AFTER(0);
	RAISE(5, detach_two, 0, 1, 2, 3, 4, 5);
	AFTER(0);
	RAISE(1, attach_next, 0, 1, 3, 4, 5, 6);
	AFTER(0);
	RAISE(2, attach_next, 0, 1, 2, 3, 4, 5, 6);
	AFTER(0);
	RAISE(6, attach_next, 0, 1, 2, 3, 4, 5, 6);
	AFTER(0);
#undef RAISE
#undef AFTER
	return NULL;
}

static void raise_again(struct row *row, unsigned id)
{
	static _Thread_local struct suite_calls inner;
	static _Thread_local unsigned depth;

	(void)id;
	if (depth == 3)
		return;
	depth++;
	inner.count = 0;
	if (suite_raise(row->root, KEY, BOTH, 0, &inner) != EVC_OK)
		row->message = "a raise in a handler failed";
	else if (suite_expect_calls(&inner, 1, 2, 3, 4, 5, 6, 0) != NULL && depth == 3)
		row->message = "a raise in a handler found others";
	depth--;
	if (depth == 0)
		remove_last(row, id);
}

static const char *nested(void)
{
	struct suite_calls calls = { .count = 0 };
	struct row row;

	EXPECT_NONE(make(&row, 3, raise_again));
	EXPECT_OK(suite_raise(row.root, KEY, BOTH, 0, &calls));
	EXPECT_NONE(suite_expect_calls(&calls, 1, 2, 3, 4, 5, 0));
	return end(&row);
}

/* A handler that does not return keeps its chunk and nothing else. */
static const char *stuck(void)
{
	struct suite_mark marks[10];
	struct evc_node *root, *nodes[10];
	struct evc_handler *handlers[10];
	struct evc_walk *walk;

	EXPECT_NONE(suite_node(NULL, &root));
	for (unsigned i = 0; i < 10; i++) {
		marks[i] = (struct suite_mark){ .id = i + 1 };
		EXPECT_NONE(suite_node(root, &nodes[i]));
		EXPECT_NONE(suite_handle(nodes[i], KEY, EVC_HANDLER_PROPAGATE, &marks[i],
					 &handlers[i]));
	}
	EXPECT_OK(evc_walk_begin(nodes[0], KEY, BOTH, &walk));
	EXPECT_EQUAL(walk->count, 4, "handlers of the first chunk");
	EXPECT(evc_walk_will_call(walk, 0) && evc_walk_will_call(walk, 1), "they are there");
	for (unsigned i = 0; i < 10; i++) {
		EXPECT_OK(evc_handler_remove(handlers[i]));
		evc_handler_drop(handlers[i]);
		EXPECT_EQUAL(marks[i].releases, i == 0 || i >= 4, "released at once");
	}
	EXPECT(!evc_walk_will_call(walk, 2), "it was removed");
	EXPECT_STATUS(evc_walk_next(walk), EVC_EMPTY);
	for (unsigned i = 0; i < 10; i++)
		EXPECT_EQUAL(marks[i].releases, 1, "released when the chunk had ended");
	evc_walk_end(walk);
	for (unsigned i = 0; i < 10; i++)
		evc_node_end(nodes[i]);
	evc_node_end(root);
	return NULL;
}

static const char *deep(void)
{
	const uint32_t count = SUITE_SCALE(1000000u);
	struct evc_node **nodes = malloc(count * sizeof(struct evc_node *));
	static struct suite_mark mark;

	mark = (struct suite_mark){ .id = 1 };
	EXPECT(nodes != NULL, "no memory");
	for (uint32_t i = 0; i < count; i++) {
		EXPECT_NONE(suite_node(i > 0 ? nodes[i - 1] : NULL, &nodes[i]));
		EXPECT_NONE(suite_handle(nodes[i], KEY, EVC_HANDLER_PROPAGATE | EVC_HANDLER_RAISE,
					 &mark, NULL));
	}
	EXPECT_OK(suite_raise(nodes[count - 1], KEY, BOTH, 0, NULL));
	EXPECT_EQUAL(mark.calls, 2 * (uint64_t)count, "calls");
	EXPECT_STATUS(evc_node_attach(nodes[0], nodes[count - 1], NULL), EVC_NOT_PERMITTED);
	for (uint32_t i = count; i > 0; i--)
		evc_node_end(nodes[i - 1]);
	EXPECT_EQUAL(mark.releases, count, "releases");
	free(nodes);
	return NULL;
}

static const char *warm(void)
{
	struct suite_allocations counts;
	struct row row;

	EXPECT_NONE(make(&row, 0, NULL));
	EXPECT_OK(suite_raise(row.root, KEY, BOTH, 0, NULL));
	suite_allocator_install(UINT64_MAX, 0);
	for (unsigned i = 0; i < 100; i++)
		EXPECT_OK(suite_raise(row.children[3], KEY, BOTH, 0, NULL));
	counts = suite_allocator_read();
	suite_allocator_restore();
	EXPECT_EQUAL(counts.calls, 0, "allocations of a warm raise");
	return end(&row);
}

static const struct evc_suite_test tests[] = {
	{ "D6 D7 D9 trees: handlers remove, end, detach and attach at each place", inside },
	{ "D7 trees: a raise in a handler is a walk within the walk", nested },
	{ "D9 trees: a handler that does not return holds its chunk and nothing else", stuck },
	{ "trees: a chain of 1,000,000 nodes raises, propagates and ends", deep },
	{ "trees: a warm raise allocates nothing", warm },
};
SUITE_GROUP(suite_tree_memory, tests);
#endif
