/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What a scenario is written with: threads are pthreads, atomics are C11's, and these few.
 *
 * A scenario runs once for each schedule, from the same beginning: static variables and memory are as they
 * were. It must do the same whenever the same choices are made; so no addresses of the system's, no real time.
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
	 * Of a litmus test: each outcome that is allowed, between spaces. All must be found, and no other. Or "! text":
	 * it has to fail, with that text.
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
/* A fault of the core that stands: to become a SCENARIO when it is mended, which the run then asks for. */
#define KNOWN_FAULT(function, text) EXPLORER_SCENARIO(function, text)

/* The schedule breaks a promise. Does not return. */
_Noreturn void explorer_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(condition)                                                                           \
	((condition) ? (void)0                                                                     \
		     : explorer_fail("%s:%d: CHECK(%s)", __FILE__, __LINE__, #condition))

/* What a litmus test came to. */
void explorer_outcome(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Starts a thread, and waits for its end. */
pthread_t explorer_start(void *(*function)(void *), void *argument);
void explorer_join(pthread_t thread);

/*
 * From here on it is a failure if all sleep, and one goes on only because its time is over: nobody has woken
 * it, and its time limit hides that.
 */
void explorer_forbid_idling(bool forbid);
/* The same for what goes on later than `time`. */
void explorer_forbid_idling_past(uint64_t time);

/* As on a system without membarrier: evc_barrier_everywhere returns false. */
void explorer_take_barrier_away(void);

/* Waits until all other threads sleep without a time limit, or have ended. */
void explorer_settle(void);

/*
 * For what a scenario notes down, and does not check the core with: its accesses are not seen, so they need no
 * order, and give none.
 */
#define UNSEEN __attribute__((no_sanitize_thread, noinline))

#endif
