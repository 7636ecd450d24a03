/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The core's allocator: each block has pages of its own, at the same address in each execution, and nobody gets
 * it again.
 */
#include "engine.h"

#include "eventcore/allocator.h"

#include <stdlib.h>
#include <sys/mman.h>

#define BASE ((uintptr_t)0x200000000000u)
#define SIZE ((size_t)1 << 30)
#define PAGE ((uintptr_t)4096)

enum page { UNUSED, LIVE, FREED };

static KEPT bool is_mapped;
static KEPT uintptr_t next;
static KEPT uint8_t pages[SIZE / PAGE];
static KEPT size_t live_blocks;

void heap_reset(void)
{
	if (!is_mapped && mmap((void *)BASE, SIZE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			       0) != (void *)BASE)
		abort();
	is_mapped = true;
	memset(pages, UNUSED, next == 0 ? 0 : (next - BASE) / PAGE);
	next = BASE;
	live_blocks = 0;
}

static void mark(uintptr_t address, size_t size, enum page page)
{
	memset(&pages[(address - BASE) / PAGE], page, (size + PAGE - 1) / PAGE);
}

static void *allocate(void *context, size_t size, size_t alignment)
{
	uintptr_t address = next;

	(void)context;
	if (domain_is_inside())
		explorer_fail("allocates inside a read section");
	if (alignment < PAGE)
		alignment = PAGE;
	address = (next + alignment - 1) & ~(uintptr_t)(alignment - 1);
	size = size == 0 ? 1 : size;
	next = (address + size + PAGE - 1) & ~(PAGE - 1);
	if (next > BASE + SIZE)
		explorer_fail("an execution that needs more memory than the engine has");
	mark(address, size, LIVE);
	live_blocks++;
	/* What was never written is not to be relied on. */
	memset((void *)address, 0xa5, size);
	return (void *)address;
}

static void deallocate(void *context, void *memory, size_t size, size_t alignment)
{
	uintptr_t address = (uintptr_t)memory;

	(void)context;
	(void)alignment;
	if (memory == NULL)
		return;
	if (address < BASE || address >= next || address % PAGE != 0 ||
	    pages[(address - BASE) / PAGE] != LIVE)
		explorer_fail("frees what is no block: %lx", address);
	plain_free(address, size);
	mark(address, size == 0 ? 1 : size, FREED);
	live_blocks--;
}

void heap_check(uintptr_t address, uintptr_t program_counter)
{
	if (address < PAGE)
		explorer_fail("access to %lx (%s)", address, trace_place(program_counter));
	if (address < BASE || address >= BASE + SIZE || pages[(address - BASE) / PAGE] == LIVE)
		return;
	explorer_fail("use of %s memory: %lx (%s)",
		      pages[(address - BASE) / PAGE] == FREED ? "freed" : "unallocated", address,
		      trace_place(program_counter));
}

void heap_install(void)
{
	static const struct evc_allocator allocator = { NULL, allocate, deallocate };

	if (evc_allocator_install(&allocator) != EVC_OK)
		abort();
}
