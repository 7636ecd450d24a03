/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "crew.h"

#include "memory/subscription.h"

#include <string.h>

uint32_t crew_choose_answer(void *context, const struct evc_balancer_choice *choice)
{
	struct crew *crew = context;

	(void)choice;
	crew->asked++;
	return crew->answer;
}

static void drop(void *context, void *payload)
{
	(void)payload;
	((struct crew *)context)->drops++;
}

static void finalize(void *context)
{
	((struct crew *)context)->finalized++;
}

/* One test at a time. */
static bool is_plain;

const char *crew_plainly(const char *(*test)(void))
{
	const char *failure;

	is_plain = true;
	failure = test();
	is_plain = false;
	return failure;
}

const char *crew_open(struct crew *crew, unsigned count,
		      uint32_t (*choose)(void *, const struct evc_balancer_choice *))
{
	return crew_open_with(crew, count, choose, NULL);
}

const char *crew_open_with(struct crew *crew, unsigned count,
			   uint32_t (*choose)(void *, const struct evc_balancer_choice *),
			   const struct evc_mailbox_options *mailbox)
{
	struct evc_balancer_options options = {
		.size = sizeof(options), .choose = choose, .drop = drop, .finalize = finalize, .context = crew
	};

	memset(crew, 0, sizeof(*crew));
	crew->count = count;
	EXPECT_OK(evc_balancer_create(&options, &crew->balancer));
	for (unsigned i = 0; i < count; i++) {
		EXPECT_NONE(suite_receiver_open(&crew->receivers[i], mailbox));
		if (is_plain)
			EXPECT_NONE(suite_receiver_make_plain(&crew->receivers[i]));
		EXPECT_OK(evc_balancer_add(crew->balancer, crew->receivers[i].subscription, i + 1,
					   false, &crew->loads[i]));
	}
	EXPECT_EQUAL(evc_balancer_count(crew->balancer), count, "receivers");
	return NULL;
}

const char *crew_close(struct crew *crew)
{
	evc_balancer_release(crew->balancer);
	EXPECT(suite_quiesce(), "the callback thread got stuck");
	EXPECT_EQUAL(crew->finalized, 1, "calls of finalize");
	for (unsigned i = 0; i < crew->count; i++) {
		evc_mailbox_release(crew->receivers[i].mailbox);
		EXPECT_EQUAL(crew->receivers[i].finalized, 1, "calls of a receiver's finalize");
	}
	return NULL;
}

const char *crew_append(struct crew *crew, struct evc_chain *chain, unsigned lane, uint64_t value)
{
	EXPECT_OK(suite_append(chain, evc_balancer_subscription(crew->balancer), lane, value));
	return NULL;
}

enum evc_status crew_post(struct crew *crew, const struct evc_chain *chain)
{
	struct evc_sink *sink = evc_balancer_subscription(crew->balancer)->sink;

	return sink->accept(sink, chain);
}

const char *crew_post_values(struct crew *crew, uint64_t first, unsigned count,
			     enum evc_status expected)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_envelope *envelope, *next;

	for (unsigned i = 0; i < count; i++)
		EXPECT_NONE(crew_append(crew, &chain, EVC_LANE_QUEUE_NORMAL, first + i));
	EXPECT_STATUS(crew_post(crew, &chain), expected);
	if (expected == EVC_OK)
		return NULL;
	/* It still belongs to the poster: the same chain in the same order. */
	envelope = chain.first;
	for (unsigned i = 0; i < count; i++, envelope = next) {
		EXPECT(envelope != NULL, "the chain lost envelopes");
		EXPECT_EQUAL(*(uint64_t *)evc_envelope_payload(envelope), first + i,
			     "a payload of a refused chain");
		EXPECT(evc_envelope_subscription(envelope) ==
			       evc_balancer_subscription(crew->balancer),
		       "a refused envelope is addressed to a receiver");
		next = evc_dispatch_next(envelope);
		evc_envelope_release(envelope, false);
	}
	EXPECT(envelope == NULL, "the chain has more envelopes than before");
	return NULL;
}

const char *crew_expect_next(struct suite_receiver *receiver, uint64_t value)
{
	unsigned lane;
	uint64_t found;

	EXPECT_OK(suite_take(receiver, &lane, &found));
	EXPECT_EQUAL(found, value, "the payload");
	return NULL;
}

const char *crew_expect_nothing(struct suite_receiver *receiver)
{
	unsigned lane;
	uint64_t found;

	EXPECT_STATUS(suite_take(receiver, &lane, &found), EVC_EMPTY);
	return NULL;
}

#endif
