/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "routing/snapshot.h"

#include "platform/allocator.h"
#include "platform/compiler.h"
#include "platform/references.h"

static size_t size_for(uint32_t count)
{
	return sizeof(struct evc_snapshot) + count * sizeof(struct evc_snapshot_entry);
}

static void append(struct evc_snapshot *snapshot, struct evc_snapshot_entry entry)
{
	struct evc_sink *sink = entry.subscription->sink;

	sink->retain(sink);
	snapshot->entries[snapshot->count++] = entry;
	snapshot->timed |= entry.timed;
	snapshot->is_stamped |= entry.timed;
	snapshot->needs |= sink->needs;
	snapshot->needing += sink->needs != 0;
	snapshot->is_plain = snapshot->count == 1 && !snapshot->is_stamped && sink->needs == 0;
	snapshot->is_plain_if_counted = snapshot->count == 1 && snapshot->observation.observer.note != NULL &&
					!snapshot->timed && sink->needs == 0;
}

/* The index of a subscription, or where it would be added: behind the last one of the same sink. `old` may be NULL. */
static uint32_t place_of(const struct evc_snapshot *old, const struct evc_subscription *subscription, bool *is_there)
{
	uint32_t count = old != NULL ? old->count : 0, place = count;

	*is_there = false;
	for (uint32_t i = 0; i < count; i++) {
		if (old->entries[i].subscription == subscription) {
			*is_there = true;
			return i;
		}
		if (old->entries[i].subscription->sink == subscription->sink)
			place = i + 1;
	}
	return place;
}

/*
 * A copy of `old` (may be NULL) with `entry` (may be NULL) at `place`, instead of the one there if `replaces`. NULL =
 * out of memory.
 */
static struct evc_snapshot *copy(const struct evc_snapshot *old, uint32_t place, bool replaces,
				 const struct evc_snapshot_entry *entry, const struct evc_clock *clock,
				 const struct evc_observation *observation)
{
	uint32_t count = old != NULL ? old->count : 0, capacity = count - replaces + (entry != NULL);
	struct evc_snapshot *snapshot = evc_allocate(size_for(capacity), _Alignof(struct evc_snapshot));

	if (snapshot == NULL)
		return NULL;
	*snapshot = (struct evc_snapshot){ .references = 1,
					   .is_stamped = observation->observer.note != NULL,
					   .clock = clock,
					   .observation = *observation };
	for (uint32_t i = 0; i < place; i++)
		append(snapshot, old->entries[i]);
	if (entry != NULL)
		append(snapshot, *entry);
	for (uint32_t i = place + replaces; i < count; i++)
		append(snapshot, old->entries[i]);
	return snapshot;
}

static void release_sinks(void *context)
{
	struct evc_snapshot *snapshot = context;

	for (uint32_t i = 0; i < snapshot->count; i++) {
		struct evc_sink *sink = snapshot->entries[i].subscription->sink;

		sink->release(sink);
	}
}

/* On the callback thread. Releasing a sink may run user code, for which a fork does not wait. */
static void end(struct evc_domain_head *head)
{
	struct evc_snapshot *snapshot = evc_container_of(head, struct evc_snapshot, retired);

	evc_domain_run_user_code(release_sinks, snapshot);
	evc_deallocate(snapshot, size_for(snapshot->count), _Alignof(struct evc_snapshot));
}

void evc_snapshot_release(struct evc_snapshot *snapshot)
{
	if (evc_reference_drop(&snapshot->references))
		evc_domain_retire(&snapshot->retired, size_for(snapshot->count), end);
}

/* Runs on the callback thread, so that the snapshot can end at once. */
static void release_retired(struct evc_domain_head *head)
{
	if (evc_reference_drop(&evc_container_of(head, struct evc_snapshot, retired)->references))
		end(head);
}

void evc_snapshot_retire(struct evc_snapshot *snapshot)
{
	if (snapshot != NULL)
		evc_domain_retire(&snapshot->retired, size_for(snapshot->count),
					    release_retired);
}

void evc_snapshot_raise(struct evc_snapshot *snapshot, const struct evc_subscription *subscription,
			uint32_t generation)
{
	for (uint32_t i = 0; i < snapshot->count; i++)
		if (snapshot->entries[i].subscription == subscription)
			snapshot->entries[i].generation = generation;
}

void evc_snapshot_publish(evc_current_snapshot *current, struct evc_snapshot *snapshot)
{
	/* Release, pairs with the readers' loads: the entries before the pointer. */
	evc_snapshot_retire(atomic_exchange_explicit(current, snapshot, memory_order_release));
}

struct evc_snapshot *evc_snapshot_with(evc_current_snapshot *current, struct evc_snapshot_entry entry,
				       const struct evc_clock *clock, const struct evc_observation *observation)
{
	/* Relaxed, here and below: written under the mutex, which the caller holds. */
	const struct evc_snapshot *old = atomic_load_explicit(current, memory_order_relaxed);
	bool is_there;
	uint32_t place = place_of(old, entry.subscription, &is_there);

	return copy(old, place, is_there, &entry, clock, observation);
}

enum evc_status evc_snapshot_remove(evc_current_snapshot *current,
				    const struct evc_subscription *subscription)
{
	const struct evc_snapshot *old = atomic_load_explicit(current, memory_order_relaxed);
	struct evc_snapshot *snapshot = NULL;
	bool is_there;
	uint32_t place = place_of(old, subscription, &is_there);

	if (!is_there)
		return EVC_NOT_FOUND;
	if (old->count > 1) {
		snapshot = copy(old, place, true, NULL, old->clock, &old->observation);
		if (snapshot == NULL)
			return EVC_OUT_OF_MEMORY;
	}
	evc_snapshot_publish(current, snapshot);
	return EVC_OK;
}

enum evc_status evc_snapshot_observe(evc_current_snapshot *current, const struct evc_observation *observation)
{
	const struct evc_snapshot *old = atomic_load_explicit(current, memory_order_relaxed);
	struct evc_snapshot *snapshot;

	if (old == NULL)
		return EVC_OK;
	snapshot = copy(old, 0, false, NULL, old->clock, observation);
	if (snapshot == NULL)
		return EVC_OUT_OF_MEMORY;
	evc_snapshot_publish(current, snapshot);
	return EVC_OK;
}

struct evc_stamp evc_snapshot_stamp_slowly(const struct evc_snapshot *snapshot, struct evc_route_counts *counts,
					   uint32_t events)
{
	const struct evc_observation *observation = &snapshot->observation;
	struct evc_note note = { 0 };

	if (observation->observer.note == NULL || (counts != NULL && evc_route_count(counts, events)))
		return (struct evc_stamp){ snapshot->timed ? evc_snapshot_time(snapshot) : 0, 0 };
	observation->observer.note(observation->observer.context, observation->key, events, snapshot->timed, &note);
	if (counts != NULL)
		*counts = (struct evc_route_counts){ note.tally, evc_thread_origin };
	return (struct evc_stamp){ note.time, note.marks ? EVC_GENERATION_MARK : 0 };
}

struct evc_snapshot *evc_snapshot_acquire(evc_current_snapshot *current)
{
	struct evc_snapshot *snapshot;

	evc_domain_enter();
	/* Pairs with evc_snapshot_publish. */
	snapshot = atomic_load_explicit(current, memory_order_acquire);
	if (snapshot != NULL)
		/* Relaxed: in a section. */
		atomic_fetch_add_explicit(&snapshot->references, 1, memory_order_relaxed);
	evc_domain_leave();
	return snapshot;
}

uint32_t evc_snapshot_count(evc_current_snapshot *current)
{
	const struct evc_snapshot *snapshot;
	uint32_t count;

	evc_domain_enter();
	/* Pairs with evc_snapshot_publish. */
	snapshot = atomic_load_explicit(current, memory_order_acquire);
	count = snapshot != NULL ? snapshot->count : 0;
	evc_domain_leave();
	return count;
}
#endif
