/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The installed allocator, as the rest of the core calls it.
 * Threads: any. Progress: as the allocator. Ownership: the caller's until evc_deallocate with the same
 * size and alignment.
 */
#ifndef EVC_MEMORY_H
#define EVC_MEMORY_H

#include <stddef.h>

void *evc_allocate(size_t size, size_t alignment);
void evc_deallocate(void *memory, size_t size, size_t alignment);

#endif
