/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * In C, since Swift's compiler takes such a name for its own and treats calls of it as it sees fit;
 * here it is a function like others. swift-atomics calls swift_retain_n and swift_release_n so.
 */
#include "swift_runtime.h"

#include <stddef.h>

/* Part of the runtime's interface, and on Apple's systems of its stable one (HeapObject.h). */
extern void *swift_tryRetain(void *object);

bool swift_runtime_try_retain(void *object)
{
	return swift_tryRetain(object) != NULL;
}
