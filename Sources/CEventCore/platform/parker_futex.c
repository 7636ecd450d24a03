/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#define _GNU_SOURCE 1
#include "eventcore/parker.h"

#ifdef __linux__

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void futex_wait(void *state, const uint32_t *word, uint32_t expected, uint64_t timeout)
{
	struct timespec limit = { (time_t)(timeout / 1000000000u), (long)(timeout % 1000000000u) };

	(void)state;
	/* Every result means the same to the caller: look again. */
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected,
		timeout == EVC_FOREVER ? NULL : &limit, NULL, 0);
}

static void futex_wake(void *state, const uint32_t *word)
{
	(void)state;
	/* All that wait for an event count; a parker has one. */
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static const struct evc_parker_ops futex_ops = { NULL, NULL, futex_wait, futex_wake };
#endif

const struct evc_parker_ops *evc_parker_futex(void)
{
#ifdef __linux__
	return &futex_ops;
#else
	return NULL;
#endif
}
#endif
