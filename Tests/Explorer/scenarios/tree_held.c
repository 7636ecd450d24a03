/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What a walk holds is released when the walk has released it, not before, and at the latest by the last
 * thread that is involved.
 */
#include "tree.h"

static uint32_t none = 0;
static uint32_t own = 1u << 1;
static uint32_t last = 1u << 2;
static _Atomic bool is_walked, may_end;

/* The first handler of a chunk is released while others of it are called. */
SCENARIO(tree_remove_first)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_all, &last);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(evc_handler_remove(handlers[i]) == EVC_OK);
		mark_removed(i);
	}
	explorer_join(thread);
	tear_down(3, 3);
}

static void *walk_all_again(void *those)
{
	for (unsigned i = 0; i < 2; i++)
		(void)walk_all(those);
	return NULL;
}

/* The same, and the next walk begins with what is still in the window. */
static void *remove_first_and_end(void *unused)
{
	CHECK(evc_handler_remove(handlers[0]) == EVC_OK);
	mark_removed(0);
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	mark_removed(2);
	return unused;
}

SCENARIO(tree_remove_first_and_end)
{
	set_up();
	start_other_at(2, remove_first_and_end);
	(void)walk_all_again(&own);
	explorer_join(other_thread);
	tear_down(3, 3);
}

/* The last one, whose node ends, with the chunk. */
static void *end_last(void *unused)
{
	(void)evc_node_end(nodes[2]);
	nodes[2] = NULL;
	mark_removed(2);
	return unused;
}

SCENARIO(tree_end_last_between)
{
	set_up();
	start_other_at(2, end_last);
	(void)walk_all_again(&own);
	explorer_join(other_thread);
	tear_down(3, 3);
}

/* The root ends, where a walk begins to propagate, or raises to. */
static void end_root(void *(*walk)(void *), uint32_t *those)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk, those);
	(void)evc_node_end(nodes[0]);
	nodes[0] = NULL;
	mark_removed(0);
	explorer_join(thread);
	tear_down(3, 3);
}

SCENARIO(tree_end_root)
{
	end_root(walk_down, &none);
}

SCENARIO(tree_end_root_of_raise)
{
	end_root(walk_up, &own);
}

/* One root after the other: a new root says that the walk is done with the former one. */
static void *walk_down_again(void *those)
{
	for (unsigned i = 0; i < 2; i++)
		(void)walk_down(those);
	return NULL;
}

SCENARIO(tree_end_root_between)
{
	pthread_t thread;

	set_up();
	for (unsigned i = 3; i < 6; i++)
		add_handler(0, i);
	thread = explorer_start(walk_down_again, &none);
	(void)evc_node_end(nodes[0]);
	nodes[0] = NULL;
	mark_removed(0);
	for (unsigned i = 3; i < 6; i++)
		mark_removed(i);
	explorer_join(thread);
	tear_down(3, 6);
}

static void *walk_from_here(void *those)
{
	uint32_t called[OBJECTS] = { 0 };

	walk_from(1, EVC_WALK_RAISE | EVC_WALK_PROPAGATE | EVC_WALK_FROM_HERE, called);
	CHECK(called[1] <= 2);
	return those;
}

SCENARIO(tree_end_root_above)
{
	end_root(walk_from_here, NULL);
}

/* Walks, and does not end: its end would reclaim everything. */
static void *walk_and_stay(void *those)
{
	(void)walk_all(those);
	atomic_store_explicit(&is_walked, true, memory_order_release);
	while (!atomic_load_explicit(&may_end, memory_order_acquire))
		sched_yield();
	return NULL;
}

/* When the walk is over and the removal has returned, one of the two has released it (D9). */
SCENARIO(tree_release_in_time)
{
	pthread_t thread;

	set_up();
	thread = explorer_start(walk_and_stay, &own);
	CHECK(evc_handler_remove(handlers[2]) == EVC_OK);
	mark_removed(2);
	while (!atomic_load_explicit(&is_walked, memory_order_acquire))
		sched_yield();
	if (released[2] != 1)
		explorer_fail("nobody has released it");
	atomic_store_explicit(&may_end, true, memory_order_release);
	explorer_join(thread);
	tear_down(3, 3);
}

/*
 * A walker that does not walk for a while becomes absent, and joins again, or ends. What it waits for creates
 * no order, except that it finds itself absent.
 */
static _Atomic bool is_changed;

static void *change_a_lot(void *unused)
{
	for (unsigned i = 0; i < 9; i++) {
		(void)evc_node_detach(nodes[2]);
		CHECK(evc_node_attach(nodes[2], nodes[0], NULL) == EVC_OK);
	}
	atomic_store_explicit(&is_changed, true, memory_order_relaxed);
	return unused;
}

static void walk_and_wait(void)
{
	(void)walk_all(&own);
	other_thread = explorer_start(change_a_lot, NULL);
	while (!atomic_load_explicit(&is_changed, memory_order_relaxed))
		sched_yield();
}

SCENARIO(tree_absent)
{
	set_up();
	walk_and_wait();
	(void)walk_all(&own);
	explorer_join(other_thread);
	tear_down(3, 3);
}

static void *walk_and_end(void *unused)
{
	walk_and_wait();
	return unused;
}

SCENARIO(tree_absent_at_end)
{
	set_up();
	explorer_join(explorer_start(walk_and_end, NULL));
	explorer_join(other_thread);
	tear_down(3, 3);
}
