/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What the files of a worker share: worker.c, worker_wait.c.
 */
#ifndef EVC_WORKER_H
#define EVC_WORKER_H

#include "mailbox/mailbox_private.h"
#include "shared/shared_mailbox_private.h"

/* True if its own mailbox holds something. */
static inline bool evc_worker_has_mail(struct evc_worker *worker)
{
	struct evc_mailbox *mailbox = worker->mailbox;

	return mailbox->lanes.occupied != 0 ||
	       evc_mailbox_undealt(mailbox, memory_order_seq_cst) != 0;
}

#endif
