/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * All accesses that are not atomic: the compiler announces them as it would to ThreadSanitizer
 * (-fsanitize=thread), whose runtime is not linked; these functions replace it.
 *
 * Two accesses of which neither happens before the other are a data race if at least one writes and at least
 * one is not atomic. This is how a missing release or acquire shows: published data is read without order. Before means
 * without the help of a fence: users run the core under ThreadSanitizer, which does not know fences.
 */
#include "engine.h"

#include <stdlib.h>
#include <sys/mman.h>

#define CELLS (1u << 14)
/* This many, so that a cell is one cache line; if there are more, the oldest is forgotten. */
#define RECORDS 4u
#define ACCESSES_MAX 5000000u

struct record {
	uint32_t time, program_counter;
	uint8_t mask, access, fiber;
};

/* Eight bytes of memory. */
struct cell {
	uintptr_t address;
	uint32_t execution;
	uint8_t count;
	bool has_object;
	struct record records[RECORDS];
} __attribute__((aligned(64)));

extern char __start_explorer_locals[], __stop_explorer_locals[];

/* Cells of the heap are ordered by address; all others, which are few, are found by a hash. */
static KEPT struct cell *heap_cells, *other_cells;
static KEPT uint32_t execution = HEAP_FRESH, accesses;

void plain_reset(void)
{
	if (other_cells == NULL) {
		other_cells = aligned_alloc(64, CELLS * sizeof(*other_cells));
		memset(other_cells, 0, CELLS * sizeof(*other_cells));
		heap_cells = mmap(NULL, HEAP_SIZE / 8 * sizeof(*heap_cells), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (heap_cells == MAP_FAILED)
			abort();
	}
	execution++;
	accesses = 0;
}

static struct cell *slot_of(uintptr_t address)
{
	uintptr_t at = (address >> 3) * 0x9e3779b97f4a7c15u >> 40;

	if (address - HEAP_BASE < HEAP_SIZE)
		return &heap_cells[(address - HEAP_BASE) >> 3];
	for (unsigned i = 0; i < CELLS; i++) {
		struct cell *cell = &other_cells[(at + i) % CELLS];

		if (cell->execution != execution || cell->address == address)
			return cell;
	}
	explorer_fail("more memory than the engine can watch");
}

/* NULL if there is none and none is to be made. */
static struct cell *cell_of(uintptr_t address, bool make)
{
	struct cell *cell = slot_of(address);

	if (cell->execution == execution)
		return cell;
	if (!make)
		return NULL;
	cell->address = address;
	cell->execution = execution;
	cell->count = 0;
	cell->has_object = false;
	if (address - HEAP_BASE < HEAP_SIZE)
		heap_touched[(address - HEAP_BASE) / HEAP_PAGE] = execution;
	return cell;
}

static const char *name_of(enum access access)
{
	static const char *const names[] = { "read", "write", "atomic read", "atomic write" };

	return names[access];
}

static bool conflict(enum access a, enum access b)
{
	return ((a | b) & ACCESS_WRITE) && !(a & b & ACCESS_ATOMIC);
}

/* Whatever conflicts with `old` also conflicts with `new`. */
static bool stands_for(enum access new, enum access old)
{
	return (new & ACCESS_WRITE) >= (old & ACCESS_WRITE) &&
	       (new & ACCESS_ATOMIC) <= (old & ACCESS_ATOMIC);
}

static void check(struct cell *cell, struct record new)
{
	const struct clock *clock = fiber_clock(new.fiber);
	unsigned kept = 0;

	for (unsigned i = 0; i < cell->count; i++) {
		struct record old = cell->records[i];
		bool is_before = old.fiber == new.fiber || old.time <= clock->unfenced[old.fiber];

		if (!is_before && (old.mask & new.mask) && conflict(old.access, new.access))
			explorer_fail("data race at %lx: %s by fiber %u (%s), %s by fiber %u (%s)",
				      cell->address, name_of(old.access), old.fiber,
				      trace_place(old.program_counter), name_of(new.access), new.fiber,
				      trace_place(new.program_counter));
		if (!(is_before && (old.mask & ~new.mask) == 0 && stands_for(new.access, old.access)))
			cell->records[kept++] = old;
	}
	if (kept == RECORDS)
		memmove(&cell->records[0], &cell->records[1], --kept * sizeof(new));
	cell->records[kept] = new;
	cell->count = (uint8_t)(kept + 1);
}

static void access_all(uintptr_t address, size_t size, enum access access, uintptr_t program_counter, bool make)
{
	unsigned number = fiber_number();
	uintptr_t end = address + size;

	for (uintptr_t at = address & ~(uintptr_t)7; at < end; at += 8) {
		struct cell *cell = cell_of(at, make);
		unsigned from = at < address ? (unsigned)(address - at) : 0;
		unsigned to = end - at < 8 ? (unsigned)(end - at) : 8;

		if (cell == NULL)
			continue;
		check(cell, (struct record){ fiber_clock(number)->at[number], (uint32_t)program_counter,
					     (uint8_t)((1u << to) - (1u << from)), (uint8_t)access,
					     (uint8_t)number });
		if (access & ACCESS_ATOMIC)
			cell->has_object = true;
		else if ((access & ACCESS_WRITE) && cell->has_object)
			memory_overwrite(at + from, to - from);
	}
}

void plain_access(uintptr_t address, size_t size, enum access access, uintptr_t program_counter)
{
	if (!fiber_is_exploring() || (address >= (uintptr_t)__start_explorer_locals &&
				      address < (uintptr_t)__stop_explorer_locals))
		return;
	heap_check(address, program_counter);
	/* A loop without atomic operations must end as well. */
	if (++accesses > ACCESSES_MAX)
		explorer_fail("no end: %u accesses, and still no result", accesses);
	access_all(address, size, access, program_counter, true);
}

void plain_free(uintptr_t address, size_t size)
{
	uintptr_t end = address + size;

	/* A page at a time: a slab is large, and mostly untouched. */
	for (; address < end; address += HEAP_PAGE)
		if (heap_touched[(address - HEAP_BASE) / HEAP_PAGE] == execution)
			access_all(address, end - address < HEAP_PAGE ? end - address : HEAP_PAGE, ACCESS_WRITE,
				   (uintptr_t)__builtin_return_address(0), false);
}

#define CALLER ((uintptr_t)__builtin_return_address(0))
#define ACCESS_FUNCTION(name, size, access)                                                        \
	void __tsan_##name(void *at);                                                              \
	void __tsan_##name(void *at)                                                               \
	{                                                                                          \
		plain_access((uintptr_t)at, size, access, CALLER);                                 \
	}
#define ACCESS_FUNCTIONS(size)                                                                     \
	ACCESS_FUNCTION(read##size, size, ACCESS_READ)                                             \
	ACCESS_FUNCTION(write##size, size, ACCESS_WRITE)                                           \
	ACCESS_FUNCTION(unaligned_read##size, size, ACCESS_READ)                                   \
	ACCESS_FUNCTION(unaligned_write##size, size, ACCESS_WRITE)

ACCESS_FUNCTIONS(1)
ACCESS_FUNCTIONS(2)
ACCESS_FUNCTIONS(4)
ACCESS_FUNCTIONS(8)
ACCESS_FUNCTIONS(16)

void __tsan_read_range(void *at, size_t size);
void __tsan_read_range(void *at, size_t size)
{
	plain_access((uintptr_t)at, size, ACCESS_READ, CALLER);
}

void __tsan_write_range(void *at, size_t size);
void __tsan_write_range(void *at, size_t size)
{
	plain_access((uintptr_t)at, size, ACCESS_WRITE, CALLER);
}

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/*
 * GCC does not announce what these functions access, so the core and the scenarios are compiled to call them
 * by another name; clang uses names of its own for the copies that it makes itself.
 */
#define MEMORY_FUNCTIONS(prefix)                                                                   \
	void *prefix##memcpy(void *to, const void *from, size_t size);                             \
	void *prefix##memcpy(void *to, const void *from, size_t size)                              \
	{                                                                                          \
		plain_access((uintptr_t)from, size, ACCESS_READ, CALLER);                          \
		plain_access((uintptr_t)to, size, ACCESS_WRITE, CALLER);                           \
		return memcpy(to, from, size);                                                     \
	}                                                                                          \
	void *prefix##memmove(void *to, const void *from, size_t size);                            \
	void *prefix##memmove(void *to, const void *from, size_t size)                             \
	{                                                                                          \
		plain_access((uintptr_t)from, size, ACCESS_READ, CALLER);                          \
		plain_access((uintptr_t)to, size, ACCESS_WRITE, CALLER);                           \
		return memmove(to, from, size);                                                    \
	}                                                                                          \
	void *prefix##memset(void *to, int value, size_t size);                                    \
	void *prefix##memset(void *to, int value, size_t size)                                     \
	{                                                                                          \
		plain_access((uintptr_t)to, size, ACCESS_WRITE, CALLER);                           \
		return memset(to, value, size);                                                    \
	}

MEMORY_FUNCTIONS(explorer_)
MEMORY_FUNCTIONS(__tsan_)
