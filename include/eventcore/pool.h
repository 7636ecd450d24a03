/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file pool.h
 * The slab pools that envelopes and boxes come from.
 *
 * Every thread that dispatches has one slab pool for envelopes and one for each box size (128 bytes to 8 KiB;
 * larger boxes come from the allocator). Slots return one by one, whatever waits beside them, and a warm
 * program whose boxes have at most 8 KiB allocates nothing, as long as it has what it retires freed (reclaim.h). When a
 * thread ends, the next thread that starts takes its slab pools over, or they are freed.
 *
 * When memory is given back: a slab pool from which nothing was taken for EVC_POOL_REST_NS keeps
 * EVC_POOL_FLOOR_BYTES of free envelopes (a quarter of that for each box size; nothing if its thread has
 * ended). The rest goes back to the system: whole slabs of 256 KiB, or 4 KiB (of boxes above 2 KiB: 32 KiB) at a
 * time where some slots of a slab are in use. The latter needs pages of 4 KiB, and no allocator of your own
 * (allocator.h). A larger burst after that allocates again. Beside that a thread keeps, for each lane and size that it
 * has dispatched, the 4 KiB (32 KiB) that it takes from. The core's callback thread does this, or `evc_reclaim`
 * (reclaim.h), and only while there is something to give back. After a burst it also looks, twice a second, while the
 * thread goes on to dispatch and other events of it wait, or 4 KiB cannot be given back.
 */
#ifndef EVENTCORE_POOL_H
#define EVENTCORE_POOL_H

#include "base.h"

/** What a slab pool keeps at least, in bytes of free slots: 4,096 envelopes. */
#define EVC_POOL_FLOOR_BYTES ((size_t)4096 * 64)
/**
 * How long a slab pool must be unused before it is trimmed, in nanoseconds. It is looked at once per such
 * period, so that a trim comes after up to twice this time.
 */
#define EVC_POOL_REST_NS UINT64_C(400000000)

EVC_BEGIN_DECLS

/** A reading of all slab pools. */
struct evc_pool_statistics {
	/**
	 * Bytes of all slabs, whether in use or free, without the pages that went back to the system, and without slabs that
	 * a trim gives back, although these stay mapped until they are reclaimed (reclaim.h).
	 */
	size_t slab_bytes;
	/** The largest value that `slab_bytes` has had. */
	size_t slab_bytes_peak;
	/** The number of trims so far. */
	uint64_t trims;
};

/**
 * Reads how much memory the slab pools hold.
 *
 * @param out receives the figures
 *
 * Threads: any. Progress: wait-free. Ownership: fills the caller's structure.
 */
EVC_API void evc_pool_read_statistics(struct evc_pool_statistics *out);

/**
 * Trims the slab pools now, on the calling thread, by the rule above. A pool from which something was taken
 * since the last trim is left alone.
 *
 * Threads: any; one thread trims at a time, a second caller returns at once. Progress: takes time in
 * proportion to the free slots; slabs are unmapped a grace period later, by the callback thread or `evc_reclaim`.
 */
EVC_API void evc_pool_trim(void);

EVC_END_DECLS
#endif
