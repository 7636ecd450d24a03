/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The core's inbox (C11 atomics, slots of its pools) by posting to an evc_mailbox. Compare choices_wfcq.c.
 *
 *     producer: envelope ──► evc_mailbox ──► take, add up, recycle
 */
#include "check.h"

#include <eventcore/eventcore.h>

#include <stdatomic.h>
#include <string.h>

struct inbox {
	struct evc_mailbox *mailbox;
	struct evc_subscription *subscription;
	uint64_t events;
	uint64_t sum;
};

static bool never(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	EVB_REQUIRE(false, "this consumer takes by itself");
	return false;
}

static void post(struct inbox *inbox, uint64_t value)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope;
	uint64_t *words;

	EVB_REQUIRE(evc_envelope_create(inbox->subscription, EVC_LANE_QUEUE_NORMAL, 24, 8,
					&envelope) == EVC_OK,
		    "no envelope");
	/* Field by field; see throughput.c. */
	words = evc_envelope_payload(envelope);
	words[0] = value;
	words[1] = words[2] = 0;
	evc_chain_append(&chain, envelope);
	EVB_REQUIRE(evc_mailbox_post(inbox->mailbox, &chain) == EVC_OK, "a post failed");
}

static bool take(struct inbox *inbox)
{
	struct evc_envelope *envelope;
	uint64_t value;

	if (evc_mailbox_take(inbox->mailbox, &envelope) != EVC_OK)
		return false;
	memcpy(&value, evc_envelope_payload(envelope), sizeof(value));
	inbox->sum += value;
	evc_mailbox_recycle(inbox->mailbox, envelope, true);
	return true;
}

static void *consume(void *argument)
{
	struct inbox *inbox = argument;

	for (uint64_t left = inbox->events; left != 0;)
		if (take(inbox))
			left--;
	return NULL;
}

static void open_inbox(struct inbox *inbox)
{
	const struct evc_mailbox_options mailbox = { .size = sizeof(mailbox), .strategy = EVC_WAIT_SPIN };
	const struct evc_subscription_options options = { .size = sizeof(options), .deliver = never };

	EVB_REQUIRE(evc_mailbox_create(&mailbox, &inbox->mailbox) == EVC_OK, "no mailbox");
	EVB_REQUIRE(evc_mailbox_add_subscription(inbox->mailbox, &options, &inbox->subscription) ==
			    EVC_OK,
		    "no subscription");
}

static void close_inbox(struct inbox *inbox)
{
	EVB_REQUIRE(inbox->sum == inbox->events * (inbox->events + 1) / 2, "the checksum is wrong");
	evc_mailbox_release(inbox->mailbox);
}

uint64_t evb_choice_core_inbox(uint64_t events)
{
	struct inbox inbox = { .events = events };
	uint64_t start, time;
	pthread_t thread;

	open_inbox(&inbox);
	thread = evb_start(consume, &inbox);
	start = evb_now();
	for (uint64_t i = 1; i <= events; i++)
		post(&inbox, i);
	evb_join(thread);
	time = evb_now() - start;
	close_inbox(&inbox);
	return time;
}

uint64_t evb_choice_core_inbox_alone(uint64_t events)
{
	struct inbox inbox = { .events = events };
	uint64_t start, time;

	open_inbox(&inbox);
	start = evb_now();
	for (uint64_t i = 1; i <= events; i++) {
		post(&inbox, i);
		EVB_REQUIRE(take(&inbox), "what was posted is not there");
	}
	time = evb_now() - start;
	close_inbox(&inbox);
	return time;
}
