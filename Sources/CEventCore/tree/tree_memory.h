/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The memory of nodes, links and handlers: slabs of slots of one size, so that those of a tree are close
 * together, each on cache lines of its own. A thread keeps some free slots of each size, which go back when it
 * ends; it takes them from the slabs, and gives them back, EVC_TREE_BATCH at a time, under a mutex.
 *
 * When memory goes back to the allocator: a slab whose slots are all free, if there are EVC_TREE_SPARE such
 * slabs of that size already (16 MiB: the C library keeps as much, and more; new pages cost 60 ns a node);
 * and all of them when no slot of that size is in use. A slot that a thread keeps counts as in use.
 *
 * Why not the slab pools of envelopes (memory/slab.h)? They are made for slots that one thread takes and
 * another gives back; trees mostly free where they allocate, which takes half as long here. And they give
 * memory back by the clock, on a thread that a program of trees never starts. Measured:
 * Documentation/Choices.md. Under AddressSanitizer each slot is a block of its own.
 *
 * Threads: any; a slot may be freed by another thread than the one that took it. Progress: wait-free from
 * what the thread keeps; otherwise blocking, and the allocator, which is called without the mutex. Ownership:
 * the caller's until evc_tree_free with the same size.
 */
#ifndef EVC_TREE_MEMORY_H
#define EVC_TREE_MEMORY_H

#include <stddef.h>

#define EVC_TREE_SLAB ((size_t)128 * 1024)
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
