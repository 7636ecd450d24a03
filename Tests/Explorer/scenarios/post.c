/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "post.h"

struct tally tally;

UNSEEN void tally_handled(const struct event *event)
{
	tally.handled[event->number]++;
	tally.handled_at[event->number] = ++tally.moments;
}

UNSEEN static void tally_dropped(const struct event *event)
{
	tally.dropped[event->number]++;
}

UNSEEN static void tally_accepted(uint32_t number, uint32_t receivers)
{
	tally.accepted[number] += receivers;
}

UNSEEN uint32_t tally_count_handled(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < EVENTS; i++)
		count += tally.handled[i];
	return count;
}

UNSEEN bool tally_was_handled(uint32_t number)
{
	return tally.handled[number] > 0;
}

UNSEEN void tally_check_once(uint32_t first, uint32_t count)
{
	/* A refused event is dropped as well, by the dispatch itself, if there was a receiver. */
	for (uint32_t i = first; i < first + count; i++)
		if (tally.accepted[i] > 0
			    ? tally.handled[i] + tally.dropped[i] != tally.accepted[i]
			    : tally.handled[i] > 0 || tally.dropped[i] > 1)
			explorer_fail("event %u: accepted %u times, handled %u, dropped %u", i,
				      tally.accepted[i], tally.handled[i], tally.dropped[i]);
}

UNSEEN void tally_check_order(uint32_t first, uint32_t count)
{
	for (uint32_t i = first + 1; i < first + count; i++)
		if (tally.handled[i] > 0 && tally.handled_at[i] < tally.handled_at[i - 1])
			explorer_fail("event %u was handled before event %u (D2)", i, i - 1);
}

uint32_t post_to(struct evc_router *router, uint64_t key, uint32_t number, enum evc_lane lane)
{
	struct event event = { number, number };
	uint32_t receivers = 0;

	CHECK(evc_dispatch_bytes(router, key, lane, &event, sizeof(event), _Alignof(struct event),
				 &receivers) == EVC_OK);
	tally_accepted(number, receivers);
	return receivers;
}

uint32_t try_post(struct evc_router *router, uint32_t number, enum evc_lane lane)
{
	struct event event = { number, number };
	uint32_t receivers = 0;

	CHECK(evc_try_dispatch(router, KEY, lane, &event, sizeof(event), _Alignof(struct event), &receivers) == EVC_OK);
	tally_accepted(number, receivers);
	return receivers;
}

uint32_t post(struct evc_router *router, uint32_t number, enum evc_lane lane)
{
	return post_to(router, KEY, number, lane);
}

void post_together(struct evc_router *router, uint32_t first, uint32_t count, enum evc_lane lane)
{
	struct evc_dispatch dispatch;
	struct evc_envelope *envelope;
	uint32_t number = first;

	CHECK(evc_dispatch_begin(router, KEY, lane, sizeof(struct event), _Alignof(struct event), count,
				 &dispatch) == EVC_OK);
	envelope = dispatch.first;
	for (uint32_t i = 0; i < dispatch.payloads; i++, envelope = evc_dispatch_next(envelope))
		*(struct event *)evc_envelope_payload(envelope) =
			(struct event){ first + i % count, first + i % count };
	/* All of them or none: there is one receiver at most. */
	for (uint32_t accepted = evc_dispatch_commit(&dispatch); number < first + count; number++)
		tally_accepted(number, accepted / count);
}

void *produce(void *opaque)
{
	const struct producer *producer = opaque;

	for (uint32_t i = 0; i < producer->count; i++)
		(void)post(producer->router, producer->first + i, producer->lanes[i % 4]);
	return NULL;
}

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct event *event = payload;

	(void)context;
	(void)envelope;
	CHECK(event->number == event->again && event->number < EVENTS);
	tally_handled(event);
	if (owned)
		event->number = event->again = EVENTS;
	return owned;
}

static void drop(void *context, void *payload)
{
	struct event *event = payload;

	(void)context;
	CHECK(event->number == event->again && event->number < EVENTS);
	tally_dropped(event);
}

struct evc_subscription_options tally_options(void)
{
	return (struct evc_subscription_options){ .size = sizeof(struct evc_subscription_options), .deliver = deliver, .drop = drop };
}

void subscribe(struct evc_router *router, struct evc_subscription *subscription)
{
	CHECK(evc_router_subscribe(router, KEY, subscription, 1, false) == EVC_OK);
}

struct evc_subscription *listen(struct evc_router *router, struct evc_mailbox *mailbox)
{
	struct evc_subscription_options options = tally_options();
	struct evc_subscription *subscription;

	CHECK(evc_mailbox_add_subscription(mailbox, &options, &subscription) == EVC_OK);
	subscribe(router, subscription);
	return subscription;
}

struct evc_router *make_router(void)
{
	struct evc_router *router;

	CHECK(evc_router_create(&router) == EVC_OK);
	return router;
}

struct evc_mailbox *make_mailbox(const struct evc_mailbox_options *options)
{
	struct evc_mailbox *mailbox;

	CHECK(evc_mailbox_create(options, &mailbox) == EVC_OK);
	return mailbox;
}

int take_one(struct evc_mailbox *mailbox)
{
	struct evc_envelope *envelope;
	struct event event;

	if (evc_mailbox_take(mailbox, &envelope) != EVC_OK)
		return -1;
	event = *(struct event *)evc_envelope_payload(envelope);
	CHECK(event.number == event.again && event.number < EVENTS);
	tally_handled(&event);
	evc_mailbox_recycle(mailbox, envelope, true);
	return (int)event.number;
}

void take_until(struct evc_mailbox *mailbox, uint32_t count)
{
	while (tally_count_handled() < count)
		if (take_one(mailbox) < 0)
			(void)evc_mailbox_wait(mailbox, EVC_FOREVER);
}
