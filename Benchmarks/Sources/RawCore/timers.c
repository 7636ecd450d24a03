/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The scheduler of the core in plain C, and how late the system itself is.
 *
 *     main: add, cancel ──► evc_scheduler (a million pending)
 *     main: add a timer, sleep ... evc_scheduler's thread: notes the time
 */
#include "check.h"

#include <eventcore/eventcore.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

struct evb_timers {
	struct evc_scheduler *scheduler;
	uint64_t *ids;
	uint64_t count;
	uint64_t random;
};

static uint64_t evb_random(uint64_t *state)
{
	/* xorshift64*, S. Vigna 2016: https://arxiv.org/abs/1402.6246 */
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717) >> 16;
}

static uint64_t never(void *context, uint64_t deadline)
{
	(void)context, (void)deadline;
	EVB_REQUIRE(false, "a timer of the far future fired");
	return 0;
}

static const struct evc_timer_ops far_timer = { .fire = never };

/* Between 1,000 and 1,100 seconds from now: none fires while it is measured. */
static uint64_t far_deadline(struct evb_timers *timers)
{
	return evb_now() + UINT64_C(1000000000000) +
	       evb_random(&timers->random) % UINT64_C(100000000000);
}

static void add(struct evb_timers *timers, uint64_t place)
{
	EVB_REQUIRE(evc_scheduler_add(timers->scheduler, far_deadline(timers), &far_timer, NULL,
				      &timers->ids[place]) == EVC_OK,
		    "no timer");
}

struct evb_timers *evb_timers_open(uint64_t count)
{
	struct evb_timers *timers = calloc(1, sizeof(*timers));

	EVB_REQUIRE(timers != NULL, "no memory");
	timers->ids = calloc(count, sizeof(*timers->ids));
	EVB_REQUIRE(timers->ids != NULL, "no memory");
	timers->count = count;
	timers->random = 88172645463325252u;
	EVB_REQUIRE(evc_scheduler_create(NULL, &timers->scheduler) == EVC_OK, "no scheduler");
	for (uint64_t i = 0; i < count; i++)
		add(timers, i);
	return timers;
}

void evb_timers_churn(struct evb_timers *timers, uint64_t count, uint64_t *insert, uint64_t *cancel)
{
	/* Any place at random, but each once: an odd stride over a power of two. */
	uint64_t first = evb_random(&timers->random), stride = evb_random(&timers->random) | 1;
	uint64_t start = evb_now();

	for (uint64_t i = 0; i < count; i++)
		EVB_REQUIRE(evc_scheduler_cancel(timers->scheduler,
						 timers->ids[(first + i * stride) %
							     timers->count]) == EVC_OK,
			    "a timer is missing");
	*cancel = evb_now() - start;
	start = evb_now();
	for (uint64_t i = 0; i < count; i++)
		add(timers, (first + i * stride) % timers->count);
	*insert = evb_now() - start;
}

void evb_timers_close(struct evb_timers *timers)
{
	evc_scheduler_close(timers->scheduler);
	EVB_REQUIRE(evc_scheduler_join(timers->scheduler) == EVC_OK, "no join");
	evc_scheduler_release(timers->scheduler);
	free(timers->ids);
	free(timers);
}

struct sample {
	uint64_t late;
	struct evb_gate gate;
};

static uint64_t note(void *context, uint64_t deadline)
{
	struct sample *sample = context;

	sample->late = evb_now() - deadline;
	evb_gate_set(&sample->gate, true);
	return 0;
}

void evb_raw_lateness(unsigned count, uint64_t ahead, uint64_t *samples)
{
	static const struct evc_timer_ops ops = { .fire = note };
	struct evc_scheduler *scheduler;
	struct sample sample = { .gate = EVB_GATE };

	EVB_REQUIRE(evc_scheduler_create(NULL, &scheduler) == EVC_OK, "no scheduler");
	for (unsigned i = 0; i < count; i++) {
		evb_gate_set(&sample.gate, false);
		EVB_REQUIRE(evc_scheduler_add(scheduler, evb_now() + ahead, &ops, &sample, NULL) ==
				    EVC_OK,
			    "no timer");
		evb_gate_pass(&sample.gate);
		samples[i] = sample.late;
	}
	evc_scheduler_close(scheduler);
	EVB_REQUIRE(evc_scheduler_join(scheduler) == EVC_OK, "no join");
	evc_scheduler_release(scheduler);
}

#ifdef __linux__

struct futex_lateness {
	unsigned count;
	uint64_t ahead;
	uint64_t *samples;
};

/* On a thread of its own, since the slack stays with the thread. */
static void *sleep_on_futex(void *argument)
{
	const struct futex_lateness *work = argument;
	uint32_t word = 0;

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	for (unsigned i = 0; i < work->count; i++) {
		uint64_t deadline = evb_now() + work->ahead, now;

		while ((now = evb_now()) < deadline) {
			struct timespec span = { (time_t)((deadline - now) / 1000000000u),
						 (long)((deadline - now) % 1000000000u) };

			syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &span, NULL, 0);
		}
		work->samples[i] = now - deadline;
	}
	return NULL;
}

void evb_futex_lateness(unsigned count, uint64_t ahead, uint64_t *samples)
{
	struct futex_lateness work = { count, ahead, samples };

	evb_join(evb_start(sleep_on_futex, &work));
}

#else

void evb_futex_lateness(unsigned count, uint64_t ahead, uint64_t *samples)
{
	(void)count, (void)ahead, (void)samples;
	EVB_REQUIRE(false, "this system has no futex");
}

#endif
