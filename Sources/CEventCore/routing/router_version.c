/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* The numbers of routers and of their states: V0 and V1 in router_private.h. */
#include "routing/router_private.h"

static _Atomic uint64_t last_number;

uint64_t evc_router_new_number(void)
{
	/* Relaxed: it only has to be unique. */
	return atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
}

void evc_router_begin_change(struct evc_router *router)
{
	/* Relaxed: before V1, which releases. */
	atomic_store_explicit(&router->version, EVC_VERSION_CHANGING, memory_order_relaxed);
}

void evc_router_end_change(struct evc_router *router)
{
	/* Release, pairs with V2 (dispatch.c): who reads the number sees the route. */
	atomic_store_explicit(&router->version, evc_router_new_number(), memory_order_release);
}

const void *evc_router_version(struct evc_router *router)
{
	return &router->version;
}
#endif
