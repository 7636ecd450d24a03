/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file allocator.h
 * Where the core's memory comes from. Replace it to place the core's memory yourself, or to make
 * allocation fail in a test.
 */
#ifndef EVENTCORE_ALLOCATOR_H
#define EVENTCORE_ALLOCATOR_H

#include "base.h"

EVC_BEGIN_DECLS

/**
 * A source of memory. Both functions are called from any thread, also from several at once; neither
 * may call back into the core.
 */
struct evc_allocator {
	/** Handed to both functions; never read by the core. */
	void *context;
	/** Returns `size` bytes aligned to `alignment` (a power of two), or NULL. */
	void *(*allocate)(void *context, size_t size, size_t alignment);
	/** Takes back what `allocate` returned, with the same size and alignment. */
	void (*deallocate)(void *context, void *memory, size_t size, size_t alignment);
};

/**
 * The allocator that the core starts with: mmap for slabs, the C library for all else.
 *
 * Threads: any. Progress: wait-free. Ownership: static. Errors: none.
 */
EVC_API const struct evc_allocator *evc_allocator_default(void);

/**
 * Makes `allocator` the source of all further memory of the core; NULL brings the default back.
 *
 * Blocks that came from the allocator before go to the new one when they are freed, so that a
 * replacement at run time must pass strangers on to `evc_allocator_default()`.
 *
 * Threads: any. Progress: wait-free. Ownership: the caller keeps `*allocator` alive and unchanged
 * until it is replaced and every block it gave is back. Errors: EVC_INVALID_ARGUMENT if a function is
 * missing.
 */
EVC_API EVC_MUST_USE enum evc_status evc_allocator_install(const struct evc_allocator *allocator);

EVC_END_DECLS
#endif
