/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The end of a shared mailbox and of single workers: everything accepted is either handled or dropped, and
 * never both (D4, D10).
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "shared.h"

#include <string.h>

#define PRODUCERS 3u
#define ROUNDS SUITE_SCALE(200u)

struct producer {
	struct shared_receiver *receiver;
	_Atomic uint64_t accepted;
	enum evc_status status;
};

static void *post_until_closed(void *context)
{
	struct producer *producer = context;

	for (uint64_t i = 0; producer->status == EVC_OK; i++) {
		producer->status = shared_post(producer->receiver, i % EVC_LANE_COUNT, i);
		if (producer->status == EVC_OK)
			atomic_fetch_add_explicit(&producer->accepted, 1, memory_order_release);
	}
	return NULL;
}

/* The round number varies the moment of the close during the producers' run. */
static const char *round_of(unsigned round, bool drain, unsigned count)
{
	struct shared_receiver receiver;
	struct producer producers[PRODUCERS];
	struct evc_mailbox_statistics statistics;
	struct shared_workers workers = { .count = 0 };
	pthread_t threads[PRODUCERS];
	uint64_t accepted = 0;
	bool drops = drain && count == 0;

	EXPECT_NONE(shared_open(&receiver));
	EXPECT_NONE(shared_start(&workers, &receiver, count, NULL, NULL));
	for (unsigned i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){ &receiver, 0, EVC_OK };
		pthread_create(&threads[i], NULL, post_until_closed, &producers[i]);
	}
	EXPECT(suite_await(&producers[round % PRODUCERS].accepted, round % 40), "nobody posts");
	if (drain)
		evc_shared_mailbox_close_when_empty(receiver.mailbox);
	else
		evc_shared_mailbox_close(receiver.mailbox);
	if (drops)
		evc_shared_mailbox_drop(receiver.mailbox);
	/* In every other round the workers end first, so that late posts find them gone. */
	if (round % 2)
		EXPECT_NONE(shared_join(&workers));
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQUAL(producers[i].status, EVC_CLOSED, "what ended the producer");
		accepted += producers[i].accepted;
	}
	if (round % 2 == 0)
		EXPECT_NONE(shared_join(&workers));
	evc_shared_mailbox_read_statistics(receiver.mailbox, &statistics);
	if (count > 0 || drops)
		EXPECT_EQUAL(statistics.taken + statistics.dropped, accepted,
			     "taken and dropped, beside accepted");
	/* Everything accepted before the close is handled: each producer was in one post then. */
	if (drain && count > 0)
		EXPECT(statistics.dropped <= PRODUCERS, "%llu events were dropped by a drain",
		       (unsigned long long)statistics.dropped);
	evc_shared_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.delivered + receiver.drops, accepted,
		     "delivered and calls of drop, beside accepted");
	if (count > 0 || drops)
		EXPECT_EQUAL(receiver.drops, statistics.dropped, "calls of drop, beside dropped");
	EXPECT_EQUAL(receiver.finalized, 1, "calls of finalize");
	return NULL;
}

static const char *rounds(bool drain, unsigned workers)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		EXPECT_NONE(round_of(round, drain, workers));
	return NULL;
}

static const char *close_it(void)
{
	EXPECT_NONE(rounds(false, 1));
	return rounds(false, 3);
}

static const char *drain_it(void)
{
	EXPECT_NONE(rounds(true, 1));
	return rounds(true, 3);
}

static const char *nobody(void)
{
	return rounds(false, 0);
}

static const char *nobody_but_drop(void)
{
	return rounds(true, 0);
}

static void count_call(void *context)
{
	(*(unsigned *)context)++;
}

static const char *ended_make_room(void)
{
	struct evc_worker *workers[EVC_WORKERS_MAX], *further;
	struct shared_receiver receiver;
	unsigned finalized = 0;
	struct evc_mailbox_options options = { .size = sizeof(options), .context = &finalized, .finalize = count_call };

	EXPECT_NONE(shared_open(&receiver));
	for (unsigned i = 0; i < EVC_WORKERS_MAX; i++)
		EXPECT_OK(evc_worker_create(receiver.mailbox, NULL, &workers[i]));
	EXPECT_STATUS(evc_worker_create(receiver.mailbox, &options, &further), EVC_NOT_PERMITTED);
	EXPECT_EQUAL(finalized, 0, "calls of finalize for a worker that was not made");
	evc_mailbox_close(evc_worker_mailbox(workers[7]));
	EXPECT_STATUS(evc_worker_run(workers[7]), EVC_CLOSED);
	EXPECT_OK(evc_worker_create(receiver.mailbox, NULL, &further));
	for (unsigned i = 0; i < EVC_WORKERS_MAX; i++)
		evc_worker_destroy(workers[i]);
	evc_mailbox_close(evc_worker_mailbox(further));
	EXPECT_STATUS(evc_worker_run(further), EVC_CLOSED);
	evc_worker_destroy(further);
	evc_shared_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.finalized, 1, "calls of finalize");
	return NULL;
}

/* Everything that was accepted before the close is handled, not dropped. */
static const char *drain_handles(void)
{
	for (unsigned count = 1; count <= 3; count++) {
		struct shared_workers workers;
		struct shared_receiver receiver;

		EXPECT_NONE(shared_open(&receiver));
		for (unsigned i = 0; i < 1000; i++)
			EXPECT_OK(shared_post(&receiver, i % EVC_LANE_COUNT, 1));
		EXPECT_NONE(shared_start(&workers, &receiver, count, NULL, NULL));
		evc_shared_mailbox_close_when_empty(receiver.mailbox);
		EXPECT_STATUS(shared_post(&receiver, 0, 1), EVC_CLOSED);
		EXPECT_NONE(shared_join(&workers));
		EXPECT_EQUAL(receiver.delivered, 1000, "envelopes handled");
		evc_shared_mailbox_release(receiver.mailbox);
		EXPECT_EQUAL(receiver.drops, 0, "envelopes dropped");
	}
	return NULL;
}

static struct suite_gate entered, leave;

static void stand(void *worker_context, uint64_t value, unsigned lane)
{
	(void)worker_context, (void)lane;
	if (value != 0)
		return;
	suite_gate_open(&entered);
	(void)suite_gate_pass(&leave);
}

/* A worker that is inside a handler holds up neither the others nor the close. */
static const char *close_in_handler(void)
{
	struct suite_gate shut = SUITE_GATE;
	struct shared_workers workers;
	struct shared_receiver receiver;
	struct evc_mailbox_statistics statistics;

	entered = shut;
	leave = shut;
	EXPECT_NONE(shared_open(&receiver));
	receiver.hear = stand;
	EXPECT_NONE(shared_start(&workers, &receiver, 1, NULL, NULL));
	EXPECT_OK(shared_post(&receiver, 9, 0));
	EXPECT(suite_gate_pass(&entered), "the worker does not come");
	for (unsigned i = 1; i <= 100; i++)
		EXPECT_OK(shared_post(&receiver, i % EVC_LANE_COUNT, i));
	evc_shared_mailbox_close(receiver.mailbox);
	suite_gate_open(&leave);
	EXPECT_NONE(shared_join(&workers));
	evc_shared_mailbox_read_statistics(receiver.mailbox, &statistics);
	EXPECT_EQUAL(statistics.taken, 1, "taken");
	EXPECT_EQUAL(statistics.dropped, 100, "dropped");
	evc_shared_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.drops, 100, "calls of drop");
	return NULL;
}

/* Workers are made and retired while producers post; the last one drains. */
static const char *retire(void)
{
	struct shared_receiver receiver;
	struct producer producers[PRODUCERS];
	struct shared_workers drain;
	pthread_t threads[PRODUCERS];
	uint64_t accepted = 0;

	EXPECT_NONE(shared_open(&receiver));
	for (unsigned i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){ &receiver, 0, EVC_OK };
		pthread_create(&threads[i], NULL, post_until_closed, &producers[i]);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct shared_workers workers;

		EXPECT_NONE(shared_start(&workers, &receiver, 2, NULL, NULL));
		EXPECT(suite_await(&receiver.delivered, atomic_load(&receiver.delivered) + 5),
		       "nothing is handled");
		for (unsigned i = 0; i < 2; i++) {
			if ((round + i) % 2)
				evc_thread_cancel(workers.threads[i]);
			else
				evc_mailbox_close_when_empty(evc_worker_mailbox(workers.workers[i]));
		}
		EXPECT_NONE(shared_join(&workers));
	}
	EXPECT_NONE(shared_start(&drain, &receiver, 2, NULL, NULL));
	evc_shared_mailbox_close_when_empty(receiver.mailbox);
	for (unsigned i = 0; i < PRODUCERS; i++) {
		pthread_join(threads[i], NULL);
		accepted += producers[i].accepted;
	}
	EXPECT_NONE(shared_join(&drain));
	evc_shared_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.delivered + receiver.drops, accepted,
		     "delivered and dropped, beside accepted");
	/* What races the close itself may be dropped: at most one of each producer. */
	EXPECT(receiver.drops <= PRODUCERS, "%llu dropped", (unsigned long long)receiver.drops);
	return NULL;
}

static bool count_own(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	atomic_fetch_add((_Atomic uint64_t *)context, 1);
	return true;
}

static void drop_own(void *context, void *payload)
{
	(void)payload;
	atomic_fetch_add((_Atomic uint64_t *)context + 1, 1);
}

/* A retired worker handles (or drops) what is its own, and leaves what is shared. */
static const char *own_mail(bool drain)
{
	_Atomic uint64_t own[2] = { 0, 0 };
	struct evc_subscription_options options = {
		.size = sizeof(options), .context = own, .deliver = count_own, .drop = drop_own,
	};
	struct evc_mailbox_statistics statistics;
	struct evc_subscription *subscription;
	struct shared_receiver receiver;
	struct evc_worker *worker;
	struct evc_mailbox *mailbox;
	uint64_t depths[EVC_LANE_COUNT];

	EXPECT_NONE(shared_open(&receiver));
	EXPECT_OK(evc_worker_create(receiver.mailbox, NULL, &worker));
	mailbox = evc_worker_mailbox(worker);
	EXPECT_OK(evc_mailbox_add_subscription(mailbox, &options, &subscription));
	for (unsigned i = 0; i < 10; i++) {
		struct evc_chain chain = EVC_CHAIN_EMPTY;

		EXPECT_OK(suite_append(&chain, subscription, i, i));
		EXPECT_OK(evc_mailbox_post(mailbox, &chain));
		EXPECT_OK(shared_post(&receiver, i, i));
	}
	if (drain)
		evc_mailbox_close_when_empty(mailbox);
	else
		evc_mailbox_close(mailbox);
	EXPECT_STATUS(evc_worker_run(worker), EVC_CLOSED);
	EXPECT_EQUAL(own[0], drain ? 10 : 0, "own envelopes handled");
	EXPECT_EQUAL(own[1], drain ? 0 : 10, "own envelopes dropped");
	evc_mailbox_read_statistics(mailbox, &statistics);
	EXPECT_EQUAL(statistics.dropped, drain ? 0 : 10, "dropped, by the statistics");
	evc_worker_destroy(worker);
	evc_shared_mailbox_depths(receiver.mailbox, depths);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		EXPECT_EQUAL(depths[lane], 1, "what is shared, on each lane");
	evc_shared_mailbox_release(receiver.mailbox);
	EXPECT_EQUAL(receiver.drops, 10, "shared envelopes that the last release dropped");
	return NULL;
}

static const char *own_drained(void)
{
	return own_mail(true);
}

static const char *own_dropped(void)
{
	return own_mail(false);
}

static const struct evc_suite_test tests[] = {
	{ "D10 shared: close_when_empty handles all that was accepted before", drain_handles },
	{ "D10 shared: close lets the handler finish and drops what waits, counted", close_in_handler },
	{ "D10 shared: a worker that drains handles its own and leaves what is shared", own_drained },
	{ "D10 shared: a worker that is cancelled drops its own and leaves what is shared", own_dropped },
	{ "D4 D10 shared: posts that race close are taken or dropped, once", close_it },
	{ "D4 D10 shared: posts that race close_when_empty are taken or dropped, once", drain_it },
	{ "D4 D10 shared: posts that race close without a worker go with the release", nobody },
	{ "D4 D10 shared: posts that race close and drop without a worker are dropped, once", nobody_but_drop },
	{ "shared: a worker that has ended makes room for another", ended_make_room },
	{ "D4 shared: workers come and go under fire, nothing is lost", retire },
};
SUITE_GROUP(suite_shared_close, tests);
#endif
