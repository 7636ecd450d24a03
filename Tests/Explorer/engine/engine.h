/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The interfaces between the parts of the engine.
 *
 *   choice.c   which alternative an execution takes: drawn, searched, or replayed
 *   fiber.c    fibers in place of threads, the scheduler, the clock
 *   clock.h    vector clocks: what happens before what
 *   memory.c   atomic objects: which store a load reads
 *   plain.c    all other accesses: data races, use of freed memory
 *   builtin.c  atomic operations that are not written with <stdatomic.h>
 *   heap.c     the allocator of the core, which never returns a block twice
 *   pthread.c  mutexes, conditions, futexes, keys
 *   domain.c   read sections and grace periods
 *   trace.c    the steps of an execution, for a reader
 *   main.c     runs scenarios, and reports
 */
#ifndef EXPLORER_ENGINE_H
#define EXPLORER_ENGINE_H

#include "clock.h"
#include "explorer.h"

/*
 * Static variables of the program are reset before each execution. Those of the engine that outlive an
 * execution are in this section, which is not reset.
 */
#define KEPT __attribute__((section("explorer_kept")))

/* choice.c */
enum choice {
	/* 0: this fiber goes on. Otherwise another one runs, or time passes. */
	CHOICE_PREEMPT,
	/* This fiber cannot go on, or yields: which one does. */
	CHOICE_NEXT,
	/* The same, but the last alternative is to go on. */
	CHOICE_AFTER_YIELD,
	/* 0: the newest store; 1: the one before ... */
	CHOICE_LOAD,
	/* 0: the store comes last in the modification order; 1: one before ... */
	CHOICE_PLACE,
	/* 1: a weak compare-and-swap fails for no reason. */
	CHOICE_SPURIOUS,
	CHOICE_KINDS
};

unsigned choose(enum choice kind, unsigned count);
/* Draws old stores for the next loads, and early places for stores, more often: they are what matters there. */
void choice_heat(void);

/* How the next execution chooses: from a seed; by the list; or as the next one of the search. */
void choice_begin_random(uint64_t seed);
void choice_begin_replay(const char *list);
/* Searches executions with at most `depth` choices that are not the first of their kind. */
void choice_begin_search(unsigned depth);
/* False when there is none left. */
bool choice_next_search(void);
/*
 * The choices of the last execution that were not 0, as text for --replay, without those that the failure
 * does not need. Allocated by malloc.
 */
char *choice_simplify(bool (*still_fails)(const char *list));

/* fiber.c */
struct fiber;
extern struct fiber *current;

/* Runs `function` as the first fiber until it returns. */
void fiber_run_all(void (*function)(void));
/* Before each operation that other fibers can see. */
void fiber_point(void);
void fiber_yield(void);
/* Sleeps until fiber_wake(object) or `deadline`: false in the second case. */
bool fiber_sleep(const void *object, uint64_t deadline);
/* Wakes at most `count` fibers that sleep for `object`; returns how many there were. */
unsigned fiber_wake(const void *object, unsigned count);
unsigned fiber_number(void);
struct clock *fiber_clock(unsigned number);
unsigned fiber_count(void);
uint64_t fiber_now(bool tick);
unsigned fiber_create(void *(*function)(void *), void *argument);
bool fiber_has_ended(unsigned number, void **result);
bool fiber_is_exploring(void);
/* Ends the execution. */
_Noreturn void fiber_abandon(void);

/* memory.c */
void memory_reset(void);
/* A plain write to memory where an atomic object may lie: the object starts again with that value. */
void memory_overwrite(uintptr_t address, size_t size);
void memory_fence(int order);
/* A sequentially consistent fence on all fibers (membarrier). */
void memory_fence_everywhere(void);

/* Two adjacent objects of 8 bytes that change as one. */
bool explorer_compare_pair(struct explorer_site *site, void *at, uint64_t expected[2], const uint64_t value[2]);

/* plain.c */
enum access { ACCESS_READ = 0, ACCESS_WRITE = 1, ACCESS_ATOMIC = 2 };
void plain_reset(void);
void plain_access(uintptr_t address, size_t size, enum access access, uintptr_t program_counter);
/* A block ends: as a write to all of it. */
void plain_free(uintptr_t address, size_t size);

/* heap.c */
#define HEAP_BASE ((uintptr_t)0x200000000000u)
#define HEAP_SIZE ((size_t)1 << 30)
#define HEAP_PAGE ((uintptr_t)4096)
/* Of each page: the execution that touched it last; HEAP_FRESH: none since it was filled. */
#define HEAP_FRESH 1u
extern uint32_t heap_touched[HEAP_SIZE / HEAP_PAGE];
void heap_reset(void);
void heap_install(void);
/* Fails if the address is in a block that was freed. */
void heap_check(uintptr_t address, uintptr_t program_counter);

/* pthread.c, domain.c */
void pthread_reset(void);
void pthread_end_of_fiber(void);
void domain_reset(void);
bool domain_is_inside(void);

/* trace.c */
extern bool trace_is_on;
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Describes an address of the program, in a buffer that the fourth call after this one overwrites. */
const char *trace_place(uintptr_t program_counter);
const char *trace_order(int order);
/* Of an atomic operation; without a file its line is an address of the program (builtin.c). */
const char *trace_site(const struct explorer_site *site);

/* main.c */
extern char failure[1024];

#endif
