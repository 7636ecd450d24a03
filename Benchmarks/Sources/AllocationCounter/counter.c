/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "AllocationCounter.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Relaxed throughout: the figures are read after the counted threads were waited for. */
static _Atomic bool armed;
static _Atomic uint64_t blocks, frees, maps;
static _Atomic int64_t bytes;

void evb_allocations_arm(void)
{
	atomic_store_explicit(&blocks, 0, memory_order_relaxed);
	atomic_store_explicit(&frees, 0, memory_order_relaxed);
	atomic_store_explicit(&maps, 0, memory_order_relaxed);
	atomic_store_explicit(&bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&armed, true, memory_order_relaxed);
}

struct evb_allocations evb_allocations_disarm(void)
{
	atomic_store_explicit(&armed, false, memory_order_relaxed);
	return (struct evb_allocations){
		atomic_load_explicit(&blocks, memory_order_relaxed),
		atomic_load_explicit(&frees, memory_order_relaxed),
		atomic_load_explicit(&maps, memory_order_relaxed),
		atomic_load_explicit(&bytes, memory_order_relaxed),
	};
}

bool evb_allocations_work(void)
{
	/* Volatile: or the compiler leaves out a block that nobody uses. */
	void *volatile block;
	struct evb_allocations counted;

	evb_allocations_arm();
	block = malloc(40);
	free(block);
	counted = evb_allocations_disarm();
	return counted.blocks >= 1 && counted.frees >= 1;
}

#ifdef __GLIBC__
#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's own names of its functions. dlsym would need memory before it can tell them. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);

static inline void note(_Atomic uint64_t *counter)
{
	if (__builtin_expect(atomic_load_explicit(&armed, memory_order_relaxed), 0))
		atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Notes a new block, which may be NULL, and passes it on. */
static inline void *noted(void *memory)
{
	if (__builtin_expect(atomic_load_explicit(&armed, memory_order_relaxed), 0)) {
		atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&bytes, (int64_t)malloc_usable_size(memory), memory_order_relaxed);
	}
	return memory;
}

/* Takes a block that is about to be freed, and may be NULL, out of the bytes. */
static inline void forget(void *memory)
{
	if (__builtin_expect(atomic_load_explicit(&armed, memory_order_relaxed), 0))
		atomic_fetch_sub_explicit(&bytes, (int64_t)malloc_usable_size(memory), memory_order_relaxed);
}

void *malloc(size_t size)
{
	return noted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	return noted(__libc_calloc(count, size));
}

void *realloc(void *memory, size_t size)
{
	forget(memory);
	return noted(__libc_realloc(memory, size));
}

void *memalign(size_t alignment, size_t size)
{
	return noted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return noted(__libc_memalign(alignment, size));
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	void *memory;

	if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
		return EINVAL;
	memory = noted(__libc_memalign(alignment, size));
	if (memory == NULL)
		return ENOMEM;
	*out = memory;
	return 0;
}

void free(void *memory)
{
	if (memory != NULL)
		note(&frees);
	forget(memory);
	__libc_free(memory);
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
	if (file == -1)
		note(&maps);
	return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}
#endif
