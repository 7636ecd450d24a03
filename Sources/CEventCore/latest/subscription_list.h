/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The subscriptions of a mailbox or a shared mailbox. Ordinary ones live as long as the mailbox; latest-only
 * ones, which stand in front of it, are made and ended at any time (latest.h).
 */
#ifndef EVC_SUBSCRIPTION_LIST_H
#define EVC_SUBSCRIPTION_LIST_H

#include "memory/subscription.h"

#include <stdatomic.h>

struct evc_latest_list;

/* All zero: an empty list. Any thread adds to both fields, whose contents stay until the close. */
struct evc_subscription_list {
	_Atomic(struct evc_subscription *) first;
	/* Those that are latest-only, since there was one: few mailboxes have any (latest.h). */
	_Atomic(struct evc_latest_list *) latests;
};

/* Ends all subscriptions. No other thread uses the list any more. */
void evc_subscription_list_close(struct evc_subscription_list *list);

/* Adds a copy of `subscription`. EVC_OUT_OF_MEMORY or EVC_OK. */
enum evc_status evc_subscription_list_add(struct evc_subscription_list *list,
					  const struct evc_subscription *subscription,
					  struct evc_subscription **out);

#endif
