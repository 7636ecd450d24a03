/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What the Swift runtime and the compiler offer and the language has no word for.
 */
#ifndef EVENTCORE_SWIFT_RUNTIME_H
#define EVENTCORE_SWIFT_RUNTIME_H

#include <stdbool.h>

/**
 * Makes a strong reference to an object of Swift's, unless that is ending or has ended.
 *
 * The language has this for `weak` references alone, and an object that has one keeps its counts
 * apart, where each look at them is a locked operation on 16 bytes.
 *
 * @param object  Of a native class, and its memory is there: the caller has the object, or somebody an `unowned`
 *                reference from when it was not ending.
 * @return        Whether there is one reference more, which the caller releases.
 *
 * Threads: any. Progress: lock-free.
 */
bool swift_runtime_try_retain(void *object);

/**
 * Asks the processor for the line of an address, to be written soon. The address may be anything.
 *
 * Threads: any. Progress: wait-free.
 */
static inline void swift_runtime_prefetch_for_write(const void *address)
{
    __builtin_prefetch(address, 1);
}

#endif
