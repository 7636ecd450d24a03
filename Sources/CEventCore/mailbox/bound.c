/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "mailbox/bound.h"

#include "platform/allocator.h"
#include "platform/clock.h"

/*
 * A producer looks for a place for about 4 us before it sleeps: a fast consumer frees many places in that time. In the
 * explorer it looks once.
 */
#ifndef EVC_BOUND_LOOKS
#define EVC_BOUND_LOOKS 32u
#endif
#define PAUSES 4u

static bool open_lanes(struct evc_bound *bound)
{
	struct evc_shared_lanes *lanes = evc_allocate(sizeof(*lanes), _Alignof(struct evc_shared_lanes));

	if (lanes == NULL)
		return false;
	*lanes = (struct evc_shared_lanes){ 0 };
	if (!evc_shared_lanes_open(lanes)) {
		evc_deallocate(lanes, sizeof(*lanes), _Alignof(struct evc_shared_lanes));
		return false;
	}
	bound->lanes = lanes;
	return true;
}

struct evc_bound *evc_bound_create(uint64_t capacity, enum evc_overflow policy, uint64_t block_ns,
				   const struct evc_mailbox_kind *how, struct evc_sink *mailbox)
{
	struct evc_bound *bound = evc_allocate(sizeof(*bound), _Alignof(struct evc_bound));

	if (bound == NULL)
		return NULL;
	*bound = (struct evc_bound){
		.capacity = capacity,
		.block_ns = block_ns,
		.policy = policy,
		.how = how,
		.mailbox = mailbox,
	};
	if (evc_event_count_open(&bound->rounds)) {
		if (policy != EVC_OVERFLOW_DROP_OLDEST || open_lanes(bound))
			return bound;
		evc_event_count_close(&bound->rounds);
	}
	evc_deallocate(bound, sizeof(*bound), _Alignof(struct evc_bound));
	return NULL;
}

void evc_bound_destroy(struct evc_bound *bound)
{
	if (bound == NULL)
		return;
	evc_event_count_close(&bound->rounds);
	if (bound->lanes != NULL) {
		evc_shared_lanes_close(bound->lanes);
		evc_deallocate(bound->lanes, sizeof(*bound->lanes), _Alignof(struct evc_shared_lanes));
	}
	evc_deallocate(bound, sizeof(*bound), _Alignof(struct evc_bound));
}

/* Raises `*word` to `value`, and returns which of the two is larger. */
static uint64_t raise_to(_Atomic uint64_t *word, uint64_t value)
{
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);

	/* Release, pairs with evc_bound_admit by `limit`: whoever is admitted by it knows what A2 has acquired. */
	while (old < value)
		if (atomic_compare_exchange_weak_explicit(word, &old, value, memory_order_release,
							  memory_order_relaxed))
			return value;
	return old;
}

uint32_t evc_bound_admit_by_look(struct evc_bound *bound, uint32_t events)
{
	/*
	 * Relaxed: a value that is too old is too low, which fails at A3, or shows that the mailbox is full all the more. If a
	 * post that failed has lowered it since, see evc_bound_give_back.
	 */
	uint64_t admitted = atomic_load_explicit(&bound->admitted, memory_order_relaxed);
	uint64_t taken, in_use, mark;

	do {
		/* seq_cst: B2 of a shared mailbox. */
		taken = atomic_load_explicit(&bound->taken, memory_order_seq_cst);
		/* Taken meanwhile, so that `admitted` has changed too, and the compare-and-swap will fail. */
		in_use = admitted > taken ? admitted - taken : 0;
		if (in_use >= bound->capacity)
			return 0;
		if (events > bound->capacity - in_use)
			events = (uint32_t)(bound->capacity - in_use);
	} while (!atomic_compare_exchange_weak_explicit(&bound->admitted, &admitted, admitted + events,
							memory_order_relaxed, memory_order_relaxed));
	/* Not beyond the capacity, hence never beyond claim 1. */
	mark = raise_to(&bound->high_water, in_use + events);
	(void)raise_to(&bound->limit, taken + mark);
	return events;
}

uint64_t evc_bound_free(struct evc_bound *bound)
{
	/*
	 * In this order, so that the difference is not below 0: a consumer of its own wrote what it reads, or, of a shared
	 * mailbox, the acquire pairs with T1.
	 */
	uint64_t taken = atomic_load_explicit(&bound->taken, memory_order_acquire);
	uint64_t in_use = atomic_load_explicit(&bound->admitted, memory_order_relaxed) - taken;

	return in_use < bound->capacity ? bound->capacity - in_use : 0;
}

enum evc_status evc_bound_wait(struct evc_bound *bound, uint64_t *end)
{
	uint32_t round;

	if (bound->block_ns == 0)
		return EVC_FULL;
	if (*end == 0)
		*end = evc_clock_after(bound->block_ns);
	for (unsigned look = 0; look < EVC_BOUND_LOOKS; look++) {
		for (unsigned i = 0; i < PAUSES; i++)
			evc_pause();
		if (evc_bound_admit_by_look(bound, 1) > 0)
			return EVC_OK;
	}
	for (bool is_late = false;; is_late = *end != EVC_FOREVER && evc_clock_now() >= *end) {
		/* B0: before the raise, and before the look at CLOSED, which a close sets before the advance that B0 acquires. */
		round = evc_event_count_read(&bound->rounds);
		bound->how->raise(bound->mailbox);
		if (bound->how->is_closed(bound->mailbox))
			return EVC_CLOSED;
		if (evc_bound_admit_by_look(bound, 1) > 0)
			return EVC_OK;
		if (is_late)
			return EVC_FULL;
		evc_event_count_wait(&bound->rounds, round, *end);
	}
}

void evc_bound_unblock(struct evc_bound *bound, uint64_t places)
{
	if (!evc_bound_has_places(bound, places))
		return;
	bound->how->clear(bound->mailbox);
	evc_event_count_advance(&bound->rounds);
}

void evc_bound_give_back(struct evc_bound *bound, uint32_t places)
{
	/* Relaxed: the advance releases it to B0, hence to a B2 that would find the mailbox full. */
	atomic_fetch_sub_explicit(&bound->admitted, places, memory_order_relaxed);
	if (bound->policy == EVC_OVERFLOW_BLOCK)
		evc_event_count_advance(&bound->rounds);
}

void evc_bound_read(struct evc_bound *bound, const uint64_t depths[EVC_LANE_COUNT],
		    struct evc_mailbox_statistics *statistics)
{
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		statistics->waiting += depths[lane];
	if (bound != NULL) {
		statistics->refused = atomic_load_explicit(&bound->refused, memory_order_relaxed);
		statistics->overflowed = atomic_load_explicit(&bound->overflowed, memory_order_relaxed);
		statistics->high_water = atomic_load_explicit(&bound->high_water, memory_order_relaxed);
	}
	statistics->accepted = statistics->taken + statistics->dropped + statistics->superseded +
			       statistics->overflowed + statistics->waiting;
}
#endif
