/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Moves during a walk, while it collects. An allocator that moves a node when the window grows makes that
 * happen at a known point.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include "tree/tree_private.h"

#include <stdlib.h>
#include <string.h>

#define KEY UINT64_C(41)
#define BOTH (EVC_WALK_RAISE | EVC_WALK_PROPAGATE)
/* After the two before them, one too few to end the second chunk. */
#define LEAVES 65u
#define HANDLERS 300u
#define MOVES SUITE_SCALE(1000000u)

/* An allocator that has another thread attach `node` to `to` at the first allocation after it was armed. */
static struct {
	struct evc_node *node, *to;
	_Atomic bool is_armed;
	bool is_moved;
	/* How often memory was freed while a thread held the mutex of all trees. */
	_Atomic uint64_t frees_under_mutex;
} plan;

static void *move(void *context)
{
	(void)context;
	plan.is_moved = evc_node_attach(plan.node, plan.to, NULL) == EVC_OK;
	return NULL;
}

static void *allocate(void *context, size_t size, size_t alignment)
{
	const struct evc_allocator *next = evc_allocator_default();
	pthread_t thread;

	(void)context;
	if (atomic_exchange(&plan.is_armed, false) &&
	    pthread_create(&thread, NULL, move, NULL) == 0)
		pthread_join(thread, NULL);
	return next->allocate(next->context, size, alignment);
}

static void deallocate(void *context, void *memory, size_t size, size_t alignment)
{
	const struct evc_allocator *next = evc_allocator_default();

	(void)context;
	/* No other thread runs by then. */
	if (pthread_mutex_trylock(&evc_tree.mutex) != 0)
		atomic_fetch_add(&plan.frees_under_mutex, 1);
	else
		pthread_mutex_unlock(&evc_tree.mutex);
	next->deallocate(next->context, memory, size, alignment);
}

struct job {
	struct evc_node *node;
	struct suite_calls *calls;
	uint32_t scope;
	enum evc_status status;
};

/* A thread of its own, so that its window is small. */
static void *raise_on_thread(void *opaque)
{
	struct job *job = opaque;

	/* Its walker is made now. */
	(void)suite_raise(job->node, KEY + 1, job->scope, 0, NULL);
	atomic_store(&plan.is_armed, true);
	job->status = suite_raise(job->node, KEY, job->scope, 0, job->calls);
	return NULL;
}

static const char *raise_moving(struct evc_node *node, uint32_t scope, struct evc_node *moved,
				struct evc_node *to, struct suite_calls *calls)
{
	static const struct evc_allocator moving = { NULL, allocate, deallocate };
	struct job job = { node, calls, scope, EVC_OK };
	pthread_t thread;

	plan.node = moved;
	plan.to = to;
	plan.is_moved = false;
	EXPECT_OK(evc_allocator_install(&moving));
	EXPECT(pthread_create(&thread, NULL, raise_on_thread, &job) == 0, "no thread");
	pthread_join(thread, NULL);
	EXPECT_OK(evc_allocator_install(NULL));
	EXPECT_OK(job.status);
	EXPECT_EQUAL(plan.frees_under_mutex, 0, "calls of the allocator under the mutex");
	EXPECT(plan.is_moved, "nothing was moved: did the window not grow?");
	return NULL;
}

/*
 * root: 1, 2, parent of 65 leaves (100 ...), 3, 4. One of the last leaves is the first to need a larger
 * window; a walk that then climbs by the parent's new link would come to the siblings of `to`.
 */
static const char *propagating_to(unsigned to, bool is_other_tree)
{
	static struct suite_mark marks[LEAVES], others[4];
	struct evc_node *root, *other, *siblings[4], *parent, *leaves[LEAVES];
	struct suite_calls calls = { .count = 0 };

	EXPECT_NONE(suite_node(NULL, &root));
	EXPECT_NONE(suite_node(NULL, &other));
	EXPECT_NONE(suite_handle(root, KEY + 1, EVC_HANDLER_PROPAGATE, &others[0], NULL));
	for (unsigned i = 0; i < 4; i++) {
		if (i == 2)
			EXPECT_NONE(suite_node(root, &parent));
		others[i] = (struct suite_mark){ .id = i + 1 };
		EXPECT_NONE(suite_node(root, &siblings[i]));
		EXPECT_NONE(suite_handle(siblings[i], KEY, EVC_HANDLER_PROPAGATE, &others[i], NULL));
	}
	for (unsigned i = 0; i < LEAVES; i++) {
		marks[i] = (struct suite_mark){ .id = 100 + i };
		EXPECT_NONE(suite_node(parent, &leaves[i]));
		EXPECT_NONE(suite_handle(leaves[i], KEY, EVC_HANDLER_PROPAGATE, &marks[i], NULL));
	}
	EXPECT_NONE(raise_moving(root, BOTH, parent, is_other_tree ? other : siblings[to], &calls));
	/* The first chunk was called before; the chunk that was being collected is repeated. */
	EXPECT_NONE(suite_expect_calls(&calls, 1, 2, 100, 101, 3, 4, 0));
	for (unsigned i = 0; i < LEAVES; i++)
		evc_node_end(leaves[i]);
	evc_node_end(parent);
	for (unsigned i = 0; i < 4; i++)
		evc_node_end(siblings[i]);
	evc_node_end(other);
	evc_node_end(root);
	return NULL;
}

static const char *propagating(void)
{
	for (unsigned to = 0; to < 4; to++)
		EXPECT_NONE(propagating_to(to, false));
	return propagating_to(0, true);
}

/* root 1: children 2, 3; 4 below 2 is moved below 3 while the handlers of its child are collected. */
static const char *climbing(void)
{
	static struct suite_mark leaf_mark, marks[4];
	struct evc_node *root, *from, *to, *moved, *leaf;
	struct suite_calls calls = { .count = 0 };

	for (unsigned i = 0; i < 4; i++)
		marks[i] = (struct suite_mark){ .id = i + 1 };
	leaf_mark = (struct suite_mark){ .id = 9 };
	EXPECT_NONE(suite_node(NULL, &root));
	EXPECT_NONE(suite_node(root, &from));
	EXPECT_NONE(suite_node(root, &to));
	EXPECT_NONE(suite_node(from, &moved));
	EXPECT_NONE(suite_node(moved, &leaf));
	EXPECT_NONE(suite_handle(root, KEY, EVC_HANDLER_RAISE, &marks[0], NULL));
	EXPECT_NONE(suite_handle(from, KEY, EVC_HANDLER_RAISE, &marks[1], NULL));
	EXPECT_NONE(suite_handle(to, KEY, EVC_HANDLER_RAISE, &marks[2], NULL));
	EXPECT_NONE(suite_handle(moved, KEY, EVC_HANDLER_RAISE, &marks[3], NULL));
	/* So that there is a walker before. */
	EXPECT_NONE(suite_handle(leaf, KEY + 1, EVC_HANDLER_RAISE, &leaf_mark, NULL));
	/* So many that a window is allocated, and replaced. */
	for (unsigned i = 0; i < HANDLERS; i++)
		EXPECT_NONE(suite_handle(leaf, KEY, EVC_HANDLER_RAISE, &leaf_mark, NULL));
	EXPECT_NONE(raise_moving(leaf, EVC_WALK_RAISE, moved, to, &calls));
	/* The log has room for 64 of them. */
	EXPECT_EQUAL(leaf_mark.calls, HANDLERS + 1, "calls at the leaf");
	for (unsigned i = 0; i < 4; i++)
		EXPECT_EQUAL(marks[i].calls, i != 1, "calls on the way up");
	evc_node_end(leaf);
	evc_node_end(moved);
	evc_node_end(to);
	evc_node_end(from);
	evc_node_end(root);
	return NULL;
}

static struct evc_node *places[2];
static _Atomic bool is_over;

static void *move_to_and_fro(void *node)
{
	for (unsigned i = 0; i < MOVES; i++)
		if (evc_node_attach(node, places[i % 2], NULL) != EVC_OK)
			break;
	atomic_store(&is_over, true);
	return NULL;
}

/* It is always under the root, so that a raise below it always reaches the root. */
static const char *to_and_fro(void)
{
	static struct suite_mark mark;
	struct evc_node *root, *moved, *leaf;
	uint64_t raises = 0;
	pthread_t thread;

	mark = (struct suite_mark){ .id = 1 };
	atomic_store(&is_over, false);
	EXPECT_NONE(suite_node(NULL, &root));
	EXPECT_NONE(suite_node(root, &places[0]));
	EXPECT_NONE(suite_node(root, &places[1]));
	EXPECT_NONE(suite_node(places[1], &moved));
	EXPECT_NONE(suite_node(moved, &leaf));
	EXPECT_NONE(suite_handle(root, KEY, EVC_HANDLER_RAISE, &mark, NULL));
	/* Masks change with it. */
	EXPECT_NONE(suite_handle(leaf, KEY + 1, EVC_HANDLER_PROPAGATE, &mark, NULL));
	EXPECT(pthread_create(&thread, NULL, move_to_and_fro, moved) == 0, "no thread");
	while (!atomic_load(&is_over)) {
		enum evc_status status = suite_raise(leaf, KEY, EVC_WALK_RAISE, 0, NULL);

		if (status != EVC_OK)
			pthread_join(thread, NULL);
		EXPECT(status == EVC_OK, "raise %llu did not come to the root",
		       (unsigned long long)raises);
		raises++;
	}
	pthread_join(thread, NULL);
	EXPECT_EQUAL(mark.calls, raises, "calls at the root");
	evc_node_end(leaf);
	evc_node_end(moved);
	evc_node_end(places[0]);
	evc_node_end(places[1]);
	evc_node_end(root);
	return NULL;
}

static struct evc_node *detached;

static void detach(struct suite_mark *mark)
{
	(void)mark;
	evc_node_detach(detached);
}

/*
 * A long path, whose first handler detaches a node: one beside the path, the last but one to be called, or
 * one in its middle. Finding out whether each handler is still in its place costs little for each.
 */
static const char *path_of(uint32_t count, uint32_t scope, uint32_t cut, uint64_t expected)
{
	static struct suite_mark first, rest;
	const uint8_t modes = (uint8_t)scope;
	const uint32_t beginning = scope == EVC_WALK_RAISE ? count - 1 : 0;
	struct evc_node **nodes = malloc(count * sizeof(struct evc_node *)), *beside;
	uint64_t begin, calls = 0;
	struct evc_walk *walk;

	EXPECT(nodes != NULL, "no memory");
	first = (struct suite_mark){ .id = 1, .act = detach };
	rest = (struct suite_mark){ .id = 2 };
	for (uint32_t i = 0; i < count; i++) {
		EXPECT_NONE(suite_node(i > 0 ? nodes[i - 1] : NULL, &nodes[i]));
		EXPECT_NONE(suite_handle(nodes[i], KEY, modes, i == beginning ? &first : &rest,
					 NULL));
	}
	EXPECT_NONE(suite_node(nodes[0], &beside));
	detached = cut < count ? nodes[cut] : beside;
	begin = evc_clock_now();
	EXPECT_OK(evc_walk_begin(nodes[count - 1], KEY, scope, &walk));
	do {
		for (uint32_t i = 0; i < walk->count; i++) {
			struct suite_mark *mark;

			EXPECT(evc_clock_now() - begin < SUITE_LIMIT_NS, "after a minute: call %llu",
			       (unsigned long long)calls);
			if (!evc_walk_will_call(walk, i))
				continue;
			mark = evc_handler_object(walk->handlers[i]);
			calls++;
			if (mark->act != NULL)
				mark->act(mark);
		}
	} while (evc_walk_next(walk) == EVC_OK);
	evc_walk_end(walk);
	EXPECT_EQUAL(calls, expected, "calls");
	evc_node_end(beside);
	for (uint32_t i = count; i > 0; i--)
		evc_node_end(nodes[i - 1]);
	EXPECT_EQUAL(first.releases + rest.releases, count, "releases");
	free(nodes);
	return NULL;
}

static const char *paths(void)
{
	const uint32_t most = SUITE_SCALE(1000000u);

	for (uint32_t count = 4; count <= most; count = count < most && count * 20 > most ? most : count * 20) {
		EXPECT_NONE(path_of(count, EVC_WALK_RAISE, count, count));
		EXPECT_NONE(path_of(count, EVC_WALK_CAPTURE, count, count));
		/* Upwards: the handler itself, and those above the cut. Downwards: those above the cut. */
		EXPECT_NONE(path_of(count, EVC_WALK_RAISE, 1, 2));
		EXPECT_NONE(path_of(count, EVC_WALK_CAPTURE, 1, 1));
		EXPECT_NONE(path_of(count, EVC_WALK_RAISE, count / 2, 1 + count / 2));
		EXPECT_NONE(path_of(count, EVC_WALK_CAPTURE, count / 2, count / 2));
		if (count == most)
			break;
	}
	return NULL;
}

/* Handlers of one node, which form one chunk; each removes itself. */
static const char *once_each(void)
{
	const uint32_t count = SUITE_SCALE(1000000u);
	struct evc_handler **handlers = malloc(count * sizeof(struct evc_handler *));
	static struct suite_mark mark;
	struct evc_node *node;
	struct evc_walk *walk;
	uint64_t begin, calls = 0;

	EXPECT(handlers != NULL, "no memory");
	mark = (struct suite_mark){ .id = 1 };
	EXPECT_NONE(suite_node(NULL, &node));
	for (uint32_t i = 0; i < count; i++)
		EXPECT_NONE(suite_handle(node, KEY, EVC_HANDLER_PROPAGATE, &mark, &handlers[i]));
	begin = evc_clock_now();
	EXPECT_OK(evc_walk_begin(node, KEY, EVC_WALK_PROPAGATE, &walk));
	EXPECT_EQUAL(walk->count, count, "handlers of the chunk");
	for (uint32_t i = 0; i < count; i++) {
		EXPECT(evc_walk_will_call(walk, i), "call %u was refused", i);
		EXPECT_OK(evc_handler_remove(walk->handlers[i]));
		calls++;
		EXPECT(evc_clock_now() - begin < SUITE_LIMIT_NS, "after a minute: call %llu",
		       (unsigned long long)calls);
	}
	EXPECT_EQUAL(mark.releases, 0, "releases while they are held");
	EXPECT_STATUS(evc_walk_next(walk), EVC_EMPTY);
	evc_walk_end(walk);
	EXPECT_EQUAL(mark.releases, count, "releases");
	for (uint32_t i = 0; i < count; i++)
		evc_handler_drop(handlers[i]);
	evc_node_end(node);
	free(handlers);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 trees: a move of what a walk is collecting leads it nowhere else", propagating },
	{ "D4 trees: a move of what a walk is climbing from has it climb again", climbing },
	{ "D4 trees: a raise below a node that is moved within its tree comes to the root", to_and_fro },
	{ "D7 trees: a handler on a path of 1,000,000 nodes detaches something", paths },
	{ "D7 trees: a million handlers of a node remove themselves", once_each },
};
SUITE_GROUP(suite_tree_move, tests);
#endif
