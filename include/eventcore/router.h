/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file router.h
 * A router knows for each key (an integer; Swift uses the type's metadata pointer) which subscriptions get an
 * event, and addresses envelopes to them.
 *
 * For each key there is one immutable snapshot. A writer replaces it as a whole and retires the old one,
 * which is freed after an RCU grace period. Each dispatching thread caches some snapshots, with a reference
 * of each, and compares one pointer to see that a snapshot is still current: that path has no read section,
 * no lock and no write to shared memory.
 *
 * An event is dispatched in two steps, so that its payload is written once, straight into its final place:
 *
 *     struct evc_dispatch d;
 *     if (evc_dispatch_begin(router, key, lane, sizeof e, _Alignof(e), 1, &d) == EVC_OK) {
 *             ... write the payload of each envelope from d.first on (d.payloads of them) ...
 *             evc_dispatch_commit(&d);
 *     }
 *
 * `evc_dispatch_bytes` does both steps for a payload that can be copied as bytes. `evc_dispatch_begin_one` is
 * the fast path for an event with a single receiver, which most events have.
 */
#ifndef EVENTCORE_ROUTER_H
#define EVENTCORE_ROUTER_H

#include "sink.h"

/** The largest number of events of one `evc_dispatch_begin`. */
#define EVC_DISPATCH_MAX 64u

EVC_BEGIN_DECLS

struct evc_router;

/**
 * Makes a router.
 *
 * @param out receives the router
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller frees it with `evc_router_destroy`. Errors:
 * EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_router_create(struct evc_router **out);

/**
 * Frees a router. The references that it holds of sinks are released after a grace period, except those in
 * the route caches of threads that dispatched through it: a thread keeps its last 16 routes until it
 * dispatches other keys or ends. The same holds after `evc_router_unsubscribe`.
 *
 * Threads: one, when no other call on this router runs or follows. Progress: blocking.
 */
EVC_API void evc_router_destroy(struct evc_router *router);

/**
 * Has events bear the time of another clock. It is read for as many events as `evc_clock_now` would be, those of keys
 * with a subscription that is timed.
 *
 * @param clock copied; its context must outlive the router
 *
 * Threads: one, before the first subscription. Progress: wait-free. Errors: EVC_INVALID_ARGUMENT without `now`;
 * EVC_NOT_PERMITTED after the first subscription or dispatch.
 */
EVC_API EVC_MUST_USE enum evc_status evc_router_set_clock(struct evc_router *router,
							  const struct evc_clock *clock);

/**
 * Has an observer told of each dispatch that begins from now on, except by `evc_try_dispatch`; or nobody any more.
 * Without one a dispatch pays nothing for it; with one it pays for the call, or for the count that takes its place.
 *
 * @param observer copied; its context must outlive the router. NULL: nobody
 *
 * Threads: any. Order: a dispatch that runs at the same time may tell the one before. Progress: blocking, as
 * `evc_router_subscribe`; O(keys). Errors: EVC_INVALID_ARGUMENT; EVC_OUT_OF_MEMORY, after which the observer of some keys
 * may be the one before: call it again.
 */
EVC_API EVC_MUST_USE enum evc_status evc_router_set_observer(struct evc_router *router,
							     const struct evc_observer *observer);

/**
 * Subscribes: `subscription` gets every event of `key` that is dispatched from now on. A second call for the
 * same subscription replaces its generation and `timed`.
 *
 * @param key not 0
 * @param generation written into each envelope; tells a consumer which version of its handlers an event was
 *         dispatched to; at most EVC_GENERATION_MAX
 * @param timed true if the time of dispatch is needed; the clock is read only for keys with such a
 *         subscription
 *
 * Threads: any, also inside a handler. Progress: blocking (a mutex, and the allocator); dispatching threads
 * are not held up. Ownership: the router holds a reference of the subscription's sink until it is
 * unsubscribed. A key that was once used keeps 64 bytes until the router is destroyed. Errors:
 * EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_router_subscribe(struct evc_router *router, uint64_t key,
							  struct evc_subscription *subscription,
							  uint32_t generation, bool timed);

/**
 * As `evc_router_subscribe`, and gives another subscription of the key a new generation in the same step, if it is
 * subscribed: each event comes to both with these generations, or to both as they were before, that is to the other
 * one alone if `subscription` is new. So who keeps the newest event of a key for those who subscribe later knows which
 * events they get anyway.
 *
 * @param other not `subscription`; neither added nor removed. NULL: none
 * @param other_generation at most EVC_GENERATION_MAX
 *
 * Threads, progress, ownership, errors: as for `evc_router_subscribe`.
 */
EVC_API EVC_MUST_USE enum evc_status evc_router_subscribe_raising(struct evc_router *router, uint64_t key,
								  struct evc_subscription *subscription,
								  uint32_t generation, bool timed,
								  const struct evc_subscription *other,
								  uint32_t other_generation);

/**
 * Unsubscribes: events of `key` that are dispatched from now on do not go to `subscription`. Envelopes that
 * are already addressed still arrive.
 *
 * Threads: any, also inside a handler. Progress: blocking, as `evc_router_subscribe`. Errors: EVC_NOT_FOUND;
 * EVC_OUT_OF_MEMORY (it is then still subscribed); EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_router_unsubscribe(struct evc_router *router, uint64_t key,
							    struct evc_subscription *subscription);

/** Returns the number of subscriptions of a key. Threads: any. Progress: lock-free. */
EVC_API uint32_t evc_router_count(struct evc_router *router, uint64_t key);

/**
 * For the Swift module alone, beside `evc_mailbox_consumed`: where the version of the router's state lies. Threads: any.
 * Progress: wait-free. Ownership: the router's.
 */
EVC_API const void *evc_router_version(struct evc_router *router);

/** A dispatch between its two steps. The caller reads the first four fields and `array`. */
struct evc_dispatch {
	/** The first envelope; `evc_dispatch_next` leads to the others. NULL if there is no receiver. */
	struct evc_envelope *first;
	/** The number of receivers of each event. */
	uint32_t receivers;
	/**
	 * How many payloads the caller has to write: one for each event and receiver, ordered by receiver.
	 * With `shared`: one for each event.
	 */
	uint32_t payloads;
	/** True if the payload lies in a box that all receivers share. */
	bool shared;
	/* Private, down to `snapshot`. */
	uint8_t lane;
	uint16_t events;
	uint8_t needs;
	uint16_t needing;
	void *record;
	void *snapshot;
	/**
	 * After `evc_dispatch_begin_batch`: where to write the payloads side by side, each at a multiple of
	 * the alignment; NULL if they lie in the envelopes.
	 */
	void *array;
};

/**
 * First step: finds the receivers and makes their envelopes.
 *
 * @param key of the events; not 0
 * @param lane one of the ten lanes
 * @param size payload size in bytes
 * @param alignment payload alignment in bytes, a power of two up to EVC_ALIGNMENT_MAX; 0 counts as 1
 * @param events how many events, 1 to EVC_DISPATCH_MAX; they stay in order, and together as a chain does
 *        (`evc_mailbox_post`)
 * @param out receives the dispatch; without a receiver its `receivers` is 0
 *
 * Threads: any; both steps on one thread. Progress: lock-free once warm: no lock, no allocation. Ownership:
 * `*out` owns the envelopes until `evc_dispatch_commit` or `evc_dispatch_abandon`. Errors: EVC_OUT_OF_MEMORY
 * (no receiver gets anything), EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_dispatch_begin(struct evc_router *router, uint64_t key,
							enum evc_lane lane, size_t size,
							size_t alignment, uint32_t events,
							struct evc_dispatch *out);

/**
 * First step for several events that lie side by side in memory. If there is a single receiver that takes
 * batches (`evc_mailbox_options.batches`), the payloads can travel side by side too: write them to
 * `out->array`, at about 2 ns each. Otherwise `out->array` is NULL, and the dispatch is as after
 * `evc_dispatch_begin`. Always look at it: it is NULL also for one event, for large ones, and whenever the route
 * is not in this thread's cache, as in the thread's first dispatch of the key.
 *
 * Parameters, threads, progress, ownership, errors: as `evc_dispatch_begin`.
 */
EVC_API EVC_MUST_USE enum evc_status evc_dispatch_begin_batch(struct evc_router *router, uint64_t key,
							      enum evc_lane lane, size_t size,
							      size_t alignment, uint32_t events,
							      struct evc_dispatch *out);

/**
 * Returns the envelope that follows `envelope` in a dispatch. Threads: the dispatching one. Progress:
 * wait-free. Ownership: the dispatch's.
 */
EVC_API struct evc_envelope *evc_dispatch_next(struct evc_envelope *envelope);

/**
 * Second step: posts. Envelopes whose receiver has closed meanwhile, or is full and refuses them, are freed.
 *
 * @return how often an event was accepted: the sum over the events of how many receivers accepted each
 *
 * Threads: the one that began. Progress: lock-free; one system call for each receiver that sleeps. A receiver
 * whose overflow policy is EVC_OVERFLOW_BLOCK blocks while it is full. Ownership: goes to the receivers.
 */
EVC_API uint32_t evc_dispatch_commit(struct evc_dispatch *dispatch);

/** What became of a dispatch: how many times an event, for each of its receivers, ended in which way. */
struct evc_dispatch_outcome {
	/** It waits for the receiver. */
	uint32_t accepted;
	/** The receiver was full and refused it, or memory for it ran out. */
	uint32_t refused;
	/** The receiver accepted it and dropped it at once by its overflow policy. */
	uint32_t dropped;
	/** An earlier event of a receiver was dropped in its favour. */
	uint32_t displaced;
	/** The receiver had closed; if it closes in the middle of a batch, what comes after counts as refused. */
	uint32_t closed;
};

/**
 * Second step, as `evc_dispatch_commit`, and says what became of the events.
 *
 * @param outcome receives the counts; not NULL
 * @return `accepted` and `dropped` together
 *
 * Threads, progress, ownership: as `evc_dispatch_commit`.
 */
EVC_API uint32_t evc_dispatch_commit_reporting(struct evc_dispatch *dispatch,
					       struct evc_dispatch_outcome *outcome);

/**
 * Told of what became of a dispatch at one receiver.
 *
 * @param subscription of the receiver; only to be compared, since it may have ended
 * @param outcome valid during the call
 */
typedef void evc_dispatch_note(void *context, const struct evc_subscription *subscription,
			       const struct evc_dispatch_outcome *outcome);

/**
 * Second step, as `evc_dispatch_commit_reporting`, and says it of each receiver: `note` is called after the post to
 * that receiver, in the order of the receivers. It may dispatch.
 *
 * @param note not NULL
 * @param context passed to it
 * @return as `evc_dispatch_commit`
 *
 * Threads, ownership: as `evc_dispatch_commit`. Progress: as there, with a post for each receiver, also where several
 * belong to one mailbox.
 */
EVC_API uint32_t evc_dispatch_commit_each(struct evc_dispatch *dispatch, evc_dispatch_note *note, void *context);

/**
 * Between the two steps, before the payloads are written: takes a receiver out, for an event that may go to all but
 * some, such as one that came from the machine to which that receiver sends. `first`, `receivers` and `payloads` change.
 *
 * @param subscription which of the receivers; only compared, so it may have ended
 * @return false if the dispatch does not go to it, or is one of `evc_dispatch_begin_batch` with an `array`
 *
 * Threads: the one that began. Progress: lock-free; O(receivers × events). Ownership: stays; the commit, or
 * evc_dispatch_abandon, must follow, also if no receiver is left.
 */
EVC_API bool evc_dispatch_skip(struct evc_dispatch *dispatch, const struct evc_subscription *subscription);

/**
 * Replaces the second step: frees the envelopes, whose payloads were not written.
 *
 * Threads: the one that began. Progress: lock-free. Ownership: ends here.
 */
EVC_API void evc_dispatch_abandon(struct evc_dispatch *dispatch);

/**
 * First step of the fast path, for one event that has a single receiver and whose payload fits into an
 * envelope; takes half the time of `evc_dispatch_begin`. Parameters as there, but the alignment is not checked.
 *
 * @return where to write the payload; pass it to `evc_dispatch_commit_one`. NULL if the fast path does not
 *         apply: call `evc_dispatch_begin`, which also reports errors.
 *
 * Threads: any; both steps on one thread. Progress: lock-free once warm. Ownership: the caller owns the
 * payload's place until the commit, which must follow; until then the thread pumps no mailbox, and neither
 * enters nor leaves one. What it dispatches in between to the same mailbox may come before or after the event.
 */
EVC_API void *evc_dispatch_begin_one(struct evc_router *router, uint64_t key, enum evc_lane lane,
				     size_t size, size_t alignment);

/**
 * Second step of the fast path: posts.
 *
 * @param payload what `evc_dispatch_begin_one` returned
 * @return how many receivers accepted: 1, or 0 if the receiver has closed meanwhile or is full
 *
 * Threads, progress, ownership, errors: as `evc_dispatch_commit`.
 */
EVC_API uint32_t evc_dispatch_commit_one(void *payload);

/**
 * Dispatches one event whose payload can be copied as bytes.
 *
 * @param payload `size` bytes; not NULL, as for memcpy, which is not checked
 * @param receivers receives how many receivers accepted; may be NULL
 *
 * Other parameters as `evc_dispatch_begin`. Threads: any. Progress: lock-free once warm. Ownership: the
 * caller keeps `payload`. Errors: as `evc_dispatch_begin`.
 */
EVC_API EVC_MUST_USE enum evc_status evc_dispatch_bytes(struct evc_router *router, uint64_t key,
							enum evc_lane lane, const void *payload,
							size_t size, size_t alignment,
							uint32_t *receivers);

EVC_END_DECLS
#endif
