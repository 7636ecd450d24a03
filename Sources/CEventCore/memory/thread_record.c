/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifdef EVC_URCU
#include "memory/thread_record.h"

#include "memory/memory.h"
#include "memory/stream_table.h"

#include <pthread.h>

_Thread_local struct evc_thread_record *evc_thread_record_current;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_available;

static pthread_mutex_t orphan_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct evc_thread_record *orphans;

/* Pushed to by attach, walked by the trim; records stay for ever. */
static _Atomic(struct evc_thread_record *) all;
static _Atomic uint32_t pool_number;

static void orphan(void *memory)
{
	struct evc_thread_record *record = memory;

	evc_route_cache_clear(record);
	/* A later destructor of this thread may dispatch: it gets a record anew. */
	evc_thread_record_current = NULL;
	pthread_mutex_lock(&orphan_mutex);
	record->next_orphan = orphans;
	orphans = record;
	record->is_orphan = true;
	/* A mailbox that ends from now on sees the orphan; one that ended before is seen here. */
	evc_stream_table_sweep(&record->streams);
	pthread_mutex_unlock(&orphan_mutex);
}

static void make_key(void)
{
	key_available = pthread_key_create(&key, orphan) == 0;
}

static struct evc_thread_record *adopt(void)
{
	struct evc_thread_record *record;

	pthread_mutex_lock(&orphan_mutex);
	record = orphans;
	if (record != NULL) {
		orphans = record->next_orphan;
		record->is_orphan = false;
	}
	pthread_mutex_unlock(&orphan_mutex);
	return record;
}

static struct evc_thread_record *create(void)
{
	struct evc_thread_record *record = evc_allocate(sizeof(*record), EVC_CACHE_LINE);
	struct evc_thread_record *head;

	if (record == NULL)
		return NULL;
	for (size_t i = 0; i < EVC_CLASS_COUNT; i++)
		/* Relaxed: only the number itself counts. */
		evc_pool_init(&record->pools[i], i,
			      atomic_fetch_add_explicit(&pool_number, 1, memory_order_relaxed));
	for (size_t i = 0; i < EVC_ROUTE_CACHE_SIZE; i++)
		record->routes[i] = (struct evc_route_cache_entry){ .router_number = 0 };
	record->streams = (struct evc_stream_table){ .lists = NULL };
	record->pins = 0;
	record->next_orphan = NULL;
	record->is_orphan = false;
	head = atomic_load_explicit(&all, memory_order_relaxed);
	do {
		record->next = head;
		/* Pairs with evc_thread_record_first: the record's fields before its pointer. */
	} while (!atomic_compare_exchange_weak_explicit(&all, &head, record, memory_order_release,
							memory_order_relaxed));
	return record;
}

struct evc_thread_record *evc_thread_record_attach(void)
{
	struct evc_thread_record *record;

	pthread_once(&key_once, make_key);
	record = adopt();
	if (record == NULL)
		record = create();
	if (record == NULL)
		return NULL;
	/* Without a key nobody would get the record at the thread's end: refuse rather than leak. */
	if (!key_available || pthread_setspecific(key, record) != 0) {
		orphan(record);
		return NULL;
	}
	evc_thread_record_current = record;
	return record;
}

void evc_thread_record_forget(struct evc_thread_record *record, uint64_t mailbox_number)
{
	pthread_mutex_lock(&orphan_mutex);
	if (record->is_orphan)
		evc_stream_table_forget(&record->streams, mailbox_number);
	pthread_mutex_unlock(&orphan_mutex);
}

struct evc_thread_record *evc_thread_record_first(void)
{
	/* Pairs with create. */
	return atomic_load_explicit(&all, memory_order_acquire);
}
#endif
