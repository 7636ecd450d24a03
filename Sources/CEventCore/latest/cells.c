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
	if (how == NULL)
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

/* Puts a cell that is found by now into the list of all. */
static void list(struct evc_cells *cells, struct evc_cell *cell)
{
	cell->before = atomic_load_explicit(&cells->last, memory_order_relaxed);
	/* Release, pairs with those that read figures. */
	while (!atomic_compare_exchange_weak_explicit(&cells->last, &cell->before, cell, memory_order_release,
						      memory_order_relaxed))
		;
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

/* A3: looks through the cells of one hash. Returns the key's, which is `added` if there was none. */
static struct evc_cell *chain(struct evc_cells *cells, struct evc_cell *first, struct evc_cell *added,
			      const void *payload)
{
	for (struct evc_cell *cell = first, *next = NULL;; cell = next, next = NULL) {
		if (evc_cells_is_same(cells, cell, payload))
			return cell;
		/* As F2 if it fails. */
		if (atomic_compare_exchange_strong_explicit(&cell->next, &next, added, memory_order_acq_rel,
							    memory_order_acquire))
			return added;
	}
}

/* Returns the key's cell in the trie, which is `added` if there was none; NULL = out of memory. */
static struct evc_cell *add(struct evc_cells *cells, struct evc_cell *added, const void *payload)
{
	const uint64_t hash = added->hash;
	_Atomic uintptr_t *place = &cells->root[hash >> (64 - EVC_CELLS_ROOT_BITS)];
	unsigned looked_at = EVC_CELLS_ROOT_BITS;
	uintptr_t word = 0;

	for (;;) {
		/* A1, or F1 if it fails. */
		if (word == 0 && atomic_compare_exchange_strong_explicit(place, &word, (uintptr_t)added,
									 memory_order_acq_rel,
									 memory_order_acquire))
			return added;
		if (word & EVC_CELLS_NODE) {
			place = (_Atomic uintptr_t *)(word - EVC_CELLS_NODE) +
				((hash << looked_at) >> (64 - EVC_CELLS_NODE_BITS));
			looked_at += EVC_CELLS_NODE_BITS;
			word = 0;
			continue;
		}
		if (((struct evc_cell *)word)->hash == hash)
			return chain(cells, (struct evc_cell *)word, added, payload);
		/* Two hashes differ before all bits have been looked at. */
		word = split(place, word, looked_at);
		if (word == 0)
			return NULL;
	}
}

/* F2, for the cells behind the first of a hash. NULL = not found. */
static struct evc_cell *find_chained(struct evc_cells *cells, uint64_t hash, const void *payload)
{
	_Atomic uintptr_t *place = &cells->root[hash >> (64 - EVC_CELLS_ROOT_BITS)];
	uintptr_t word;
	uint64_t rest = hash << EVC_CELLS_ROOT_BITS;
	struct evc_cell *cell;

	/* F1, as in evc_cells_find. */
	while ((word = atomic_load_explicit(place, memory_order_acquire)) & EVC_CELLS_NODE) {
		place = (_Atomic uintptr_t *)(word - EVC_CELLS_NODE) + (rest >> (64 - EVC_CELLS_NODE_BITS));
		rest <<= EVC_CELLS_NODE_BITS;
	}
	cell = (struct evc_cell *)word;
	while (cell != NULL && !(cell->hash == hash && evc_cells_is_same(cells, cell, payload)))
		cell = cell->hash == hash ? atomic_load_explicit(&cell->next, memory_order_acquire) : NULL;
	return cell;
}

struct evc_cell *evc_cells_add(struct evc_cells *cells, uint64_t hash, const void *payload)
{
	/* Without an allocation if the key is known. */
	struct evc_cell *found = find_chained(cells, hash, payload), *added;

	if (found != NULL)
		return found;
	added = make(cells, hash, payload);
	if (added == NULL)
		return NULL;
	found = add(cells, added, payload);
	if (found == added)
		list(cells, added);
	else
		unmake(cells, added);
	return found;
}
#endif
