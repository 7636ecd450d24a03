/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * When handlers are released and memory is freed: promptly, once, and whatever allocation fails.
 */
#ifdef EVC_URCU
#include "tree.h"

#include "tree_private.h"

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
	/* What was released when the handler had acted. */
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

/* A handler that does not return holds its chunk and nothing else. */
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

/* The call as often as it runs out of memory; anything else than that and EVC_OK is wrong. */
#define TRY(call)                                                                                  \
	do {                                                                                       \
		enum evc_status status_;                                                           \
		while ((status_ = (call)) == EVC_OUT_OF_MEMORY && *failures < patience)            \
			++*failures;                                                               \
		EXPECT(status_ == EVC_OK, "%s: found \"%s\"", #call, evc_status_text(status_));    \
	} while (0)

/* 500 handlers of two nodes, so that windows grow; a move; nested walks. */
static const char *live(uint64_t patience, uint64_t *failures)
{
	static struct suite_mark marks[500];
	struct evc_node_options options = { NULL, suite_release_mark };
	struct evc_node *root, *a, *b;
	struct evc_walk *walk, *inner;
	enum evc_status status;
	unsigned next = 0;

	TRY(evc_node_create(&options, &root));
	TRY(evc_node_create(&options, &a));
	TRY(evc_node_create(&options, &b));
	TRY(evc_node_attach(a, root, NULL));
	TRY(evc_node_attach(b, root, NULL));
	for (unsigned i = 0; i < 500; i++) {
		marks[i] = (struct suite_mark){ .id = i };
		TRY(evc_node_add_handler(i < 250 ? a : b, KEY, EVC_HANDLER_PROPAGATE, &marks[i],
					 NULL));
	}
	TRY(evc_node_attach(b, root, NULL));
	TRY(evc_walk_begin(b, KEY, BOTH, &walk));
	TRY(evc_walk_begin(b, KEY, BOTH, &inner));
	evc_walk_end(inner);
	do {
		for (uint32_t i = 0; i < walk->count; i++, next++) {
			struct suite_mark *mark = evc_handler_object(walk->handlers[i]);

			EXPECT_EQUAL(mark->id, next, "the next handler");
			EXPECT(evc_walk_will_call(walk, i), "a handler was refused");
		}
		while ((status = evc_walk_next(walk)) == EVC_OUT_OF_MEMORY && *failures < patience)
			++*failures;
	} while (status == EVC_OK);
	EXPECT_STATUS(status, EVC_EMPTY);
	evc_walk_end(walk);
	EXPECT_EQUAL(next, 500, "handlers");
	evc_node_end(b);
	evc_node_end(a);
	evc_node_end(root);
	for (unsigned i = 0; i < 500; i++)
		EXPECT_EQUAL(marks[i].releases, 1, "releases");
	return NULL;
}

struct life {
	uint64_t patience, failures;
	const char *message;
};

/* On a thread of its own, so that each life begins equally cold and ends with nothing. */
static void *live_on_thread(void *context)
{
	struct life *life = context;

	life->message = live(life->patience, &life->failures);
	if (life->message != NULL)
		life->message = strdup(life->message);
	return NULL;
}

static const char *live_once(uint64_t fail_at, uint64_t patience, bool *over)
{
	struct life life = { .patience = patience };
	struct suite_allocations counts;
	pthread_t thread;

	/* Nodes and handlers come from slabs: none is there, so that making one may fail, too. */
	evc_tree_give_back();
	suite_allocator_install(fail_at, patience);
	EXPECT(pthread_create(&thread, NULL, live_on_thread, &life) == 0, "no thread");
	pthread_join(thread, NULL);
	counts = suite_allocator_read();
	suite_allocator_restore();
	EXPECT(life.message == NULL, "allocation %llu failing, %llu times: %.200s",
	       (unsigned long long)fail_at, (unsigned long long)patience, life.message);
	EXPECT_EQUAL(life.failures, counts.failed, "statuses, beside failed allocations");
	EXPECT_EQUAL(counts.live, 0, "blocks that were not freed");
	*over = counts.failed == 0;
	return NULL;
}

/* A slab of each size, the thread's walker, two walks, windows of 256 and 1,024; or a block for each node and handler. */
#ifdef SUITE_ADDRESS_SANITIZER
#define SITES 500u
#else
#define SITES 6u
#endif

static const char *failing(void)
{
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	for (uint64_t patience = 1; patience <= 3; patience += 2) {
		bool over = false;
		uint64_t fail_at = 0;

		for (; !over && fail_at < 1000; fail_at++)
			EXPECT_NONE(live_once(fail_at, patience, &over));
		EXPECT(over && fail_at > SITES, "%llu sites were reached", (unsigned long long)fail_at);
	}
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

/* Slabs: slots of two sizes that lie apart, come back, and whose slabs are given back with the last of them. */
static const char *slots(void)
{
	enum { COUNT = 3 * (int)(EVC_TREE_SLAB / EVC_TREE_SMALL) };
	static unsigned char *small[COUNT], *large[COUNT];
	struct suite_allocations counts;

	evc_tree_give_back();
	suite_allocator_install(UINT64_MAX, 0);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < COUNT; i++) {
			small[i] = evc_tree_allocate(EVC_TREE_SMALL);
			large[i] = evc_tree_allocate(EVC_TREE_LARGE);
			EXPECT(small[i] != NULL && large[i] != NULL, "no memory");
			EXPECT((uintptr_t)small[i] % EVC_CACHE_LINE == 0 &&
				       (uintptr_t)large[i] % EVC_CACHE_LINE == 0,
			       "not on a line");
			memset(small[i], (int)(i & 127), EVC_TREE_SMALL);
			memset(large[i], (int)(i & 127) + 128, EVC_TREE_LARGE);
		}
		for (unsigned i = 0; i < COUNT; i++) {
			for (unsigned b = 0; b < EVC_TREE_SMALL; b++)
				EXPECT_EQUAL(small[i][b], i & 127, "a byte of a small one");
			for (unsigned b = 0; b < EVC_TREE_LARGE; b++)
				EXPECT_EQUAL(large[i][b], (i & 127) + 128, "a byte of a large one");
		}
		/* One after the other, and so that each slab is in use to the end. */
		for (unsigned i = 0; i < COUNT; i++) {
			unsigned at = round == 1 ? (unsigned)((i * UINT64_C(7919)) % COUNT) : i;

			evc_tree_free(small[at], EVC_TREE_SMALL);
			evc_tree_free(large[at], EVC_TREE_LARGE);
		}
		evc_tree_give_back();
		counts = suite_allocator_read();
		EXPECT_EQUAL(counts.live, 0, "slabs that were kept with nothing in them");
	}
	suite_allocator_restore();
	return NULL;
}

/* One thread makes, another frees. */
static void *frees(void *nodes)
{
	for (unsigned i = 0; i < 1000; i++)
		evc_node_end(((struct evc_node **)nodes)[i]);
	return NULL;
}

static const char *passed_on(void)
{
	struct suite_allocations counts;
	struct evc_node *nodes[1000];
	pthread_t thread;

	evc_tree_give_back();
	suite_allocator_install(UINT64_MAX, 0);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 1000; i++)
			EXPECT_NONE(suite_node(i > 0 ? nodes[i / 2] : NULL, &nodes[i]));
		EXPECT(pthread_create(&thread, NULL, frees, nodes) == 0, "no thread");
		pthread_join(thread, NULL);
	}
	evc_tree_give_back();
	counts = suite_allocator_read();
	suite_allocator_restore();
	EXPECT_EQUAL(counts.live, 0, "blocks that were kept with nothing in them");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D6 D7 D9 trees: handlers remove, end, detach and attach at each place", inside },
	{ "D7 trees: a raise in a handler is a walk within the walk", nested },
	{ "D9 trees: a handler that does not return holds its chunk and nothing else", stuck },
	{ "trees: a chain of 1,000,000 nodes raises, propagates and ends", deep },
	{ "D12 trees: every allocation may fail, once or three times: nothing is lost", failing },
	{ "trees: a warm raise allocates nothing", warm },
	{ "trees: slots are whole, and slabs go back with the last of theirs", slots },
	{ "trees: nodes that one thread makes and another ends take no memory for good", passed_on },
};
SUITE_GROUP(suite_tree_memory, tests);
#endif
