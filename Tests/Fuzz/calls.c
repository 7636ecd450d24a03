/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Sequences of calls of the C interface, with right and wrong arguments, chosen by a fuzzer. Handlers call it, too.
 *
 * What must hold: no sanitizer finds anything; each payload that owns memory is ended exactly once; what a mailbox
 * counts adds up; and after the last release evc_shutdown() finds that nothing is left.
 *
 * Payloads of the keys 1 to 3 own a block of memory, those of the keys 4 to 6 are bytes of several sizes.
 */
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

enum { MAILBOXES = 3, SUBSCRIPTIONS = 4, ROUTERS = 2, KEYS = 6, OWNING_KEYS = 3 };

struct subscription {
	struct evc_subscription *made;
	bool is_latest;
};
static struct {
	struct evc_mailbox *made;
	bool batches;
	/* By key. */
	struct subscription subscriptions[KEYS + 1];
} mailboxes[MAILBOXES];
static struct evc_router *routers[ROUTERS];
/* Payloads with memory: made, and ended. */
static size_t made, ended;
static unsigned depth;

static const uint8_t *input;
static size_t left;

static unsigned draw(void)
{
	if (left == 0)
		return 0;
	left--;
	return *input++;
}

static const size_t sizes[KEYS + 1] = { 0, sizeof(void *), sizeof(void *), sizeof(void *), 8, 24, 100 };

static bool owns(unsigned key)
{
	return key <= OWNING_KEYS;
}

static void *make_payload(void)
{
	unsigned *block = malloc(sizeof(*block));

	CHECK(block != NULL);
	*block = draw();
	made++;
	return block;
}

static void call(unsigned choice);

static void drop(void *context, void *payload)
{
	void *block;

	(void)context;
	memcpy(&block, payload, sizeof(block));
	free(block);
	ended++;
}

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	const bool moves = owned && context != NULL && draw() % 2 == 0;

	(void)evc_envelope_lane(envelope);
	if (moves)
		drop(NULL, payload);
	/* D7. A handler neither ends what runs it nor pumps. */
	if (depth < 3 && left > 0) {
		depth++;
		call(6 + draw() % 8);
		depth--;
	}
	return moves;
}

static uint64_t number(void *context, const void *payload)
{
	const unsigned *block;

	if (context == NULL)
		return *(const unsigned char *)payload;
	memcpy(&block, payload, sizeof(block));
	return *block;
}

/* Arguments, wrong now and then. */

static enum evc_lane lane(void)
{
	const unsigned drawn = draw();

	return (enum evc_lane)(drawn < 250 ? drawn % EVC_LANE_COUNT : drawn);
}

static unsigned some_key(void)
{
	return 1 + draw() % KEYS;
}

static void make_mailbox(unsigned index)
{
	const unsigned drawn = draw();
	/* A size that is too large has memory behind it. */
	union {
		unsigned char bytes[256];
		struct evc_mailbox_options known;
	} options = { .bytes = { 0 } };
	enum evc_status status;

	options.known = (struct evc_mailbox_options){
		.size = drawn < 250 ? sizeof(options.known) : drawn,
		.strategy = (enum evc_wait_strategy)(draw() % 5),
		.overflow = (enum evc_overflow)(draw() % 5),
		.capacity = draw() % 8,
		.block_ns = draw(),
		.batches = draw() % 2 == 0,
		.polled = draw() % 4 == 0,
	};
	if (mailboxes[index].made != NULL)
		return;
	status = evc_mailbox_create(&options.known, &mailboxes[index].made);
	CHECK(status == EVC_OK || mailboxes[index].made == NULL);
	mailboxes[index].batches = options.known.batches;
}

static void end_mailbox(unsigned index)
{
	if (mailboxes[index].made == NULL)
		return;
	for (unsigned key = 1; key <= KEYS; key++) {
		struct subscription *subscription = &mailboxes[index].subscriptions[key];

		for (unsigned r = 0; subscription->made != NULL && r < ROUTERS; r++)
			if (routers[r] != NULL)
				(void)evc_router_unsubscribe(routers[r], key, subscription->made);
		if (subscription->is_latest)
			evc_latest_subscription_release(subscription->made);
		*subscription = (struct subscription){ 0 };
	}
	evc_mailbox_release(mailboxes[index].made);
	mailboxes[index].made = NULL;
}

static void make_subscription(unsigned index, unsigned key)
{
	struct subscription *subscription = &mailboxes[index].subscriptions[key];
	struct evc_subscription_options options = {
		.size = sizeof(options),
		.context = owns(key) ? &mailboxes : NULL,
		.deliver = draw() < 250 ? deliver : NULL,
		.drop = owns(key) ? drop : NULL,
		.unbounded = draw() % 8 == 0,
	};
	const struct evc_conflation conflation = { .context = options.context, .number = number };
	const unsigned kind = draw() % 3;
	enum evc_status status;

	if (mailboxes[index].made == NULL || subscription->made != NULL)
		return;
	status = kind == 0   ? evc_mailbox_add_subscription(mailboxes[index].made, &options, &subscription->made)
		 : kind == 1 ? evc_mailbox_add_latest_subscription(mailboxes[index].made, &options, &subscription->made)
			     : evc_mailbox_add_conflated_subscription(mailboxes[index].made, &options, &conflation,
								      &subscription->made);
	CHECK((status == EVC_OK) == (options.deliver != NULL));
	subscription->is_latest = status == EVC_OK && kind != 0;
}

static void check_mailbox(unsigned index)
{
	struct evc_mailbox_statistics statistics;
	uint64_t depths[EVC_LANE_COUNT], waiting = 0;

	if (mailboxes[index].made == NULL)
		return;
	evc_mailbox_depths(mailboxes[index].made, depths);
	evc_mailbox_read_statistics(mailboxes[index].made, &statistics);
	for (unsigned i = 0; i < EVC_LANE_COUNT; i++)
		waiting += depths[i];
	CHECK(waiting < 1u << 20 && statistics.taken < 1u << 20 && statistics.dropped < 1u << 20);
}

static void dispatch(struct evc_router *router, unsigned key, bool together)
{
	const unsigned drawn = draw(), count = drawn < 250 ? 1 + drawn % 8 : drawn - 250;
	struct evc_dispatch dispatch;
	struct evc_envelope *envelope;
	struct evc_dispatch_outcome outcome;
	enum evc_status status = (together ? evc_dispatch_begin_batch : evc_dispatch_begin)(
		router, key, lane(), sizes[key], draw() < 250 ? 8 : 3, count, &dispatch);

	if (status != EVC_OK)
		return;
	if (draw() % 16 == 0) {
		evc_dispatch_abandon(&dispatch);
		return;
	}
	envelope = dispatch.first;
	for (uint32_t i = 0; i < dispatch.payloads; i++) {
		unsigned char *place = together && dispatch.array != NULL
					       ? (unsigned char *)dispatch.array + i * ((sizes[key] + 7) / 8 * 8)
					       : evc_envelope_payload(envelope);

		if (owns(key)) {
			void *block = make_payload();

			memcpy(place, &block, sizeof(block));
		} else {
			memset(place, (int)draw(), sizes[key]);
		}
		if (!(together && dispatch.array != NULL))
			envelope = evc_dispatch_next(envelope);
	}
	if (draw() % 2 == 0) {
		(void)evc_dispatch_commit(&dispatch);
		return;
	}
	CHECK(evc_dispatch_commit_reporting(&dispatch, &outcome) == outcome.accepted + outcome.dropped);
}

static void dispatch_bytes(struct evc_router *router, unsigned key, unsigned way)
{
	unsigned char bytes[100];
	uint32_t receivers;
	void *place;

	if (owns(key))
		key += OWNING_KEYS;
	memset(bytes, (int)draw(), sizeof(bytes));
	switch (way) {
	case 0:
		(void)evc_dispatch_bytes(router, draw() < 250 ? key : 0, lane(), bytes, sizes[key], 8, &receivers);
		break;
	case 1:
		place = evc_dispatch_begin_one(router, key, lane(), sizes[key], 8);
		if (place != NULL) {
			memcpy(place, bytes, sizes[key]);
			(void)evc_dispatch_commit_one(place);
		}
		break;
	default:
		CHECK(evc_reserve(draw() % 64) == EVC_OK);
		(void)evc_try_dispatch(router, key, lane(), bytes, sizes[key], 8, NULL);
	}
}

static void take(unsigned index)
{
	struct evc_mailbox *mailbox = mailboxes[index].made;
	struct evc_envelope *envelope;
	uint64_t handled;

	if (mailbox == NULL)
		return;
	switch (draw() % 4) {
	case 0:
		(void)evc_mailbox_pump(mailbox, draw());
		break;
	case 1:
		(void)evc_mailbox_pump_until(mailbox, 1 + draw(), draw() % 2 == 0 ? 0 : EVC_FOREVER, &handled);
		break;
	case 2:
		(void)evc_mailbox_wait(mailbox, draw());
		break;
	default:
		if (evc_mailbox_take(mailbox, &envelope) == EVC_OK) {
			CHECK(!mailboxes[index].batches);
			evc_mailbox_recycle(mailbox, envelope, false);
		}
	}
}

/* 0 to 5: what a handler must not call. */
static void call(unsigned choice)
{
	const unsigned index = draw() % MAILBOXES, r = draw() % ROUTERS, key = some_key();
	struct evc_mailbox *mailbox = mailboxes[index].made, *before;
	struct evc_subscription *subscription = mailboxes[index].subscriptions[key].made;

	switch (choice) {
	case 0:
		end_mailbox(index);
		break;
	case 1:
		evc_router_destroy(routers[r]);
		routers[r] = NULL;
		break;
	case 2:
	case 3:
		take(index);
		break;
	case 4:
		(void)evc_reclaim(draw());
		evc_pool_trim();
		break;
	case 5:
		if (mailbox == NULL)
			break;
		before = evc_mailbox_enter(mailbox);
		for (unsigned i = draw() % 8; i > 0 && routers[r] != NULL; i--)
			dispatch_bytes(routers[r], key, draw() % 3);
		evc_mailbox_leave(before);
		break;
	case 6:
		make_mailbox(index);
		break;
	case 7:
		make_subscription(index, key);
		break;
	case 8:
		if (routers[r] == NULL)
			CHECK(evc_router_create(&routers[r]) == EVC_OK);
		break;
	case 9:
		if (routers[r] != NULL && subscription != NULL)
			CHECK(evc_router_subscribe(routers[r], key, subscription, draw(), draw() % 2 == 0) == EVC_OK);
		break;
	case 10:
		if (routers[r] != NULL)
			(void)evc_router_unsubscribe(routers[r], key, subscription);
		break;
	case 11:
		if (mailbox != NULL && draw() % 4 == 0)
			(draw() % 2 == 0 ? evc_mailbox_close : evc_mailbox_close_when_empty)(mailbox);
		else if (mailbox != NULL)
			evc_mailbox_interrupt(mailbox);
		break;
	case 12:
		if (routers[r] != NULL)
			dispatch(routers[r], key, draw() % 2 == 0);
		break;
	case 13:
		if (routers[r] != NULL)
			dispatch_bytes(routers[r], key, draw() % 3);
		break;
	default:
		check_mailbox(index);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = data;
	left = size;
	made = ended = 0;
	while (left > 0)
		call(draw() % 15);
	for (unsigned i = 0; i < MAILBOXES; i++)
		end_mailbox(i);
	for (unsigned i = 0; i < ROUTERS; i++) {
		evc_router_destroy(routers[i]);
		routers[i] = NULL;
	}
	CHECK(evc_shutdown() == EVC_OK);
	CHECK(ended == made);
	return 0;
}
