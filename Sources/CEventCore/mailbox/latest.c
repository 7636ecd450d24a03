/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "mailbox/latest.h"

#include "memory/memory.h"
#include "shared/shared_latest.h"
#include "mailbox/token.h"

#include <string.h>

#define COUNT_MASK ((uintptr_t)63)
#define COUNT_MAX ((uintptr_t)63)

static inline struct evc_envelope *envelope_in(uintptr_t slot)
{
	return (struct evc_envelope *)(slot & ~COUNT_MASK);
}

static struct evc_latest *latest_of(struct evc_subscription *subscription)
{
	return evc_container_of(subscription, struct evc_latest, subscription);
}

/* References */

static void ref(struct evc_latest *latest)
{
	/* Relaxed: the caller has a reference already. */
	atomic_fetch_add_explicit(&latest->references, 1, memory_order_relaxed);
}

/* The mailbox is still there: the caller holds it, or is its consumer, or its end. */
static void unref(struct evc_latest *latest)
{
	struct evc_mailbox *mailbox = latest->mailbox;

	/* Pairs with itself: everything that other holders did before the end. */
	if (atomic_fetch_sub_explicit(&latest->references, 1, memory_order_acq_rel) != 1)
		return;
	/* The slot is empty: what it held had a token to come, which held a reference (claim 2). */
	pthread_mutex_lock(&mailbox->subscription_mutex);
	*latest->link = latest->next;
	if (latest->next != NULL)
		latest->next->link = latest->link;
	/* The slot is empty, and counts nothing. */
	mailbox->superseded +=
		atomic_load_explicit(&latest->superseded, memory_order_relaxed);
	pthread_mutex_unlock(&mailbox->subscription_mutex);
	if (latest->subscription.finalize != NULL)
		latest->subscription.finalize(latest->subscription.context);
	evc_deallocate(latest, sizeof(*latest), _Alignof(struct evc_latest));
}

void evc_envelope_let_go(struct evc_subscription *subscription)
{
	if (subscription->deliver == NULL)
		evc_shared_latest_let_go(subscription);
	else
		unref(latest_of(subscription));
}

static void retain(struct evc_sink *sink)
{
	struct evc_latest *latest = evc_container_of(sink, struct evc_latest, sink);

	ref(latest);
	evc_mailbox_retain(latest->mailbox);
}

static void release(struct evc_sink *sink)
{
	struct evc_latest *latest = evc_container_of(sink, struct evc_latest, sink);
	struct evc_mailbox *mailbox = latest->mailbox;

	unref(latest);
	evc_mailbox_release(mailbox);
}

void evc_latest_subscription_release(struct evc_subscription *subscription)
{
	release(&latest_of(subscription)->sink);
}

/* Producers */

static void count_superseded(struct evc_latest *latest, uint32_t count)
{
	atomic_fetch_add_explicit(&latest->superseded, count, memory_order_relaxed);
}

/* P2, for a state that was not POSTED. */
static __attribute__((noinline)) void post_token(struct evc_latest *latest, unsigned lane,
						 struct evc_thread_record *record)
{
	_Atomic uint64_t *state = &latest->state[lane];
	uint64_t number = evc_token_claim(state);
	struct evc_envelope *token;

	if (number == 0)
		return;
	/* Not NULL: there is a spare. */
	token = evc_token_create(record, &latest->subscription, lane);
	token->time = number;
	/* The token's reference. */
	ref(latest);
	evc_mailbox_put(latest->mailbox, lane, token, token, 1);
	evc_token_settle(state, number);
}

/* Makes room in the bits of a slot that is read as `old`. Returns what it is now. */
static __attribute__((noinline)) uintptr_t carry(struct evc_latest *latest, uintptr_t old)
{
	/* Nothing is ordered by it: the caller's P1 is still to come. */
	if (!atomic_compare_exchange_strong_explicit(&latest->slot, &old, old & ~COUNT_MASK,
						     memory_order_relaxed, memory_order_relaxed))
		return old;
	count_superseded(latest, COUNT_MAX);
	return old & ~COUNT_MASK;
}

/*
 * P1. Returns the envelope that was superseded, if any, which it counts; never after P1, so that whoever
 * handles an event finds all counted that it took the place of, and all that those did.
 */
static inline struct evc_envelope *put(struct evc_latest *latest, struct evc_envelope *newest)
{
	uintptr_t old = atomic_load_explicit(&latest->slot, memory_order_relaxed);
	uintptr_t count;

	do {
		while (evc_unlikely((old & COUNT_MASK) == COUNT_MAX))
			old = carry(latest, old);
		count = old == 0 ? 0 : (old & COUNT_MASK) + 1;
		/* Releases the envelope, and acquires the one that is superseded, and the last K1 (claim 1). */
	} while (!atomic_compare_exchange_weak_explicit(&latest->slot, &old,
							(uintptr_t)newest | count,
							memory_order_acq_rel,
							memory_order_relaxed));
	return envelope_in(old);
}

/* K2. Takes the envelope, and counts what it superseded. */
static struct evc_envelope *take(struct evc_latest *latest)
{
	/* Pairs with P1: the envelope; and K1, for who comes later. */
	uintptr_t slot = atomic_exchange_explicit(&latest->slot, 0, memory_order_acq_rel);

	if (slot & COUNT_MASK)
		count_superseded(latest, (uint32_t)(slot & COUNT_MASK));
	return envelope_in(slot);
}

/* What was superseded so far; exact while nobody dispatches. */
static uint64_t read_superseded(struct evc_latest *latest)
{
	uintptr_t slot;
	uint64_t counted = evc_superseded_read(&latest->superseded, &latest->slot, &slot);

	return counted + (slot & COUNT_MASK);
}

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_latest *latest = evc_container_of(sink, struct evc_latest, sink);
	struct evc_envelope *newest = chain->last, *old;
	struct evc_thread_record *record = evc_thread_record();
	unsigned lane;

	if (evc_unlikely(newest == NULL))
		return EVC_INVALID_ARGUMENT;
	/* Relaxed: as in evc_mailbox_post. */
	if (evc_unlikely(atomic_load_explicit(&latest->mailbox->attention, memory_order_relaxed) &
			 EVC_ATTENTION_CLOSED))
		return EVC_CLOSED;
	/* Before P1, after which there is no way back. A dispatch has done so already. */
	if (evc_unlikely(record == NULL || !evc_spares_ready(record, EVC_NEEDS_TOKEN)))
		return EVC_OUT_OF_MEMORY;
	lane = newest->lane;
	/* Before P1: see there. */
	if (evc_unlikely(chain->count > 1))
		count_superseded(latest, chain->count - 1);
	old = put(latest, newest);
	/* P2; acquires the post of the token that is there. */
	if ((atomic_load_explicit(&latest->state[lane], memory_order_acquire) &
	     EVC_TOKEN_WHERE) != EVC_TOKEN_POSTED)
		post_token(latest, lane, record);
	/* Whoever put the token may be held up before it tells. */
	evc_mailbox_tell(latest->mailbox, lane);
	/* P4. Last, since the end of a payload is user code, which may dispatch. */
	if (evc_unlikely(chain->count > 1))
		evc_token_supersede_chain(chain);
	if (old != NULL)
		evc_envelope_supersede(old);
	return EVC_OK;
}

/* The consumer, and whoever drops */

/* K1, and the end of the token's slot. `cache` may be NULL. */
static void give_token(struct evc_latest *latest, struct evc_envelope *token,
		       struct evc_return_cache *cache)
{
	evc_token_taken(&latest->state[token->lane], token->time);
	evc_return_cache_give(cache, token);
}

struct evc_envelope *evc_latest_take(struct evc_mailbox *mailbox, struct evc_envelope *token)
{
	struct evc_latest *latest = latest_of(token->subscription);
	unsigned lane = token->lane;
	struct evc_envelope *envelope;
	uintptr_t newer = 0;

	give_token(latest, token, &mailbox->returns);
	envelope = take(latest);
	if (evc_likely(envelope != NULL && envelope->lane <= lane)) {
		/* The token's reference goes with it. */
		envelope->flags |= EVC_ENVELOPE_HOLDS;
		return envelope;
	}
	/* K3: its own token comes later. Release: the envelope, for P1. */
	if (envelope != NULL &&
	    !atomic_compare_exchange_strong_explicit(&latest->slot, &newer, (uintptr_t)envelope,
						     memory_order_release,
						     memory_order_relaxed)) {
		count_superseded(latest, 1);
		evc_envelope_end(envelope, false, &mailbox->returns);
	}
	unref(latest);
	/* Release, pairs with evc_mailbox_read_statistics: counted as taken before. */
	atomic_fetch_add_explicit(&mailbox->empty, 1, memory_order_release);
	return NULL;
}

uint64_t evc_latest_drop(struct evc_envelope *token, struct evc_return_cache *cache)
{
	struct evc_latest *latest = latest_of(token->subscription);
	struct evc_envelope *envelope;

	give_token(latest, token, cache);
	envelope = take(latest);
	if (envelope != NULL)
		evc_envelope_end(envelope, false, cache);
	unref(latest);
	return envelope != NULL;
}

/* Making and looking */

enum evc_status
evc_mailbox_add_latest_subscription(struct evc_mailbox *mailbox,
				    const struct evc_subscription_options *options,
				    struct evc_subscription **out)
{
	struct evc_latest *latest;

	if (mailbox == NULL || options == NULL || options->deliver == NULL || out == NULL)
		return EVC_INVALID_ARGUMENT;
	latest = evc_allocate(sizeof(*latest), _Alignof(struct evc_latest));
	if (latest == NULL)
		return EVC_OUT_OF_MEMORY;
	memset(latest, 0, sizeof(*latest));
	latest->sink = (struct evc_sink){ accept, retain, release, false, EVC_NEEDS_TOKEN };
	latest->subscription = (struct evc_subscription){
		.sink = &latest->sink,
		.deliver = options->deliver,
		.drop = options->drop,
		.context = options->context,
		.finalize = options->finalize,
	};
	latest->mailbox = mailbox;
	atomic_init(&latest->references, 1);
	atomic_init(&latest->slot, 0);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		atomic_init(&latest->state[lane], 0);
	evc_mailbox_retain(mailbox);
	pthread_mutex_lock(&mailbox->subscription_mutex);
	latest->next = mailbox->latests;
	latest->link = &mailbox->latests;
	if (latest->next != NULL)
		latest->next->link = &latest->next;
	mailbox->latests = latest;
	pthread_mutex_unlock(&mailbox->subscription_mutex);
	*out = &latest->subscription;
	return EVC_OK;
}

uint64_t evc_latest_subscription_superseded(struct evc_subscription *subscription)
{
	return read_superseded(latest_of(subscription));
}

uint64_t evc_latest_superseded(struct evc_mailbox *mailbox)
{
	uint64_t sum;

	pthread_mutex_lock(&mailbox->subscription_mutex);
	sum = mailbox->superseded;
	for (struct evc_latest *latest = mailbox->latests; latest != NULL; latest = latest->next)
		sum += read_superseded(latest);
	pthread_mutex_unlock(&mailbox->subscription_mutex);
	return sum;
}
#endif
