/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The subscriptions of a mailbox or a shared mailbox. Ordinary ones live as long as the mailbox; latest-only
 * ones, which stand in front of it, are made and ended at any time (latest.h).
 */
#ifndef EVC_SUBSCRIPTION_LIST_H
#define EVC_SUBSCRIPTION_LIST_H

#include "memory/subscription.h"

#include <pthread.h>

struct evc_latest;

struct evc_subscription_list {
	/* Guards the rest. Innermost in the lock order. */
	pthread_mutex_t mutex;
	struct evc_subscription *first;
	struct evc_latest *latests;
	/* The superseded and the refused events of latest-only subscriptions that have ended. */
	uint64_t superseded;
	uint64_t refused;
};

/* The list's memory is zeroed. False = out of memory. */
bool evc_subscription_list_open(struct evc_subscription_list *list);
/* Ends all subscriptions. No other thread uses the list any more. */
void evc_subscription_list_close(struct evc_subscription_list *list);

/* Adds a copy of `subscription`. EVC_OUT_OF_MEMORY or EVC_OK. */
enum evc_status evc_subscription_list_add(struct evc_subscription_list *list,
					  const struct evc_subscription *subscription,
					  struct evc_subscription **out);

#endif
