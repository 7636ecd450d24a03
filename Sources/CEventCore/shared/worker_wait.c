/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * What a worker does while nothing waits in its own mailbox nor in the shared one: mailbox_wait.c, with the lanes of
 * both to look at and one parker for both.
 */
#include "mailbox/mailbox_private.h"
#include "shared/shared_mailbox_private.h"

/* Something waits, or the worker is spoken to. */
static bool has_news(void *context)
{
	struct evc_worker *worker = context;

	/* Relaxed: before a sleep it comes after W3, which has a close seen; who ends acquires it later. */
	return evc_mailbox_has_news(worker->mailbox) ||
	       (atomic_load_explicit(&worker->shared->attention, memory_order_relaxed) &
		EVC_SHARED_CLOSED) ||
	       evc_shared_has_some(worker->shared);
}

static void begin_spin(void *context)
{
	struct evc_worker *worker = context;

	/* Whoever posts need not wake another one meanwhile. */
	if (atomic_load_explicit(&worker->shared->attention, memory_order_relaxed) >=
	    EVC_SHARED_SLEEPER)
		evc_worker_begin_looking(worker);
}

enum evc_status evc_worker_wait(struct evc_worker *worker, uint64_t timeout)
{
	struct evc_waiter waiter = { worker, has_news, begin_spin, evc_worker_lie_down, evc_worker_get_up };

	if (worker == NULL)
		return EVC_INVALID_ARGUMENT;
	if (evc_wait(worker->mailbox, &waiter, timeout))
		return EVC_OK;
	/* The caller may do anything now: nobody may rely on its looking. */
	evc_worker_pass_on(worker);
	return EVC_TIMED_OUT;
}
#endif
