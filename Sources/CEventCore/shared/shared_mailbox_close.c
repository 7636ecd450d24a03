/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* The end of a shared mailbox; its states are in shared_mailbox_private.h. */
#include "latest/latest.h"
#include "shared/shared_mailbox_private.h"

static void close_with(struct evc_shared_mailbox *mailbox, uint32_t bits)
{
	/* Sequentially consistent: the "publish" that a worker's look before its sleep (W4) must not miss. */
	atomic_fetch_or_explicit(&mailbox->attention, bits, memory_order_seq_cst);
	while (evc_shared_wake_any(mailbox))
		;
	if (mailbox->bound != NULL)
		evc_event_count_advance(&mailbox->bound->rounds);
}

void evc_shared_mailbox_close(struct evc_shared_mailbox *mailbox)
{
	close_with(mailbox, EVC_SHARED_CLOSED | EVC_SHARED_DROP);
}

void evc_shared_mailbox_close_when_empty(struct evc_shared_mailbox *mailbox)
{
	close_with(mailbox, EVC_SHARED_CLOSED);
}

void evc_shared_mailbox_drop(struct evc_shared_mailbox *mailbox)
{
	if (mailbox == NULL)
		return;
	/*
	 * Held meanwhile, so that the count orders the last release after this: a caller may hold its
	 * reference in a way that a sanitizer does not understand, as Swift does.
	 */
	evc_shared_mailbox_retain(mailbox);
	/*
	 * As a last worker does: a post that comes after this drops its envelopes itself. Relaxed, and the
	 * fence: any other post is found now.
	 */
	atomic_fetch_or_explicit(&mailbox->attention, EVC_SHARED_ENDED, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	evc_shared_drop_all(mailbox);
	evc_shared_mailbox_release(mailbox);
}

void evc_shared_drop_all(struct evc_shared_mailbox *mailbox)
{
	struct evc_envelope *envelope;

	while ((envelope = evc_shared_take(mailbox, EVC_LANE_COUNT)) != NULL) {
		/* Release, pairs with evc_shared_mailbox_read_statistics: the take before its count. */
		atomic_fetch_add_explicit(&mailbox->dropped, 1, memory_order_release);
		/* Outside of the section: ending a payload runs user code. */
		if (evc_likely(!(envelope->flags & EVC_ENVELOPE_TOKEN)))
			evc_envelope_end(envelope, false, NULL);
		else if (!evc_latest_drop(envelope, NULL))
			/* Release, pairs with evc_shared_mailbox_read_statistics. */
			atomic_fetch_add_explicit(&mailbox->dropped_empty, 1, memory_order_release);
	}
}
#endif
