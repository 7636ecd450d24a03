/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Counts the allocations of the whole process while it is armed. The executable that links this target
 * gets its own malloc and family, which pass every call on to the C library.
 */
#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

struct evb_allocations {
	/* Calls of malloc, calloc, realloc and the aligned forms. */
	uint64_t blocks;
	/* Calls of free with a pointer. */
	uint64_t frees;
	/* Calls of mmap without a file, by anybody but the C library itself. */
	uint64_t maps;
	/* Bytes that were allocated less those that were freed, as the C library rounds them, without maps. */
	int64_t bytes;
};

/* Sets the counts to 0 and begins to count, on all threads. */
void evb_allocations_arm(void);
/* Stops counting and tells the counts. */
struct evb_allocations evb_allocations_disarm(void);
/* Whether a malloc of this process is really seen. False on systems without the wrappers. */
bool evb_allocations_work(void);

#endif
