/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* One file, though long: post, settling and take are the sides of one protocol on a slot's word. */
#include "latest/latest.h"

#include "eventcore/mailbox.h"
#include "platform/allocator.h"
#include "platform/references.h"

/* References */

/* The mailbox still exists: the caller holds it, or is its consumer, one of its workers, or its end. */
static void unref(struct evc_latest *latest)
{
	if (!evc_reference_drop(&latest->references))
		return;
	/* All slots are empty and count nothing: an envelope in one has a token, which holds a reference. */
	evc_latest_list_remove(latest);
	/* Before `finalize`, after which the functions of the conflation may have no context. */
	evc_cells_close(&latest->cells);
	if (latest->subscription.finalize != NULL)
		latest->subscription.finalize(latest->subscription.context);
	evc_deallocate(latest, sizeof(*latest), _Alignof(struct evc_latest));
}

void evc_envelope_let_go(struct evc_subscription *subscription)
{
	unref(evc_latest_of(subscription));
}

static void retain(struct evc_sink *sink)
{
	struct evc_latest *latest = evc_container_of(sink, struct evc_latest, sink);

	evc_reference_add(&latest->references);
	latest->mailbox->retain(latest->mailbox);
}

static void release(struct evc_sink *sink)
{
	struct evc_latest *latest = evc_container_of(sink, struct evc_latest, sink);
	struct evc_sink *mailbox = latest->mailbox;

	unref(latest);
	mailbox->release(mailbox);
}

/* A shared mailbox has nobody who looks. */
static void look_again(struct evc_sink *sink)
{
	struct evc_sink *mailbox = evc_container_of(sink, struct evc_latest, sink)->mailbox;

	if (mailbox->look_again != NULL)
		mailbox->look_again(mailbox);
}

void evc_latest_subscription_release(struct evc_subscription *subscription)
{
	if (subscription != NULL)
		release(&evc_latest_of(subscription)->sink);
}

/* Producers */

static struct evc_envelope *envelope_in(uintptr_t slot)
{
	return (struct evc_envelope *)((slot & ~(EVC_LATEST_LANE | EVC_LATEST_COUNT)) >> EVC_LATEST_HIGH_BITS);
}

/* Moves the count out of the full bits of a slot that was read as `old`. Returns its present value. */
static uintptr_t carry(struct evc_cell *cell, uintptr_t old)
{
	/* It orders nothing: the caller's P1 is still to come. */
	if (!atomic_compare_exchange_strong_explicit(&cell->slot, &old, old & ~EVC_LATEST_COUNT,
						     memory_order_relaxed, memory_order_relaxed))
		return old;
	/* Release, pairs with evc_latest_subscription_superseded: the exchange above. */
	atomic_fetch_add_explicit(&cell->superseded, evc_latest_count_in(EVC_LATEST_COUNT), memory_order_release);
	return old & ~EVC_LATEST_COUNT;
}

/* P1. Returns the word of what is superseded, if any, which it counts by P1 itself or before, never after (claim 3). */
static inline uintptr_t put(struct evc_cell *cell, struct evc_envelope *newest, unsigned lane)
{
	const uintptr_t word = (uintptr_t)newest << EVC_LATEST_HIGH_BITS | lane;
	uintptr_t old = atomic_load_explicit(&cell->slot, memory_order_relaxed);
	uintptr_t superseded;

	do {
		while (evc_unlikely((old & EVC_LATEST_COUNT) == EVC_LATEST_COUNT))
			old = carry(cell, old);
		superseded = old == 0 ? 0 : (old & EVC_LATEST_COUNT) + EVC_LATEST_COUNT_ONE;
		/* Releases the envelope, and acquires the one that is superseded. */
	} while (!atomic_compare_exchange_weak_explicit(&cell->slot, &old, word | superseded, memory_order_seq_cst,
							memory_order_relaxed));
	return old;
}

/* Relaxed: a statistic. */
static void count_idle(struct evc_latest *latest, unsigned lane, int32_t change)
{
	if (evc_unlikely(change != 0))
		atomic_fetch_add_explicit(&latest->idle[lane], change, memory_order_relaxed);
}

/* The rest of P2, for a state that was not POSTED: posts a token, unless the one in the mailbox suffices. */
static bool post_token(struct evc_latest *latest, struct evc_cell *cell, unsigned lane,
		       struct evc_thread_record *record)
{
	_Atomic uint64_t *state = &cell->state[lane];
	/* Acquires the post of the token in the mailbox, which follows the caller's load in the order. */
	uint64_t seen = atomic_load_explicit(state, memory_order_acquire), number;
	struct evc_envelope *token;

	do {
		if (evc_likely((seen & EVC_TOKEN_WHERE) == EVC_TOKEN_POSTED))
			return false;
		number = (seen & ~(uint64_t)EVC_TOKEN_WHERE) + EVC_TOKEN_ONE;
	} while (!atomic_compare_exchange_weak_explicit(state, &seen, number | EVC_TOKEN_CLAIMED,
							memory_order_acquire, memory_order_acquire));
	/* Not NULL: a spare was set aside. */
	token = evc_spare_take(record, EVC_SPARE_TOKEN);
	evc_envelope_init(token, &latest->subscription, number, 0, lane, EVC_ENVELOPE_TOKEN);
	token->cell = cell;
	/* The token's reference. */
	evc_reference_add(&latest->references);
	latest->how->put(latest->mailbox, lane, token);
	/* Release, pairs with P2 of others. Nothing if the claim was taken over, or the token was taken. */
	seen = number | EVC_TOKEN_CLAIMED;
	atomic_compare_exchange_strong_explicit(state, &seen, number | EVC_TOKEN_POSTED, memory_order_release,
						memory_order_relaxed);
	return true;
}

/* Ends a superseded envelope with its payload in its slot, which this thread takes next again, wherever it is from. */
static inline void keep(struct evc_envelope *envelope, const struct evc_subscription *subscription)
{
	struct evc_thread_record *record;

	/* It may dispatch: the slot must not be free before it returns. It may also end the thread's record. */
	if (subscription->drop != NULL)
		subscription->drop(subscription->context, envelope->bytes);
	record = evc_thread_record_current;
	if (evc_likely(record != NULL))
		evc_envelope_keep(record, envelope);
	else
		evc_pool_give(envelope);
}

static inline void supersede(struct evc_envelope *envelope)
{
	struct evc_subscription *subscription = envelope->subscription;

	/* Before the user's code, which may dispatch to the same balancer, or wait for a retired receiver. */
	if (evc_unlikely(envelope->flags & EVC_ENVELOPE_PROMISED))
		evc_subscription_lose(subscription);
	if (evc_likely((envelope->flags & ~EVC_ENVELOPE_PROMISED) == 0))
		keep(envelope, subscription);
	else
		evc_envelope_release(envelope, false);
}

/*
 * P2, once it was loaded, after a P1 that has found `old`; and what both change of `idle`. Out of line, or else `post`
 * would not be inlined either, which costs a dispatch 3 ns.
 */
static __attribute__((noinline)) void finish_post(struct evc_latest *latest, struct evc_cell *cell, unsigned lane,
						  uintptr_t old, bool suffices,
						  struct evc_thread_record *record)
{
	const bool was_of_lane = old != 0 && (old & EVC_LATEST_LANE) == lane;
	const int32_t tokens = !suffices && post_token(latest, cell, lane, record);

	count_idle(latest, lane, tokens - !was_of_lane);
	if (old != 0 && !was_of_lane)
		count_idle(latest, (unsigned)(old & EVC_LATEST_LANE), 1);
}

/* P1 and P2. Returns the superseded envelope, if any. */
static inline struct evc_envelope *post(struct evc_latest *latest, struct evc_cell *cell,
					struct evc_envelope *newest, struct evc_thread_record *record)
{
	/* Read before P1. */
	const unsigned lane = newest->lane;
	const uintptr_t old = put(cell, newest, lane);
	/* P2; acquires the post of the token that is in the mailbox. */
	const bool suffices = (atomic_load_explicit(&cell->state[lane], memory_order_seq_cst) & EVC_TOKEN_WHERE) ==
			      EVC_TOKEN_POSTED;

	if (evc_unlikely(!suffices || old == 0 || (old & EVC_LATEST_LANE) != lane))
		finish_post(latest, cell, lane, old, suffices, record);
	return envelope_in(old);
}

static enum evc_status refuse(struct evc_latest *latest, uint32_t events)
{
	atomic_fetch_add_explicit(&latest->refused, events, memory_order_relaxed);
	return EVC_OUT_OF_MEMORY;
}

/* The cell of an envelope, whose content is fetched meanwhile: with many keys it was last used long ago. */
static inline struct evc_cell *cell_for(struct evc_latest *latest, struct evc_envelope *envelope)
{
	struct evc_cell *cell;

	if (latest->cells.root == NULL)
		return &latest->only;
	cell = evc_cells_find(&latest->cells, evc_envelope_payload_inline(envelope));
	if (evc_likely(cell != NULL))
		/* Relaxed: a hint. */
		evc_prefetch_write(envelope_in(atomic_load_explicit(&cell->slot, memory_order_relaxed)));
	return cell;
}

/* Several envelopes: each is the newest of its cell when its turn comes. */
static enum evc_status accept_chain(struct evc_latest *latest, const struct evc_chain *chain)
{
	struct evc_thread_record *record = evc_thread_record();
	struct evc_envelope *envelope = chain->first, *next, *superseded = NULL, *old;

	/* Before P1, after which nothing may fail: the memory of all cells and tokens. */
	for (uint32_t left = chain->count; left > 0; left--, envelope = evc_slot_next(envelope))
		if (cell_for(latest, envelope) == NULL)
			return refuse(latest, chain->count);
	/* Reserved, since the functions of a conflation run between the posts, and may dispatch elsewhere. */
	if (record == NULL || !evc_spares_reserve(record, latest->sink.needs, chain->count))
		return EVC_OUT_OF_MEMORY;
	envelope = chain->first;
	for (uint32_t left = chain->count; left > 0; left--, envelope = next) {
		/* Both before P1, after which the envelope may have been handled. */
		struct evc_cell *cell = cell_for(latest, envelope);

		next = evc_slot_next(envelope);
		old = post(latest, cell, envelope, record);
		if (old == NULL)
			continue;
		evc_slot_set_next(old, superseded);
		superseded = old;
	}
	evc_spares_unreserve(record, latest->sink.needs, chain->count);
	/* P3. */
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		if ((chain->lanes >> lane) & 1u)
			latest->how->tell(latest->mailbox, lane);
	/* P4. */
	for (; superseded != NULL; superseded = next) {
		next = evc_slot_next(superseded);
		supersede(superseded);
	}
	return EVC_OK;
}

static enum evc_status accept_one(struct evc_sink *sink, struct evc_envelope *envelope)
{
	struct evc_latest *latest = evc_container_of(sink, struct evc_latest, sink);
	struct evc_thread_record *record;
	struct evc_envelope *superseded;
	struct evc_cell *cell;
	unsigned lane;

	if (evc_unlikely(latest->how->is_closed(latest->mailbox)))
		return EVC_CLOSED;
	cell = cell_for(latest, envelope);
	if (evc_unlikely(cell == NULL))
		return refuse(latest, 1);
	record = evc_thread_record();
	/* Before P1, after which nothing may fail. A dispatch has set spares aside already. */
	if (evc_unlikely(record == NULL || !evc_spares_provide(record, sink->needs, 1, false)))
		return EVC_OUT_OF_MEMORY;
	lane = envelope->lane;
	superseded = post(latest, cell, envelope, record);
	/* P3. The producer that put the token may be held up before it tells. */
	latest->how->tell(latest->mailbox, lane);
	/* P4. Last, since ending a payload runs user code, which may dispatch. */
	if (superseded != NULL)
		supersede(superseded);
	return EVC_OK;
}

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_latest *latest = evc_container_of(sink, struct evc_latest, sink);

	if (evc_unlikely(chain->last == NULL))
		return EVC_INVALID_ARGUMENT;
	if (chain->count == 1)
		return accept_one(sink, chain->last);
	if (evc_unlikely(latest->how->is_closed(latest->mailbox)))
		return EVC_CLOSED;
	return accept_chain(latest, chain);
}

/* Taking and dropping */

/* K1, and gives the token's slot back. `cache` may be NULL. */
static void give_token(struct evc_envelope *token, struct evc_return_cache *cache)
{
	_Atomic uint64_t *state = &token->cell->state[token->lane];
	uint64_t seen = atomic_load_explicit(state, memory_order_relaxed);

	/* Nothing if another producer has taken the claim over. */
	while ((seen & ~(uint64_t)EVC_TOKEN_WHERE) == token->time &&
	       !atomic_compare_exchange_weak_explicit(state, &seen, token->time | EVC_TOKEN_NONE,
						      memory_order_seq_cst, memory_order_relaxed))
		;
	evc_return_cache_give_any(cache, token);
}

/* K2. Takes the envelope, unless its lane comes after `last`; counts what it superseded. */
static struct evc_envelope *take_event(struct evc_latest *latest, struct evc_cell *cell, unsigned last)
{
	/* Pairs with P1. */
	uintptr_t slot = atomic_load_explicit(&cell->slot, memory_order_seq_cst);
	uint64_t superseded;

	do {
		if (slot == 0 || (slot & EVC_LATEST_LANE) > last)
			return NULL;
		/* Acquires the envelope. Relaxed on failure: that value is newer than what was loaded. */
	} while (!atomic_compare_exchange_weak_explicit(&cell->slot, &slot, 0, memory_order_acquire,
							memory_order_relaxed));
	superseded = evc_latest_count_in(slot);
	if (atomic_load_explicit(&cell->superseded, memory_order_relaxed) != 0)
		superseded += atomic_exchange_explicit(&cell->superseded, 0, memory_order_relaxed);
	if (superseded > 0)
		/* Release, pairs with evc_latest_subscription_superseded: the two exchanges above. */
		atomic_fetch_add_explicit(&latest->superseded, superseded, memory_order_release);
	return envelope_in(slot);
}

/* K1 and K2 of a token, for an event whose lane does not come after `last`. */
static struct evc_envelope *take(struct evc_envelope *token, unsigned last, struct evc_return_cache *cache)
{
	struct evc_latest *latest = evc_latest_of(token->subscription);
	struct evc_cell *cell = token->cell;
	const unsigned lane = token->lane;
	struct evc_envelope *envelope;

	give_token(token, cache);
	envelope = take_event(latest, cell, last);
	if (evc_likely(envelope != NULL && envelope->lane == lane))
		return envelope;
	count_idle(latest, lane, -1);
	if (envelope != NULL)
		count_idle(latest, envelope->lane, 1);
	return envelope;
}

struct evc_envelope *evc_latest_take(struct evc_envelope *token, struct evc_return_cache *cache)
{
	struct evc_latest *latest = evc_latest_of(token->subscription);
	struct evc_envelope *envelope = take(token, token->lane, cache);

	if (evc_likely(envelope != NULL))
		/* The envelope inherits the token's reference. */
		envelope->flags |= EVC_ENVELOPE_HOLDS;
	else
		unref(latest);
	return envelope;
}

bool evc_latest_drop(struct evc_envelope *token, struct evc_return_cache *cache)
{
	struct evc_latest *latest = evc_latest_of(token->subscription);
	struct evc_envelope *envelope = take(token, EVC_LANE_COUNT, cache);

	if (envelope != NULL)
		evc_envelope_end(envelope, false, cache);
	unref(latest);
	return envelope != NULL;
}

/* Creating */

const struct evc_conflation evc_latest_only = { NULL, NULL, NULL, NULL, NULL };

enum evc_status evc_latest_create(const struct evc_subscription *as, struct evc_subscription_list *subscriptions,
				  const struct evc_mailbox_kind *how, const struct evc_conflation *conflation,
				  struct evc_subscription **out)
{
	const bool is_compared = conflation->is_same != NULL;
	struct evc_latest_list *list;
	struct evc_latest *latest;

	if ((conflation->number == NULL && conflation != &evc_latest_only) ||
	    (conflation->keep != NULL) != is_compared || (conflation->let_go != NULL) != is_compared)
		return EVC_INVALID_ARGUMENT;
	list = evc_latest_list_in(subscriptions);
	latest = list != NULL ? evc_allocate(sizeof(*latest), _Alignof(struct evc_latest)) : NULL;
	if (latest == NULL)
		return EVC_OUT_OF_MEMORY;
	*latest = (struct evc_latest){
		.sink = { accept, retain, release, false, how->needs, accept_one, NULL, look_again },
		.subscription = *as,
		.mailbox = as->sink,
		.list = list,
		.how = how,
		.references = 1,
	};
	if (!evc_cells_open(&latest->cells, conflation)) {
		evc_deallocate(latest, sizeof(*latest), _Alignof(struct evc_latest));
		return EVC_OUT_OF_MEMORY;
	}
	latest->subscription.sink = &latest->sink;
	latest->mailbox->retain(latest->mailbox);
	evc_latest_list_add(latest);
	*out = &latest->subscription;
	return EVC_OK;
}
#endif
