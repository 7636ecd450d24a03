/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file pool.h
 * The pools that envelopes and boxes come from.
 *
 * Every thread that dispatches has one pool of envelopes and one for each box size (128 bytes to 8 KiB; larger
 * boxes come from the allocator). Slots go back one by one, whatever waits beside them, and a warm program
 * allocates nothing. The pools of a thread that ended are taken over by the next thread that starts, or freed.
 *
 * The rule by which memory goes back: a pool of which nothing was taken for EVC_POOL_REST_NS keeps
 * EVC_POOL_FLOOR_BYTES of free envelopes (a quarter of that of each box size; nothing if its thread has ended);
 * the rest goes to the system, slab by slab of 256 KiB, or page by page where some slots of a slab are in use. The
 * thread that runs the RCU callbacks looks after that, only while there is something to give back.
 */
#ifndef EVENTCORE_POOL_H
#define EVENTCORE_POOL_H

#include "base.h"

/** What a pool keeps at least, in bytes of free slots: 4,096 envelopes. */
#define EVC_POOL_FLOOR_BYTES ((size_t)4096 * 64)
/** How long a pool must have rested, in nanoseconds; up to twice that, since the time is looked at so often. */
#define EVC_POOL_REST_NS UINT64_C(400000000)

EVC_BEGIN_DECLS

/** A reading of all pools. */
struct evc_pool_statistics {
	/** Bytes of slabs in use or free, without the pages that went back to the system. */
	size_t slab_bytes;
	/** The most that `slab_bytes` ever was. */
	size_t slab_bytes_peak;
	/** Trims so far. */
	uint64_t trims;
};

/**
 * Reads how much memory the pools hold.
 *
 * Threads: any. Progress: wait-free. Ownership: fills the caller's structure. Errors: none.
 */
EVC_API void evc_pool_read_statistics(struct evc_pool_statistics *out);

/**
 * Trims the pools now, on the calling thread, by the rule above: what was taken from since the trim before is left
 * alone.
 *
 * Threads: any; one trims at a time, a second caller returns at once. Progress: takes time in
 * proportion to the free slots; slabs are unmapped a grace period later. Errors: none.
 */
EVC_API void evc_pool_trim(void);

EVC_END_DECLS
#endif
