/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A latest-only subscription, of which at most one envelope waits, or a conflated one, of which one waits for each
 * key: a sink of its own, in front of a mailbox or a shared mailbox. It keeps the newest envelope in the slot of a
 * cell and ends the one that was there. A token is posted to the mailbox in its place: whoever takes the token looks
 * into the slot. A latest-only subscription has one cell, a conflated one has a cell for each key (cells.h). Cells do
 * not know one another: what follows is about one of them.
 *
 * A token lies in an envelope's slot, and says which cell it belongs to. For each lane at most one token is the
 * current one, which has the state's number. The state says where it is: NONE, nowhere; CLAIMED, a producer is about
 * to post it; POSTED, in the mailbox.
 *
 *   producer of an envelope of lane L                taker of a token of lane L: the consumer, or any worker
 *   P1 put it into the slot            seq_cst RMW   K1 if the token has the        seq_cst RMW
 *   P2 load state[L]                   seq_cst          state: → NONE
 *      POSTED: done                                  K2 load the slot               seq_cst
 *      else:   → a new number, CLAIMED acquire RMW      empty, or an event of a
 *              put the token           seq_cst RMW      lane after L: no event
 *              if it has the state:                     else CAS the slot: what     acquire RMW
 *              → POSTED                release RMW      was loaded → 0, or K2 again
 *   P3 tell the consumer               seq_cst
 *   P4 end what P1 found
 * A producer that finds CLAIMED takes the claim over with a new number, since the other producer may be held up. When
 * that one goes on, its token comes in addition, which does no harm. A lane therefore has at most one token, and one
 * more for each producer that was held up between its claim and its post.
 *
 * The slot's word contains the event's lane, so that an event of a later lane is not touched: if it were taken out
 * and put back, its own token might be taken in between and find nothing. A successful CAS takes what its expected
 * word says, lane included, even if the word has changed and come back meanwhile.
 *
 * Claim 1: when a dispatch of an envelope e of lane L returns, a token of lane L has been posted whose K2 follows
 * P1(e) in the single order of seq_cst operations.
 * - P2 saw POSTED: that token's post happened before (the change to POSTED releases, P2 acquires). Its K1 replaces
 *   the POSTED that P2 read (numbers do not repeat), so that K1 follows P2; and K2 follows K1, since a token has one
 *   taker. If P2's claim found POSTED, and not its first load, K1 still follows that load, which had read an earlier
 *   value.
 * - Otherwise the producer has itself posted a token after P1, and that token's K2 follows its post.
 * So no dispatch relies on a token that another producer, which may be preempted, has still to post (D1, D10). Nor
 * does it rely on another to tell the consumer: each producer tells (P3: the alarm, the wake) after the put of the
 * token that it relies on, so that the proof in mailbox_private.h holds for it as for the one that put the token.
 *
 * Claim 2: an envelope in the slot that belongs to lane L has a token of lane L whose K2 is still to come, in the
 * mailbox or with a taker; or its own producer has not finished P2. By claim 1 there was a token whose K2 follows
 * P1(e). If that K2 has happened, it took e, or saw a newer envelope, and e was not in the slot any more. Hence each
 * envelope is delivered, or is ended and counted because a newer one was accepted (D4). The newest is taken at the
 * latest when its lane's turn comes (D1: its own token is in its lane), unless a worker has its token already and is
 * about to take it; and earlier if an older token of a later lane finds it before its own post is done. The token of
 * a lane keeps the position of the oldest superseded event of that lane. As with every event of a shared mailbox, an
 * event may be handled while another worker is still handling the one before it.
 *
 * Claim 3: whoever handles e finds that everything that e superseded has been counted, and what those events
 * superseded, except for counts that a producer is moving out of the full bits at that moment. What an envelope
 * supersedes is counted by its P1 itself, in the bits of the slot, or before P1: what is moved out of the bits when
 * they are full. Each P1 and K2 is a read-modify-write of the slot, so that the one that takes e acquires what came
 * before all of them, and it adds all of that to the subscription's figure. Once nothing waits, that figure alone is
 * complete.
 *
 * A promised envelope that is superseded is lost to its load (balancer/load.h), in P4.
 *
 * Closing: when the mailbox drops a token, the dropping thread empties the slot (K1 and K2). A producer that has
 * passed the first look at CLOSED posts its token in any case, as evc_mailbox_push does.
 *
 * Progress: lock-free: P1 is repeated if another producer or a taker succeeded in between, and K2 if a newer envelope
 * came or another taker took it.
 *
 * Ownership: `references` counts the owner, the routers that hold the sink, tokens in the mailbox, and the envelope
 * that a token was exchanged for until that ends (EVC_ENVELOPE_HOLDS). The first two hold the mailbox too; the
 * others must not, since they would keep it from ending.
 *
 * Memory, of each cell: one envelope, and a slot for each token, of which a producer sets one aside for each envelope
 * before its first P1 (spares.h). A producer of several envelopes also has all their cells by then, so that the post
 * does not end half way.
 * Tests/Models/latest.pml (one consumer, and closing) and shared_latest.pml (several takers) check this over all
 * interleavings of small cases.
 */
#ifndef EVC_LATEST_H
#define EVC_LATEST_H

#include "latest/cells.h"
#include "memory/spares.h"
#include "memory/subscription.h"

#include <pthread.h>

/* The state of a lane's token: its number, which never repeats, and where the token is. */
enum { EVC_TOKEN_NONE, EVC_TOKEN_CLAIMED, EVC_TOKEN_POSTED };
#define EVC_TOKEN_WHERE 3u
#define EVC_TOKEN_ONE 4u

/*
 * The slot's word: the address, a count, and the lane. An address leaves six bits free, by its alignment, and eight more
 * where its high byte is 0: on x86-64 but for tags that a program asks for, and not on AArch64, where allocators use them.
 * The more bits the count has, the less often its carry costs two atomic operations: 7 of 35 ns a dispatch with 2 bits in
 * place of 10. Not under AddressSanitizer, whose search for leaks knows an address that is not shifted.
 */
#ifndef EVC_LATEST_HIGH_BITS
#if defined(__x86_64__) && !defined(EVC_ADDRESS_SANITIZER)
#define EVC_LATEST_HIGH_BITS 8
#else
#define EVC_LATEST_HIGH_BITS 0
#endif
#endif
#define EVC_LATEST_LOW_BITS (6 + EVC_LATEST_HIGH_BITS)
#define EVC_LATEST_LANE ((uintptr_t)15)
#define EVC_LATEST_COUNT_ONE ((uintptr_t)16)
#define EVC_LATEST_COUNT (((uintptr_t)1 << EVC_LATEST_LOW_BITS) - EVC_LATEST_COUNT_ONE)

static_assert(EVC_LANE_COUNT <= EVC_LATEST_LANE + 1, "a lane fits into the slot's word");

/* What a latest-only subscription, or a bound, does to either kind of mailbox, given as its sink. */
struct evc_mailbox_kind {
	/* What the post of a token may need: EVC_NEEDS_*. */
	uint8_t needs;
	/* True if the mailbox refuses posts. */
	bool (*is_closed)(struct evc_sink *mailbox);
	/* Puts a token into its lane, whether the mailbox has closed or not. */
	void (*put)(struct evc_sink *mailbox, unsigned lane, struct evc_envelope *token);
	/* P3: tells the consumer, or the workers, of what was put into this lane. */
	void (*tell)(struct evc_sink *mailbox, unsigned lane);
	/* Of a bound (bound.h): B1, and C1. */
	void (*raise)(struct evc_sink *mailbox);
	void (*clear)(struct evc_sink *mailbox);
	/* True if the calling thread is a consumer of the mailbox, in a handler. */
	bool (*is_consumer)(struct evc_sink *mailbox);
	/* A4, of several lanes. Anything but EVC_OK: no memory, and nothing was posted. */
	enum evc_status (*post)(struct evc_sink *mailbox, const struct evc_chain *chain);
};

/* The latest-only subscriptions of a mailbox, made with the first of them. */
struct evc_latest_list {
	/* Guards the rest. Innermost in the lock order. */
	pthread_mutex_t mutex;
	struct evc_latest *first;
	/* The superseded and the refused events of those that have ended. */
	uint64_t superseded;
	uint64_t refused;
};

/*
 * The subscriptions of a mailbox or a shared mailbox. All zero: none. Any thread adds to both fields, whose contents
 * stay until the close.
 */
struct evc_subscription_list {
	/* Ordinary ones live as long as the mailbox. */
	_Atomic(struct evc_subscription *) first;
	/* Latest-only ones are made and ended at any time. NULL until there is one: few mailboxes have any. */
	_Atomic(struct evc_latest_list *) latests;
};

struct evc_latest {
	struct evc_sink sink;
	/* What routers refer to; its sink is the one above. Constant. */
	struct evc_subscription subscription;
	/* The mailbox that tokens are posted to, and its list, which contains this subscription. Constant. */
	struct evc_sink *mailbox;
	struct evc_latest_list *list;
	const struct evc_mailbox_kind *how;
	/* Guarded by the list's mutex. */
	struct evc_latest *next;
	struct evc_latest **link;
	/* The cells of the keys; none in a latest-only subscription, which has the one below alone. */
	struct evc_cells cells;

	_Alignas(EVC_CACHE_LINE) struct evc_cell only;

	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t references;
	/* How many were superseded, without what the cells count. Written by takers. Relaxed: a statistic. */
	_Atomic uint64_t superseded;
	/* How many were refused, since there was no memory for their key. Relaxed: a statistic. */
	_Atomic uint64_t refused;
	/*
	 * How many more tokens than events wait in each lane. A post or a take counts only what it changes: mostly it puts or
	 * takes one of both, or replaces an event of the lane. Below 0 while a producer has still to post the token of its
	 * event. Relaxed: a statistic.
	 */
	_Atomic int32_t idle[EVC_LANE_COUNT];
};

static inline struct evc_latest *evc_latest_of(struct evc_subscription *subscription)
{
	return evc_container_of(subscription, struct evc_latest, subscription);
}

static inline uint32_t evc_latest_count_in(uintptr_t slot)
{
	return (uint32_t)((slot & EVC_LATEST_COUNT) / EVC_LATEST_COUNT_ONE);
}

/* In place of a conflation: all events have one key, for which nothing is called. */
extern const struct evc_conflation evc_latest_only;
/* Makes a latest-only or a conflated subscription in front of the mailbox whose sink `as` names. */
enum evc_status evc_latest_create(const struct evc_subscription *as, struct evc_subscription_list *subscriptions,
				  const struct evc_mailbox_kind *how, const struct evc_conflation *conflation,
				  struct evc_subscription **out);

/*
 * Exchanges a taken token for the event that it stands for, or NULL. The token is given back; the event
 * belongs to the caller. The consumer, or any worker, outside of sections. `cache` is the taker's.
 */
struct evc_envelope *evc_latest_take(struct evc_envelope *token, struct evc_return_cache *cache);

/* Drops a token, and the event in the slot; true if there was one. Any thread; `cache` may be NULL. */
bool evc_latest_drop(struct evc_envelope *token, struct evc_return_cache *cache);

/* latest_list.c: adds a copy of an ordinary subscription. EVC_OUT_OF_MEMORY or EVC_OK. */
enum evc_status evc_subscription_list_add(struct evc_subscription_list *list,
					  const struct evc_subscription *subscription, struct evc_subscription **out);
/* Ends all ordinary subscriptions; there are no others. No other thread uses the list any more. */
void evc_subscription_list_close(struct evc_subscription_list *list);
/* The list of a mailbox's latest-only subscriptions, made if there is none. NULL = out of memory. */
struct evc_latest_list *evc_latest_list_in(struct evc_subscription_list *subscriptions);
void evc_latest_list_add(struct evc_latest *latest);
/* What it has counted stays with the list. */
void evc_latest_list_remove(struct evc_latest *latest);

/* The figures of all latest-only and conflated subscriptions that a mailbox ever had. */
struct evc_latest_figures {
	uint64_t superseded;
	uint64_t refused;
};

/* Reads the figures. Any thread. */
struct evc_latest_figures evc_latest_read(struct evc_subscription_list *subscriptions);

/* Subtracts tokens that stand for no event of their lane from the lanes' figures. Any thread. */
void evc_latest_discount(struct evc_subscription_list *subscriptions, uint64_t depths[EVC_LANE_COUNT]);

#endif
