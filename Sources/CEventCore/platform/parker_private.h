/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What a parker is made of, for those who have one inside of something else (parker.c).
 */
#ifndef EVC_PARKER_PRIVATE_H
#define EVC_PARKER_PRIVATE_H

#include "eventcore/parker.h"

#include <stdatomic.h>

struct evc_parker {
	_Alignas(EVC_CACHE_LINE) _Atomic uint32_t word;
	const struct evc_parker_ops *ops;
	void *state;
};

/* As evc_parker_create, in memory of the caller's, which is not touched if that fails. */
enum evc_status evc_parker_init(struct evc_parker *parker, const struct evc_parker_ops *ops);

#endif
