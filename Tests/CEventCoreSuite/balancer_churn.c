/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Receivers are added, retire and close while several threads post: each event is handled exactly once (D4),
 * and a receiver that has handled everything promised to it gets no more.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include <string.h>

#define POSTERS 3u
#define EVENTS SUITE_SCALE(100000u)

struct worker {
	struct suite_receiver receiver;
	struct evc_load load;
	struct evc_thread *thread;
};

struct churn {
	struct evc_balancer *balancer;
	struct evc_router *router;
	struct worker stays;
	_Atomic uint64_t posting;
	_Atomic uint64_t accepted;
	/* Whether payloads need no ending. */
	bool is_plain;
	/* Of the receivers' mailboxes; NULL: they are unbounded. */
	const struct evc_mailbox_options *mailbox;
	/* Of the receivers that were added and removed. */
	uint64_t delivered, drops, sum, refused, overflowed, lost;
};

static void *post_events(void *context)
{
	struct churn *churn = context;
	uint64_t accepted = 0;

	for (uint64_t i = 0; i < EVENTS; i++) {
		uint32_t receivers = 0;

		if (evc_dispatch_bytes(churn->router, 1, (enum evc_lane)(i % 10), &i, sizeof(i), 8,
				       &receivers) == EVC_OK)
			accepted += receivers;
	}
	atomic_fetch_add(&churn->accepted, accepted);
	atomic_fetch_sub(&churn->posting, 1);
	return NULL;
}

static const char *come(struct churn *churn, struct worker *worker)
{
	memset(worker, 0, sizeof(*worker));
	EXPECT_NONE(suite_receiver_open(&worker->receiver, churn->mailbox));
	if (churn->is_plain)
		EXPECT_NONE(suite_receiver_make_plain(&worker->receiver));
	EXPECT_OK(evc_thread_start(NULL, worker->receiver.mailbox, &worker->thread));
	EXPECT_OK(evc_balancer_add(churn->balancer, worker->receiver.subscription, 1, false,
				   &worker->load));
	return NULL;
}

/* Waits until a retired receiver has handled what was promised to it and was not lost. */
static bool keep(struct worker *worker, uint64_t promised)
{
	uint64_t since = evc_clock_now();

	while (atomic_load(&worker->receiver.delivered) + evc_load_lost(&worker->load) < promised) {
		if (evc_clock_now() - since > SUITE_LIMIT_NS)
			return false;
		sched_yield();
	}
	return true;
}

static const char *go(struct churn *churn, struct worker *worker)
{
	struct evc_mailbox_statistics end;
	uint64_t promised, lost;

	EXPECT_OK(evc_balancer_remove(churn->balancer, worker->receiver.subscription));
	promised = evc_load_retire(&worker->load);
	EXPECT(keep(worker, promised), "promises were not kept");
	lost = evc_load_lost(&worker->load);
	evc_mailbox_read_statistics(worker->receiver.mailbox, &end);
	evc_mailbox_close(worker->receiver.mailbox);
	EXPECT_OK(evc_thread_join(worker->thread));
	evc_mailbox_release(worker->receiver.mailbox);
	/* A thread that still holds a snapshot releases the mailbox later; its counters are on our stack. */
	EXPECT(suite_await(&worker->receiver.finalized, 1), "the mailbox was not freed");
	EXPECT_EQUAL(worker->receiver.delivered + lost, promised, "events after the last promise");
	EXPECT_EQUAL(end.refused + end.overflowed, lost, "what the overflow policy ended");
	churn->refused += end.refused;
	churn->overflowed += end.overflowed;
	churn->lost += lost;
	churn->delivered += worker->receiver.delivered;
	churn->drops += worker->receiver.drops;
	churn->sum += worker->receiver.sum;
	return NULL;
}

static const char *run(bool is_plain, const struct evc_mailbox_options *mailbox)
{
	static struct churn churn;
	static struct worker workers[3];
	pthread_t posters[POSTERS];

	memset(&churn, 0, sizeof(churn));
	churn.is_plain = is_plain;
	churn.mailbox = mailbox;
	EXPECT_OK(evc_balancer_create(NULL, &churn.balancer));
	EXPECT_OK(evc_router_create(&churn.router));
	EXPECT_NONE(come(&churn, &churn.stays));
	EXPECT_OK(evc_router_subscribe(churn.router, 1, evc_balancer_subscription(churn.balancer),
				       0, false));
	atomic_store(&churn.posting, POSTERS);
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_create(&posters[i], NULL, post_events, &churn);
	while (atomic_load(&churn.posting) > 0) {
		for (unsigned i = 0; i < 3; i++)
			EXPECT_NONE(come(&churn, &workers[i]));
		for (unsigned i = 0; i < 3; i++)
			EXPECT_NONE(go(&churn, &workers[i]));
	}
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(posters[i], NULL);
	EXPECT_NONE(go(&churn, &churn.stays));
	EXPECT_EQUAL(churn.accepted + churn.refused, POSTERS * EVENTS, "accepted and refused events");
	EXPECT_EQUAL(churn.delivered + churn.lost, POSTERS * EVENTS, "delivered and lost events");
	EXPECT_EQUAL(churn.lost, churn.refused + churn.overflowed, "lost events");
	EXPECT_EQUAL(churn.drops, is_plain ? 0 : churn.lost, "dropped payloads");
	if (mailbox == NULL)
		EXPECT_EQUAL(churn.sum, POSTERS * ((uint64_t)EVENTS * (EVENTS - 1) / 2),
			     "the sum of their payloads");
	EXPECT_EQUAL(evc_balancer_refused(churn.balancer), 0, "refused events");
	evc_router_destroy(churn.router);
	evc_balancer_release(churn.balancer);
	EXPECT(suite_settle(), "the callback thread got stuck");
	return NULL;
}

static const char *churns(void)
{
	return run(false, NULL);
}

static const char *plain_churns(void)
{
	return run(true, NULL);
}

static const char *bounded_churns(void)
{
	for (unsigned policy = EVC_OVERFLOW_REFUSE; policy <= EVC_OVERFLOW_BLOCK; policy++) {
		struct evc_mailbox_options options = { .size = sizeof(options), .capacity = 1 + 2 * (policy % 2),
						       .overflow = (enum evc_overflow)policy, .block_ns = 1000 };

		EXPECT_NONE(run(policy == EVC_OVERFLOW_DROP_NEWEST, &options));
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 receivers of a balancer churn, and each event is handled once", churns },
	{ "D4 plain payloads: receivers of a balancer churn", plain_churns },
	{ "D4 bounded receivers of a balancer churn, and each event is handled, refused or dropped", bounded_churns },
};
SUITE_GROUP(suite_balancer_churn, tests);
#endif
