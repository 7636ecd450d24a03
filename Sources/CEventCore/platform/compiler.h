/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The compiler conditionals of the private sources, beside those in base.h. */
#ifndef EVC_COMPILER_H
#define EVC_COMPILER_H

#include <stdint.h>

#define evc_likely(x) __builtin_expect(!!(x), 1)
#define evc_unlikely(x) __builtin_expect(!!(x), 0)
#define evc_container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

/* Under AddressSanitizer slots are not recycled, so that it detects a use after the release. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EVC_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define EVC_THREAD_SANITIZER 1
#endif
#else
#if defined(__SANITIZE_ADDRESS__)
#define EVC_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define EVC_THREAD_SANITIZER 1
#endif
#endif

/* Makes the exchange before it a full barrier, also for weaker operations; on x86 it is one. */
#if defined(__x86_64__) || defined(__i386__)
#define evc_fence_after_exchange() atomic_signal_fence(memory_order_seq_cst)
#else
#define evc_fence_after_exchange() atomic_thread_fence(memory_order_seq_cst)
#endif

/*
 * For a thread-local variable that every dispatch reads: found without a call, for which the caller would
 * need a stack frame. A library that is loaded at run time must fit into the space that glibc reserves for
 * them (some 40 of 1,664 bytes are used). On other systems such a library could not be loaded.
 */
#if defined(__ELF__) && defined(__GLIBC__) && !defined(_Thread_local)
#define EVC_FOUND_AT_START __attribute__((tls_model("initial-exec"), visibility("hidden")))
#else
#define EVC_FOUND_AT_START __attribute__((visibility("hidden")))
#endif

/* One iteration of a spin loop. */
static inline void evc_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
	__asm__ __volatile__("yield");
#endif
}

/*
 * Fetches a cache line for writing. Not __builtin_prefetch: on a baseline x86-64 that fetches it for reading.
 */
static inline void evc_prefetch_write(const void *address)
{
#if defined(__x86_64__)
	__asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)address));
#else
	__builtin_prefetch(address, 1);
#endif
}

#endif
