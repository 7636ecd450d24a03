/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Where nodes, links and handlers lie: in slabs of slots of one size, so that those of a tree are close
 * together whatever else the program has on its heap, each on cache lines of its own. Measured:
 * Benchmarks/README.md, "Choices".
 *
 * A thread keeps some free slots of each size for itself, and takes them from the slabs and gives them back
 * EVC_TREE_BATCH at a time, which takes a mutex. What it keeps goes back when it ends.
 *
 * When memory goes back to the allocator: a slab whose slots are all back, when there are
 * EVC_TREE_SPARE such slabs of that size already (16 MiB: the C library keeps as much, and more; taking
 * pages anew costs 60 ns a node); and all of them when no slot of that size is out. A slot that a
 * thread keeps is out.
 *
 * Why not the pools that envelopes come from (memory/slab.h)? Those give memory back by the clock: EVC_POOL_REST_NS
 * after the last use, and a grace period, while a tree's goes with its last slot, at once. And under
 * AddressSanitizer theirs keeps the head of a slot readable for that grace period, which takers of a shared mailbox
 * need; a node may not be looked at then. Speed decides nothing, nanoseconds for a slot of 128 bytes, taken and
 * given back on one thread: of 100,000 5 and 7 here (given in no order: 5 and 19), 2 and 3 (6 and 7) there; of 40
 * that come and go 3 and 3 here, 7 and 4 there. A node is made in about a hundred.
 *
 * Under AddressSanitizer each is a block of its own, so that it sees a use after the release.
 *
 * Threads: any; a slot may be freed by another thread than the one that took it. Progress: wait-free
 * from what the thread keeps; otherwise blocking, and the allocator, which is called without the mutex.
 * Ownership: the caller's until evc_tree_free with the same size.
 */
#ifndef EVC_TREE_MEMORY_H
#define EVC_TREE_MEMORY_H

#include <stddef.h>

#define EVC_TREE_SLAB ((size_t)128 * 1024)
/* What a slab begins with. */
#define EVC_TREE_SLAB_HEADER ((size_t)320)
#define EVC_TREE_BATCH 32u
#define EVC_TREE_SPARE 128u
#define EVC_TREE_SMALL 64u
#define EVC_TREE_LARGE 128u

/* At most EVC_TREE_LARGE bytes. NULL = out of memory. */
void *evc_tree_allocate(size_t size);
void evc_tree_free(void *memory, size_t size);

/* Gives back the free slots that the calling thread keeps. */
void evc_tree_give_back(void);

#endif
