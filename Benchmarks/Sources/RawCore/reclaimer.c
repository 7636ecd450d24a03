/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* What the measured programs retire is freed as in a Swift program, on the core's thread. */
#include <eventcore/reclaim.h>

static __attribute__((constructor)) void start_reclaimer(void)
{
	evc_reclaimer_start();
}
