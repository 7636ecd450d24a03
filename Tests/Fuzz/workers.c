/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A shared mailbox with workers, and two balancers: one for payloads that own memory, one for bytes. Their receivers are
 * the subscriptions of calls.c.
 */
#include "fuzz.h"

enum { WORKERS = 2, BALANCERS = 2 };

static struct evc_shared_mailbox *shared;
static struct subscription subscriptions[KEYS + 1];
static struct {
	struct evc_worker *made;
	bool batches, is_busy;
} workers[WORKERS];
static struct {
	struct evc_balancer *made;
	/* Where it is a receiver. */
	unsigned router, key;
	uint32_t turn;
} balancers[BALANCERS];

static bool deliver(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	(void)worker;
	return handle(context, payload, envelope, owned);
}

static void make_shared(void)
{
	enum evc_status status;

	if (shared != NULL)
		return;
	if (draw() % 2 == 0)
		status = evc_shared_mailbox_create(&shared);
	else
		status = evc_shared_mailbox_create_bounded(draw() % 8, (enum evc_overflow)(draw() % 5), draw(), &shared);
	CHECK(status == EVC_OK || shared == NULL);
}

static void end_worker(unsigned index)
{
	if (workers[index].made != NULL && !workers[index].is_busy) {
		evc_worker_destroy(workers[index].made);
		workers[index].made = NULL;
	}
}

static void end_shared(void)
{
	for (unsigned key = 1; key <= KEYS; key++) {
		struct subscription *subscription = &subscriptions[key];

		for (unsigned r = 0; subscription->made != NULL && r < ROUTERS; r++)
			if (routers[r] != NULL)
				(void)!evc_router_unsubscribe(routers[r], key, subscription->made);
		if (subscription->is_latest)
			evc_latest_subscription_release(subscription->made);
		*subscription = (struct subscription){ 0 };
	}
	evc_shared_mailbox_release(shared);
	shared = NULL;
}

static void make_subscription(unsigned key)
{
	struct subscription *subscription = &subscriptions[key];
	PADDED(struct evc_shared_subscription_options) options = { .known = {
		.deliver = rarely() ? NULL : deliver,
		.drop = owns(key) ? drop_payload : NULL,
		.finalize = finalize_receiver,
	} };
	struct evc_conflation conflation = { .number = number_of };
	enum evc_status expected = set_size(&options, sizeof(options.known), sizeof(options.known)), status;
	const unsigned kind = draw() % 3;

	if (shared == NULL || subscription->made != NULL)
		return;
	if (expected == EVC_OK && options.known.deliver == NULL)
		expected = EVC_INVALID_ARGUMENT;
	options.known.context = conflation.context = subscription->receiver = make_receiver(key);
	status = kind == 0   ? evc_shared_mailbox_add_subscription(shared, &options.known, &subscription->made)
		 : kind == 1 ? evc_shared_mailbox_add_latest_subscription(shared, &options.known, &subscription->made)
			     : evc_shared_mailbox_add_conflated_subscription(shared, &options.known, &conflation,
									     &subscription->made);
	CHECK(is_status(status, expected));
	subscription->is_latest = status == EVC_OK && kind != 0;
	if (status != EVC_OK) {
		forget_receiver(subscription->receiver);
		*subscription = (struct subscription){ 0 };
	}
}

static void make_worker(unsigned index)
{
	PADDED(struct evc_mailbox_options) options = { .known = {
		.strategy = (enum evc_wait_strategy)(draw() % 5),
		.overflow = (enum evc_overflow)(draw() % 5),
		.capacity = draw() % 8 == 0 ? draw() % 8 : 0,
		.block_ns = draw(),
		.batches = draw() % 2 == 0,
	} };
	enum evc_status expected = set_size(&options, offsetof(struct evc_mailbox_options, clock), sizeof(options.known)), status;

	if (expected == EVC_OK && options.known.capacity != 0)
		expected = EVC_INVALID_ARGUMENT;

	if (shared == NULL || workers[index].made != NULL)
		return;
	status = evc_worker_create(shared, &options.known, &workers[index].made);
	CHECK(expected == EVC_OK || is_status(status, expected));
	workers[index].batches = options.known.batches;
	if (status == EVC_OK && draw() % 4 == 0)
		evc_worker_hold(workers[index].made);
}

static void work(unsigned index)
{
	struct evc_worker *worker = workers[index].made;
	struct evc_envelope *envelope;

	if (worker == NULL || workers[index].is_busy)
		return;
	if (draw() % 4 == 0)
		evc_worker_admit(worker);
	workers[index].is_busy = true;
	switch (draw() % 4) {
	case 0:
		(void)evc_worker_wait(worker, draw());
		break;
	case 1:
		if (!workers[index].batches && evc_worker_take(worker, &envelope) == EVC_OK)
			evc_worker_recycle(worker, envelope, false);
		break;
	default:
		for (unsigned i = draw() % 8; i > 0 && evc_worker_poll(worker) == EVC_OK; i--)
			;
	}
	workers[index].is_busy = false;
}

static uint32_t choose(void *context, const struct evc_balancer_choice *choice)
{
	(void)context;
	CHECK(choice->count >= 2);
	for (uint32_t i = 0; i < choice->count; i++) {
		const struct evc_load *load = evc_balancer_choice_load(choice, i);

		CHECK(evc_load_promised(load) < 1u << 20 && evc_load_lost(load) < 1u << 20);
	}
	(void)evc_envelope_lane(choice->envelope);
	return draw();
}

static void make_balancer(unsigned index)
{
	const struct evc_clock clock = { &stepped, rarely() ? NULL : read_time };
	PADDED(struct evc_balancer_options) options = { .known = {
		.choose = draw() % 2 == 0 ? choose : NULL,
		.drop = index == 0 ? drop_payload : NULL,
		.turn = draw() % 2 == 0 ? &balancers[index].turn : NULL,
		.clock = draw() % 2 == 0 ? &clock : NULL,
	} };
	enum evc_status expected = set_size(&options, sizeof(options.known), sizeof(options.known));

	if (balancers[index].made != NULL)
		return;
	if (expected == EVC_OK && options.known.clock != NULL && clock.now == NULL)
		expected = EVC_INVALID_ARGUMENT;
	balancers[index].turn = draw() % 2 == 0 ? UINT32_MAX : draw();
	CHECK(is_status(evc_balancer_create(&options.known, &balancers[index].made), expected));
	balancers[index].key = 0;
}

static void end_balancer(unsigned index)
{
	if (balancers[index].made != NULL && balancers[index].key != 0 && routers[balancers[index].router] != NULL)
		(void)!evc_router_unsubscribe(routers[balancers[index].router], balancers[index].key,
					      evc_balancer_subscription(balancers[index].made));
	if (balancers[index].made != NULL) {
		evc_balancer_retain(balancers[index].made);
		evc_balancer_release(balancers[index].made);
	}
	evc_balancer_release(balancers[index].made);
	balancers[index].made = NULL;
}

/* Makes and subscribes it, changes its receivers, ends the promises to one of them, or dispatches to it. */
static void use_balancer(unsigned index)
{
	struct evc_balancer *balancer = balancers[index].made;
	const unsigned key = 1 + draw() % OWNING_KEYS + index * OWNING_KEYS, member = draw() % MAILBOXES;
	const struct subscription *subscription = &mailboxes[member].subscriptions[key];
	uint32_t count;

	if (balancer == NULL) {
		make_balancer(index);
		return;
	}
	if (balancers[index].key == 0) {
		balancers[index].router = draw() % ROUTERS;
		balancers[index].key = key;
		CHECK(evc_router_subscribe(router(balancers[index].router), key, evc_balancer_subscription(balancer), draw(),
					   draw() % 2 == 0) == EVC_OK);
	}
	count = evc_balancer_count(balancer);
	switch (draw() % 8) {
	case 0:
		if (subscription->made != NULL)
			CHECK(evc_balancer_remove(balancer, subscription->made) == EVC_OK
				      ? evc_balancer_count(balancer) + 1 == count
				      : evc_balancer_count(balancer) == count);
		break;
	case 1:
		if (subscription->made != NULL && !subscription->receiver->is_retired && rarely()) {
			(void)evc_load_retire(&subscription->receiver->load);
			subscription->receiver->is_retired = true;
		}
		break;
	case 2:
		if (rarely()) {
			evc_balancer_remove_all(balancer);
			CHECK(evc_balancer_count(balancer) == 0);
			break;
		}
		/* Fallthrough. */
	case 3:
	case 4:
		if (receiver_of(member, key)->made != NULL)
			CHECK(is_status(evc_balancer_add(balancer, subscription->made, draw(), draw() % 2 == 0,
							 &subscription->receiver->load),
					EVC_OK));
		break;
	default:
		if (routers[balancers[index].router] != NULL)
			dispatch(routers[balancers[index].router], balancers[index].key, draw() % 2 == 0);
	}
	CHECK(evc_balancer_refused(balancer) < 1u << 20 && evc_balancer_dropped(balancer) < 1u << 20);
}

void call_workers(unsigned choice)
{
	const unsigned index = draw() % WORKERS, key = some_key(), r = draw() % ROUTERS;
	struct evc_mailbox_statistics statistics;
	uint64_t depths[EVC_LANE_COUNT];

	if (draw() % 16 == 0)
		lack_memory(draw());
	switch (choice) {
	case 0:
		end_worker(index);
		break;
	case 1:
		if (rarely())
			end_shared();
		break;
	case 2:
		if (rarely())
			end_balancer(index);
		break;
	case 3:
		make_worker(index);
		work(index);
		break;
	case 4:
	case 5:
		use_balancer(index);
		break;
	case 6:
		make_shared();
		make_subscription(key);
		if (subscriptions[key].made != NULL)
			CHECK(evc_router_subscribe(router(r), key, subscriptions[key].made, draw(), draw() % 2 == 0) == EVC_OK);
		break;
	default:
		if (shared != NULL) {
			evc_shared_mailbox_depths(shared, depths);
			evc_shared_mailbox_read_statistics(shared, &statistics);
			CHECK(statistics.taken < 1u << 20 && statistics.waiting < 1u << 20);
			if (rarely())
				(draw() % 2 == 0 ? evc_shared_mailbox_close : evc_shared_mailbox_close_when_empty)(shared);
			else if (rarely())
				evc_shared_mailbox_drop(shared);
		}
		if (workers[index].made != NULL && rarely())
			(draw() % 2 == 0 ? evc_mailbox_close : evc_mailbox_interrupt)(evc_worker_mailbox(workers[index].made));
	}
	have_memory();
}

void end_workers(void)
{
	for (unsigned i = 0; i < WORKERS; i++)
		end_worker(i);
	for (unsigned i = 0; i < BALANCERS; i++)
		end_balancer(i);
	end_shared();
}
