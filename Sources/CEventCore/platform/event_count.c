/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#define _GNU_SOURCE 1
#include "platform/event_count.h"

#include "platform/clock.h"

#include <time.h>

static struct timespec timespec_of(uint64_t nanoseconds)
{
	return (struct timespec){ (time_t)(nanoseconds / 1000000000u), (long)(nanoseconds % 1000000000u) };
}

#ifdef __linux__

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

bool evc_event_count_open(struct evc_event_count *event_count)
{
	(void)event_count;
	return true;
}

void evc_event_count_close(struct evc_event_count *event_count)
{
	(void)event_count;
}

void evc_event_count_wait(struct evc_event_count *event_count, uint32_t seen, uint64_t end)
{
	uint64_t now = end == EVC_FOREVER ? 0 : evc_clock_now();
	struct timespec limit = timespec_of(now < end ? end - now : 0);

	syscall(SYS_futex, (const uint32_t *)(const void *)&event_count->count, FUTEX_WAIT_PRIVATE, seen,
		end == EVC_FOREVER ? NULL : &limit, NULL, 0);
}

void evc_event_count_advance(struct evc_event_count *event_count)
{
	/* Pairs with W1. */
	atomic_fetch_add_explicit(&event_count->count, 1, memory_order_release);
	syscall(SYS_futex, (const uint32_t *)(const void *)&event_count->count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL,
		0);
}

#else

bool evc_event_count_open(struct evc_event_count *event_count)
{
	pthread_condattr_t monotonic;

	if (pthread_condattr_init(&monotonic) != 0)
		return false;
#ifndef __APPLE__
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
#endif
	if (pthread_cond_init(&event_count->grown, &monotonic) == 0) {
		pthread_condattr_destroy(&monotonic);
		if (pthread_mutex_init(&event_count->mutex, NULL) == 0)
			return true;
		pthread_cond_destroy(&event_count->grown);
		return false;
	}
	pthread_condattr_destroy(&monotonic);
	return false;
}

void evc_event_count_close(struct evc_event_count *event_count)
{
	pthread_cond_destroy(&event_count->grown);
	pthread_mutex_destroy(&event_count->mutex);
}

void evc_event_count_wait(struct evc_event_count *event_count, uint32_t seen, uint64_t end)
{
	pthread_mutex_lock(&event_count->mutex);
	/* Relaxed: the mutex orders it with A2. */
	if (atomic_load_explicit(&event_count->count, memory_order_relaxed) == seen) {
		if (end == EVC_FOREVER) {
			pthread_cond_wait(&event_count->grown, &event_count->mutex);
		} else {
#ifdef __APPLE__
			uint64_t now = evc_clock_now();
			struct timespec limit = timespec_of(now < end ? end - now : 0);

			pthread_cond_timedwait_relative_np(&event_count->grown, &event_count->mutex, &limit);
#else
			struct timespec limit = timespec_of(end);

			pthread_cond_timedwait(&event_count->grown, &event_count->mutex, &limit);
#endif
		}
	}
	pthread_mutex_unlock(&event_count->mutex);
}

void evc_event_count_advance(struct evc_event_count *event_count)
{
	pthread_mutex_lock(&event_count->mutex);
	/* Pairs with W1. */
	atomic_fetch_add_explicit(&event_count->count, 1, memory_order_release);
	pthread_cond_broadcast(&event_count->grown);
	pthread_mutex_unlock(&event_count->mutex);
}

#endif
#endif
