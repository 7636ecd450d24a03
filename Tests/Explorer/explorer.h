/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The interface of scenarios: threads are pthreads, atomics are C11's, and the few functions below.
 *
 * A scenario runs once for each schedule, always from the same initial state of static variables and memory.
 * It must behave identically whenever the same choices are made: it must not depend on addresses that the
 * system assigns, or on real time.
 */
#ifndef EXPLORER_H
#define EXPLORER_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct scenario {
	const char *name;
	void (*run)(void);
	/*
	 * Of a litmus test: each allowed outcome, between spaces. All of them must be found, and no other. Or
	 * "! text": it must fail with that text.
	 */
	const char *outcomes;
};

#define EXPLORER_SCENARIO(function, text)                                                          \
	static void function(void);                                                                \
	static const struct scenario function##_scenario                                           \
		__attribute__((section("explorer_scenarios"), used, aligned(8))) = { #function,    \
										     function, text }; \
	static void function(void)

#define SCENARIO(function) EXPLORER_SCENARIO(function, NULL)
#define LITMUS(function, outcomes) EXPLORER_SCENARIO(function, outcomes)
/* A known fault of the core. When it is mended the run fails until this becomes a SCENARIO. */
#define KNOWN_FAULT(function, text) EXPLORER_SCENARIO(function, text)

/* Reports that the schedule breaks a promise. Does not return. */
_Noreturn void explorer_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(condition)                                                                           \
	((condition) ? (void)0                                                                     \
		     : explorer_fail("%s:%d: CHECK(%s)", __FILE__, __LINE__, #condition))

/* Reports the outcome of a litmus test. */
void explorer_outcome(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Starts a thread, and waits for its end. */
pthread_t explorer_start(void *(*function)(void *), void *argument);
void explorer_join(pthread_t thread);

/*
 * From here on it is a failure if all threads sleep and one goes on only because its time limit has passed:
 * it was not woken, which the time limit hides.
 */
void explorer_forbid_idling(bool forbid);
/* The same for a thread that goes on later than `time`. */
void explorer_forbid_idling_past(uint64_t time);

/* From here on as on a system without membarrier: evc_barrier_everywhere returns false. */
void explorer_take_barrier_away(void);

/* Waits until all other threads sleep without a time limit, or have ended. */
void explorer_settle(void);

/*
 * For the notes of a scenario, with which it does not check the core: their accesses are not simulated, so
 * that they need no order and create none.
 */
#define UNSEEN __attribute__((no_sanitize_thread, noinline))

#endif
