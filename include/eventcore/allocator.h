/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file allocator.h
 * Where the core's memory comes from. Install an allocator to place that memory yourself, or to make an
 * allocation fail in a test.
 */
#ifndef EVENTCORE_ALLOCATOR_H
#define EVENTCORE_ALLOCATOR_H

#include "base.h"

EVC_BEGIN_DECLS

/** A source of memory. Any thread may call both functions, several at once; neither may call the core. */
struct evc_allocator {
	/** Passed to both functions; the core never reads it. */
	void *context;
	/** Returns `size` bytes aligned to `alignment` (a power of two), or NULL. */
	void *(*allocate)(void *context, size_t size, size_t alignment);
	/** Frees what `allocate` returned; size and alignment are those of that call. */
	void (*deallocate)(void *context, void *memory, size_t size, size_t alignment);
};

/**
 * Returns the allocator that the core starts with: mmap for what is aligned to 4,096 bytes or more (slabs, what a thread
 * keeps, the larger blocks of a scheduler, and payloads that ask for it), the C library for everything else.
 *
 * Threads: any. Progress: wait-free. Ownership: static.
 */
EVC_API const struct evc_allocator *evc_allocator_default(void);

/**
 * Makes `allocator` the source of all memory that the core asks for from now on; NULL installs the default
 * allocator again.
 *
 * Blocks of the former allocator are passed to the new one when they are freed. An allocator that is
 * installed while blocks are in use must therefore pass those that are not its own to
 * `evc_allocator_default()`.
 *
 * Threads: any. Progress: wait-free. Ownership: the caller keeps `*allocator` alive and unchanged until it is
 * replaced and all of its blocks have been freed. Errors: EVC_INVALID_ARGUMENT if a function is missing.
 */
EVC_API EVC_MUST_USE enum evc_status evc_allocator_install(const struct evc_allocator *allocator);

EVC_END_DECLS
#endif
