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

#include "eventcore/base.h"

#include <stdatomic.h>

#ifndef __linux__
#include <pthread.h>
#endif

struct evc_event_count {
	_Atomic uint32_t count;
#ifndef __linux__
	/* Held for moments, around the last look at the count and around A2. */
	pthread_mutex_t mutex;
	pthread_cond_t grown;
#endif
};

/* The memory is zeroed. False: no resources. */
bool evc_event_count_open(struct evc_event_count *event_count);
void evc_event_count_close(struct evc_event_count *event_count);

/* W1. */
static inline uint32_t evc_event_count_read(struct evc_event_count *event_count)
{
	return atomic_load_explicit(&event_count->count, memory_order_acquire);
}

/* W3, until `end` at the latest (EVC_FOREVER: no limit). May return early without a reason. Blocking. */
void evc_event_count_wait(struct evc_event_count *event_count, uint32_t seen, uint64_t end);
/* A2, A3. On Linux it waits for nobody. */
void evc_event_count_advance(struct evc_event_count *event_count);

#endif
