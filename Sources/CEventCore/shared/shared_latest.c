/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "shared/shared_latest.h"

#include "memory/memory.h"
#include "mailbox/token.h"

#include <string.h>

/* The slot's word: the address, two bits that count, four that tell the lane. */
#define LANE_MASK ((uintptr_t)15)
#define COUNT_ONE ((uintptr_t)16)
#define COUNT_MASK ((uintptr_t)48)
#define COUNT_MAX 3u

static_assert(EVC_LANE_COUNT <= LANE_MASK + 1, "a lane fits into the slot's word");

static inline struct evc_envelope *envelope_in(uintptr_t slot)
{
	return (struct evc_envelope *)(slot & ~(LANE_MASK | COUNT_MASK));
}

static inline unsigned lane_in(uintptr_t slot)
{
	return (unsigned)(slot & LANE_MASK);
}

static inline uint32_t count_in(uintptr_t slot)
{
	return (uint32_t)((slot & COUNT_MASK) / COUNT_ONE);
}

static struct evc_shared_latest *latest_of(struct evc_subscription *subscription)
{
	return evc_container_of(subscription, struct evc_shared_latest, subscription.base);
}

/* References */

static void ref(struct evc_shared_latest *latest)
{
	/* Relaxed: the caller has a reference already. */
	atomic_fetch_add_explicit(&latest->references, 1, memory_order_relaxed);
}

/* The mailbox is still there: the caller holds it, or is one of its workers, or its end. */
static void unref(struct evc_shared_latest *latest)
{
	struct evc_shared_mailbox *mailbox = latest->mailbox;
	struct evc_subscription *subscription = &latest->subscription.base;

	/* Pairs with itself: everything that other holders did before the end. */
	if (atomic_fetch_sub_explicit(&latest->references, 1, memory_order_acq_rel) != 1)
		return;
	/* The slot is empty, and counts nothing: what it held had a token to come, which held a reference. */
	pthread_mutex_lock(&mailbox->subscription_mutex);
	*latest->link = latest->next;
	if (latest->next != NULL)
		latest->next->link = latest->link;
	mailbox->superseded +=
		atomic_load_explicit(&latest->superseded, memory_order_relaxed);
	pthread_mutex_unlock(&mailbox->subscription_mutex);
	if (subscription->finalize != NULL)
		subscription->finalize(subscription->context);
	evc_deallocate(latest, sizeof(*latest), _Alignof(struct evc_shared_latest));
}

void evc_shared_latest_let_go(struct evc_subscription *subscription)
{
	unref(latest_of(subscription));
}

static void retain(struct evc_sink *sink)
{
	struct evc_shared_latest *latest = evc_container_of(sink, struct evc_shared_latest, sink);

	ref(latest);
	evc_shared_mailbox_retain(latest->mailbox);
}

static void release(struct evc_sink *sink)
{
	struct evc_shared_latest *latest = evc_container_of(sink, struct evc_shared_latest, sink);
	struct evc_shared_mailbox *mailbox = latest->mailbox;

	unref(latest);
	evc_shared_mailbox_release(mailbox);
}

void evc_shared_latest_subscription_release(struct evc_subscription *subscription)
{
	release(&latest_of(subscription)->sink);
}

/* Producers */

static void count_superseded(struct evc_shared_latest *latest, uint32_t count)
{
	atomic_fetch_add_explicit(&latest->superseded, count, memory_order_relaxed);
}

/* Makes room in the bits of a slot that is read as `old`. Returns what it is now. */
static __attribute__((noinline)) uintptr_t carry(struct evc_shared_latest *latest, uintptr_t old)
{
	/* Nothing is ordered by it: the caller's P1 is still to come. */
	if (!atomic_compare_exchange_strong_explicit(&latest->slot, &old, old - COUNT_MAX * COUNT_ONE,
						     memory_order_relaxed, memory_order_relaxed))
		return old;
	count_superseded(latest, COUNT_MAX);
	return old - COUNT_MAX * COUNT_ONE;
}

/*
 * P1. Returns the envelope that was superseded, if any, which it counts; never after P1, so that whoever
 * handles an event finds all counted that it took the place of (claim 3 of latest.h).
 */
static inline struct evc_envelope *put(struct evc_shared_latest *latest,
				       struct evc_envelope *newest, unsigned lane)
{
	uintptr_t old = atomic_load_explicit(&latest->slot, memory_order_relaxed);
	uint32_t count;

	do {
		while (evc_unlikely(count_in(old) == COUNT_MAX))
			old = carry(latest, old);
		count = old == 0 ? 0 : count_in(old) + 1;
		/* Releases the envelope, and acquires the one that is superseded. */
	} while (!atomic_compare_exchange_weak_explicit(&latest->slot, &old,
							(uintptr_t)newest | count * COUNT_ONE | lane,
							memory_order_seq_cst, memory_order_relaxed));
	return envelope_in(old);
}

/* P2, for a state that was not POSTED. */
static __attribute__((noinline)) void post_token(struct evc_shared_latest *latest, unsigned lane,
						 struct evc_thread_record *record)
{
	_Atomic uint64_t *state = &latest->state[lane];
	uint64_t number = evc_token_claim(state);
	struct evc_envelope *token;

	if (number == 0)
		return;
	/* Not NULL: there is a spare. */
	token = evc_token_create(record, &latest->subscription.base, lane);
	token->time = number;
	/* The token's reference. */
	ref(latest);
	evc_shared_put_token(latest->mailbox, token, lane);
	evc_token_settle(state, number);
}

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_shared_latest *latest = evc_container_of(sink, struct evc_shared_latest, sink);
	struct evc_envelope *newest = chain->last, *old;
	struct evc_thread_record *record = evc_thread_record();
	uint32_t count = chain->count - 1;
	unsigned lane;

	if (evc_unlikely(newest == NULL))
		return EVC_INVALID_ARGUMENT;
	/* Relaxed: as in evc_shared_mailbox_post. */
	if (evc_unlikely(atomic_load_explicit(&latest->mailbox->attention, memory_order_relaxed) &
			 EVC_SHARED_CLOSED))
		return EVC_CLOSED;
	lane = newest->lane;
	/* Before P1, after which there is no way back. A dispatch has done so already. */
	if (evc_unlikely(record == NULL ||
			 !evc_spares_ready(record, EVC_NEEDS_TOKEN | EVC_NEEDS_SEGMENT)))
		return EVC_OUT_OF_MEMORY;
	/* Before P1: claim 3 of latest.h. */
	if (evc_unlikely(count > 0))
		count_superseded(latest, count);
	old = put(latest, newest, lane);
	/* P2; acquires the post of the token that is there. */
	if ((atomic_load_explicit(&latest->state[lane], memory_order_seq_cst) &
	     EVC_TOKEN_WHERE) != EVC_TOKEN_POSTED)
		post_token(latest, lane, record);
	/* Whoever put the token may be held up before it tells. */
	evc_shared_tell(latest->mailbox);
	/* P4. Last, since the end of a payload is user code, which may dispatch. */
	if (evc_unlikely(count > 0))
		evc_token_supersede_chain(chain);
	if (old != NULL)
		evc_envelope_supersede(old);
	return EVC_OK;
}

/* Workers, and whoever drops */

struct evc_envelope *evc_shared_latest_take(struct evc_envelope *token,
					    struct evc_return_cache *cache)
{
	struct evc_shared_latest *latest = latest_of(token->subscription);
	unsigned lane = token->lane;
	struct evc_envelope *envelope;
	uintptr_t slot;

	/* K1. */
	evc_token_taken(&latest->state[lane], token->time);
	evc_return_cache_give_any(cache, token);
	/* K2; pairs with P1. */
	slot = atomic_load_explicit(&latest->slot, memory_order_seq_cst);
	do {
		if (slot == 0 || lane_in(slot) > lane) {
			unref(latest);
			return NULL;
		}
	} while (!atomic_compare_exchange_weak_explicit(&latest->slot, &slot, 0,
							memory_order_seq_cst,
							memory_order_seq_cst));
	if (count_in(slot) > 0)
		count_superseded(latest, count_in(slot));
	envelope = envelope_in(slot);
	/* The token's reference goes with it. */
	envelope->flags |= EVC_ENVELOPE_HOLDS;
	return envelope;
}

bool evc_shared_latest_drop(struct evc_envelope *token)
{
	struct evc_shared_latest *latest = latest_of(token->subscription);
	uintptr_t slot;

	evc_token_taken(&latest->state[token->lane], token->time);
	evc_pool_give(token);
	slot = atomic_exchange_explicit(&latest->slot, 0, memory_order_seq_cst);
	if (count_in(slot) > 0)
		count_superseded(latest, count_in(slot));
	if (slot != 0)
		evc_envelope_end(envelope_in(slot), false, NULL);
	unref(latest);
	return slot != 0;
}

/* Making and looking */

enum evc_status
evc_shared_mailbox_add_latest_subscription(struct evc_shared_mailbox *mailbox,
					   const struct evc_shared_subscription_options *options,
					   struct evc_subscription **out)
{
	struct evc_shared_latest *latest;

	if (mailbox == NULL || options == NULL || options->deliver == NULL || out == NULL)
		return EVC_INVALID_ARGUMENT;
	latest = evc_allocate(sizeof(*latest), _Alignof(struct evc_shared_latest));
	if (latest == NULL)
		return EVC_OUT_OF_MEMORY;
	memset(latest, 0, sizeof(*latest));
	latest->sink = (struct evc_sink){
		accept, retain, release, false, EVC_NEEDS_TOKEN | EVC_NEEDS_SEGMENT, NULL
	};
	latest->subscription.base = (struct evc_subscription){
		.sink = &latest->sink,
		.drop = options->drop,
		.context = options->context,
		.finalize = options->finalize,
	};
	latest->subscription.deliver = options->deliver;
	latest->mailbox = mailbox;
	atomic_init(&latest->references, 1);
	atomic_init(&latest->slot, 0);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		atomic_init(&latest->state[lane], 0);
	evc_shared_mailbox_retain(mailbox);
	pthread_mutex_lock(&mailbox->subscription_mutex);
	latest->next = mailbox->latests;
	latest->link = &mailbox->latests;
	if (latest->next != NULL)
		latest->next->link = &latest->next;
	mailbox->latests = latest;
	pthread_mutex_unlock(&mailbox->subscription_mutex);
	*out = &latest->subscription.base;
	return EVC_OK;
}

/* What was superseded so far; exact while nobody dispatches. */
static uint64_t read_superseded(struct evc_shared_latest *latest)
{
	uintptr_t slot;
	uint64_t counted = evc_superseded_read(&latest->superseded, &latest->slot, &slot);

	return counted + count_in(slot);
}

uint64_t evc_shared_latest_subscription_superseded(struct evc_subscription *subscription)
{
	return read_superseded(latest_of(subscription));
}

uint64_t evc_shared_latest_superseded(struct evc_shared_mailbox *mailbox)
{
	struct evc_shared_latest *latest;
	uint64_t sum;

	pthread_mutex_lock(&mailbox->subscription_mutex);
	sum = mailbox->superseded;
	for (latest = mailbox->latests; latest != NULL; latest = latest->next)
		sum += read_superseded(latest);
	pthread_mutex_unlock(&mailbox->subscription_mutex);
	return sum;
}
#endif
