/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A bounded shared mailbox: whoever waits for a place is woken when one is free. */
#include "shared.h"

/* Whoever waits for a place is woken: by a worker that goes on to take, and by one that is about to sleep. */
SCENARIO(shared_block)
{
	set_up_bounded(1, EVC_OVERFLOW_BLOCK, false);
	run_two(evc_shared_mailbox_close_when_empty, false);
	CHECK(tally_count_handled() == 4);
	tear_down();
}

SCENARIO(shared_block_close)
{
	set_up_bounded(1, EVC_OVERFLOW_BLOCK, false);
	run_two(evc_shared_mailbox_close, true);
	tear_down();
}
