/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file balancer.h
 * A balancer is a sink with several receivers, each of whose envelopes goes to exactly one of them. A
 * router sees one receiver; the balancer readdresses the envelope that travels on, so that lane, time of
 * dispatch and payload stay as they are. The bytes of a payload that needs no ending (its receiver has no
 * `drop`) may travel on in another envelope: do not keep pointers into it beyond `choose`.
 *
 * Each receiver gets its part of a chain in the order of the chain (D2). The part of a receiver that closes at
 * that moment goes on to another, where it comes behind that one's own part.
 *
 *     router ──► evc_balancer ──┬──► evc_mailbox 0
 *                (snapshot of   ├──► evc_mailbox 1
 *                 receivers)    └──► ...
 *
 * Synchronization:
 *   operation                       any number at once with       how
 *   accept (a post)                 everything                    snapshot: RCU, then a reference
 *   evc_balancer_add, _remove       everything                    mutex; the snapshot is replaced
 *   evc_load_retire                 everything                    one atomic word per load
 */
#ifndef EVENTCORE_BALANCER_H
#define EVENTCORE_BALANCER_H

#include "sink.h"

EVC_BEGIN_DECLS

struct evc_balancer;

/**
 * How many envelopes balancers have promised to one receiver, and whether they still may. One receiver
 * can have one load for many balancers (one for each key). All zero to begin with.
 *
 * A balancer counts an envelope here before it posts it, so that the figure minus what the receiver has
 * handled is what waits or is on its way. It does not count what others post to the receiver.
 */
struct evc_load {
	/* Atomic; for the functions below alone. */
	uint64_t word;
};

/**
 * How many envelopes were promised so far, those that were taken back not counted.
 * Threads: any. Progress: wait-free. Errors: none.
 */
EVC_API uint64_t evc_load_promised(const struct evc_load *load);

/**
 * Ends the promises: no balancer chooses this receiver from now on, whatever snapshot it works on.
 *
 * @return how many envelopes were promised in all. Once the receiver has handled so many, none is on its
 *         way any more, and it can close without losing one.
 *
 * Threads: any, once for each load. Progress: wait-free. Errors: none.
 */
EVC_API uint64_t evc_load_retire(struct evc_load *load);

/** What `choose` is asked. Valid during the call. */
struct evc_balancer_choice {
	/** The envelope; the caller's, for reading. */
	struct evc_envelope *envelope;
	/** How many receivers there are to choose from; at least 2. */
	uint32_t count;
	/* Where the pointers to the loads lie; see evc_balancer_choice_load. */
	uint32_t stride;
	const void *loads;
};

/**
 * The load of one receiver of a choice. Threads: the one that was asked. Progress: wait-free. Ownership: whoever
 * gave it to `evc_balancer_add`. Errors: none.
 */
static inline struct evc_load *
evc_balancer_choice_load(const struct evc_balancer_choice *choice, uint32_t index)
{
	return *(struct evc_load *const *)(const void *)((const char *)choice->loads +
							 (size_t)choice->stride * index);
}

/** How a balancer is made. All zero is a round robin over payloads that need no ending. */
struct evc_balancer_options {
	/**
	 * Chooses a receiver: a number below `choice->count`, which a larger one is reduced to. NULL takes
	 * them in turn. Called by whoever posts, on any thread and on several at once, outside of every
	 * lock and read section; it must not wait.
	 */
	uint32_t (*choose)(void *context, const struct evc_balancer_choice *choice);
	/** Ends a payload that no receiver was left for; NULL if payloads need no ending. Any thread. */
	void (*drop)(void *context, void *payload);
	/** Called once, when the balancer is freed; may be NULL. Any thread. */
	void (*finalize)(void *context);
	/** Handed to the functions above. */
	void *context;
	/**
	 * Where to count the turns, if there is no `choose`: balancers that share it take turns over all of
	 * their events. Any number to begin with, and the remainder by the number of receivers is the next
	 * one. It has to be there as long as the balancer, whose end `finalize` tells, and is written atomically
	 * by whoever posts, so keep it apart from what others read. NULL: a counter of the balancer's own.
	 */
	uint32_t *turn;
};

/**
 * Makes a balancer without receivers, with one reference.
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller holds the reference and gives it up
 * with `evc_balancer_release`. Errors: EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_balancer_create(const struct evc_balancer_options *options, struct evc_balancer **out);

/** Adds a reference. Threads: any. Progress: wait-free. Errors: none. */
EVC_API void evc_balancer_retain(struct evc_balancer *balancer);

/**
 * Drops a reference. The last one gives up the receivers and frees the balancer.
 *
 * Threads: any. Progress: wait-free but for the last. Ownership: ends the caller's. Errors: none.
 */
EVC_API void evc_balancer_release(struct evc_balancer *balancer);

/**
 * The subscription to give to a router: what is addressed to it goes to one of the receivers.
 * Threads: any. Progress: wait-free. Ownership: part of the balancer. Errors: none.
 */
EVC_API struct evc_subscription *evc_balancer_subscription(struct evc_balancer *balancer);

/**
 * Adds a receiver, or replaces what is known about one that is there.
 *
 * @param subscription of the receiver; not of a balancer that leads back here
 * @param generation   travels in each envelope, in place of the balancer's own
 * @param timed        true if the receiver wants the time of dispatch. The router is to be told too, or
 *                     the time is read here, in the same dispatch
 * @param load         counts what is promised to it; lives as long as the subscription
 *
 * Threads: any. Progress: blocking (a mutex, and the allocator); who posts does not notice. Ownership:
 * the balancer holds a reference of the subscription's sink until it is removed. Errors:
 * EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_balancer_add(struct evc_balancer *balancer,
						      struct evc_subscription *subscription,
						      uint32_t generation, bool timed,
						      struct evc_load *load);

/**
 * Removes a receiver. A post that began before may still reach it; `evc_load_retire` tells when none
 * does any more.
 *
 * Threads: any. Progress: blocking, as `evc_balancer_add`. Errors: EVC_NOT_FOUND, EVC_OUT_OF_MEMORY
 * (then it is still there), EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_balancer_remove(struct evc_balancer *balancer,
							 struct evc_subscription *subscription);

/** How many receivers it has. Threads: any. Progress: lock-free. Errors: none. */
EVC_API uint32_t evc_balancer_count(struct evc_balancer *balancer);

/**
 * How many envelopes it refused, since no receiver was left. Threads: any. Progress: wait-free. Errors: none.
 */
EVC_API uint64_t evc_balancer_refused(struct evc_balancer *balancer);

/**
 * How many envelopes it freed, since no receiver was left for them after others of their chain had been
 * placed: it has accepted those. Threads: any. Progress: wait-free. Errors: none.
 */
EVC_API uint64_t evc_balancer_dropped(struct evc_balancer *balancer);

EVC_END_DECLS
#endif
