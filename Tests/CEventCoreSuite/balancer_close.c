/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A balancer whose receivers close, retire, or change while one is being chosen; and one that is out of
 * memory or gets wrong arguments.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "crew.h"

#include "memory/subscription.h"

static const char *closed(void)
{
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 3, crew_choose_answer));
	evc_mailbox_close(crew.receivers[0].mailbox);
	EXPECT_NONE(crew_post_values(&crew, 1, 1, EVC_OK));
	EXPECT_NONE(crew_expect_next(&crew.receivers[1], 1));
	EXPECT_EQUAL(evc_load_promised(&crew.loads[0]), 0, "promises of one that refused");
	EXPECT_NONE(crew_post_values(&crew, 2, 3, EVC_OK));
	for (uint64_t value = 2; value < 5; value++)
		EXPECT_NONE(crew_expect_next(&crew.receivers[1], value));
	/* A retired receiver is skipped like a closed one. */
	EXPECT_EQUAL(evc_load_retire(&crew.loads[1]), 4, "promises in all");
	EXPECT_NONE(crew_post_values(&crew, 5, 1, EVC_OK));
	EXPECT_NONE(crew_post_values(&crew, 6, 2, EVC_OK));
	for (uint64_t value = 5; value < 8; value++)
		EXPECT_NONE(crew_expect_next(&crew.receivers[2], value));
	EXPECT_EQUAL(evc_load_promised(&crew.loads[1]), 4, "promises after the retirement");
	EXPECT_EQUAL(evc_balancer_refused(crew.balancer), 0, "refused envelopes");
	/* No receiver is left: the poster gets everything back unchanged. */
	evc_mailbox_close(crew.receivers[2].mailbox);
	EXPECT_NONE(crew_post_values(&crew, 0, 1, EVC_CLOSED));
	EXPECT_NONE(crew_post_values(&crew, 10, 2, EVC_CLOSED));
	EXPECT_NONE(crew_post_values(&crew, 20, 100, EVC_CLOSED));
	EXPECT_EQUAL(evc_balancer_refused(crew.balancer), 103, "refused envelopes");
	EXPECT_EQUAL(crew.drops, 103, "payloads that the poster ended");
	EXPECT_EQUAL(evc_load_promised(&crew.loads[2]), 3, "promises of the last");
	for (unsigned i = 0; i < 3; i++)
		EXPECT_OK(evc_balancer_remove(crew.balancer, crew.receivers[i].subscription));
	EXPECT_NONE(crew_post_values(&crew, 0, 3, EVC_CLOSED));
	EXPECT_EQUAL(evc_balancer_count(crew.balancer), 0, "receivers");
	EXPECT_STATUS(evc_balancer_remove(crew.balancer, crew.receivers[0].subscription),
		      EVC_NOT_FOUND);
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

/* A sink that accepts a number of envelopes and then has closed, or answers what it was told. */
struct short_sink {
	struct evc_sink sink;
	struct evc_subscription subscription;
	uint32_t room;
	uint64_t references;
	uint64_t accepted;
	enum evc_status answer;
};

static enum evc_status short_accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	struct short_sink *self = (struct short_sink *)(void *)sink;
	struct evc_envelope *envelope = chain->first, *next;

	if (chain->count > self->room)
		return self->answer;
	self->room -= chain->count;
	self->accepted += chain->count;
	for (uint32_t i = 0; i < chain->count; i++, envelope = next) {
		next = evc_dispatch_next(envelope);
		evc_envelope_release(envelope, true);
	}
	return EVC_OK;
}

static void short_retain(struct evc_sink *sink)
{
	((struct short_sink *)(void *)sink)->references++;
}

static void short_release(struct evc_sink *sink)
{
	((struct short_sink *)(void *)sink)->references--;
}

static const char *half(void)
{
	struct short_sink narrow = { .sink = { short_accept, short_retain, short_release, false, 0, NULL, NULL, NULL },
				     .room = 70,
				     .answer = EVC_CLOSED };
	struct evc_load load = { 0 };
	struct crew crew;
	narrow.subscription.sink = &narrow.sink;
	EXPECT_NONE(crew_open(&crew, 0, NULL));
	EXPECT_OK(evc_balancer_add(crew.balancer, &narrow.subscription, 0, false, &load));
	/* The first 64 are accepted together; for the next 36 no receiver is left. */
	EXPECT_NONE(crew_post_values(&crew, 0, 100, EVC_OK));
	EXPECT_EQUAL(narrow.accepted, 64, "placed envelopes");
	EXPECT_EQUAL(evc_balancer_dropped(crew.balancer), 36, "D4: counted envelopes");
	EXPECT_EQUAL(evc_balancer_refused(crew.balancer), 0, "refused envelopes");
	EXPECT_EQUAL(crew.drops, 36, "D4: ended payloads");
	EXPECT_EQUAL(evc_load_promised(&load), 64, "promises");
	EXPECT_NONE(crew_close(&crew));
	EXPECT_EQUAL(narrow.references, 0, "references of the sink");
	return NULL;
}

/* Closes all receivers at the third question, in the middle of a chain. */
static uint32_t choose_closing(void *context, const struct evc_balancer_choice *choice)
{
	struct crew *crew = context;

	(void)choice;
	if (crew->asked++ == 2)
		for (unsigned i = 0; i < crew->count; i++)
			evc_mailbox_close_when_empty(crew->receivers[i].mailbox);
	return 0;
}

/* What a balancer frees of a chain is not accepted: its dispatch learns it, and so does a balancer around it. */
static const char *lost_in_the_middle(bool is_inner)
{
	/* A balancer posts the first of a chain before it asks about the next; the one around does so, too. */
	const uint32_t accepted = is_inner ? 2 : 1;
	struct evc_dispatch_outcome outcome;
	struct evc_balancer *outer = NULL;
	struct evc_load load = { 0 };
	struct evc_dispatch dispatch;
	struct evc_router *router;
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 2, choose_closing));
	EXPECT_OK(evc_router_create(&router));
	if (is_inner) {
		EXPECT_OK(evc_balancer_create(NULL, &outer));
		EXPECT_OK(evc_balancer_add(outer, evc_balancer_subscription(crew.balancer), 0, false, &load));
	}
	EXPECT_OK(evc_router_subscribe(router, 1, evc_balancer_subscription(is_inner ? outer : crew.balancer), 0, false));
	EXPECT_OK(evc_dispatch_begin(router, 1, EVC_LANE_QUEUE_NORMAL, sizeof(uint64_t), 8, 5, &dispatch));
	EXPECT_EQUAL(evc_dispatch_commit_reporting(&dispatch, &outcome), accepted, "acceptances");
	EXPECT_EQUAL(outcome.accepted, accepted, "accepted");
	EXPECT_EQUAL(outcome.refused, 5 - accepted, "D4: refused");
	EXPECT_EQUAL(outcome.dropped + outcome.closed, 0, "others");
	EXPECT_EQUAL(evc_balancer_dropped(crew.balancer), 5 - accepted, "D4: what the balancer freed");
	EXPECT_EQUAL(crew.drops, 5 - accepted, "D4: ended payloads");
	if (is_inner) {
		EXPECT_EQUAL(evc_load_promised(&load), accepted, "promises that wait");
		EXPECT_EQUAL(evc_load_lost(&load), 5 - accepted, "lost promises");
		EXPECT_EQUAL(evc_load_retire(&load), 5, "promises in all");
	}
	evc_router_destroy(router);
	evc_balancer_release(outer);
	EXPECT(suite_settle(), "no grace period within the limit");
	return crew_close(&crew);
}

static const char *half_of_a_dispatch(void)
{
	EXPECT_NONE(lost_in_the_middle(false));
	return lost_in_the_middle(true);
}

/* A receiver without memory is not one that has closed: its promises are counted as lost, so that it can retire. */
static const char *starved(void)
{
	struct short_sink starving = { .sink = { short_accept, short_retain, short_release, false, 0, NULL, NULL, NULL },
				       .room = 1,
				       .answer = EVC_OUT_OF_MEMORY };
	struct evc_load load = { 0 };
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 0, NULL));
	starving.subscription.sink = &starving.sink;
	starving.subscription.drop = evc_balancer_subscription(crew.balancer)->drop;
	starving.subscription.context = &crew;
	EXPECT_OK(evc_balancer_add(crew.balancer, &starving.subscription, 0, false, &load));
	EXPECT_NONE(crew_post_values(&crew, 0, 1, EVC_OK));
	EXPECT_NONE(crew_post_values(&crew, 1, 1, EVC_OK));
	EXPECT_NONE(crew_post_values(&crew, 2, 10, EVC_OK));
	EXPECT_EQUAL(starving.accepted, 1, "placed envelopes");
	EXPECT_EQUAL(crew.drops, 11, "D4: ended payloads");
	EXPECT_EQUAL(evc_balancer_refused(crew.balancer) + evc_balancer_dropped(crew.balancer), 0,
		     "envelopes without a receiver");
	EXPECT_EQUAL(evc_load_lost(&load), 11, "lost promises");
	EXPECT_EQUAL(evc_load_promised(&load), 1, "promises");
	EXPECT_EQUAL(evc_load_retire(&load), 12, "promises in all");
	EXPECT_NONE(crew_close(&crew));
	EXPECT_EQUAL(starving.references, 0, "references of the sink");
	return NULL;
}

/* While `choose` runs, all receivers are replaced by another one. */
static uint32_t choose_late(void *context, const struct evc_balancer_choice *choice)
{
	struct crew *crew = context;

	(void)choice;
	if (crew->asked++ > 0)
		return 0;
	if (evc_balancer_add(crew->balancer, crew->receivers[2].subscription, 0, false,
			     &crew->loads[2]) != EVC_OK)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		if (evc_balancer_remove(crew->balancer, crew->receivers[i].subscription) != EVC_OK)
			return 0;
		(void)evc_load_retire(&crew->loads[i]);
	}
	return 0;
}

static const char *looks_again(void)
{
	struct crew crew;

	for (unsigned length = 1; length <= 100; length += 33) {
		EXPECT_NONE(crew_open(&crew, 3, choose_late));
		EXPECT_OK(evc_balancer_remove(crew.balancer, crew.receivers[2].subscription));
		EXPECT_NONE(crew_post_values(&crew, 0, length, EVC_OK));
		for (uint64_t value = 0; value < length; value++)
			EXPECT_NONE(crew_expect_next(&crew.receivers[2], value));
		EXPECT_EQUAL(evc_balancer_refused(crew.balancer), 0, "refused envelopes");
		EXPECT_NONE(crew_close(&crew));
	}
	return NULL;
}

/* Ends the crew at the second question, as far as the receiver that it answers. */
static uint32_t choose_ending(void *context, const struct evc_balancer_choice *choice)
{
	struct crew *crew = context;

	(void)choice;
	if (crew->asked++ == 1) {
		evc_balancer_remove_all(crew->balancer);
		evc_mailbox_close_when_empty(crew->receivers[1].mailbox);
	}
	return 1;
}

static const char *removed(void)
{
	struct crew crew;

	for (unsigned length = 1; length <= 100; length += 33) {
		EXPECT_NONE(crew_open(&crew, 3, choose_ending));
		EXPECT_NONE(crew_post_values(&crew, 0, 1, EVC_OK));
		EXPECT_NONE(crew_post_values(&crew, 1, length, EVC_CLOSED));
		EXPECT_EQUAL(evc_balancer_refused(crew.balancer), length, "D4: refused envelopes");
		EXPECT_NONE(crew_expect_next(&crew.receivers[1], 0));
		for (unsigned i = 0; i < 3; i++) {
			if (i != 1)
				EXPECT_NONE(crew_expect_nothing(&crew.receivers[i]));
			EXPECT_EQUAL(evc_load_promised(&crew.loads[i]), i == 1, "promises");
		}
		EXPECT_EQUAL(crew.asked, 2, "questions");
		EXPECT_EQUAL(evc_balancer_count(crew.balancer), 0, "receivers");
		EXPECT_STATUS(evc_balancer_remove(crew.balancer, crew.receivers[0].subscription), EVC_NOT_FOUND);
		/* As good as new. */
		EXPECT_OK(evc_balancer_add(crew.balancer, crew.receivers[2].subscription, 0, false, &crew.loads[2]));
		EXPECT_NONE(crew_post_values(&crew, 1, 1, EVC_OK));
		EXPECT_NONE(crew_expect_next(&crew.receivers[2], 1));
		EXPECT_NONE(crew_close(&crew));
	}
	return NULL;
}

static const char *out_of_memory(void)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	struct evc_balancer *balancer;
	enum evc_status status;
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 3, NULL));
	suite_allocator_install(0, 1);
	EXPECT_STATUS(evc_balancer_create(NULL, &balancer), EVC_OUT_OF_MEMORY);
	EXPECT_OK(evc_balancer_create(NULL, &balancer));
	suite_allocator_restore();
	evc_balancer_release(balancer);
	suite_allocator_install(0, 1);
	EXPECT_STATUS(evc_balancer_remove(crew.balancer, crew.receivers[1].subscription),
		      EVC_OUT_OF_MEMORY);
	suite_allocator_restore();
	EXPECT_EQUAL(evc_balancer_count(crew.balancer), 3, "receivers after a failed removal");
	EXPECT_OK(evc_balancer_remove(crew.balancer, crew.receivers[1].subscription));
	suite_allocator_install(0, 1);
	EXPECT_STATUS(evc_balancer_add(crew.balancer, crew.receivers[1].subscription, 0, false,
				       &crew.loads[1]),
		      EVC_OUT_OF_MEMORY);
	suite_allocator_restore();
	EXPECT_EQUAL(evc_balancer_count(crew.balancer), 2, "receivers after a failed addition");
	for (unsigned i = 0; i < 64; i++)
		EXPECT_NONE(crew_append(&crew, &chain, EVC_LANE_QUEUE_NORMAL, i));
	/* Posts need no memory. */
	suite_allocator_install(0, UINT64_MAX);
	status = crew_post(&crew, &chain);
	suite_allocator_restore();
	EXPECT_STATUS(status, EVC_OK);
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

static const char *mistakes(void)
{
	struct evc_chain nothing = EVC_CHAIN_EMPTY;
	struct crew crew;

	EXPECT_NONE(crew_open(&crew, 1, NULL));
	EXPECT_STATUS(evc_balancer_create(NULL, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_add(NULL, crew.receivers[0].subscription, 0, false,
				       &crew.loads[0]),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_add(crew.balancer, NULL, 0, false, &crew.loads[0]),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_add(crew.balancer, crew.receivers[0].subscription, 0, false,
				       NULL),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_add(crew.balancer, evc_balancer_subscription(crew.balancer), 0,
				       false, &crew.loads[0]),
		      EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(evc_balancer_remove(crew.balancer, NULL), EVC_INVALID_ARGUMENT);
	EXPECT_STATUS(crew_post(&crew, &nothing), EVC_INVALID_ARGUMENT);
	EXPECT_EQUAL(evc_balancer_count(crew.balancer), 1, "receivers");
	EXPECT_NONE(crew_close(&crew));
	return NULL;
}

static const char *plain_closed(void)
{
	return crew_plainly(closed);
}

static const char *plain_looks_again(void)
{
	return crew_plainly(looks_again);
}

static const struct evc_suite_test tests[] = {
	{ "D4 what a closed or retired receiver would get goes to another, or back", closed },
	{ "D4 what is left of a chain when the last receiver closes is counted", half },
	{ "D4 and reported as refused, also to a balancer around this one", half_of_a_dispatch },
	{ "D4 a receiver without memory has not closed, and its promises count as lost", starved },
	{ "D4 a balancer looks again when all that it knew were replaced", looks_again },
	{ "D2 nothing goes to another receiver when all were removed before they close", removed },
	{ "D4 plain payloads: what a closed or retired receiver would get", plain_closed },
	{ "D4 plain payloads: a balancer looks again when all were replaced", plain_looks_again },
	{ "D12 a balancer out of memory stays as it was", out_of_memory },
	{ "D12 a balancer refuses what breaks a rule", mistakes },
};
SUITE_GROUP(suite_balancer_close, tests);
#endif
