/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A thread that removes a handler and waits is told when the walk leaves it, whatever comes next (D6). */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include "tree/tree_walker.h"

#include <sched.h>
#include <string.h>

#define KEY UINT64_C(12)
#define BOTH (EVC_WALK_RAISE | EVC_WALK_PROPAGATE)
#define REMOVERS 2u
#define FILLERS 8u

static struct {
	struct evc_node *node;
	struct evc_handler *handler;
	struct suite_gate entered, may_go;
	_Atomic uint64_t is_running, back, too_early, statuses[EVC_NOT_FOUND + 1];
} scene;

static void enter(struct suite_mark *mark)
{
	(void)mark;
	atomic_store(&scene.is_running, 1);
	suite_gate_open(&scene.entered);
	(void)suite_gate_pass(&scene.may_go);
	atomic_store(&scene.is_running, 0);
}

static void enter_by_a_raise(struct suite_mark *mark)
{
	(void)suite_raise(scene.node, KEY + 1, BOTH, 0, NULL);
	(void)mark;
}

static void enter_and_end(struct suite_mark *mark)
{
	enter(mark);
	pthread_exit(NULL);
}

/* The next handler, which runs until the removers of the one before have returned. */
static void last(struct suite_mark *mark)
{
	(void)mark;
	(void)suite_await(&scene.back, REMOVERS);
}

static void *raises(void *context)
{
	(void)context;
	(void)suite_raise(scene.node, KEY, BOTH, 0, NULL);
	return NULL;
}

static void *removes(void *context)
{
	enum evc_status status = evc_handler_remove_and_wait(scene.handler);

	(void)context;
	atomic_fetch_add(&scene.too_early, atomic_load(&scene.is_running));
	if (status == EVC_OK || status == EVC_NOT_FOUND)
		atomic_fetch_add(&scene.statuses[status], 1);
	atomic_fetch_add(&scene.back, 1);
	return NULL;
}

/* A thread has asked a walk to tell it. */
static bool is_asked(void)
{
	bool is_asked = false;

	evc_tree_lock();
	for (struct evc_walker *walker = evc_walkers(); walker != NULL; walker = walker->next) {
		struct evc_tree_walk *walk = atomic_load(&walker->outermost);

		for (; walk != NULL; walk = atomic_load(&walk->inner))
			is_asked |= atomic_load(&walk->calling) == scene.handler &&
				    (atomic_load(&walk->attention) & EVC_WALK_AWAITED) != 0;
	}
	evc_tree_unlock();
	return is_asked;
}

static void set_scene(void)
{
	static const struct suite_gate shut = SUITE_GATE;

	memset(&scene, 0, sizeof(scene));
	scene.entered = scene.may_go = shut;
}

/* The handler that is removed, `fillers` more behind it, and then one that takes long. */
static const char *wait_for(void (*act)(struct suite_mark *), unsigned fillers, bool lasts)
{
	struct suite_mark mark = { .id = 1, .act = act }, filler = { .id = 2 };
	struct suite_mark inner = { .id = 3, .act = enter }, end = { .id = 4, .act = last };
	pthread_t raiser, removers[REMOVERS];

	set_scene();
	EXPECT_NONE(suite_node(NULL, &scene.node));
	EXPECT_NONE(suite_handle(scene.node, KEY, EVC_HANDLER_PROPAGATE, &mark, &scene.handler));
	EXPECT_NONE(suite_handle(scene.node, KEY + 1, EVC_HANDLER_PROPAGATE, &inner, NULL));
	for (unsigned i = 0; i < fillers; i++) {
		struct evc_node *child;

		EXPECT_NONE(suite_node(scene.node, &child));
		EXPECT_NONE(suite_handle(child, KEY, EVC_HANDLER_PROPAGATE, &filler, NULL));
	}
	if (lasts) {
		struct evc_node *child;

		EXPECT_NONE(suite_node(scene.node, &child));
		EXPECT_NONE(suite_handle(child, KEY, EVC_HANDLER_PROPAGATE, &end, NULL));
	}
	pthread_create(&raiser, NULL, raises, NULL);
	EXPECT(suite_gate_pass(&scene.entered), "the handler was not called");
	for (unsigned i = 0; i < REMOVERS; i++)
		pthread_create(&removers[i], NULL, removes, NULL);
	while (!is_asked())
		sched_yield();
	EXPECT_EQUAL(scene.back, 0, "removers that did not wait");
	suite_gate_open(&scene.may_go);
	EXPECT(suite_await(&scene.back, REMOVERS), "%llu of the removers were told",
	       (unsigned long long)scene.back);
	for (unsigned i = 0; i < REMOVERS; i++)
		pthread_join(removers[i], NULL);
	pthread_join(raiser, NULL);
	EXPECT_EQUAL(scene.too_early, 0, "removers that returned while it ran");
	EXPECT_EQUAL(scene.statuses[EVC_OK], 1, "removers that removed it");
	EXPECT_EQUAL(scene.statuses[EVC_NOT_FOUND], REMOVERS - 1, "those that came later");
	EXPECT_EQUAL(mark.releases, 1, "releases");
	evc_handler_drop(scene.handler);
	for (;;) {
		struct evc_node *child;

		evc_tree_lock();
		child = evc_node_first_child(scene.node);
		evc_tree_unlock();
		if (child == NULL)
			break;
		evc_node_end(child);
	}
	evc_node_end(scene.node);
	return NULL;
}

static const char *is_told(void)
{
	/*
	 * The next handler is in the same chunk, is the first of the next chunk, is inside the next chunk, or
	 * does not exist.
	 */
	for (unsigned fillers = 0; fillers < FILLERS; fillers++) {
		EXPECT_NONE(wait_for(enter, fillers, true));
		EXPECT_NONE(wait_for(enter, fillers, false));
	}
	EXPECT_NONE(wait_for(enter_by_a_raise, 0, true));
	return NULL;
}

static const char *ends_inside(void)
{
	return wait_for(enter_and_end, 1, true);
}

/* Two handlers are added and removed all the time, while two threads raise. */
#define ROUNDS SUITE_SCALE(5000u)
static struct suite_mark marks[2][ROUNDS];
static _Atomic uint64_t is_over, inside[2], dead;

static void pass(struct suite_mark *mark)
{
	_Atomic uint64_t *count = mark->context;

	atomic_fetch_add(count, 1);
	if (atomic_load(&mark->releases) != 0)
		atomic_fetch_add(&dead, 1);
	atomic_fetch_sub(count, 1);
}

static void *raises_on(void *node)
{
	while (!atomic_load(&is_over))
		(void)suite_raise(node, KEY, BOTH, 0, NULL);
	return NULL;
}

static const char *churn(struct evc_node *node, unsigned which)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct suite_mark *mark = &marks[which][i];
		struct evc_handler *handler;

		*mark = (struct suite_mark){ .id = 1, .act = pass, .context = &inside[which] };
		EXPECT_NONE(suite_handle(node, KEY, EVC_HANDLER_PROPAGATE, mark, &handler));
		if (i % 16 == 0)
			EXPECT(suite_await(&mark->calls, 1), "it was not called");
		EXPECT_OK(evc_handler_remove_and_wait(handler));
		EXPECT_EQUAL(inside[which], 0, "calls that ran when it returned");
		evc_handler_drop(handler);
	}
	return NULL;
}

static void *churns(void *node)
{
	return (void *)churn(node, 1);
}

static const char *races(void)
{
	pthread_t raisers[2], other;
	struct evc_node *node;
	void *others;
	const char *message;

	atomic_store(&is_over, 0);
	atomic_store(&dead, 0);
	EXPECT_NONE(suite_node(NULL, &node));
	for (unsigned i = 0; i < 2; i++)
		pthread_create(&raisers[i], NULL, raises_on, node);
	pthread_create(&other, NULL, churns, node);
	message = churn(node, 0);
	pthread_join(other, &others);
	atomic_store(&is_over, 1);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(raisers[i], NULL);
	EXPECT_NONE(message);
	EXPECT_NONE((const char *)others);
	EXPECT_EQUAL(dead, 0, "calls after the release");
	evc_node_end(node);
	for (unsigned i = 0; i < ROUNDS; i++)
		EXPECT(marks[0][i].releases == 1 && marks[1][i].releases == 1, "releases");
	return NULL;
}

/* A node whose handlers one thread removes while another is in a walk over them. */
static struct {
	struct evc_node *node;
	_Atomic uint64_t round, done;
	_Atomic bool is_over;
} watched;

static void *removes_all(void *unused)
{
	for (uint64_t round = 1;; round++) {
		while (atomic_load(&watched.round) < round) {
			if (atomic_load(&watched.is_over))
				return unused;
			sched_yield();
		}
		(void)evc_node_remove_handlers(watched.node, 0, 0);
		atomic_store(&watched.done, round);
	}
}

/* The number of the node's other handlers between the end of this handler and the end of the change. */
static const char *watch_once(unsigned others, uint64_t round)
{
	struct evc_handler *first, *second;
	struct evc_walk *walk;
	bool has_ended = false;

	EXPECT_OK(evc_node_create(NULL, &watched.node));
	EXPECT_OK(evc_node_add_handler(watched.node, KEY, EVC_HANDLER_RAISE, NULL, &first));
	EXPECT_OK(evc_node_add_handler(watched.node, KEY, EVC_HANDLER_RAISE, NULL, &second));
	for (unsigned i = 0; i < others; i++)
		EXPECT_OK(evc_node_add_handler(watched.node, KEY + 1, EVC_HANDLER_RAISE, NULL, NULL));
	EXPECT_OK(evc_walk_begin(watched.node, KEY, EVC_WALK_RAISE, &walk));
	EXPECT_EQUAL(walk->count, 2, "handlers of the walk");
	EXPECT(evc_handler_is_active(second), "a handler that is there is not active");
	atomic_store(&watched.round, round);
	/* In the first handler: until it is told, or the other thread is done. */
	while (evc_walk_will_call(walk, 0) && atomic_load(&watched.done) < round && !has_ended)
		has_ended = !evc_handler_is_active(second);
	has_ended = has_ended || !evc_handler_is_active(second);
	EXPECT(!has_ended || !evc_walk_will_call(walk, 1), "round %llu: called after it had ended",
	       (unsigned long long)round);
	evc_walk_end(walk);
	EXPECT(suite_await(&watched.done, round), "the handlers were not removed");
	EXPECT(!evc_handler_is_active(first) && !evc_handler_is_active(second),
	       "removed handlers are active");
	evc_handler_drop(first);
	evc_handler_drop(second);
	evc_node_end(watched.node);
	return NULL;
}

static const char *told_of_the_end(void)
{
	pthread_t thread;
	const char *failure = NULL;

	memset(&watched, 0, sizeof(watched));
	EXPECT_EQUAL(pthread_create(&thread, NULL, removes_all, NULL), 0, "thread");
	for (uint64_t round = 1; failure == NULL && round <= SUITE_SCALE(3000); round++)
		failure = watch_once(round % 2 == 0 ? 0 : 200, round);
	atomic_store(&watched.is_over, true);
	pthread_join(thread, NULL);
	return failure;
}

static const struct evc_suite_test tests[] = {
	{ "D6 trees: no call begins once a handler is reported inactive", told_of_the_end },
	{ "D6 trees: a thread that waits for a handler is told when the walk leaves it, whatever comes next", is_told },
	{ "D6 trees: a thread that waits for a handler is told when the handler's thread ends inside it", ends_inside },
	{ "D6 trees: two threads remove and wait while two raise", races },
};
SUITE_GROUP(suite_tree_wait, tests);
#endif
