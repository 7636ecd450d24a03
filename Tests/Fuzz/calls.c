/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Sequences of calls of the C interface, with right and wrong arguments, chosen by a fuzzer. Handlers call it, too. Here:
 * mailboxes and routers. The other files: what calls are made of, workers, timers, trees, a router beside a model, and
 * what the process has.
 *
 * What must hold: no sanitizer finds anything; each payload that owns memory is ended exactly once, and each context;
 * what a mailbox counts adds up; and after the last release evc_shutdown() finds that nothing is left.
 */
#include "fuzz.h"

struct mailbox mailboxes[MAILBOXES];
struct evc_router *routers[ROUTERS];
/* Of handlers that call each other. */
static unsigned depth;

static void call(unsigned choice);

bool handle(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	const struct receiver *receiver = context;
	const bool moves = owned && owns(receiver->key) && draw() % 2 == 0;

	CHECK(!receiver->is_finalized && (unsigned)evc_envelope_lane(envelope) < EVC_LANE_COUNT);
	if (moves)
		drop_payload(NULL, payload);
	act();
	return moves;
}

struct evc_router *router(unsigned index)
{
	/* Callers count on what they do next. */
	have_memory();
	if (routers[index] == NULL)
		CHECK(evc_router_create(&routers[index]) == EVC_OK);
	return routers[index];
}

static void make_mailbox(unsigned index)
{
	const struct evc_clock clock = { &stepped, rarely() ? NULL : read_time };
	PADDED(struct evc_mailbox_options) options = { .known = {
		.strategy = (enum evc_wait_strategy)(draw() % 5),
		.overflow = (enum evc_overflow)(draw() % 5),
		.capacity = draw() % 2 == 0 ? 0 : draw() % 8,
		.block_ns = draw(),
		.batches = draw() % 2 == 0,
		.polled = draw() % 4 == 0,
		.clock = draw() % 2 == 0 ? &clock : NULL,
	} };
	enum evc_status expected = set_size(&options, offsetof(struct evc_mailbox_options, clock), sizeof(options.known)), status;

	if (mailboxes[index].made != NULL)
		return;
	status = evc_mailbox_create(&options.known, &mailboxes[index].made);
	CHECK(expected == EVC_OK ? status == EVC_OK || mailboxes[index].made == NULL
				 : is_status(status, expected) || status == EVC_INVALID_ARGUMENT);
	mailboxes[index].batches = options.known.batches;
}

static void end_mailbox(unsigned index)
{
	if (mailboxes[index].made == NULL || mailboxes[index].is_busy)
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
	PADDED(struct evc_subscription_options) options = { .known = {
		.deliver = rarely() ? NULL : handle,
		.drop = owns(key) ? drop_payload : NULL,
		.finalize = finalize_receiver,
		.unbounded = draw() % 8 == 0,
	} };
	struct evc_conflation conflation = { .number = number_of };
	enum evc_status expected = set_size(&options, sizeof(options.known), sizeof(options.known)), status;
	const unsigned kind = draw() % 3;

	if (mailboxes[index].made == NULL || subscription->made != NULL)
		return;
	if (expected == EVC_OK && options.known.deliver == NULL)
		expected = EVC_INVALID_ARGUMENT;
	options.known.context = conflation.context = subscription->receiver = make_receiver(key);
	status = kind == 0   ? evc_mailbox_add_subscription(mailboxes[index].made, &options.known, &subscription->made)
		 : kind == 1 ? evc_mailbox_add_latest_subscription(mailboxes[index].made, &options.known, &subscription->made)
			     : evc_mailbox_add_conflated_subscription(mailboxes[index].made, &options.known, &conflation,
								      &subscription->made);
	CHECK(is_status(status, expected));
	subscription->is_latest = status == EVC_OK && kind != 0;
	if (status != EVC_OK) {
		forget_receiver(subscription->receiver);
		*subscription = (struct subscription){ 0 };
	}
}

const struct subscription *receiver_of(unsigned index, unsigned key)
{
	make_mailbox(index);
	make_subscription(index, key);
	return &mailboxes[index].subscriptions[key];
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

void dispatch(struct evc_router *router, unsigned key, bool together)
{
	const unsigned drawn = draw(), count = drawn < 250 ? 1 + drawn % (drawn < 230 ? 8 : 64) : drawn - 250;
	struct evc_dispatch dispatch;
	struct evc_envelope *envelope;
	struct evc_dispatch_outcome outcome;
	enum evc_status status = (together ? evc_dispatch_begin_batch : evc_dispatch_begin)(
		router, key, some_lane(), sizes[key], draw() < 250 ? 8 : 3, count, &dispatch);

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

		write_payload(place, key);
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
		(void)evc_dispatch_bytes(router, draw() < 250 ? key : 0, some_lane(), bytes, sizes[key], 8, &receivers);
		break;
	case 1:
		place = evc_dispatch_begin_one(router, key, some_lane(), sizes[key], 8);
		if (place != NULL) {
			memcpy(place, bytes, sizes[key]);
			(void)evc_dispatch_commit_one(place);
		}
		break;
	default:
		CHECK(is_status(evc_reserve(draw() % 64), EVC_OK));
		(void)evc_try_dispatch(router, key, some_lane(), bytes, sizes[key], 8, NULL);
	}
}

/* A chain by hand, on one lane or several, by those who may wait and by those who must not. */
static void post(unsigned index, unsigned key)
{
	struct evc_mailbox *mailbox = mailboxes[index].made;
	const struct subscription *subscription = &mailboxes[index].subscriptions[key];
	const bool waits = draw() % 2 == 0;
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope;
	enum evc_status status;

	if (subscription->made == NULL || subscription->is_latest)
		return;
	for (unsigned i = draw() % 4; i > 0; i--) {
		const unsigned alignment = rarely() ? 3 : 8;

		if ((waits ? evc_envelope_create : evc_try_envelope_create)(subscription->made, some_lane(), sizes[key],
									    alignment, &envelope) != EVC_OK)
			continue;
		write_payload(evc_envelope_payload(envelope), key);
		evc_chain_append(&chain, envelope);
	}
	envelope = chain.first;
	status = (waits ? evc_mailbox_post : evc_try_post)(mailbox, &chain);
	CHECK(envelope != NULL || status == EVC_INVALID_ARGUMENT || status == EVC_UNSUPPORTED);
	while (status != EVC_OK && envelope != NULL) {
		struct evc_envelope *next = evc_dispatch_next(envelope);

		evc_envelope_release(envelope, false);
		envelope = next;
	}
}

/* Up to a deadline that has passed, that never comes, or that a clock which each look moves may reach on the way. */
static void take_until(struct evc_mailbox *mailbox)
{
	const uint64_t limit = 1 + draw(), deadlines[] = { 0, EVC_FOREVER, stepped + draw() % 8 };
	uint64_t handled = 0;

	(void)!evc_mailbox_pump_until(mailbox, limit, deadlines[draw() % 3], draw() % 2 == 0 ? &handled : NULL);
	CHECK(handled <= limit);
}

static void take(unsigned index)
{
	struct evc_mailbox *mailbox = mailboxes[index].made;
	struct evc_envelope *envelope;

	if (mailbox == NULL || mailboxes[index].is_busy)
		return;
	mailboxes[index].is_busy = true;
	switch (draw() % 4) {
	case 0:
		(void)!evc_mailbox_pump(mailbox, draw());
		break;
	case 1:
		take_until(mailbox);
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
	mailboxes[index].is_busy = false;
}

/* From 3 on: what a handler may call, too (D7). It does not end the router that it was dispatched by, or the core. */
enum { INSIDE = 3, CHOICES = 15 };

static void call(unsigned choice)
{
	const unsigned index = draw() % MAILBOXES, r = draw() % ROUTERS, key = some_key();
	struct evc_mailbox *mailbox = mailboxes[index].made, *before;
	struct evc_subscription *subscription = mailboxes[index].subscriptions[key].made;

	if (draw() % 16 == 0)
		lack_memory(draw());
	switch (choice) {
	case 0:
		evc_router_destroy(routers[r]);
		routers[r] = NULL;
		break;
	case 1:
		(void)!evc_reclaim(draw());
		evc_pool_trim();
		break;
	case 2:
		if (mailbox == NULL)
			break;
		before = evc_mailbox_enter(mailbox);
		for (unsigned i = draw() % 8; i > 0; i--)
			draw() % 2 == 0 ? dispatch_bytes(router(r), key, draw() % 3) : dispatch(router(r), key, draw() % 2 == 0);
		evc_mailbox_leave(before);
		break;
	case 3:
		end_mailbox(index);
		break;
	case 4:
	case 5:
		take(index);
		break;
	case 6:
		(void)receiver_of(index, key);
		break;
	case 7:
	case 8:
		subscription = receiver_of(index, key)->made;
		if (subscription != NULL)
			CHECK(evc_router_subscribe(router(r), key, subscription, draw(), draw() % 2 == 0) == EVC_OK);
		break;
	case 9:
		if (routers[r] != NULL)
			(void)!evc_router_unsubscribe(routers[r], key, subscription);
		break;
	case 10:
		if (mailbox != NULL && draw() % 4 == 0)
			(draw() % 2 == 0 ? evc_mailbox_close : evc_mailbox_close_when_empty)(mailbox);
		else if (mailbox != NULL)
			evc_mailbox_interrupt(mailbox);
		break;
	case 11:
		dispatch(router(r), key, draw() % 2 == 0);
		break;
	case 12:
		dispatch_bytes(router(r), key, draw() % 3);
		break;
	case 13:
		post(index, key);
		break;
	default:
		check_mailbox(index);
		if (rarely())
			call_with_null();
	}
	have_memory();
}

void act(void)
{
	if (depth >= 3 || !has_input())
		return;
	have_memory();
	depth++;
	switch (draw() % 8) {
	case 0:
		call_workers(WORKER_INSIDE + draw() % (WORKER_CHOICES - WORKER_INSIDE));
		break;
	case 1:
		call_timers(draw() % TIMER_CHOICES);
		break;
	case 2:
	case 3:
		call_nodes(draw() % NODE_CHOICES);
		break;
	case 4:
		call_routes(draw() % ROUTE_CHOICES);
		break;
	case 5:
		call_whole(draw() % WHOLE_CHOICES, true);
		break;
	default:
		call(INSIDE + draw() % (CHOICES - INSIDE));
	}
	depth--;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin_input(data, size);
	begin_memory();
	while (has_input())
		switch (draw() % 10) {
		case 0:
		case 1:
			call_workers(draw() % WORKER_CHOICES);
			break;
		case 2:
			call_timers(draw() % TIMER_CHOICES);
			break;
		case 3:
			call_nodes(draw() % NODE_CHOICES);
			break;
		case 4:
		case 5:
			call_routes(draw() % ROUTE_CHOICES);
			break;
		case 6:
			call_whole(draw() % WHOLE_CHOICES, false);
			break;
		default:
			call(draw() % CHOICES);
		}
	end_routes();
	end_timers();
	end_nodes();
	end_workers();
	for (unsigned i = 0; i < MAILBOXES; i++)
		end_mailbox(i);
	for (unsigned i = 0; i < ROUTERS; i++) {
		evc_router_destroy(routers[i]);
		routers[i] = NULL;
	}
	end_whole();
	end_input();
	return 0;
}
