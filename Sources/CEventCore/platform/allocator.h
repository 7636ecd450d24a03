/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The installed allocator, as the rest of the core calls it. Threads: any. Ownership: the caller's until
 * evc_deallocate with the same size and alignment.
 */
#ifndef EVC_ALLOCATOR_H
#define EVC_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

void *evc_allocate(size_t size, size_t alignment);
void evc_deallocate(void *memory, size_t size, size_t alignment);
/* How many blocks are in use. */
size_t evc_allocated_blocks(void);

/*
 * Gives the pages of unused memory back to the system until they are written to again. False: the pages stay,
 * because they are not whole pages on this system or come from an installed allocator.
 */
bool evc_release_pages(void *memory, size_t size);

#endif
