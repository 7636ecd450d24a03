/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Raises inside raises that hold what was removed: when it is released, and what it costs the others. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include <time.h>

#define OUTER 1u
#define INNER 2u
#define LAPS 3u
#define MANY 4096u
#define RAISES 100u
#define BEHIND 200u
#define ROUNDS 5u

static struct evc_node *root, *leaf;
static struct suite_mark outer[2], inner[LAPS][2];
static struct evc_handler *outer_handlers[2], *inner_handlers[LAPS][2];
static unsigned lap;
static const char *failure;

static void remove_inner(struct suite_mark *mark)
{
	(void)mark;
	if (evc_handler_remove(inner_handlers[lap][1]) != EVC_OK)
		failure = "a handler could not be removed";
	if (inner[lap][1].releases != 0)
		failure = "a handler was released while a raise held it";
}

static void raise_inside(struct suite_mark *mark)
{
	(void)mark;
	if (evc_handler_remove(outer_handlers[1]) != EVC_OK)
		failure = "a handler could not be removed";
	for (lap = 0; lap < LAPS; lap++) {
		(void)suite_raise(leaf, INNER + lap, EVC_WALK_RAISE, 0, NULL);
		if (inner[lap][1].releases != 1)
			failure = "the end of the inner raise did not release what it held";
		if (outer[1].releases != 0)
			failure = "an inner raise released what the outer one holds";
	}
}

static const char *one_inside_the_other(void)
{
	failure = NULL;
	EXPECT_NONE(suite_node(NULL, &root));
	EXPECT_NONE(suite_node(root, &leaf));
	for (unsigned i = 0; i < 2; i++) {
		outer[i] = (struct suite_mark){ .id = i + 1, .act = i == 0 ? raise_inside : NULL };
		EXPECT_NONE(suite_handle(root, OUTER, EVC_HANDLER_PROPAGATE, &outer[i], &outer_handlers[i]));
		for (unsigned of = 0; of < LAPS; of++) {
			inner[of][i] = (struct suite_mark){ .id = i + 1, .act = i == 0 ? remove_inner : NULL };
			EXPECT_NONE(suite_handle(leaf, INNER + of, EVC_HANDLER_RAISE, &inner[of][i],
						 &inner_handlers[of][i]));
		}
	}
	EXPECT_OK(suite_raise(root, OUTER, EVC_WALK_PROPAGATE, 0, NULL));
	EXPECT(failure == NULL, "%s", failure);
	EXPECT_EQUAL(outer[1].releases, 1, "releases of what the outer raise held");
	EXPECT_EQUAL(outer[1].calls, 0, "calls of a removed handler");
	for (unsigned i = 0; i < 2; i++) {
		evc_handler_drop(outer_handlers[i]);
		for (unsigned of = 0; of < LAPS; of++)
			evc_handler_drop(inner_handlers[of][i]);
	}
	evc_node_end(leaf);
	evc_node_end(root);
	return NULL;
}

static struct suite_mark once, behind[BEHIND];
static struct evc_handler *once_handler, *last;

static void remove_itself(struct suite_mark *mark)
{
	if (evc_handler_remove(*(struct evc_handler **)mark->context) != EVC_OK)
		failure = "a handler could not be removed";
}

static void raise_behind(struct suite_mark *mark)
{
	(void)mark;
	(void)suite_raise(leaf, INNER, EVC_WALK_RAISE, 0, NULL);
	if (once.releases != 1)
		failure = "a handler that was called and removed is held by the raise that goes on";
}

/* A raise at the leaf calls `once`, which removes itself, and then those behind it, whose first raises inside. */
static const char *open_behind(void)
{
	failure = NULL;
	EXPECT_NONE(suite_node(NULL, &root));
	EXPECT_NONE(suite_node(root, &leaf));
	for (unsigned i = 0; i < BEHIND; i++) {
		behind[i] = (struct suite_mark){ .id = i + 1, .act = i == 0 ? raise_behind : NULL };
		EXPECT_NONE(suite_handle(root, OUTER, EVC_HANDLER_RAISE, &behind[i], i == BEHIND - 1 ? &last : NULL));
	}
	inner[0][0] = (struct suite_mark){ .id = 1 };
	return suite_handle(leaf, INNER, EVC_HANDLER_RAISE, &inner[0][0], NULL);
}

static const char *raise_with_once(void)
{
	once = (struct suite_mark){ .id = 1, .act = remove_itself, .context = &once_handler };
	EXPECT_NONE(suite_handle(leaf, OUTER, EVC_HANDLER_RAISE, &once, &once_handler));
	EXPECT_OK(suite_raise(leaf, OUTER, EVC_WALK_RAISE, 0, NULL));
	evc_handler_drop(once_handler);
	EXPECT(failure == NULL, "%s", failure);
	EXPECT_EQUAL(once.calls, 1, "calls of the handler that removes itself");
	return NULL;
}

static void close_behind(void)
{
	evc_handler_drop(last);
	evc_node_end(leaf);
	evc_node_end(root);
}

static const char *behind_one_that_removed_itself(void)
{
	EXPECT_NONE(open_behind());
	for (unsigned round = 0; round < ROUNDS; round++)
		EXPECT_NONE(raise_with_once());
	EXPECT_EQUAL(behind[0].calls, ROUNDS, "calls of the second handler");
	close_behind();
	return NULL;
}

/* The raise inside has an index of its own, whatever that of the outer one is to come to. */
static void raise_inside_with_once(struct suite_mark *mark)
{
	(void)mark;
	if (evc_handler_remove(last) != EVC_OK)
		failure = "a handler could not be removed";
	raise_behind(mark);
	(void)suite_raise(leaf, INNER + 1, EVC_WALK_RAISE, 0, NULL);
	if (behind[BEHIND - 1].releases != 0)
		failure = "a raise inside released what the outer one holds";
}

static void raise_twice_inside(struct suite_mark *mark)
{
	(void)mark;
	(void)suite_raise(leaf, INNER, EVC_WALK_RAISE, 0, NULL);
	if (inner[1][0].releases != 1)
		failure = "a handler that was called and removed is held by the inner raise that goes on";
}

static const char *inside_of_another_that_holds(void)
{
	EXPECT_NONE(open_behind());
	behind[0].act = raise_inside_with_once;
	for (unsigned i = 0; i < 2; i++) {
		inner[1][i] = (struct suite_mark){ .id = i + 1, .act = i == 0 ? remove_itself : raise_twice_inside,
						   .context = &inner_handlers[1][0] };
		EXPECT_NONE(suite_handle(leaf, INNER + 1, EVC_HANDLER_RAISE, &inner[1][i], &inner_handlers[1][i]));
	}
	EXPECT_NONE(raise_with_once());
	EXPECT_EQUAL(inner[1][1].calls, 1, "calls of the handler behind it");
	EXPECT_EQUAL(behind[BEHIND - 1].releases, 1, "releases of what the outer raise held");
	for (unsigned i = 0; i < 2; i++)
		evc_handler_drop(inner_handlers[1][i]);
	close_behind();
	return NULL;
}

static int64_t processor_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* The shortest of some series of raises at the leaf. */
static int64_t time_of_raises(void)
{
	int64_t shortest = INT64_MAX;

	for (unsigned series = 0; series < 5; series++) {
		int64_t start = processor_time(), time;

		for (unsigned i = 0; i < RAISES; i++)
			(void)suite_raise(leaf, INNER, EVC_WALK_RAISE, 0, NULL);
		time = processor_time() - start;
		shortest = time < shortest ? time : shortest;
	}
	return shortest;
}

static int64_t before, after;

static void measure(struct suite_mark *mark)
{
	(void)mark;
	before = time_of_raises();
	(void)evc_handler_remove(last);
	after = time_of_raises();
}

static const char *beside_a_large_one(void)
{
	static struct suite_mark many[MANY];

	EXPECT_NONE(suite_node(NULL, &root));
	EXPECT_NONE(suite_node(root, &leaf));
	for (unsigned i = 0; i < MANY; i++) {
		many[i] = (struct suite_mark){ .id = i + 1, .act = i == 0 ? measure : NULL };
		EXPECT_NONE(suite_handle(root, OUTER, EVC_HANDLER_PROPAGATE, &many[i],
					 i == MANY - 1 ? &last : NULL));
	}
	inner[0][0] = (struct suite_mark){ .id = 1 };
	EXPECT_NONE(suite_handle(leaf, INNER, EVC_HANDLER_RAISE, &inner[0][0], NULL));
	EXPECT_OK(suite_raise(root, OUTER, EVC_WALK_PROPAGATE, 0, NULL));
	EXPECT_EQUAL(many[MANY - 1].releases, 1, "releases of the removed handler");
	/* A search of what the outer raise holds made them a hundred times as long. */
	EXPECT(after <= 10 * before, "%u raises took %ld ns before, and %ld ns while a removed handler is held", RAISES,
	       (long)before, (long)after);
	evc_handler_drop(last);
	evc_node_end(leaf);
	evc_node_end(root);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D9 trees: raises inside raises release what each held as each ends", one_inside_the_other },
	{ "D9 trees: a handler that removes itself is released by the raises of the next one", behind_one_that_removed_itself },
	{ "D9 trees: so is one of a raise inside, while the outer raise holds another", inside_of_another_that_holds },
	{ "trees: a removed handler that a raise holds does not slow the raises inside that one", beside_a_large_one },
};
SUITE_GROUP(suite_tree_held, tests);
#endif
