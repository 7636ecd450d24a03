/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Functions of the Swift runtime and of the compiler that the language does not offer.
 */
#ifndef EVENTCORE_SWIFT_RUNTIME_H
#define EVENTCORE_SWIFT_RUNTIME_H

#include <stdbool.h>

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

/**
 * Fetches the cache line of an address that will be written soon. The address need not be valid.
 *
 * Threads: any. Progress: wait-free.
 */
static inline void swift_runtime_prefetch_for_write(const void *address)
{
    __builtin_prefetch(address, 1);
}

#endif
