/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Batches from several threads at once, to a consumer with a thread of its own.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#define KEY 7u

/* D4, D5: a stream of batches from other threads: exactly once, each producer's in its order. */
#define PRODUCERS 3u
#define BATCHES 2000u
struct live {
	struct evc_router *router;
	uint64_t next[PRODUCERS];
	_Atomic uint64_t delivered;
	_Atomic uint64_t wrong;
};

static bool deliver_live(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct live *live = context;
	uint64_t value;

	(void)envelope, (void)owned;
	__builtin_memcpy(&value, payload, sizeof(value));
	if (live->next[value >> 32]++ != (uint32_t)value)
		atomic_fetch_add_explicit(&live->wrong, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&live->delivered, 1, memory_order_release);
	return true;
}

static void deliver_batch(void *context, void *payload, const struct evc_envelope *envelope,
			  struct evc_batch_walk *walk)
{
	do
		(void)deliver_live(context, payload, envelope, true);
	while ((payload = evc_batch_next(walk)) != NULL);
}

struct sender {
	struct live *live;
	uint64_t number;
	enum evc_status status;
};

static void *send_live(void *argument)
{
	struct sender *sender = argument;
	uint64_t value = sender->number << 32;

	for (unsigned i = 0; i < SUITE_SCALE(BATCHES); i++) {
		unsigned count = 1 + i % 64;
		struct evc_dispatch dispatch;
		struct evc_envelope *envelope;

		sender->status = evc_dispatch_begin_batch(sender->live->router, KEY,
							  EVC_LANE_QUEUE_HIGH, 8, 8, count, &dispatch);
		if (sender->status != EVC_OK)
			return NULL;
		envelope = dispatch.first;
		for (unsigned e = 0; e < count; e++, value++) {
			if (dispatch.array != NULL) {
				((uint64_t *)dispatch.array)[e] = value;
				continue;
			}
			__builtin_memcpy(evc_envelope_payload(envelope), &value, sizeof(value));
			envelope = evc_dispatch_next(envelope);
		}
		(void)evc_dispatch_commit(&dispatch);
	}
	return NULL;
}

static const char *send_and_count(bool walks)
{
	static const struct evc_mailbox_options options = { .size = sizeof(options), .batches = true };
	struct live live = { 0 };
	const struct evc_subscription_options subscription_options = {
		.size = sizeof(subscription_options), .context = &live,
		.deliver = deliver_live,
		.deliver_batch = walks ? deliver_batch : NULL,
	};
	struct evc_subscription *subscription;
	struct evc_mailbox *mailbox;
	struct evc_thread *thread;
	struct sender senders[PRODUCERS];
	pthread_t threads[PRODUCERS];
	uint64_t sent = 0;

	EXPECT_OK(evc_mailbox_create(&options, &mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(mailbox, &subscription_options, &subscription));
	EXPECT_OK(evc_router_create(&live.router));
	EXPECT_OK(evc_router_subscribe(live.router, KEY, subscription, 0, false));
	EXPECT_OK(evc_thread_start(NULL, mailbox, &thread));
	for (unsigned i = 0; i < PRODUCERS; i++) {
		senders[i] = (struct sender){ .live = &live, .number = i };
		EXPECT(pthread_create(&threads[i], NULL, send_live, &senders[i]) == 0, "no thread");
	}
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_OK(senders[i].status);
	}
	for (unsigned i = 0; i < SUITE_SCALE(BATCHES); i++)
		sent += PRODUCERS * (1 + i % 64);
	EXPECT(suite_await(&live.delivered, sent), "only %llu of %llu events came",
	       (unsigned long long)live.delivered, (unsigned long long)sent);
	EXPECT_EQUAL(live.wrong, 0, "events out of order");
	evc_thread_cancel(thread);
	EXPECT_OK(evc_thread_join(thread));
	EXPECT_EQUAL(live.delivered, sent, "events delivered");
	evc_mailbox_release(mailbox);
	evc_router_destroy(live.router);
	EXPECT(suite_settle(), "the router's end took too long");
	return NULL;
}

static const char *each(void)
{
	return send_and_count(false);
}

static const char *walked(void)
{
	return send_and_count(true);
}

static const struct evc_suite_test tests[] = {
	{ "D2 D4 batches from three threads: once, and in order", each },
	{ "D2 D4 batches from three threads that the receiver walks", walked },
};

SUITE_GROUP(suite_batch_live, tests);
#endif
