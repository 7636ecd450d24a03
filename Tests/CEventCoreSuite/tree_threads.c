/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Four threads raise events while others attach, detach, move, add, remove and end. Handlers of nodes that
 * stay are called once in each raise (D4), none after it was released, and each object is released once.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY UINT64_C(31)
#define BOTH (EVC_WALK_RAISE | EVC_WALK_PROPAGATE)
#define RAISERS 4u
#define STAYING 120u
#define MOVING 40u
#define RAISES SUITE_SCALE(20000u)

struct storm {
	struct evc_node *root, *staying[STAYING], *moving[MOVING];
	struct suite_mark marks[STAYING];
	_Atomic uint64_t raisers_done;
	_Atomic uint64_t live;
	_Atomic uint64_t dead_calls;
	_Atomic(const char *) message;
};

static struct storm storm;

/* An object that is added and removed: it knows whether it still exists. */
struct guest {
	_Atomic uint64_t is_released;
};

static void release(void *object)
{
	struct guest *guest = object;

	if ((char *)object >= (char *)storm.marks &&
	    (char *)object < (char *)(storm.marks + STAYING)) {
		suite_release_mark(object);
		return;
	}
	if (atomic_exchange(&guest->is_released, 1) != 0)
		atomic_fetch_add(&storm.dead_calls, 1);
	atomic_fetch_sub(&storm.live, 1);
	free(guest);
}

static const char *raise_once(struct evc_node *from, unsigned char *seen)
{
	struct evc_walk *walk;
	enum evc_status status;
	unsigned next = 0;

	memset(seen, 0, STAYING);
	EXPECT_OK(evc_walk_begin(from, KEY, BOTH, &walk));
	do {
		for (uint32_t i = 0; i < walk->count; i++) {
			char *object;

			if (!evc_walk_will_call(walk, i))
				continue;
			object = walk->objects[i];
			EXPECT(object == evc_handler_object(walk->handlers[i]), "another's object");
			if (object >= (char *)storm.marks &&
			    object < (char *)(storm.marks + STAYING)) {
				struct suite_mark *mark = (struct suite_mark *)(void *)object;

				EXPECT(mark->id == next, "node %u is called when %u is due",
				       mark->id, next);
				next++;
			} else if (atomic_load(&((struct guest *)(void *)object)->is_released)) {
				atomic_fetch_add(&storm.dead_calls, 1);
			}
		}
	} while ((status = evc_walk_next(walk)) == EVC_OK);
	evc_walk_end(walk);
	EXPECT_STATUS(status, EVC_EMPTY);
	EXPECT_EQUAL(next, STAYING, "nodes that stay");
	return NULL;
}

static void note(const char *message)
{
	if (message != NULL)
		atomic_store(&storm.message, strdup(message));
}

static void *raises(void *context)
{
	unsigned char seen[STAYING];
	const char *message = NULL;

	(void)context;
	for (unsigned i = 0; i < RAISES && message == NULL; i++)
		message = raise_once(storm.staying[i % STAYING], seen);
	note(message);
	atomic_fetch_add(&storm.raisers_done, 1);
	return NULL;
}

static const char *add_guest(struct evc_node *node, struct evc_handler **out)
{
	struct guest *guest = malloc(sizeof(*guest));

	EXPECT(guest != NULL, "no memory");
	atomic_init(&guest->is_released, 0);
	atomic_fetch_add(&storm.live, 1);
	EXPECT_OK(evc_node_add_handler(node, KEY, EVC_HANDLER_PROPAGATE, guest, out));
	return NULL;
}

/* The preorder of the nodes that stay is their index: children are made depth first. */
static const char *churn(uint64_t seed)
{
	static const struct evc_node_options options = { sizeof(options), NULL, release };
	struct evc_handler *handlers[MOVING] = { NULL };
	uint64_t random = seed;

	while (atomic_load(&storm.raisers_done) < RAISERS) {
		unsigned i = (unsigned)(suite_random(&random) % MOVING);
		unsigned to = (unsigned)(suite_random(&random) % STAYING);

		switch (suite_random(&random) % 6) {
		case 0:
		case 1: {
			enum evc_status status =
				suite_random(&random) % 2
					? evc_node_attach(storm.moving[i], storm.staying[to], NULL)
					: evc_node_attach(storm.moving[i],
							  storm.moving[to % MOVING], NULL);

			EXPECT(status == EVC_OK || status == EVC_NOT_PERMITTED, "attach");
			break;
		}
		case 2:
			evc_node_detach(storm.moving[i]);
			break;
		case 3:
			if (handlers[i] == NULL) {
				EXPECT_NONE(add_guest(storm.moving[i], &handlers[i]));
			} else {
				if (suite_random(&random) % 8 == 0)
					EXPECT_OK(evc_handler_remove_and_wait(handlers[i]));
				else
					EXPECT_OK(evc_handler_remove(handlers[i]));
				evc_handler_drop(handlers[i]);
				handlers[i] = NULL;
			}
			break;
		case 4: {
			struct evc_handler *handler;

			EXPECT_NONE(add_guest(storm.staying[to], &handler));
			EXPECT_OK(evc_handler_remove(handler));
			evc_handler_drop(handler);
			break;
		}
		default:
			evc_node_end(storm.moving[i]);
			if (handlers[i] != NULL)
				evc_handler_drop(handlers[i]);
			handlers[i] = NULL;
			EXPECT_OK(evc_node_create(&options, &storm.moving[i]));
		}
	}
	for (unsigned i = 0; i < MOVING; i++)
		if (handlers[i] != NULL)
			evc_handler_drop(handlers[i]);
	return NULL;
}

static void *churns(void *context)
{
	note(churn(*(uint64_t *)context));
	return NULL;
}

static const char *storms(void)
{
	static const struct evc_node_options options = { sizeof(options), NULL, release };
	pthread_t raisers[RAISERS], churner;
	uint64_t seed = suite_seed();
	/* A spine with three leaves at each of its nodes, made depth first. */
	struct evc_node *spine = NULL;

	memset(&storm, 0, sizeof(storm));
	for (unsigned i = 0; i < STAYING; i++) {
		storm.marks[i] = (struct suite_mark){ .id = i };
		EXPECT_OK(evc_node_create(&options, &storm.staying[i]));
		if (spine != NULL)
			EXPECT_OK(evc_node_attach(storm.staying[i], spine, NULL));
		if (i % 4 == 0)
			spine = storm.staying[i];
		EXPECT_NONE(suite_handle(storm.staying[i], KEY, EVC_HANDLER_PROPAGATE,
					 &storm.marks[i], NULL));
	}
	for (unsigned i = 0; i < MOVING; i++)
		EXPECT_OK(evc_node_create(&options, &storm.moving[i]));
	pthread_create(&churner, NULL, churns, &seed);
	for (unsigned i = 0; i < RAISERS; i++)
		pthread_create(&raisers[i], NULL, raises, NULL);
	for (unsigned i = 0; i < RAISERS; i++)
		pthread_join(raisers[i], NULL);
	pthread_join(churner, NULL);
	EXPECT(storm.message == NULL, "seed %llu: %s", (unsigned long long)seed, storm.message);
	for (unsigned i = 0; i < MOVING; i++)
		evc_node_end(storm.moving[i]);
	for (unsigned i = STAYING; i > 0; i--) {
		evc_node_end(storm.staying[i - 1]);
		EXPECT_EQUAL(storm.marks[i - 1].releases, 1, "releases of a handler that stayed");
	}
	EXPECT_EQUAL(storm.live, 0, "guests that were not released");
	EXPECT_EQUAL(storm.dead_calls, 0, "calls after the release");
	return NULL;
}

/* A removal that waits while the handler runs on another thread. */
static struct suite_gate entered, may_go;
static _Atomic uint64_t has_left;

static void enter(struct suite_mark *mark)
{
	(void)mark;
	suite_gate_open(&entered);
	(void)suite_gate_pass(&may_go);
	atomic_store(&has_left, 1);
}

static struct suite_mark *held;

static void *raise_one(void *node)
{
	uint64_t start;

	(void)suite_raise(node, KEY, BOTH, 0, NULL);
	/*
	 * Not only when the thread ends; and if another thread holds the mutex at the walk's end, by that
	 * thread.
	 */
	start = evc_clock_now();
	while (atomic_load_explicit(&held->releases, memory_order_acquire) != 1) {
		if (evc_clock_now() - start > SUITE_LIMIT_NS) {
			note("the end of the walk that held the handler has not released it");
			break;
		}
		sched_yield();
	}
	return NULL;
}

static void *remove_one(void *handler)
{
	if (evc_handler_remove_and_wait(handler) != EVC_OK || !atomic_load(&has_left))
		note("it returned while the handler ran");
	atomic_fetch_add(&storm.raisers_done, 1);
	return NULL;
}

static bool is_handled(struct evc_node *node)
{
	bool is_handled;

	evc_tree_lock();
	is_handled = evc_node_first_handler(node) != NULL;
	evc_tree_unlock();
	return is_handled;
}

static const char *waits(void)
{
	static const struct suite_gate shut = SUITE_GATE;
	struct suite_mark mark = { .id = 1, .act = enter };
	struct evc_handler *handler;
	pthread_t raiser, remover;
	struct evc_node *node;

	memset(&storm, 0, sizeof(storm));
	entered = may_go = shut;
	held = &mark;
	atomic_store(&has_left, 0);
	EXPECT_NONE(suite_node(NULL, &node));
	EXPECT_NONE(suite_handle(node, KEY, EVC_HANDLER_PROPAGATE, &mark, &handler));
	pthread_create(&raiser, NULL, raise_one, node);
	EXPECT(suite_gate_pass(&entered), "the handler was not called");
	pthread_create(&remover, NULL, remove_one, handler);
	/* It has removed it, and cannot have returned. */
	while (is_handled(node))
		sched_yield();
	EXPECT_EQUAL(storm.raisers_done, 0, "removers that did not wait");
	EXPECT_EQUAL(mark.releases, 0, "releases while it runs");
	suite_gate_open(&may_go);
	pthread_join(remover, NULL);
	pthread_join(raiser, NULL);
	EXPECT(storm.message == NULL, "%s", storm.message);
	EXPECT_EQUAL(mark.releases, 1, "releases");
	evc_handler_drop(handler);
	evc_node_end(node);
	return NULL;
}

static int remove_in_child(void *handler)
{
	return evc_handler_remove_and_wait(handler) == EVC_OK && held->releases == 1 ? 0 : 1;
}

/* A handler runs on another thread during a fork: in the child it does not run and is not held. */
static const char *forks(void)
{
	static const struct suite_gate shut = SUITE_GATE;
	struct suite_mark mark = { .id = 1, .act = enter };
	struct evc_handler *handler;
	struct evc_node *node;
	char said[SUITE_SAID];
	pthread_t raiser;
	int status;

	memset(&storm, 0, sizeof(storm));
	entered = may_go = shut;
	held = &mark;
	EXPECT_NONE(suite_node(NULL, &node));
	EXPECT_NONE(suite_handle(node, KEY, EVC_HANDLER_PROPAGATE, &mark, &handler));
	pthread_create(&raiser, NULL, raise_one, node);
	EXPECT(suite_gate_pass(&entered), "the handler was not called");
	EXPECT_NONE(suite_in_child(remove_in_child, handler, &status, said));
	/* Here it still runs. */
	EXPECT_OK(evc_handler_remove(handler));
	EXPECT_EQUAL(mark.releases, 0, "releases while it runs");
	suite_gate_open(&may_go);
	pthread_join(raiser, NULL);
	EXPECT(storm.message == NULL, "%s", storm.message);
	EXPECT(!WIFSIGNALED(status), "the child was ended by signal %d: %.200s", WTERMSIG(status), said);
	EXPECT_EQUAL(WEXITSTATUS(status), 0, "the child's status");
	evc_handler_drop(handler);
	evc_node_end(node);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 D6 D9 trees: four threads raise, a fifth changes all that it can", storms },
	{ "D6 trees: a removal waits for the handler that runs on another thread", waits },
	{ "D6 trees: a child of fork does not wait for handlers of threads that it does not have", forks },
};
SUITE_GROUP(suite_tree_threads, tests);
#endif
