/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * What a consumer does while nothing waits.
 */
#include "platform/clock.h"
#include "mailbox/mailbox_private.h"

#include <sched.h>
#include <unistd.h>

/*
 * Sleeping and being woken costs the producer a system call and the consumer tens of microseconds, so
 * that even the parking strategy first looks for about as long as a producer at full speed might pause:
 * while that has paid lately. A consumer whose events come seldom sleeps at once, which also lets the
 * system run it where its producer runs (woken in 5 instead of 14 us here).
 */
#define GRACE_NS 4000u
/* So many spins in vain end it; a sleep as short as this begins it again. */
#define GRACE_TRIES 4u
#define SHORT_SLEEP_NS 20000u
/* After so many envelopes the pools may have grown. */
#define TRIM_AFTER 4096u
/* How long the last trim must be past for a consumer that has slept so long, and for a busy one. */
#define IDLE_TRIM_NS 100000000u
#define BUSY_TRIM_NS 1000000000u

/* Something waits, or the mailbox is spoken to. Consumer only. */
static bool has_news(struct evc_mailbox *mailbox)
{
	return atomic_load_explicit(&mailbox->signal, memory_order_seq_cst) != 0 ||
	       mailbox->lanes.occupied != 0 ||
	       evc_mailbox_undealt(mailbox, memory_order_seq_cst) != 0;
}

/* The same while spinning. */
static inline bool has_news_now(struct evc_mailbox *mailbox)
{
	/* Relaxed, as all of it is looked at again; acquire comes with the take. */
	return atomic_load_explicit(&mailbox->signal, memory_order_relaxed) != 0 ||
	       mailbox->lanes.occupied != 0 ||
	       evc_mailbox_undealt(mailbox, memory_order_relaxed) != 0;
}

/*
 * Looks for at most `limit` nanoseconds. True if there are news. `pauses` is how long the wait between
 * two looks may become: each look takes a line from the producers, so that
 * looking too soon makes both sides pay for a single envelope.
 */
static bool spin(struct evc_mailbox *mailbox, uint64_t limit, unsigned pauses, bool yield)
{
	uint64_t start = 0;

	for (unsigned turn = 1;; turn++) {
		for (unsigned i = 0; i < pauses; i++)
			evc_pause();
		if (has_news_now(mailbox))
			return true;
		if (yield)
			sched_yield();
		/* The clock costs as much as many looks: seldom, and not at all without a limit. */
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

static enum evc_status park(struct evc_mailbox *mailbox, uint64_t timeout)
{
	uint64_t end = evc_clock_after(timeout);
	uint64_t limit = timeout;
	bool trim = mailbox->returns.given >= TRIM_AFTER;

	/* Slots of this mailbox are of no use to anybody while we sleep. */
	evc_return_cache_flush(&mailbox->returns);
	if (trim)
		trim = evc_pool_request_trim(BUSY_TRIM_NS);
	for (;;) {
		uint32_t ticket;
		enum evc_status slept = EVC_OK;
		bool news;

		if (trim)
			limit = less(limit, IDLE_TRIM_NS);
		ticket = evc_parker_prepare(mailbox->parker);
		/* C1, then C2: see mailbox_private.h. */
		atomic_fetch_or_explicit(&mailbox->attention, EVC_ATTENTION_SLEEP,
					 memory_order_seq_cst);
		news = has_news(mailbox);
		if (!news) {
			uint64_t since = evc_clock_now();

			slept = evc_parker_wait(mailbox->parker, ticket, limit);
			news = has_news(mailbox);
			if (news && evc_clock_now() - since < SHORT_SLEEP_NS)
				mailbox->grace_left = GRACE_TRIES;
			/* Whoever was woken takes what there is at once. */
			mailbox->pace = 0;
		}
		/* Relaxed: a wake-up too many does no harm. */
		atomic_fetch_and_explicit(&mailbox->attention, ~EVC_ATTENTION_SLEEP,
					  memory_order_relaxed);
		if (news)
			return EVC_OK;
		if (end != EVC_FOREVER) {
			uint64_t now = evc_clock_now();

			if (now >= end)
				return EVC_TIMED_OUT;
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

enum evc_status evc_mailbox_wait(struct evc_mailbox *mailbox, uint64_t timeout)
{
	const struct evc_mailbox_options *options = &mailbox->options;

	if (options->wake != NULL)
		return EVC_INVALID_ARGUMENT;
	switch (options->strategy) {
	case EVC_WAIT_SPIN:
		return spin(mailbox, timeout, 1, false) ? EVC_OK : EVC_TIMED_OUT;
	case EVC_WAIT_YIELD:
		return spin(mailbox, timeout, 0, true) ? EVC_OK : EVC_TIMED_OUT;
	case EVC_WAIT_SPIN_THEN_PARK:
		if (spin(mailbox, less(options->spin_ns, timeout), EVC_PAUSES, false))
			return EVC_OK;
		break;
	case EVC_WAIT_PARK:
		if (mailbox->grace_left == 0)
			break;
		if (spin(mailbox, less(grace(), timeout), EVC_PAUSES, false)) {
			mailbox->grace_left = GRACE_TRIES;
			return EVC_OK;
		}
		mailbox->grace_left--;
		break;
	}
	return park(mailbox, timeout);
}
#endif
