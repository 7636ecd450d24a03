/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* What a worker does while nothing waits: as mailbox_wait.c, with two places to look at and one parker. */
#include "mailbox/mailbox_private.h"
#include "shared/shared_mailbox_private.h"

/* An envelope waits in either mailbox, or the worker's signal is up. */
static bool has_news(void *context)
{
	struct evc_worker *worker = context;

	/* Relaxed: before a sleep it follows W3, which shows a close; a worker that ends acquires it. */
	return evc_mailbox_has_news(worker->mailbox) ||
	       (atomic_load_explicit(&worker->shared->attention, memory_order_relaxed) &
		EVC_SHARED_CLOSED) ||
	       evc_shared_has_some(worker->shared);
}

static void begin_spin(void *context)
{
	struct evc_worker *worker = context;

	/* Posts need not wake another worker meanwhile. */
	if (atomic_load_explicit(&worker->shared->attention, memory_order_relaxed) >=
	    EVC_SHARED_SLEEPER)
		evc_worker_begin_looking(worker);
}

enum evc_status evc_worker_wait(struct evc_worker *worker, uint64_t timeout)
{
	struct evc_waiter waiter = { worker, has_news, begin_spin, evc_worker_prepare_wait, evc_worker_finish_wait };

	if (worker == NULL)
		return EVC_INVALID_ARGUMENT;
	if (evc_wait(worker->mailbox, &waiter, timeout))
		return EVC_OK;
	/* The caller may do anything now: no post may rely on its looking. */
	evc_worker_pass_on(worker);
	return EVC_TIMED_OUT;
}
#endif
