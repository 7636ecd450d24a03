/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* One file, though long: it is what producers and owners see of a shared mailbox. */
#include "shared/shared_mailbox_private.h"

#include "latest/latest.h"
#include "platform/allocator.h"
#include "platform/options.h"
#include "platform/references.h"

static enum evc_status accept(struct evc_sink *sink, const struct evc_chain *chain)
{
	return evc_shared_post(evc_shared_mailbox_of(sink), chain);
}

static void retain(struct evc_sink *sink)
{
	evc_shared_mailbox_retain(evc_shared_mailbox_of(sink));
}

static void release(struct evc_sink *sink)
{
	evc_shared_mailbox_release(evc_shared_mailbox_of(sink));
}

enum evc_status evc_shared_mailbox_create(struct evc_shared_mailbox **out)
{
	return evc_shared_mailbox_create_bounded(0, EVC_OVERFLOW_REFUSE, 0, out);
}

enum evc_status evc_shared_mailbox_create_bounded(uint64_t capacity, enum evc_overflow overflow,
						  uint64_t block_ns, struct evc_shared_mailbox **out)
{
	struct evc_shared_mailbox *mailbox;

	if (out == NULL || (unsigned)overflow > EVC_OVERFLOW_BLOCK || capacity > EVC_BOUND_MAX)
		return EVC_INVALID_ARGUMENT;
	mailbox = evc_allocate(sizeof(*mailbox), _Alignof(struct evc_shared_mailbox));
	if (mailbox == NULL)
		return EVC_OUT_OF_MEMORY;
	*mailbox = (struct evc_shared_mailbox){
		.sink = { accept, retain, release, false, EVC_NEEDS_SEGMENT, NULL, NULL, NULL },
		.references = 1,
		.worker_mutex = PTHREAD_MUTEX_INITIALIZER,
	};
	if (evc_shared_lanes_open(&mailbox->lanes)) {
		if (evc_event_count_open(&mailbox->woken)) {
			if (capacity == 0 || evc_shared_bound_open(mailbox, capacity, overflow, block_ns)) {
				*out = mailbox;
				return EVC_OK;
			}
			evc_event_count_close(&mailbox->woken);
		}
		evc_shared_lanes_close(&mailbox->lanes);
	}
	evc_deallocate(mailbox, sizeof(*mailbox), _Alignof(struct evc_shared_mailbox));
	return EVC_OUT_OF_MEMORY;
}

void evc_shared_mailbox_retain(struct evc_shared_mailbox *mailbox)
{
	evc_reference_add(&mailbox->references);
}

void evc_shared_mailbox_release(struct evc_shared_mailbox *mailbox)
{
	if (mailbox == NULL || !evc_reference_drop(&mailbox->references))
		return;
	evc_shared_drop_all(mailbox);
	evc_subscription_list_close(&mailbox->subscriptions);
	evc_event_count_close(&mailbox->woken);
	pthread_mutex_destroy(&mailbox->worker_mutex);
	evc_bound_destroy(mailbox->bound);
	evc_shared_lanes_close(&mailbox->lanes);
	evc_deallocate(mailbox, sizeof(*mailbox), _Alignof(struct evc_shared_mailbox));
}

struct evc_sink *evc_shared_mailbox_sink(struct evc_shared_mailbox *mailbox)
{
	return &mailbox->sink;
}

/* Sorts a chain into one chain for each lane, keeping its order, and puts these. */
static __attribute__((noinline)) void put_several_lanes(struct evc_shared_mailbox *mailbox,
							const struct evc_chain *chain)
{
	struct evc_chain lanes[EVC_LANE_COUNT] = { EVC_CHAIN_EMPTY };
	struct evc_envelope *envelope = chain->first, *next;

	for (; envelope != NULL; envelope = next) {
		next = evc_slot_next(envelope);
		evc_chain_append(&lanes[envelope->lane], envelope);
	}
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		if (lanes[lane].first != NULL)
			evc_shared_lanes_put(&mailbox->lanes, lane, lanes[lane].first, lanes[lane].count);
}

/* P2 and what follows. The mailbox is still there: a posting thread holds a reference. */
void evc_shared_tell(struct evc_shared_mailbox *mailbox)
{
	uint32_t attention = atomic_load_explicit(&mailbox->attention, memory_order_seq_cst);

	if (evc_unlikely(attention >= EVC_SHARED_SLEEPER))
		evc_shared_wake_one(mailbox);
	/*
	 * A second look: the workers may have ended meanwhile. Relaxed: if they ended after P2 in the
	 * single order, their last look follows P1.
	 */
	if (evc_unlikely(attention & EVC_SHARED_CLOSED) &&
	    (atomic_load_explicit(&mailbox->attention, memory_order_relaxed) &
	     (EVC_SHARED_DROP | EVC_SHARED_ENDED)))
		evc_shared_drop_all(mailbox);
}

enum evc_status evc_shared_post(struct evc_shared_mailbox *mailbox, const struct evc_chain *chain)
{
	const bool is_one_lane = (chain->lanes & (chain->lanes - 1)) == 0;
	uint32_t queues = 0;

	if (evc_unlikely(chain->first == NULL))
		return EVC_INVALID_ARGUMENT;
	if (evc_unlikely(evc_shared_is_closed(mailbox)))
		return EVC_CLOSED;
	for (uint32_t lanes = chain->lanes >> EVC_LANE_FIRST_QUEUE; lanes != 0; lanes &= lanes - 1)
		queues++;
	if (queues != 0) {
		struct evc_thread_record *record = evc_thread_record();

		/* All memory that may be needed, so that nothing fails half way. */
		if (evc_unlikely(record == NULL ||
				 !evc_spares_provide(record, EVC_NEEDS_SEGMENT, queues, false)))
			return EVC_OUT_OF_MEMORY;
	}
	/* P1. */
	if (evc_likely(is_one_lane))
		evc_shared_lanes_put(&mailbox->lanes, (unsigned)__builtin_ctz(chain->lanes), chain->first, chain->count);
	else
		put_several_lanes(mailbox, chain);
	evc_shared_tell(mailbox);
	return EVC_OK;
}

enum evc_status evc_shared_mailbox_post(struct evc_shared_mailbox *mailbox,
					const struct evc_chain *chain)
{
	if (mailbox == NULL || chain == NULL)
		return EVC_INVALID_ARGUMENT;
	return evc_sink_post(&mailbox->sink, chain);
}

/* Adds a subscription: an ordinary one without a conflation; otherwise as evc_latest_create. */
static enum evc_status add(struct evc_shared_mailbox *mailbox, const struct evc_shared_subscription_options *options,
			   const struct evc_conflation *conflation, struct evc_subscription **out)
{
	struct evc_shared_subscription_options own;
	enum evc_status status = EVC_OPTIONS_READ(&own, struct evc_shared_subscription_options, options, finalize);
	struct evc_subscription as;

	if (status != EVC_OK)
		return status;
	if (mailbox == NULL || own.deliver == NULL || out == NULL)
		return EVC_INVALID_ARGUMENT;
	as = (struct evc_subscription){
		.sink = &mailbox->sink,
		.deliver_by_worker = own.deliver,
		.drop = own.drop,
		.context = own.context,
		.finalize = own.finalize,
		.is_shared = true,
	};
	if (conflation != NULL)
		return evc_latest_create(&as, &mailbox->subscriptions, &evc_mailbox_kind_shared, conflation, out);
	return evc_subscription_list_add(&mailbox->subscriptions, &as, out);
}

enum evc_status evc_shared_mailbox_add_subscription(struct evc_shared_mailbox *mailbox,
						    const struct evc_shared_subscription_options *options,
						    struct evc_subscription **out)
{
	return add(mailbox, options, NULL, out);
}

enum evc_status evc_shared_mailbox_add_latest_subscription(struct evc_shared_mailbox *mailbox,
							   const struct evc_shared_subscription_options *options,
							   struct evc_subscription **out)
{
	return add(mailbox, options, &evc_latest_only, out);
}

enum evc_status evc_shared_mailbox_add_conflated_subscription(struct evc_shared_mailbox *mailbox,
							      const struct evc_shared_subscription_options *options,
							      const struct evc_conflation *conflation,
							      struct evc_subscription **out)
{
	return conflation != NULL ? add(mailbox, options, conflation, out) : EVC_INVALID_ARGUMENT;
}

void evc_shared_mailbox_depths(struct evc_shared_mailbox *mailbox, uint64_t depths[EVC_LANE_COUNT])
{
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++)
		depths[lane] = 0;
	evc_shared_lanes_add_depths(&mailbox->lanes, depths);
	if (mailbox->bound != NULL && mailbox->bound->lanes != NULL)
		evc_shared_lanes_add_depths(mailbox->bound->lanes, depths);
	evc_latest_discount(&mailbox->subscriptions, depths);
}

void evc_shared_mailbox_read_statistics(struct evc_shared_mailbox *mailbox,
					struct evc_mailbox_statistics *out)
{
	const struct evc_latest_figures latest = evc_latest_read(&mailbox->subscriptions);
	uint64_t depths[EVC_LANE_COUNT];

	*out = (struct evc_mailbox_statistics){
		/* Acquire: the counts that they were added to, which are read later, are not older. */
		.taken = 0 - atomic_load_explicit(&mailbox->taken_empty, memory_order_acquire),
		.dropped = latest.refused - atomic_load_explicit(&mailbox->dropped_empty, memory_order_acquire),
		.superseded = latest.superseded,
	};
	pthread_mutex_lock(&mailbox->worker_mutex);
	out->taken += mailbox->taken_by_others;
	for (unsigned i = 0; i < EVC_WORKERS_MAX; i++)
		if (mailbox->workers[i] != NULL)
			/* Acquire: what waits, which is read later, is not older. */
			out->taken += atomic_load_explicit(&mailbox->workers[i]->taken, memory_order_acquire);
	pthread_mutex_unlock(&mailbox->worker_mutex);
	/* Acquire, as above. */
	out->dropped += atomic_load_explicit(&mailbox->dropped, memory_order_acquire);
	evc_shared_mailbox_depths(mailbox, depths);
	evc_bound_read(mailbox->bound, depths, out);
}
#endif
