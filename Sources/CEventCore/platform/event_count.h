/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A number on which any number of threads wait until it has grown. A parker (parker.c) is the same for one thread, and
 * wakes without a system call while that thread is awake.
 *
 *   waiter                                          waker
 *   W1 seen = count                 acquire         A1 publish the news
 *   W2 look for the news                            A2 add 1 to count     release
 *   W3 wait while count == seen                     A3 wake all
 * A W3 that comes after A2 does not sleep, and one that comes before is woken by A3. If W1 reads what A2 has written,
 * W2 sees the news.
 */
#ifndef EVC_EVENT_COUNT_H
#define EVC_EVENT_COUNT_H

#include "platform/clock.h"
#include "platform/parker_private.h"

/* Has a parker's word, which is the count, and its system calls; not its protocol, which is for one sleeper. */
struct evc_event_count {
	struct evc_parker parker;
};

/* False = out of memory. */
static inline bool evc_event_count_open(struct evc_event_count *event_count)
{
	return evc_parker_init(&event_count->parker, NULL) == EVC_OK;
}

static inline void evc_event_count_close(struct evc_event_count *event_count)
{
	evc_parker_close(&event_count->parker);
}

/* W1. */
static inline uint32_t evc_event_count_read(struct evc_event_count *event_count)
{
	return atomic_load_explicit(&event_count->parker.word, memory_order_acquire);
}

/* W3, until `end` at the latest (EVC_FOREVER: no limit). May return early without a reason. Blocking. */
static inline void evc_event_count_wait(struct evc_event_count *event_count, uint32_t seen, uint64_t end)
{
	struct evc_parker *parker = &event_count->parker;

	parker->ops->wait(parker->state, (const uint32_t *)(const void *)&parker->word, seen, evc_clock_left(end));
}

/* A2, A3. Waits for nobody; but elsewhere than on Linux for the mutex that A3 takes. */
static inline void evc_event_count_advance(struct evc_event_count *event_count)
{
	struct evc_parker *parker = &event_count->parker;

	/* Pairs with W1. */
	atomic_fetch_add_explicit(&parker->word, 1, memory_order_release);
	parker->ops->wake(parker->state, (const uint32_t *)(const void *)&parker->word);
}

#endif
