/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* What trees allocate and give back, and what happens if an allocation fails. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include "tree/tree_memory.h"
#include "tree/tree_private.h"

#include <stdlib.h>
#include <string.h>

#define KEY UINT64_C(9)
#define BOTH (EVC_WALK_RAISE | EVC_WALK_PROPAGATE)

/* Repeats the call as often as it runs out of memory; any other failure is an error. */
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
	struct evc_node_options options = { sizeof(options), NULL, suite_release_mark };
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
	uint64_t fail_at, patience, failures;
	/* The number of free slots in the slab of handlers and links; no other slab has any. */
	unsigned spare;
	const char *message;
};

/* On a thread of its own, so that each life begins equally cold and ends with nothing. */
static void *live_on_thread(void *context)
{
	struct life *life = context;

	suite_allocator_install(life->fail_at, life->patience);
	life->message = live(life->patience, &life->failures);
	if (life->message != NULL)
		life->message = strdup(life->message);
	return NULL;
}

static const char *live_once(struct life *life, void *(*on_thread)(void *), uint64_t *failed)
{
	struct suite_allocations counts;
	pthread_t thread;

	/* Nodes and handlers come from slabs: there is none, so that making one may fail too. */
	evc_tree_give_back();
	EXPECT(pthread_create(&thread, NULL, on_thread, life) == 0, "no thread");
	pthread_join(thread, NULL);
	counts = suite_allocator_read();
	suite_allocator_restore();
	EXPECT(life->message == NULL, "allocation %llu failing, %llu times, with %u slots: %.200s",
	       (unsigned long long)life->fail_at, (unsigned long long)life->patience, life->spare,
	       life->message);
	EXPECT_EQUAL(life->failures, counts.failed, "statuses, beside failed allocations");
	EXPECT_EQUAL(counts.live, 0, "blocks that were not freed");
	*failed = counts.failed;
	return NULL;
}

/* Under AddressSanitizer each slot is a block of its own, and fails as such. */
#ifdef SUITE_ADDRESS_SANITIZER
static const char *live_by_slots(uint64_t patience, uint64_t *sites)
{
	(void)patience, (void)sites;
	return NULL;
}
#else
#define SLOTS ((unsigned)((EVC_TREE_SLAB - EVC_TREE_SLAB_HEADER) / EVC_TREE_SMALL))

/*
 * Uses up the slab of the small slots except some, and lives. The first block that it then allocates is the
 * next slab.
 */
static void *live_with_few_slots(void *context)
{
	struct life *life = context;
	void *small[SLOTS], *large = evc_tree_allocate(EVC_TREE_LARGE);

	for (unsigned i = 0; i < SLOTS; i++)
		small[i] = evc_tree_allocate(EVC_TREE_SMALL);
	for (unsigned i = 0; i < life->spare; i++)
		evc_tree_free(small[i], EVC_TREE_SMALL);
	(void)live_on_thread(life);
	for (unsigned i = life->spare; i < SLOTS; i++)
		evc_tree_free(small[i], EVC_TREE_SMALL);
	evc_tree_free(large, EVC_TREE_LARGE);
	return NULL;
}

/* Each handler, and the link of the move, may be the one for which there is no slab. */
static const char *live_by_slots(uint64_t patience, uint64_t *sites)
{
	for (unsigned spare = 0; spare <= 500; spare++, ++*sites) {
		struct life life = { .patience = patience, .spare = spare };
		uint64_t failed;

		EXPECT_NONE(live_once(&life, live_with_few_slots, &failed));
		EXPECT_EQUAL(failed, patience, "slabs that were refused");
	}
	return NULL;
}
#endif

static const char *failing(void)
{
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	for (uint64_t patience = 1; patience <= 3; patience += 2) {
		uint64_t failed = 1, sites = 0;

		for (; failed > 0 && sites < 1000; sites++) {
			struct life life = { .fail_at = sites, .patience = patience };

			EXPECT_NONE(live_once(&life, live_on_thread, &failed));
		}
		EXPECT_EQUAL(failed, 0, "failed allocations of the last life");
		EXPECT_NONE(live_by_slots(patience, &sites));
		EXPECT(sites > 500, "%llu sites were reached", (unsigned long long)sites);
	}
	return NULL;
}

/*
 * Slabs: slots of two sizes do not overlap, can be used again, and a slab is given back with its last slot.
 */
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
		/* In order, and in an order that keeps each slab in use to the end. */
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

/* One thread makes nodes, another ends them. */
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
	{ "D12 trees: every allocation may fail, once or three times: nothing is lost", failing },
	{ "trees: slots are whole, and slabs go back with the last of theirs", slots },
	{ "trees: nodes that one thread makes and another ends take no memory for good", passed_on },
};
SUITE_GROUP(suite_tree_allocation, tests);
#endif
