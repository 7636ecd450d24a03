/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "token.h"

struct evc_envelope *evc_token_create(struct evc_subscription *subscription, unsigned lane)
{
	struct evc_thread_record *record = evc_thread_record();
	struct evc_envelope *token = record == NULL ? NULL : evc_pool_take(&record->pools[0]);

	if (token == NULL)
		return NULL;
	token->subscription = subscription;
	evc_slot_set_time(token, 0);
	token->generation = 0;
	token->index = 0;
	evc_slot_set_lane(token, lane);
	token->flags = EVC_ENVELOPE_TOKEN;
	return token;
}
#endif
