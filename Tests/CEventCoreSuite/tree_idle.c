/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Threads that have raised events and no longer do: a change does not look at them, and when they raise again
 * nothing is freed while they use it.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include "tree/tree_walker.h"

#include <sched.h>
#include <string.h>

#define KEY UINT64_C(41)
#define BOTH (EVC_WALK_RAISE | EVC_WALK_PROPAGATE)
#define IDLE 200u
#define RAISERS 4u
/* Enough changes for every walker that is in no walk to become absent. */
#define CHANGES (2 * EVC_WALKER_PATIENCE)

static struct {
	struct evc_node *root, *moving;
	struct suite_gate again, entered, may_go;
	_Atomic uint64_t raised, changes, inside, dead, is_over;
} scene;

static const char *set_up(void)
{
	static const struct suite_gate shut = SUITE_GATE;

	memset(&scene, 0, sizeof(scene));
	scene.again = scene.entered = scene.may_go = shut;
	EXPECT_NONE(suite_node(NULL, &scene.root));
	EXPECT_NONE(suite_node(scene.root, &scene.moving));
	return NULL;
}

static void tear_down(void)
{
	evc_node_end(scene.moving);
	evc_node_end(scene.root);
}

static const char *move(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		EXPECT_OK(evc_node_attach(scene.moving, scene.root, NULL));
	atomic_fetch_add(&scene.changes, count);
	return NULL;
}

/* How many walkers a change looks at. */
static uint64_t looked_at(void)
{
	uint64_t count = 0;

	evc_tree_lock();
	for (struct evc_walker *walker = evc_walkers(); walker != NULL; walker = walker->next)
		count++;
	evc_tree_unlock();
	return count;
}

static void raise_once(void)
{
	(void)suite_raise(scene.root, KEY, BOTH, 0, NULL);
	atomic_fetch_add(&scene.raised, 1);
}

static void *raises_twice(void *unused)
{
	raise_once();
	if (suite_gate_pass(&scene.again))
		raise_once();
	return unused;
}

static const char *not_looked_at(void)
{
	struct suite_mark mark = { .id = 1 };
	pthread_t threads[IDLE];

	EXPECT_NONE(set_up());
	EXPECT_NONE(suite_handle(scene.root, KEY, EVC_HANDLER_PROPAGATE, &mark, NULL));
	for (unsigned i = 0; i < IDLE; i++)
		EXPECT_EQUAL(pthread_create(&threads[i], NULL, raises_twice, NULL), 0, "thread");
	EXPECT(suite_await(&scene.raised, IDLE), "not all have raised");
	EXPECT(looked_at() >= IDLE, "nobody is looked at: this test counts nothing");
	EXPECT_NONE(move(CHANGES));
	EXPECT_EQUAL(looked_at(), 0, "idle threads that a change looks at");
	suite_gate_open(&scene.again);
	EXPECT_NONE(move(CHANGES));
	for (unsigned i = 0; i < IDLE; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQUAL(mark.calls, 2 * IDLE, "calls");
	EXPECT_EQUAL(looked_at(), 0, "threads that have ended");
	tear_down();
	EXPECT_EQUAL(mark.releases, 1, "releases");
	return NULL;
}

static void enter(struct suite_mark *mark)
{
	(void)mark;
	suite_gate_open(&scene.entered);
	(void)suite_gate_pass(&scene.may_go);
}

static const char *held_all_the_time(void)
{
	struct suite_mark first = { .id = 1 }, second = { .id = 2 };
	struct evc_handler *handler, *next;
	pthread_t thread;

	EXPECT_NONE(set_up());
	EXPECT_NONE(suite_handle(scene.root, KEY, EVC_HANDLER_PROPAGATE, &first, &handler));
	EXPECT_NONE(suite_handle(scene.root, KEY, EVC_HANDLER_PROPAGATE, &second, &next));
	EXPECT_EQUAL(pthread_create(&thread, NULL, raises_twice, NULL), 0, "thread");
	EXPECT(suite_await(&scene.raised, 1), "it has not raised");
	EXPECT_NONE(move(CHANGES));
	EXPECT_EQUAL(looked_at(), 0, "idle threads that a change looks at");
	/* Its second walk has begun by then, and no other. */
	first.act = enter;
	suite_gate_open(&scene.again);
	EXPECT(suite_gate_pass(&scene.entered), "the handler was not called");
	EXPECT_NONE(move(CHANGES));
	EXPECT_EQUAL(looked_at(), 1, "threads inside of a handler that a change looks at");
	EXPECT_OK(evc_handler_remove(handler));
	EXPECT_OK(evc_handler_remove_and_wait(next));
	EXPECT_NONE(move(CHANGES));
	EXPECT_EQUAL(first.releases + second.releases, 0, "releases of what a walk holds");
	suite_gate_open(&scene.may_go);
	pthread_join(thread, NULL);
	EXPECT_EQUAL(first.releases, 1, "releases of the one that ran");
	EXPECT_EQUAL(second.releases, 1, "releases of the one behind it");
	EXPECT_EQUAL(second.calls, 1, "calls of the one behind it");
	evc_handler_drop(handler);
	evc_handler_drop(next);
	tear_down();
	return NULL;
}

/* Raises once each time all walkers that are in no walk have become absent. */
static void *raises_now_and_then(void *unused)
{
	while (!atomic_load(&scene.is_over)) {
		uint64_t seen = atomic_load(&scene.changes);

		raise_once();
		while (atomic_load(&scene.changes) - seen < CHANGES && !atomic_load(&scene.is_over))
			sched_yield();
	}
	return unused;
}

static void pass(struct suite_mark *mark)
{
	atomic_fetch_add(&scene.inside, 1);
	if (atomic_load(&mark->releases) != 0)
		atomic_fetch_add(&scene.dead, 1);
	atomic_fetch_sub(&scene.inside, 1);
}

static const char *move_until_one_raises(void)
{
	uint64_t before = atomic_load(&scene.raised), start = evc_clock_now();

	while (atomic_load(&scene.raised) == before) {
		EXPECT(evc_clock_now() - start < SUITE_LIMIT_NS, "nobody raises");
		EXPECT_NONE(move(1));
	}
	return NULL;
}

#define ROUNDS SUITE_SCALE(4000u)
static struct suite_mark marks[ROUNDS];

static const char *churn(void)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct evc_handler *handler;

		marks[i] = (struct suite_mark){ .id = 1, .act = pass };
		EXPECT_NONE(suite_handle(scene.moving, KEY, EVC_HANDLER_PROPAGATE, &marks[i], &handler));
		EXPECT_NONE(move(EVC_WALKER_PATIENCE));
		if (i % 16 == 0)
			EXPECT_NONE(move_until_one_raises());
		EXPECT_OK(evc_handler_remove_and_wait(handler));
		EXPECT_EQUAL(scene.inside, 0, "calls that ran when it returned");
		evc_handler_drop(handler);
	}
	return NULL;
}

static const char *come_and_go(void)
{
	pthread_t raisers[RAISERS];
	const char *message;

	EXPECT_NONE(set_up());
	for (unsigned i = 0; i < RAISERS; i++)
		EXPECT_EQUAL(pthread_create(&raisers[i], NULL, raises_now_and_then, NULL), 0, "thread");
	message = churn();
	atomic_store(&scene.is_over, 1);
	for (unsigned i = 0; i < RAISERS; i++)
		pthread_join(raisers[i], NULL);
	EXPECT_NONE(message);
	tear_down();
	EXPECT_EQUAL(scene.dead, 0, "calls after the release");
	for (unsigned i = 0; i < ROUNDS; i++)
		EXPECT_EQUAL(marks[i].releases, 1, "releases");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "trees: a change looks at threads that walk, and not at those that have", not_looked_at },
	{ "D6 D9 trees: what a walk holds is held however many changes come", held_all_the_time },
	{ "D6 D9 trees: nothing is freed under threads that walk now and then", come_and_go },
};
SUITE_GROUP(suite_tree_idle, tests);
#endif
