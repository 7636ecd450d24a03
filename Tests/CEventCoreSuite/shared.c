/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "shared.h"

#include "shared/shared_mailbox_private.h"

#include <string.h>

static bool deliver(void *worker_context, void *context, void *payload,
		    struct evc_envelope *envelope, bool owned)
{
	struct shared_receiver *receiver = context;
	uint64_t value;

	(void)owned;
	memcpy(&value, payload, sizeof(value));
	if (receiver->hear != NULL)
		receiver->hear(worker_context, value, evc_envelope_lane(envelope));
	atomic_fetch_add_explicit(&receiver->sum, value, memory_order_relaxed);
	/* Release: pairs with suite_await. */
	atomic_fetch_add_explicit(&receiver->delivered, 1, memory_order_release);
	/* Reported as moved out, so that `drop` counts what was not handled. */
	return true;
}

static void drop(void *context, void *payload)
{
	(void)payload;
	atomic_fetch_add(&((struct shared_receiver *)context)->drops, 1);
}

static void finalize(void *context)
{
	atomic_fetch_add(&((struct shared_receiver *)context)->finalized, 1);
}

const char *shared_open(struct shared_receiver *receiver)
{
	return shared_open_bounded(receiver, 0, EVC_OVERFLOW_REFUSE, 0);
}

const char *shared_open_bounded(struct shared_receiver *receiver, uint64_t capacity, enum evc_overflow policy,
				uint64_t block_ns)
{
	struct evc_shared_subscription_options options = { sizeof(options), receiver, deliver, drop, finalize };

	memset(receiver, 0, sizeof(*receiver));
	EXPECT_OK(capacity == 0 ? evc_shared_mailbox_create(&receiver->mailbox)
				: evc_shared_mailbox_create_bounded(capacity, policy, block_ns, &receiver->mailbox));
	EXPECT_OK(evc_shared_mailbox_add_subscription(receiver->mailbox, &options,
						      &receiver->subscription));
	return NULL;
}

enum evc_status shared_post_chain(struct shared_receiver *receiver, unsigned lane, uint64_t first,
				  unsigned count)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope;
	enum evc_status status = EVC_OK;

	for (unsigned i = 0; i < count && status == EVC_OK; i++)
		status = suite_append(&chain, receiver->subscription, lane, first + i);
	if (status == EVC_OK)
		status = evc_shared_mailbox_post(receiver->mailbox, &chain);
	for (envelope = chain.first; status != EVC_OK && envelope != NULL; envelope = chain.first) {
		chain.first = evc_dispatch_next(envelope);
		evc_envelope_release(envelope, true);
	}
	return status;
}

bool shared_all_asleep(struct evc_shared_mailbox *mailbox, unsigned count)
{
	uint64_t start = evc_clock_now();

	while (atomic_load(&mailbox->attention) != count * EVC_SHARED_SLEEPER ||
	       atomic_load(&mailbox->looking) != 0)
		if (evc_clock_now() - start > SUITE_LIMIT_NS)
			return false;
	return true;
}

enum evc_status shared_post(struct shared_receiver *receiver, unsigned lane, uint64_t value)
{
	return shared_post_chain(receiver, lane, value, 1);
}

enum evc_status shared_take(struct evc_worker *worker, unsigned *lane, uint64_t *value)
{
	struct evc_envelope *envelope;
	enum evc_status status = evc_worker_take(worker, &envelope);

	if (status != EVC_OK)
		return status;
	*lane = evc_envelope_lane(envelope);
	memcpy(value, evc_envelope_payload(envelope), sizeof(*value));
	evc_worker_recycle(worker, envelope, true);
	return EVC_OK;
}

const char *shared_start(struct shared_workers *workers, struct shared_receiver *receiver,
			 unsigned count, const struct evc_mailbox_options *options,
			 void *const *contexts)
{
	struct evc_mailbox_options own = { .size = sizeof(own), .strategy = EVC_WAIT_PARK };

	if (options != NULL)
		own = *options;
	workers->count = count;
	for (unsigned i = 0; i < count; i++) {
		if (contexts != NULL)
			own.context = contexts[i];
		EXPECT_OK(evc_worker_create(receiver->mailbox, &own, &workers->workers[i]));
		EXPECT_OK(evc_thread_start_worker(NULL, workers->workers[i], &workers->threads[i]));
	}
	return NULL;
}

const char *shared_join(struct shared_workers *workers)
{
	for (unsigned i = 0; i < workers->count; i++) {
		EXPECT_OK(evc_thread_join(workers->threads[i]));
		evc_worker_destroy(workers->workers[i]);
	}
	return NULL;
}
#endif
