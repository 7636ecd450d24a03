/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "mailbox/mailbox_deliver.h"

enum evc_status evc_mailbox_run(struct evc_mailbox *mailbox)
{
	uint64_t no_limit = UINT64_MAX;

	if (mailbox == NULL || mailbox->options.wake != NULL)
		return EVC_INVALID_ARGUMENT;
	/* A spinning consumer wants the shortest latency; for the others a microsecond is nothing. */
	mailbox->paces = mailbox->options.strategy != EVC_WAIT_SPIN;
	mailbox->pace = EVC_PAUSES;
	while (evc_mailbox_deliver_all(mailbox, &no_limit) != EVC_CLOSED)
		(void)evc_mailbox_wait(mailbox, EVC_FOREVER);
	return EVC_CLOSED;
}
#endif
