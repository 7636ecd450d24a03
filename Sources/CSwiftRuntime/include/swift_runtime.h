/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Functions of the Swift runtime, the compiler and the processor that the language does not offer.
 */
#ifndef EVENTCORE_SWIFT_RUNTIME_H
#define EVENTCORE_SWIFT_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Adds a strong reference to a Swift object, unless the object is ending or has ended.
 *
 * The language offers this only for `weak` references. They move the object's counts to a side table, where
 * each check of them is a locked operation on 16 bytes.
 *
 * @param object  an instance of a native class, whose memory is valid: somebody has a strong reference, or an
 *                `unowned` one that was made while the object was not ending
 * @return true if a reference was added, which the caller releases
 *
 * Threads: any. Progress: lock-free.
 */
bool swift_runtime_try_retain(void *object);

#ifndef __APPLE__
/**
 * Whether the calling thread runs code of a serial executor, given by the two words of its `UnownedSerialExecutor`.
 * False if the runtime does not know; unlike `isIsolatingCurrentContext()` it also answers for executors that say
 * nothing themselves. Not on Apple's systems, whose runtimes have it since macOS 26.
 *
 * Threads: any. Progress: wait-free.
 */
bool swift_runtime_is_current_executor(uintptr_t identity, uintptr_t implementation);
#endif

/**
 * Fetches the cache line of an address that will be written soon. The address need not be valid.
 *
 * Threads: any. Progress: wait-free.
 */
static inline void swift_runtime_prefetch_for_write(const void *address)
{
    __builtin_prefetch(address, 1);
}

/**
 * The processor's counter of ticks: half the price of a look at the clock, and not ordered with what is around it.
 * 0 on processors other than x86-64.
 *
 * Threads: any. Progress: wait-free.
 */
static inline uint64_t swift_runtime_ticks(void)
{
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

/**
 * True if the counter of ticks has one rate at all times, whatever the processor's pace and sleep.
 *
 * Threads: any. Progress: wait-free.
 */
bool swift_runtime_ticks_are_steady(void);

#endif
