/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Shared by the scenarios with mailboxes: events with a number, producers that post some, and a tally of how
 * each ended. Uses the public interface alone.
 */
#ifndef EXPLORER_POST_H
#define EXPLORER_POST_H

#include "explorer.h"

#include "eventcore/eventcore.h"

#define EVENTS 80u
#define KEY UINT64_C(7)

struct event {
	uint32_t number;
	/* Must be complete: a race with the producer shows here. */
	uint32_t again;
};

/* A producer of events `first` to `first + count - 1`, in four alternating lanes. */
struct producer {
	struct evc_router *router;
	uint32_t first, count;
	enum evc_lane lanes[4];
};

/* How the events ended: how often each was posted, handled and dropped, and in which order. */
struct tally {
	uint32_t accepted[EVENTS], handled[EVENTS], dropped[EVENTS];
	uint32_t handled_at[EVENTS];
	uint32_t moments;
};

extern struct tally tally;

/* Posts one event to the subscribers of KEY; returns how many accepted it. */
uint32_t post(struct evc_router *router, uint32_t number, enum evc_lane lane);
/* The same without waiting, by a thread that has reserved an envelope for it. */
uint32_t try_post(struct evc_router *router, uint32_t number, enum evc_lane lane);
/* The same for another key. */
uint32_t post_to(struct evc_router *router, uint64_t key, uint32_t number, enum evc_lane lane);
/* Posts several at once, which stay together. */
void post_together(struct evc_router *router, uint32_t first, uint32_t count, enum evc_lane lane);
/* A thread that posts all events of a producer. */
void *produce(void *producer);

/* A subscription of the mailbox that tallies, for KEY. */
struct evc_subscription *listen(struct evc_router *router, struct evc_mailbox *mailbox);
struct evc_subscription_options tally_options(void);
void subscribe(struct evc_router *router, struct evc_subscription *subscription);

struct evc_router *make_router(void);
struct evc_mailbox *make_mailbox(const struct evc_mailbox_options *options);

/* Takes one event, if there is one, and handles it; its number, or -1. */
int take_one(struct evc_mailbox *mailbox);
/* Takes and waits until `count` were handled. */
void take_until(struct evc_mailbox *mailbox, uint32_t count);

void tally_handled(const struct event *event);
uint32_t tally_count_handled(void);
bool tally_was_handled(uint32_t number);
/* Each of the accepted events was handled or dropped once (D4). */
void tally_check_once(uint32_t first, uint32_t count);
/* Events of one producer in one queue lane, in order (D2). */
void tally_check_order(uint32_t first, uint32_t count);

#endif
