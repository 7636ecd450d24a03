/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#define _GNU_SOURCE 1
#include "eventcore/version.h"

#include "platform/require.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void evc_end_process(const char *sentence, size_t size)
{
	(void)!write(STDERR_FILENO, sentence, size);
	abort();
}

uint64_t evc_clock_now(void)
{
	struct timespec now;

#ifdef __APPLE__
	/* DispatchTime counts only the time awake on Apple's systems, and so does this clock. */
	clock_gettime(CLOCK_UPTIME_RAW, &now);
#else
	clock_gettime(CLOCK_MONOTONIC, &now);
#endif
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint32_t evc_version(void)
{
	return EVC_VERSION;
}

const char *evc_status_text(enum evc_status status)
{
	switch (status) {
	case EVC_OK:
		return "ok";
	case EVC_EMPTY:
		return "there is nothing, or nothing more";
	case EVC_CLOSED:
		return "it is closed, and takes no more";
	case EVC_TIMED_OUT:
		return "the time limit has passed, or another thread does it";
	case EVC_OUT_OF_MEMORY:
		return "out of memory; nothing that was accepted before is lost";
	case EVC_INVALID_ARGUMENT:
		return "an argument is NULL, out of range, or lacks what the function's header asks for";
	case EVC_NOT_FOUND:
		return "what was named is not there";
	case EVC_NOT_PERMITTED:
		return "the system refuses, or this caller may not ask";
	case EVC_UNSUPPORTED:
		return "this system, or this object, cannot do that";
	case EVC_WOULD_ALLOCATE:
		return "no memory is at hand, and none may be asked for";
	case EVC_FULL:
		return "the mailbox holds as many events as it may";
	}
	return "no status of EventCore has this value";
}
#endif
