/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A shared mailbox: ten lanes that producers and workers share, and the set of its workers.
 *
 * A take looks at the lanes from the most urgent on, up to the first non-empty lane of the worker's own mailbox.
 * This is D1: a look finds a lane empty only if it was empty at a moment after the take began (shared_queue.h,
 * shared_stack.h), and the worker's own lanes were looked at after that as well. The looks take 5 to 8 ns in all. A
 * mask of lanes that may be non-empty would save some, but costs each transition two more locked operations:
 * clearing a bit races with a post that finds it set.
 *
 * Sleeping. `attention` counts the workers that sleep or are about to; `looking` counts those that are about
 * to look at all lanes: woken and on their way, or spinning before a sleep.
 *
 *   producer                                       worker W
 *   P1 put                           seq_cst       W1 add 1 to attention, set its bit    relaxed, release
 *   P2 load attention                seq_cst       W2 subtract 1 from looking, if it is  relaxed
 *   P3 no worker sleeps: done                      W3 fence                              seq_cst
 *   P4 load looking; if > 0: done    seq_cst       W4 look at all lanes; if any: W6
 *      load the bits; if none: done  seq_cst
 *   P5 CAS looking: 0 → 1, else done relaxed       W5 sleep until woken
 *   P6 clear a bit, subtract 1       acq_rel,      W6 clear its bit, subtract 1 from     acquire, relaxed
 *      from attention; wake its worker  relaxed       attention; or, if it was clear,
 *   P7 there was none: subtract 1    relaxed,         it is looking by P5
 *      from looking; look at all     fence         W7 before the next take, if it is
 *      lanes; if any: P4                              looking: subtract 1 from looking   relaxed, fence
 *                                                  W8 take; if it was looking, or comes
 *                                                     from W6, and more waits: P4
 *
 * Claim: when a post has returned and its envelope still waits, then some worker is awake and will look at all lanes
 * before it sleeps, or a wake-up of one is under way, or there is no worker.
 * - P2 or P4 found no sleeper: the W3 of a worker that sleeps later follows in the single order of seq_cst
 *   operations, hence its W4 follows P1 and finds the envelope.
 * - P4 or P5 found a worker looking, before its W2 or W7: the fence after that step follows in the order, and W4 or
 *   W8's take follows the fence. Or the count was that of another producer at P5 that found no sleeper, whose fence
 *   and look at P7 follow.
 * - P6 woke a worker: it comes to W7 and takes.
 * If one worker is busy in its handler, another one comes for what waits, if any sleeps: a worker that takes after a
 * look that posts may have relied on (W7, or W4 by way of W6) wakes the next one if more waits, and so does one that
 * ends. Tests/Models/shared_wake.pml checks all of this.
 *
 * A post therefore makes at most one system call, and none while a worker is on its way: a burst wakes workers one
 * after the other, each by the one before it, until one finds nothing left.
 *
 * Closing. CLOSED refuses later posts. DROP: workers end at once, and what waits is dropped. Without DROP they end
 * when nothing waits: the first that finds it so sets ENDED and looks once more. A post that began before CLOSED and
 * sees it in P2 drops what waits itself if DROP or ENDED is set; otherwise its P1 precedes the fence after ENDED in
 * the single order, and hence that last look. What is left when there is no worker goes with the last release.
 */
#ifndef EVC_SHARED_MAILBOX_PRIVATE_H
#define EVC_SHARED_MAILBOX_PRIVATE_H

#include "eventcore/shared_mailbox.h"
#include "mailbox/bound.h"
#include "memory/envelope.h"
#include "platform/event_count.h"
#include "lanes/shared_lanes.h"

/* Bits of `attention`, below the count of sleepers. */
#define EVC_SHARED_CLOSED 1u
#define EVC_SHARED_DROP 2u
#define EVC_SHARED_ENDED 4u
#define EVC_SHARED_SLEEPER 8u

#define EVC_SLEEPER_WORDS (EVC_WORKERS_MAX / 64)

struct evc_worker {
	struct evc_shared_mailbox *shared;
	struct evc_mailbox *mailbox;
	void *context;
	/* Its index in `workers`, and its bit in `asleep`. */
	unsigned slot;
	/*
	 * The worker's thread only: is it counted in `looking`; must the next take wake another worker if
	 * more waits; how often another thread has cleared its bit.
	 */
	bool is_looking;
	bool passes_on;
	uint32_t claims;
	/* True while it takes from its own mailbox alone: cleared by evc_worker_admit, read by its thread. */
	_Atomic bool is_held;
	/* How many of those who cleared its bit have finished waking it. Read before it is freed. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t wakes;
	/* How many it took from the shared mailbox. Any thread reads it. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t taken;
};

struct evc_shared_mailbox {
	struct evc_sink sink;
	/* Of a bounded mailbox; NULL for others. With EVC_OVERFLOW_DROP_OLDEST `lanes` holds tokens alone. Constant. */
	struct evc_bound *bound;
	/* Read after every post and before every take; written when a worker sleeps or wakes, and at the end. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t attention;
	/* Written by workers that find nothing left, and by threads that wake them. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t looking;
	_Atomic uint64_t asleep[EVC_SLEEPER_WORDS];

	struct evc_shared_lanes lanes;

	/* Off the hot path. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t references;
	/* Workers that end while another thread is waking them, and what they wait on. */
	_Atomic uint32_t leaving;
	struct evc_event_count woken;
	_Atomic uint64_t dropped;
	/* Guards `workers` and `taken_by_others`; but a thread that cleared a bit reads its worker. */
	pthread_mutex_t worker_mutex;
	struct evc_worker *workers[EVC_WORKERS_MAX];
	/* What workers took that have ended. */
	uint64_t taken_by_others;
	/* Of a bounded mailbox: whether producers wait for a place (B1). */
	_Alignas(EVC_CACHE_LINE) _Atomic bool is_blocked;
	/* Tokens that stood for no event when they were taken or dropped (latest.h). Relaxed: statistics. */
	_Atomic uint64_t taken_empty;
	_Atomic uint64_t dropped_empty;
	struct evc_subscription_list subscriptions;
};

/* The mailbox of a sink. */
static inline struct evc_shared_mailbox *evc_shared_mailbox_of(struct evc_sink *sink)
{
	return evc_container_of(sink, struct evc_shared_mailbox, sink);
}

/* True if the mailbox refuses posts. Relaxed: a post that misses a simultaneous close sees it when it tells. */
static inline bool evc_shared_is_closed(struct evc_shared_mailbox *mailbox)
{
	return atomic_load_explicit(&mailbox->attention, memory_order_relaxed) & EVC_SHARED_CLOSED;
}

/* shared_bounded.c: opens the bound of a new mailbox; false = out of memory. */
bool evc_shared_bound_open(struct evc_shared_mailbox *mailbox, uint64_t capacity, enum evc_overflow overflow,
			   uint64_t block_ns);
/* shared_bounded.c: the next one for a bounded mailbox. Wakes producers that wait for its place. */
struct evc_envelope *evc_shared_take_bounded(struct evc_shared_mailbox *mailbox, unsigned limit);
/* shared_bounded.c: a shared mailbox, as what stands in front of it sees it. */
extern const struct evc_mailbox_kind evc_mailbox_kind_shared;
/* shared_mailbox.c: A4; what follows a put: P2. */
enum evc_status evc_shared_post(struct evc_shared_mailbox *mailbox, const struct evc_chain *chain);
void evc_shared_tell(struct evc_shared_mailbox *mailbox);

/* shared_bounded.c: wakes producers that wait for a place, if one is free: the worker may not look again soon. */
void evc_shared_unblock(struct evc_shared_mailbox *mailbox);

/* The shared mailboxes of which the calling thread runs or polls a worker, the innermost first. */
struct evc_shared_consumed {
	struct evc_shared_mailbox *mailbox;
	struct evc_shared_consumed *outer;
};
extern _Thread_local EVC_FOUND_AT_START struct evc_shared_consumed *evc_shared_consumed;

static inline bool evc_worker_is_held(struct evc_worker *worker)
{
	/* Acquire, pairs with evc_worker_admit. */
	return atomic_load_explicit(&worker->is_held, memory_order_acquire);
}

/* Takes the first envelope of the lanes before `limit`; NULL if they are empty. */
static inline struct evc_envelope *evc_shared_take(struct evc_shared_mailbox *mailbox, unsigned limit)
{
	if (evc_unlikely(mailbox->bound != NULL))
		return evc_shared_take_bounded(mailbox, limit);
	return evc_shared_lanes_take(&mailbox->lanes, limit);
}

/* True unless each lane was empty at some moment during the call; see shared_queue.h. */
static inline bool evc_shared_has_some(struct evc_shared_mailbox *mailbox)
{
	return evc_shared_lanes_have_some(&mailbox->lanes) ||
	       (evc_unlikely(mailbox->bound != NULL) && mailbox->bound->lanes != NULL &&
		evc_shared_lanes_have_some(mailbox->bound->lanes));
}

/* shared_mailbox_close.c: frees what waits, and counts it. */
void evc_shared_drop_all(struct evc_shared_mailbox *mailbox);

/* shared_mailbox_wake.c */
/* P4 to P7: after a put, or by a worker that leaves envelopes behind. */
void evc_shared_wake_one(struct evc_shared_mailbox *mailbox);
/* Wakes a worker that sleeps, even if another is looking. False if none sleeps. */
bool evc_shared_wake_any(struct evc_shared_mailbox *mailbox);
/* W2, W7. The worker's thread. */
void evc_worker_stop_looking(struct evc_worker *worker);
/* The worker will not look for a while: wakes another one for what waits, and producers. Its thread. */
void evc_worker_pass_on(struct evc_worker *worker);
/* The worker ends: as evc_worker_pass_on, and then waits for threads that are waking it. */
void evc_worker_leave(struct evc_worker *worker);

/* worker.c: evc_worker_run, of a worker whose mailbox the caller has claimed. Gives it back. */
enum evc_status evc_worker_run_claimed(struct evc_worker *worker);

#endif
