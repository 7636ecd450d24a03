/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The one wait loop of consumers.
 */
#ifndef EVC_MAILBOX_WAIT_H
#define EVC_MAILBOX_WAIT_H

#include "mailbox/mailbox_private.h"

/* Where a consumer looks, and whom it tells that it sleeps beside its mailbox. All but `has_news` may be NULL. */
struct evc_waiter {
	void *context;
	/* Seq_cst: the look of the sleep protocol (C2). */
	bool (*has_news)(void *context);
	void (*begin_spin)(void *context);
	void (*lie_down)(void *context);
	void (*get_up)(void *context);
};

/*
 * Waits by the mailbox's strategy, on its parker: false if the time is over. The consumer.
 */
bool evc_wait(struct evc_mailbox *mailbox, const struct evc_waiter *waiter, uint64_t timeout);

#endif
