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
 * The headers, in the order in which to read them:
 *
 *     base.h            status values and lanes
 *     router.h          who gets an event, and how it is dispatched
 *     mailbox.h         where it waits, bounded or not, and how a thread or a loop of yours takes it
 *     thread.h          a thread that consumes a mailbox
 *     sink.h            what a subscription does with an event
 *     envelope.h        one event in flight
 *     scheduler.h       calls at their time
 *     shared_mailbox.h  a mailbox with several consumers
 *     balancer.h        several receivers, of which one gets each event
 *     conflation.h      the newest event of each key
 *     tree.h            nodes with handlers, in the order of a tree
 *     realtime.h        posts that neither wait nor call the system
 *     reclaim.h         when memory is freed, and the end of the core
 *     pool.h            what the memory of envelopes does
 *     allocator.h       where memory comes from
 *     parker.h          how a thread sleeps
 *     version.h         the version of the headers and of the library
 *
 * For C++17, eventcore.hpp has all of it with owners and typed events.
 *
 * Threads: any thread may dispatch, post, subscribe, unsubscribe, close and interrupt; it needs no
 * registration. A mailbox is consumed by one thread at a time; a second one is refused (mailbox.h).
 *
 * Errors are values of `enum evc_status`, and nothing is printed. Two things that no value can tell end the process
 * (abort) with a sentence on its standard error: a walk of a tree that goes on or ends before one inside of it
 * (tree.h), and a system call filter that forbids membarrier once it has worked. A function that names no errors has
 * none.
 * If the object that a function is about is NULL: a function that ends the object (release, destroy, drop, end,
 * abandon) does nothing, as free(NULL); a function that returns a status returns EVC_INVALID_ARGUMENT; every
 * other function (for example retain, close, or one that reads a count) crashes with a memory fault.
 *
 * Option structures open with their size: `struct evc_mailbox_options options = { .size = sizeof(options), ... }`.
 * A program may so run with a library that is newer than its headers. A size that no version had is
 * EVC_INVALID_ARGUMENT, 0 among them; an option that is set and that this library does not know, EVC_UNSUPPORTED.
 *
 * One copy: a process contains the core once. A program and its plug-ins use one shared library; a second, static copy
 * would share liburcu with the first, and a fork would wait for ever for a lock that the two have taken twice. For the
 * same reason such a program does not register liburcu-bp's functions for fork itself.
 *
 * Fork: a child may go on using the core if no other thread was inside one of its functions at the fork.
 * Event threads stay in the parent, and their mailboxes with them: the child neither takes from these nor releases
 * them last. So do schedulers that have a thread: in the child their timers do not fire, and it neither joins nor
 * releases them; a join, also that of ~scheduler in eventcore.hpp, would wait for ever. An object that the core's
 * callback thread was finalizing at the fork is not finalized in the child. A fork waits while that thread gives memory
 * back, some milliseconds, or longer after millions of events; never for user code that it runs. What the core keeps
 * for the parent's other threads (evc_unregister_thread) stays in the child: if there is any, evc_shutdown returns
 * EVC_NOT_PERMITTED there, and the child ends without it.
 *
 * Licence: the core is MIT. It calls liburcu (LGPL 2.1 or later), which is to be linked as a shared library.
 */
#ifndef EVENTCORE_H
#define EVENTCORE_H

#include "allocator.h"
#include "balancer.h"
#include "base.h"
#include "conflation.h"
#include "envelope.h"
#include "mailbox.h"
#include "parker.h"
#include "pool.h"
#include "realtime.h"
#include "reclaim.h"
#include "router.h"
#include "scheduler.h"
#include "shared_mailbox.h"
#include "sink.h"
#include "thread.h"
#include "tree.h"
#include "version.h"

#endif
