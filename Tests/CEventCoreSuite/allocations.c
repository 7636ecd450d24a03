/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include "memory/thread_record.h"

#define MOST 8192u

/* All guarded by `mutex`: any thread calls the allocator. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct suite_allocations counts;
static void *blocks[MOST];

static bool kept_by_the_core(size_t size)
{
	return size == EVC_SLAB_SIZE || size == EVC_THREAD_RECORD_SIZE;
}

static void note(void *from, void *to, uint64_t change)
{
	for (unsigned i = 0; i < MOST; i++) {
		if (blocks[i] == from) {
			blocks[i] = to;
			counts.live += change;
			return;
		}
	}
}

static void *allocate(void *context, size_t size, size_t alignment)
{
	const struct evc_allocator *next = context;
	void *memory = NULL;
	uint64_t call;

	pthread_mutex_lock(&mutex);
	call = counts.calls++;
	if (call >= counts.fail_at && call - counts.fail_at < counts.fail_count) {
		counts.failed++;
	} else {
		memory = next->allocate(next->context, size, alignment);
		if (memory != NULL && !kept_by_the_core(size))
			note(NULL, memory, 1);
	}
	pthread_mutex_unlock(&mutex);
	return memory;
}

static void deallocate(void *context, void *memory, size_t size, size_t alignment)
{
	const struct evc_allocator *next = context;

	pthread_mutex_lock(&mutex);
	note(memory, NULL, (uint64_t)-1);
	next->deallocate(next->context, memory, size, alignment);
	pthread_mutex_unlock(&mutex);
}

void suite_allocator_install(uint64_t fail_at, uint64_t fail_count)
{
	static struct evc_allocator counting = { NULL, allocate, deallocate };

	pthread_mutex_lock(&mutex);
	counts = (struct suite_allocations){ .fail_at = fail_at, .fail_count = fail_count };
	for (unsigned i = 0; i < MOST; i++)
		blocks[i] = NULL;
	/* Initialized once: a call that began before the last restore may still read it. */
	if (counting.context == NULL)
		counting.context = (void *)evc_allocator_default();
	pthread_mutex_unlock(&mutex);
	(void)evc_allocator_install(&counting);
}

struct suite_allocations suite_allocator_read(void)
{
	struct suite_allocations copy;

	pthread_mutex_lock(&mutex);
	copy = counts;
	pthread_mutex_unlock(&mutex);
	return copy;
}

void suite_allocator_restore(void)
{
	(void)evc_allocator_install(NULL);
}
#endif
