/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "memory/envelope.h"

void evc_batch_end(struct evc_envelope *envelope, struct evc_return_cache *cache)
{
	struct evc_subscription *subscription = envelope->subscription;
	struct evc_batch *batch = &envelope->batch;

	for (; subscription->drop != NULL && batch->left > 0; batch->left--) {
		subscription->drop(subscription->context, batch->payload);
		batch->payload += batch->step;
	}
	evc_box_free(batch->box, cache);
}
#endif
