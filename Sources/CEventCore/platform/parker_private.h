/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The structure of a parker, for those that embed one (parker.c). */
#ifndef EVC_PARKER_PRIVATE_H
#define EVC_PARKER_PRIVATE_H

#include "eventcore/parker.h"

#include <stdatomic.h>

struct evc_parker {
	_Atomic uint32_t word;
	const struct evc_parker_ops *ops;
	void *state;
};

/*
 * As evc_parker_create, in the caller's memory, which is unchanged after an error. With `ops` NULL they are the system's,
 * whose `wake` wakes all who wait, as an event count needs.
 */
enum evc_status evc_parker_init(struct evc_parker *parker, const struct evc_parker_ops *ops);
void evc_parker_close(struct evc_parker *parker);

#endif
