/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The subscriptions of a mailbox or a shared mailbox. Those that envelopes go straight to live as long as it does;
 * the latest-only ones, in front of it, come and go (latest.h).
 */
#ifndef EVC_SUBSCRIPTION_LIST_H
#define EVC_SUBSCRIPTION_LIST_H

#include "memory/subscription.h"

#include <pthread.h>

struct evc_latest;

struct evc_subscription_list {
	/* Guards the rest. The last of all locks. */
	pthread_mutex_t mutex;
	struct evc_subscription *first;
	struct evc_latest *latests;
	/* What was superseded in those that have ended. */
	uint64_t superseded;
};

/* Of zeroed memory. False = out of memory. */
bool evc_subscription_list_open(struct evc_subscription_list *list);
/* Ends all subscriptions. Nobody uses the list any more. */
void evc_subscription_list_close(struct evc_subscription_list *list);

/* Adds a copy of `subscription`. EVC_OUT_OF_MEMORY or EVC_OK. */
enum evc_status evc_subscription_list_add(struct evc_subscription_list *list,
					  const struct evc_subscription *subscription,
					  struct evc_subscription **out);

#endif
