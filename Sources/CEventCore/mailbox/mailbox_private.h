/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A mailbox: for each lane an inbox that producers push to, and a list that only the consumer touches.
 *
 * An inbox is a stack (R. K. Treiber, IBM RJ 5118, 1986), linked through the envelopes: a post is one
 * compare-and-swap of the lane's head. A post has no intermediate state that others could wait for: a
 * producer that is preempted has posted, or has not. The consumer drains an inbox as a whole, by an exchange. What
 * comes to a queue it reverses, which gives the order of the compare-and-swaps: one order for all producers (D2).
 * What comes to a stack it puts on top of the lane's list (D3).
 *
 * A head counts the events posted since the last drain, in the six bits that an envelope's alignment leaves
 * free. A producer whose addition overflows them adds the excess to `posted`. The depth of a lane is
 * therefore read without following the list.
 *
 * How a take keeps D1 without looking at ten inboxes:
 *
 * The consumer knows that the lanes before `relied` are empty unless the alarm is up; it has published these
 * lanes in `attention`. It looks at the lanes from `relied` up to the one that it takes from before each
 * take.
 *
 *   producer                                    consumer
 *   P1 CAS the lane's head         seq_cst      C1 add lanes to attention         seq_cst RMW
 *   P2 load attention              seq_cst      C2 look at their heads            seq_cst loads
 *   P3 is the lane in it? load     seq_cst      C3 load signal before a take      relaxed
 *      signal; raise ALARM                      C4 if up: clear it                seq_cst RMW
 *      unless it is up             relaxed RMW  C5 look at the heads of the lanes before `relied`, which
 *                                                  becomes the first that is not empty      seq_cst loads
 *                                               C6 look at the heads from `relied` on: up to the first
 *                                                  lane with a list, and at its own if that is a stack,
 *                                                  unless it was drained since the take began, and no
 *                                                  other one, nor C4, came after that      relaxed
 *                                               C7 take from that list
 * An envelope that C7 takes was in the consumer's view before its C3 and C6: after a lane is drained, C3 and C6
 * are repeated.
 *
 * Claim: no post that happened before the take lies on an earlier lane than the one that is taken from, and
 * on a stack none is newer than what is taken.
 *
 * Let p be such a post. It happened before the taken envelope came into the consumer's view, or else before
 * C3. What C3 and C6 themselves read adds nothing to that, since both are relaxed.
 * - p's lane is `relied` or a later one: C6 sees p's P1 by coherence, unless the consumer has taken p
 *   already.
 * - p's lane is before `relied`. Let C1 be the one that published the lane last. If p's P2 came before it in
 *   the single order of seq_cst operations, so did P1; then the look C2 or a later C5 saw p, and `relied` did
 *   not move beyond the lane. Otherwise P2 saw the lane in `attention`. Then P3 raised the alarm before the
 *   post returned, or found it up. C3 read it down, so that a C4 had cleared it since. P3's load read an older value
 *   than that C4, and so precedes it in the single order (of C23: P0668), as P1 precedes P3's load. The C5 that follows
 *   C4 saw p. Between the two no code of the user's runs, which might take: `control` is called before C4.
 * - p is newer on the same stack: the last drain or C6 sees p's P1 by coherence. If that was a drain since the take
 *   began, what the consumer has learned by it is older than p: whoever knew of p, and posted to the same stack, did
 *   so after p. So a consumer takes also from a stack to which others post without a pause (a worker of a shared
 *   mailbox looks once more).
 * The order of posts on one lane is that of their P1; a post that returned before another began comes before
 * it. Tests/Models/mailbox.pml checks this over all interleavings of small cases.
 *
 * How long an urgent post may wait: until the running handler ends, and while the consumer sorts what it has
 * drained. The consumer drains only lanes that it is about to take from, and while it sorts it looks at the
 * signal every EVC_SORT_AT_ONCE envelopes: more urgent events are taken first, and sorting goes on later. The events of
 * the lane itself, also of a stack, wait until all that was drained is sorted: 12 ms for a million.
 *
 * Sleeping uses the same two steps: set SLEEP (C1), look (C2); a producer that sees SLEEP in P2 wakes the
 * consumer. A mailbox that is pumped is armed by the same bit: mailbox_pump.c.
 *
 * Closing: CLOSED in `attention` refuses later posts. When the consumer ends, it sets ENDED, and drains each inbox by
 * one RMW that releases. A post that began before CLOSED comes before that RMW in the order of its head's changes, so
 * that the drain finds it; or after it, so that P1 acquires ENDED, which P2 then sees, and drains all inboxes itself.
 * Each envelope is given by one RMW to one of the two.
 *
 * Progress: a post is lock-free: its compare-and-swap is repeated if another post on the same lane, or the consumer's
 * drain of that lane, has come first.
 *
 * One file, though long: the proof is read beside the fields and steps that it is about.
 */
#ifndef EVC_MAILBOX_PRIVATE_H
#define EVC_MAILBOX_PRIVATE_H

#include "eventcore/mailbox.h"
#include "memory/consumed.h"
#include "mailbox/bound.h"
#include "mailbox/stretch.h"
#include "memory/envelope.h"
#include "platform/parker_private.h"

/* Bits of `attention`, above one bit for each lane. */
#define EVC_ATTENTION_SLEEP (1u << 16)
#define EVC_ATTENTION_CLOSED (1u << 17)
#define EVC_ATTENTION_ENDED (1u << 18)

/* Bits of `signal`. ALARM and CONTROL are cleared by the consumer; the others stay. */
#define EVC_SIGNAL_ALARM 1u
#define EVC_SIGNAL_CONTROL 2u
#define EVC_SIGNAL_DRAIN 4u
#define EVC_SIGNAL_CLOSE 8u
/* Producers wait for a place (bound.h). Cleared by the consumer when it wakes them. */
#define EVC_SIGNAL_BLOCKED 16u

/* The bits of the queues among those of the lanes. */
#define EVC_QUEUES (~((1u << EVC_LANE_FIRST_QUEUE) - 1))
/* After this many successive takes from one lane the consumer relies on the alarm for the lanes before it. */
#define EVC_RUN 16u
/* How many envelopes are sorted between two looks at the signal: some four microseconds. The explorer takes two. */
#ifndef EVC_SORT_AT_ONCE
#define EVC_SORT_AT_ONCE 1024u
#endif
/* Iterations of a spin loop between two looks that are not urgent: about half a microsecond. */
#define EVC_PAUSES 16u

/* Lanes that are likely to be posted to together share a line: the stacks, and the queues. */
struct evc_inbox {
	_Alignas(EVC_CACHE_LINE) _Atomic uintptr_t heads[EVC_LANE_FIRST_QUEUE];
	/* Events in units of 64; the remainder since the last drain is counted by the head. */
	_Atomic uint32_t posted[EVC_LANE_FIRST_QUEUE];
};

/* What was drained from a lane and is not taken yet. */
struct evc_lane_list {
	/* In the order of their takes. While a queue's `rest` is being sorted, the part that is sorted. */
	struct evc_envelope *first;
	/*
	 * Of a queue the newest, while there are any; a batch that is put back alone still is. Of a stack that is being
	 * sorted the oldest of `rest` that was found so far.
	 */
	struct evc_envelope *last;
	/* What is being sorted, newest first: of a queue the part that is not sorted yet, of a stack all of it. */
	struct evc_envelope *rest;
	/* Relaxed, read by any thread: the head's counts at each drain, and what the consumer has posted itself. */
	_Atomic uint64_t drained;
};

struct evc_mailbox {
	struct evc_sink sink;
	/* Of a bounded mailbox; NULL for others. Constant. */
	struct evc_bound *bound;
	/*
	 * The consumer writes lanes and SLEEP (whoever wakes a pumped mailbox clears it), the closer CLOSED.
	 * Producers read it after every post: only fields that seldom change share its line.
	 */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t attention;
	_Atomic uint32_t references;
	/* Those of evc_mailbox_options that are needed later. Constant. */
	struct {
		enum evc_wait_strategy strategy;
		bool polled;
		uint64_t spin_ns;
		void (*control)(void *context);
		void (*idle)(void *context);
		void (*wake)(void *context);
		void (*finalize)(void *context);
		void *context;
	} options;

	/* Stacks, queues. Written by producers at each post, and by the consumer that takes. */
	struct evc_inbox inboxes[2];

	/* Written by producers that raise the alarm, by interrupts and closes; read before every take. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t signal;
	/* Both are seldom written while the consumer takes. */
	struct evc_parker parker;
	struct evc_subscription_list subscriptions;

	/* From here on the consumer's, unless stated otherwise. */
	_Alignas(EVC_CACHE_LINE) struct evc_lane_list lists[EVC_LANE_COUNT];
	/* One bit for each lane whose list can be taken from or is not empty, and for each that is being sorted. */
	uint32_t occupied;
	uint32_t sorting;
	/* The lanes before it are empty unless the alarm is up. None of them is in the two masks above. */
	uint32_t relied;
	/* The lane of the last takes that looked at the inboxes, and how many they were in a row. */
	uint32_t run_lane;
	uint32_t run_length;
	/* Events wait in the lanes of the bound. Constant. */
	bool displaces;
	/* The option: nothing is taken by hand, even where a bound has the events come one by one. Constant. */
	bool batches;
	/* evc_mailbox_run: whether, and how many times, to pause before a drain that finds little. */
	bool paces;
	/* Whether a run, a pump or a thread is the consumer. Exchanged by whoever wants to be it: any thread. */
	_Atomic bool is_consumed;
	uint32_t pace;
	/* EVC_WAIT_PARK: how many more fruitless spins are allowed before a sleep. */
	uint32_t grace_left;
	/* The batch that the consumer's own posts join (mailbox_own.h). */
	struct evc_consumed own;
	/* From here on relaxed, read by any thread: statistics. Dropped events; tokens that stood for no event. */
	_Atomic uint64_t dropped;
	_Atomic uint64_t empty;
	/* Events that left each lane. */
	_Atomic uint64_t left[EVC_LANE_COUNT];
	/*
	 * The consumer's again: where slots are collected before they go back. `returns` lies on the stack of
	 * evc_mailbox_run or a pump; a consumer that takes by hand, or pumps one event at a time, gets `by_hand` with its
	 * first one. NULL: none.
	 */
	struct evc_return_cache *returns, *by_hand;
	/* The option, for looks between stretches; without `now`: the core's. Constant. */
	struct evc_clock clock;
	/* The pump's; NULL outside of one, and in a take by hand, which has no deadline. */
	struct evc_stretch *timed;
};

/* There may be many of them: with what the allocator adds an idle one takes a KiB. */
static_assert(sizeof(struct evc_mailbox) <= 960, "a mailbox has 15 lines");

static inline _Atomic uintptr_t *evc_mailbox_head(struct evc_mailbox *mailbox, unsigned lane)
{
	return lane < EVC_LANE_FIRST_QUEUE
		       ? &mailbox->inboxes[0].heads[lane]
		       : &mailbox->inboxes[1].heads[lane - EVC_LANE_FIRST_QUEUE];
}

static inline struct evc_envelope *evc_head_envelope(uintptr_t head)
{
	return (struct evc_envelope *)(head & ~EVC_HEAD_COUNT);
}

/* The mailbox of a sink that is its own. */
static inline struct evc_mailbox *evc_mailbox_of(struct evc_sink *sink)
{
	return evc_container_of(sink, struct evc_mailbox, sink);
}

/* True if the mailbox refuses posts. Relaxed: a post that misses a simultaneous close counts as earlier. */
static inline bool evc_mailbox_is_closed(struct evc_mailbox *mailbox)
{
	return atomic_load_explicit(&mailbox->attention, memory_order_relaxed) & EVC_ATTENTION_CLOSED;
}

/* True if nothing is in this lane's inbox. */
static inline bool evc_mailbox_inbox_is_empty(struct evc_mailbox *mailbox, unsigned lane, memory_order order)
{
	return evc_head_envelope(atomic_load_explicit(evc_mailbox_head(mailbox, lane), order)) == NULL;
}

/* True if the first envelope of this lane's list is the lane's next one. Consumer only. */
static inline bool evc_mailbox_first_is_next(struct evc_mailbox *mailbox, unsigned lane)
{
	/* Relaxed: what this thread knows of is seen by coherence. What comes to a queue is never the next. */
	return lane >= EVC_LANE_FIRST_QUEUE || evc_mailbox_inbox_is_empty(mailbox, lane, memory_order_relaxed);
}

/* mailbox_post.c: the sink's functions. */
enum evc_status evc_mailbox_accept(struct evc_sink *sink, const struct evc_chain *chain);
enum evc_status evc_mailbox_accept_one(struct evc_sink *sink, struct evc_envelope *envelope);
/* mailbox_post.c: of a mailbox with `polled`. */
enum evc_status evc_mailbox_try_accept(struct evc_sink *sink, const struct evc_chain *chain);
/* mailbox_post.c: posts a chain of several envelopes: one `push` for each lane, the most urgent lane first. */
typedef void evc_mailbox_push_part(struct evc_mailbox *mailbox, unsigned lane, struct evc_envelope *newest,
				   struct evc_envelope *oldest, uint32_t events);
void evc_mailbox_push_chain(struct evc_mailbox *mailbox, const struct evc_chain *chain, evc_mailbox_push_part *push);
/* mailbox_post.c: the rare part of a post: alarm, wake-up, ended mailbox. */
void evc_mailbox_attend_to_post(struct evc_mailbox *mailbox, uint32_t attention, uint32_t lanes);
/* mailbox_post.c: adds what overflowed the head's count. */
void evc_mailbox_count_posted(struct evc_mailbox *mailbox, unsigned lane, uintptr_t events);

/* P1 for envelopes of one lane, linked from the newest to the oldest, which hold `events` events. */
static inline void evc_mailbox_put(struct evc_mailbox *mailbox, unsigned lane,
				   struct evc_envelope *newest, struct evc_envelope *oldest,
				   uint32_t events)
{
	_Atomic uintptr_t *head = evc_mailbox_head(mailbox, lane);
	/* Relaxed: only the envelope's address is used. */
	uintptr_t old = atomic_load_explicit(head, memory_order_relaxed), count;

	for (;;) {
		count = (old & EVC_HEAD_COUNT) + events;
		evc_slot_set_next(oldest, evc_head_envelope(old));
		/* The moment of the post. Releases the envelopes to C7. */
		if (evc_likely(atomic_compare_exchange_strong_explicit(
			    head, &old, (uintptr_t)newest | (count & EVC_HEAD_COUNT),
			    memory_order_seq_cst, memory_order_relaxed)))
			break;
		/*
		 * Another processor has the line and goes on posting: to take it back at once would mean
		 * losing it at once. Two producers: 22 instead of 31 ns an event, four 28 instead of 32.
		 */
		for (unsigned i = 0; i < EVC_PAUSES; i++)
			evc_pause();
		old = atomic_load_explicit(head, memory_order_relaxed);
	}
	if (evc_unlikely(count > EVC_HEAD_COUNT))
		evc_mailbox_count_posted(mailbox, lane, count);
}

/* P2 and P3. The envelopes may be gone, but a posting thread holds a reference of the mailbox. */
static inline void evc_mailbox_tell(struct evc_mailbox *mailbox, unsigned lane)
{
	uint32_t attention = atomic_load_explicit(&mailbox->attention, memory_order_seq_cst);

	if (evc_unlikely(attention & (1u << lane | EVC_ATTENTION_SLEEP | EVC_ATTENTION_ENDED)))
		evc_mailbox_attend_to_post(mailbox, attention, 1u << lane);
}

/* A post. It is accepted even if the mailbox has closed, as if it had come before the close. */
static inline void evc_mailbox_push(struct evc_mailbox *mailbox, unsigned lane,
				    struct evc_envelope *newest, struct evc_envelope *oldest,
				    uint32_t events)
{
	evc_mailbox_put(mailbox, lane, newest, oldest, events);
	evc_mailbox_tell(mailbox, lane);
}

/* Makes the caller the consumer. False if there is one. Once for each run or pump, since it is an exchange. */
static inline bool evc_mailbox_claim(struct evc_mailbox *mailbox)
{
	/* Acquire, pairs with evc_mailbox_give_back: what the consumer before has done. */
	return !atomic_exchange_explicit(&mailbox->is_consumed, true, memory_order_acquire);
}

/* Ends what evc_mailbox_claim began. */
static inline void evc_mailbox_give_back(struct evc_mailbox *mailbox)
{
	/* Release, pairs with evc_mailbox_claim. */
	atomic_store_explicit(&mailbox->is_consumed, false, memory_order_release);
}

/* mailbox_pump.c: evc_mailbox_run, of a mailbox that the caller has claimed. Gives it back. */
enum evc_status evc_mailbox_run_claimed(struct evc_mailbox *mailbox);

/* mailbox_take.c: the slow path of evc_mailbox_next. */
struct evc_envelope *evc_mailbox_next_by_look(struct evc_mailbox *mailbox);
/* mailbox_take.c: clears CONTROL and makes the `control` call, then clears ALARM (C4); returns the signal's bits. */
uint32_t evc_mailbox_attend(struct evc_mailbox *mailbox);
/* mailbox_take.c: as evc_mailbox_next, for the case that the take found a token. */
struct evc_envelope *evc_mailbox_next_by_token(struct evc_mailbox *mailbox,
					       struct evc_envelope *token);
/*
 * mailbox_take.c, for a consumer that relies on no alarm (C6, C7): the first lane that is not empty, or
 * EVC_LANE_COUNT; and its next envelope, NULL if a newer one came to its stack: look again.
 */
unsigned evc_mailbox_first(struct evc_mailbox *mailbox);
struct evc_envelope *evc_mailbox_take_first(struct evc_mailbox *mailbox, unsigned lane);
/* mailbox_bounded.c: a mailbox of one consumer, as what stands in front of it sees it. */
extern const struct evc_mailbox_kind evc_mailbox_kind_private;
/* mailbox.c: exchanges a taken token for its event; NULL if it stands for none. */
struct evc_envelope *evc_mailbox_take_latest(struct evc_mailbox *mailbox, struct evc_envelope *token);
/* mailbox_close.c: ends the consumer. False if it has to handle more envelopes first. */
bool evc_mailbox_end(struct evc_mailbox *mailbox);
/* mailbox_close.c: drops everything in the inboxes, after the consumer's end. Any thread. */
void evc_mailbox_drop_posted(struct evc_mailbox *mailbox, struct evc_return_cache *cache);
/* mailbox_pump.c: SLEEP was seen in `attention`. */
void evc_mailbox_wake_consumer(struct evc_mailbox *mailbox);
/* mailbox_bounded.c: opens the bound of a new mailbox, if these have a capacity. False = out of memory. */
bool evc_mailbox_bound_open(struct evc_mailbox *mailbox, const struct evc_mailbox_options *options);
/* The sink for a chain that is posted to a bounded mailbox by hand. NULL: a part of it is unbounded. */
struct evc_sink *evc_mailbox_way_in(struct evc_mailbox *mailbox, const struct evc_chain *chain);
/* mailbox_bounded.c, of a mailbox that displaces: takes the next event before lane `limit`, and counts it. */
struct evc_envelope *evc_mailbox_take_displaceable(struct evc_mailbox *mailbox, unsigned limit);

/* mailbox.c: `by_hand`, which is made if there is none. NULL = out of memory: each slot then goes back by itself. */
struct evc_return_cache *evc_mailbox_by_hand(struct evc_mailbox *mailbox);

/* mailbox_batch.c: delivers a batch from its first event on, as far as the stretches go; one event at least. */
void evc_mailbox_deliver_batch(struct evc_mailbox *mailbox, struct evc_envelope *envelope,
			       struct evc_stretch *stretch);

/* How a waiting consumer looks for news, and what it does around a sleep. All but `has_news` may be NULL. */
struct evc_waiter {
	void *context;
	/* The look of the sleep protocol (C2): sequentially consistent. */
	bool (*has_news)(void *context);
	void (*begin_spin)(void *context);
	void (*prepare_wait)(void *context);
	void (*finish_wait)(void *context);
};

/* mailbox_wait.c: waits by the mailbox's strategy. False if the time limit has passed. The consumer. */
bool evc_wait(struct evc_mailbox *mailbox, const struct evc_waiter *waiter, uint64_t timeout);

/* Before a look at the signal on which producers rely that wait for a place: what was taken (bound.h, T2). */
static inline void evc_mailbox_order_taken(struct evc_mailbox *mailbox)
{
	if (evc_unlikely(mailbox->bound != NULL))
		atomic_thread_fence(memory_order_seq_cst);
}

/* True if an inbox is not empty. Any thread. */
static inline bool evc_mailbox_has_posts(struct evc_mailbox *mailbox, memory_order order)
{
	uintptr_t any = 0;

	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		any |= atomic_load_explicit(evc_mailbox_head(mailbox, lane), order);
	/* C2 follows the fence of evc_mailbox_order_taken, so that relaxed looks suffice. */
	if (evc_unlikely(mailbox->displaces) && evc_shared_lanes_have_some(mailbox->bound->lanes))
		return true;
	return evc_head_envelope(any) != NULL;
}

/* True if an envelope waits, in an inbox or drained from it. Consumer only. */
static inline bool evc_mailbox_has_mail(struct evc_mailbox *mailbox)
{
	return mailbox->occupied != 0 || mailbox->sorting != 0 ||
	       evc_mailbox_has_posts(mailbox, memory_order_seq_cst);
}

/* True if the signal asks the consumer for something; after evc_mailbox_order_taken. Any thread. */
static inline bool evc_mailbox_is_signalled(struct evc_mailbox *mailbox)
{
	uint32_t signal = atomic_load_explicit(&mailbox->signal, memory_order_seq_cst);

	if (evc_likely(signal != EVC_SIGNAL_BLOCKED))
		return signal != 0;
	/* Without a free place there is nothing to do for those who wait for one (bound.h). */
	return evc_bound_has_places(mailbox->bound, 1);
}

/* C2: an envelope waits, or the signal is up. Consumer only. */
static inline bool evc_mailbox_has_news(struct evc_mailbox *mailbox)
{
	evc_mailbox_order_taken(mailbox);
	return evc_mailbox_is_signalled(mailbox) || evc_mailbox_has_mail(mailbox);
}

/* True if the mailbox is to end, at once or when it is empty. */
static inline bool evc_mailbox_is_closing(struct evc_mailbox *mailbox)
{
	/* Acquire, pairs with close_with: what the closer did before. */
	return (atomic_load_explicit(&mailbox->signal, memory_order_acquire) &
		(EVC_SIGNAL_CLOSE | EVC_SIGNAL_DRAIN)) != 0;
}

/* True if the consumer may wait in evc_wait, where it may sleep. */
static inline bool evc_mailbox_may_wait(const struct evc_mailbox *mailbox)
{
	return mailbox->options.wake == NULL &&
	       (!mailbox->options.polled || mailbox->options.strategy == EVC_WAIT_YIELD ||
		mailbox->options.strategy == EVC_WAIT_SPIN);
}

/* Calls `idle`: nothing is left. Consumer only. */
static inline void evc_mailbox_call_idle(struct evc_mailbox *mailbox)
{
	if (mailbox->options.idle != NULL)
		mailbox->options.idle(mailbox->options.context);
}

/* Counts events that leave their lane. Relaxed: only the consumer writes it. */
static inline void evc_mailbox_count_left(struct evc_mailbox *mailbox, unsigned lane, uint64_t events)
{
	atomic_store_explicit(&mailbox->left[lane],
			      atomic_load_explicit(&mailbox->left[lane], memory_order_relaxed) +
				      events,
			      memory_order_relaxed);
}

/* Takes the first envelope of a lane whose list is not empty. */
static inline struct evc_envelope *evc_mailbox_take_listed(struct evc_mailbox *mailbox, unsigned lane)
{
	struct evc_lane_list *list = &mailbox->lists[lane];
	struct evc_envelope *envelope = list->first;
	struct evc_envelope *next = evc_slot_next(envelope);

	list->first = next;
	/* In a backlog it may be far away: fetch it while this one is handled. */
	__builtin_prefetch(next, 1);
	if (next == NULL) {
		mailbox->occupied &= ~(1u << lane);
		if (mailbox->own.kind.lane == lane)
			evc_consumed_close(&mailbox->own);
	}
	evc_mailbox_count_left(mailbox, lane, 1);
	/* In this order, or the next event of that place would seem to wait beside this one. */
	if (evc_unlikely(mailbox->bound != NULL) && !(envelope->flags & (EVC_ENVELOPE_TOKEN | EVC_ENVELOPE_EXEMPT)))
		evc_bound_count_taken(mailbox->bound);
	return envelope;
}

/* The envelope that is next, or NULL if none is or the mailbox ends. Consumer only. */
static inline struct evc_envelope *evc_mailbox_next(struct evc_mailbox *mailbox)
{
	/* C3. Relaxed: if the signal is up, C4 acquires; if not, this thread has cleared it. */
	if (evc_likely(atomic_load_explicit(&mailbox->signal, memory_order_relaxed) == 0 &&
		       ((mailbox->occupied & EVC_QUEUES) >> mailbox->relied) & 1u)) {
		struct evc_envelope *envelope = evc_mailbox_take_listed(mailbox, mailbox->relied);

		return evc_likely(!(envelope->flags & EVC_ENVELOPE_TOKEN))
			       ? envelope
			       : evc_mailbox_next_by_token(mailbox, envelope);
	}
	return evc_mailbox_next_by_look(mailbox);
}

#endif
