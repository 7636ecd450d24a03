/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* What belongs to the process: the reclaimer, the ends of a thread and of the core, parkers, a scheduler's thread. */
#include "fuzz.h"

#include <sched.h>
#include <stdatomic.h>

enum { PARKERS = 2 };

/* Parkers: a wait that a wake precedes returns at once, and the others have no time. */
static struct {
	struct evc_parker *made;
	uint32_t ticket;
	bool is_prepared, is_woken;
} parkers[PARKERS];

static void make_parker(unsigned index)
{
	struct evc_parker_ops ops = *evc_parker_posix();
	enum evc_status status, expected = EVC_OK;

	if (draw() % 16 == 0) {
		*(draw() % 2 == 0 ? (void **)&ops.wait : (void **)&ops.wake) = NULL;
		expected = EVC_INVALID_ARGUMENT;
	}
	CHECK(evc_parker_create(NULL, NULL) == EVC_INVALID_ARGUMENT);
	status = evc_parker_create(expected != EVC_OK	 ? &ops
				   : draw() % 2 == 0 ? evc_parker_posix()
				   : draw() % 2 == 0 ? evc_parker_futex()
						     : NULL,
				   &parkers[index].made);
	CHECK(is_status(status, expected));
	parkers[index].is_prepared = false;
}

static void use_parker(unsigned index)
{
	struct evc_parker *parker = parkers[index].made;
	enum evc_status status;

	if (parker == NULL) {
		make_parker(index);
		return;
	}
	switch (draw() % 4) {
	case 0:
		parkers[index].ticket = evc_parker_prepare(parker);
		parkers[index].is_prepared = true;
		parkers[index].is_woken = false;
		break;
	case 1:
		/* Nobody sleeps. */
		CHECK(!evc_parker_wake(parker));
		parkers[index].is_woken = true;
		break;
	case 2:
		if (!parkers[index].is_prepared)
			break;
		/* Without end only if it is woken. */
		status = evc_parker_wait(parker, parkers[index].ticket,
					 parkers[index].is_woken && draw() % 2 == 0 ? EVC_FOREVER : draw());
		CHECK(status == (parkers[index].is_woken ? EVC_OK : EVC_TIMED_OUT));
		break;
	default:
		if (rarely()) {
			evc_parker_destroy(parker);
			parkers[index].made = NULL;
		}
	}
}

/* A scheduler with a thread, which fires each of its timers once or drops it. */
struct ticks {
	struct evc_scheduler *scheduler;
	_Atomic uint64_t fired, dropped;
};

static uint64_t tick(void *context, uint64_t deadline)
{
	struct ticks *ticks = context;

	CHECK(deadline <= evc_clock_now() && evc_scheduler_join(ticks->scheduler) == EVC_NOT_PERMITTED);
	atomic_fetch_add(&ticks->fired, 1);
	return 0;
}

static void miss(void *context)
{
	atomic_fetch_add(&((struct ticks *)context)->dropped, 1);
}

static void run_scheduler(void)
{
	static const struct evc_timer_ops ops = { tick, miss, true };
	const struct evc_scheduler_clock lacking = { NULL, NULL, NULL };
	struct evc_scheduler_options options = { .size = sizeof(options), .clock = &lacking, .name = "ticks" };
	struct evc_scheduler_statistics statistics;
	struct ticks ticks = { 0 };
	const unsigned count = draw() % 8;

	CHECK(evc_scheduler_create(&options, &ticks.scheduler) == EVC_INVALID_ARGUMENT);
	options.clock = NULL;
	CHECK(evc_scheduler_create(draw() % 2 == 0 ? &options : NULL, &ticks.scheduler) == EVC_OK);
	for (unsigned i = 0; i < count; i++)
		CHECK(evc_scheduler_add(ticks.scheduler,
					draw() % 4 == 0 ? EVC_FOREVER : evc_clock_now() + draw() * 64, &ops, &ticks,
					NULL) == EVC_OK);
	CHECK(evc_scheduler_run_due(ticks.scheduler, EVC_FOREVER, NULL) == 0);
	evc_scheduler_close(ticks.scheduler);
	CHECK(evc_scheduler_add(ticks.scheduler, 1, &ops, &ticks, NULL) == EVC_CLOSED);
	CHECK(evc_scheduler_join(ticks.scheduler) == EVC_OK && ticks.fired + ticks.dropped == count);
	evc_scheduler_read_statistics(ticks.scheduler, &statistics);
	CHECK(statistics.pending == 0 && statistics.fired == ticks.fired && statistics.dropped == ticks.dropped);
	evc_scheduler_release(ticks.scheduler);
}

static void look(void)
{
	static bool had_barrier = true;
	struct evc_pool_statistics pools;
	const uint64_t before = evc_clock_now();
	const bool has_barrier = evc_barrier_everywhere();

	CHECK(had_barrier || !has_barrier);
	had_barrier = has_barrier;
	evc_pool_read_statistics(&pools);
	CHECK(pools.slab_bytes <= pools.slab_bytes_peak && pools.slab_bytes_peak < (size_t)1 << 30);
	CHECK(before != 0 && evc_clock_now() >= before && evc_version() == EVC_VERSION);
	CHECK(evc_status_text((enum evc_status)draw())[0] != '\0');
}

void call_whole(unsigned choice, bool is_inside)
{
	enum evc_status status;

	switch (choice) {
	case 0:
		status = evc_unregister_thread();
		CHECK(is_inside ? status == EVC_OK || status == EVC_NOT_PERMITTED : status == EVC_OK);
		break;
	case 1:
		status = evc_shutdown();
		CHECK(status == EVC_NOT_PERMITTED || (status == EVC_OK && !is_inside));
		if (status == EVC_OK)
			check_memory();
		break;
	case 2:
		if (rarely())
			evc_reclaimer_start();
		break;
	case 3:
		install_allocator();
		break;
	case 4:
		call_threads();
		break;
	case 5:
		look();
		if (draw() % 64 == 0)
			run_scheduler();
		break;
	default:
		use_parker(draw() % PARKERS);
	}
}

void end_whole(void)
{
	const bool has_detached = end_threads();

	for (unsigned i = 0; i < PARKERS; i++) {
		evc_parker_destroy(parkers[i].made);
		parkers[i].made = NULL;
	}
	/* A thread that was detached may still be ending. */
	while (evc_shutdown() != EVC_OK) {
		CHECK(has_detached);
		sched_yield();
	}
	end_memory();
}
