/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* What every file of this target needs: to stop with a sentence, and threads that cannot fail. */
#ifndef EVB_CHECK_H
#define EVB_CHECK_H

#include "RawCore.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define EVB_REQUIRE(condition, text)                                                               \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "RawCore: %s (%s:%d)\n", text, __FILE__, __LINE__);        \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static inline pthread_t evb_start(void *(*body)(void *), void *argument)
{
	pthread_t thread;

	EVB_REQUIRE(pthread_create(&thread, NULL, body, argument) == 0, "no thread could be made");
	return thread;
}

static inline void evb_join(pthread_t thread)
{
	EVB_REQUIRE(pthread_join(thread, NULL) == 0, "a thread could not be joined");
}

/* A gate that opens once per run; who waits sleeps. */
struct evb_gate {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	bool open;
};

#define EVB_GATE { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false }

static inline void evb_gate_set(struct evb_gate *gate, bool open)
{
	pthread_mutex_lock(&gate->mutex);
	gate->open = open;
	pthread_cond_broadcast(&gate->condition);
	pthread_mutex_unlock(&gate->mutex);
}

static inline void evb_gate_pass(struct evb_gate *gate)
{
	pthread_mutex_lock(&gate->mutex);
	while (!gate->open)
		pthread_cond_wait(&gate->condition, &gate->mutex);
	pthread_mutex_unlock(&gate->mutex);
}

#endif
