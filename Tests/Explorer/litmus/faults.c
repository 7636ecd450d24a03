/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Does the engine find what it must find? Each of these programs is wrong, and must fail with the text that
 * its scenario names.
 */
#include "explorer.h"

#include "eventcore/parker.h"
#include "platform/allocator.h"
#include "platform/domain.h"

struct counted {
	_Atomic int references;
	int value;
};

static struct counted *counted;
static _Atomic(struct counted *) shared;
static _Atomic int flag;
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

static void make(void)
{
	counted = evc_allocate(sizeof(*counted), _Alignof(struct counted));
	atomic_init(&counted->references, 2);
	counted->value = 1;
}

static void let_go(memory_order order)
{
	CHECK(counted->value == 1);
	if (atomic_fetch_sub_explicit(&counted->references, 1, order) == 1)
		evc_deallocate(counted, sizeof(*counted), _Alignof(struct counted));
}

static void *let_go_release(void *unused)
{
	let_go(memory_order_release);
	return unused;
}

static void *let_go_acq_rel(void *unused)
{
	let_go(memory_order_acq_rel);
	return unused;
}

LITMUS(reference_without_acquire, "! data race")
{
	pthread_t other;

	make();
	other = explorer_start(let_go_release, NULL);
	let_go(memory_order_release);
	explorer_join(other);
}

LITMUS(reference_acq_rel, "done")
{
	pthread_t other;

	make();
	other = explorer_start(let_go_acq_rel, NULL);
	let_go(memory_order_acq_rel);
	explorer_join(other);
	explorer_outcome("done");
}

LITMUS(use_after_free, "! use of freed memory")
{
	make();
	let_go(memory_order_acq_rel);
	let_go(memory_order_acq_rel);
	CHECK(counted->value == 1);
}

static void *read_shared(void *in_section)
{
	struct counted *seen;

	if (in_section != NULL)
		evc_domain_enter();
	seen = atomic_load_explicit(&shared, memory_order_acquire);
	if (seen != NULL)
		CHECK(seen->value == 1);
	if (in_section != NULL)
		evc_domain_leave();
	return NULL;
}

static void replace(bool reader_is_in_section, bool waits)
{
	pthread_t reader;

	make();
	atomic_store_explicit(&shared, counted, memory_order_release);
	reader = explorer_start(read_shared, reader_is_in_section ? &flag : NULL);
	atomic_store_explicit(&shared, NULL, memory_order_relaxed);
	if (waits)
		evc_domain_synchronize();
	evc_deallocate(counted, sizeof(*counted), _Alignof(struct counted));
	explorer_join(reader);
	explorer_outcome("done");
}

LITMUS(grace_period, "done")
{
	replace(true, true);
}

/* Found as a race with the end of the block as well, whichever comes first. */
LITMUS(no_section, "! ")
{
	replace(false, true);
}

LITMUS(no_grace_period, "! use of freed memory")
{
	replace(true, false);
}

static void *second_then_first(void *unused)
{
	pthread_mutex_lock(&second);
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
	pthread_mutex_unlock(&second);
	return unused;
}

LITMUS(locks_in_two_orders, "! all sleep, for ever")
{
	pthread_t other = explorer_start(second_then_first, NULL);

	pthread_mutex_lock(&first);
	pthread_mutex_lock(&second);
	pthread_mutex_unlock(&second);
	pthread_mutex_unlock(&first);
	explorer_join(other);
}

/* The look comes before the announcement: a wake-up is lost. */
static struct evc_parker *parker;

static void *wake(void *unused)
{
	atomic_store_explicit(&flag, 1, memory_order_seq_cst);
	(void)evc_parker_wake(parker);
	return unused;
}

LITMUS(look_then_prepare, "! all sleep, for ever")
{
	pthread_t other;
	int seen;

	CHECK(evc_parker_create(NULL, &parker) == EVC_OK);
	other = explorer_start(wake, NULL);
	seen = atomic_load_explicit(&flag, memory_order_seq_cst);
	if (seen == 0)
		(void)evc_parker_wait(parker, evc_parker_prepare(parker), EVC_FOREVER);
	explorer_join(other);
}

LITMUS(time_limit_hides_it, "! all sleep until a time limit is over")
{
	pthread_t other;
	int seen;

	CHECK(evc_parker_create(NULL, &parker) == EVC_OK);
	other = explorer_start(wake, NULL);
	seen = atomic_load_explicit(&flag, memory_order_seq_cst);
	explorer_forbid_idling(true);
	if (seen == 0)
		(void)evc_parker_wait(parker, evc_parker_prepare(parker), 1000000);
	explorer_join(other);
}

LITMUS(waits_for_nobody, "! no end")
{
	while (atomic_load_explicit(&flag, memory_order_acquire) == 0)
		;
}

/* A thread that finds an object by its address must have received what atomic_init wrote. */
static void *find_object(void *unused)
{
	struct counted *seen = atomic_load_explicit(&shared, memory_order_acquire);

	if (seen != NULL)
		(void)atomic_load_explicit(&seen->references, memory_order_relaxed);
	return unused;
}

LITMUS(init_is_not_published, "! data race")
{
	pthread_t other = explorer_start(find_object, NULL);

	make();
	atomic_store_explicit(&shared, counted, memory_order_relaxed);
	explorer_join(other);
}
