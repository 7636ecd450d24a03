/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * What a worker does while nothing waits in its own mailbox nor in the shared one: as mailbox_wait.c, which
 * says why, with the lanes of both to look at and one parker for both.
 */
#include "platform/clock.h"
#include "shared/worker.h"

#include <sched.h>
#include <unistd.h>

#define GRACE_NS 4000u
#define GRACE_TRIES 4u
#define SHORT_SLEEP_NS 20000u
#define TRIM_AFTER 4096u
#define IDLE_TRIM_NS 100000000u
#define BUSY_TRIM_NS 1000000000u

/* Something waits, or the worker is spoken to. */
static bool has_news(struct evc_worker *worker)
{
	return atomic_load_explicit(&worker->mailbox->signal, memory_order_seq_cst) != 0 ||
	       (atomic_load_explicit(&worker->shared->attention, memory_order_seq_cst) &
		EVC_SHARED_CLOSED) ||
	       evc_worker_has_mail(worker) || evc_shared_has_some(worker->shared);
}

static bool spin(struct evc_worker *worker, uint64_t limit, unsigned pauses, bool yield)
{
	uint64_t start = 0;

	/* Whoever posts need not wake another one meanwhile. */
	if (atomic_load_explicit(&worker->shared->attention, memory_order_relaxed) >=
	    EVC_SHARED_SLEEPER)
		evc_worker_begin_looking(worker);
	for (unsigned turn = 1;; turn++) {
		for (unsigned i = 0; i < pauses; i++)
			evc_pause();
		if (has_news(worker))
			return true;
		if (yield)
			sched_yield();
		if (turn % 16 == 0 && limit != EVC_FOREVER) {
			uint64_t now = evc_clock_now();

			if (start == 0)
				start = now;
			else if (now - start >= limit)
				return false;
		}
	}
}

static uint64_t grace(void)
{
	/* On one processor nobody can post while we spin. */
	static _Atomic int processors;
	int n = atomic_load_explicit(&processors, memory_order_relaxed);

	if (n == 0) {
		n = (int)sysconf(_SC_NPROCESSORS_ONLN);
		atomic_store_explicit(&processors, n > 0 ? n : 1, memory_order_relaxed);
	}
	return n > 1 ? GRACE_NS : 0;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Sleeps until woken or the time is over. True if there is news. */
static bool sleep_once(struct evc_worker *worker, uint64_t limit, enum evc_status *slept)
{
	struct evc_mailbox *mailbox = worker->mailbox;
	uint32_t ticket = evc_parker_prepare(mailbox->parker);
	bool news;

	/* C1 of its own mailbox, W1 to W3 of the shared one; then the look: C2 and W4. */
	atomic_fetch_or_explicit(&mailbox->attention, EVC_ATTENTION_SLEEP, memory_order_seq_cst);
	evc_worker_lie_down(worker);
	news = has_news(worker);
	if (!news) {
		uint64_t since = evc_clock_now();

		/* W5. */
		*slept = evc_parker_wait(mailbox->parker, ticket, limit);
		if (*slept == EVC_OK && evc_clock_now() - since < SHORT_SLEEP_NS)
			mailbox->grace_left = GRACE_TRIES;
	}
	/* W6. */
	evc_worker_get_up(worker);
	/* Relaxed: a wake-up too many does no harm. */
	atomic_fetch_and_explicit(&mailbox->attention, ~EVC_ATTENTION_SLEEP, memory_order_relaxed);
	return news || has_news(worker);
}

/* The caller may do anything now: nobody may rely on its looking. */
static enum evc_status give_up(struct evc_worker *worker)
{
	evc_worker_pass_on(worker);
	return EVC_TIMED_OUT;
}

static enum evc_status park(struct evc_worker *worker, uint64_t timeout)
{
	struct evc_mailbox *mailbox = worker->mailbox;
	uint64_t end = evc_clock_after(timeout);
	uint64_t limit = timeout;
	bool trim = mailbox->returns.given >= TRIM_AFTER;

	evc_return_cache_flush(&mailbox->returns);
	if (trim)
		trim = evc_pool_request_trim(BUSY_TRIM_NS);
	for (;;) {
		enum evc_status slept = EVC_OK;

		if (trim)
			limit = less(limit, IDLE_TRIM_NS);
		if (sleep_once(worker, limit, &slept))
			return EVC_OK;
		if (end != EVC_FOREVER) {
			uint64_t now = evc_clock_now();

			if (now >= end) {
				return give_up(worker);
			}
			limit = end - now;
		} else {
			limit = EVC_FOREVER;
		}
		if (trim && slept == EVC_TIMED_OUT) {
			trim = evc_pool_request_trim(IDLE_TRIM_NS);
			mailbox->returns.given = 0;
		}
	}
}

enum evc_status evc_worker_wait(struct evc_worker *worker, uint64_t timeout)
{
	struct evc_mailbox *mailbox = worker->mailbox;
	const struct evc_mailbox_options *options = &mailbox->options;

	switch (options->strategy) {
	case EVC_WAIT_SPIN:
		return spin(worker, timeout, 1, false) ? EVC_OK : give_up(worker);
	case EVC_WAIT_YIELD:
		return spin(worker, timeout, 0, true) ? EVC_OK : give_up(worker);
	case EVC_WAIT_SPIN_THEN_PARK:
		if (spin(worker, less(options->spin_ns, timeout), EVC_PAUSES, false))
			return EVC_OK;
		break;
	case EVC_WAIT_PARK:
		if (mailbox->grace_left == 0)
			break;
		if (spin(worker, less(grace(), timeout), EVC_PAUSES, false)) {
			mailbox->grace_left = GRACE_TRIES;
			return EVC_OK;
		}
		mailbox->grace_left--;
		break;
	}
	return park(worker, timeout);
}
#endif
