/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file pool.h
 * The pools that envelopes and boxes come from.
 *
 * Every thread that dispatches has one pool of envelopes and one for each box size (128 to 4096
 * bytes; larger boxes come from the allocator). Consumers hand slots back in chains of 32, so that a
 * warm program allocates nothing. The pools of a thread that ended are taken over by the next thread
 * that starts.
 *
 * The rule by which memory goes back: when a consumer has slept for 100 ms after at least 4,096
 * envelopes, or goes to sleep again and the last trim is a second ago, the pools are trimmed on the
 * thread that also runs the RCU callbacks. A pool from which more than
 * EVC_POOL_FLOOR_BYTES were taken since the trim before is busy and left alone; of a quiet one that many
 * free bytes stay, and slabs of 256 KiB that are free as a whole and beyond that are unmapped.
 */
#ifndef EVENTCORE_POOL_H
#define EVENTCORE_POOL_H

#include "base.h"

/** What a pool keeps at least, in bytes of free slots: 8,192 envelopes. */
#define EVC_POOL_FLOOR_BYTES ((size_t)8192 * 64)

EVC_BEGIN_DECLS

/** A reading of all pools. */
struct evc_pool_statistics {
	/** Bytes mapped for slabs now. */
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
 * Trims the pools now, on the calling thread, by the rule above (whenever the last one was). A consumer
 * loop of your own (a pump) calls it where it has time.
 *
 * Threads: any; one trims at a time, a second caller returns at once. Progress: takes time in
 * proportion to the free slots; slabs are unmapped a grace period later. Errors: none.
 */
EVC_API void evc_pool_trim(void);

EVC_END_DECLS
#endif
