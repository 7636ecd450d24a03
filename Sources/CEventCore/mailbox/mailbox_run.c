/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "mailbox/mailbox_deliver.h"

enum evc_status evc_mailbox_run(struct evc_mailbox *mailbox)
{
	if (mailbox->options.wake != NULL)
		return EVC_INVALID_ARGUMENT;
	/* A spinning consumer wants the shortest latency; for the others a microsecond is nothing. */
	mailbox->paces = mailbox->options.strategy != EVC_WAIT_SPIN;
	mailbox->pace = EVC_PAUSES;
	for (;;) {
		struct evc_envelope *envelope = evc_mailbox_next(mailbox);

		if (evc_likely(envelope != NULL)) {
			(void)evc_mailbox_deliver(mailbox, envelope, UINT64_MAX);
			continue;
		}
		/* Relaxed: evc_mailbox_end looks again. */
		if (evc_unlikely(atomic_load_explicit(&mailbox->signal, memory_order_relaxed) &
				 (EVC_SIGNAL_CLOSE | EVC_SIGNAL_DRAIN))) {
			if (evc_mailbox_end(mailbox))
				return EVC_CLOSED;
			continue;
		}
		if (mailbox->options.idle != NULL)
			mailbox->options.idle(mailbox->options.context);
		(void)evc_mailbox_wait(mailbox, EVC_FOREVER);
	}
}
#endif
