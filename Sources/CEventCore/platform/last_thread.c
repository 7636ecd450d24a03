/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "platform/last_thread.h"

#include "platform/compiler.h"

#include <stdatomic.h>

/* 0 for none. Relaxed: a handle, which one thread gets; the join orders the rest. */
static _Atomic(pthread_t) last_thread;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void forget(void)
{
	/* The parent's threads do not exist in a child of fork. */
	atomic_store_explicit(&last_thread, (pthread_t)0, memory_order_relaxed);
}

static void prepare_fork(void)
{
	pthread_atfork(NULL, NULL, forget);
}

pthread_t evc_last_thread_become(void)
{
	pthread_once(&fork_once, prepare_fork);
#ifdef EVC_THREAD_SANITIZER
	/* It reports a thread that nobody has joined when the program ends, as the last one. */
	pthread_detach(pthread_self());
	return (pthread_t)0;
#else
	return atomic_exchange_explicit(&last_thread, pthread_self(), memory_order_relaxed);
#endif
}

void evc_last_thread_join(pthread_t last)
{
	if (last != (pthread_t)0)
		pthread_join(last, NULL);
}

void evc_last_thread_end(void)
{
	evc_last_thread_join(atomic_exchange_explicit(&last_thread, (pthread_t)0, memory_order_relaxed));
}
#endif
