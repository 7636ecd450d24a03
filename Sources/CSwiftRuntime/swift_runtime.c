/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * In C, since Swift's compiler reserves such names and changes calls of them. swift-atomics calls
 * swift_retain_n and swift_release_n in the same way.
 */
#include "swift_runtime.h"

#include <stddef.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

/* Declared in the runtime's HeapObject.h; part of the stable binary interface on Apple's systems. */
extern void *swift_tryRetain(void *object);

bool swift_runtime_try_retain(void *object)
{
	return swift_tryRetain(object) != NULL;
}

#ifndef __APPLE__
/* Only Swift's own compiler, clang, builds this for use. What gcc does not know it need not know to check the file. */
#if __has_attribute(swiftcall)
#define SWIFT_CALL __attribute__((swiftcall))
#else
#define SWIFT_CALL
#endif
/* Declared in the runtime's Concurrency.h. Without flags it does not trap where the answer is no. */
SWIFT_CALL extern bool
swift_task_isCurrentExecutorWithFlags(uintptr_t identity, uintptr_t implementation, uint64_t flags);

bool swift_runtime_is_current_executor(uintptr_t identity, uintptr_t implementation)
{
	return swift_task_isCurrentExecutorWithFlags(identity, implementation, 0);
}
#endif

bool swift_runtime_ticks_are_steady(void)
{
#ifdef __x86_64__
    /* The "invariant TSC" of Intel's and AMD's manuals. */
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8) != 0;
#else
    return false;
#endif
}
