/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* What a walk of a tree cannot answer with a status ends the process, with a sentence (D12). */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

struct misuse {
	struct evc_node *node;
	bool goes_on;
};

/* Two walks of a thread, of which the outer one goes on, or ends. Returns if nobody minds. */
static int take_the_outer(void *context)
{
	const struct misuse *misuse = context;
	struct evc_walk *outer, *inner;

	if (evc_walk_begin(misuse->node, 1, EVC_WALK_RAISE, &outer) != EVC_OK ||
	    evc_walk_begin(misuse->node, 1, EVC_WALK_RAISE, &inner) != EVC_OK)
		return 1;
	if (misuse->goes_on)
		(void)!evc_walk_next(outer);
	else
		evc_walk_end(outer);
	return 0;
}

static const char *ends_with(struct evc_node *node, bool goes_on, const char *rule)
{
	struct misuse misuse = { node, goes_on };
	char sentence[SUITE_SAID];
	int status;

	EXPECT_NONE(suite_in_child(take_the_outer, &misuse, &status, sentence));
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "the process went on");
	EXPECT(strncmp(sentence, rule, strlen(rule)) == 0, "the sentence: %s", sentence);
	return NULL;
}

static const char *out_of_order(void)
{
#ifndef SUITE_THREAD_SANITIZER
	struct evc_handler *handler;
	struct suite_mark mark = { 0 };
	struct evc_node *node;

	EXPECT_OK(evc_node_create(NULL, &node));
	EXPECT_NONE(suite_handle(node, 1, EVC_HANDLER_RAISE, &mark, &handler));
	EXPECT_NONE(ends_with(node, true, "evc_walk_next: only the walk that its thread has begun last goes on"));
	EXPECT_NONE(ends_with(node, false, "evc_walk_end: only the walk that its thread has begun last ends"));
	evc_handler_drop(handler);
	evc_node_end(node);
#endif
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D12 a walk that goes on or ends before the one inside of it ends the process with a sentence", out_of_order },
};
SUITE_GROUP(suite_tree_misuse, tests);
#endif
