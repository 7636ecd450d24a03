/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Shared by the scenarios of trees: nodes, handlers, walks that note which handlers they call, and the end,
 * where each object was released once. Each file of scenarios has its own copy.
 */
#ifndef EXPLORER_TREE_H
#define EXPLORER_TREE_H

#include "explorer.h"

#include "eventcore/tree.h"

#define OBJECTS 8u
#define KEY UINT64_C(7)

struct object {
	uint32_t number;
	uint32_t is_alive;
	/*
	 * Not atomic, written by each walk: a call that runs after it is said to be over is a race with what
	 * follows.
	 */
	uint32_t called[2];
};

static struct object objects[OBJECTS];
static struct evc_node *nodes[5];
static struct evc_handler *handlers[OBJECTS];
static _Atomic uint32_t removed;
static uint32_t released[OBJECTS];

UNSEEN static void note_released(uint32_t number)
{
	released[number]++;
}

static inline void release(void *opaque)
{
	struct object *object = opaque;

	CHECK(object->is_alive == 1);
	object->is_alive = 0;
	note_released(object->number);
}

static const struct evc_node_options options = { sizeof(options), NULL, release };

static inline void add_node(unsigned which, int parent)
{
	CHECK(evc_node_create(&options, &nodes[which]) == EVC_OK);
	if (parent >= 0)
		CHECK(evc_node_attach(nodes[which], nodes[parent], NULL) == EVC_OK);
}

static inline void add_handler(unsigned node, unsigned which)
{
	objects[which] = (struct object){ .number = which, .is_alive = 1 };
	CHECK(evc_node_add_handler(nodes[node], KEY, EVC_HANDLER_RAISE | EVC_HANDLER_PROPAGATE,
				   &objects[which], &handlers[which]) == EVC_OK);
}

/* Two nodes below the root, with one handler each, and one at the root. */
static inline void set_up(void)
{
	add_node(0, -1);
	add_node(1, 0);
	add_node(2, 0);
	for (unsigned i = 0; i < 3; i++)
		add_handler(i, i);
}

/* Done once, in the call of that object: the other thread may begin in the middle of a walk. */
static void (*meanwhile)(void);
static uint32_t meanwhile_at;
static pthread_t other_thread;
static void *(*other)(void *);

static inline void start_other(void)
{
	other_thread = explorer_start(other, NULL);
}

static inline void start_other_at(uint32_t number, void *(*function)(void *))
{
	other = function;
	meanwhile = start_other;
	meanwhile_at = number;
}

/* Which of two simultaneous walks this thread's is. */
static _Thread_local unsigned walk_number;

/* A handler whose removal has returned is not called (D6). */
static inline void call(struct object *object, uint32_t removed_before)
{
	if (meanwhile != NULL && meanwhile_at == object->number) {
		void (*now)(void) = meanwhile;

		meanwhile = NULL;
		now();
	}
	object->called[walk_number]++;
	CHECK(object->is_alive == 1);
	if (removed_before & (1u << object->number))
		explorer_fail("handler %u is called after its removal (D6)", object->number);
}

/* Walks from a node; tells for each object how often it was called. */
static inline void walk_from(unsigned node, uint32_t scope, uint32_t called[OBJECTS])
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

static inline void check_each_once(const uint32_t called[OBJECTS], uint32_t those)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (those & (1u << i) ? called[i] != 1 : called[i] > 1)
			explorer_fail("handler %u was called %u times", i, called[i]);
	}
}

static inline void *walk_down(void *those)
{
	uint32_t called[OBJECTS] = { 0 };

	walk_from(1, EVC_WALK_PROPAGATE, called);
	check_each_once(called, *(uint32_t *)those);
	return NULL;
}

static inline void *walk_up(void *those)
{
	uint32_t called[OBJECTS] = { 0 };

	walk_from(1, EVC_WALK_RAISE, called);
	check_each_once(called, *(uint32_t *)those);
	return NULL;
}

/* From the root down. */
static inline void *walk_all(void *those)
{
	uint32_t called[OBJECTS] = { 0 };

	walk_from(0, EVC_WALK_PROPAGATE, called);
	check_each_once(called, *(uint32_t *)those);
	return NULL;
}

static inline void tear_down(unsigned node_count, unsigned object_count)
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

static inline void mark_removed(unsigned which)
{
	atomic_fetch_or_explicit(&removed, 1u << which, memory_order_release);
}

#endif
