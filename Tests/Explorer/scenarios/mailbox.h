/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Shared by the scenarios of a mailbox: their beginning and end. Each file has its own copy. */
#ifndef EXPLORER_MAILBOX_H
#define EXPLORER_MAILBOX_H

#include "post.h"

static struct evc_router *router;
static struct evc_mailbox *mailbox;
static struct producer producers[2];

static inline void set_up(const struct evc_mailbox_options *options)
{
	router = make_router();
	mailbox = make_mailbox(options);
	(void)listen(router, mailbox);
	for (unsigned i = 0; i < 2; i++)
		producers[i] = (struct producer){ router, i * 4, 2,
						  { EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL,
						    EVC_LANE_QUEUE_NORMAL, EVC_LANE_QUEUE_NORMAL } };
}

static inline void tear_down(void)
{
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
	explorer_forbid_idling(false);
	explorer_settle();
	tally_check_once(0, EVENTS);
}

static inline void *run_mailbox(void *unused)
{
	CHECK(evc_mailbox_run(mailbox) == EVC_CLOSED);
	return unused;
}

#endif
