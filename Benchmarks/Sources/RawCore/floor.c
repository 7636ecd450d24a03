/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What the machine itself takes: nothing of EventCore is in this file.
 *
 *     futex:       main: stamp, count, FUTEX_WAKE ──► thread in FUTEX_WAIT: notes the time
 *     cache line:  main: stores to one line, thread: answers on another, both look all the time
 *     additions:   main: eight that do not depend on each other, as many at once as the core can
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"

#include <stdatomic.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>

struct sleeper {
	/* Counted up by main with each wake-up; the word that the thread sleeps on. */
	_Alignas(64) _Atomic uint32_t word;
	_Atomic uint64_t stamp;
	unsigned count;
	uint64_t *samples;
};

static void *sleep_and_note(void *argument)
{
	struct sleeper *sleeper = argument;

	for (uint32_t seen = 0; seen < sleeper->count; seen++) {
		/* Acquire: pairs with the release in evb_futex_wakes, the stamp before the count. */
		while (atomic_load_explicit(&sleeper->word, memory_order_acquire) == seen)
			syscall(SYS_futex, &sleeper->word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
		sleeper->samples[seen] =
			evb_now() - atomic_load_explicit(&sleeper->stamp, memory_order_relaxed);
	}
	return NULL;
}

void evb_futex_wakes(unsigned count, uint64_t gap, bool spinning, uint64_t *samples)
{
	struct sleeper sleeper = { .count = count, .samples = samples };
	pthread_t thread = evb_start(sleep_and_note, &sleeper);

	for (unsigned i = 0; i < count; i++) {
		evb_pause_for(gap, spinning);
		atomic_store_explicit(&sleeper.stamp, evb_now(), memory_order_relaxed);
		atomic_store_explicit(&sleeper.word, i + 1, memory_order_release);
		syscall(SYS_futex, &sleeper.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	evb_join(thread);
}

bool evb_has_futex(void)
{
	return true;
}
#else
void evb_futex_wakes(unsigned count, uint64_t gap, bool spinning, uint64_t *samples)
{
	(void)count, (void)gap, (void)spinning, (void)samples;
	EVB_REQUIRE(false, "this system has no futex");
}

bool evb_has_futex(void)
{
	return false;
}
#endif

struct lines {
	/* Each on a line of its own, two apart, since processors fetch lines in pairs. */
	_Alignas(128) _Atomic uint64_t there;
	_Alignas(128) _Atomic uint64_t back;
	uint64_t rounds;
};

static void *echo(void *argument)
{
	struct lines *lines = argument;

	for (uint64_t i = 1; i <= lines->rounds; i++) {
		while (atomic_load_explicit(&lines->there, memory_order_acquire) != i)
			;
		atomic_store_explicit(&lines->back, i, memory_order_release);
	}
	return NULL;
}

uint64_t evb_cache_line_ping_pong(uint64_t rounds)
{
	struct lines lines = { .rounds = rounds };
	pthread_t thread = evb_start(echo, &lines);
	uint64_t start = 0, end;

	for (uint64_t i = 1; i <= rounds; i++) {
		/* The first round waits for the thread's start. */
		if (i == 2)
			start = evb_now();
		atomic_store_explicit(&lines.there, i, memory_order_release);
		while (atomic_load_explicit(&lines.back, memory_order_acquire) != i)
			;
	}
	end = evb_now();
	evb_join(thread);
	return end - start;
}

double evb_eight_additions(void)
{
	enum { ROUNDS = 300000 };
	uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, start = evb_now();

	for (unsigned i = 0; i < ROUNDS; i++) {
		a++, b++, c++, d++, e++, f++, g++, h++;
		/* Each is done in each round. */
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
	}
	return (double)(evb_now() - start) / ROUNDS;
}
