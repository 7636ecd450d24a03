/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file realtime.h
 * Posting from a thread that must not wait: an audio callback, a motor's control loop, an interrupt's bottom half.
 *
 * The functions named `try` make no system call, take no lock, call no allocator and no function of the user's but the
 * router's clock (`evc_router_set_clock`), and wait for nobody. What would need one of these is refused with a status, and
 * nothing is posted.
 *
 *     before:  evc_reserve(8192)                  on the thread itself, once
 *     then:    evc_try_dispatch(router, key, ...)
 *                        └──► a mailbox with `polled`, whose consumer looks by itself:
 *              evc_mailbox_pump once a frame, or evc_mailbox_run with EVC_WAIT_YIELD or EVC_WAIT_SPIN
 *
 * If a receiver asked for the time of dispatch, the router's clock is read. The one that it has by itself is a system call
 * on machines whose clock source user code cannot read.
 */
#ifndef EVENTCORE_REALTIME_H
#define EVENTCORE_REALTIME_H

#include "mailbox.h"
#include "router.h"

EVC_BEGIN_DECLS

/**
 * Sets envelopes aside for the calling thread, and prepares it for the functions below. Their memory has been written
 * to. An envelope that was handled can be used again; until then, and while it is in a consumer's cache of up to 1,024
 * slots, it counts against the reserve. So reserve what may be under way at one time, on all lanes together, plus 1,024
 * for each receiver. Other dispatches of the thread use it too, but only when they would have to allocate envelopes
 * otherwise.
 *
 * In a core that is compiled with AddressSanitizer no envelope is used a second time, so that its use after its end is
 * found: reserve there as many as are posted in all, or again between the posts.
 *
 * A trim (pool.h) leaves the envelopes of a thread alone that has no more than its reserve and the floor. A thread that
 * has more, after a burst of ordinary dispatches or from a thread that ended before, can be refused a post while a trim
 * looks through its free envelopes.
 *
 * @param envelopes how many are set aside after the call, at least; what a trim leaves to the thread grows as much.
 *         Of several calls the largest number counts.
 *
 * Threads: each that will post, before it must not wait; any number of times. The reserve ends with the thread, and with
 * its `evc_unregister_thread` or `evc_shutdown`.
 * Progress: as the allocator. Errors: EVC_OUT_OF_MEMORY; what was set aside so far stays.
 */
EVC_API EVC_MUST_USE enum evc_status evc_reserve(uint32_t envelopes);

/**
 * Dispatches one event whose payload can be copied as bytes, without waiting. All receivers get it, or none: if one
 * cannot take it so, the status says why.
 *
 * @param payload `size` bytes, at most EVC_INLINE_SIZE
 * @param receivers receives how many accepted; may be NULL. A receiver that closes at this moment gets nothing, and
 *         its `drop` is not called.
 *
 * Other parameters as `evc_dispatch_begin`. Threads: any. Order: as any other dispatch of the thread, but for a
 * consumer's own events (`evc_mailbox_enter`). Progress: lock-free; in proportion to the receivers. Ownership: the
 * caller keeps `payload`. Errors: EVC_WOULD_ALLOCATE if the thread has too few envelopes at hand;
 * EVC_UNSUPPORTED for a larger payload, or if a receiver is no mailbox with `polled`, or a latest-only subscription, a
 * shared mailbox or a balancer; EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_try_dispatch(struct evc_router *router, uint64_t key, enum evc_lane lane,
						      const void *payload, size_t size, size_t alignment,
						      uint32_t *receivers);

/**
 * Makes an envelope as `evc_envelope_create`, from those at hand, for `evc_try_post`. Its payload is at most
 * EVC_INLINE_SIZE bytes.
 *
 * Threads: any. Progress: lock-free. Ownership: as `evc_envelope_create`. Errors: EVC_WOULD_ALLOCATE,
 * EVC_UNSUPPORTED for a larger payload, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_try_envelope_create(struct evc_subscription *subscription, enum evc_lane lane,
							     size_t size, size_t alignment, struct evc_envelope **out);

/**
 * Posts a chain as `evc_mailbox_post`, without waiting.
 *
 * Threads: any that holds a reference of the mailbox. Progress: lock-free. Ownership: as `evc_mailbox_post`; what a
 * mailbox gets at the moment of its close is freed with it. A refused envelope stays the caller's, and
 * `evc_envelope_release`, which ends it, may make a system call: keep the envelope until the thread may wait, or leave
 * it to a thread that may. Errors: EVC_CLOSED; EVC_UNSUPPORTED for a mailbox without
 * `polled`; EVC_INVALID_ARGUMENT for an empty chain.
 */
EVC_API EVC_MUST_USE enum evc_status evc_try_post(struct evc_mailbox *mailbox, const struct evc_chain *chain);

EVC_END_DECLS
#endif
