/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Dispatches in unusual situations: abandoned at every position in a segment of slots, open at the same time,
 * as chains, and from other threads.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "bench.h"

#include <stdio.h>
#include <string.h>

#define MOST_OPEN 4u

/* After `before` events, `events` are begun and abandoned, and the rest of the segment is used. */
static const char *taken_back_after(struct bench *bench, unsigned before, unsigned events)
{
	struct evc_dispatch dispatch;

	EXPECT_NONE(bench_open(bench));
	for (unsigned i = 0; i < before; i++)
		EXPECT_NONE(bench_dispatch_one(bench));
	EXPECT_NONE(bench_take_all(bench));
	EXPECT_OK(bench_begin(bench, BENCH_ONE, events, &dispatch));
	evc_dispatch_abandon(&dispatch);
	for (unsigned i = 0; i < 140; i++) {
		EXPECT_NONE(bench_dispatch_one(bench));
		EXPECT_NONE(bench_take_all(bench));
		if (i % 3 != before % 3)
			continue;
		if (i < 10) {
			EXPECT_NONE(bench_post_elsewhere(bench));
			EXPECT_NONE(bench_take_all(bench));
		}
		/* Returns all free slots. */
		EXPECT_STATUS(evc_mailbox_wait(bench->receiver.mailbox, 0), EVC_TIMED_OUT);
	}
	return bench_close(bench);
}

static const char *taken_back(void)
{
	static const unsigned events[] = { 1, 2, 5, 6, 7, 62, 63, 64 };
	static struct bench bench;

	/* Around the end of a segment (64 slots). */
	for (unsigned before = 0; before < 70; before += before == 7 ? 53 : 1)
		for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++)
			EXPECT_NONE(taken_back_after(&bench, before, events[i]));
	return NULL;
}

struct open_dispatch {
	struct evc_dispatch dispatch;
	uint64_t value;
};

static const char *post_chain(struct bench *bench, uint64_t value, unsigned count)
{
	struct evc_chain chain = EVC_CHAIN_EMPTY;

	for (unsigned i = 0; i < count; i++) {
		EXPECT_OK(suite_append(&chain, bench->receiver.subscription, EVC_LANE_QUEUE_NORMAL, value + i));
		bench_expect_next(bench, value + i);
	}
	EXPECT_OK(evc_mailbox_post(bench->receiver.mailbox, &chain));
	return NULL;
}

static const char *random_steps(struct bench *bench, uint64_t *state, unsigned steps)
{
	struct open_dispatch open[MOST_OPEN];
	unsigned open_count = 0;
	uint64_t value = 1000000;

	for (unsigned i = 0; i < steps; i++) {
		unsigned choice = (unsigned)(suite_random(state) % 64);
		uint32_t events = suite_random(state) % 2 ? 1 : 1 + suite_random(state) % 64;
		unsigned which = open_count > 0 ? (unsigned)(suite_random(state) % open_count) : 0;

		if (choice < 20 && open_count < MOST_OPEN) {
			struct open_dispatch *next = &open[open_count++];
			uint64_t key = suite_random(state) % 2 ? BENCH_ONE : BENCH_TWO;

			EXPECT_OK(bench_begin(bench, key, events, &next->dispatch));
			next->value = value;
			bench_write(&next->dispatch, value);
			value += 1000;
		} else if (choice < 44 && open_count > 0) {
			uint32_t payloads = open[which].dispatch.payloads;

			if (choice < 34) {
				(void)evc_dispatch_commit(&open[which].dispatch);
				for (uint32_t p = 0; p < payloads; p++)
					bench_expect_next(bench, open[which].value + p);
			} else {
				evc_dispatch_abandon(&open[which].dispatch);
			}
			open[which] = open[--open_count];
		} else if (choice < 48) {
			EXPECT_NONE(post_chain(bench, value, 1 + events % 3));
			value += 1000;
		} else if (choice == 48) {
			EXPECT_NONE(bench_post_elsewhere(bench));
		} else if (choice < 52) {
			(void)evc_mailbox_wait(bench->receiver.mailbox, 0);
		} else {
			uint64_t waiting = bench->posted - bench->taken;

			EXPECT_NONE(bench_take(bench, waiting > 4000 || choice % 2
							? waiting
							: suite_random(state) % (waiting + 1)));
		}
	}
	while (open_count > 0)
		evc_dispatch_abandon(&open[--open_count].dispatch);
	return bench_take_all(bench);
}

static const char *in_any_order(void)
{
	static struct bench bench;
	uint64_t seed = suite_seed();
	char text[256];

	for (unsigned i = 0; i < SUITE_SCALE(100u); i++) {
		uint64_t state = seed + i;
		const char *message;

		EXPECT_NONE(bench_open(&bench));
		message = random_steps(&bench, &state, 500);
		/* Copied, since suite_fail has one text for all. */
		if (message != NULL)
			snprintf(text, sizeof(text), "%s", message);
		EXPECT(message == NULL, "EVENTCORE_SEED=%llu: %s", (unsigned long long)(seed + i),
		       text);
		EXPECT_NONE(bench_close(&bench));
	}
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D4 a dispatch that is abandoned leaves no trace, wherever its slots lie", taken_back },
	{ "D2 D4 dispatches are open at once, and end in any order", in_any_order },
};
SUITE_GROUP(suite_open_dispatches, tests);
#endif
