/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A snapshot: the subscriptions of one key at one moment, as a router or a balancer has them. Immutable
 * once published, counted.
 *
 * Synchronization:
 *   Whoever changes something replaces the current snapshot of the key under its owner's mutex (exchange, release);
 *   readers load it (acquire), in a section: the entries before the pointer.
 *   Its router or balancer holds one reference of the current snapshot, dropped after a grace period
 *   (domain.h), so that a reader inside a section may take one more: the count cannot reach 0 under it.
 *   From then on only the count keeps the snapshot, in a route cache even across dispatches. Each
 *   holder's release (acquire-release) orders its reads before the end.
 * Ownership: a snapshot holds a reference of the sink of each of its entries.
 */
#ifndef EVC_SNAPSHOT_H
#define EVC_SNAPSHOT_H

#include "memory/subscription.h"
#include "platform/domain.h"

#include <stdatomic.h>

struct evc_load;

struct evc_snapshot_entry {
	struct evc_subscription *subscription;
	uint32_t generation;
	bool timed;
	/* Of a balancer's receiver; NULL in a router. Lives as long as the subscription. */
	struct evc_load *load;
};

struct evc_snapshot {
	_Atomic uint32_t references;
	uint32_t count;
	/* True if an entry is. */
	bool timed;
	/* One entry, which is not timed, and whose sink needs nothing. */
	bool is_plain;
	/* What sinks of the entries need, and how many of them do. Those with the same sink stand side by side. */
	uint8_t needs;
	uint32_t needing;
	struct evc_domain_head retired;
	struct evc_snapshot_entry entries[];
};

/* What a router has for each key, and a balancer for its receivers. NULL = no entries. */
typedef _Atomic(struct evc_snapshot *) evc_current_snapshot;

/* Adds an entry, or replaces that of its subscription. Under the owner's mutex. EVC_OUT_OF_MEMORY or EVC_OK. */
enum evc_status evc_snapshot_add(evc_current_snapshot *current, struct evc_snapshot_entry entry);
/* Takes the entry of a subscription out. Under the owner's mutex. EVC_NOT_FOUND, EVC_OUT_OF_MEMORY or EVC_OK. */
enum evc_status evc_snapshot_remove(evc_current_snapshot *current,
				    const struct evc_subscription *subscription);

/* The snapshot of now, with a reference for the caller; or NULL. Any thread, in no section. */
struct evc_snapshot *evc_snapshot_acquire(evc_current_snapshot *current);
/* How many entries there are now. As above. */
uint32_t evc_snapshot_count(evc_current_snapshot *current);

/* The last release ends the snapshot on the callback thread, since the end of a sink may run user code. */
void evc_snapshot_release(struct evc_snapshot *snapshot);

/* Drops the owner's reference after a grace period. `snapshot` may be NULL. */
void evc_snapshot_retire(struct evc_snapshot *snapshot);

#endif
