/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A shared mailbox: ten lanes that producers and workers meet on, and the set of its workers.
 *
 * A take looks at the lanes from the most urgent on, up to the first lane of the worker's own mailbox. That
 * is D1 by itself: each look finds a lane empty only if it was at a moment after the take began
 * (shared_queue.h, shared_stack.h), and a worker's own lanes were looked at after it began as well. A mask of
 * lanes that may hold something would save looks, but clearing a bit races with the post that finds it
 * set; with a second bit, "being cleared", and a version it can be proved, and costs each
 * transition two more locked operations. The looks take 5 to 8 ns in all.
 *
 * Sleeping. `attention` counts the workers that sleep or are about to; `looking` counts those that are
 * about to look at all lanes: woken and on their way, or spinning before a sleep.
 *
 *   producer                                       worker W
 *   P1 put                           seq_cst       W1 add 1 to attention, set its bit    relaxed, release
 *   P2 load attention                seq_cst       W2 subtract 1 from looking, if it is  relaxed
 *   P3 nobody sleeps: done                         W3 fence                              seq_cst
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
 * Claim: when a post has returned and its envelope still waits, then some worker is awake and will look
 * at all lanes before it sleeps, or a wake-up is under way to one, or there is no worker.
 *   P2 or P4 found no sleeper: whoever sleeps later has its W3 after that in the single order of seq_cst
 *   operations, hence its W4 follows P1 and finds the envelope.
 *   P4 or P5 found somebody looking, and not its W2 or W7: the fence after that follows in the order, and W4 or
 *   W8's take follows that; or it was another producer at P5 without a sleeper, whose fence and look at P7 follow.
 *   P6 woke one: it comes to W7 and takes.
 * And if one worker stays in its handler, another one comes for what waits, if any sleeps: whoever
 * takes after a look that posts may have relied on (W7, or W4 by way of W6) wakes the next one if more
 * waits. A worker that ends does so too. Tests/Models/shared_wake.pml checks all of this.
 *
 * So a post makes at most one system call, and none while somebody is on the way: a burst wakes
 * workers one after the other, each by the one before it, until one finds nothing left.
 *
 * Closing. CLOSED refuses later posts. DROP: workers end at once, and what waits is dropped. Without it
 * they end when nothing waits: the first that finds it so sets ENDED, and looks once more. A post
 * that began before CLOSED and sees it in P2 drops what waits itself if DROP or ENDED is set; otherwise
 * its P1 precedes the fence after ENDED in the single order, and so that last look. What is left when no worker is there
 * goes with the last release.
 */
#ifndef EVC_SHARED_MAILBOX_PRIVATE_H
#define EVC_SHARED_MAILBOX_PRIVATE_H

#include "eventcore/shared_mailbox.h"
#include "latest/subscription_list.h"
#include "memory/envelope.h"
#include "shared/shared_queue.h"
#include "shared/shared_stack.h"

#define EVC_QUEUE_LANES (EVC_LANE_COUNT - EVC_LANE_FIRST_QUEUE)

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
	/* Its place in `workers`, its bit in `asleep`. */
	unsigned slot;
	/*
	 * The worker's thread only: it is counted in `looking`; the next take has to wake another worker if
	 * more waits; how often another has cleared its bit.
	 */
	bool is_looking;
	bool passes_on;
	uint32_t claims;
	/* It takes from its own mailbox alone: cleared by evc_worker_admit, read by its thread until then. */
	_Atomic bool is_held;
	/* How often one that cleared its bit is done with it: written by those, read before it is freed. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t wakes;
	/* How many it took of each lane of the shared mailbox: written by it, read by anybody. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint64_t taken[EVC_LANE_COUNT];
};

struct evc_shared_mailbox {
	struct evc_sink sink;
	/* Read after every post and before every take; written when a worker sleeps or wakes, and at the end. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t attention;
	/* Of those below: written by workers that run dry, and by those that wake. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t looking;
	_Atomic uint64_t asleep[EVC_SLEEPER_WORDS];

	struct evc_shared_stack stacks[EVC_LANE_FIRST_QUEUE];
	struct evc_shared_queue queues[EVC_QUEUE_LANES];

	/* Off the hot path. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t references;
	_Atomic uint64_t dropped[EVC_LANE_COUNT];
	/* Guards `workers` and `taken_by_others`, but for the look at a worker whose bit one has cleared. */
	pthread_mutex_t worker_mutex;
	struct evc_worker *workers[EVC_WORKERS_MAX];
	/* What workers took that are gone. */
	uint64_t taken_by_others[EVC_LANE_COUNT];
	/* Tokens that were taken, and dropped, and stood for nothing (latest.h). Relaxed: statistics. */
	_Atomic uint64_t taken_empty;
	_Atomic uint64_t dropped_empty;
	struct evc_subscription_list subscriptions;
};

/* What a subscription of the mailbox is. */
static inline struct evc_subscription
evc_shared_subscription(struct evc_shared_mailbox *mailbox,
			const struct evc_shared_subscription_options *options)
{
	return (struct evc_subscription){
		.sink = &mailbox->sink,
		.deliver_by_worker = options->deliver,
		.drop = options->drop,
		.context = options->context,
		.finalize = options->finalize,
		.is_shared = true,
	};
}

/* Takes the first envelope of the lanes before `limit`, and tells its lane; NULL if there is none. */
static inline struct evc_envelope *evc_shared_take(struct evc_shared_mailbox *mailbox,
						   unsigned limit, unsigned *lane)
{
	struct evc_envelope *envelope = NULL;
	unsigned l;

	evc_domain_enter();
	for (l = 0; l < limit && l < EVC_LANE_FIRST_QUEUE; l++) {
		envelope = evc_shared_stack_take(&mailbox->stacks[l]);
		if (envelope != NULL)
			goto found;
	}
	for (; l < limit; l++) {
		envelope = evc_shared_queue_take(&mailbox->queues[l - EVC_LANE_FIRST_QUEUE]);
		if (envelope != NULL)
			goto found;
	}
found:
	evc_domain_leave();
	*lane = l;
	return envelope;
}

/*
 * shared_mailbox.c: P1 for a token, whether the mailbox is closed or not. The thread has a segment set aside (spares.h).
 */
void evc_shared_put_token(struct evc_shared_mailbox *mailbox, struct evc_envelope *token, unsigned lane);
/* shared_mailbox.c: P2 and what follows. The mailbox is still there: whoever posts holds a reference. */
void evc_shared_tell(struct evc_shared_mailbox *mailbox);

/* shared_mailbox.c: true unless each lane was empty at a moment during the call; see shared_queue.h. */
bool evc_shared_has_some(struct evc_shared_mailbox *mailbox);

/* shared_mailbox_close.c: frees what waits, and counts it. */
void evc_shared_drop_all(struct evc_shared_mailbox *mailbox);

/* shared_mailbox_wake.c */
/* P4 to P7: after a put, or by a worker that leaves something. */
void evc_shared_wake_one(struct evc_shared_mailbox *mailbox);
/* Wakes one that sleeps, whoever is looking. False if none sleeps. */
bool evc_shared_wake_any(struct evc_shared_mailbox *mailbox);
/* W1 to W3, before the look W4; and W6, after the sleep W5. Of a worker, on its thread: the waiter's functions. */
void evc_worker_lie_down(void *worker);
void evc_worker_get_up(void *worker);
/* W2, W7. The worker's thread. */
void evc_worker_stop_looking(struct evc_worker *worker);
/* Counts the worker among those looking. The worker's thread. */
void evc_worker_begin_looking(struct evc_worker *worker);
/* The worker will not look for a while: another one is to come for what waits. Its thread. */
void evc_worker_pass_on(struct evc_worker *worker);
/* The worker ends: passes on, and waits for those that are waking it. */
void evc_worker_leave(struct evc_worker *worker);

#endif
