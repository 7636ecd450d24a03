/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file router.h
 * A router tells for each key (an integer; Swift uses the type's metadata pointer) which subscriptions
 * get an event, and addresses envelopes to them.
 *
 * Per key there is one immutable snapshot, replaced as a whole by a writer and retired after an RCU
 * grace period. A dispatching thread keeps a small cache of snapshots of its own, each with a
 * reference, and compares one pointer to see that it is still the current one: no read section, no
 * lock and no shared write on that path.
 *
 * The event is dispatched in two steps so that the payload is written once, straight into its place:
 *
 *     struct evc_dispatch d;
 *     if (evc_dispatch_begin(router, key, lane, sizeof e, _Alignof(e), 1, &d) == EVC_OK) {
 *             ... write the payload of each envelope from d.first on (d.envelopes of them) ...
 *             evc_dispatch_commit(&d);
 *     }
 *
 * `evc_dispatch_bytes` does all of it for a payload that can be copied as bytes. `evc_dispatch_begin_one` is the
 * short way for the event of a single receiver, which is what most events are.
 */
#ifndef EVENTCORE_ROUTER_H
#define EVENTCORE_ROUTER_H

#include "sink.h"

/** The most events that one `evc_dispatch_begin` takes. */
#define EVC_DISPATCH_MAX 64u

EVC_BEGIN_DECLS

struct evc_router;

/**
 * Makes a router.
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller frees it with
 * `evc_router_destroy`. Errors: EVC_OUT_OF_MEMORY.
 */
EVC_API EVC_MUST_USE enum evc_status evc_router_create(struct evc_router **out);

/**
 * Frees a router. Sinks lose the references that it held after a grace period, but for those in the
 * caches of threads that dispatched through it: a thread keeps its last 16 routes until it dispatches
 * other keys in their place or ends. The same holds for a subscription that ends.
 *
 * Threads: one, when no other call on this router runs or follows. Progress: blocking. Errors: none.
 */
EVC_API void evc_router_destroy(struct evc_router *router);

/**
 * Gives `subscription` every event of `key` that is dispatched from now on. A second call for the same
 * subscription replaces its generation and `timed`.
 *
 * @param key        not 0
 * @param generation travels in each envelope; a consumer tells by it which state of its own handlers
 *                   an event was dispatched to
 * @param timed      true if the time of dispatch is wanted; the clock is read only for keys with such
 *                   a subscription
 *
 * Threads: any, also inside a handler. Progress: blocking (a mutex, and the allocator); dispatching
 * threads do not notice. Ownership: the router holds a reference of the subscription's sink until it
 * is unsubscribed. A key that was ever used keeps 64 bytes until the router ends. Errors:
 * EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_router_subscribe(struct evc_router *router, uint64_t key,
							  struct evc_subscription *subscription,
							  uint32_t generation, bool timed);

/**
 * Ends a subscription. Envelopes that are already addressed still arrive.
 *
 * Threads: any, also inside a handler. Progress: blocking, as `evc_router_subscribe`. Errors:
 * EVC_NOT_FOUND, EVC_OUT_OF_MEMORY (then it still stands), EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_router_unsubscribe(struct evc_router *router, uint64_t key,
							    struct evc_subscription *subscription);

/** How many subscriptions a key has. Threads: any. Progress: lock-free. Errors: none. */
EVC_API uint32_t evc_router_count(struct evc_router *router, uint64_t key);

/** A dispatch between its two steps. The caller reads the first four fields only. */
struct evc_dispatch {
	/** The first envelope; `evc_dispatch_next` leads to the others. NULL if nobody listens. */
	struct evc_envelope *first;
	/** How many receivers each event has. */
	uint32_t receivers;
	/**
	 * How many payloads the caller has to write: one for each event and receiver, ordered by
	 * receiver; or, with `shared`, one for each event, which the receivers share.
	 */
	uint32_t payloads;
	/** True if the payload is boxed and shared by all receivers. */
	bool shared;
	/* What follows belongs to the core. */
	uint8_t lane;
	uint16_t events;
	uint8_t needs;
	uint16_t needing;
	void *record;
	void *snapshot;
	/**
	 * For the caller again, after `evc_dispatch_begin_batch`: where the payloads are to be written side by
	 * side, each a multiple of the alignment after the one before; NULL if they lie in the envelopes.
	 */
	void *array;
};

/**
 * First step: finds the receivers and makes their envelopes.
 *
 * @param size      payload size in bytes
 * @param alignment payload alignment in bytes, a power of two up to 4096; 0 counts as 1
 * @param events    how many events, 1 to EVC_DISPATCH_MAX; they stay together and in order
 *
 * Threads: any; both steps on one thread. Progress: lock-free once warm: no lock, no allocation.
 * Ownership: `*out` owns the envelopes until commit or abandon. Errors: EVC_OUT_OF_MEMORY (nothing was
 * sent to anybody), EVC_INVALID_ARGUMENT. Nobody listening is EVC_OK with `receivers` 0.
 */
EVC_API EVC_MUST_USE enum evc_status evc_dispatch_begin(struct evc_router *router, uint64_t key,
							enum evc_lane lane, size_t size,
							size_t alignment, uint32_t events,
							struct evc_dispatch *out);

/**
 * The same for several events that lie side by side where they come from: if there is one receiver, which
 * takes batches (`evc_mailbox_options.batches`), they travel side by side as well, in memory that is to be
 * written at `out->array`, for some 2 ns each. Otherwise `out->array` is NULL, and all is as after
 * `evc_dispatch_begin`.
 *
 * Threads, progress, ownership, errors: as `evc_dispatch_begin`.
 */
EVC_API EVC_MUST_USE enum evc_status evc_dispatch_begin_batch(struct evc_router *router, uint64_t key,
							      enum evc_lane lane, size_t size,
							      size_t alignment, uint32_t events,
							      struct evc_dispatch *out);

/**
 * The envelope after `envelope` in a dispatch. Threads: the dispatching one. Progress: wait-free. Ownership: the
 * dispatch's. Errors: none.
 */
EVC_API struct evc_envelope *evc_dispatch_next(struct evc_envelope *envelope);

/**
 * Second step: posts. Envelopes whose receiver has closed meanwhile are freed.
 *
 * @return how many receivers accepted
 *
 * Threads: the one that began. Progress: lock-free; a system call for each receiver that sleeps.
 * Ownership: the receivers'. Errors: none.
 */
EVC_API uint32_t evc_dispatch_commit(struct evc_dispatch *dispatch);

/**
 * Instead of the second step: frees the envelopes, whose payloads were not written.
 *
 * Threads: the one that began. Progress: lock-free. Ownership: ends here. Errors: none.
 */
EVC_API void evc_dispatch_abandon(struct evc_dispatch *dispatch);

/**
 * The short way of `evc_dispatch_begin`, for one event that has one receiver and fits into an envelope: in half of
 * the time. NULL: take the long way, which also says what is wrong.
 *
 * @return where the payload is to be written, before `evc_dispatch_commit_one` is called with it
 *
 * Threads: any; both steps on one thread. Progress: lock-free once warm. Ownership: the caller owns the place until
 * the commit, which has to follow. Errors: none.
 */
EVC_API void *evc_dispatch_begin_one(struct evc_router *router, uint64_t key, enum evc_lane lane,
				     size_t size, size_t alignment);

/**
 * The second step of `evc_dispatch_begin_one`: posts.
 *
 * @return how many receivers accepted: 0, if the one has closed meanwhile, or 1
 *
 * Threads, progress, ownership, errors: as `evc_dispatch_commit`.
 */
EVC_API uint32_t evc_dispatch_commit_one(void *payload);

/**
 * Dispatches one event whose payload is copied as bytes.
 *
 * @param receivers receives how many accepted it; may be NULL
 *
 * Threads: any. Progress: lock-free once warm. Ownership: the caller keeps `payload`. Errors: as
 * `evc_dispatch_begin`.
 */
EVC_API EVC_MUST_USE enum evc_status evc_dispatch_bytes(struct evc_router *router, uint64_t key,
							enum evc_lane lane, const void *payload,
							size_t size, size_t alignment,
							uint32_t *receivers);

EVC_END_DECLS
#endif
