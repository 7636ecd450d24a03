/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * Which workers sleep or look, and which one a post wakes: P1 to P7 and W1 to W8 of shared_mailbox_private.h.
 * A post that finds no sleeping worker does not come here. A worker waits as the consumer of a mailbox does
 * (mailbox_wait.c), with two places to look at and one parker.
 */
#include "mailbox/mailbox_private.h"
#include "shared/shared_mailbox_private.h"

/* Clears a bit and wakes its worker, which the caller has counted as looking. False if no bit was set. */
static bool claim(struct evc_shared_mailbox *mailbox)
{
	for (unsigned word = 0; word < EVC_SLEEPER_WORDS; word++) {
		uint64_t bits = atomic_load_explicit(&mailbox->asleep[word], memory_order_seq_cst);

		while (bits != 0) {
			uint64_t bit = bits & -bits;
			struct evc_worker *worker;

			/*
			 * P6. Acquire, pairs with W1: the worker in its slot. Release, pairs with W6: it is
			 * counted as looking before it subtracts itself.
			 */
			bits = atomic_fetch_and_explicit(&mailbox->asleep[word], ~bit,
							 memory_order_acq_rel);
			if (!(bits & bit))
				continue;
			/* Relaxed: a count; it follows the W1 that added to it. */
			atomic_fetch_sub_explicit(&mailbox->attention, EVC_SHARED_SLEEPER,
						  memory_order_relaxed);
			worker = mailbox->workers[word * 64 + (unsigned)__builtin_ctzll(bit)];
			(void)evc_parker_wake(&worker->mailbox->parker);
			/*
			 * The last access to the worker. Release: the wake above precedes its end. In the
			 * single order before the load of `leaving`, which pairs with evc_worker_leave.
			 */
			atomic_fetch_add_explicit(&worker->wakes, 1, memory_order_seq_cst);
			if (evc_unlikely(atomic_load_explicit(&mailbox->leaving, memory_order_seq_cst) != 0))
				evc_event_count_advance(&mailbox->woken);
			return true;
		}
	}
	return false;
}

bool evc_shared_wake_any(struct evc_shared_mailbox *mailbox)
{
	/* P5 without its condition. Relaxed: clearing the bit releases it. */
	atomic_fetch_add_explicit(&mailbox->looking, 1, memory_order_relaxed);
	if (claim(mailbox))
		return true;
	/* P7, without a look: the mailbox is closed, and a worker that is about to sleep sees that. */
	atomic_fetch_sub_explicit(&mailbox->looking, 1, memory_order_relaxed);
	return false;
}

/* Tells by the bits: a worker that is counted and has no bit yet has not reached its look W4. */
static bool nobody_sleeps(struct evc_shared_mailbox *mailbox)
{
	uint64_t bits = 0;

	for (unsigned word = 0; word < EVC_SLEEPER_WORDS; word++)
		bits |= atomic_load_explicit(&mailbox->asleep[word], memory_order_seq_cst);
	return bits == 0;
}

void evc_shared_wake_one(struct evc_shared_mailbox *mailbox)
{
	for (;;) {
		uint32_t nobody = 0;

		/* P4, and P2 when it comes again. */
		if (atomic_load_explicit(&mailbox->looking, memory_order_seq_cst) != 0 ||
		    nobody_sleeps(mailbox))
			return;
		/*
		 * P5. Relaxed, also on failure: a worker that it finds looking began after P4's load,
		 * which is in the single order, and therefore looks later. Clearing the bit releases it.
		 */
		if (!atomic_compare_exchange_strong_explicit(&mailbox->looking, &nobody, 1,
							     memory_order_relaxed,
							     memory_order_relaxed))
			return;
		if (claim(mailbox))
			return;
		/* P7. Relaxed, and the fence before the look. */
		atomic_fetch_sub_explicit(&mailbox->looking, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		if (!evc_shared_has_some(mailbox))
			return;
	}
}

static void prepare_wait(void *context)
{
	struct evc_worker *worker = context;
	struct evc_shared_mailbox *mailbox = worker->shared;

	/*
	 * W1. The count first, so that it never falls below zero. Release, pairs with P6: that order, and
	 * the worker in its slot. W3 makes both visible.
	 */
	atomic_fetch_add_explicit(&mailbox->attention, EVC_SHARED_SLEEPER, memory_order_relaxed);
	atomic_fetch_or_explicit(&mailbox->asleep[worker->slot / 64],
				 UINT64_C(1) << worker->slot % 64, memory_order_release);
	/* W2. */
	evc_worker_stop_looking(worker);
	/* W3. */
	atomic_thread_fence(memory_order_seq_cst);
}

static void finish_wait(void *context)
{
	struct evc_worker *worker = context;
	struct evc_shared_mailbox *mailbox = worker->shared;
	uint64_t bit = UINT64_C(1) << worker->slot % 64;

	/* W6. Acquire, pairs with P6: it is counted as looking already. */
	if (atomic_fetch_and_explicit(&mailbox->asleep[worker->slot / 64], ~bit,
				      memory_order_acquire) &
	    bit) {
		/* Relaxed: a count. */
		atomic_fetch_sub_explicit(&mailbox->attention, EVC_SHARED_SLEEPER,
					  memory_order_relaxed);
	} else {
		worker->claims++;
		worker->is_looking = true;
	}
	/* W8. Also if it woke by itself: a post may have relied on its looking, before W2. */
	worker->passes_on = true;
}

void evc_worker_stop_looking(struct evc_worker *worker)
{
	if (!worker->is_looking)
		return;
	worker->is_looking = false;
	/* W2: pairs with P4. Relaxed: each caller executes a fence before it looks. */
	atomic_fetch_sub_explicit(&worker->shared->looking, 1, memory_order_relaxed);
}

void evc_worker_pass_on(struct evc_worker *worker)
{
	evc_worker_stop_looking(worker);
	worker->passes_on = false;
	/* As W3: pairs with P4 and P5 of posts that relied on its looking. */
	atomic_thread_fence(memory_order_seq_cst);
	/* W8. */
	if (!nobody_sleeps(worker->shared) && evc_shared_has_some(worker->shared))
		evc_shared_wake_one(worker->shared);
	evc_shared_unblock(worker->shared);
}

void evc_worker_leave(struct evc_worker *worker)
{
	struct evc_shared_mailbox *mailbox = worker->shared;
	uint32_t seen;

	evc_worker_pass_on(worker);
	/* Acquire, pairs with claim. */
	if (atomic_load_explicit(&worker->wakes, memory_order_acquire) == worker->claims)
		return;
	/* It sleeps: a real-time thread would not yield to one of lower priority that wakes it here. */
	atomic_fetch_add_explicit(&mailbox->leaving, 1, memory_order_seq_cst);
	for (;;) {
		seen = evc_event_count_read(&mailbox->woken);
		/* Acquire as above. In the single order after `leaving`: claim sees that, or this its count. */
		if (atomic_load_explicit(&worker->wakes, memory_order_seq_cst) == worker->claims)
			break;
		evc_event_count_wait(&mailbox->woken, seen, EVC_FOREVER);
	}
	/* Relaxed: a count. */
	atomic_fetch_sub_explicit(&mailbox->leaving, 1, memory_order_relaxed);
}

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

/* Posts need not wake another worker meanwhile. */
static void begin_spin(void *context)
{
	struct evc_worker *worker = context;

	if (worker->is_looking ||
	    atomic_load_explicit(&worker->shared->attention, memory_order_relaxed) < EVC_SHARED_SLEEPER)
		return;
	worker->is_looking = true;
	worker->passes_on = true;
	/* Relaxed: only this thread subtracts it. A post whose P4 sees it relies on the look after W2. */
	atomic_fetch_add_explicit(&worker->shared->looking, 1, memory_order_relaxed);
}

enum evc_status evc_worker_wait(struct evc_worker *worker, uint64_t timeout)
{
	struct evc_waiter waiter = { worker, has_news, begin_spin, prepare_wait, finish_wait };

	if (worker == NULL)
		return EVC_INVALID_ARGUMENT;
	/* Neither asleep nor looking for others. An admission interrupts it. */
	if (evc_worker_is_held(worker))
		return evc_mailbox_wait(worker->mailbox, timeout);
	if (evc_wait(worker->mailbox, &waiter, timeout))
		return EVC_OK;
	/* The caller may do anything now: no post may rely on its looking. */
	evc_worker_pass_on(worker);
	return EVC_TIMED_OUT;
}
#endif
