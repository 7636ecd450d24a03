/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* What a consumer or a worker (shared_mailbox_wake.c) does while nothing waits. */
#include "mailbox/mailbox_private.h"
#include "platform/clock.h"

#include <sched.h>
#include <unistd.h>

/*
 * A sleep costs the producer a system call and the consumer tens of microseconds. The parking strategy first
 * looks for as long as a fast producer might pause, as long as such looks have been successful lately. A
 * consumer of rare events sleeps at once, and may then run on its producer's processor (5 instead of 14 us).
 */
#define GRACE_NS 4000u
/* After this many fruitless spins it sleeps at once; a sleep as short as this allows them again. */
#define GRACE_TRIES 4u
#define SHORT_SLEEP_NS 20000u
/* A spinning consumer reads the clock once in this many looks. */
#define LOOKS_PER_CLOCK 16u

/*
 * Looks for at most `limit` nanoseconds; true if there is news. `pauses` between two looks, since each look
 * takes lines from the producers.
 */
static bool spin(const struct evc_waiter *waiter, uint64_t limit, unsigned pauses, bool yield)
{
	uint64_t start = 0;

	if (waiter->begin_spin != NULL)
		waiter->begin_spin(waiter->context);
	for (unsigned turn = 1;; turn++) {
		for (unsigned i = 0; i < pauses; i++)
			evc_pause();
		if (waiter->has_news(waiter->context))
			return true;
		if (yield)
			sched_yield();
		/* Reading the clock costs as much as many looks: do it rarely. */
		if (turn % LOOKS_PER_CLOCK == 0 && limit != EVC_FOREVER) {
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
	/* With one processor nobody posts while we spin. Relaxed: all threads compute the same value. */
	static _Atomic int processors;
	int n = atomic_load_explicit(&processors, memory_order_relaxed);

	if (n == 0) {
		n = (int)sysconf(_SC_NPROCESSORS_ONLN);
		atomic_store_explicit(&processors, n > 0 ? n : 1, memory_order_relaxed);
	}
	return n > 1 ? GRACE_NS : 0;
}

/* Sleeps until woken or the time limit has passed. True if there is news. */
static bool sleep_once(struct evc_mailbox *mailbox, const struct evc_waiter *waiter, uint64_t limit)
{
	uint32_t ticket = evc_parker_prepare(&mailbox->parker);
	bool news;

	/* C1, then C2: see mailbox_private.h. */
	atomic_fetch_or_explicit(&mailbox->attention, EVC_ATTENTION_SLEEP, memory_order_seq_cst);
	if (waiter->prepare_wait != NULL)
		waiter->prepare_wait(waiter->context);
	news = waiter->has_news(waiter->context);
	if (!news) {
		uint64_t since = evc_clock_now();

		if (evc_parker_wait(&mailbox->parker, ticket, limit) == EVC_OK &&
		    evc_clock_now() - since < SHORT_SLEEP_NS)
			mailbox->grace_left = GRACE_TRIES;
		/* A consumer that was woken drains without a pause. */
		mailbox->pace = 0;
	}
	if (waiter->finish_wait != NULL)
		waiter->finish_wait(waiter->context);
	/* Relaxed: a superfluous wake-up does no harm. */
	atomic_fetch_and_explicit(&mailbox->attention, ~EVC_ATTENTION_SLEEP, memory_order_relaxed);
	return news || waiter->has_news(waiter->context);
}

/* The cached slots would be unused while the consumer waits. */
static void flush_returns(struct evc_mailbox *mailbox)
{
	evc_return_cache_flush(mailbox->returns);
	evc_return_cache_flush(mailbox->by_hand);
}

bool evc_wait(struct evc_mailbox *mailbox, const struct evc_waiter *waiter, uint64_t timeout)
{
	const enum evc_wait_strategy strategy = mailbox->options.strategy;
	/* Of the spin and the sleep together. */
	const uint64_t end = evc_clock_after(timeout);

	switch (strategy) {
	case EVC_WAIT_SPIN:
	case EVC_WAIT_YIELD:
		flush_returns(mailbox);
		return spin(waiter, timeout, strategy == EVC_WAIT_SPIN, strategy == EVC_WAIT_YIELD);
	case EVC_WAIT_SPIN_THEN_PARK:
		if (spin(waiter, evc_sooner(mailbox->options.spin_ns, timeout), EVC_PAUSES, false))
			return true;
		break;
	case EVC_WAIT_PARK:
		if (mailbox->grace_left == 0)
			break;
		/*
		 * A producer may be waiting for this processor. Eight mailboxes on two: 38 instead of 78 ns a
		 * delivery. One that sleeps for long does not come here: it would be woken 8 us later.
		 */
		sched_yield();
		if (waiter->has_news(waiter->context) ||
		    spin(waiter, evc_sooner(grace(), timeout), EVC_PAUSES, false)) {
			mailbox->grace_left = GRACE_TRIES;
			return true;
		}
		mailbox->grace_left--;
		break;
	}
	flush_returns(mailbox);
	for (uint64_t limit = evc_clock_left(end); !sleep_once(mailbox, waiter, limit);) {
		limit = evc_clock_left(end);
		if (limit == 0)
			return false;
	}
	return true;
}

static bool has_news(void *context)
{
	return evc_mailbox_has_news(context);
}

enum evc_status evc_mailbox_wait(struct evc_mailbox *mailbox, uint64_t timeout)
{
	struct evc_waiter waiter = { .context = mailbox, .has_news = has_news };

	if (mailbox == NULL || !evc_mailbox_may_wait(mailbox))
		return EVC_INVALID_ARGUMENT;
	return evc_wait(mailbox, &waiter, timeout) ? EVC_OK : EVC_TIMED_OUT;
}
#endif
