/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
/*
 * A post to a balancer: choose a receiver, promise (load.h), readdress, post to the receiver's sink.
 *
 * The snapshot of the receivers is found in a read section, and kept by a reference from there on, since
 * `choose` and the end of a payload may be the user's. A thread keeps no such reference beyond the post:
 * a receiver that was removed is let go as soon as the posts that saw it are done.
 */
#include "eventcore/balancer.h"

#include "compiler.h"
#include "envelope.h"
#include "load.h"
#include "memory.h"
#include "snapshot.h"

#include <pthread.h>

/* Chains are placed so many envelopes at a time, and for so many receivers at a time. */
#define SLICE 64u

struct evc_balancer {
	struct evc_sink sink;
	/* What routers know; envelopes that nobody takes go back to it. */
	struct evc_subscription subscription;
	uint32_t (*choose)(void *context, const struct evc_balancer_choice *choice);
	/* Read: any thread, in a section. Written: under `mutex`. NULL = no receivers. */
	_Atomic(struct evc_snapshot *) current;
	_Atomic uint32_t references;
	pthread_mutex_t mutex;
	/* Relaxed: a statistic. */
	_Atomic uint64_t refused;
	/* Written by every poster if there is no `choose`; away from what they all read. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t turn;
};

static struct evc_balancer *balancer_of(struct evc_sink *sink)
{
	return evc_container_of(sink, struct evc_balancer, sink);
}

uint64_t evc_load_promised(const struct evc_load *load)
{
	return atomic_load_explicit(evc_load_word(load), memory_order_seq_cst) & ~EVC_LOAD_RETIRED;
}

uint64_t evc_load_retire(struct evc_load *load)
{
	return atomic_fetch_or_explicit(evc_load_word(load), EVC_LOAD_RETIRED,
					memory_order_seq_cst) &
	       ~EVC_LOAD_RETIRED;
}

/* Posting */

static struct evc_snapshot *current_with_reference(struct evc_balancer *balancer)
{
	struct evc_snapshot *snapshot;

	evc_domain_enter();
	/* Pairs with publish: the entries before the pointer. */
	snapshot = atomic_load_explicit(&balancer->current, memory_order_acquire);
	if (snapshot != NULL)
		evc_snapshot_retain(snapshot);
	evc_domain_leave();
	return snapshot;
}

/* The index of the receiver for an envelope. Runs the user's code. */
static uint32_t choose(struct evc_balancer *balancer, const struct evc_snapshot *receivers,
		       struct evc_envelope *envelope)
{
	struct evc_balancer_choice choice;
	uint32_t index;

	if (receivers->count == 1)
		return 0;
	if (balancer->choose == NULL) {
		/* Relaxed: only the number counts. */
		index = atomic_fetch_add_explicit(&balancer->turn, 1, memory_order_relaxed);
		return index % receivers->count;
	}
	choice.envelope = envelope;
	choice.count = receivers->count;
	choice.stride = sizeof(struct evc_snapshot_entry);
	choice.loads = &receivers->entries[0].load;
	index = balancer->choose(balancer->subscription.context, &choice);
	return evc_likely(index < receivers->count) ? index : index % receivers->count;
}

static void readdress(const struct evc_chain *chain, const struct evc_snapshot_entry *entry)
{
	struct evc_envelope *envelope = chain->first;

	for (uint32_t i = 0; i < chain->count; i++, envelope = evc_slot_next(envelope)) {
		envelope->subscription = entry->subscription;
		envelope->generation = entry->generation;
		/* Nobody asked for the time when the dispatch began; it has not returned yet (D8). */
		if (evc_unlikely(entry->timed && evc_slot_time(envelope) == 0))
			evc_slot_set_time(envelope, evc_clock_now());
	}
}

/* The receiver from `index` on that takes a promise of `count`; receivers->count = none does. */
static uint32_t promise(const struct evc_snapshot *receivers, uint32_t index, uint32_t count)
{
	for (uint32_t turn = 0; turn < receivers->count; turn++) {
		if (evc_likely(evc_load_promise(receivers->entries[index].load, count)))
			return index;
		index = index + 1 < receivers->count ? index + 1 : 0;
	}
	return receivers->count;
}

/* Posts a chain that is promised to `index`, or to another if that one has closed. False = all have. */
static bool post(struct evc_balancer *balancer, const struct evc_snapshot *receivers, uint32_t index,
		 const struct evc_chain *chain)
{
	struct evc_snapshot_entry own = { .subscription = &balancer->subscription };

	for (uint32_t turn = 0; turn < receivers->count && index < receivers->count; turn++) {
		const struct evc_snapshot_entry *entry = &receivers->entries[index];
		struct evc_sink *sink = entry->subscription->sink;

		readdress(chain, entry);
		if (evc_likely(sink->accept(sink, chain) == EVC_OK))
			return true;
		evc_load_withdraw(entry->load, chain->count);
		index = promise(receivers, index + 1 < receivers->count ? index + 1 : 0,
				chain->count);
	}
	if (index < receivers->count)
		evc_load_withdraw(receivers->entries[index].load, chain->count);
	/* What holds the envelopes now may not hold a receiver. */
	readdress(chain, &own);
	return false;
}

static void count_refused(struct evc_balancer *balancer, uint32_t count)
{
	atomic_fetch_add_explicit(&balancer->refused, count, memory_order_relaxed);
}

static void drop(struct evc_balancer *balancer, const struct evc_chain *chain)
{
	struct evc_envelope *envelope = chain->first, *next;

	count_refused(balancer, chain->count);
	for (uint32_t i = 0; i < chain->count; i++, envelope = next) {
		next = evc_slot_next(envelope);
		evc_envelope_end(envelope, false, NULL);
	}
}

/*
 * Places up to SLICE envelopes, each where `choose` says, with one post for each receiver that gets some.
 * Returns the number that found one; what did not is unlinked and still addressed to the balancer.
 */
static uint32_t place_slice(struct evc_balancer *balancer, const struct evc_snapshot *receivers,
			    struct evc_envelope *const *envelopes, uint32_t count,
			    struct evc_chain *left)
{
	struct evc_chain chains[SLICE];
	uint32_t width = receivers->count < SLICE ? receivers->count : SLICE;
	uint32_t placed = 0;

	for (uint32_t i = 0; i < width; i++)
		chains[i] = (struct evc_chain)EVC_CHAIN_EMPTY;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = promise(receivers, choose(balancer, receivers, envelopes[i]), 1);

		if (index < width) {
			evc_chain_append(&chains[index], envelopes[i]);
		} else {
			struct evc_chain single = EVC_CHAIN_EMPTY;

			evc_chain_append(&single, envelopes[i]);
			if (index < receivers->count && post(balancer, receivers, index, &single))
				placed++;
			else
				evc_chain_append(left, envelopes[i]);
		}
	}
	for (uint32_t i = 0; i < width; i++) {
		struct evc_envelope *envelope = chains[i].first, *next;
		uint32_t length = chains[i].count;

		if (length == 0)
			continue;
		if (evc_likely(post(balancer, receivers, i, &chains[i]))) {
			placed += length;
			continue;
		}
		for (uint32_t j = 0; j < length; j++, envelope = next) {
			next = evc_slot_next(envelope);
			evc_chain_append(left, envelope);
		}
	}
	return placed;
}

/* Links envelopes as they came, so that the poster finds its chain again. */
static void link_again(struct evc_envelope *const *envelopes, uint32_t count,
		       struct evc_envelope *rest)
{
	for (uint32_t i = 0; i < count; i++)
		evc_slot_set_next(envelopes[i], i + 1 < count ? envelopes[i + 1] : rest);
}

/*
 * Places a chain. What is left over stays in `rest`, addressed to the balancer. As long as nothing was
 * placed (`*any`), that is the whole chain as it came.
 */
static void place_many(struct evc_balancer *balancer, const struct evc_snapshot *receivers,
		       struct evc_chain *rest, bool *any)
{
	struct evc_envelope *envelopes[SLICE];
	struct evc_envelope *next = rest->first;
	struct evc_chain left = EVC_CHAIN_EMPTY;
	uint32_t remaining = rest->count;

	while (remaining > 0) {
		uint32_t count = remaining < SLICE ? remaining : SLICE;

		for (uint32_t i = 0; i < count; i++) {
			envelopes[i] = next;
			next = evc_slot_next(next);
		}
		remaining -= count;
		*any |= place_slice(balancer, receivers, envelopes, count, &left) > 0;
		if (!*any) {
			/* All of these receivers have closed, which does not change. */
			link_again(envelopes, count, next);
			return;
		}
	}
	*rest = left;
}

static void place_one(struct evc_balancer *balancer, const struct evc_snapshot *receivers,
		      struct evc_chain *rest)
{
	uint32_t index = promise(receivers, choose(balancer, receivers, rest->first), 1);

	if (evc_likely(post(balancer, receivers, index, rest)))
		rest->count = 0;
}

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_balancer *balancer = balancer_of(sink);
	struct evc_chain rest = *chain;
	struct evc_snapshot *receivers;
	bool any = false, changed;

	if (evc_unlikely(chain->first == NULL))
		return EVC_INVALID_ARGUMENT;
	do {
		receivers = current_with_reference(balancer);
		if (evc_unlikely(receivers == NULL))
			break;
		if (evc_likely(rest.count == 1))
			place_one(balancer, receivers, &rest);
		else
			place_many(balancer, receivers, &rest, &any);
		/*
		 * All that this snapshot knew may have gone while others came: a receiver is taken off
		 * before it is retired, so that the current snapshot knows better. Acquire, for NULL
		 * too: pairs with publish.
		 */
		changed = rest.count > 0 && atomic_load_explicit(&balancer->current,
								 memory_order_acquire) != receivers;
		evc_snapshot_release(receivers);
		if (evc_likely(rest.count == 0))
			return EVC_OK;
	} while (changed);
	if (!any) {
		count_refused(balancer, chain->count);
		return EVC_CLOSED;
	}
	/* Some were placed, so the chain is the balancer's, and what is left ends here (D4: counted). */
	drop(balancer, &rest);
	return EVC_OK;
}

/* Life */

static void retain(struct evc_sink *sink)
{
	evc_balancer_retain(balancer_of(sink));
}

static void release(struct evc_sink *sink)
{
	evc_balancer_release(balancer_of(sink));
}

/* Nothing is handled under the balancer's own address: what arrives is readdressed or refused. */
static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	return false;
}

enum evc_status evc_balancer_create(const struct evc_balancer_options *options,
				    struct evc_balancer **out)
{
	struct evc_balancer *balancer;

	if (out == NULL)
		return EVC_INVALID_ARGUMENT;
	balancer = evc_allocate(sizeof(*balancer), _Alignof(struct evc_balancer));
	if (balancer == NULL)
		return EVC_OUT_OF_MEMORY;
	*balancer = (struct evc_balancer){
		.sink = { accept, retain, release, NULL },
		.subscription = { .deliver = deliver },
	};
	if (pthread_mutex_init(&balancer->mutex, NULL) != 0) {
		evc_deallocate(balancer, sizeof(*balancer), _Alignof(struct evc_balancer));
		return EVC_OUT_OF_MEMORY;
	}
	balancer->subscription.sink = &balancer->sink;
	if (options != NULL) {
		balancer->choose = options->choose;
		balancer->subscription.drop = options->drop;
		balancer->subscription.finalize = options->finalize;
		balancer->subscription.context = options->context;
	}
	atomic_init(&balancer->references, 1);
	*out = balancer;
	return EVC_OK;
}

void evc_balancer_retain(struct evc_balancer *balancer)
{
	/* Relaxed: the caller has a reference already. */
	atomic_fetch_add_explicit(&balancer->references, 1, memory_order_relaxed);
}

void evc_balancer_release(struct evc_balancer *balancer)
{
	struct evc_snapshot *receivers;

	/* Pairs with itself: everything that other holders did before the end. */
	if (atomic_fetch_sub_explicit(&balancer->references, 1, memory_order_acq_rel) != 1)
		return;
	/* Whoever posts holds a reference of the balancer, so that no section reads this any more. */
	receivers = atomic_load_explicit(&balancer->current, memory_order_acquire);
	if (receivers != NULL)
		evc_snapshot_release(receivers);
	if (balancer->subscription.finalize != NULL)
		balancer->subscription.finalize(balancer->subscription.context);
	pthread_mutex_destroy(&balancer->mutex);
	evc_deallocate(balancer, sizeof(*balancer), _Alignof(struct evc_balancer));
}

struct evc_subscription *evc_balancer_subscription(struct evc_balancer *balancer)
{
	return &balancer->subscription;
}

/* Receivers */

/* Under the mutex. */
static void publish(struct evc_balancer *balancer, struct evc_snapshot *snapshot)
{
	/* Pairs with current_with_reference: the entries before the pointer. */
	evc_snapshot_retire(
		atomic_exchange_explicit(&balancer->current, snapshot, memory_order_acq_rel));
}

enum evc_status evc_balancer_add(struct evc_balancer *balancer,
				 struct evc_subscription *subscription, uint32_t generation,
				 bool timed, struct evc_load *load)
{
	struct evc_snapshot_entry entry = { subscription, generation, timed, load };
	struct evc_snapshot *snapshot;

	if (balancer == NULL || subscription == NULL || subscription->sink == NULL ||
	    load == NULL || subscription == &balancer->subscription)
		return EVC_INVALID_ARGUMENT;
	pthread_mutex_lock(&balancer->mutex);
	snapshot = evc_snapshot_with(
		atomic_load_explicit(&balancer->current, memory_order_relaxed), entry);
	if (snapshot != NULL)
		publish(balancer, snapshot);
	pthread_mutex_unlock(&balancer->mutex);
	return snapshot != NULL ? EVC_OK : EVC_OUT_OF_MEMORY;
}

static bool contains(const struct evc_snapshot *snapshot,
		     const struct evc_subscription *subscription)
{
	for (uint32_t i = 0; snapshot != NULL && i < snapshot->count; i++)
		if (snapshot->entries[i].subscription == subscription)
			return true;
	return false;
}

enum evc_status evc_balancer_remove(struct evc_balancer *balancer,
				    struct evc_subscription *subscription)
{
	enum evc_status status = EVC_NOT_FOUND;
	struct evc_snapshot *current, *snapshot;
	bool is_empty;

	if (balancer == NULL || subscription == NULL)
		return EVC_INVALID_ARGUMENT;
	pthread_mutex_lock(&balancer->mutex);
	current = atomic_load_explicit(&balancer->current, memory_order_relaxed);
	if (contains(current, subscription)) {
		snapshot = evc_snapshot_without(current, subscription, &is_empty);
		status = snapshot != NULL || is_empty ? EVC_OK : EVC_OUT_OF_MEMORY;
		if (status == EVC_OK)
			publish(balancer, snapshot);
	}
	pthread_mutex_unlock(&balancer->mutex);
	return status;
}

uint32_t evc_balancer_count(struct evc_balancer *balancer)
{
	struct evc_snapshot *receivers = current_with_reference(balancer);
	uint32_t count = receivers == NULL ? 0 : receivers->count;

	if (receivers != NULL)
		evc_snapshot_release(receivers);
	return count;
}

uint64_t evc_balancer_refused(struct evc_balancer *balancer)
{
	return atomic_load_explicit(&balancer->refused, memory_order_relaxed);
}
#endif
