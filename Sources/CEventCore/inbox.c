/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "inbox.h"

#include <sched.h>
#include <time.h>

struct evc_envelope *evc_inbox_await_link(_Atomic(struct evc_envelope *) *link)
{
	struct evc_envelope *next;

	for (unsigned turn = 0;; turn++) {
		/* D: pairs with B in evc_inbox_post. */
		next = atomic_load_explicit(link, memory_order_acquire);
		if (next != NULL)
			return next;
		if (turn < 100) {
			evc_pause();
		} else if (turn < 200) {
			sched_yield();
		} else {
			/* A real-time consumer has to sleep to let a preempted producer run. */
			struct timespec nap = { 0, 20000 };

			nanosleep(&nap, NULL);
		}
	}
}
#endif
