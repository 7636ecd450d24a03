/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Shared by the tests of trees: handlers that log their calls and may do something. */
#ifndef EVC_SUITE_TREE_H
#define EVC_SUITE_TREE_H

#include "suite.h"

#include "platform/config.h"

#ifdef EVC_URCU
#define SUITE_ALL_PHASES (EVC_WALK_CAPTURE | EVC_WALK_RAISE | EVC_WALK_PROPAGATE)
#define SUITE_LOG 64u

struct suite_mark {
	unsigned id;
	/* Called inside the handler; may be NULL. */
	void (*act)(struct suite_mark *mark);
	void *context;
	_Atomic uint64_t calls;
	_Atomic uint64_t releases;
};

struct suite_calls {
	unsigned ids[SUITE_LOG];
	unsigned count;
};

/* Raises on this thread; the log may be NULL. The id `consumer` (0: none) ends the event. */
enum evc_status suite_raise(struct evc_node *node, uint64_t key, uint32_t scope, unsigned consumer,
			    struct suite_calls *calls);
/* A node whose handlers release marks. */
const char *suite_node(struct evc_node *parent, struct evc_node **out);
const char *suite_handle(struct evc_node *node, uint64_t key, uint8_t modes,
			 struct suite_mark *mark, struct evc_handler **out);
/* Compares a log with the ids that follow, which end with 0. */
const char *suite_expect_calls(const struct suite_calls *calls, ...);
void suite_release_mark(void *mark);
#endif
#endif
