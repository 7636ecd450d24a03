/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * The event count over any table of system calls.
 *
 * `word`: bit 0 says that the sleeper sleeps or is about to; the other bits count wake-ups.
 *
 *   sleeper                                     waker
 *   S1 ticket = word without bit 0   acquire    W1 publish the news
 *   S2 look for the news                        W2 add 2 to word, clear bit 0   release
 *   S3 word: ticket → ticket | 1     CAS        W3 if bit 0 was set: system call
 *   S4 system wait while word == ticket | 1
 *
 * No wake-up is lost: if W2 comes before S3, S3 fails; if it comes after, W2 finds bit 0 and W3 wakes,
 * and S4 returns because the word has changed, whether it slept already or not. That the sleeper's
 * look S2 and the waker's news W1 cannot both miss is the caller's "publish, then look" (mailbox.c), or,
 * for a waker that always calls, this: W1 precedes W2; if W2 precedes S1 the acquire shows the news,
 * else S3 fails or W3 wakes. Tests/Models/parker.pml models these lines.
 */
#include "platform/parker_private.h"

#include "platform/clock.h"
#include "memory/memory.h"

enum evc_status evc_parker_init(struct evc_parker *parker, const struct evc_parker_ops *ops)
{
	void *state = NULL;

	if (ops == NULL)
		ops = evc_parker_futex();
	if (ops == NULL)
		ops = evc_parker_posix();
	if (ops->wait == NULL || ops->wake == NULL)
		return EVC_INVALID_ARGUMENT;
	if (ops->open != NULL) {
		state = ops->open();
		if (state == NULL)
			return EVC_OUT_OF_MEMORY;
	}
	atomic_init(&parker->word, 0);
	parker->ops = ops;
	parker->state = state;
	return EVC_OK;
}

enum evc_status evc_parker_create(const struct evc_parker_ops *ops, struct evc_parker **out)
{
	struct evc_parker *parker;
	enum evc_status status;

	if (out == NULL)
		return EVC_INVALID_ARGUMENT;
	parker = evc_allocate(sizeof(*parker), _Alignof(struct evc_parker));
	if (parker == NULL)
		return EVC_OUT_OF_MEMORY;
	status = evc_parker_init(parker, ops);
	if (status == EVC_OK)
		*out = parker;
	else
		evc_deallocate(parker, sizeof(*parker), _Alignof(struct evc_parker));
	return status;
}

void evc_parker_destroy(struct evc_parker *parker)
{
	if (parker->ops->close != NULL)
		parker->ops->close(parker->state);
	evc_deallocate(parker, sizeof(*parker), _Alignof(struct evc_parker));
}

uint32_t evc_parker_prepare(struct evc_parker *parker)
{
	/* S1: pairs with W2. */
	return atomic_load_explicit(&parker->word, memory_order_acquire) & ~1u;
}

enum evc_status evc_parker_wait(struct evc_parker *parker, uint32_t ticket, uint64_t timeout)
{
	uint32_t expected = ticket;
	uint64_t end = evc_clock_after(timeout);

	/* S3. Acquire on failure: pairs with W2, whose news the caller looks for next. */
	if (!atomic_compare_exchange_strong_explicit(&parker->word, &expected, ticket | 1u,
						     memory_order_acq_rel, memory_order_acquire))
		return EVC_OK;
	for (;;) {
		/* S4. */
		parker->ops->wait(parker->state, (const uint32_t *)(const void *)&parker->word,
				  ticket | 1u, timeout);
		/* Pairs with W2. */
		if (atomic_load_explicit(&parker->word, memory_order_acquire) != (ticket | 1u))
			return EVC_OK;
		if (end != EVC_FOREVER) {
			uint64_t now = evc_clock_now();

			if (now < end) {
				timeout = end - now;
				continue;
			}
			expected = ticket | 1u;
			/* Withdraw bit 0, unless a wake-up is on its way. */
			if (atomic_compare_exchange_strong_explicit(&parker->word, &expected, ticket,
								    memory_order_acq_rel,
								    memory_order_acquire))
				return EVC_TIMED_OUT;
			return EVC_OK;
		}
	}
}

bool evc_parker_wake(struct evc_parker *parker)
{
	uint32_t word = atomic_load_explicit(&parker->word, memory_order_relaxed);

	/* W2: pairs with S1, and with the loads after S4. */
	while (!atomic_compare_exchange_weak_explicit(&parker->word, &word, (word + 2) & ~1u,
						      memory_order_acq_rel, memory_order_relaxed))
		;
	if (!(word & 1u))
		return false;
	/* W3. */
	parker->ops->wake(parker->state, (const uint32_t *)(const void *)&parker->word);
	return true;
}
#endif
