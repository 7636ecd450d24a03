/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What the consumer posts to its own mailbox: an event of a handler, or of a loop between two pumps.
 *
 * The consumer may append such an envelope to the list of its queue at once, or put it on top of that of its stack,
 * without the compare-and-swap, the drain and the sort of the inbox, if the order stays what it would have been:
 * - D2, D3: nothing waits in the inbox of that lane. Whatever happened before this post is then in the list, or
 *   taken, since the consumer sees the posts that happened before by coherence; what comes to the inbox from
 *   now on counts as later. The lane is not being sorted, so that the list's ends are its ends.
 * - D1: the lane is `relied` or a later one, which each take looks at. The lanes before it are announced in
 *   `attention` and found by the alarm alone, for which the post goes through the inbox.
 *
 * A second event of one kind in succession on a queue opens a batch (slot.h), which later ones join as long as it is the
 * last of its list: they cost neither an envelope nor a line of 64 bytes each.
 *
 * The consumer is the thread between evc_mailbox_enter and evc_mailbox_leave, which runs and pumps call
 * themselves. A pump leaves before it arms the mailbox (C1), since another pump may begin then.
 */
#ifndef EVC_MAILBOX_OWN_H
#define EVC_MAILBOX_OWN_H

#include "mailbox/mailbox_private.h"

/* Prepares a new mailbox. */
void evc_mailbox_own_init(struct evc_mailbox *mailbox);

/* Appends an envelope that holds `events` events. False if it has to go through the inbox. */
bool evc_mailbox_append(struct evc_mailbox *mailbox, unsigned lane, struct evc_envelope *envelope,
			uint32_t events);

/* Posts an envelope, without the inbox if the calling thread is the consumer and the order allows it. */
static inline void evc_mailbox_post_one(struct evc_mailbox *mailbox, unsigned lane,
					struct evc_envelope *envelope, uint32_t events)
{
	if (evc_unlikely(evc_consumed_current == &mailbox->own) &&
	    evc_mailbox_append(mailbox, lane, envelope, events))
		return;
	evc_mailbox_push(mailbox, lane, envelope, envelope, events);
}

#endif
