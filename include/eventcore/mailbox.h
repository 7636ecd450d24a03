/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file mailbox.h
 * A mailbox is ten lanes with any number of producers and one consumer.
 *
 * The guarantees (D1 to D3): a take returns the newest envelope of the first stack lane that is not empty, or
 * else the oldest envelope of the first such queue lane. It takes every post into account that returned
 * before the take began. This is decided anew for each event, never for a batch.
 *
 * One consumer at a time: while a thread (thread.h), a run or a pump consumes a mailbox, every other one of these is
 * refused with EVC_NOT_PERMITTED, also inside a handler of the mailbox. It has touched nothing then, and what waits is the
 * first one's. Takes by hand and `evc_mailbox_enter` are not checked: who takes keeps all others away by itself.
 */
#ifndef EVENTCORE_MAILBOX_H
#define EVENTCORE_MAILBOX_H

#include "conflation.h"
#include "parker.h"
#include "sink.h"

EVC_BEGIN_DECLS

struct evc_mailbox;

/** What a consumer does while nothing waits. */
enum evc_wait_strategy {
	/**
	 * Sleeps, and takes no processor time then; after events in quick succession it first looks for up to
	 * 4 µs.
	 */
	EVC_WAIT_PARK = 0,
	/** Spins for `spin_ns`, then sleeps. */
	EVC_WAIT_SPIN_THEN_PARK,
	/** Yields the processor between two looks. */
	EVC_WAIT_YIELD,
	/** Spins: the shortest latency, at the price of one busy processor. */
	EVC_WAIT_SPIN
};

/** What a bounded mailbox does with an event that finds it full. The last place is exact for all producers. */
enum evc_overflow {
	/** The post returns EVC_FULL, and the event counts as refused. */
	EVC_OVERFLOW_REFUSE = 0,
	/** The post succeeds, and the event ends at once: it counts as overflowed. */
	EVC_OVERFLOW_DROP_NEWEST,
	/**
	 * The post succeeds, and an event that waits ends in its favour and counts as overflowed: the oldest of the
	 * least urgent lane. It displaces no event of a more urgent lane than its own; if only such events wait,
	 * it ends itself. Of a stack the newest event is displaced, below which a lock-free stack cannot be reached.
	 * The latest-only and conflated events of a lane, and those of unbounded subscriptions, come before its
	 * other events. A post and a take cost 45 to 60 ns more than with the other policies, since producers and
	 * consumer share the lanes. An event that is posted while the consumer looks for the next one may come
	 * after one of a less urgent lane that was posted later still.
	 */
	EVC_OVERFLOW_DROP_OLDEST,
	/**
	 * The post waits for places for `block_ns`, and is then refused; a close ends the wait. The events of a batch
	 * have that time together, those of a balancer at each receiver, and if one is refused, so are those behind
	 * it. The one policy under which a post waits. At most 16 places become free before the first waiting thread
	 * is woken; a consumer that takes by hand and stops before the mailbox is empty may leave it asleep until its
	 * next take. A post by the consumer itself, inside `evc_mailbox_enter` or a handler, is refused at once.
	 */
	EVC_OVERFLOW_BLOCK
};

/** Options of a mailbox. Zero is a good default for all but `size`. */
struct evc_mailbox_options {
	/** sizeof of this structure, which tells the library which members the caller knows. */
	size_t size;
	enum evc_wait_strategy strategy;
	/** With a capacity: what happens with an event that finds the mailbox full. */
	enum evc_overflow overflow;
	/**
	 * True if the consumer looks by itself whether something waits: nobody ever wakes it, so that a post makes no
	 * system call (realtime.h). For a mailbox that is taken from or pumped, or run with EVC_WAIT_YIELD or
	 * EVC_WAIT_SPIN; without a `wake`. Other waits are refused.
	 */
	bool polled;
	/**
	 * True if several events may arrive in one envelope (`evc_dispatch_begin_batch`), which is then
	 * delivered once for each of them. For a mailbox that is consumed by `evc_mailbox_run` or
	 * `evc_mailbox_pump` alone; `evc_mailbox_take` refuses it. Statistics and depths count events.
	 */
	bool batches;
	/** With EVC_WAIT_SPIN_THEN_PARK: how long to spin, in nanoseconds. */
	uint64_t spin_ns;
	/** The parker's system calls; NULL: the best that the system offers. Must outlive the mailbox. */
	const struct evc_parker_ops *parker;
	/**
	 * Called after an interrupt, between two envelopes, by run, pump and take; so also inside a handler that takes by
	 * hand. May be NULL.
	 */
	void (*control)(void *context);
	/**
	 * Called by `evc_mailbox_run` and `evc_mailbox_pump` when nothing is left, before they wait or
	 * return; may be NULL. Release here what handlers keep while events follow one another.
	 */
	void (*idle)(void *context);
	/**
	 * For a mailbox that is consumed by `evc_mailbox_pump` alone: asks for the next pump. A new mailbox
	 * is armed, and a pump that returns EVC_EMPTY arms it again. An armed mailbox that gets something to
	 * do (a post, an interrupt, a close) calls `wake` once and is then no longer armed.
	 *
	 * The call comes on the thread that posts, interrupts or closes. It must not wait and must not pump.
	 * Other producers rely on it: while the system keeps that thread from running right before the call,
	 * their events wait too. NULL: nothing is called, and the caller pumps whenever it likes.
	 */
	void (*wake)(void *context);
	/** Called once, when the mailbox is freed, after all other functions; may be NULL. Any thread. */
	void (*finalize)(void *context);
	/** Passed to the functions above. */
	void *context;
	/**
	 * How many events may wait, at most UINT64_MAX / 4; 0: any number. Events of latest-only, conflated and
	 * `unbounded` subscriptions do not count: of the first one waits at most, of the second one for each key, and
	 * of the third any number. An event that is being handled does not wait any more. Not together with `polled`.
	 */
	uint64_t capacity;
	/** With EVC_OVERFLOW_BLOCK: how long a post waits at most, in nanoseconds; EVC_FOREVER: no limit. */
	uint64_t block_ns;
	/**
	 * The clock of the deadlines of `evc_mailbox_pump_until`; NULL: evc_clock_now. It is read before each event, behind
	 * `control` and `idle`, and while a backlog is sorted, so that none begins when its time has come. Copied; its
	 * context must outlive the mailbox. Waits stay on the system's clock.
	 */
	const struct evc_clock *clock;
};

/** A reading of a mailbox's counters. */
struct evc_mailbox_statistics {
	/** Events that a consumer took. */
	uint64_t taken;
	/**
	 * Accepted events that were freed without being handled, because the mailbox closed; and events that a
	 * conflated subscription refused, because there was no memory for their key.
	 */
	uint64_t dropped;
	/** Accepted latest-only or conflated events that a newer one replaced before they were handled. */
	uint64_t superseded;
	/**
	 * Events that were accepted, and those that a conflated subscription refused: what is above, `overflowed` and
	 * `waiting` add up to it. Exact while nothing is posted or taken.
	 */
	uint64_t accepted;
	/** Events that wait: how far the consumer lags behind. */
	uint64_t waiting;
	/**
	 * Of a bounded mailbox: events that were refused because it was full. What finds no memory counts nowhere here: its
	 * dispatch returns EVC_OUT_OF_MEMORY, or counts it as refused in a `struct evc_dispatch_outcome`.
	 */
	uint64_t refused;
	/** Of a bounded mailbox: accepted events that its overflow policy dropped. */
	uint64_t overflowed;
	/** Of a bounded mailbox: the largest number of events that have waited at one time, of those that count. */
	uint64_t high_water;
};

/**
 * Makes a mailbox with one reference.
 *
 * @param options NULL: the defaults
 * @param out receives the mailbox
 *
 * Threads: any. Progress: as the allocator. Ownership: the caller holds the reference and gives it up with
 * `evc_mailbox_release`. Errors: EVC_OUT_OF_MEMORY, EVC_INVALID_ARGUMENT.
 */
EVC_API EVC_MUST_USE enum evc_status evc_mailbox_create(const struct evc_mailbox_options *options,
							struct evc_mailbox **out);

/** Adds a reference. Threads: any. Progress: wait-free. */
EVC_API void evc_mailbox_retain(struct evc_mailbox *mailbox);

/**
 * Gives up a reference. The last one frees the envelopes that still wait, the subscriptions, and the mailbox.
 *
 * Threads: any. Progress: wait-free, except for the last reference. Ownership: ends the caller's.
 */
EVC_API void evc_mailbox_release(struct evc_mailbox *mailbox);

/** Returns the mailbox as a sink. Threads: any. Progress: wait-free. Ownership: part of the mailbox. */
EVC_API struct evc_sink *evc_mailbox_sink(struct evc_mailbox *mailbox);

/**
 * Adds a subscription, which says what happens with envelopes of one kind. Make one for each key and reuse
 * it; it lives as long as the mailbox.
 *
 * @param options `deliver` is required
 * @param out receives the subscription
 *
 * Threads: any. Progress: as the allocator. Ownership: the mailbox owns it and calls
 * `finalize` when it ends. Errors: EVC_OUT_OF_MEMORY; EVC_INVALID_ARGUMENT without `deliver`.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_mailbox_add_subscription(struct evc_mailbox *mailbox,
			     const struct evc_subscription_options *options,
			     struct evc_subscription **out);

/**
 * Adds a latest-only subscription: at most one of its envelopes waits. A newer envelope replaces the one that
 * waits, whichever lanes they are on; the older one ends and counts as superseded. Memory therefore does not
 * grow, however far the consumer falls behind. The waiting event is delivered in the lane of the newest
 * envelope, at the position of the oldest superseded event of that lane.
 *
 * Subscribe it with a router, or add it to a balancer: `evc_mailbox_post` would treat its envelopes as ordinary ones
 * and keep them all. The payload of a superseded envelope is ended by `drop` on the thread
 * that posts the newer one.
 *
 * @param options `deliver` is required
 * @param out receives the subscription
 *
 * Threads: any. Progress: blocking (a mutex, and the allocator). Ownership: the caller holds a reference,
 * which keeps the mailbox alive, and gives it up with `evc_latest_subscription_release`. `finalize` is called
 * when no reference, no route and no envelope is left. Errors: EVC_OUT_OF_MEMORY; EVC_INVALID_ARGUMENT
 * without `deliver`.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_mailbox_add_latest_subscription(struct evc_mailbox *mailbox,
				    const struct evc_subscription_options *options,
				    struct evc_subscription **out);

/**
 * Adds a conflated subscription: of its envelopes with one key at most one waits. It is as a latest-only one for
 * each key: the newest envelope replaces the one of its key, at the position of the oldest superseded one of that
 * lane, and events of different keys keep their order.
 *
 * A key takes 160 to 200 bytes from its first event until the subscription ends, and 128 while an event of it
 * waits. An event for whose new key there is no memory is refused, and counts as dropped; a chain with such an
 * event is refused as a whole.
 *
 * @param options `deliver` is required
 * @param conflation which events have the same key; it is copied
 * @param out receives the subscription
 *
 * Threads: any. Progress: blocking (a mutex, and the allocator). Ownership: as
 * `evc_mailbox_add_latest_subscription`, also for `evc_latest_subscription_release` and
 * `evc_latest_subscription_superseded`. Errors: EVC_OUT_OF_MEMORY; EVC_INVALID_ARGUMENT without `deliver` or
 * `number`, or with some but not all of the other three functions.
 */
EVC_API EVC_MUST_USE enum evc_status
evc_mailbox_add_conflated_subscription(struct evc_mailbox *mailbox,
				       const struct evc_subscription_options *options,
				       const struct evc_conflation *conflation,
				       struct evc_subscription **out);

/**
 * Gives up the reference of a latest-only or conflated subscription, of a mailbox or a shared mailbox. What waits is still
 * delivered: unsubscribe it from its routers first.
 *
 * Threads: any. Progress: wait-free, except for the last reference. Ownership: ends the caller's.
 */
EVC_API void evc_latest_subscription_release(struct evc_subscription *subscription);

/**
 * Returns how many events of a latest-only or conflated subscription, of a mailbox or a shared mailbox, were
 * superseded. Exact while nothing is dispatched or taken, and never too high. Threads: any that holds a reference.
 * Progress: O(keys).
 */
EVC_API uint64_t evc_latest_subscription_superseded(struct evc_subscription *subscription);

/**
 * Posts a chain. Its envelopes become visible to the consumer in the order of the chain; within a lane no
 * other post comes between them. If the chain has several lanes, they become visible lane by lane, the most
 * urgent first. In a bounded mailbox this holds for each part of the chain that finds its places at once: other posts may
 * come between two parts. With EVC_OVERFLOW_DROP_OLDEST each envelope is a part, also if the mailbox is never full.
 *
 * Threads: any. Progress: lock-free: it is repeated if another post on the same lane, or the consumer's drain of that
 * lane, has come first. If the consumer sleeps, one system call or one call of `wake`. With EVC_OVERFLOW_BLOCK: blocking
 * while the mailbox is full. Never allocates, but with EVC_OVERFLOW_DROP_OLDEST: at a thread's first post, and 4 KiB for
 * some 500 posts to a queue lane unless a reclaim (reclaim.h) has freed as much; a later event of a chain that finds no
 * memory ends there, and counts as overflowed. Ownership: with EVC_OK the mailbox owns the chain; otherwise the caller
 * still does.
 * A bounded mailbox that has room for the first envelopes only accepts these; from the first refusal on it ends
 * the rest, counted as refused. Errors: EVC_CLOSED; EVC_FULL, and with EVC_OVERFLOW_DROP_OLDEST EVC_OUT_OF_MEMORY, if
 * nothing was accepted; EVC_INVALID_ARGUMENT for an empty chain, and in a bounded mailbox for one of which some
 * subscriptions are `unbounded` and others are not.
 */
EVC_API EVC_MUST_USE enum evc_status evc_mailbox_post(struct evc_mailbox *mailbox,
						      const struct evc_chain *chain);

/**
 * Takes the envelope that is next by D1 to D3, without waiting. After an interrupt it calls `control` first.
 *
 * @param out receives the envelope
 *
 * Threads: the one consumer (one thread at a time, which is not checked). Progress: lock-free; waits for no
 * producer. While the consumer drains a backlog into its lanes, an urgent post waits until at most 1,024 envelopes
 * have been sorted, and one to the lane that is drained until all of them are. Ownership: the caller owns `*out`
 * and ends it with `evc_mailbox_recycle` or `evc_envelope_release`, before it gives up the last reference of the mailbox.
 * Errors: EVC_EMPTY, EVC_CLOSED; EVC_INVALID_ARGUMENT for a mailbox with `batches`.
 */
EVC_API EVC_MUST_USE enum evc_status evc_mailbox_take(struct evc_mailbox *mailbox,
						      struct evc_envelope **out);

/**
 * Ends an envelope that `evc_mailbox_take` returned, and returns its slot through the mailbox's cache of free
 * slots, which the first call makes (a mailbox that is `polled` has it from the beginning).
 *
 * @param payload_moved as for `evc_envelope_release`
 *
 * Threads: the one consumer. Progress: lock-free, after the first call. Ownership: ends here.
 */
EVC_API void evc_mailbox_recycle(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
				 bool payload_moved);

/**
 * Waits until an envelope waits, the mailbox closes, it is interrupted, or the time limit has passed.
 *
 * @param timeout nanoseconds, or EVC_FOREVER
 *
 * Threads: the one consumer. Progress: blocking. Errors: EVC_TIMED_OUT; EVC_INVALID_ARGUMENT for a mailbox
 * with a `wake`, or with `polled` and a strategy that sleeps.
 */
EVC_API enum evc_status evc_mailbox_wait(struct evc_mailbox *mailbox, uint64_t timeout);

/**
 * Delivers envelopes until the mailbox closes: the loop of an event thread.
 *
 * @return EVC_CLOSED when everything that was waiting has been handled or dropped
 *
 * Threads: the one consumer. Progress: blocking. Errors: EVC_INVALID_ARGUMENT for a mailbox with a `wake`,
 * which is to be pumped, or with `polled` and a strategy that sleeps; EVC_NOT_PERMITTED if the mailbox has a consumer.
 */
EVC_API enum evc_status evc_mailbox_run(struct evc_mailbox *mailbox);

/**
 * Delivers up to `limit` events on the calling thread and returns: for a consumer without a thread of its
 * own, which is driven by jobs on a queue, an executor, or the caller's own loop.
 *
 * @param limit the maximal number of events; at least 1
 * @return EVC_OK if the limit was reached: more may wait, pump again. EVC_EMPTY if nothing is left: the
 *         mailbox is armed (if it has a `wake`), and the next pump belongs to whoever `wake` asks. EVC_CLOSED
 *         as `evc_mailbox_run`.
 *
 * Threads: any, one at a time, and not inside a handler of this mailbox; one pump must happen before the next
 * begins. After EVC_EMPTY, a pump that `wake` caused on another thread may begin before this call returns.
 * Progress: lock-free; the first call with a limit of 1 allocates, unless the mailbox is `polled`. Ownership: the
 * caller's reference must outlive the call. Errors: EVC_INVALID_ARGUMENT; EVC_NOT_PERMITTED if the mailbox has a
 * consumer.
 */
EVC_API EVC_MUST_USE enum evc_status evc_mailbox_pump(struct evc_mailbox *mailbox, uint64_t limit);

/**
 * Delivers as `evc_mailbox_pump`, but begins no event after a deadline: for a frame that has a budget. What is
 * left keeps its order.
 *
 * @param limit the maximal number of events; at least 1
 * @param deadline the time of `evc_clock_now`, or of the mailbox's `clock`, at which to stop; EVC_FOREVER: none
 * @param handled receives how many events were delivered; may be NULL
 * @return EVC_TIMED_OUT if the deadline was reached: more may wait, pump again. If it had passed before the
 *         call, nothing is delivered. Otherwise as `evc_mailbox_pump`.
 *
 * The core's clock is read between two events: after each one while handlers take more than a microsecond, and after up
 * to 128 while they are short and the deadline is more than a millisecond away (32 when a quarter of one is left),
 * which costs half a nanosecond to one an event, and 4 ns if there are only 50. The stretches between two looks begin
 * with 1, 2, 4, 8 ... events, anew at the first event of each subscription, and of each one after a stretch that took 8
 * us. So the call ends one handler after the deadline, give or take two microseconds, as long as handlers keep their
 * pace or take longer than 8 us each time. If those that were short turn slow all at once, as many events as were
 * delivered before may begin too late, but at most 31, or 127 if the deadline was more than a quarter of a millisecond
 * away.
 *
 * A backlog is sorted before its first event begins: 4 to 12 ns an event, and the clock is read after each 1,024. So a
 * pump may return EVC_TIMED_OUT with nothing handled; the next one goes on sorting where it stopped, but for a stack to
 * which more was posted: while more comes between two pumps than one of them can sort, none of it begins. With
 * EVC_OVERFLOW_DROP_OLDEST the backlog is sorted at once, whatever the clock says.
 *
 * Threads, Progress, Ownership, Errors: as `evc_mailbox_pump`.
 */
EVC_API EVC_MUST_USE enum evc_status evc_mailbox_pump_until(struct evc_mailbox *mailbox, uint64_t limit,
							    uint64_t deadline, uint64_t *handled);

/**
 * Says that the calling thread is the one consumer until `evc_mailbox_leave`. What it posts to this
 * mailbox meanwhile goes straight into the lane, while the events of the lane come from the consumer alone:
 * about six tenths of what a post and a take cost otherwise. Runs and pumps say it themselves for what handlers
 * post; say it for a loop that posts between its pumps, once for all of them, or around its posts.
 *
 * @param mailbox which one; not NULL
 * @return what to pass to `evc_mailbox_leave`: the mailbox that the thread had entered before
 *
 * Threads: the one consumer; while it has entered, no other thread pumps. It leaves before it gives up its
 * last reference, and before the next consumer begins. Progress: wait-free. Ownership: none.
 */
EVC_API struct evc_mailbox *evc_mailbox_enter(struct evc_mailbox *mailbox);

/** Ends what `evc_mailbox_enter` began. Threads: the one that entered, last entered first. Progress: wait-free. */
EVC_API void evc_mailbox_leave(struct evc_mailbox *before);

/**
 * For the Swift module alone, whose loops write their events without a call: where the state lies that
 * `evc_mailbox_enter` is about (memory/consumed.h). Threads: any. Progress: wait-free. Ownership: the mailbox's.
 */
EVC_API void *evc_mailbox_consumed(struct evc_mailbox *mailbox);

/**
 * Makes the consumer call `options.control` between two envelopes; a sleeping consumer does so at once.
 *
 * Threads: any. Progress: wait-free, but for one system call or one call of `wake` if the consumer sleeps.
 */
EVC_API void evc_mailbox_interrupt(struct evc_mailbox *mailbox);

/**
 * Closes the mailbox: later posts return EVC_CLOSED. The consumer drops what waits and counts it; without a
 * consumer the last release does. A running handler is not disturbed.
 *
 * Threads: any, also the consumer. Progress: as evc_mailbox_interrupt, and one system call if the mailbox is bounded.
 */
EVC_API void evc_mailbox_close(struct evc_mailbox *mailbox);

/**
 * Closes the mailbox for posts, and lets the consumer handle what waits before it ends. A later
 * `evc_mailbox_close` drops what is left.
 *
 * Threads: any, also the consumer. Progress: as evc_mailbox_close.
 */
EVC_API void evc_mailbox_close_when_empty(struct evc_mailbox *mailbox);

/**
 * Reads how many events wait in each lane. Exact while nothing is posted or taken; otherwise a momentary
 * figure, which may be too low by what is taken or posted during the call. An event of a latest-only
 * subscription counts in the lane of the newest envelope; while others post to that subscription, the figure
 * may also be too high.
 *
 * @param depths receives one figure for each lane
 *
 * Threads: any. Progress: wait-free as long as the mailbox had no latest-only subscription; then blocking for a moment
 * (a mutex), O(latest-only and conflated subscriptions).
 */
EVC_API void evc_mailbox_depths(struct evc_mailbox *mailbox, uint64_t depths[EVC_LANE_COUNT]);

/** Reads the counters. Threads: any. Progress: as `evc_mailbox_depths`, and O(keys of conflated subscriptions). */
EVC_API void evc_mailbox_read_statistics(struct evc_mailbox *mailbox,
					 struct evc_mailbox_statistics *out);

EVC_END_DECLS
#endif
