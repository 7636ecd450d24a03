/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * A post to a balancer: choose a receiver, promise (load.h), readdress, post to the receiver's sink. If that is
 * full, its overflow policy says what becomes of the event, which stays with the receiver that was chosen.
 *
 * The snapshot of the receivers is found in a read section and kept by a reference afterwards, since `choose`
 * and the end of a payload may run user code. A thread holds that reference only during the post: a removed
 * receiver is released as soon as the posts that saw it are done.
 *
 * A post that finds its receiver closed goes on to the next one, unless all were removed:
 *
 *   evc_balancer_remove_all, then a close             post, with a snapshot from before
 *   R1 no receivers           release                 A1 the receiver has closed    relaxed
 *   R2 CLOSED                 release RMW             A2 fence                      acquire
 *                                                     A3 are there no receivers?    relaxed
 * If A1 reads R2, A3 reads R1 or what was added later. So no event goes to another receiver because the one that was
 * chosen for it was closed after the removal, which would break the order of those that are chosen for it. One that
 * had closed before is not known to A3: that event may go on, since the next one is open, or was closed by R2. A post
 * that takes its snapshot later finds none: a snapshot without those that R2 closed is published after R1.
 */
#include "balancer/balancer_private.h"

#include "memory/envelope.h"
#include "balancer/load.h"
#include "memory/spares.h"

/*
 * How many envelopes of a chain behind the first, and how many receivers, are handled at a time. `slice` of
 * LockingBalancer.swift is the same, so that both cores choose alike.
 */
#define SLICE 63u

/* The index of the receiver for an envelope. Runs user code. */
static uint32_t choose(struct evc_balancer *balancer, const struct evc_snapshot *receivers,
		       struct evc_envelope *envelope)
{
	struct evc_balancer_choice choice;
	uint32_t index;

	if (receivers->count == 1)
		return 0;
	if (balancer->choose == NULL) {
		/* Relaxed: only the number matters, here and in Swift's round robin balancer. */
		index = atomic_fetch_add_explicit(balancer->turn, 1, memory_order_relaxed);
		return index % receivers->count;
	}
	choice.envelope = envelope;
	choice.count = receivers->count;
	choice.stride = sizeof(struct evc_snapshot_entry);
	choice.loads = &receivers->entries[0].load;
	index = balancer->choose(balancer->subscription.context, &choice);
	return evc_likely(index < receivers->count) ? index : index % receivers->count;
}

static void readdress(const struct evc_chain *chain, const struct evc_snapshot *receivers,
		      const struct evc_snapshot_entry *entry)
{
	struct evc_envelope *envelope = chain->first;

	for (uint32_t i = 0; i < chain->count; i++, envelope = evc_slot_next(envelope)) {
		envelope->subscription = entry->subscription;
		envelope->flags |= EVC_ENVELOPE_PROMISED;
		envelope->generation = entry->generation | (envelope->generation & EVC_GENERATION_MARK);
		/* No subscription of the router asked for the time; the dispatch is still running (D8). */
		if (evc_unlikely(entry->timed && envelope->time == 0))
			envelope->time = evc_snapshot_time(receivers);
	}
}

/* Promises envelopes to the first receiver from `index` on that accepts; receivers->count: none does. */
static uint32_t promise(const struct evc_snapshot *receivers, uint32_t index, uint32_t count)
{
	for (uint32_t turn = 0; turn < receivers->count; turn++) {
		if (evc_likely(evc_load_promise(receivers->entries[index].load, count)))
			return index;
		index = index + 1 < receivers->count ? index + 1 : 0;
	}
	return receivers->count;
}

/* Posts a chain to a receiver to which it is promised. EVC_OK: it has gone, as far as an overflow policy let it. */
static enum evc_status post_to(struct evc_thread_record *record, const struct evc_snapshot_entry *entry,
			       const struct evc_chain *chain)
{
	struct evc_sink *sink = entry->subscription->sink;
	struct evc_overflow_counts before = record->overflow, after;
	uint32_t count = chain->count, lost;
	enum evc_status status = sink->accept(sink, chain);
	/* Full, or out of memory: another receiver would be chosen against the order, and a close is final. */
	bool is_refused = status != EVC_OK && status != EVC_CLOSED;

	after = record->overflow;
	/* What it displaces or supersedes is told by evc_subscription_lose, since it may be another's. */
	lost = is_refused ? count : after.refused - before.refused + (after.dropped - before.dropped);
	if (evc_unlikely(lost > 0) && evc_load_lose(entry->load, lost) && sink->look_again != NULL)
		sink->look_again(sink);
	if (evc_likely(!is_refused))
		return status;
	/* The dispatch learns it as from that receiver. */
	record->overflow.refused += count;
	evc_chain_end(chain);
	return EVC_OK;
}

/* Posts a chain that is promised to `index`, there or to the next that is open. False: all have closed or gone. */
static bool post(struct evc_balancer *balancer, const struct evc_snapshot *receivers, uint32_t index,
		 const struct evc_chain *chain)
{
	struct evc_snapshot_entry own = { .subscription = &balancer->subscription };

	for (uint32_t turn = 0; turn < receivers->count && index < receivers->count; turn++) {
		const struct evc_snapshot_entry *entry = &receivers->entries[index];

		readdress(chain, receivers, entry);
		/* Not NULL: evc_balancer_accept. */
		if (evc_likely(post_to(evc_thread_record_current, entry, chain) == EVC_OK))
			return true;
		evc_load_withdraw(entry->load, chain->count);
		/* A2, A3. */
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&balancer->current, memory_order_relaxed) == NULL)
			index = receivers->count;
		else
			index = promise(receivers, index + 1 < receivers->count ? index + 1 : 0, chain->count);
	}
	if (index < receivers->count)
		evc_load_withdraw(receivers->entries[index].load, chain->count);
	/* The envelopes may outlive the receivers from here on. */
	readdress(chain, receivers, &own);
	return false;
}

static struct evc_envelope *take_first(struct evc_chain *chain)
{
	struct evc_envelope *first = chain->first;

	chain->first = evc_slot_next(first);
	chain->count--;
	return first;
}

/*
 * Posts up to SLICE envelopes of `rest`, each to the receiver that `choose` selects, with one post for each receiver.
 * Those that none accepts are appended to `left`, addressed to the balancer.
 */
static void place_slice(struct evc_balancer *balancer, const struct evc_snapshot *receivers, struct evc_chain *rest,
			struct evc_chain *left)
{
	struct evc_chain chains[SLICE];
	uint32_t width = receivers->count < SLICE ? receivers->count : SLICE;

	for (uint32_t i = 0; i < width; i++)
		chains[i] = (struct evc_chain)EVC_CHAIN_EMPTY;
	for (uint32_t i = 0; i < SLICE && rest->count > 0; i++) {
		struct evc_envelope *envelope = take_first(rest);
		uint32_t index = promise(receivers, choose(balancer, receivers, envelope), 1);
		struct evc_chain single = EVC_CHAIN_EMPTY;

		if (index < width) {
			evc_chain_append(&chains[index], envelope);
			continue;
		}
		evc_chain_append(&single, envelope);
		if (!post(balancer, receivers, index, &single))
			evc_chain_append(left, envelope);
	}
	for (uint32_t i = 0; i < width; i++)
		if (chains[i].count > 0 && evc_unlikely(!post(balancer, receivers, i, &chains[i])))
			while (chains[i].count > 0)
				evc_chain_append(left, take_first(&chains[i]));
}

static bool place_one(struct evc_balancer *balancer, const struct evc_snapshot *receivers,
		      const struct evc_chain *chain)
{
	return post(balancer, receivers, promise(receivers, choose(balancer, receivers, chain->first), 1), chain);
}

/*
 * Posts a chain. What no receiver accepts stays in `rest`, addressed to the balancer. As long as nothing was accepted
 * (`*any`), that is the whole chain, in its order: its first envelope goes first, and if nobody accepts that, all of
 * these receivers have closed, or all were removed, which is final.
 */
static void place_many(struct evc_balancer *balancer, const struct evc_snapshot *receivers, struct evc_chain *rest,
		       bool *any)
{
	struct evc_chain left = EVC_CHAIN_EMPTY;

	if (!*any) {
		struct evc_envelope *first = rest->first, *second = evc_slot_next(first);
		struct evc_chain single = EVC_CHAIN_EMPTY;

		evc_chain_append(&single, first);
		*any = place_one(balancer, receivers, &single);
		if (!*any) {
			evc_slot_set_next(first, second);
			return;
		}
		rest->first = second;
		rest->count--;
	}
	while (rest->count > 0)
		place_slice(balancer, receivers, rest, &left);
	*rest = left;
}

enum evc_status evc_balancer_accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct evc_balancer *balancer = evc_balancer_of(sink);
	struct evc_chain rest = *chain;
	struct evc_thread_record *record = evc_thread_record();
	enum evc_status status = EVC_CLOSED;
	struct evc_snapshot *receivers;
	bool any = false, changed;
	uint32_t reserved = 0;
	unsigned needs;

	if (evc_unlikely(chain->first == NULL))
		return EVC_INVALID_ARGUMENT;
	if (evc_unlikely(record == NULL))
		return EVC_OUT_OF_MEMORY;
	do {
		receivers = evc_snapshot_acquire(&balancer->current);
		if (evc_unlikely(receivers == NULL))
			break;
		needs = receivers->needs;
		/* Before the first promise, which only a post can fulfil. */
		if (evc_unlikely(needs != 0) &&
		    !evc_spares_reserve(record, needs, reserved = rest.count)) {
			evc_snapshot_release(receivers);
			status = EVC_OUT_OF_MEMORY;
			break;
		}
		if (evc_likely(rest.count == 1))
			rest.count = place_one(balancer, receivers, &rest) ? 0 : 1;
		else
			place_many(balancer, receivers, &rest, &any);
		if (evc_unlikely(needs != 0))
			evc_spares_unreserve(record, needs, reserved);
		/*
		 * These receivers may all have closed while others were added; a receiver is removed first. Relaxed: what
		 * failed has acquired the current ones, a promise (load.h) or a post (A2 in `post`).
		 */
		changed = evc_unlikely(rest.count > 0) &&
			  atomic_load_explicit(&balancer->current, memory_order_relaxed) != receivers;
		evc_snapshot_release(receivers);
		if (evc_likely(rest.count == 0))
			return EVC_OK;
	} while (changed);
	if (!any) {
		atomic_fetch_add_explicit(&balancer->refused, chain->count, memory_order_relaxed);
		return status;
	}
	/* The chain belongs to the balancer, since a part was accepted; the rest ends here, counted (D4). */
	atomic_fetch_add_explicit(&balancer->dropped, rest.count, memory_order_relaxed);
	/* The dispatch learns it, and a balancer around this one, whose promises these were. Before the user's code. */
	record->overflow.refused += rest.count;
	evc_chain_end(&rest);
	return EVC_OK;
}
#endif
