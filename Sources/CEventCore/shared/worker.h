/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What the files of a worker share: worker.c, worker_wait.c.
 */
#ifndef EVC_WORKER_H
#define EVC_WORKER_H

#include "mailbox/mailbox_private.h"
#include "shared/shared_mailbox_private.h"

/* True if its own mailbox holds something. Its thread. */
static inline bool evc_worker_has_mail(struct evc_worker *worker)
{
	struct evc_mailbox *mailbox = worker->mailbox;

	return mailbox->occupied != 0 || mailbox->turning != 0 ||
	       evc_mailbox_has_posts(mailbox, memory_order_seq_cst);
}

#endif
