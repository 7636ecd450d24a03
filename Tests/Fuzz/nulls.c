/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* What a function that returns a status says of an object that is NULL; and what ends one does nothing (eventcore.h). */
#include "fuzz.h"

static bool handle_shared(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	(void)worker;
	return handle(context, payload, envelope, owned);
}

void call_with_null(void)
{
	const struct evc_subscription_options subscription = { .size = sizeof(subscription), .deliver = handle };
	const struct evc_shared_subscription_options shared = { .size = sizeof(shared), .deliver = handle_shared };
	const struct evc_conflation conflation = { .number = number_of };
	const struct evc_clock clock = { NULL, NULL };
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_subscription *made_subscription;
	struct evc_envelope *envelope;
	struct evc_dispatch dispatch;
	struct evc_worker *worker;
	struct evc_thread *thread;
	struct evc_load load = { 0 };
	struct evc_walk *walk;
	const enum evc_status all[] = {
		evc_mailbox_add_subscription(NULL, &subscription, &made_subscription),
		evc_mailbox_add_latest_subscription(NULL, &subscription, &made_subscription),
		evc_mailbox_add_conflated_subscription(NULL, &subscription, &conflation, &made_subscription),
		evc_shared_mailbox_add_subscription(NULL, &shared, &made_subscription),
		evc_shared_mailbox_add_latest_subscription(NULL, &shared, &made_subscription),
		evc_shared_mailbox_add_conflated_subscription(NULL, &shared, &conflation, &made_subscription),
		evc_mailbox_post(NULL, &chain),
		evc_mailbox_take(NULL, &envelope),
		evc_mailbox_wait(NULL, 0),
		evc_mailbox_run(NULL),
		evc_mailbox_pump(NULL, 1),
		evc_mailbox_pump_until(NULL, 1, 0, NULL),
		evc_router_subscribe(NULL, 1, NULL, 0, false),
		evc_router_subscribe_raising(NULL, 1, NULL, 0, false, NULL, 0),
		evc_router_unsubscribe(NULL, 1, NULL),
		evc_router_set_clock(NULL, &clock),
		evc_router_set_observer(NULL, NULL),
		evc_dispatch_begin(NULL, 1, EVC_LANE_QUEUE_LOW, 8, 8, 1, &dispatch),
		evc_dispatch_begin_batch(NULL, 1, EVC_LANE_QUEUE_LOW, 8, 8, 1, &dispatch),
		evc_dispatch_bytes(NULL, 1, EVC_LANE_QUEUE_LOW, "", 0, 1, NULL),
		evc_try_dispatch(NULL, 1, EVC_LANE_QUEUE_LOW, "", 0, 1, NULL),
		evc_envelope_create(NULL, EVC_LANE_QUEUE_LOW, 8, 8, &envelope),
		evc_try_envelope_create(NULL, EVC_LANE_QUEUE_LOW, 8, 8, &envelope),
		evc_try_post(NULL, &chain),
		evc_shared_mailbox_post(NULL, &chain),
		evc_worker_create(NULL, NULL, &worker),
		evc_worker_take(NULL, &envelope),
		evc_worker_wait(NULL, 0),
		evc_worker_run(NULL),
		evc_worker_poll(NULL),
		evc_thread_start(NULL, NULL, &thread),
		evc_thread_start_worker(NULL, NULL, &thread),
		evc_thread_join(NULL),
		evc_thread_detach(NULL),
		evc_parker_wait(NULL, 0, 0),
		evc_balancer_add(NULL, NULL, 0, false, &load),
		evc_balancer_remove(NULL, NULL),
		evc_scheduler_add(NULL, 0, NULL, NULL, NULL),
		evc_scheduler_cancel(NULL, 0),
		evc_scheduler_join(NULL),
		evc_node_attach(NULL, NULL, NULL),
		evc_node_add_handler(NULL, 1, EVC_HANDLER_RAISE, NULL, NULL),
		evc_handler_remove(NULL),
		evc_handler_remove_and_wait(NULL),
		evc_walk_begin(NULL, 1, EVC_WALK_RAISE, &walk),
		evc_walk_next(NULL),
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		CHECK(all[i] == EVC_INVALID_ARGUMENT);
	evc_mailbox_release(NULL);
	evc_shared_mailbox_release(NULL);
	evc_worker_destroy(NULL);
	evc_latest_subscription_release(NULL);
	evc_router_destroy(NULL);
	evc_envelope_release(NULL, true);
	evc_dispatch_abandon(NULL);
	evc_balancer_remove_all(NULL);
	evc_balancer_release(NULL);
	evc_scheduler_release(NULL);
	(void)evc_node_end(NULL);
	evc_handler_drop(NULL);
	evc_walk_end(NULL);
	evc_parker_destroy(NULL);
}
