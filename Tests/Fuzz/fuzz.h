/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* What the parts of the fuzzer share: the input, payloads, receivers, and arguments that are wrong now and then. */
#ifndef EVC_FUZZ_H
#define EVC_FUZZ_H

#include <eventcore/eventcore.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(holds)                                                                                  \
	do {                                                                                          \
		if (!(holds)) {                                                                       \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #holds);     \
			abort();                                                                      \
		}                                                                                     \
	} while (0)

/* Payloads of the keys 1 to 3 own a block of memory, those of the keys 4 to 6 are bytes of several sizes. */
enum { MAILBOXES = 3, ROUTERS = 2, KEYS = 6, OWNING_KEYS = 3 };

struct receiver {
	unsigned key;
	struct evc_load load;
	bool is_retired, is_finalized;
	struct receiver *next;
};

struct subscription {
	struct evc_subscription *made;
	struct receiver *receiver;
	bool is_latest;
};

struct mailbox {
	struct evc_mailbox *made;
	bool batches;
	/* A pump or a wait of it is running, so that a handler leaves it alone. */
	bool is_busy;
	/* By key. */
	struct subscription subscriptions[KEYS + 1];
};

extern struct mailbox mailboxes[MAILBOXES];
extern struct evc_router *routers[ROUTERS];
/* What is missing is made, so that short inputs get somewhere. */
struct evc_router *router(unsigned index);
const struct subscription *receiver_of(unsigned index, unsigned key);
void dispatch(struct evc_router *router, unsigned key, bool together);
extern const size_t sizes[KEYS + 1];

/* inputs.c. Between these two, and whether bytes are left; every payload and receiver must have ended. */
void begin_input(const uint8_t *data, size_t size);
bool has_input(void);
void end_input(void);
/* The next byte of the input, and 0 when it has ended. */
unsigned draw(void);
/* One time in fifty. */
bool rarely(void);
unsigned some_key(void);
/* Wrong now and then. */
enum evc_lane some_lane(void);

/* The clock of some mailboxes and balancers, whose context it is: each look moves it by one. */
extern uint64_t stepped;
uint64_t read_time(void *context);

bool owns(unsigned key);
void write_payload(void *place, unsigned key);
void drop_payload(void *context, void *payload);
/* What every handler does, and whether it moved the payload out: `context` is its receiver. */
bool handle(void *context, void *payload, const struct evc_envelope *envelope, bool owned);
/* A call that a handler may make (D7). */
void act(void);

/* Lives until the end of the input. */
struct receiver *make_receiver(unsigned key);
/* For a subscription that was not made. */
void forget_receiver(struct receiver *receiver);
void finalize_receiver(void *context);
/* The key of a conflated event. */
uint64_t number_of(void *context, const void *payload);

/* An option structure with memory behind it, for a size that is too large. */
#define PADDED(type)                                                                                  \
	struct {                                                                                      \
		type known;                                                                           \
		unsigned char beyond[512];                                                            \
	}
/*
 * Sets the size that a structure opens with, wrong now and then; returns what the core must answer to it. `least`: that
 * of the first version.
 */
enum evc_status set_size(void *options, size_t least, size_t right);

/* The other parts. Choices from `*_INSIDE` on are those that a handler may make, too. */
enum { WORKER_INSIDE = 3, WORKER_CHOICES = 8, TIMER_CHOICES = 6, NODE_CHOICES = 12, ROUTE_CHOICES = 12,
       WHOLE_CHOICES = 8 };
void call_workers(unsigned choice);
void end_workers(void);
void call_timers(unsigned choice);
void end_timers(void);
void call_nodes(unsigned choice);
void end_nodes(void);
void call_routes(unsigned choice);
void end_routes(void);
void call_whole(unsigned choice, bool is_inside);
void call_with_null(void);
/* After all others. */
void end_whole(void);
void call_threads(void);
/* Whether one was detached since the beginning, which may still be ending. */
bool end_threads(void);

/* Before all others; and when the core has ended, whether it has kept something. */
void begin_memory(void);
void check_memory(void);
void end_memory(void);
void install_allocator(void);
/* Until have_memory(), one allocation fails, if the input has an allocator of its own; and whether it has. */
void lack_memory(unsigned after);
bool memory_lacked(void);
/* As expected, or for that reason. */
bool is_status(enum evc_status status, enum evc_status expected);
void have_memory(void);

#endif
