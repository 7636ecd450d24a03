/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The shapes in plain C over the structures of CEventCore, and what the machine itself can do: what is
 * left between these figures and those of the Swift module is the price of Swift.
 *
 * Every function checks what its handlers received and ends the program with a sentence if it is wrong.
 */
#ifndef RAW_CORE_H
#define RAW_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t evb_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Lets so many nanoseconds pass, asleep or with the processor busy. */
void evb_pause_for(uint64_t nanoseconds, bool spinning);

/* One shape of throughput. */
struct evb_load {
	unsigned producers;
	unsigned mailboxes;
	/* Functions that each mailbox calls for each event. */
	unsigned handlers;
	/* Events in one dispatch, 1 to 64. */
	unsigned batch;
	/* A random lane of ten for each event, instead of the queue of normal priority. */
	bool random_lanes;
	/* Payload bytes: 8, 24 or 200. */
	size_t size;
};

struct evb_raw;

struct evb_raw *evb_raw_open(const struct evb_load *load);
/* Nanoseconds from the first dispatch until the last event was handled. */
uint64_t evb_raw_run(struct evb_raw *raw, uint64_t events);
void evb_raw_close(struct evb_raw *raw);

struct evb_pump;

struct evb_pump *evb_pump_open(void);
/*
 * Nanoseconds of so many frames of so many events of 24 bytes, posted (in whole batches, one by one if `batch` is 1) and
 * pumped on the calling thread.
 */
uint64_t evb_pump_run(struct evb_pump *pump, uint64_t frames, uint64_t events, uint32_t batch, bool has_deadline);
void evb_pump_close(struct evb_pump *pump);

struct evb_conflated;

struct evb_conflated *evb_conflated_open(uint64_t keys);
/* Nanoseconds of so many dispatches to a subscription that keeps the newest event of each key. */
uint64_t evb_conflated_run(struct evb_conflated *flood, uint64_t events);
void evb_conflated_close(struct evb_conflated *flood);

/* A mailbox that nothing was ever posted to. */
void *evb_mailbox_make(void);
void evb_mailbox_end(void *mailbox);

/*
 * Wakes an idle consumer `count` times, `gap` nanoseconds apart, and writes for each how long it was
 * from the dispatch to the handler's start.
 */
void evb_raw_wakes(unsigned count, uint64_t gap, bool spinning, uint64_t *samples);
void evb_futex_wakes(unsigned count, uint64_t gap, bool spinning, uint64_t *samples);
/* False where the system has no futex. */
bool evb_has_futex(void);

/* Nanoseconds of so many round trips between two spinning threads. */
uint64_t evb_raw_ping_pong(uint64_t rounds);
uint64_t evb_cache_line_ping_pong(uint64_t rounds);

/*
 * Nanoseconds for eight additions. They take about twice as long while another program runs on the other half of the core,
 * or the core's clock is slower.
 */
double evb_eight_additions(void);

/* Bytes that the core has mapped for its envelopes. */
uint64_t evb_slab_bytes(void);
struct evb_timers;

/* Nanoseconds for so many events through an inbox alone, one producer, one spinning consumer. */
uint64_t evb_choice_core_inbox(uint64_t events);
uint64_t evb_choice_called_wfcq(uint64_t events);
/* The same on one thread, post and take in turn. */
uint64_t evb_choice_core_inbox_alone(uint64_t events);
uint64_t evb_choice_called_wfcq_alone(uint64_t events);
/*
 * Nanoseconds for so many events from one producer through one shared mailbox to so many workers, whose
 * handler takes `work` nanoseconds; and the same by ten deques under a mutex.
 */
uint64_t evb_choice_shared(unsigned workers, uint64_t work, bool random_lanes, uint64_t events);
uint64_t evb_choice_mutex_deques(unsigned workers, uint64_t work, bool random_lanes, uint64_t events);
/* A scheduler with so many timers pending; a power of two. */
struct evb_timers *evb_timers_open(uint64_t count);
/* Cancels so many at random and adds as many, and tells the nanoseconds of both. */
void evb_timers_churn(struct evb_timers *timers, uint64_t count, uint64_t *insert, uint64_t *cancel);
void evb_timers_close(struct evb_timers *timers);

/* Writes how late each of `count` timers was, `ahead` nanoseconds after it was set; the same for a sleep. */
void evb_raw_lateness(unsigned count, uint64_t ahead, uint64_t *samples);
void evb_futex_lateness(unsigned count, uint64_t ahead, uint64_t *samples);

/* Nanoseconds for each step of an order of timers, a million pending, and the longest single step. */
struct evb_timer_order {
	double insert, cancel, fire, longest;
};
struct evb_timer_order evb_choice_timer_order(bool is_wheel);

/* False where liburcu's headers are missing. */
bool evb_has_wfcq(void);

#endif
