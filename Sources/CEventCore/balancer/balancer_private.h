/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A balancer: its receivers and their changes (balancer.c); how a chain reaches them (balancer_post.c). */
#ifndef EVC_BALANCER_PRIVATE_H
#define EVC_BALANCER_PRIVATE_H

#include "eventcore/balancer.h"

#include "memory/subscription.h"
#include "platform/compiler.h"
#include "platform/domain.h"
#include "routing/snapshot.h"

#include <pthread.h>
#include <stdatomic.h>

struct evc_balancer {
	struct evc_sink sink;
	/* What routers refer to; envelopes that no receiver takes are addressed to it again. */
	struct evc_subscription subscription;
	uint32_t (*choose)(void *context, const struct evc_balancer_choice *choice);
	/* Relaxed: written by every posting thread if there is no `choose`. `own_turn`, or the caller's. */
	_Atomic uint32_t *turn;
	/* Read: any thread, in a section. Written: under `mutex`. NULL = no receivers. */
	evc_current_snapshot current;
	/* Constant. `now` is NULL for evc_clock_now. */
	struct evc_clock clock;
	_Atomic uint32_t references;
	pthread_mutex_t mutex;
	/* Relaxed: statistics. */
	_Atomic uint64_t refused;
	_Atomic uint64_t dropped;
	/* On another line than what all posting threads read. */
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t own_turn;
};

static inline struct evc_balancer *evc_balancer_of(struct evc_sink *sink)
{
	return evc_container_of(sink, struct evc_balancer, sink);
}

/* The sink's `accept` (balancer_post.c). Any thread. */
enum evc_status evc_balancer_accept(struct evc_sink *sink, const struct evc_chain *chain);

#endif
