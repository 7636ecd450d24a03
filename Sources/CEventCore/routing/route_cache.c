/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* The routes that a thread remembers. The way that finds one there is in router_private.h. */
#include "routing/router_private.h"

enum evc_status evc_router_look_up(struct evc_router *router, uint64_t key,
				   struct evc_thread_record *record,
				   struct evc_route_cache_entry *entry,
				   struct evc_snapshot **snapshot, bool *owned)
{
	/* Made if there is no subscription yet: with a route the next dispatch hits the cache. */
	struct evc_route *route = evc_router_route(router, key);
	struct evc_snapshot *evicted;

	if (route == NULL)
		return EVC_OUT_OF_MEMORY;
	*snapshot = evc_snapshot_acquire(&route->current);
	/* Between begin and commit of another dispatch, which may use what the cache holds. */
	*owned = record->pins != 0;
	if (*owned)
		return EVC_OK;
	evicted = entry->snapshot;
	*entry = (struct evc_route_cache_entry){
		.router_number = router->number, .key = key, .route = route, .snapshot = *snapshot
	};
	*evc_route_counts_of(record, entry) = (struct evc_route_counts){ .tally = NULL };
	if (evicted != NULL)
		evc_snapshot_release(evicted);
	return EVC_OK;
}

void evc_route_cache_clear(struct evc_thread_record *record)
{
	for (size_t i = 0; i < EVC_ROUTE_CACHE_SIZE; i++) {
		struct evc_snapshot *snapshot = record->routes[i].snapshot;

		record->routes[i] = (struct evc_route_cache_entry){ .router_number = 0 };
		record->counts[i].tally = NULL;
		if (snapshot != NULL)
			evc_snapshot_release(snapshot);
	}
}
#endif
