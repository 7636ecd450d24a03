/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The bound of a mailbox: how many events may wait, and what becomes of one that finds no place. It lies in front
 * of the mailbox: the sink of a bounded mailbox has functions of its own (mailbox_bounded.c), which admit an event
 * and then post it as any other. An unbounded mailbox has nothing of this.
 *
 * `admitted` counts the places that were ever given to events, and `taken` the events that had a place and were taken.
 * The difference is how many places are in use. Both only grow, but for posts that fail.
 *
 *   producer                                        consumer
 *   A1 load admitted                   relaxed      T1 take an envelope, add 1 to taken   release store
 *   A2 if A1 + n is beyond `limit` (acquire):       T2 load signal                        relaxed
 *      load taken                      seq_cst
 *      beyond taken + capacity: full; raise `limit` after A3, release
 *   A3 CAS admitted: A1 → A1 + n       relaxed
 *   A4 post
 *
 * `limit` spares a producer the consumer's line: it is what was once taken, plus the high-water mark. It never
 * exceeds what is taken now, plus the capacity, since `taken` only grows and the mark is at most the capacity. A
 * value that is too old is too low, and leads to A2.
 *
 * Claim 1: at no time are more than `capacity` places in use. A3 succeeds only if `admitted` is what A1 loaded; then
 * A1 + n is at most `limit`, or at most what A2 found taken plus the capacity.
 * Claim 2: who is told "full" found no place at the moment of A2: `admitted` was at least A1 then. Tokens of latest-only
 * subscriptions have no place, and do not count. What an ended mailbox drops need not count: its posts are refused.
 * Claim 3: the mark is exact while one thread posts at a time: an admission that leads beyond it goes by A2.
 * With several, each of them sees at least the events that were waiting when it read `taken`.
 *
 * Waiting for a place (EVC_OVERFLOW_BLOCK), by an event count (platform/event_count.h):
 *
 *   producer                                        consumer, after T1, if BLOCKED is up and a place is free
 *   B0 read the count                  acquire      C1 clear BLOCKED         relaxed
 *   B1 raise BLOCKED, then a fence     seq_cst      C2 advance the count, and wake all
 *   B2 admit, by A2
 *   B3 wait for the next count, or until the end
 * - No wake-up is lost. If B2 missed a T1, the fence of B1 precedes the fence that the consumer executes between T1
 *   and its look at the signal before it sleeps, arms the mailbox or returns from a pump (evc_mailbox_order_taken),
 *   so that this look finds BLOCKED, or a C1 has cleared it meanwhile. The C2 after that C1 ends the wait: had B0
 *   read what it wrote, C1 would come before B1, and BLOCKED would be up. C1 itself needs no order: C2 releases it.
 * - Nobody waits for the other side: a producer that the system takes away between B0 and B3 delays itself alone.
 * - A consumer at work wakes once EVC_BOUND_PLACES places are free, or half of them: one wake-up for several events.
 *   When it finds nothing, or a pump returns, one place suffices. So a full mailbox does not stay full while its
 *   consumer waits. If no place is free then, each belongs to a post that is under way; the consumer sleeps, and the
 *   first of these posts wakes it. A post that fails gives its places back and wakes all itself.
 * - A close sets CLOSED, then advances the count, and B2 looks at CLOSED first.
 *
 * Displacing (EVC_OVERFLOW_DROP_OLDEST): a producer that finds no place takes an event of a lane that is not more
 * urgent out of `lanes`, and has its place then: neither count changes. If there is none, the mailbox is full of
 * more urgent events, or of events whose producers have a place and are about to post; nobody waits for those (D5),
 * and the new event ends. The event that was taken out ends after the post, since that runs user code.
 *
 * Progress: an admission is lock-free. Tests: bound.c, bound_race.c; the explorer's scenario `bound`.
 */
#ifndef EVC_BOUND_H
#define EVC_BOUND_H

#include "eventcore/mailbox.h"
#include "memory/spares.h"
#include "platform/compiler.h"
#include "platform/event_count.h"
#include "lanes/shared_lanes.h"
#include "latest/latest.h"

#include <pthread.h>
#include <stdatomic.h>

/* The largest capacity, for which no sum overflows. */
#define EVC_BOUND_MAX (UINT64_MAX / 4)
/* How many places are free before a consumer at work wakes producers; or half of the capacity, if that is less. */
#define EVC_BOUND_PLACES 16u

struct evc_bound {
	/* Constant. */
	uint64_t capacity;
	uint64_t block_ns;
	enum evc_overflow policy;
	const struct evc_mailbox_kind *how;
	struct evc_sink *mailbox;
	/*
	 * EVC_OVERFLOW_DROP_OLDEST: where the events of this mailbox wait, so that producers can take them out again;
	 * NULL under the other policies. Tokens wait in the mailbox itself, since nobody may take them out. On the cache
	 * line of `how`, since each post reads both.
	 */
	struct evc_shared_lanes *lanes;
	/* The way into a mailbox for subscriptions that are unbounded. */
	struct evc_sink unbounded;

	/* Written by producers at each admission, and `limit` when it is reached. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t admitted;
	_Atomic uint64_t limit;

	/* Written by the consumers at each take. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t taken;

	/* Written on overflow. Relaxed: statistics; but `high_water` is part of `limit`. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t high_water;
	_Atomic uint64_t refused;
	_Atomic uint64_t overflowed;
	/* Advances when places have become free for those who wait, and when the mailbox closes. */
	struct evc_event_count rounds;
	/*
	 * Of a private mailbox: the thread that has entered it, or 0 (relaxed, since a thread compares it with itself
	 * alone, which no other thread stores); and how often it has, since who consumes it by hand may enter it again.
	 * `entries` is the consumer's alone.
	 */
	_Atomic uintptr_t consumer;
	unsigned entries;
};

/* Makes the bound of a mailbox. NULL = out of memory. */
struct evc_bound *evc_bound_create(uint64_t capacity, enum evc_overflow policy, uint64_t block_ns,
				   const struct evc_mailbox_kind *how, struct evc_sink *mailbox);
/* `bound` may be NULL. */
void evc_bound_destroy(struct evc_bound *bound);

/* The part of evc_bound_admit by A2: how many of `events` got a place. */
uint32_t evc_bound_admit_by_look(struct evc_bound *bound, uint32_t events);

/* Gives places to as many of `events` events as there are. Any thread. */
static inline uint32_t evc_bound_admit(struct evc_bound *bound, uint32_t events)
{
	uint64_t admitted = atomic_load_explicit(&bound->admitted, memory_order_relaxed);

	do {
		if (evc_unlikely(admitted + events >
				 atomic_load_explicit(&bound->limit, memory_order_acquire)))
			return evc_bound_admit_by_look(bound, events);
	} while (!atomic_compare_exchange_weak_explicit(&bound->admitted, &admitted, admitted + events,
							memory_order_relaxed, memory_order_relaxed));
	return events;
}

/*
 * T1 of a mailbox with one consumer. Nobody else writes it; evc_mailbox_order_taken orders it. Release, pairs with A2, and
 * by `limit` with later admissions: who gets the place knows that its event has left its lane, and so does who sees the
 * next one there (depths).
 */
static inline void evc_bound_count_taken(struct evc_bound *bound)
{
	atomic_store_explicit(&bound->taken, atomic_load_explicit(&bound->taken, memory_order_relaxed) + 1,
			      memory_order_release);
}

/* How many places are free. Any thread; exact while nothing is admitted or taken. */
uint64_t evc_bound_free(struct evc_bound *bound);

/*
 * Waits for a place for one event, and takes it. `*end`: when the post's time is over; 0 before its first wait, which
 * sets it. EVC_FULL: it is over. EVC_CLOSED. A producer.
 */
enum evc_status evc_bound_wait(struct evc_bound *bound, uint64_t *end);

/* True if `places` are free, or half of all. */
static inline bool evc_bound_has_places(struct evc_bound *bound, uint64_t places)
{
	uint64_t half = (bound->capacity + 1) / 2;

	return evc_bound_free(bound) >= (places < half ? places : half);
}

/* C1 and C2, if `places` are free, or half of all. BLOCKED stays up if not. The consumer. */
void evc_bound_unblock(struct evc_bound *bound, uint64_t places);
/* Frees places that events were given and do not come to use. The producer. */
void evc_bound_give_back(struct evc_bound *bound, uint32_t places);

/*
 * bound_accept.c: what the sink of a bounded mailbox does with a chain; and with one envelope without a place: EVC_OK
 * with `*is_admitted` false if it has ended; EVC_FULL, which the caller counts; `*end` as in evc_bound_wait.
 */
enum evc_status evc_bound_accept(struct evc_bound *bound, const struct evc_chain *chain);
enum evc_status evc_bound_overflow(struct evc_bound *bound, struct evc_envelope *envelope, uint64_t *end,
				   bool *is_admitted);

/* Adds the counters of a bound, which may be NULL, to those of its mailbox; they are 0 so far. Any thread. */
void evc_bound_read(struct evc_bound *bound, const uint64_t depths[EVC_LANE_COUNT],
		    struct evc_mailbox_statistics *statistics);

#endif
