/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "memory/thread_record.h"

#include "eventcore/pool.h"
#include "memory/spares.h"
#include "platform/allocator.h"

#include <pthread.h>

_Thread_local EVC_FOUND_AT_START struct evc_thread_record *evc_thread_record_current;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_available;

/* Guards both lists, at a thread's start and end; the trim takes it for a moment for each record. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct evc_thread_record *all, *orphans;

static void add_orphan(struct evc_thread_record *record)
{
	pthread_mutex_lock(&mutex);
	record->next_orphan = orphans;
	orphans = record;
	pthread_mutex_unlock(&mutex);
}

static void orphan(void *memory)
{
	struct evc_thread_record *record = memory;

	evc_route_cache_clear(record);
	/* A later destructor of this thread may dispatch; it then gets a new record. */
	evc_thread_record_current = NULL;
	/* The thread may have begun a dispatch that it did not end. */
	record->pins = 0;
	atomic_store_explicit(&record->reserve_bytes, 0, memory_order_relaxed);
	evc_spares_end(record);
	for (unsigned lane = 0; lane < EVC_LANE_COUNT; lane++) {
		evc_cursor_end(&record->envelopes[lane]);
		for (unsigned i = 0; i < EVC_CLASS_COUNT; i++)
			evc_cursor_end(&record->boxes[lane][i]);
	}
	for (unsigned i = 0; i < EVC_CLASS_COUNT; i++)
		evc_pool_end(&record->pools[i]);
	add_orphan(record);
	evc_pool_note_end();
}

static void make_key(void)
{
	key_available = pthread_key_create(&key, orphan) == 0;
}

bool evc_thread_record_detach(void)
{
	struct evc_thread_record *record = evc_thread_record_current;

	if (record == NULL)
		return true;
	if (record->pins != 0)
		return false;
	(void)pthread_setspecific(key, NULL);
	orphan(record);
	return true;
}

void evc_thread_records_end(void)
{
	if (key_available)
		pthread_key_delete(key);
	key_available = false;
	key_once = (pthread_once_t)PTHREAD_ONCE_INIT;
}

static struct evc_thread_record *create_record(void)
{
	struct evc_thread_record *record = evc_allocate(EVC_THREAD_RECORD_SIZE, EVC_THREAD_RECORD_ALIGNMENT);

	if (record == NULL)
		return NULL;
	*record = (struct evc_thread_record){ .pins = 0 };
	for (unsigned i = 0; i < EVC_CLASS_COUNT; i++)
		evc_pool_init(&record->pools[i], i);
	pthread_mutex_lock(&mutex);
	record->next = all;
	all = record;
	pthread_mutex_unlock(&mutex);
	return record;
}

struct evc_thread_record *evc_thread_record_attach(void)
{
	struct evc_thread_record *record;

	pthread_once(&key_once, make_key);
	pthread_mutex_lock(&mutex);
	record = orphans;
	if (record != NULL)
		orphans = record->next_orphan;
	pthread_mutex_unlock(&mutex);
	if (record == NULL)
		record = create_record();
	if (record == NULL)
		return NULL;
	/* Without a key the record would be lost at the thread's end: refuse rather than leak. */
	if (!key_available || pthread_setspecific(key, record) != 0) {
		orphan(record);
		return NULL;
	}
	evc_thread_record_current = record;
	return record;
}

/* True if slabs are left. */
static bool trim_record(struct evc_thread_record *record, struct evc_trim *trim)
{
	bool has_slabs = false;

	for (unsigned i = 0; i < EVC_CLASS_COUNT; i++) {
		size_t floor = i == 0 ? EVC_POOL_FLOOR_BYTES : EVC_POOL_FLOOR_BYTES / 4;
		struct evc_pool *pool = &record->pools[i];

		if (i == 0)
			floor += atomic_load_explicit(&record->reserve_bytes, memory_order_relaxed);
		if (record->is_claimed)
			floor = 0;
		trim->is_busy |= evc_pool_let_go(pool, floor);
		trim->has_surplus |= evc_pool_exceeds(pool, floor);
		has_slabs |= atomic_load_explicit(&pool->slabs, memory_order_relaxed) > 0;
	}
	return has_slabs;
}

/* Frees a claimed record without slabs, which follows `before` in the list of all (NULL: the first). */
static void free_record(struct evc_thread_record *record, struct evc_thread_record *before)
{
	struct evc_thread_record **link = before != NULL ? &before->next : &all;

	/* Other threads add at the head meanwhile. */
	pthread_mutex_lock(&mutex);
	while (*link != record)
		link = &(*link)->next;
	*link = record->next;
	pthread_mutex_unlock(&mutex);
	evc_deallocate(record, EVC_THREAD_RECORD_SIZE, EVC_THREAD_RECORD_ALIGNMENT);
}

void evc_thread_records_trim(struct evc_trim *trim)
{
	struct evc_thread_record *record, *before = NULL, *next;

	/* All records without a thread are the trim's meanwhile: a thread that begins makes a new one. */
	pthread_mutex_lock(&mutex);
	for (record = orphans; record != NULL; record = record->next_orphan)
		record->is_claimed = true;
	orphans = NULL;
	record = all;
	pthread_mutex_unlock(&mutex);
	/* Only a trim removes records from the list, so that the links can be followed without the mutex. */
	for (; record != NULL; record = next) {
		next = record->next;
		if (!trim_record(record, trim) && record->is_claimed) {
			free_record(record, before);
			continue;
		}
		before = record;
		if (record->is_claimed) {
			record->is_claimed = false;
			add_orphan(record);
		}
	}
}

_Thread_local EVC_FOUND_AT_START uint64_t evc_thread_origin;

uint64_t evc_thread_set_origin(uint64_t origin)
{
	uint64_t before = evc_thread_origin;

	evc_thread_origin = origin;
	return before;
}

void evc_thread_forget_tallies(void)
{
	struct evc_thread_record *record = evc_thread_record_current;

	for (size_t i = 0; record != NULL && i < EVC_ROUTE_CACHE_SIZE; i++)
		record->counts[i].tally = NULL;
}
#endif
