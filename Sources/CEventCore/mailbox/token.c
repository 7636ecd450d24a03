/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "mailbox/token.h"

void evc_token_end_superseded(struct evc_envelope *envelope)
{
	evc_envelope_end(envelope, false, NULL);
}

void evc_token_supersede_chain(const struct evc_chain *chain)
{
	struct evc_envelope *envelope = chain->first, *next;

	/* Not up to `last`, which may have been handled already. */
	for (uint32_t left = chain->count - 1; left > 0; left--, envelope = next) {
		next = evc_slot_next(envelope);
		evc_envelope_supersede(envelope);
	}
}
#endif
