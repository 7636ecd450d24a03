/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The core's allocator: each block has pages of its own, at the same address in each execution, and is never
 * returned twice.
 */
#include "engine.h"

#include "eventcore/allocator.h"

#include <stdlib.h>
#include <sys/mman.h>

/*
 * Blocks up to this size count as written by the fiber that allocates them; one byte in this many is marked.
 */
#define WRITTEN ((size_t)32 << 10)
#define WRITTEN_EACH 64u

enum page { UNUSED, LIVE, FREED };

static KEPT bool is_mapped;
static KEPT uintptr_t next;
KEPT uint32_t heap_touched[HEAP_SIZE / HEAP_PAGE];
static KEPT uint8_t pages[HEAP_SIZE / HEAP_PAGE];
static KEPT size_t live_blocks;

void heap_reset(void)
{
	if (!is_mapped && mmap((void *)HEAP_BASE, HEAP_SIZE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			       0) != (void *)HEAP_BASE)
		abort();
	is_mapped = true;
	memset(pages, UNUSED, next == 0 ? 0 : (next - HEAP_BASE) / HEAP_PAGE);
	next = HEAP_BASE;
	live_blocks = 0;
}

static void mark(uintptr_t address, size_t size, enum page page)
{
	memset(&pages[(address - HEAP_BASE) / HEAP_PAGE], page, (size + HEAP_PAGE - 1) / HEAP_PAGE);
}

/* Memory that was never written has no reliable content, but the same one in each execution. */
static void fill(uintptr_t address, uintptr_t end)
{
	for (; address < end; address += HEAP_PAGE) {
		uint32_t *touched = &heap_touched[(address - HEAP_BASE) / HEAP_PAGE];

		if (*touched != HEAP_FRESH)
			memset((void *)address, 0xa5, HEAP_PAGE);
		*touched = HEAP_FRESH;
	}
}

static void *allocate(void *context, size_t size, size_t alignment)
{
	uintptr_t address = next;

	(void)context;
	if (domain_is_inside())
		explorer_fail("allocates inside a read section");
	if (alignment < HEAP_PAGE)
		alignment = HEAP_PAGE;
	address = (next + alignment - 1) & ~(uintptr_t)(alignment - 1);
	size = size == 0 ? 1 : size;
	next = (address + size + HEAP_PAGE - 1) & ~(HEAP_PAGE - 1);
	if (next > HEAP_BASE + HEAP_SIZE)
		explorer_fail("an execution that needs more memory than the engine has");
	mark(address, size, LIVE);
	live_blocks++;
	fill(address, next);
	/* The former owner of the memory is not simulated, but wrote to it: a user must come after this. */
	for (uintptr_t at = address; size <= WRITTEN && at < address + size; at += WRITTEN_EACH)
		plain_access(at, 1, ACCESS_WRITE, (uintptr_t)__builtin_return_address(0));
	return (void *)address;
}

static void deallocate(void *context, void *memory, size_t size, size_t alignment)
{
	uintptr_t address = (uintptr_t)memory;

	(void)context;
	(void)alignment;
	if (memory == NULL)
		return;
	if (address < HEAP_BASE || address >= next || address % HEAP_PAGE != 0 ||
	    pages[(address - HEAP_BASE) / HEAP_PAGE] != LIVE)
		explorer_fail("frees what is no block: %lx", address);
	plain_free(address, size);
	mark(address, size == 0 ? 1 : size, FREED);
	live_blocks--;
}

void heap_check(uintptr_t address, uintptr_t program_counter)
{
	if (address < HEAP_PAGE)
		explorer_fail("access to %lx (%s)", address, trace_place(program_counter));
	if (address < HEAP_BASE || address >= HEAP_BASE + HEAP_SIZE || pages[(address - HEAP_BASE) / HEAP_PAGE] == LIVE)
		return;
	explorer_fail("use of %s memory: %lx (%s)",
		      pages[(address - HEAP_BASE) / HEAP_PAGE] == FREED ? "freed" : "unallocated", address,
		      trace_place(program_counter));
}

void heap_install(void)
{
	static const struct evc_allocator allocator = { NULL, allocate, deallocate };

	if (evc_allocator_install(&allocator) != EVC_OK)
		abort();
}
