/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file conflation.h
 * Conflation: for a receiver that asks for it, only the newest event for each key waits.
 */
#ifndef EVENTCORE_CONFLATION_H
#define EVENTCORE_CONFLATION_H

#include "base.h"

EVC_BEGIN_DECLS

/**
 * Says which events have the same key. If keys are integers of up to 64 bits, `number` alone is needed. Otherwise
 * all four functions are: the numbers of two keys may be equal, and `is_same` tells the keys apart.
 *
 * All functions are called on dispatching threads, several at once, at each dispatch. They must be quick, must not
 * wait, and must not dispatch to the same subscription.
 */
struct evc_conflation {
	/** Passed to the functions below. */
	void *context;
	/**
	 * Returns the key of an event; with `is_same`, a hash of its key, which is the same whenever the keys are.
	 * Required.
	 */
	uint64_t (*number)(void *context, const void *payload);
	/** True if a kept key is that of an event. NULL: keys are equal exactly if their numbers are. */
	bool (*is_same)(void *context, const void *key, const void *payload);
	/** Returns what stands for the key of an event from now on, or NULL if memory is lacking. */
	void *(*keep)(void *context, const void *payload);
	/**
	 * Ends what `keep` returned: when the subscription ends, before its `finalize`, on any thread; or at once if
	 * another thread was quicker.
	 */
	void (*let_go)(void *context, void *key);
};

EVC_END_DECLS
#endif
