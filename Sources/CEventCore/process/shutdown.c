/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/*
 * The end of the core in a process.
 *
 * Whether it is in use is one number: every object, envelope, node, walker and thread record is or lies in a block of
 * the allocator. When this thread has given back what it keeps, and everything that can be freed is, no block is left
 * unless somebody uses it.
 */
#include "eventcore/pool.h"
#include "eventcore/reclaim.h"
#include "memory/consumed.h"
#include "memory/thread_record.h"
#include "platform/allocator.h"
#include "platform/domain.h"
#include "platform/own_thread.h"
#include "scheduler/scheduler_private.h"
#include "shared/shared_mailbox_private.h"
#include "tree/tree_reclaim.h"
#include "tree/tree_walker.h"

#include <pthread.h>

/* Held by the one thread that ends the core; a second one is refused. */
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;

enum evc_status evc_unregister_thread(void)
{
	const struct evc_thread_record *record = evc_thread_record_current;

	/* The record last: a `release` of the trees' may use it, and may leave a dispatch open, which keeps it. */
	if (evc_consumed_current != NULL || evc_shared_consumed != NULL || evc_domain_is_reclaiming() ||
	    evc_scheduler_is_thread() || (record != NULL && record->pins != 0) || !evc_tree_thread_leaves() ||
	    !evc_thread_record_detach())
		return EVC_NOT_PERMITTED;
	return EVC_OK;
}

/* Frees everything that is in no use. Returns whether that was everything. */
static bool free_all(void)
{
	evc_last_thread_end();
	evc_tree_reclaim();
	/* What the trees' and the schedulers' functions have used on this thread meanwhile. */
	if (evc_unregister_thread() != EVC_OK)
		return false;
	evc_domain_reclaim_all();
	/* A `finalize` may have made this thread a record. */
	if (evc_unregister_thread() != EVC_OK)
		return false;
	/* Twice: the first look only finds out which slab pools are in use, and nobody uses them. */
	evc_pool_trim();
	evc_pool_trim();
	evc_domain_reclaim_all();
	return evc_allocated_blocks() == evc_domain_blocks();
}

enum evc_status evc_shutdown(void)
{
	enum evc_status status = evc_unregister_thread();
	bool was_wanted, is_all;

	if (status != EVC_OK)
		return status;
	if (pthread_mutex_trylock(&ending) != 0)
		return EVC_NOT_PERMITTED;
	was_wanted = evc_domain_stop();
	/* Again if a `finalize` has started the reclaimer meanwhile. */
	do
		is_all = free_all();
	while (is_all && evc_domain_stop());
	if (is_all) {
		/* The thread of a scheduler that was freed since. */
		evc_last_thread_end();
		evc_domain_end();
		evc_thread_records_end();
		evc_walkers_end();
	} else {
		status = EVC_NOT_PERMITTED;
		if (was_wanted)
			evc_reclaimer_start();
	}
	pthread_mutex_unlock(&ending);
	return status;
}
#endif
