/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What routes.c subscribes, sends.c dispatches, and arrivals.c finds at the mailboxes. Each event bears a number, under
 * which it is kept what every mailbox must find in its envelope.
 */
#ifndef EVC_FUZZ_ROUTES_H
#define EVC_FUZZ_ROUTES_H

#include "fuzz.h"

enum { SINKS = 4, ROUTE_KEYS = 2, EVENTS = 1024, BATCHED = 1, BOUNDED = 2, LATEST = 3, LARGEST = 9000 };

/* What is to arrive of an event at one mailbox. */
struct expected {
	uint32_t generation;
	bool is_coming;
};

struct event {
	uint64_t time;
	enum evc_lane lane;
	unsigned key;
	bool is_marked;
	struct expected at[SINKS];
};

/* The context of a subscription. */
struct sink_key {
	struct evc_subscription *made;
	bool is_subscribed, is_timed;
	uint32_t generation;
};

struct sink {
	struct evc_mailbox *made;
	bool is_closed, is_busy;
	struct sink_key keys[ROUTE_KEYS + 1];
};

extern struct event events[EVENTS];
extern unsigned event_count;
extern struct sink sinks[SINKS];

/* A conflation had no memory for a key, and how many keys are kept. */
extern bool has_refused;
extern size_t kept;

/* False: memory was lacking. */
bool make_sink(unsigned at);
void write_number(unsigned key, void *payload, unsigned number);
/* Of an event that was taken at `sinks[at]`. */
void check_arrival(unsigned at, unsigned key, const void *payload, const struct evc_envelope *envelope);

/* What the observer is told and says; and the time that events bear which it is not told of. */
struct observed {
	bool is_set, is_told, marks, counts;
	uint64_t time, now, origin;
	uint32_t events;
	unsigned key;
	struct evc_tally tally;
	/* Of which it is not told, but for those before the last forget_count(). */
	uint64_t counted;
	/* The next dispatch to a key: nothing is counted yet. */
	bool must_tell[ROUTE_KEYS + 1];
};

extern struct observed observed;
extern struct evc_router *routes;
uint32_t subscribed(unsigned key);
/* Dispatches happened that may be counted or not. */
void forget_count(void);

void send_some(unsigned key);
/* One event by one of the short ways. */
void send_one(unsigned key);
/* By the sink itself, with a time that the caller sets. */
void send_by_sink(unsigned at, unsigned key);
/* As the consumer, to itself among others. */
void send_inside(unsigned at, unsigned key);

#endif
