/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The mailboxes of routes.c: one plain, one with batches, one bounded, one with a latest-only and a conflated
 * subscription; and what arrives there.
 */
#include "routes.h"

struct event events[EVENTS];
unsigned event_count;
struct sink sinks[SINKS];
bool has_refused;
size_t kept;

/* The number lies in front, or in the block to which the payload points. */
static unsigned number_in(unsigned key, const void *payload)
{
	const unsigned *block;
	unsigned number;

	if (key == 1) {
		memcpy(&block, payload, sizeof(block));
		return *block;
	}
	memcpy(&number, payload, sizeof(number));
	return number;
}

void write_number(unsigned key, void *payload, unsigned number)
{
	unsigned *block;

	if (key == 1) {
		write_payload(payload, key);
		memcpy(&block, payload, sizeof(block));
		*block = number;
	} else {
		memcpy(payload, &number, sizeof(number));
	}
}

void check_arrival(unsigned at, unsigned key, const void *payload, const struct evc_envelope *envelope)
{
	const unsigned number = number_in(key, payload);
	struct expected *expected;

	CHECK(number < event_count && events[number].key == key);
	expected = &events[number].at[at];
	CHECK(expected->is_coming);
	CHECK(evc_envelope_subscription(envelope) == sinks[at].keys[key].made);
	CHECK(evc_envelope_generation(envelope) == expected->generation);
	CHECK(evc_envelope_time(envelope) == events[number].time);
	CHECK(evc_envelope_is_marked(envelope) == events[number].is_marked);
	CHECK(evc_envelope_lane(envelope) == events[number].lane);
	expected->is_coming = false;
}

/* The context of a subscription is its key's field in `sinks`. */
static unsigned place_of(const void *context, unsigned *key)
{
	for (unsigned at = 0; at < SINKS; at++)
		for (*key = 1; *key <= ROUTE_KEYS; ++*key)
			if (context == &sinks[at].keys[*key])
				return at;
	abort();
}

static bool arrive(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	unsigned key;
	const unsigned at = place_of(context, &key);

	check_arrival(at, key, payload, envelope);
	act();
	if (!owned || key != 1 || draw() % 2 == 0)
		return false;
	drop_payload(NULL, payload);
	return true;
}

static void arrive_together(void *context, void *payload, const struct evc_envelope *envelope,
			    struct evc_batch_walk *walk)
{
	unsigned key;
	const unsigned at = place_of(context, &key);

	do {
		check_arrival(at, key, payload, envelope);
		if (key == 1)
			drop_payload(NULL, payload);
		act();
	} while (!rarely() && (payload = evc_batch_next(walk)) != NULL);
}

/* Conflation by a key that is kept. There are three, whose numbers are the same; now and then there is no memory. */
static unsigned class_of(const void *payload)
{
	return number_in(2, payload) % 3;
}

static uint64_t same_number(void *context, const void *payload)
{
	(void)context, (void)payload;
	return 7;
}

static bool is_same(void *context, const void *key, const void *payload)
{
	(void)context;
	return *(const unsigned *)key == class_of(payload);
}

static void *keep(void *context, const void *payload)
{
	unsigned *key = rarely() ? NULL : malloc(sizeof(*key));

	(void)context;
	has_refused |= key == NULL;
	if (key == NULL)
		return NULL;
	*key = class_of(payload);
	kept++;
	return key;
}

static void let_go(void *context, void *key)
{
	(void)context;
	free(key);
	kept--;
}

static enum evc_status add_conflated(struct evc_mailbox *mailbox, const struct evc_subscription_options *options,
				     struct evc_subscription **out)
{
	const struct evc_conflation whole = { NULL, same_number, is_same, keep, let_go };
	struct evc_conflation part = whole;

	if (draw() % 2 == 0)
		part.keep = NULL;
	else
		part.number = NULL;
	CHECK(evc_mailbox_add_conflated_subscription(mailbox, options, &part, out) == EVC_INVALID_ARGUMENT);
	return evc_mailbox_add_conflated_subscription(mailbox, options, &whole, out);
}

bool make_sink(unsigned at)
{
	struct evc_mailbox_options options = {
		.size = sizeof(options),
		.batches = at == BATCHED,
		.capacity = at == BOUNDED ? 1 + draw() % 4 : 0,
		.overflow = draw() % 2 == 0 ? EVC_OVERFLOW_REFUSE : EVC_OVERFLOW_DROP_NEWEST,
		.parker = draw() % 2 == 0 ? evc_parker_posix() : NULL,
	};

	if (sinks[at].made == NULL && evc_mailbox_create(&options, &sinks[at].made) != EVC_OK)
		return false;
	for (unsigned key = 1; key <= ROUTE_KEYS; key++) {
		const struct evc_subscription_options subscription = {
			.size = sizeof(subscription),
			.context = &sinks[at].keys[key],
			.deliver = arrive,
			.deliver_batch = draw() % 8 != 0 ? arrive_together : NULL,
			.drop = key == 1 ? drop_payload : NULL,
		};
		struct evc_subscription **out = &sinks[at].keys[key].made;

		if (*out == NULL && (at != LATEST ? evc_mailbox_add_subscription
				     : key == 1 ? evc_mailbox_add_latest_subscription
						: add_conflated)(sinks[at].made, &subscription, out) != EVC_OK)
			return false;
	}
	return true;
}
