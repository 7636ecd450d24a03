/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The cells of a conflated subscription, one for each key, found by dispatching threads and never taken out before
 * the subscription ends: a hash trie that only grows. Nothing moves when it grows, and nobody waits for that.
 *
 * A word of the trie is 0, or a cell, or (with bit 0 set) a node of 16 further words. Each level of the trie looks at
 * the next bits of the hash, from the top. Cells whose keys differ although their hashes are equal are chained by
 * `next` from the first one; integer keys have no equal hashes, since the multiplication can be undone.
 *
 *   finder                                        adder, which goes the finder's way first
 *   F1 load the word          acquire             A1 the word is 0: CAS → the cell                 release
 *      a node: go on in it                        A2 it is a cell of another hash: CAS → a node    release
 *      a cell of the hash: is it the key's?          that contains this cell; go on in it
 *      if not: F2 load `next`  acquire            A3 it is the end of a chain: CAS next → the cell  release
 * A CAS that fails has found what another adder put there, and the adder goes on from that (acquire).
 *
 * Claim: a key has one cell. The way of a hash through the trie is fixed but for its length: a word changes from 0 to
 * a cell to a node and never back, and a node that replaces a cell contains it. So all adders of a key come to the
 * same word or the same end of a chain; one CAS succeeds there, and the others find that cell.
 *
 * Memory: a finder that reads a cell or a node acquires its contents, since it was complete before its CAS. A cell or
 * node whose CAS failed was seen by nobody. All others live until the subscription ends, when nobody dispatches to it.
 * For 1,000 keys: 128 bytes a cell, and about 45 for its part of the nodes.
 *
 * Progress: finding is wait-free, in at most 16 steps and the length of a chain. Adding is lock-free, but for the
 * allocator.
 */
#ifndef EVC_CELLS_H
#define EVC_CELLS_H

#include "eventcore/conflation.h"
#include "memory/envelope.h"

#define EVC_CELLS_ROOT_BITS 6u
#define EVC_CELLS_NODE_BITS 4u
#define EVC_CELLS_NODE ((uintptr_t)1)

/* The place of one waiting event, and of its tokens (latest.h). */
struct evc_cell {
	/*
	 * How many were superseded since the last take, without what `slot` counts; that take adds them to the
	 * subscription's figure.
	 */
	_Atomic uint64_t superseded;
	/* The next cell of the same hash, but of another key. */
	_Atomic(struct evc_cell *) next;
	/* What `keep` returned. Constant. */
	void *key;
	/* Written by producers and takers. Those of queues lie in one cache line with what follows. */
	_Atomic uint64_t state[EVC_LANE_COUNT];
	/*
	 * Also counts what was superseded since the last carry, since an atomic addition for each would cost a
	 * dispatch as much as the exchange (6 of 30 ns). How the word is laid out: latest.h.
	 */
	_Atomic uintptr_t slot;
	/* Constant. */
	uint64_t hash;
	/* The cell that was added before. Constant once it is in the list. */
	struct evc_cell *before;
};

static_assert(sizeof(struct evc_cell) == 2 * EVC_CACHE_LINE, "a cell takes two cache lines");
static_assert(offsetof(struct evc_cell, state[EVC_LANE_FIRST_QUEUE]) == EVC_CACHE_LINE,
	      "a dispatch to a queue touches the second one");

struct evc_cells {
	struct evc_conflation how;
	/* The first words; NULL in a latest-only subscription. Constant. */
	_Atomic uintptr_t *root;
	/* All cells but the subscription's own, for those that read figures, and for the end. */
	_Atomic(struct evc_cell *) last;
};

/* Without a `number` there is no key. False = out of memory. */
bool evc_cells_open(struct evc_cells *cells, const struct evc_conflation *how);
/* No other thread uses them any more. */
void evc_cells_close(struct evc_cells *cells);

/* The slow path of evc_cells_find. */
struct evc_cell *evc_cells_add(struct evc_cells *cells, uint64_t hash, const void *payload);

/* The cell is of this hash: is it the key's? */
static inline bool evc_cells_is_same(const struct evc_cells *cells, const struct evc_cell *cell, const void *payload)
{
	return cells->how.is_same == NULL || cells->how.is_same(cells->how.context, cell->key, payload);
}

/* Returns the cell of an event's key. NULL = out of memory. */
static inline struct evc_cell *evc_cells_find(struct evc_cells *cells, const void *payload)
{
	/* 2^64 divided by the golden ratio: spreads keys that follow one another evenly over the top bits. */
	const uint64_t hash = cells->how.number(cells->how.context, payload) * UINT64_C(0x9E3779B97F4A7C15);
	uint64_t rest = hash << EVC_CELLS_ROOT_BITS;
	/* F1. */
	uintptr_t word = atomic_load_explicit(&cells->root[hash >> (64 - EVC_CELLS_ROOT_BITS)], memory_order_acquire);

	for (; word & EVC_CELLS_NODE; rest <<= EVC_CELLS_NODE_BITS) {
		_Atomic uintptr_t *node = (_Atomic uintptr_t *)(word - EVC_CELLS_NODE);

		word = atomic_load_explicit(&node[rest >> (64 - EVC_CELLS_NODE_BITS)], memory_order_acquire);
	}
	if (evc_likely(word != 0)) {
		struct evc_cell *cell = (struct evc_cell *)word;

		if (evc_likely(cell->hash == hash && evc_cells_is_same(cells, cell, payload)))
			return cell;
	}
	return evc_cells_add(cells, hash, payload);
}

#endif
