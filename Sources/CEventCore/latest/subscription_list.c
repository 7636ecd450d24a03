/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "latest/latest.h"

#include "platform/allocator.h"

void evc_subscription_list_close(struct evc_subscription_list *list)
{
	/* Relaxed, both: whoever added something gave up a reference of the mailbox later. */
	struct evc_subscription *subscription = atomic_load_explicit(&list->first, memory_order_relaxed), *next;

	for (; subscription != NULL; subscription = next) {
		next = subscription->next;
		if (subscription->finalize != NULL)
			subscription->finalize(subscription->context);
		evc_deallocate(subscription, sizeof(*subscription), _Alignof(struct evc_subscription));
	}
	evc_latest_list_destroy(atomic_load_explicit(&list->latests, memory_order_relaxed));
}

enum evc_status evc_subscription_list_add(struct evc_subscription_list *list,
					  const struct evc_subscription *subscription,
					  struct evc_subscription **out)
{
	struct evc_subscription *added =
		evc_allocate(sizeof(*added), _Alignof(struct evc_subscription));

	if (added == NULL)
		return EVC_OUT_OF_MEMORY;
	*added = *subscription;
	added->next = atomic_load_explicit(&list->first, memory_order_relaxed);
	/* Relaxed: only the close reads it. */
	while (!atomic_compare_exchange_weak_explicit(&list->first, &added->next, added, memory_order_relaxed,
						      memory_order_relaxed))
		;
	*out = added;
	return EVC_OK;
}
#endif
