/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* D12: a wrong argument returns a status, changes nothing, and the caller keeps what it passed. */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include "platform/options.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool handle(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	return false;
}


static const char *mailboxes(void)
{
	struct evc_mailbox_options strategy = { .size = sizeof(strategy), .strategy = (enum evc_wait_strategy)17 };
	struct evc_parker_ops no_calls = { NULL, NULL, NULL, NULL };
	struct evc_mailbox_options parker = { .size = sizeof(parker), .parker = &no_calls };
	struct evc_subscription_options deaf = { .size = sizeof(deaf) };
	struct evc_subscription_options fine = { .size = sizeof(fine), .deliver = handle };
	struct evc_subscription *subscription;
	struct evc_chain nothing = EVC_CHAIN_EMPTY;
	struct evc_mailbox *mailbox;
	struct evc_envelope *envelope;

	EXPECT_STATUS(evc_mailbox_create(NULL, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_create(&strategy, &mailbox), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_create(&parker, &mailbox), EVC_INVALID_ARGUMENT);
	EXPECT_OK(evc_mailbox_create(NULL, &mailbox));
	EXPECT_STATUS(evc_mailbox_add_subscription(mailbox, &deaf, &subscription),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_add_subscription(mailbox, NULL, &subscription),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_add_subscription(NULL, &fine, &subscription),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_add_subscription(mailbox, &fine, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_post(mailbox, &nothing), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_take(mailbox, &envelope), EVC_EMPTY);
	EXPECT_STATUS(evc_mailbox_wait(mailbox, 0), EVC_TIMED_OUT);
	EXPECT_STATUS(evc_mailbox_wait(mailbox, 100000), EVC_TIMED_OUT);
	evc_mailbox_release(mailbox);
	return NULL;
}

/*
 * A caller whose headers are older or newer than the library: what an older one lacks is zero, whatever lies behind
 * it in memory; what a newer one sets is refused, and what it leaves at zero is fine.
 */
static const char *options_of_other_versions(void)
{
	struct {
		struct evc_subscription_options known;
		uint64_t newer;
	} future = { .known = { .size = sizeof(future), .deliver = handle } };
	struct evc_mailbox_options options = { .size = sizeof(options) };
	struct evc_thread_options thread_options = { .size = 1 };
	struct evc_scheduler_options scheduler_options = { .size = 8 };
	struct evc_balancer_options balancer_options = { .size = SIZE_MAX };
	struct evc_node_options node_options = { .size = 0 };
	struct evc_subscription *subscription;
	struct evc_scheduler *scheduler;
	struct evc_balancer *balancer;
	struct evc_mailbox *mailbox;
	struct evc_thread *thread;
	struct evc_node *node;

	EXPECT_OK(evc_mailbox_create(&options, &mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(mailbox, &future.known, &subscription));
	future.newer = UINT64_C(1) << 63;
	EXPECT_STATUS(evc_mailbox_add_subscription(mailbox, &future.known, &subscription), EVC_UNSUPPORTED);
	future.known.size = sizeof(future.known) - 1;
	EXPECT_STATUS(evc_mailbox_add_subscription(mailbox, &future.known, &subscription), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_thread_start(&thread_options, mailbox, &thread), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_scheduler_create(&scheduler_options, &scheduler), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_create(&balancer_options, &balancer), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_node_create(&node_options, &node), EVC_INVALID_ARGUMENT);
	evc_mailbox_release(mailbox);
	options.size = 0;
	EXPECT_STATUS(evc_mailbox_create(&options, &mailbox), EVC_INVALID_ARGUMENT);
	return NULL;
}

/* The reader itself, with a structure that has grown from 16 to 24 to 32 bytes. */
static const char *options_that_have_grown(void)
{
	struct { size_t size; uint64_t first, second, third; } passed = { 0, 1, 2, 3 }, own;

	for (size_t size = 0; size <= sizeof(passed); size++) {
		/* No version ends in the middle of a word. */
		enum evc_status expected = size < 16 || size % _Alignof(size_t) != 0 ? EVC_INVALID_ARGUMENT
					   : size > 24				     ? EVC_UNSUPPORTED
										     : EVC_OK;

		/* The library knows 24 bytes. The highest byte of `third` is not 0. */
		passed.size = size;
		passed.third = ~UINT64_C(0);
		own.third = 7;
		EXPECT_STATUS(evc_options_read(&own, 24, &passed, 16), expected);
		if (expected == EVC_OK) {
			EXPECT(own.first == 1 && own.third == 7, "of %zu bytes not what the caller knows was read", size);
			EXPECT(size == 24 ? own.second == 2 : size > 16 || own.second == 0,
			       "of %zu bytes more or less was read", size);
		}
	}
	EXPECT_OK(evc_options_read(&own, 24, NULL, 16));
	EXPECT(own.size == 0 && own.first == 0 && own.second == 0, "no options are not all zero");
	return NULL;
}

static const char *envelopes(void)
{
	struct suite_receiver receiver;
	struct evc_envelope *envelope;

	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	EXPECT_STATUS(evc_envelope_create(NULL, EVC_LANE_STACK_LOW, 1, 1, &envelope),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_envelope_create(receiver.subscription, (enum evc_lane)10, 1, 1, &envelope),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_envelope_create(receiver.subscription, EVC_LANE_STACK_LOW, 1, 3, &envelope),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_envelope_create(receiver.subscription, EVC_LANE_STACK_LOW, 1, 8192,
					  &envelope), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_envelope_create(receiver.subscription, EVC_LANE_STACK_LOW, 1, 1, NULL),
		      EVC_INVALID_ARGUMENT);
#if !defined(SUITE_ADDRESS_SANITIZER) && !defined(SUITE_THREAD_SANITIZER)
	/* The sanitizers end the program at such a size. */
	EXPECT_STATUS(evc_envelope_create(receiver.subscription, EVC_LANE_STACK_LOW, SIZE_MAX / 2, 1,
					  &envelope), EVC_OUT_OF_MEMORY);
#endif
	EXPECT_STATUS(evc_envelope_create(receiver.subscription, EVC_LANE_STACK_LOW, SIZE_MAX, 1,
					  &envelope), EVC_OUT_OF_MEMORY);
	/* Alignment 0 counts as 1; an envelope that was never posted ends with its payload. */
	EXPECT_OK(evc_envelope_create(receiver.subscription, EVC_LANE_STACK_LOW, 100, 0, &envelope));
	evc_envelope_set_time(envelope, 77);
	EXPECT_EQUAL(evc_envelope_time(envelope), 77, "the time that was set");
	memset(evc_envelope_payload(envelope), 1, 100);
	evc_envelope_release(envelope, false);
	EXPECT_EQUAL(receiver.drops, 1, "payloads that ended");
	evc_mailbox_release(receiver.mailbox);
	return NULL;
}

static const char *routers(void)
{
	/* The core owns what a subscription is; its sink is its first member. */
	struct evc_sink *no_sink[16] = { NULL };
	struct suite_receiver receiver;
	struct evc_dispatch dispatch;
	struct evc_router *router;
	struct evc_subscription *s;
	uint64_t value = 0;

	EXPECT_STATUS(evc_router_create(NULL), EVC_INVALID_ARGUMENT);
	EXPECT_OK(evc_router_create(&router));
	EXPECT_NONE(suite_receiver_open(&receiver, NULL));
	s = receiver.subscription;
	EXPECT_STATUS(evc_router_subscribe(NULL, 1, s, 0, false), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_subscribe(router, 0, s, 0, false), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_subscribe(router, 1, NULL, 0, false), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_subscribe(router, 1, (struct evc_subscription *)(void *)no_sink, 0,
					   false), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_unsubscribe(NULL, 1, s), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_unsubscribe(router, 0, s), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_unsubscribe(router, 1, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_unsubscribe(router, 1, s), EVC_NOT_FOUND);
	EXPECT_OK(evc_router_subscribe(router, 1, s, 0, false));
	/* Twice: on a cold and on a warm route, which take different paths. */
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_STATUS(evc_dispatch_begin(NULL, 1, EVC_LANE_STACK_LOW, 8, 8, 1, &dispatch),
			      EVC_INVALID_ARGUMENT);
		EXPECT_STATUS(evc_dispatch_begin(router, 0, EVC_LANE_STACK_LOW, 8, 8, 1, &dispatch),
			      EVC_INVALID_ARGUMENT);
		EXPECT_STATUS(evc_dispatch_begin(router, 1, (enum evc_lane)10, 8, 8, 1, &dispatch),
			      EVC_INVALID_ARGUMENT);
		EXPECT_STATUS(evc_dispatch_begin(router, 1, EVC_LANE_STACK_LOW, 8, 3, 1, &dispatch),
			      EVC_INVALID_ARGUMENT);
		EXPECT_STATUS(evc_dispatch_begin(router, 1, EVC_LANE_STACK_LOW, 8, 8192, 1,
						 &dispatch), EVC_INVALID_ARGUMENT);
		EXPECT_STATUS(evc_dispatch_begin(router, 1, EVC_LANE_STACK_LOW, 8, 8, 0, &dispatch),
			      EVC_INVALID_ARGUMENT);
		EXPECT_STATUS(evc_dispatch_begin(router, 1, EVC_LANE_STACK_LOW, 8, 8,
						 EVC_DISPATCH_MAX + 1, &dispatch),
			      EVC_INVALID_ARGUMENT);
		EXPECT_STATUS(evc_dispatch_begin(router, 1, EVC_LANE_STACK_LOW, 8, 8, 1, NULL),
			      EVC_INVALID_ARGUMENT);
		EXPECT_OK(evc_dispatch_bytes(router, 1, EVC_LANE_STACK_LOW, &value, 8, 8, NULL));
	}
	evc_router_destroy(router);
	evc_mailbox_release(receiver.mailbox);
	EXPECT(suite_settle(), "the callback thread got stuck");
	EXPECT_EQUAL(receiver.drops, 2, "events");
	return NULL;
}

static const char *others(void)
{
	struct evc_allocator half = { NULL, NULL, NULL };
	struct evc_thread *thread;
	struct evc_parker *parker;
	uint64_t now;

	EXPECT_STATUS(evc_allocator_install(&half), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_parker_create(NULL, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_OK(evc_parker_create(NULL, &parker));
	evc_parker_destroy(parker);
	EXPECT_STATUS(evc_thread_start(NULL, NULL, &thread), EVC_INVALID_ARGUMENT);
	for (unsigned i = EVC_OK; i <= EVC_FULL; i++) {
		for (unsigned j = EVC_OK; j < i; j++)
			EXPECT(strcmp(evc_status_text((enum evc_status)i),
				      evc_status_text((enum evc_status)j)) != 0,
			       "statuses %u and %u have one text", i, j);
	}
	EXPECT(evc_status_text((enum evc_status)99) != NULL, "an unknown status has no text");
	EXPECT(evc_version() == EVC_VERSION, "the library and its headers are of two versions");
	now = evc_clock_now();
	EXPECT(now <= evc_clock_now(), "the clock goes backwards");
	return NULL;
}

static const char *ends_of_nothing(void)
{
	evc_balancer_release(NULL);
	evc_dispatch_abandon(NULL);
	evc_envelope_release(NULL, false);
	evc_handler_drop(NULL);
	evc_latest_subscription_release(NULL);
	evc_mailbox_release(NULL);
	evc_parker_destroy(NULL);
	evc_router_destroy(NULL);
	evc_scheduler_release(NULL);
	evc_shared_mailbox_drop(NULL);
	evc_shared_mailbox_release(NULL);
	evc_walk_end(NULL);
	evc_worker_destroy(NULL);
	EXPECT(evc_node_end(NULL) == NULL, "no node had a parent");
	return NULL;
}

static const char *answers_about_nothing(void)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_timer_ops ops = { 0 };
	struct evc_subscription *subscription;
	struct evc_envelope *envelope;
	struct evc_dispatch dispatch;
	struct evc_thread *thread;
	struct evc_worker *worker;
	struct evc_node *node;
	struct evc_walk *walk;
	uint64_t value = 0;

	EXPECT_STATUS(evc_balancer_add(NULL, NULL, 0, false, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_remove(NULL, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_dispatch_begin(NULL, 1, EVC_LANE_QUEUE_LOW, 8, 8, 1, &dispatch), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_dispatch_begin_batch(NULL, 1, EVC_LANE_QUEUE_LOW, 8, 8, 2, &dispatch),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_dispatch_bytes(NULL, 1, EVC_LANE_QUEUE_LOW, &value, 8, 8, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_envelope_create(NULL, EVC_LANE_QUEUE_LOW, 8, 8, &envelope), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_handler_remove(NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_handler_remove_and_wait(NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_add_latest_subscription(NULL, NULL, &subscription), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_add_subscription(NULL, NULL, &subscription), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_post(NULL, &chain), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_pump(NULL, 1), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_pump_until(NULL, 1, EVC_FOREVER, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_run(NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_take(NULL, &envelope), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_mailbox_wait(NULL, 0), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_node_add_handler(NULL, 1, EVC_HANDLER_RAISE, NULL, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_node_attach(NULL, NULL, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_parker_wait(NULL, 0, 0), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_subscribe(NULL, 1, NULL, 0, false), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_router_unsubscribe(NULL, 1, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_scheduler_add(NULL, 0, &ops, NULL, &value), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_scheduler_cancel(NULL, 1), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_scheduler_join(NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_shared_mailbox_add_latest_subscription(NULL, NULL, &subscription),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_shared_mailbox_add_subscription(NULL, NULL, &subscription), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_shared_mailbox_post(NULL, &chain), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_thread_join(NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_thread_start(NULL, NULL, &thread), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_thread_start_worker(NULL, NULL, &thread), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_walk_begin(NULL, 1, EVC_WALK_RAISE, &walk), EVC_INVALID_ARGUMENT);
	EXPECT_OK(evc_node_create(NULL, &node));
	EXPECT_STATUS(evc_walk_begin(node, 1, EVC_WALK_RAISE, NULL), EVC_INVALID_ARGUMENT);
	evc_node_end(node);
	EXPECT_STATUS(evc_walk_next(NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_worker_create(NULL, NULL, &worker), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_worker_run(NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_worker_take(NULL, &envelope), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_worker_wait(NULL, 0), EVC_INVALID_ARGUMENT);
	return NULL;
}

static void retain_balancer(void) { evc_balancer_retain(NULL); }
static void retain_mailbox(void) { evc_mailbox_retain(NULL); }
static void retain_scheduler(void) { evc_scheduler_retain(NULL); }
static void retain_shared_mailbox(void) { evc_shared_mailbox_retain(NULL); }
static void close_mailbox(void) { evc_mailbox_close(NULL); }
static void interrupt_mailbox(void) { evc_mailbox_interrupt(NULL); }
static void cancel_thread(void) { evc_thread_cancel(NULL); }
static void hold_worker(void) { evc_worker_hold(NULL); }

static int call_it(void *call)
{
	(*(void (*const *)(void))call)();
	return 0;
}

static const char *traps_on_nothing(void)
{
	static void (*const calls[])(void) = {
		retain_balancer, retain_mailbox,    retain_scheduler, retain_shared_mailbox,
		close_mailbox,	 interrupt_mailbox, cancel_thread,    hold_worker,
	};

	char said[SUITE_SAID];
	int status;

	/* By a signal, or by the report of a sanitizer. */
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		EXPECT_NONE(suite_in_child(call_it, (void *)&calls[i], &status, said));
		EXPECT(status != 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM), "call %u went on", i);
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D12 a mailbox answers wrong arguments with a status", mailboxes },
	{ "D12 an envelope answers wrong arguments with a status", envelopes },
	{ "D12 a router answers wrong arguments with a status", routers },
	{ "D12 a function that ends an object does nothing with NULL", ends_of_nothing },
	{ "D12 a function that returns a status refuses NULL", answers_about_nothing },
	{ "D12 a function without a status crashes with NULL", traps_on_nothing },
	{ "D12 options of an older or a newer caller are read as it means them, or refused", options_of_other_versions },
	{ "D12 options that have grown are zero where the caller knows nothing of them", options_that_have_grown },
	{ "D12 every status has a text of its own", others },
};
SUITE_GROUP(suite_errors, tests);
#endif
