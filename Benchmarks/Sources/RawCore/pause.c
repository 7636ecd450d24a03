/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "check.h"

#include <eventcore/pool.h>

#include <errno.h>

void evb_pause_for(uint64_t nanoseconds, bool spinning)
{
	uint64_t end = evb_now() + nanoseconds;
	struct timespec time = { (time_t)(nanoseconds / 1000000000u),
				 (long)(nanoseconds % 1000000000u) };

	if (spinning) {
		while (evb_now() < end)
			;
		return;
	}
	while (nanosleep(&time, &time) != 0 && errno == EINTR)
		;
}

uint64_t evb_slab_bytes(void)
{
	struct evc_pool_statistics statistics;

	evc_pool_read_statistics(&statistics);
	return statistics.slab_bytes;
}
