/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "latest/cells.h"

#include "platform/allocator.h"

static _Atomic uintptr_t *allocate_words(unsigned bits)
{
	_Atomic uintptr_t *words = evc_allocate(sizeof(*words) << bits, EVC_CACHE_LINE);

	for (unsigned i = 0; words != NULL && i < 1u << bits; i++)
		atomic_init(&words[i], 0);
	return words;
}

static void deallocate_words(_Atomic uintptr_t *words, unsigned bits)
{
	evc_deallocate(words, sizeof(*words) << bits, EVC_CACHE_LINE);
}

static struct evc_cell *make(struct evc_cells *cells, uint64_t hash, const void *payload)
{
	struct evc_cell *cell = evc_allocate(sizeof(*cell), EVC_CACHE_LINE);

	if (cell == NULL)
		return NULL;
	*cell = (struct evc_cell){ .hash = hash };
	if (cells->how.keep == NULL)
		return cell;
	cell->key = cells->how.keep(cells->how.context, payload);
	if (cell->key != NULL)
		return cell;
	evc_deallocate(cell, sizeof(*cell), EVC_CACHE_LINE);
	return NULL;
}

static void unmake(struct evc_cells *cells, struct evc_cell *cell)
{
	if (cell->key != NULL)
		cells->how.let_go(cells->how.context, cell->key);
	evc_deallocate(cell, sizeof(*cell), EVC_CACHE_LINE);
}

/* Frees the nodes below some words. The words themselves lie one below the other at most 16 times. */
static void free_nodes(_Atomic uintptr_t *words, unsigned bits)
{
	for (unsigned i = 0; i < 1u << bits; i++) {
		uintptr_t word = atomic_load_explicit(&words[i], memory_order_relaxed);

		if (word & EVC_CELLS_NODE)
			free_nodes((_Atomic uintptr_t *)(word - EVC_CELLS_NODE), EVC_CELLS_NODE_BITS);
	}
	deallocate_words(words, bits);
}

bool evc_cells_open(struct evc_cells *cells, const struct evc_conflation *how)
{
	if (how->number == NULL)
		return true;
	cells->how = *how;
	cells->root = allocate_words(EVC_CELLS_ROOT_BITS);
	return cells->root != NULL;
}

void evc_cells_close(struct evc_cells *cells)
{
	struct evc_cell *cell = atomic_load_explicit(&cells->last, memory_order_relaxed), *before;

	for (; cell != NULL; cell = before) {
		before = cell->before;
		unmake(cells, cell);
	}
	if (cells->root != NULL)
		free_nodes(cells->root, EVC_CELLS_ROOT_BITS);
}

/* A2: replaces a cell of another hash by a node that contains it. Returns what is there then; 0 = out of memory. */
static uintptr_t split(_Atomic uintptr_t *place, uintptr_t word, unsigned looked_at)
{
	_Atomic uintptr_t *node = allocate_words(EVC_CELLS_NODE_BITS);
	uint64_t rest;

	if (node == NULL)
		return 0;
	rest = ((const struct evc_cell *)word)->hash << looked_at;
	atomic_init(&node[rest >> (64 - EVC_CELLS_NODE_BITS)], word);
	if (atomic_compare_exchange_strong_explicit(place, &word, (uintptr_t)node | EVC_CELLS_NODE,
						    memory_order_acq_rel, memory_order_acquire))
		return (uintptr_t)node | EVC_CELLS_NODE;
	deallocate_words(node, EVC_CELLS_NODE_BITS);
	return word;
}

/*
 * A3: looks through the cells of one hash. Returns the key's; NULL if there is none and `added` is NULL, which is put
 * there otherwise.
 */
static struct evc_cell *chain(struct evc_cells *cells, struct evc_cell *first, struct evc_cell *added,
			      const void *payload)
{
	for (struct evc_cell *cell = first, *next;; cell = next) {
		if (evc_cells_is_same(cells, cell, payload))
			return cell;
		/* F2. */
		next = atomic_load_explicit(&cell->next, memory_order_acquire);
		/* As F2 if it fails. */
		if (next == NULL && (added == NULL || atomic_compare_exchange_strong_explicit(
							      &cell->next, &next, added, memory_order_acq_rel,
							      memory_order_acquire)))
			return added;
	}
}

/*
 * Goes the way of a hash. Returns the key's cell, which is `added` if there was none. Without `added` it changes
 * nothing: NULL = not found; with it: out of memory.
 */
static struct evc_cell *go(struct evc_cells *cells, uint64_t hash, struct evc_cell *added, const void *payload)
{
	_Atomic uintptr_t *place = &cells->root[hash >> (64 - EVC_CELLS_ROOT_BITS)];
	unsigned looked_at = EVC_CELLS_ROOT_BITS;
	/* F1. */
	uintptr_t word = atomic_load_explicit(place, memory_order_acquire);

	for (;;) {
		if (word & EVC_CELLS_NODE) {
			place = (_Atomic uintptr_t *)(word - EVC_CELLS_NODE) +
				((hash << looked_at) >> (64 - EVC_CELLS_NODE_BITS));
			looked_at += EVC_CELLS_NODE_BITS;
			word = atomic_load_explicit(place, memory_order_acquire);
		} else if (word != 0 && ((struct evc_cell *)word)->hash == hash) {
			return chain(cells, (struct evc_cell *)word, added, payload);
		} else if (added == NULL) {
			return NULL;
		} else if (word != 0) {
			/* Two hashes differ before all bits have been looked at. */
			word = split(place, word, looked_at);
			if (word == 0)
				return NULL;
		} else if (atomic_compare_exchange_strong_explicit(place, &word, (uintptr_t)added,
								   memory_order_acq_rel, memory_order_acquire)) {
			/* A1; F1 if it fails. */
			return added;
		}
	}
}

struct evc_cell *evc_cells_add(struct evc_cells *cells, uint64_t hash, const void *payload)
{
	/* Without an allocation if the key is known. */
	struct evc_cell *found = go(cells, hash, NULL, payload), *added;

	if (found != NULL)
		return found;
	added = make(cells, hash, payload);
	if (added == NULL)
		return NULL;
	found = go(cells, hash, added, payload);
	if (found != added) {
		unmake(cells, added);
		return found;
	}
	added->before = atomic_load_explicit(&cells->last, memory_order_relaxed);
	/* Release, pairs with those that read figures. */
	while (!atomic_compare_exchange_weak_explicit(&cells->last, &added->before, added, memory_order_release,
						      memory_order_relaxed))
		;
	return added;
}
#endif
