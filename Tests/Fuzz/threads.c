/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Threads of the core's own, of a mailbox or a worker. Their handlers draw nothing: what they handle is counted. */
#include "fuzz.h"

#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 2 };

static struct {
	struct evc_thread *made;
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscription;
	struct evc_shared_mailbox *shared;
	struct evc_worker *worker;
	struct evc_subscription *all;
	bool is_held;
	uint64_t sent;
	_Atomic uint64_t handled;
} threads[THREADS];

static bool count_own(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	CHECK(evc_unregister_thread() == EVC_NOT_PERMITTED && evc_shutdown() == EVC_NOT_PERMITTED);
	atomic_fetch_add((_Atomic uint64_t *)context, 1);
	return false;
}

static bool count_shared(void *worker, void *context, void *payload, struct evc_envelope *envelope, bool owned)
{
	(void)worker;
	return count_own(context, payload, envelope, owned);
}

static bool has_detached;

static void start_thread(unsigned index, bool works)
{
	const struct evc_subscription_options own = { .size = sizeof(own),
						      .context = &threads[index].handled,
						      .deliver = count_own };
	const struct evc_shared_subscription_options all = { .size = sizeof(all),
							     .context = &threads[index].handled,
							     .deliver = count_shared };
	PADDED(struct evc_thread_options) options = { .known = {
		.name = draw() % 2 == 0 ? "a name that is longer than the system's limit" : NULL,
		.processor = rarely() ? 4096 + draw() : 0,
		.realtime_priority = rarely() ? 1000 : 0,
		.stack_size = rarely() ? 1 : 0,
	} };
	enum evc_status status, expected = set_size(&options, sizeof(options.known), sizeof(options.known));

	if (expected == EVC_OK && (options.known.processor != 0 || options.known.realtime_priority != 0 ||
				   options.known.stack_size != 0))
		expected = EVC_INVALID_ARGUMENT;
	threads[index].sent = threads[index].handled = 0;
	threads[index].is_held = works && draw() % 2 == 0;
	if (works) {
		CHECK(evc_shared_mailbox_create(&threads[index].shared) == EVC_OK);
		CHECK(evc_shared_mailbox_add_subscription(threads[index].shared, &all, &threads[index].all) == EVC_OK);
		CHECK(evc_worker_create(threads[index].shared, NULL, &threads[index].worker) == EVC_OK);
		if (threads[index].is_held)
			evc_worker_hold(threads[index].worker);
		evc_shared_mailbox_retain(threads[index].shared);
		evc_shared_mailbox_release(threads[index].shared);
		threads[index].mailbox = evc_worker_mailbox(threads[index].worker);
	} else {
		CHECK(evc_mailbox_create(NULL, &threads[index].mailbox) == EVC_OK);
	}
	evc_mailbox_retain(threads[index].mailbox);
	CHECK(evc_mailbox_add_subscription(threads[index].mailbox, &own, &threads[index].subscription) == EVC_OK);
	status = works ? evc_thread_start_worker(&options.known, threads[index].worker, &threads[index].made)
		       : evc_thread_start(&options.known, threads[index].mailbox, &threads[index].made);
	CHECK(status == expected);
	if (status != EVC_OK) {
		/* Another consumer finds none. */
		CHECK(works ? evc_worker_poll(threads[index].worker) == EVC_EMPTY
			    : evc_mailbox_pump(threads[index].mailbox, 1) == EVC_EMPTY);
		threads[index].made = NULL;
	}
}

static void end_thread(unsigned index, bool cancels)
{
	const bool detaches = threads[index].made != NULL && threads[index].worker == NULL && draw() % 2 == 0;

	if (threads[index].mailbox == NULL)
		return;
	if (threads[index].made != NULL) {
		if (threads[index].worker != NULL)
			CHECK(evc_thread_detach(threads[index].made) == EVC_INVALID_ARGUMENT);
		if (threads[index].is_held)
			evc_worker_admit(threads[index].worker);
		if (cancels)
			evc_thread_cancel(threads[index].made);
		else if (threads[index].shared != NULL)
			evc_shared_mailbox_close_when_empty(threads[index].shared);
		else
			evc_mailbox_close_when_empty(threads[index].mailbox);
		has_detached |= detaches;
		CHECK((detaches ? evc_thread_detach : evc_thread_join)(threads[index].made) == EVC_OK);
		CHECK(cancels || detaches || threads[index].handled == threads[index].sent);
		/* Its handler is ours. */
		while (detaches && evc_mailbox_pump(threads[index].mailbox, 1) == EVC_NOT_PERMITTED)
			sched_yield();
		CHECK(cancels || threads[index].handled == threads[index].sent);
	}
	if (threads[index].worker != NULL)
		evc_worker_destroy(threads[index].worker);
	else
		evc_mailbox_release(threads[index].mailbox);
	evc_mailbox_release(threads[index].mailbox);
	evc_shared_mailbox_release(threads[index].shared);
	memset(&threads[index], 0, sizeof(threads[index]));
}

static void use_thread(unsigned index)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope;
	const bool is_shared = threads[index].shared != NULL && draw() % 2 == 0;
	struct evc_sink *sink;

	if (threads[index].mailbox == NULL) {
		if (draw() % 64 == 0)
			start_thread(index, draw() % 2 == 0);
		return;
	}
	if (threads[index].made != NULL) {
		CHECK(evc_mailbox_pump(threads[index].mailbox, 1) == EVC_NOT_PERMITTED);
		CHECK(evc_mailbox_run(threads[index].mailbox) == EVC_NOT_PERMITTED);
	}
	if (draw() % 8 == 0) {
		end_thread(index, draw() % 2 == 0);
		return;
	}
	if (draw() % 8 == 0 && threads[index].is_held) {
		evc_worker_admit(threads[index].worker);
		threads[index].is_held = false;
	}
	CHECK(evc_envelope_create(is_shared ? threads[index].all : threads[index].subscription,
				  some_lane() % EVC_LANE_COUNT, draw(), 8, &envelope) == EVC_OK);
	evc_chain_append(&chain, envelope);
	sink = is_shared ? evc_shared_mailbox_sink(threads[index].shared) : evc_mailbox_sink(threads[index].mailbox);
	if (draw() % 2 == 0)
		CHECK(sink->accept(sink, &chain) == EVC_OK);
	else
		CHECK((is_shared ? evc_shared_mailbox_post(threads[index].shared, &chain)
				 : evc_mailbox_post(threads[index].mailbox, &chain)) == EVC_OK);
	threads[index].sent++;
}

void call_threads(void)
{
	use_thread(draw() % THREADS);
}

bool end_threads(void)
{
	bool had_detached;

	for (unsigned i = 0; i < THREADS; i++)
		end_thread(i, true);
	had_detached = has_detached;
	has_detached = false;
	return had_detached;
}
