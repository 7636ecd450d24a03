/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Shared by all tests: messages, gates, receivers, and a counting allocator.
 *
 * A test that fails leaves its objects behind: the message matters more than the memory.
 */
#ifndef EVC_SUITE_H
#define EVC_SUITE_H

#include "CEventCoreSuite.h"

#include "platform/config.h"

#ifdef EVC_URCU
#include <eventcore/eventcore.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SUITE_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define SUITE_THREAD_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SUITE_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define SUITE_THREAD_SANITIZER 1
#endif

/* Exhaustive and long tests do less in builds where each step costs ten times as much. */
#if defined(SUITE_ADDRESS_SANITIZER) || defined(SUITE_THREAD_SANITIZER) || !defined(__OPTIMIZE__)
#define SUITE_SLOW 1
#define SUITE_SCALE(n) ((n) / 10)
#else
#define SUITE_SLOW 0
#define SUITE_SCALE(n) (n)
#endif

/* Only to fail instead of hanging: no passing test waits that long. */
#define SUITE_LIMIT_NS UINT64_C(60000000000)

/* One for each file; suite.c lists them. */
struct suite_group {
	const struct evc_suite_test *tests;
	size_t count;
};
#define SUITE_GROUP(name, tests)                                                                   \
	const struct suite_group name = { tests, sizeof(tests) / sizeof((tests)[0]) }

const char *suite_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define EXPECT(condition, ...)                                                                     \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return suite_fail(__VA_ARGS__);                                            \
	} while (0)
#define EXPECT_EQUAL(found, expected, what)                                                        \
	do {                                                                                       \
		long long found_ = (long long)(found), expected_ = (long long)(expected);          \
		EXPECT(found_ == expected_, "%s: expected %lld, found %lld", what, expected_,      \
		       found_);                                                                    \
	} while (0)
#define EXPECT_STATUS(call, expected)                                                              \
	do {                                                                                       \
		enum evc_status found_ = (call);                                                   \
		EXPECT(found_ == (expected), "%s: expected \"%s\", found \"%s\"", #call,           \
		       evc_status_text(expected), evc_status_text(found_));                        \
	} while (0)
#define EXPECT_OK(call) EXPECT_STATUS(call, EVC_OK)
/* Returns the message of a helper. */
#define EXPECT_NONE(call)                                                                          \
	do {                                                                                       \
		const char *message_ = (call);                                                     \
		if (message_ != NULL)                                                              \
			return message_;                                                           \
	} while (0)

/* Opened once; any thread may wait for it. */
struct suite_gate {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	bool open;
};
#define SUITE_GATE { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false }
void suite_gate_open(struct suite_gate *gate);
/* False if it was not opened within the limit. */
bool suite_gate_pass(struct suite_gate *gate);
/* Waits until `*counter` is at least `least`. False after the limit. */
bool suite_await(_Atomic uint64_t *counter, uint64_t least);

/* A mailbox with one subscription that counts how its payloads (a uint64_t each) end. */
struct suite_receiver {
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscription;
	_Atomic uint64_t delivered;
	_Atomic uint64_t sum;
	_Atomic uint64_t drops;
	_Atomic uint64_t finalized;
};
/* `options` may be NULL. */
const char *suite_receiver_open(struct suite_receiver *receiver,
				const struct evc_mailbox_options *options);
/* Another subscription of the receiver's mailbox. */
const char *suite_receiver_add(struct suite_receiver *receiver,
			       bool (*deliver)(void *, void *, const struct evc_envelope *, bool),
			       void *context, struct evc_subscription **out);
/*
 * Replaces the receiver's subscription by one that counts in the same way and whose payloads need no ending.
 */
const char *suite_receiver_make_plain(struct suite_receiver *receiver);
/* A latest-only subscription of the receiver's mailbox, which counts as its own does. */
const char *suite_receiver_latest(struct suite_receiver *receiver, struct evc_subscription **out);
/* Appends an envelope with this payload to a chain. */
enum evc_status suite_append(struct evc_chain *chain, struct evc_subscription *subscription, unsigned lane,
			     uint64_t value);
/*
 * Posts a single envelope to the subscription's sink; a refused one ends without `drop`, since it was not
 * accepted.
 */
enum evc_status suite_post(struct suite_receiver *receiver, unsigned lane, uint64_t value);
/* Takes and recycles one, whose payload counts as handled. */
enum evc_status suite_take(struct suite_receiver *receiver, unsigned *lane, uint64_t *value);
/*
 * Makes the consumer rely on the alarm for the lanes before queue normal, by a long run from that lane.
 * Leaves the mailbox empty.
 */
const char *suite_prime(struct suite_receiver *receiver);

uint64_t suite_seed(void);
uint64_t suite_random(uint64_t *state);

/*
 * Returns when everything that was retired before the call has been reclaimed, but not what those callbacks
 * themselves retired. False after the limit.
 */
bool suite_quiesce(void);
/*
 * Has a child of fork run a part of a test, and end with the status that it returns. `*status` is what waitpid says, and
 * `said` the beginning of what the child wrote to its standard error. One that hangs is ended by a signal.
 */
#define SUITE_SAID 512u
const char *suite_in_child(int (*run)(void *context), void *context, int *status, char said[SUITE_SAID]);
/* Runs a part of a test on a thread of its own, which has no slots at hand from before. */
const char *suite_alone(const char *(*run)(void));
/*
 * The same, after clearing this thread's route cache. A test that dispatches on its own thread to a receiver
 * on its own stack ends with it: the cache holds references of sinks until an entry is needed for another
 * key, and `finalize` would be called when that stack frame no longer exists.
 */
bool suite_settle(void);

/*
 * An allocator that counts, forwards to the default one, and fails where it is told to. It knows its own
 * blocks, so that blocks from before its installation are not counted.
 */
struct suite_allocations {
	/* Calls of allocate since the installation. */
	uint64_t calls;
	/* Calls that were made to fail. */
	uint64_t failed;
	/* Blocks in use, without slabs and thread records, which the core keeps. */
	uint64_t live;
	/* The ordinal of the call, from 0, from which on `fail_count` calls fail. */
	uint64_t fail_at;
	uint64_t fail_count;
};
void suite_allocator_install(uint64_t fail_at, uint64_t fail_count);
struct suite_allocations suite_allocator_read(void);
void suite_allocator_restore(void);

#endif
#endif
