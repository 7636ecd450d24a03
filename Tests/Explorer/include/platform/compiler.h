/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The core's own, but for what it says of the processor: that an exchange is a full barrier on x86 would hide
 * what other processors do, and a spin loop has to let the other fibers run.
 */
#include_next "platform/compiler.h"

#ifndef EXPLORER_COMPILER_H
#define EXPLORER_COMPILER_H

#undef evc_fence_after_exchange
#define evc_fence_after_exchange() atomic_thread_fence(memory_order_seq_cst)

void explorer_pause(void);
#define evc_pause explorer_pause

#endif
