/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * The event count, over any table of system calls.
 *
 * `word`: bit 0 says that the sleeper sleeps or is about to; the other bits count changes.
 *
 *   sleeper                                     waker
 *   S1 ticket = word without bit 0   acquire    W1 publish the news
 *   S2 look for the news                        W2 add 2 to word, and leave bit 0      release
 *   S3 word: ticket → ticket | 1     CAS        W3 if bit 0 was set: system call
 *   S4 system wait while word == ticket | 1     W4 word: what W2 made → without bit 0  CAS, once
 *   S5 if bit 0 is set: clear it, add 2  CAS
 *
 * No wake-up is lost. If W2 comes before S3, S3 fails. If it comes after, W2 finds bit 0 set and W3 wakes,
 * and S4 returns because the word has changed, whether the sleeper slept already or not. W4 never clears the
 * bit of a later sleep: the ticket of such a sleep is larger than the word that W2 made, since S5 has added 2
 * or W4 was done. That the look S2 and the news W1 cannot miss each other is guaranteed by the caller's
 * "publish, then look" (mailbox_private.h), or, for a waker that always calls, as follows: W1 precedes W2; if
 * W2 precedes S1, the acquire shows the news; otherwise S3 fails or W3 wakes.
 *
 * The sleeper does not depend on a waker that is held up before its system call: bit 0 stays set until some
 * waker has made the call (W4) or the sleeper is awake (S5), and until then every waker makes a call of its
 * own. Tests/Models/parker.pml models these lines.
 */
#include "platform/parker_private.h"

#include "platform/allocator.h"
#include "platform/clock.h"

enum evc_status evc_parker_init(struct evc_parker *parker, const struct evc_parker_ops *ops)
{
	void *state;

	if (ops == NULL)
		ops = evc_parker_futex();
	if (ops == NULL)
		ops = evc_parker_posix();
	if (ops->wait == NULL || ops->wake == NULL)
		return EVC_INVALID_ARGUMENT;
	state = ops->open != NULL ? ops->open() : NULL;
	if (ops->open != NULL && state == NULL)
		return EVC_OUT_OF_MEMORY;
	atomic_init(&parker->word, 0);
	parker->ops = ops;
	parker->state = state;
	return EVC_OK;
}

void evc_parker_close(struct evc_parker *parker)
{
	if (parker->ops->close != NULL)
		parker->ops->close(parker->state);
}

enum evc_status evc_parker_create(const struct evc_parker_ops *ops, struct evc_parker **out)
{
	struct evc_parker *parker;
	enum evc_status status;

	if (out == NULL)
		return EVC_INVALID_ARGUMENT;
	/* On a line of its own. */
	parker = evc_allocate(EVC_CACHE_LINE, EVC_CACHE_LINE);
	if (parker == NULL)
		return EVC_OUT_OF_MEMORY;
	status = evc_parker_init(parker, ops);
	if (status == EVC_OK)
		*out = parker;
	else
		evc_deallocate(parker, EVC_CACHE_LINE, EVC_CACHE_LINE);
	return status;
}

void evc_parker_destroy(struct evc_parker *parker)
{
	if (parker == NULL)
		return;
	evc_parker_close(parker);
	evc_deallocate(parker, EVC_CACHE_LINE, EVC_CACHE_LINE);
}

uint32_t evc_parker_prepare(struct evc_parker *parker)
{
	/* S1: pairs with W2. */
	return atomic_load_explicit(&parker->word, memory_order_acquire) & ~1u;
}

enum evc_status evc_parker_wait(struct evc_parker *parker, uint32_t ticket, uint64_t timeout)
{
	uint32_t expected = ticket, word;
	uint64_t end = evc_clock_after(timeout);

	if (parker == NULL)
		return EVC_INVALID_ARGUMENT;
	/* S3. Acquire on failure: pairs with W2, as S5. */
	if (!atomic_compare_exchange_strong_explicit(&parker->word, &expected, ticket | 1u,
						     memory_order_acquire, memory_order_acquire))
		return EVC_OK;
	for (;;) {
		/* S4. */
		parker->ops->wait(parker->state, (const uint32_t *)(const void *)&parker->word,
				  ticket | 1u, timeout);
		/* Relaxed: S5 looks again. */
		if (atomic_load_explicit(&parker->word, memory_order_relaxed) != (ticket | 1u))
			break;
		timeout = evc_clock_left(end);
		if (timeout != 0)
			continue;
		expected = ticket | 1u;
		/* Withdraws bit 0, unless a wake-up is on its way. Relaxed: in that case S5 looks again. */
		if (atomic_compare_exchange_strong_explicit(&parker->word, &expected, ticket,
							    memory_order_relaxed,
							    memory_order_relaxed))
			return EVC_TIMED_OUT;
		break;
	}
	/* S5. Acquire: pairs with the W2 that has ended the sleep, whose news the caller looks for next. */
	word = atomic_load_explicit(&parker->word, memory_order_acquire);
	/* Relaxed: a W2 that comes meanwhile is for S1 to acquire. Nobody acquires what the sleeper did (S3 too). */
	while ((word & 1u) && !atomic_compare_exchange_weak_explicit(&parker->word, &word, (word + 2) & ~1u,
								     memory_order_relaxed, memory_order_relaxed))
		;
	return EVC_OK;
}

bool evc_parker_wake(struct evc_parker *parker)
{
	/* W2: pairs with S1, S3 and S5. */
	uint32_t word = atomic_fetch_add_explicit(&parker->word, 2, memory_order_release) + 2;

	if (!(word & 1u))
		return false;
	/* W3. */
	parker->ops->wake(parker->state, (const uint32_t *)(const void *)&parker->word);
	/* W4. Relaxed: it orders nothing. */
	atomic_compare_exchange_strong_explicit(&parker->word, &word, word & ~1u, memory_order_relaxed,
						memory_order_relaxed);
	return true;
}
#endif
