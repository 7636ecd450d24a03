/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file eventcore.h
 * The lock-free core of EventCore, usable on its own from C and C++.
 *
 *     evc_dispatch ──► evc_router ──► evc_sink: evc_mailbox ──► consumer ──► deliver
 *                      (snapshot       (ten lanes)              (evc_thread, or
 *                       per key)                                 a loop of yours)
 *
 * Threads: any thread may dispatch, post, subscribe, unsubscribe, close and interrupt; it needs no
 * registration. One thread at a time consumes a mailbox.
 *
 * Errors are values of `enum evc_status`; nothing is printed. Given NULL for what it is about, a function that ends it
 * (release, destroy, drop, end, abandon) does nothing, as free; one that returns a status returns EVC_INVALID_ARGUMENT;
 * all others, as retain, close and those that read a figure, trap: the program ends there, by a fault of memory. A child of fork may go on using the core if
 * no other thread was inside one of its functions at the fork; event threads stay in the parent. What the core's
 * own thread was ending at the fork (a `finalize`) is not ended in the child. The fork waits for that thread for some
 * milliseconds at most, and not for what it calls.
 *
 * Licence: the core is MIT and calls liburcu (LGPL 2.1) as a shared library.
 */
#ifndef EVENTCORE_H
#define EVENTCORE_H

#include "allocator.h"
#include "balancer.h"
#include "base.h"
#include "envelope.h"
#include "mailbox.h"
#include "parker.h"
#include "pool.h"
#include "router.h"
#include "scheduler.h"
#include "shared_mailbox.h"
#include "sink.h"
#include "thread.h"
#include "tree.h"

#endif
