/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A snapshot: the subscriptions of one key at one moment, as a router or a balancer has them. Immutable once
 * published; reference counted.
 *
 * Synchronization:
 * - A writer replaces the current snapshot of the key under its owner's mutex (exchange, release). Readers
 *   load it (acquire) in a section: they see the entries that were written before the pointer.
 * - The router or balancer holds one reference of the current snapshot, which it drops after a grace period
 *   (domain.h). A reader inside a section may therefore take another reference: the count cannot reach 0
 *   meanwhile. From then on the count alone keeps the snapshot, in a route cache even across dispatches. Each
 *   holder's release (acquire-release) orders its reads before the end.
 * Ownership: a snapshot holds a reference of the sink of each of its entries.
 */
#ifndef EVC_SNAPSHOT_H
#define EVC_SNAPSHOT_H

#include "memory/subscription.h"
#include "memory/thread_record.h"
#include "platform/compiler.h"
#include "platform/domain.h"

#include <stdatomic.h>

struct evc_snapshot_entry {
	struct evc_subscription *subscription;
	uint32_t generation;
	bool timed;
	/* The load of a balancer's receiver; NULL in a router. Lives as long as the subscription. */
	struct evc_load *load;
};

/* Who is told of the dispatches to a key. Without `note`: nobody. */
struct evc_observation {
	struct evc_observer observer;
	uint64_t key;
};

struct evc_snapshot {
	_Atomic uint32_t references;
	uint32_t count;
	/* True if an entry is timed. */
	bool timed;
	/* True if an entry is timed, or there is an observer. */
	bool is_stamped;
	/* True for a single entry whose sink needs nothing, if nothing is stamped. */
	bool is_plain;
	/* The same if there is an observer, while it need not be told. */
	bool is_plain_if_counted;
	/* What posts to the sinks need, and how many entries' sinks do. Those of one sink are adjacent. */
	uint8_t needs;
	uint32_t needing;
	/* The owner's, read during a dispatch through the owner, which is there then. */
	const struct evc_clock *clock;
	struct evc_observation observation;
	struct evc_domain_head retired;
	struct evc_snapshot_entry entries[];
};

/* What a router has for each key, and a balancer for its receivers. NULL = no entries. */
typedef _Atomic(struct evc_snapshot *) evc_current_snapshot;

/*
 * Returns a copy with an entry added, or with that of its subscription replaced, to be published or released. `clock`
 * is the owner's, and so is `observation`, which is copied. Under the owner's mutex. NULL = out of memory.
 */
struct evc_snapshot *evc_snapshot_with(evc_current_snapshot *current, struct evc_snapshot_entry entry,
				       const struct evc_clock *clock, const struct evc_observation *observation);
/* Changes the generation of a subscription (may be NULL) that has an entry. Before the snapshot is published. */
void evc_snapshot_raise(struct evc_snapshot *snapshot, const struct evc_subscription *subscription,
			uint32_t generation);
/* Replaces the current one, and retires that. Under the owner's mutex. */
void evc_snapshot_publish(evc_current_snapshot *current, struct evc_snapshot *snapshot);
/* Changes the observation. Under the owner's mutex. EVC_OUT_OF_MEMORY or EVC_OK. */
enum evc_status evc_snapshot_observe(evc_current_snapshot *current, const struct evc_observation *observation);
/* Removes a subscription's entry. Under the owner's mutex. EVC_NOT_FOUND, EVC_OUT_OF_MEMORY or EVC_OK. */
enum evc_status evc_snapshot_remove(evc_current_snapshot *current,
				    const struct evc_subscription *subscription);

/* The current snapshot, with a reference for the caller, or NULL. Any thread, outside of sections. */
struct evc_snapshot *evc_snapshot_acquire(evc_current_snapshot *current);
/* The current number of entries. Any thread, outside of sections. */
uint32_t evc_snapshot_count(evc_current_snapshot *current);

/* The last release ends the snapshot on the callback thread, since releasing its sinks may run user code. */
void evc_snapshot_release(struct evc_snapshot *snapshot);

/* The time of a dispatch through the owner of a snapshot. */
static inline uint64_t evc_snapshot_time(const struct evc_snapshot *snapshot)
{
	const struct evc_clock *clock = snapshot->clock;

	return evc_likely(clock->now == NULL) ? evc_clock_now() : clock->now(clock->context);
}

/* What the events of a dispatch bear. */
struct evc_stamp {
	uint64_t time;
	/* EVC_GENERATION_MARK or 0. */
	uint32_t mark;
};

/*
 * Counts a dispatch of `events` where the observer has it counted. False: it wants to be told of this one. `counts` is
 * that of the cached route.
 */
static inline bool evc_route_count(const struct evc_route_counts *counts, uint32_t events)
{
	struct evc_tally *tally = counts->tally;

	if (tally == NULL || counts->origin != evc_thread_origin || tally->left == 0)
		return false;
	tally->left--;
	/* Relaxed: a number that publishes nothing. Only this thread writes it. */
	__atomic_store_n(&tally->events, tally->events + events, __ATOMIC_RELAXED);
	return true;
}

/* `counts` is that of the snapshot's route; NULL if it is not cached. */
struct evc_stamp evc_snapshot_stamp_slowly(const struct evc_snapshot *snapshot, struct evc_route_counts *counts,
					   uint32_t events);

/* What a dispatch of `events` through the owner of a snapshot writes into them. */
static inline struct evc_stamp evc_snapshot_stamp(const struct evc_snapshot *snapshot,
						  struct evc_route_counts *counts, uint32_t events)
{
	if (evc_likely(!snapshot->is_stamped))
		return (struct evc_stamp){ 0, 0 };
	return evc_snapshot_stamp_slowly(snapshot, counts, events);
}

/* Drops the owner's reference after a grace period. `snapshot` may be NULL. */
void evc_snapshot_retire(struct evc_snapshot *snapshot);

#endif
