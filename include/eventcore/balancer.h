/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file balancer.h
 * A balancer is a sink with several receivers; each of its envelopes goes to exactly one of them. A router
 * sees a single receiver. The balancer readdresses the envelope, so that lane, time of dispatch and payload
 * stay as they are. A payload without `drop` may be copied as bytes into another envelope on the way: do not
 * keep pointers into it after `choose` has returned.
 *
 * Each receiver gets its part of a chain in the order of the chain (D2). If a receiver closes meanwhile, its
 * part goes to another one, in order, before or behind that receiver's own part. A bounded mailbox that has accepted
 * some of its part, and closes while the post waits for a place (EVC_OVERFLOW_BLOCK), refuses the rest: that goes to no
 * other one. After `evc_balancer_remove_all`, what a receiver refuses because it was closed since goes to no other one,
 * until you add receivers again.
 *
 *     router ──► evc_balancer ──┬──► evc_mailbox 0
 *                 (snapshot of   ├──► evc_mailbox 1
 *                  receivers)    └──► ...
 *
 * Synchronization:
 *   operation                       any number at once with       how
 *   accept (a post)                 everything                    snapshot: RCU, then a reference
 *   evc_balancer_add, _remove(_all) everything                    mutex; the snapshot is replaced
 *   evc_load_retire                 everything                    one atomic word per load
 */
#ifndef EVENTCORE_BALANCER_H
#define EVENTCORE_BALANCER_H

#include "sink.h"

EVC_BEGIN_DECLS

struct evc_balancer;

/**
 * The number of envelopes that balancers have promised to one receiver, and whether they may promise more.
 * Several balancers (for example one for each key) can share the load of one receiver. Initialize it to zero.
 *
 * A balancer counts an envelope here before it posts it. The count minus what the receiver has handled is
 * therefore what waits or is about to be posted. Posts of others are not counted.
 */
struct evc_load {
	/* Atomic, both. Use the functions below. */
	uint64_t word;
	uint64_t lost;
};

/**
 * Returns how many envelopes have been promised and not withdrawn, without those that were lost. Sequentially
 * consistent, as each promise is: a watcher that sets a flag of its own so, and then finds nothing new, is seen by
 * whoever posts next and looks at that flag afterwards. Threads: any. Progress: wait-free.
 */
EVC_API uint64_t evc_load_promised(const struct evc_load *load);

/**
 * Returns how many promised envelopes are never handled, because the receiver's bounded mailbox has refused, dropped or
 * displaced them, because a newer one of a latest-only or conflated subscription has superseded them, or because there
 * was no memory for them. Of a receiver that is a balancer itself, displaced and superseded events are not among them:
 * they count in the load that it gave the subscription. Threads: any. Progress: wait-free.
 */
EVC_API uint64_t evc_load_lost(const struct evc_load *load);

/**
 * Ends the promises: no balancer chooses this receiver any more, whichever snapshot it works on.
 *
 * @return how many envelopes were promised in all. Once the receiver has handled that many, without
 *         `evc_load_lost`, none is on its way any more, and it can close without losing an event. If something may be
 *         lost, call `evc_mailbox_interrupt` after this, and compare in `control` too: what is lost later calls that
 *         again. A shared mailbox calls nobody: compare from time to time.
 *
 * Threads: any, once for each load. Progress: wait-free.
 */
EVC_API uint64_t evc_load_retire(struct evc_load *load);

/** The question that `choose` answers. Valid during the call. */
struct evc_balancer_choice {
	/** The envelope, for reading only. */
	struct evc_envelope *envelope;
	/** The number of receivers to choose from; at least 2. */
	uint32_t count;
	/* Private; see evc_balancer_choice_load. */
	uint32_t stride;
	struct evc_load *const *loads;
};

/**
 * Returns the load of the receiver with this index. Threads: the one that called `choose`. Progress:
 * wait-free. Ownership: whoever passed it to `evc_balancer_add`.
 */
static inline struct evc_load *
evc_balancer_choice_load(const struct evc_balancer_choice *choice, uint32_t index)
{
	/* The stride is in bytes. */
	return choice->loads[choice->stride / sizeof(choice->loads[0]) * index];
}

/** Options of a balancer. All but `size` zero: round robin, for payloads without `drop`. */
struct evc_balancer_options {
	/** sizeof of this structure, which tells the library which members the caller knows. */
	size_t size;
	/**
	 * Chooses a receiver: returns an index below `choice->count`; a larger number is reduced modulo that
	 * count. NULL: round robin. Every posting thread calls it, also several threads at once, outside of
	 * locks and read sections. It must not wait.
	 */
	uint32_t (*choose)(void *context, const struct evc_balancer_choice *choice);
	/** Ends a payload for which no receiver was left; NULL if payloads need no ending. Any thread. */
	void (*drop)(void *context, void *payload);
	/** Called once, when the balancer is freed; may be NULL. Any thread. */
	void (*finalize)(void *context);
	/** Passed to the functions above. */
	void *context;
	/**
	 * The round robin's counter, used if `choose` is NULL. Balancers that share a counter take turns over
	 * all of their events. It may start with any number: modulo the number of receivers it is the index
	 * of the next one. It must live until `finalize` is called. Every posting thread writes it
	 * atomically, so keep it on a cache line of its own. NULL: the balancer's own counter.
	 */
	uint32_t *turn;
	/** The clock of the routers in which it is a receiver; NULL: evc_clock_now. Copied, as in evc_router_set_clock. */
	const struct evc_clock *clock;
};

/**
 * Makes a balancer without receivers, with one reference.
 *
 * @param options NULL: the defaults
 * @param out receives the balancer
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller holds the reference and gives it up with
 * `evc_balancer_release`. Errors: EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_balancer_create(const struct evc_balancer_options *options, struct evc_balancer **out);

/** Adds a reference. Threads: any. Progress: wait-free. */
EVC_API void evc_balancer_retain(struct evc_balancer *balancer);

/**
 * Gives up a reference. The last one releases the receivers and frees the balancer.
 *
 * Threads: any. Progress: wait-free, except for the last reference. Ownership: ends the caller's.
 */
EVC_API void evc_balancer_release(struct evc_balancer *balancer);

/**
 * Returns the subscription to give to a router: an envelope that is addressed to it goes to one of the
 * receivers. Threads: any. Progress: wait-free. Ownership: part of the balancer.
 */
EVC_API struct evc_subscription *evc_balancer_subscription(struct evc_balancer *balancer);

/**
 * Adds a receiver, or replaces the settings of one that was added before.
 *
 * @param subscription of the receiver; not of a balancer that leads back to this one. Its own is refused; a longer
 *         ring is not detected, and a dispatch into it overflows the stack. The overflow policy of a bounded mailbox
 *         applies to the events that are chosen for it: none goes to another receiver because it is full
 * @param generation written into each envelope, in place of the balancer's own; at most EVC_GENERATION_MAX
 * @param timed true if the receiver needs the time of dispatch. Tell the router too; otherwise the balancer
 *         reads the clock itself, during the same dispatch.
 * @param load counts what is promised to the receiver, and what of that is lost (`evc_load_lost`); must live as long
 *         as the subscription, which has this load in every balancer
 *
 * Threads: any. Progress: blocking (a mutex, and the allocator); posting threads are not held up. Ownership:
 * the balancer holds a reference of the subscription's sink until the receiver is removed. Errors:
 * EVC_OUT_OF_MEMORY; EVC_INVALID_ARGUMENT, also if the subscription has another load.
 */
EVC_API EVC_MUST_USE enum evc_status evc_balancer_add(struct evc_balancer *balancer,
						      struct evc_subscription *subscription,
						      uint32_t generation, bool timed,
						      struct evc_load *load);

/**
 * Removes a receiver. A post that began earlier may still reach it; use `evc_load_retire` to find out when
 * none is left.
 *
 * Threads: any. Progress: blocking, as `evc_balancer_add`. Errors: EVC_NOT_FOUND; EVC_OUT_OF_MEMORY (the
 * receiver then stays); EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_balancer_remove(struct evc_balancer *balancer,
							 struct evc_subscription *subscription);

/**
 * Removes all receivers at once. Call it before you close them: a post that began earlier may still reach the receiver
 * that was chosen for it, but if that was closed since, the post refuses the event instead of taking it to another one,
 * which would handle it at the same time as what waits at the closed one. It holds until you add receivers again.
 *
 * Threads: any. Progress: blocking: it takes the mutex, as `evc_balancer_remove`, but allocates nothing.
 */
EVC_API void evc_balancer_remove_all(struct evc_balancer *balancer);

/** Returns the number of receivers. Threads: any. Progress: lock-free. */
EVC_API uint32_t evc_balancer_count(struct evc_balancer *balancer);

/** Returns how many envelopes no receiver was left for. Threads: any. Progress: wait-free. */
EVC_API uint64_t evc_balancer_refused(struct evc_balancer *balancer);

/**
 * Returns how many envelopes were freed because other envelopes of their chain had found a receiver and none was left
 * for them. Their dispatch counts them as refused. Threads: any. Progress: wait-free.
 */
EVC_API uint64_t evc_balancer_dropped(struct evc_balancer *balancer);

EVC_END_DECLS
#endif
