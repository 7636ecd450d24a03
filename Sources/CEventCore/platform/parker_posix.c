/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#define _GNU_SOURCE 1
#include "eventcore/parker.h"

#include "platform/allocator.h"
#include "platform/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

struct posix_state {
	/* Held between the look at the word and the sleep, and around the wake-up. */
	pthread_mutex_t mutex;
	pthread_cond_t condition;
};

static void *posix_open(void)
{
	struct posix_state *state = evc_allocate(sizeof(*state), _Alignof(struct posix_state));
	pthread_condattr_t attributes;

	if (state == NULL)
		return NULL;
	pthread_condattr_init(&attributes);
#ifndef __APPLE__
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
	pthread_mutex_init(&state->mutex, NULL);
	pthread_cond_init(&state->condition, &attributes);
	pthread_condattr_destroy(&attributes);
	return state;
}

static void posix_close(void *opaque)
{
	struct posix_state *state = opaque;

	pthread_cond_destroy(&state->condition);
	pthread_mutex_destroy(&state->mutex);
	evc_deallocate(state, sizeof(*state), _Alignof(struct posix_state));
}

static void wait_at_most(struct posix_state *state, uint64_t timeout)
{
#ifdef __APPLE__
	struct timespec span = { (time_t)(timeout / 1000000000u), (long)(timeout % 1000000000u) };

	pthread_cond_timedwait_relative_np(&state->condition, &state->mutex, &span);
#else
	uint64_t end = evc_clock_after(timeout);
	struct timespec when = { (time_t)(end / 1000000000u), (long)(end % 1000000000u) };

	pthread_cond_timedwait(&state->condition, &state->mutex, &when);
#endif
}

static void posix_wait(void *opaque, const uint32_t *word, uint32_t expected, uint64_t timeout)
{
	struct posix_state *state = opaque;

	pthread_mutex_lock(&state->mutex);
	/* Relaxed: the mutex orders it with posix_wake; the caller looks again with acquire. */
	if (__atomic_load_n(word, __ATOMIC_RELAXED) == expected) {
		if (timeout == EVC_FOREVER)
			pthread_cond_wait(&state->condition, &state->mutex);
		else
			wait_at_most(state, timeout);
	}
	pthread_mutex_unlock(&state->mutex);
}

static void posix_wake(void *opaque, const uint32_t *word)
{
	struct posix_state *state = opaque;

	(void)word;
	pthread_mutex_lock(&state->mutex);
	pthread_cond_broadcast(&state->condition);
	pthread_mutex_unlock(&state->mutex);
}

static const struct evc_parker_ops posix_ops = { posix_open, posix_close, posix_wait, posix_wake };

const struct evc_parker_ops *evc_parker_posix(void)
{
	return &posix_ops;
}
#endif
