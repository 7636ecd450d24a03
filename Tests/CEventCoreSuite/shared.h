/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Shared by the tests of shared mailboxes: a mailbox with one subscription whose payloads are a uint64_t, and
 * workers that are threads.
 */
#ifndef EVC_SUITE_SHARED_H
#define EVC_SUITE_SHARED_H

#include "suite.h"

struct shared_receiver {
	struct evc_shared_mailbox *mailbox;
	struct evc_subscription *subscription;
	_Atomic uint64_t delivered;
	_Atomic uint64_t sum;
	_Atomic uint64_t drops;
	_Atomic uint64_t finalized;
	/* Called for each envelope if set, before it is counted. */
	void (*hear)(void *worker_context, uint64_t value, unsigned lane);
};

const char *shared_open(struct shared_receiver *receiver);
/* 0: any number of events. */
const char *shared_open_bounded(struct shared_receiver *receiver, uint64_t capacity, enum evc_overflow policy,
				uint64_t block_ns);
/* Waits until this many workers sleep for shared events and none is looking. False after the limit. */
bool shared_all_asleep(struct evc_shared_mailbox *mailbox, unsigned count);
/* Posts a single envelope; a refused one ends without `drop`, since it was not accepted. */
enum evc_status shared_post(struct shared_receiver *receiver, unsigned lane, uint64_t value);
/* Posts `count` envelopes of one lane with the values from `first` on as one chain. */
enum evc_status shared_post_chain(struct shared_receiver *receiver, unsigned lane, uint64_t first,
				  unsigned count);
/* Takes and recycles one, whose payload counts as handled. */
enum evc_status shared_take(struct evc_worker *worker, unsigned *lane, uint64_t *value);

#define SHARED_MOST_WORKERS 8u

/* Workers, each with a thread. */
struct shared_workers {
	struct evc_worker *workers[SHARED_MOST_WORKERS];
	struct evc_thread *threads[SHARED_MOST_WORKERS];
	unsigned count;
};
/* `options` may be NULL; `contexts` may be NULL: then the options'. */
const char *shared_start(struct shared_workers *workers, struct shared_receiver *receiver,
			 unsigned count, const struct evc_mailbox_options *options,
			 void *const *contexts);
/* Joins and frees them; they must end by themselves. */
const char *shared_join(struct shared_workers *workers);

#endif
