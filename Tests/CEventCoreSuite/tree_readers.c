/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A raise takes no lock once its thread is warm: it completes while another thread holds the mutex of all
 * trees.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include <string.h>

#define KEY UINT64_C(21)
#define INNER UINT64_C(22)
#define NODES 300u

static struct {
	struct evc_node *root, *nodes[NODES];
	struct suite_mark marks[NODES], inner[NODES];
	struct suite_gate warm, locked, entered, may_go, raised;
	_Atomic(const char *) message;
} scene;

/* A raise within the raise, which a handler of another node consumes. */
static void raise_inside(struct suite_mark *mark)
{
	if (suite_raise(scene.nodes[NODES - 1], INNER, SUITE_ALL_PHASES, 20, NULL) != EVC_OK)
		atomic_store(&scene.message, "a raise within the raise fails");
	(void)mark;
}

static void enter(struct suite_mark *mark)
{
	(void)mark;
	suite_gate_open(&scene.entered);
	(void)suite_gate_pass(&scene.may_go);
}

static const char *set_up(void)
{
	static const struct suite_gate shut = SUITE_GATE;

	memset(&scene, 0, sizeof(scene));
	scene.warm = scene.locked = scene.entered = scene.may_go = scene.raised = shut;
	EXPECT_NONE(suite_node(NULL, &scene.root));
	for (unsigned i = 0; i < NODES; i++) {
		EXPECT_NONE(suite_node(i % 10 == 0 ? scene.root : scene.nodes[i - 1],
				       &scene.nodes[i]));
		scene.marks[i] = (struct suite_mark){ .id = i + 1 };
		scene.inner[i] = (struct suite_mark){ .id = i + 1 };
		EXPECT_NONE(suite_handle(scene.nodes[i], KEY,
					 EVC_HANDLER_CAPTURE | EVC_HANDLER_RAISE |
						 EVC_HANDLER_PROPAGATE,
					 &scene.marks[i], NULL));
		EXPECT_NONE(suite_handle(scene.nodes[i], INNER, EVC_HANDLER_PROPAGATE,
					 &scene.inner[i], NULL));
	}
	return NULL;
}

static const char *tear_down(void)
{
	for (unsigned i = NODES; i > 0; i--)
		evc_node_end(scene.nodes[i - 1]);
	evc_node_end(scene.root);
	EXPECT(scene.message == NULL, "%s", scene.message);
	return NULL;
}

static void raise_or_tell(unsigned from)
{
	if (suite_raise(scene.nodes[from], KEY, SUITE_ALL_PHASES, 0, NULL) != EVC_OK)
		atomic_store(&scene.message, "a raise fails");
}

/*
 * The same raise again, which may reuse what the last one found; one elsewhere; one of a part; one without
 * handlers.
 */
static void *raises(void *context)
{
	(void)context;
	raise_or_tell(5);
	suite_gate_open(&scene.warm);
	if (!suite_gate_pass(&scene.locked))
		return NULL;
	raise_or_tell(5);
	raise_or_tell(NODES - 1);
	if (suite_raise(scene.nodes[10], KEY, EVC_WALK_FROM_HERE | EVC_WALK_PROPAGATE, 0, NULL) !=
		    EVC_OK ||
	    suite_raise(scene.nodes[10], INNER + 1, SUITE_ALL_PHASES, 0, NULL) != EVC_EMPTY)
		atomic_store(&scene.message, "a raise of a part fails");
	suite_gate_open(&scene.raised);
	return NULL;
}

static const char *beside_the_lock(void)
{
	pthread_t raiser;
	bool is_done;

	EXPECT_NONE(set_up());
	scene.marks[0].act = raise_inside;
	pthread_create(&raiser, NULL, raises, NULL);
	EXPECT(suite_gate_pass(&scene.warm), "the first raise does not end");
	EXPECT_EQUAL(scene.marks[NODES - 1].calls, 1, "calls by the first raise");
	/* So that what it found is outdated. */
	EXPECT_OK(evc_node_attach(scene.nodes[NODES - 10], scene.root, NULL));
	evc_tree_lock();
	suite_gate_open(&scene.locked);
	is_done = suite_gate_pass(&scene.raised);
	evc_tree_unlock();
	pthread_join(raiser, NULL);
	EXPECT(is_done, "a raise waits for the mutex of the trees");
	/* Of the raise there in each phase, of the two others in one. */
	EXPECT_EQUAL(scene.marks[NODES - 1].calls, 3 + 2, "calls of the last node");
	/* The first node is on the way of two raises, and those below of one. */
	EXPECT_EQUAL(scene.inner[19].calls, 3 + 3 + 1, "calls by the raises within");
	EXPECT_EQUAL(scene.inner[20].calls, 0, "calls behind the one that consumes");
	return tear_down();
}

static void *raises_once(void *context)
{
	(void)context;
	raise_or_tell(5);
	suite_gate_open(&scene.raised);
	return NULL;
}

/*
 * raiser                           main
 * raise: in the first handler
 *                                  removes and ends what the raise holds
 *                                  has the mutex
 * goes on, is asked to free them
 * done
 *                                  lets go: they are freed
 */
static const char *with_something_to_free(void)
{
	struct evc_handler *handler;
	struct suite_mark removed = { .id = NODES + 1 };
	pthread_t raiser;
	bool is_done;

	EXPECT_NONE(set_up());
	scene.marks[0].act = enter;
	EXPECT_NONE(suite_handle(scene.nodes[0], KEY, EVC_HANDLER_CAPTURE, &removed, &handler));
	pthread_create(&raiser, NULL, raises_once, NULL);
	EXPECT(suite_gate_pass(&scene.entered), "the handler is not called");
	EXPECT_OK(evc_handler_remove(handler));
	evc_handler_drop(handler);
	evc_node_detach(scene.nodes[10]);
	EXPECT_EQUAL(removed.releases, 0, "releases of what a raise holds");
	evc_tree_lock();
	suite_gate_open(&scene.may_go);
	is_done = suite_gate_pass(&scene.raised);
	evc_tree_unlock();
	pthread_join(raiser, NULL);
	EXPECT(is_done, "a raise waits for the mutex of the trees");
	EXPECT_EQUAL(removed.calls, 0, "calls of what was removed");
	EXPECT(suite_await(&removed.releases, 1), "what was removed is not released");
	return tear_down();
}

static const struct evc_suite_test tests[] = {
	{ "trees: a raise of a warm thread is done while another has the mutex", beside_the_lock },
	{ "trees: a raise that is asked to free something does not wait for the mutex",
	  with_something_to_free },
};
SUITE_GROUP(suite_tree_readers, tests);
#endif
