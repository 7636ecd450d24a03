/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#define _GNU_SOURCE 1
#include "eventcore/allocator.h"
#include "platform/allocator.h"
#include "platform/compiler.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Blocks with at least this alignment are mapped, so that freeing them gives them back to the system. */
#define MAP_FROM ((size_t)4096)
/* And at least this size: the leak checker does not search mapped memory, and slabs need no search. */
#ifdef EVC_ADDRESS_SANITIZER
#define MAP_SIZE ((size_t)1 << 17)
#else
#define MAP_SIZE ((size_t)1)
#endif

static bool is_mapped(size_t size, size_t alignment)
{
	return alignment >= MAP_FROM && size >= MAP_SIZE;
}

/* Maps memory. For an alignment larger than a page it maps more than was asked for and unmaps both ends. */
static void *map_aligned(size_t size, size_t alignment)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t total = alignment > page ? size + alignment : size;
	char *start, *aligned, *end;

	if (total < size)
		return NULL;
	start = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
	if (start == MAP_FAILED)
		return NULL;
	end = start + total;
	aligned = (char *)(((uintptr_t)start + alignment - 1) & ~(uintptr_t)(alignment - 1));
	if (aligned != start)
		munmap(start, (size_t)(aligned - start));
	if (aligned + size != end)
		munmap(aligned + size, (size_t)(end - (aligned + size)));
	return aligned;
}

static size_t page_rounded(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) & ~(page - 1);
}

static void *default_allocate(void *context, size_t size, size_t alignment)
{
	void *memory = NULL;

	(void)context;
	if (is_mapped(size, alignment))
		return map_aligned(page_rounded(size), alignment);
	if (alignment < sizeof(void *))
		alignment = sizeof(void *);
	return posix_memalign(&memory, alignment, size ? size : 1) == 0 ? memory : NULL;
}

static void default_deallocate(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context;
	if (is_mapped(size, alignment))
		munmap(memory, page_rounded(size));
	else
		free(memory);
}

static const struct evc_allocator default_allocator = {
	.allocate = default_allocate,
	.deallocate = default_deallocate,
};

/* Written by evc_allocator_install, read by every allocation. */
static _Atomic(const struct evc_allocator *) installed = &default_allocator;

const struct evc_allocator *evc_allocator_default(void)
{
	return &default_allocator;
}

enum evc_status evc_allocator_install(const struct evc_allocator *allocator)
{
	if (allocator == NULL)
		allocator = &default_allocator;
	if (allocator->allocate == NULL || allocator->deallocate == NULL)
		return EVC_INVALID_ARGUMENT;
	/* Pairs with evc_allocate and evc_deallocate: the table's fields before its pointer. */
	atomic_store_explicit(&installed, allocator, memory_order_release);
	return EVC_OK;
}

/* How many blocks are in use, for evc_shutdown. Relaxed: a count; on a line that nobody else needs. */
static _Alignas(EVC_CACHE_LINE) _Atomic size_t blocks;

size_t evc_allocated_blocks(void)
{
	return atomic_load_explicit(&blocks, memory_order_relaxed);
}

void *evc_allocate(size_t size, size_t alignment)
{
	/* Pairs with evc_allocator_install. */
	const struct evc_allocator *a = atomic_load_explicit(&installed, memory_order_acquire);
	void *memory = a->allocate(a->context, size, alignment);

	if (memory != NULL)
		atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
	return memory;
}

void evc_deallocate(void *memory, size_t size, size_t alignment)
{
	/* Pairs with evc_allocator_install. */
	const struct evc_allocator *a = atomic_load_explicit(&installed, memory_order_acquire);

	if (memory != NULL)
		atomic_fetch_sub_explicit(&blocks, 1, memory_order_relaxed);
	a->deallocate(a->context, memory, size, alignment);
}

bool evc_release_pages(void *memory, size_t size)
{
	/* Another allocator may use its pages differently. Relaxed: only the address is compared. */
	return atomic_load_explicit(&installed, memory_order_relaxed) == &default_allocator &&
	       size % (size_t)sysconf(_SC_PAGESIZE) == 0 &&
	       madvise(memory, size, MADV_DONTNEED) == 0;
}
#endif
