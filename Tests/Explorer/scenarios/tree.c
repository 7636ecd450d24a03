/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Trees: a walk finds what was there when it began, each once and in order, whatever changes meanwhile; what is
 * removed is not called any more; objects are released once.
 */
#include "explorer.h"

#include "eventcore/tree.h"

#define OBJECTS 8u
#define KEY UINT64_C(7)

struct object {
	uint32_t number;
	uint32_t is_alive;
	/* Plain, by each walk: a call that runs when it is said to be over is a race with what follows. */
	uint32_t called[2];
};

static struct object objects[OBJECTS];
static struct evc_node *nodes[4];
static struct evc_handler *handlers[OBJECTS];
static _Atomic uint32_t removed;
static uint32_t released[OBJECTS];

UNSEEN static void note_released(uint32_t number)
{
	released[number]++;
}

static void release(void *opaque)
{
	struct object *object = opaque;

	CHECK(object->is_alive == 1);
	object->is_alive = 0;
	note_released(object->number);
}

static const struct evc_node_options options = { NULL, release };

static void add_node(unsigned which, int parent)
{
	CHECK(evc_node_create(&options, &nodes[which]) == EVC_OK);
	if (parent >= 0)
		CHECK(evc_node_attach(nodes[which], nodes[parent], NULL) == EVC_OK);
}

static void add_handler(unsigned node, unsigned which)
{
	objects[which] = (struct object){ .number = which, .is_alive = 1 };
	CHECK(evc_node_add_handler(nodes[node], KEY, EVC_HANDLER_RAISE | EVC_HANDLER_PROPAGATE,
				   &objects[which], &handlers[which]) == EVC_OK);
}

/* Two nodes below the root, with one handler each, and one at the root. */
static void set_up(void)
{
	add_node(0, -1);
	add_node(1, 0);
	add_node(2, 0);
	for (unsigned i = 0; i < 3; i++)
		add_handler(i, i);
}

/* Which of two walks at once this thread's is. */
static _Thread_local unsigned walk_number;

/* A handler whose removal has returned is not called (D6). */
static void call(struct object *object, uint32_t removed_before)
{
	object->called[walk_number]++;
	CHECK(object->is_alive == 1);
	if (removed_before & (1u << object->number))
		explorer_fail("handler %u is called after its removal (D6)", object->number);
}

/* Walks from a node; tells for each object how often it was called. */
static void walk_from(unsigned node, uint32_t scope, uint32_t called[OBJECTS])
{
	struct evc_walk *walk;

	if (evc_walk_begin(nodes[node], KEY, scope, &walk) != EVC_OK)
		return;
	do {
		for (uint32_t i = 0; i < walk->count; i++) {
			uint32_t before = atomic_load_explicit(&removed, memory_order_acquire);

			if (!evc_walk_will_call(walk, i))
				continue;
			call(walk->objects[i], before);
			called[((struct object *)walk->objects[i])->number]++;
		}
	} while (evc_walk_next(walk) == EVC_OK);
	evc_walk_end(walk);
}

static void check_each_once(const uint32_t called[OBJECTS], uint32_t those)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (those & (1u << i) ? called[i] != 1 : called[i] > 1)
			explorer_fail("handler %u was called %u times", i, called[i]);
	}
}

static void *walk_down(void *those)
{
	uint32_t called[OBJECTS] = { 0 };

	walk_from(1, EVC_WALK_PROPAGATE, called);
	check_each_once(called, *(uint32_t *)those);
	return NULL;
}

static void *walk_up(void *those)
{
	uint32_t called[OBJECTS] = { 0 };

	walk_from(1, EVC_WALK_RAISE, called);
	check_each_once(called, *(uint32_t *)those);
	return NULL;
}

static void tear_down(unsigned node_count, unsigned object_count)
{
	for (unsigned i = 0; i < node_count; i++)
		if (nodes[i] != NULL)
			(void)evc_node_end(nodes[i]);
	for (unsigned i = 0; i < object_count; i++)
		evc_handler_drop(handlers[i]);
	explorer_settle();
	for (unsigned i = 0; i < object_count; i++)
		if (released[i] != 1)
			explorer_fail("object %u was released %u times", i, released[i]);
}

static void mark_removed(unsigned which)
{
	atomic_fetch_or_explicit(&removed, 1u << which, memory_order_release);
}

static uint32_t others = 1u << 0 | 1u << 1;

/* A handler is removed under a walk. */
SCENARIO(tree_remove)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_down, &others);
	CHECK(evc_handler_remove(handlers[2]) == EVC_OK);
	mark_removed(2);
	explorer_join(thread);
	tear_down(3, 3);
}

/* After remove_and_wait no call is running either: what the handler used may go. */
static void *use_object(void *number)
{
	uint32_t called[OBJECTS] = { 0 };

	walk_number = *(unsigned *)number;
	walk_from(1, EVC_WALK_PROPAGATE, called);
	check_each_once(called, others);
	return NULL;
}

static void remove_and_wait(unsigned walkers)
{
	static unsigned numbers[2] = { 0, 1 };
	pthread_t threads[2];

	set_up();
	explorer_forbid_idling(true);
	for (unsigned i = 0; i < walkers; i++)
		threads[i] = explorer_start(use_object, &numbers[i]);
	CHECK(evc_handler_remove_and_wait(handlers[2]) == EVC_OK);
	mark_removed(2);
	/* A race with a call that still runs, if there is one. */
	objects[2].called[0] = objects[2].called[1] = 0;
	for (unsigned i = 0; i < walkers; i++)
		explorer_join(threads[i]);
	explorer_forbid_idling(false);
	tear_down(3, 3);
}

SCENARIO(tree_remove_and_wait)
{
	remove_and_wait(1);
}

SCENARIO(tree_remove_and_wait_two)
{
	remove_and_wait(2);
}

SCENARIO(tree_remove_and_wait_no_barrier)
{
	explorer_take_barrier_away();
	remove_and_wait(1);
}

SCENARIO(tree_remove_and_wait_two_no_barrier)
{
	explorer_take_barrier_away();
	remove_and_wait(2);
}

/* A node is detached, and one ended, under a walk. */
SCENARIO(tree_detach)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_down, &others);
	(void)evc_node_detach(nodes[2]);
	explorer_join(thread);
	tear_down(3, 3);
}

SCENARIO(tree_end)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_down, &others);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	mark_removed(2);
	explorer_join(thread);
	tear_down(3, 3);
}

/* A node moves from one parent to another: the walk finds it once at most, and all others. */
static uint32_t all_but_moved = 1u << 0 | 1u << 1 | 1u << 3;

SCENARIO(tree_move)
{
	pthread_t thread;

	set_up();
	add_node(3, 1);
	add_handler(3, 3);
	thread = explorer_start(walk_down, &all_but_moved);
	CHECK(evc_node_attach(nodes[2], nodes[3], NULL) == EVC_OK);
	explorer_join(thread);
	tear_down(4, 4);
}

/* Raised while the way to the root changes: a node of the walk's goes below another one. */
static uint32_t own = 1u << 1;

SCENARIO(tree_raise)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_up, &own);
	CHECK(evc_node_attach(nodes[1], nodes[2], NULL) == EVC_OK);
	(void)evc_node_detach(nodes[1]);
	explorer_join(thread);
	tear_down(3, 3);
}

/* Added meanwhile: found by the walk or not, but never half made. */
SCENARIO(tree_add)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_down, &others);
	add_node(3, 2);
	add_handler(3, 3);
	add_handler(1, 4);
	CHECK(evc_handler_remove(handlers[4]) == EVC_OK);
	mark_removed(4);
	explorer_join(thread);
	tear_down(4, 5);
}

/* Two walks, and changes that hand memory from one walk to the next. */
static void *walk_up_too(void *unused)
{
	walk_number = 1;
	(void)walk_up(&own);
	return unused;
}

SCENARIO(tree_two_walks)
{
	pthread_t threads[2];

	set_up();
	threads[0] = explorer_start(walk_down, &others);
	threads[1] = explorer_start(walk_up_too, NULL);
	CHECK(evc_handler_remove(handlers[2]) == EVC_OK);
	mark_removed(2);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	add_node(3, 1);
	add_handler(3, 3);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down(4, 4);
}

/* Walks one after the other in one thread, while nodes come and go: memory that is used again. */
static void *walk_twice(void *unused)
{
	uint32_t called[OBJECTS] = { 0 }, again[OBJECTS] = { 0 };

	walk_from(1, EVC_WALK_PROPAGATE, called);
	check_each_once(called, others);
	walk_from(1, EVC_WALK_RAISE | EVC_WALK_CAPTURE, again);
	check_each_once(again, others);
	return unused;
}

SCENARIO(tree_reuse)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_twice, NULL);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	mark_removed(2);
	for (unsigned i = 0; i < 2; i++) {
		add_node(3, 0);
		add_handler(3, 3 + i);
		(void)evc_node_end(nodes[3]);
		mark_removed(3 + i);
	}
	nodes[3] = NULL;
	explorer_join(thread);
	tear_down(3, 5);
}

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

/* A walk inside of a call of another one, while handlers of both are removed. */
static void *walk_in_walk(void *unused)
{
	uint32_t inner[OBJECTS] = { 0 };
	struct evc_walk *walk;

	if (evc_walk_begin(nodes[1], KEY, EVC_WALK_PROPAGATE, &walk) != EVC_OK)
		return unused;
	do {
		for (uint32_t i = 0; i < walk->count; i++) {
			uint32_t before = atomic_load_explicit(&removed, memory_order_acquire);

			if (!evc_walk_will_call(walk, i))
				continue;
			call(walk->objects[i], before);
			if (((struct object *)walk->objects[i])->number != 1)
				continue;
			walk_number = 1;
			walk_from(2, EVC_WALK_RAISE, inner);
			walk_number = 0;
		}
	} while (evc_walk_next(walk) == EVC_OK);
	evc_walk_end(walk);
	return unused;
}

SCENARIO(tree_walk_in_walk)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_in_walk, NULL);
	CHECK(evc_handler_remove_and_wait(handlers[2]) == EVC_OK);
	mark_removed(2);
	objects[2].called[0] = objects[2].called[1] = 0;
	CHECK(evc_handler_remove_and_wait(handlers[0]) == EVC_OK);
	mark_removed(0);
	explorer_join(thread);
	tear_down(3, 3);
}

/* A walk of a tree that has not changed since the last one takes what that found, unless a change comes meanwhile. */
static void *walk_again(void *those)
{
	for (unsigned i = 0; i < 3; i++)
		(void)walk_down(those);
	return NULL;
}

SCENARIO(tree_walk_again)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_again, &others);
	CHECK(evc_handler_remove(handlers[2]) == EVC_OK);
	mark_removed(2);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	explorer_join(thread);
	tear_down(3, 3);
}

/* Who finds that a handler has ended knows that no later call begins. */
static void *look_and_walk(void *unused)
{
	uint32_t called[OBJECTS] = { 0 };
	bool is_over = !evc_handler_is_active(handlers[2]);

	walk_number = 1;
	if (is_over)
		mark_removed(2);
	walk_from(1, EVC_WALK_PROPAGATE, called);
	if (is_over && called[2] != 0)
		explorer_fail("a call of what is not active");
	return unused;
}

SCENARIO(tree_is_active)
{
	pthread_t threads[2];

	set_up();
	threads[0] = explorer_start(look_and_walk, NULL);
	threads[1] = explorer_start(walk_down, &others);
	CHECK(evc_handler_remove(handlers[2]) == EVC_OK);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down(3, 3);
}

/* The handle is dropped while the tree frees the handler: the memory goes once, after both. */
static void *drop_third(void *unused)
{
	CHECK(evc_handler_object(handlers[2]) == &objects[2]);
	evc_handler_drop(handlers[2]);
	return unused;
}

SCENARIO(tree_drop)
{
	pthread_t threads[2];

	set_up();
	threads[0] = explorer_start(walk_down, &others);
	threads[1] = explorer_start(drop_third, NULL);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	mark_removed(2);
	for (unsigned i = 0; i < 2; i++)
		explorer_join(threads[i]);
	tear_down(3, 2);
	CHECK(released[2] == 1);
}
