/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A thread of the core's own that works for all others, whichever of them starts it.
 */
#ifndef EVC_BACKGROUND_THREAD_H
#define EVC_BACKGROUND_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Creates a thread that takes no signal but its own faults, has the usual scheduling, and may use the processors of the
 * starting thread and of the process's first one. False if it cannot be created.
 */
bool evc_background_thread_create(pthread_t *thread, void *(*run)(void *));

#endif
