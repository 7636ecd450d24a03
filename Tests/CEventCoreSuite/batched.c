/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "batched.h"

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct batched *batched = context;
	uint64_t value;

	(void)owned;
	__builtin_memcpy(&value, payload, sizeof(value));
	if (evc_envelope_payload((struct evc_envelope *)envelope) != payload)
		batched->message = "the envelope has another payload than was delivered";
	batched->lanes[batched->count] = evc_envelope_lane(envelope);
	batched->values[batched->count++] = value;
	if (batched->act != NULL && value == batched->at) {
		const char *message = batched->act(batched);

		if (message != NULL)
			batched->message = message;
	}
	return value % 2 == 0;
}

static void drop(void *context, void *payload)
{
	(void)payload;
	((struct batched *)context)->drops++;
}

/* How the receiver walks its batches: how many events in a call, and whether it asks again at the end. */
struct walking {
	unsigned most;
	bool asks_again;
};

/* NULL: it does not. One test at a time. */
static const struct walking *walking;

static void deliver_batch(void *context, void *payload, const struct evc_envelope *envelope,
			  struct evc_batch_walk *walk)
{
	struct batched *batched = context;

	for (unsigned i = 1; payload != NULL; i++) {
		if (!deliver(context, payload, envelope, true))
			drop(context, payload);
		if (i == walking->most)
			return;
		payload = evc_batch_next(walk);
	}
	if (walking->asks_again && evc_batch_next(walk) != NULL)
		batched->message = "a walk that was over went on";
}

const char *batched_open(struct batched *batched)
{
	const struct evc_mailbox_options options = { .size = sizeof(options), .batches = true };
	const struct evc_subscription_options subscription = {
		.size = sizeof(subscription), .context = batched,
		.deliver = deliver,
		.drop = drop,
		.deliver_batch = walking != NULL ? deliver_batch : NULL,
	};

	__builtin_memset(batched, 0, sizeof(*batched));
	EXPECT_NONE(suite_receiver_open(&batched->receiver, &options));
	EXPECT_OK(evc_mailbox_add_subscription(batched->receiver.mailbox, &subscription,
					       &batched->subscription));
	EXPECT_OK(evc_router_create(&batched->router));
	EXPECT_OK(evc_router_subscribe(batched->router, BATCHED_KEY, batched->subscription, 0, false));
	return NULL;
}

const char *batched_close(struct batched *batched)
{
	EXPECT(batched->message == NULL, "%s", batched->message);
	evc_mailbox_release(batched->receiver.mailbox);
	evc_router_destroy(batched->router);
	EXPECT(suite_settle(), "the router's end took too long");
	return NULL;
}

const char *batched_dispatch(struct batched *batched, unsigned lane, uint64_t first, unsigned count,
			    uint32_t *accepted, bool *together)
{
	struct evc_dispatch dispatch;
	struct evc_envelope *envelope;

	EXPECT_OK(evc_dispatch_begin_batch(batched->router, BATCHED_KEY, (enum evc_lane)lane, 8, 8, count,
					   &dispatch));
	EXPECT_EQUAL(dispatch.payloads, dispatch.receivers * count, "payloads");
	envelope = dispatch.first;
	if (together != NULL)
		*together = dispatch.array != NULL;
	for (unsigned i = 0; i < dispatch.payloads; i++) {
		uint64_t value = first + i % count;

		if (dispatch.array != NULL) {
			((uint64_t *)dispatch.array)[i] = value;
			continue;
		}
		__builtin_memcpy(evc_envelope_payload(envelope), &value, sizeof(value));
		envelope = evc_dispatch_next(envelope);
	}
	*accepted = evc_dispatch_commit(&dispatch);
	return NULL;
}

const char *batched_send(struct batched *batched, unsigned lane, uint64_t first, unsigned count)
{
	uint32_t accepted = 0;

	EXPECT_NONE(batched_dispatch(batched, lane, first, count, &accepted, NULL));
	EXPECT_EQUAL(accepted, count, "accepted");
	return NULL;
}

const char *batched_warm(struct batched *batched)
{
	EXPECT_NONE(batched_send(batched, EVC_LANE_QUEUE_NORMAL, 0, 2));
	EXPECT_STATUS(evc_mailbox_pump(batched->receiver.mailbox, BATCHED_MOST), EVC_EMPTY);
	batched->count = batched->drops = 0;
	return NULL;
}

const char *batched_walked(const char *(*test)(void))
{
	static const struct walking ways[] = {
		{ 0, false }, { 0, true }, { 1, false }, { 2, true },
	};
	const char *failure = NULL;

	for (unsigned i = 0; failure == NULL && i < sizeof(ways) / sizeof(ways[0]); i++) {
		walking = &ways[i];
		failure = test();
	}
	walking = NULL;
	return failure;
}
#endif
