/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 *     producers ──► evc_router ──► evc_mailbox × n ──► evc_thread × n: count and add up
 */
#include "check.h"

#include <eventcore/eventcore.h>

#include <stdatomic.h>
#include <string.h>

#define KEY 1u
#define MOST 8u

struct consumer {
	/* Written by the consumer's thread; by main between two runs. */
	_Alignas(EVC_CACHE_LINE) uint64_t counts[MOST];
	uint64_t sums[MOST];
	uint64_t target;
	void (*handlers[MOST])(struct consumer *consumer, unsigned index, uint64_t value);
	struct evb_raw *raw;
	struct evc_mailbox *mailbox;
	struct evc_thread *thread;
};

struct evb_raw {
	struct evb_load load;
	struct evc_router *router;
	struct evb_gate start, done;
	/* How many handlers have not received everything. */
	_Atomic unsigned open;
	/* How many producers have come to the gate. */
	_Atomic unsigned ready;
	uint64_t end;
	uint64_t each;
	struct consumer consumers[MOST];
};

static void count(struct consumer *consumer, unsigned index, uint64_t value)
{
	consumer->sums[index] += value;
	if (++consumer->counts[index] != consumer->target)
		return;
	/* acq_rel: the last one's time and everybody's sums before main reads them. */
	if (atomic_fetch_sub_explicit(&consumer->raw->open, 1, memory_order_acq_rel) == 1) {
		consumer->raw->end = evb_now();
		evb_gate_set(&consumer->raw->done, true);
	}
}

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct consumer *consumer = context;
	uint64_t value;

	(void)envelope, (void)owned;
	memcpy(&value, payload, sizeof(value));
	for (unsigned i = 0; i < consumer->raw->load.handlers; i++)
		consumer->handlers[i](consumer, i, value);
	return false;
}

/*
 * Field by field, as a program fills in a type of its own. A copy of a structure that was just written
 * would wait for the narrow store to reach the cache before the wide load: 6 ns an event.
 */
static inline __attribute__((always_inline)) void fill(void *payload, size_t size, uint64_t value)
{
	uint64_t *words = payload;

	words[0] = value;
	for (size_t i = 1; i < size / sizeof(*words); i++)
		words[i] = 0;
}

/* One event, the short way. False: it has several receivers. */
static inline __attribute__((always_inline)) bool produce_one(struct evb_raw *raw, enum evc_lane lane,
							      size_t size, uint64_t value)
{
	void *payload = evc_dispatch_begin_one(raw->router, KEY, lane, size, 8);

	if (payload == NULL)
		return false;
	fill(payload, size, value);
	evc_dispatch_commit_one(payload);
	return true;
}

/* Inlined for each size. */
static inline __attribute__((always_inline)) void produce(struct evb_raw *raw, size_t size)
{
	const unsigned batch = raw->load.batch;
	uint64_t random = 0x9E3779B97F4A7C15u;

	for (uint64_t n = 1; n <= raw->each; n += batch) {
		enum evc_lane lane = EVC_LANE_QUEUE_NORMAL;
		struct evc_dispatch dispatch;
		struct evc_envelope *envelope;
		enum evc_status status;

		if (raw->load.random_lanes) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			lane = (enum evc_lane)((uint32_t)random * (uint64_t)EVC_LANE_COUNT >> 32);
		}
		if (batch == 1 && produce_one(raw, lane, size, n))
			continue;
		status = batch > 1 ? evc_dispatch_begin_batch(raw->router, KEY, lane, size, 8, batch,
							      &dispatch)
				   : evc_dispatch_begin(raw->router, KEY, lane, size, 8, 1, &dispatch);
		EVB_REQUIRE(status == EVC_OK, "a dispatch failed");
		if (batch > 1 && dispatch.array != NULL) {
			for (unsigned i = 0; i < batch; i++)
				fill((char *)dispatch.array + i * size, size, n + i);
			evc_dispatch_commit(&dispatch);
			continue;
		}
		envelope = dispatch.first;
		for (unsigned i = 0; i < dispatch.payloads; i++) {
			fill(evc_envelope_payload(envelope), size, n + i % batch);
			if (i + 1 < dispatch.payloads)
				envelope = evc_dispatch_next(envelope);
		}
		evc_dispatch_commit(&dispatch);
	}
}

static void produce_all(struct evb_raw *raw)
{
	switch (raw->load.size) {
	case 8:
		produce(raw, 8);
		break;
	case 24:
		produce(raw, 24);
		break;
	default:
		produce(raw, 200);
	}
}

static void *producer(void *argument)
{
	struct evb_raw *raw = argument;

	atomic_fetch_add_explicit(&raw->ready, 1, memory_order_relaxed);
	evb_gate_pass(&raw->start);
	produce_all(raw);
	return NULL;
}

static uint64_t measure(struct evb_raw *raw)
{
	pthread_t threads[MOST];
	uint64_t start;

	if (raw->load.producers == 1) {
		start = evb_now();
		produce_all(raw);
	} else {
		for (unsigned i = 0; i < raw->load.producers; i++)
			threads[i] = evb_start(producer, raw);
		while (atomic_load_explicit(&raw->ready, memory_order_relaxed) != raw->load.producers)
			evb_pause_for(100000, false);
		start = evb_now();
		evb_gate_set(&raw->start, true);
		for (unsigned i = 0; i < raw->load.producers; i++)
			evb_join(threads[i]);
	}
	evb_gate_pass(&raw->done);
	return raw->end - start;
}

uint64_t evb_raw_run(struct evb_raw *raw, uint64_t events)
{
	const struct evb_load *load = &raw->load;
	uint64_t sum, time;

	/* Whole batches for each producer. */
	raw->each = events / load->producers / load->batch * load->batch;
	raw->start.open = raw->done.open = false;
	atomic_store_explicit(&raw->ready, 0, memory_order_relaxed);
	atomic_store_explicit(&raw->open, load->mailboxes * load->handlers, memory_order_relaxed);
	for (unsigned i = 0; i < load->mailboxes; i++) {
		memset(raw->consumers[i].counts, 0, sizeof(raw->consumers[i].counts));
		memset(raw->consumers[i].sums, 0, sizeof(raw->consumers[i].sums));
		raw->consumers[i].target = raw->each * load->producers;
	}
	time = measure(raw);
	sum = raw->each * (raw->each + 1) / 2 * load->producers;
	for (unsigned i = 0; i < load->mailboxes; i++)
		for (unsigned h = 0; h < load->handlers; h++)
			EVB_REQUIRE(raw->consumers[i].sums[h] == sum, "the checksum is wrong");
	return time;
}

static void open_consumer(struct evb_raw *raw, struct consumer *consumer)
{
	const struct evc_subscription_options options = { .size = sizeof(options), .context = consumer, .deliver = deliver };
	const struct evc_mailbox_options mailbox = { .size = sizeof(mailbox), .batches = true };
	struct evc_subscription *subscription;

	consumer->raw = raw;
	for (unsigned i = 0; i < MOST; i++)
		consumer->handlers[i] = count;
	EVB_REQUIRE(evc_mailbox_create(&mailbox, &consumer->mailbox) == EVC_OK, "no mailbox");
	EVB_REQUIRE(evc_mailbox_add_subscription(consumer->mailbox, &options, &subscription) ==
			    EVC_OK,
		    "no subscription");
	EVB_REQUIRE(evc_router_subscribe(raw->router, KEY, subscription, 0, false) == EVC_OK,
		    "no route");
	EVB_REQUIRE(evc_thread_start(NULL, consumer->mailbox, &consumer->thread) == EVC_OK,
		    "no thread");
}

struct evb_raw *evb_raw_open(const struct evb_load *load)
{
	static const struct evb_gate closed = EVB_GATE;
	struct evb_raw *raw = aligned_alloc(EVC_CACHE_LINE, sizeof(*raw));

	EVB_REQUIRE(raw != NULL, "no memory");
	EVB_REQUIRE(load->producers <= MOST && load->mailboxes <= MOST && load->handlers <= MOST,
		    "there is room for eight");
	memset(raw, 0, sizeof(*raw));
	raw->load = *load;
	raw->start = raw->done = closed;
	EVB_REQUIRE(evc_router_create(&raw->router) == EVC_OK, "no router");
	for (unsigned i = 0; i < load->mailboxes; i++)
		open_consumer(raw, &raw->consumers[i]);
	return raw;
}

void evb_raw_close(struct evb_raw *raw)
{
	for (unsigned i = 0; i < raw->load.mailboxes; i++) {
		evc_thread_cancel(raw->consumers[i].thread);
		EVB_REQUIRE(evc_thread_join(raw->consumers[i].thread) == EVC_OK, "no join");
		evc_mailbox_release(raw->consumers[i].mailbox);
	}
	evc_router_destroy(raw->router);
	free(raw);
}
