/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A batch: several events of one subscription and lane in one envelope, whose payloads lie side by side in a
 * box. It is one post, and the consumer takes its events one by one: after each it decides
 * anew which is next (D1), so that more urgent ones come between.
 *
 * Why: an envelope for each event moves a cache line of 64 bytes for, say, 24, and both sides pay for the
 * slot. In batches of 64 a 24-byte event costs 25 lines instead of 64.
 *
 * Only a mailbox that says so gets batches (`evc_mailbox_options.batches`), since its consumer does not get
 * an envelope for each event that it could keep. Larger ones than a pooled box, and those for several
 * receivers, travel in an envelope for each event as before.
 *
 * Ownership: as for any envelope; its holder owns the payloads that were not taken.
 */
#ifndef EVC_BATCH_H
#define EVC_BATCH_H

#include "memory/slab.h"

/* envelope.c: ends the payloads that were not taken, and gives the box back. `cache` may be NULL. */
void evc_batch_end(struct evc_envelope *envelope, struct evc_return_cache *cache);

#endif
