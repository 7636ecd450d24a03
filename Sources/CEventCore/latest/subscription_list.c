/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "latest/subscription_list.h"

#include "platform/allocator.h"

bool evc_subscription_list_open(struct evc_subscription_list *list)
{
	return pthread_mutex_init(&list->mutex, NULL) == 0;
}

void evc_subscription_list_close(struct evc_subscription_list *list)
{
	struct evc_subscription *subscription, *next;

	for (subscription = list->first; subscription != NULL; subscription = next) {
		next = subscription->next;
		if (subscription->finalize != NULL)
			subscription->finalize(subscription->context);
		evc_deallocate(subscription, sizeof(*subscription), _Alignof(struct evc_subscription));
	}
	pthread_mutex_destroy(&list->mutex);
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
	pthread_mutex_lock(&list->mutex);
	added->next = list->first;
	list->first = added;
	pthread_mutex_unlock(&list->mutex);
	*out = added;
	return EVC_OK;
}
#endif
