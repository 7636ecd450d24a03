/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Threads of the core's own. */
#ifndef EVC_OWN_THREAD_H
#define EVC_OWN_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Names the calling thread: on Apple's systems only the thread itself can. */
void evc_own_thread_set_name(const char *name);

/*
 * Creates a thread that works for all others, whichever of them starts it: it may use the processors of the starting
 * thread and of the process's first one, and has that one's scheduling, if it is for real time, and else the usual one.
 * With glibc: elsewhere both are the starting thread's. False if it cannot be created.
 */
bool evc_own_thread_create(pthread_t *thread, void *(*run)(void *), void *context);

/*
 * The same for work that nobody waits for: with the usual scheduling, and without signals but for its own faults.
 * Processes that the end of a user's object starts there inherit that.
 */
bool evc_background_thread_create(pthread_t *thread, void *(*run)(void *));

/*
 * Threads that nobody joins by name: each of them joins the one that ended before it, at its very end, and evc_shutdown
 * joins the last one. Only then none of them runs the library's code any more.
 *
 * Makes the calling thread the last one, and returns the one before it. To be called before it frees the last of what
 * it holds, with which a program may find that the core is in use no more.
 */
pthread_t evc_last_thread_become(void);
/* Waits for the end of a thread that evc_last_thread_become has returned. */
void evc_last_thread_join(pthread_t last);
/* Waits for the end of all threads that have become the last one. */
void evc_last_thread_end(void);

#endif
