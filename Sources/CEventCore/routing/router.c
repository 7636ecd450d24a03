/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "routing/router_private.h"

#include "platform/allocator.h"

#define FIRST_CAPACITY 16u

/* A number that no router and no state of one has. Not 0. */
static uint64_t new_number(void)
{
	static _Atomic uint64_t last;

	/* Relaxed: it only has to be unique. */
	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* Around every change of a route: V0, V1. Under the mutex. */
static void begin_change(struct evc_router *router)
{
	/* Relaxed: before V1, which releases. */
	atomic_store_explicit(&router->version, EVC_VERSION_CHANGING, memory_order_relaxed);
}

static void end_change(struct evc_router *router)
{
	/* Release, pairs with V2 (dispatch.c): who reads the number sees the route. */
	atomic_store_explicit(&router->version, new_number(), memory_order_release);
}

const void *evc_router_version(struct evc_router *router)
{
	return &router->version;
}

static size_t table_size(size_t capacity)
{
	return sizeof(struct evc_route_table) + capacity * sizeof(_Atomic(struct evc_route *));
}

static struct evc_route_table *create_table(size_t capacity, struct evc_route_table *outgrown)
{
	struct evc_route_table *table =
		evc_allocate(table_size(capacity), _Alignof(struct evc_route_table));

	if (table == NULL)
		return NULL;
	table->outgrown = outgrown;
	table->capacity = capacity;
	for (size_t i = 0; i < capacity; i++)
		atomic_init(&table->slots[i], NULL);
	return table;
}

/* Finds the slot that holds the key, or the free slot where it belongs, by linear probing. */
static _Atomic(struct evc_route *) *find_slot(struct evc_route_table *table, uint64_t key,
					      struct evc_route **route)
{
	for (size_t i = evc_route_hash(key, table->capacity);; i++) {
		_Atomic(struct evc_route *) *slot = &table->slots[i & (table->capacity - 1)];

		/* Pairs with add_route: the route's fields before its pointer. */
		*route = atomic_load_explicit(slot, memory_order_acquire);
		if (*route == NULL || (*route)->key == key)
			return slot;
	}
}

static struct evc_route *find_route(struct evc_router *router, uint64_t key)
{
	struct evc_route *route;

	/* Pairs with grow: the table's slots before its pointer. */
	(void)find_slot(atomic_load_explicit(&router->table, memory_order_acquire), key, &route);
	return route;
}

enum evc_status evc_router_create(struct evc_router **out)
{
	struct evc_router *router;
	struct evc_route_table *table;

	if (out == NULL)
		return EVC_INVALID_ARGUMENT;
	router = evc_allocate(sizeof(*router), _Alignof(struct evc_router));
	if (router == NULL)
		return EVC_OUT_OF_MEMORY;
	table = create_table(FIRST_CAPACITY, NULL);
	if (table == NULL) {
		evc_deallocate(router, sizeof(*router), _Alignof(struct evc_router));
		return EVC_OUT_OF_MEMORY;
	}
	*router = (struct evc_router){
		.number = new_number(), .version = new_number(), .table = table, .mutex = PTHREAD_MUTEX_INITIALIZER
	};
	*out = router;
	return EVC_OK;
}

enum evc_status evc_router_set_clock(struct evc_router *router, const struct evc_clock *clock)
{
	if (router == NULL || clock == NULL || clock->now == NULL)
		return EVC_INVALID_ARGUMENT;
	/* The snapshots of the routes have the clock. */
	if (router->route_count != 0)
		return EVC_NOT_PERMITTED;
	router->clock = *clock;
	return EVC_OK;
}

void evc_router_destroy(struct evc_router *router)
{
	struct evc_route_table *table, *outgrown;

	if (router == NULL)
		return;
	/* Relaxed, here and below: no other thread uses the router any more; see the declaration. */
	table = atomic_load_explicit(&router->table, memory_order_relaxed);
	for (size_t i = 0; i < table->capacity; i++) {
		struct evc_route *route =
			atomic_load_explicit(&table->slots[i], memory_order_relaxed);

		if (route == NULL)
			continue;
		evc_snapshot_retire(atomic_load_explicit(&route->current, memory_order_relaxed));
		evc_deallocate(route, sizeof(*route), _Alignof(struct evc_route));
	}
	for (; table != NULL; table = outgrown) {
		outgrown = table->outgrown;
		evc_deallocate(table, table_size(table->capacity),
			       _Alignof(struct evc_route_table));
	}
	pthread_mutex_destroy(&router->mutex);
	evc_deallocate(router, sizeof(*router), _Alignof(struct evc_router));
}

/* Makes room for one more route. Under the mutex. False = out of memory; the old table stays. */
static bool grow(struct evc_router *router)
{
	struct evc_route_table *old = atomic_load_explicit(&router->table, memory_order_relaxed), *table;

	if (router->route_count * 2 < old->capacity)
		return true;
	table = create_table(old->capacity * 2, old);
	if (table == NULL)
		return false;
	for (size_t i = 0; i < old->capacity; i++) {
		/* Relaxed: written under the mutex, which the caller holds. */
		struct evc_route *route = atomic_load_explicit(&old->slots[i], memory_order_relaxed);
		struct evc_route *none;

		if (route != NULL)
			atomic_store_explicit(find_slot(table, route->key, &none), route,
					      memory_order_relaxed);
	}
	/* Pairs with find_route. */
	atomic_store_explicit(&router->table, table, memory_order_release);
	return true;
}

/* The route of a key, made if it is new. Under the mutex. NULL = out of memory. */
static struct evc_route *add_route(struct evc_router *router, uint64_t key)
{
	struct evc_route *route = find_route(router, key), *none;

	if (route != NULL)
		return route;
	if (!grow(router))
		return NULL;
	route = evc_allocate(sizeof(*route), _Alignof(struct evc_route));
	if (route == NULL)
		return NULL;
	atomic_init(&route->current, NULL);
	route->key = key;
	router->route_count++;
	/* Pairs with find_slot. Relaxed: the table is written under the mutex, which the caller holds. */
	atomic_store_explicit(find_slot(atomic_load_explicit(&router->table, memory_order_relaxed), key, &none), route,
			      memory_order_release);
	return route;
}

enum evc_status evc_router_subscribe(struct evc_router *router, uint64_t key,
				     struct evc_subscription *subscription, uint32_t generation,
				     bool timed)
{
	return evc_router_subscribe_raising(router, key, subscription, generation, timed, NULL, 0);
}

enum evc_status evc_router_subscribe_raising(struct evc_router *router, uint64_t key,
					     struct evc_subscription *subscription, uint32_t generation,
					     bool timed, const struct evc_subscription *other,
					     uint32_t other_generation)
{
	struct evc_snapshot_entry entry = { subscription, generation, timed, NULL };
	enum evc_status status = EVC_OUT_OF_MEMORY;
	struct evc_snapshot *snapshot = NULL;
	struct evc_route *route;

	if (router == NULL || key == 0 || subscription == NULL || subscription->sink == NULL ||
	    generation > EVC_GENERATION_MAX || subscription == other || other_generation > EVC_GENERATION_MAX)
		return EVC_INVALID_ARGUMENT;
	pthread_mutex_lock(&router->mutex);
	route = add_route(router, key);
	if (route != NULL)
		snapshot = evc_snapshot_with(&route->current, entry, &router->clock,
					     &(struct evc_observation){ router->observer, key });
	if (snapshot != NULL) {
		evc_snapshot_raise(snapshot, other, other_generation);
		begin_change(router);
		evc_snapshot_publish(&route->current, snapshot);
		end_change(router);
		status = EVC_OK;
	}
	pthread_mutex_unlock(&router->mutex);
	return status;
}

enum evc_status evc_router_set_observer(struct evc_router *router, const struct evc_observer *observer)
{
	enum evc_status status = EVC_OK;
	struct evc_route_table *table;

	if (router == NULL || (observer != NULL && observer->note == NULL))
		return EVC_INVALID_ARGUMENT;
	pthread_mutex_lock(&router->mutex);
	begin_change(router);
	router->observer = observer != NULL ? *observer : (struct evc_observer){ NULL, NULL };
	/* Relaxed, both: written under the mutex. */
	table = atomic_load_explicit(&router->table, memory_order_relaxed);
	for (size_t i = 0; i < table->capacity && status == EVC_OK; i++) {
		struct evc_route *route = atomic_load_explicit(&table->slots[i], memory_order_relaxed);

		if (route != NULL) {
			struct evc_observation observation = { router->observer, route->key };

			status = evc_snapshot_observe(&route->current, &observation);
		}
	}
	end_change(router);
	pthread_mutex_unlock(&router->mutex);
	return status;
}

enum evc_status evc_router_unsubscribe(struct evc_router *router, uint64_t key,
				       struct evc_subscription *subscription)
{
	enum evc_status status = EVC_NOT_FOUND;
	struct evc_route *route;

	if (router == NULL || key == 0 || subscription == NULL)
		return EVC_INVALID_ARGUMENT;
	pthread_mutex_lock(&router->mutex);
	route = find_route(router, key);
	if (route != NULL) {
		begin_change(router);
		status = evc_snapshot_remove(&route->current, subscription);
		end_change(router);
	}
	pthread_mutex_unlock(&router->mutex);
	return status;
}

const struct evc_snapshot *evc_router_peek(struct evc_router *router, uint64_t key)
{
	struct evc_route *route = find_route(router, key);

	/* Pairs with evc_snapshot_publish. */
	return route != NULL ? atomic_load_explicit(&route->current, memory_order_acquire) : NULL;
}

uint32_t evc_router_count(struct evc_router *router, uint64_t key)
{
	struct evc_route *route = find_route(router, key);

	return route != NULL ? evc_snapshot_count(&route->current) : 0;
}

struct evc_route *evc_router_route(struct evc_router *router, uint64_t key)
{
	struct evc_route *route = find_route(router, key);

	if (route != NULL)
		return route;
	pthread_mutex_lock(&router->mutex);
	route = add_route(router, key);
	pthread_mutex_unlock(&router->mutex);
	return route;
}
#endif
