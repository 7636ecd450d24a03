/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Bounded mailboxes, on one thread: what a dispatch says of them, what takes no place, and what their own consumers
 * post.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "bounded.h"

#include <string.h>

/* Five receivers of one event: one has room, three are full, one has closed. */
static const char *outcomes(void)
{
	struct suite_receiver receivers[5];
	struct evc_dispatch_outcome outcome;
	struct evc_dispatch dispatch;
	struct evc_router *router;
	uint32_t accepted;

	EXPECT_OK(evc_router_create(&router));
	EXPECT_NONE(suite_receiver_open(&receivers[0], NULL));
	EXPECT_NONE(open_bounded(&receivers[1], EVC_OVERFLOW_REFUSE, 1));
	EXPECT_NONE(open_bounded(&receivers[2], EVC_OVERFLOW_DROP_NEWEST, 4));
	EXPECT_NONE(suite_receiver_open(&receivers[3], NULL));
	EXPECT_NONE(open_bounded(&receivers[4], EVC_OVERFLOW_DROP_OLDEST, 2));
	for (unsigned i = 0; i < 5; i++)
		EXPECT_OK(evc_router_subscribe(router, 1, receivers[i].subscription, 0, false));
	evc_mailbox_close(receivers[3].mailbox);
	for (unsigned boxed = 0; boxed < 2; boxed++) {
		EXPECT_OK(evc_dispatch_begin(router, 1, EVC_LANE_QUEUE_LOW, boxed ? 200 : 8, 8, 3, &dispatch));
		for (struct evc_envelope *envelope = dispatch.first; envelope != NULL;
		     envelope = evc_dispatch_next(envelope))
			memset(evc_envelope_payload(envelope), 0, 8);
		accepted = evc_dispatch_commit_reporting(&dispatch, &outcome);
		EXPECT_EQUAL(accepted, boxed ? 3 + 0 + 3 + 3 : 3 + 1 + 3 + 3, "accepted");
		EXPECT_EQUAL(outcome.accepted, boxed ? 3 + 0 + 1 + 3 : 3 + 1 + 3 + 3, "waiting");
		EXPECT_EQUAL(outcome.refused, boxed ? 3 : 2, "refused");
		EXPECT_EQUAL(outcome.dropped, boxed ? 2 : 0, "dropped");
		EXPECT_EQUAL(outcome.displaced, boxed ? 3 : 1, "displaced");
		EXPECT_EQUAL(outcome.closed, 3, "closed");
	}
	evc_router_destroy(router);
	for (unsigned i = 0; i < 5; i++)
		evc_mailbox_release(receivers[i].mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static bool post_more(void *context, void *payload, const struct evc_envelope *envelope, bool owned);

struct fates {
	const struct evc_subscription *subscriptions[4];
	struct evc_dispatch_outcome outcomes[4];
	unsigned count;
};

static void note_fate(void *context, const struct evc_subscription *subscription,
		      const struct evc_dispatch_outcome *outcome)
{
	struct fates *fates = context;

	if (fates->count < 4) {
		fates->subscriptions[fates->count] = subscription;
		fates->outcomes[fates->count] = *outcome;
	}
	fates->count++;
}

/* Each of four receivers is named with what it did; two of them belong to one mailbox. */
static const char *outcomes_of_each(void)
{
	struct suite_receiver full, open, closed;
	struct evc_subscription_options second = { .size = sizeof(second), .deliver = post_more };
	const struct evc_subscription *expected[4];
	struct evc_subscription *other;
	struct evc_dispatch dispatch;
	struct evc_router *router;

	EXPECT_OK(evc_router_create(&router));
	EXPECT_NONE(open_bounded(&full, EVC_OVERFLOW_REFUSE, 3));
	EXPECT_NONE(open_bounded(&open, EVC_OVERFLOW_DROP_OLDEST, 2));
	EXPECT_NONE(suite_receiver_open(&closed, NULL));
	EXPECT_OK(evc_mailbox_add_subscription(full.mailbox, &second, &other));
	expected[0] = full.subscription, expected[1] = other;
	expected[2] = open.subscription, expected[3] = closed.subscription;
	for (unsigned i = 0; i < 4; i++)
		EXPECT_OK(evc_router_subscribe(router, 1, (struct evc_subscription *)(uintptr_t)expected[i], 0, false));
	evc_mailbox_close(closed.mailbox);
	for (unsigned boxed = 0; boxed < 2; boxed++) {
		struct fates fates = { .count = 0 };

		EXPECT_OK(evc_dispatch_begin(router, 1, EVC_LANE_QUEUE_LOW, boxed ? 200 : 8, 8, 2, &dispatch));
		for (struct evc_envelope *envelope = dispatch.first; envelope != NULL;
		     envelope = evc_dispatch_next(envelope))
			memset(evc_envelope_payload(envelope), 0, 8);
		EXPECT_EQUAL(evc_dispatch_commit_each(&dispatch, note_fate, &fates), boxed ? 2 : 2 + 1 + 2, "accepted");
		EXPECT_EQUAL(fates.count, 4, "receivers");
		for (unsigned i = 0; i < 4; i++) {
			struct evc_dispatch_outcome *found = &fates.outcomes[i];

			EXPECT(fates.subscriptions[i] == expected[i], "receiver %u is another one", i);
			EXPECT_EQUAL(found->accepted + found->refused + found->dropped + found->closed, 2, "events");
			EXPECT_EQUAL(found->accepted, i == 2 ? 2 : boxed || i == 3 ? 0 : 2 - i, "accepted");
			EXPECT_EQUAL(found->closed, i == 3 ? 2 : 0, "closed");
			EXPECT_EQUAL(found->displaced, boxed && i == 2 ? 2 : 0, "displaced");
		}
	}
	evc_router_destroy(router);
	evc_mailbox_release(full.mailbox);
	evc_mailbox_release(open.mailbox);
	evc_mailbox_release(closed.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

/* A latest-only event takes no place, and is accepted by a full mailbox. */
static const char *latest_has_no_place_under(enum evc_overflow policy)
{
	bool refuses = policy == EVC_OVERFLOW_REFUSE;
	struct evc_subscription *plain, *latest;
	struct suite_receiver receiver;
	uint64_t value;
	unsigned lane;

	EXPECT_NONE(open_bounded(&receiver, policy, 2));
	plain = receiver.subscription;
	EXPECT_NONE(suite_receiver_latest(&receiver, &latest));
	for (unsigned round = 0; round < 100; round++) {
		receiver.subscription = latest;
		EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_HIGH, 9));
		receiver.subscription = plain;
		EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_LOW, 1));
		EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_LOW, 2));
		EXPECT_STATUS(suite_post(&receiver, EVC_LANE_QUEUE_LOW, 3), refuses ? EVC_FULL : EVC_OK);
		receiver.subscription = latest;
		EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_HIGH, 10));
		receiver.subscription = plain;
		EXPECT_OK(suite_take(&receiver, &lane, &value));
		EXPECT_EQUAL(value, 10, "the newest");
		EXPECT_STATUS(suite_post(&receiver, EVC_LANE_QUEUE_LOW, 3), refuses ? EVC_FULL : EVC_OK);
		for (unsigned i = 1; i <= 2; i++) {
			EXPECT_OK(suite_take(&receiver, &lane, &value));
			EXPECT_EQUAL(value, refuses ? i : 3, "the value");
		}
	}
	EXPECT_NONE(expect_counts(&receiver, (struct counts){
		refuses ? 400 : 600, 300, 0, refuses ? 200 : 0, refuses ? 0 : 200, 2 }));
	evc_latest_subscription_release(latest);
	evc_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.finalized, 2, "finalized");
	return NULL;
}

static const char *latest_has_no_place(void)
{
	EXPECT_NONE(latest_has_no_place_under(EVC_OVERFLOW_REFUSE));
	return latest_has_no_place_under(EVC_OVERFLOW_DROP_OLDEST);
}

/* Events of an unbounded subscription are accepted by a full mailbox, take no place, and are never displaced. */
static const char *unbounded_subscription(void)
{
	static const enum evc_overflow policies[] = { EVC_OVERFLOW_REFUSE, EVC_OVERFLOW_DROP_NEWEST,
						      EVC_OVERFLOW_DROP_OLDEST, EVC_OVERFLOW_BLOCK };

	for (unsigned i = 0; i < 4; i++) {
		struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 2, .overflow = policies[i], .block_ns = 1000 };
		struct evc_subscription_options always = { .size = sizeof(always), .deliver = post_more, .unbounded = true };
		struct suite_receiver receiver;
		struct evc_subscription *plain, *unbounded;
		uint64_t value, sum = 0;
		unsigned lane;

		EXPECT_NONE(suite_receiver_open(&receiver, &options));
		plain = receiver.subscription;
		EXPECT_OK(evc_mailbox_add_subscription(receiver.mailbox, &always, &unbounded));
		for (unsigned round = 0; round < 3; round++) {
			for (unsigned j = 0; j < 5; j++) {
				receiver.subscription = unbounded;
				EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_LOWEST, 100));
				receiver.subscription = plain;
				EXPECT_STATUS(suite_post(&receiver, EVC_LANE_QUEUE_NORMAL, 1),
					      j < 2 || i == 1 || i == 2 ? EVC_OK : EVC_FULL);
			}
			for (unsigned j = 0; j < 7; j++) {
				EXPECT_OK(suite_take(&receiver, &lane, &value));
				sum += value;
			}
			EXPECT_STATUS(suite_take(&receiver, &lane, &value), EVC_EMPTY);
		}
		EXPECT_EQUAL(sum, 3 * (500 + 2), "what was taken");
		receiver.subscription = unbounded;
		EXPECT_OK(suite_post(&receiver, EVC_LANE_STACK_LOW, 1));
		evc_mailbox_close(receiver.mailbox);
		EXPECT_STATUS(suite_post(&receiver, EVC_LANE_STACK_LOW, 1), EVC_CLOSED);
		evc_mailbox_release(receiver.mailbox);
		EXPECT_EQUAL(receiver.finalized, 1, "finalized");
	}
	return NULL;
}

/* A chain of an envelope for each of the subscriptions, posted by hand. */
static enum evc_status post_by_hand(struct evc_mailbox *mailbox, struct evc_subscription *const *to, unsigned count)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope, *next;
	enum evc_status status = EVC_OK;

	for (unsigned i = 0; i < count && status == EVC_OK; i++) {
		status = evc_envelope_create(to[i], EVC_LANE_QUEUE_NORMAL, 8, 8, &envelope);
		if (status == EVC_OK)
			evc_chain_append(&chain, envelope);
	}
	if (status == EVC_OK)
		status = evc_mailbox_post(mailbox, &chain);
	for (envelope = chain.first; status != EVC_OK && envelope != NULL; envelope = next) {
		next = evc_dispatch_next(envelope);
		evc_envelope_release(envelope, true);
	}
	return status;
}

static const char *unbounded_by_hand(void)
{
	struct evc_subscription_options always = { .size = sizeof(always), .deliver = post_more, .unbounded = true };
	struct evc_subscription *unbounded, *plain[2], *to[2];
	struct suite_receiver receiver;

	EXPECT_NONE(open_bounded(&receiver, EVC_OVERFLOW_REFUSE, 1));
	EXPECT_OK(evc_mailbox_add_subscription(receiver.mailbox, &always, &unbounded));
	plain[0] = to[1] = receiver.subscription;
	to[0] = plain[1] = unbounded;
	EXPECT_OK(post_by_hand(receiver.mailbox, to, 1));
	EXPECT_OK(post_by_hand(receiver.mailbox, plain, 1));
	EXPECT_OK(post_by_hand(receiver.mailbox, to, 1));
	EXPECT_STATUS(post_by_hand(receiver.mailbox, plain, 1), EVC_FULL);
	/* One part of it finds a place at any time, and the other may not. */
	EXPECT_STATUS(post_by_hand(receiver.mailbox, to, 2), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(post_by_hand(receiver.mailbox, plain, 2), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(post_by_hand(receiver.mailbox, to, 0), EVC_INVALID_ARGUMENT);
	plain[1] = plain[0];
	EXPECT_STATUS(post_by_hand(receiver.mailbox, plain, 2), EVC_FULL);
	to[1] = to[0];
	EXPECT_OK(post_by_hand(receiver.mailbox, to, 2));
	EXPECT_NONE(expect_counts(&receiver, (struct counts){ 5, 0, 5, 3, 0, 1 }));
	evc_mailbox_close(receiver.mailbox);
	EXPECT_STATUS(post_by_hand(receiver.mailbox, to, 1), EVC_CLOSED);
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

/* D7: a handler that posts to its own full mailbox is refused at once, also where others would wait for ever. */
struct poster {
	struct suite_receiver *receiver;
	struct evc_router *router;
	unsigned accepted, refused;
};

static bool post_more(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct poster *poster = context;
	uint64_t value = 5;

	(void)payload, (void)envelope, (void)owned;
	for (unsigned i = 0; i < 10; i++) {
		uint32_t receivers = 0;

		if (evc_dispatch_bytes(poster->router, 1, EVC_LANE_QUEUE_NORMAL, &value, sizeof(value),
				       _Alignof(uint64_t), &receivers) != EVC_OK)
			return true;
		poster->accepted += receivers;
		poster->refused += 1 - receivers;
	}
	return true;
}

static const char *own_posts(void)
{
	static const enum evc_overflow policies[] = { EVC_OVERFLOW_REFUSE, EVC_OVERFLOW_BLOCK };

	for (unsigned i = 0; i < 2; i++) {
		struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 4, .overflow = policies[i],
						       .block_ns = EVC_FOREVER, .batches = true };
		struct suite_receiver receiver;
		struct poster poster = { &receiver, NULL, 0, 0 };
		struct evc_subscription *subscription;
		uint64_t handled;

		EXPECT_NONE(suite_receiver_open(&receiver, &options));
		EXPECT_NONE(suite_receiver_add(&receiver, post_more, &poster, &subscription));
		EXPECT_OK(evc_router_create(&poster.router));
		EXPECT_OK(evc_router_subscribe(poster.router, 1, subscription, 0, false));
		receiver.subscription = subscription;
		EXPECT_OK(suite_post(&receiver, EVC_LANE_QUEUE_NORMAL, 1));
		EXPECT_OK(evc_mailbox_pump_until(receiver.mailbox, 100, EVC_FOREVER, &handled));
		EXPECT_EQUAL(poster.accepted, 4 + 99, "accepted");
		EXPECT_EQUAL(poster.refused, 6 + 99 * 9, "refused");
		EXPECT_NONE(expect_counts(&receiver, (struct counts){ 104, 100, 4, 6 + 99 * 9, 0, 4 }));
		evc_router_destroy(poster.router);
		evc_mailbox_release(receiver.mailbox);
		EXPECT(suite_settle(), "the callback thread got stuck");
	}
	return NULL;
}

/*
 * D7: the same inside a handler of another mailbox, which a handler of the full one pumps: nobody else would make room.
 * Three mailboxes, of which each pumps the next.
 */
struct nested {
	struct suite_receiver receivers[3];
	struct evc_router *router;
	unsigned depth, refused;
};

static bool pump_other(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct nested *nested = context;
	uint64_t value = 1;

	(void)payload, (void)envelope, (void)owned;
	if (++nested->depth < 3)
		(void)!evc_mailbox_pump(nested->receivers[nested->depth].mailbox, 1);
	else
		for (uint64_t key = 1; key <= 3; key++) {
			/* Three of these twelve find a place: those of the events that are being handled. */
			for (unsigned i = 0; i < 4; i++) {
				uint32_t receivers = 0;

				(void)!evc_dispatch_bytes(nested->router, key, EVC_LANE_QUEUE_LOW, &value, sizeof(value),
							  _Alignof(uint64_t), &receivers);
				nested->refused += 1 - receivers;
			}
		}
	return true;
}

static const char *nested_posts(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 2, .overflow = EVC_OVERFLOW_BLOCK,
					       .block_ns = EVC_FOREVER };
	struct nested nested = { .depth = 0 };

	EXPECT_OK(evc_router_create(&nested.router));
	for (unsigned i = 0; i < 3; i++) {
		struct suite_receiver *receiver = &nested.receivers[i];

		EXPECT_NONE(suite_receiver_open(receiver, &options));
		EXPECT_NONE(suite_receiver_add(receiver, pump_other, &nested, &receiver->subscription));
		EXPECT_OK(evc_router_subscribe(nested.router, i + 1, receiver->subscription, 0, false));
		EXPECT_OK(suite_post(receiver, EVC_LANE_QUEUE_LOW, 1));
		EXPECT_OK(suite_post(receiver, EVC_LANE_QUEUE_LOW, 1));
	}
	EXPECT_OK(evc_mailbox_pump(nested.receivers[0].mailbox, 1));
	EXPECT_EQUAL(nested.depth, 3, "handlers");
	EXPECT_EQUAL(nested.refused, 3 * 3, "refused");
	evc_router_destroy(nested.router);
	for (unsigned i = 0; i < 3; i++)
		evc_mailbox_release(nested.receivers[i].mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 a dispatch says what became of its events at each receiver", outcomes },
	{ "D4 a dispatch says of each receiver what became of its events there", outcomes_of_each },
	{ "a latest-only event has no place in a bounded mailbox", latest_has_no_place },
	{ "an unbounded subscription of a bounded mailbox loses nothing and takes no place", unbounded_subscription },
	{ "D4 what is posted by hand for an unbounded subscription takes no place either", unbounded_by_hand },
	{ "D7 a handler's posts to its own full mailbox are refused at once", own_posts },
	{ "D7 so are posts to it by a handler of a mailbox that it pumps", nested_posts },
};
SUITE_GROUP(suite_bound_outcomes, tests);
#endif
