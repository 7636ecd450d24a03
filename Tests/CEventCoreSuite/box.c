/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Payloads of every size around an edge and every alignment, to one receiver and to three: written
 * once, read whole, aligned, and ended exactly once.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <string.h>

#define RECEIVERS 3u

static const size_t sizes[] = { 0, 1, 31, 32, 33, 111, 112, 113, 4080, 4081, 4096, 5000, 300000 };

static void fill(unsigned char *payload, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		payload[i] = (unsigned char)(i * 31 + seed);
}

static bool intact(const unsigned char *payload, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		if (payload[i] != (unsigned char)(i * 31 + seed))
			return false;
	return true;
}

static const char *receive(struct suite_receiver *receiver, size_t size, size_t alignment,
			   unsigned events)
{
	for (unsigned e = 0; e < events; e++) {
		struct evc_envelope *envelope;
		unsigned char *payload;

		EXPECT_OK(evc_mailbox_take(receiver->mailbox, &envelope));
		payload = evc_envelope_payload(envelope);
		EXPECT((uintptr_t)payload % alignment == 0, "size %zu alignment %zu: found at %p", size,
		       alignment, (void *)payload);
		EXPECT(intact(payload, size, e), "size %zu alignment %zu event %u: changed", size,
		       alignment, e);
		evc_mailbox_recycle(receiver->mailbox, envelope, false);
	}
	return NULL;
}

static const char *send(struct evc_router *router, struct suite_receiver *receivers, unsigned count,
			size_t size, size_t alignment, unsigned events)
{
	bool boxed = size > EVC_INLINE_SIZE || alignment > EVC_INLINE_ALIGNMENT;
	struct evc_envelope *envelope;
	struct evc_dispatch dispatch;
	uint64_t drops = 0;

	EXPECT_OK(evc_dispatch_begin(router, 1, EVC_LANE_QUEUE_LOW, size, alignment, events,
				     &dispatch));
	EXPECT_EQUAL(dispatch.receivers, count, "receivers");
	EXPECT_EQUAL(dispatch.shared, boxed, "whether the payload is shared");
	EXPECT_EQUAL(dispatch.payloads, boxed ? events : events * count, "payloads to write");
	envelope = dispatch.first;
	for (unsigned i = 0; i < dispatch.payloads; i++) {
		fill(evc_envelope_payload(envelope), size, i % events);
		envelope = evc_dispatch_next(envelope);
	}
	EXPECT_EQUAL(evc_dispatch_commit(&dispatch), count * events, "accepted");
	for (unsigned r = 0; r < count; r++) {
		/* While one receiver still holds its envelope, the shared payload must exist. */
		EXPECT(!boxed || drops == 0, "size %zu: dropped before the last receiver", size);
		EXPECT_NONE(receive(&receivers[r], size, alignment, events));
		drops += atomic_exchange(&receivers[r].drops, 0);
	}
	EXPECT(drops == (boxed ? events : events * count),
	       "size %zu alignment %zu: %u payloads to %u receivers ended %llu times", size, alignment,
	       events, count, (unsigned long long)drops);
	return NULL;
}

static const char *to_receivers(unsigned count)
{
	struct suite_receiver receivers[RECEIVERS];
	struct evc_router *router;

	EXPECT_OK(evc_router_create(&router));
	for (unsigned r = 0; r < count; r++) {
		EXPECT_NONE(suite_receiver_open(&receivers[r], NULL));
		EXPECT_OK(evc_router_subscribe(router, 1, receivers[r].subscription, 0, false));
	}
	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
			EXPECT_NONE(send(router, receivers, count, sizes[s], alignment, 1));
			EXPECT_NONE(send(router, receivers, count, sizes[s], alignment, 3));
		}
	evc_router_destroy(router);
	for (unsigned r = 0; r < count; r++)
		evc_mailbox_release(receivers[r].mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static const char *one(void)
{
	return to_receivers(1);
}

static const char *three(void)
{
	return to_receivers(RECEIVERS);
}

struct sharing {
	_Atomic uint64_t delivered;
	_Atomic uint64_t moved;
	_Atomic uint64_t dropped;
	_Atomic uint64_t changed;
};

static bool move_if_owned(void *context, void *payload, const struct evc_envelope *envelope,
			  bool owned)
{
	struct sharing *sharing = context;

	(void)envelope;
	if (!intact(payload, 100, 7))
		atomic_fetch_add(&sharing->changed, 1);
	/* Overwrites the payload if it owns it: another receiver that still reads would notice. */
	if (owned) {
		memset(payload, 0, 100);
		atomic_fetch_add(&sharing->moved, 1);
	}
	atomic_fetch_add(&sharing->delivered, 1);
	return owned;
}

static void count_drop(void *context, void *payload)
{
	(void)payload;
	atomic_fetch_add(&((struct sharing *)context)->dropped, 1);
}

/* Three threads end one box at once: it is moved out by its only holder, or dropped, never both. */
static const char *on_threads(void)
{
	static struct sharing sharing;
	struct evc_subscription_options options = {
		.size = sizeof(options), .context = &sharing, .deliver = move_if_owned, .drop = count_drop,
	};
	unsigned char payload[100];
	struct evc_mailbox *mailboxes[RECEIVERS];
	struct evc_thread *threads[RECEIVERS];
	struct evc_subscription *subscription;
	struct evc_router *router;
	uint64_t events = SUITE_SCALE(50000u);

	memset(&sharing, 0, sizeof(sharing));
	fill(payload, sizeof(payload), 7);
	EXPECT_OK(evc_router_create(&router));
	for (unsigned i = 0; i < RECEIVERS; i++) {
		EXPECT_OK(evc_mailbox_create(NULL, &mailboxes[i]));
		EXPECT_OK(evc_mailbox_add_subscription(mailboxes[i], &options, &subscription));
		EXPECT_OK(evc_router_subscribe(router, 1, subscription, 0, false));
		EXPECT_OK(evc_thread_start(NULL, mailboxes[i], &threads[i]));
	}
	for (uint64_t i = 0; i < events; i++)
		EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, payload,
					     sizeof(payload), 8, NULL));
	EXPECT(suite_await(&sharing.delivered, events * RECEIVERS), "only %llu came",
	       (unsigned long long)sharing.delivered);
	for (unsigned i = 0; i < RECEIVERS; i++) {
		evc_thread_cancel(threads[i]);
		EXPECT_OK(evc_thread_join(threads[i]));
	}
	evc_router_destroy(router);
	for (unsigned i = 0; i < RECEIVERS; i++)
		evc_mailbox_release(mailboxes[i]);
	EXPECT_EQUAL(sharing.changed, 0, "payloads that changed under a reader");
	EXPECT_EQUAL(sharing.moved + sharing.dropped, events, "payloads moved out or dropped");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 payloads of every size and alignment reach one receiver, and end once", one },
	{ "D4 payloads of every size and alignment are shared by three, and end once", three },
	{ "D4 a box that three threads share ends once", on_threads },
};
SUITE_GROUP(suite_box, tests);
#endif
