/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "tree/tree_memory.h"

#include "eventcore/base.h"
#include "platform/allocator.h"
#include "platform/compiler.h"
#include "tree/tree_walker.h"

#ifdef EVC_ADDRESS_SANITIZER
void *evc_tree_allocate(size_t size)
{
	return evc_allocate(size, EVC_CACHE_LINE);
}

void evc_tree_free(void *memory, size_t size)
{
	evc_deallocate(memory, size, EVC_CACHE_LINE);
}

void evc_tree_give_back(void)
{
}
#else
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define SIZES 2u

#define WORDS (EVC_TREE_SLAB / EVC_TREE_SMALL / 64)

/* A free slot that a thread keeps. */
struct slot {
	struct slot *next;
};

/* Bits tell which slots are free: following links would mean waiting for the slots' lines, one by one. */
struct slab {
	/* Links in the list of slabs with free slots. */
	struct slab *next, *previous;
	/* How many slots are in use. */
	uint32_t used;
	/* All words before this one are 0. */
	uint32_t first;
	/* A bit for each free slot. */
	uint64_t free[WORDS];
};

/* The slots of one size. All of it, and its slabs, are used under the mutex. */
struct pool {
	/* Held together with no other mutex. */
	pthread_mutex_t mutex;
	/* Slabs with used and free slots; slabs without a used slot, and how many these are. */
	struct slab *partial, *empty;
	size_t empty_count;
	/* How many slots are in use. */
	size_t used;
	/* The logarithm of the slots' size, and how many a slab has. */
	const uint32_t shift, slots;
};

#define SLOTS_OF(shift) ((uint32_t)((EVC_TREE_SLAB - EVC_TREE_SLAB_HEADER) >> (shift)))

static struct pool pools[SIZES] = {
	{ .mutex = PTHREAD_MUTEX_INITIALIZER, .shift = 6, .slots = SLOTS_OF(6) },
	{ .mutex = PTHREAD_MUTEX_INITIALIZER, .shift = 7, .slots = SLOTS_OF(7) },
};

/* The free slots of one size that a thread keeps. */
struct kept {
	struct slot *first;
	uint32_t count;
};

static _Thread_local struct kept kept[SIZES];

static_assert(sizeof(struct slab) <= EVC_TREE_SLAB_HEADER, "the first slot begins behind it");
static_assert(EVC_TREE_SMALL == 1 << 6 && EVC_TREE_LARGE == 1 << 7, "see pools");

static unsigned index_of(size_t size)
{
	return size <= EVC_TREE_SMALL ? 0 : 1;
}

static void push(struct slab **list, struct slab *slab)
{
	slab->previous = NULL;
	slab->next = *list;
	if (slab->next != NULL)
		slab->next->previous = slab;
	*list = slab;
}

static void drop(struct slab **list, struct slab *slab)
{
	*(slab->previous != NULL ? &slab->previous->next : list) = slab->next;
	if (slab->next != NULL)
		slab->next->previous = slab->previous;
}

static void push_empty(struct pool *pool, struct slab *slab)
{
	push(&pool->empty, slab);
	pool->empty_count++;
}

static struct slab *pop_empty(struct pool *pool)
{
	struct slab *slab = pool->empty;

	drop(&pool->empty, slab);
	pool->empty_count--;
	return slab;
}

static void init_slab(const struct pool *pool, struct slab *slab)
{
	slab->used = slab->first = 0;
	for (uint32_t word = 0; word < WORDS; word++) {
		const uint32_t begin = word * 64, end = begin + 64;

		slab->free[word] = end <= pool->slots	? UINT64_MAX
				   : begin < pool->slots ? (UINT64_C(1) << (pool->slots - begin)) - 1
							 : 0;
	}
}

/* Takes up to a batch of slots of one slab, which there is, in the order of their addresses. */
static void take(struct pool *pool, struct kept *to)
{
	struct slab *slab = pool->partial;
	struct slot **end = &to->first;
	uint32_t count = 0;
	char *slots;

	if (slab == NULL) {
		slab = pop_empty(pool);
		push(&pool->partial, slab);
	}
	slots = (char *)slab + EVC_TREE_SLAB_HEADER;
	for (; count < EVC_TREE_BATCH && slab->used + count < pool->slots; slab->first++) {
		uint64_t *word = &slab->free[slab->first];

		for (; *word != 0 && count < EVC_TREE_BATCH; count++, *word &= *word - 1) {
			size_t index = slab->first * 64 + (uint32_t)__builtin_ctzll(*word);

			*end = (struct slot *)(void *)(slots + (index << pool->shift));
			end = &(*end)->next;
		}
		if (*word != 0)
			break;
	}
	*end = NULL;
	to->count = count;
	slab->used += count;
	pool->used += count;
	if (slab->used == pool->slots)
		drop(&pool->partial, slab);
}

/* Gives slots back. Returns the slabs to be freed, linked by `next`. */
static struct slab *give(struct pool *pool, struct slot *slots)
{
	struct slab *dead = NULL;

	while (slots != NULL) {
		struct slot *slot = slots;
		struct slab *slab = (struct slab *)((uintptr_t)slot & ~(uintptr_t)(EVC_TREE_SLAB - 1));
		size_t offset = (size_t)((char *)slot - (char *)slab) - EVC_TREE_SLAB_HEADER;
		uint32_t index = (uint32_t)(offset >> pool->shift), word = index / 64;

		slots = slot->next;
		if (slab->used == pool->slots)
			push(&pool->partial, slab);
		slab->free[word] |= UINT64_C(1) << (index % 64);
		if (word < slab->first)
			slab->first = word;
		pool->used--;
		if (--slab->used == 0) {
			drop(&pool->partial, slab);
			push_empty(pool, slab);
		}
	}
	while (pool->empty_count > (pool->used > 0 ? EVC_TREE_SPARE : 0))
		push(&dead, pop_empty(pool));
	return dead;
}

static void give_back(struct pool *pool, struct slot *slots)
{
	struct slab *dead;

	pthread_mutex_lock(&pool->mutex);
	dead = give(pool, slots);
	pthread_mutex_unlock(&pool->mutex);
	while (dead != NULL) {
		struct slab *slab = dead;

		dead = slab->next;
		evc_deallocate(slab, EVC_TREE_SLAB, EVC_TREE_SLAB);
	}
}

static bool refill(struct pool *pool, struct kept *to)
{
	pthread_mutex_lock(&pool->mutex);
	if (pool->partial == NULL && pool->empty == NULL) {
		struct slab *slab;

		/* Not under the mutex: the allocator is the user's. */
		pthread_mutex_unlock(&pool->mutex);
		slab = evc_allocate(EVC_TREE_SLAB, EVC_TREE_SLAB);
		if (slab == NULL)
			return false;
		init_slab(pool, slab);
		pthread_mutex_lock(&pool->mutex);
		push_empty(pool, slab);
	}
	take(pool, to);
	pthread_mutex_unlock(&pool->mutex);
	return true;
}

void evc_tree_give_back(void)
{
	for (unsigned i = 0; i < SIZES; i++) {
		struct slot *slots = kept[i].first;

		kept[i] = (struct kept){ NULL, 0 };
		if (slots != NULL)
			give_back(&pools[i], slots);
	}
}

void *evc_tree_allocate(size_t size)
{
	const unsigned i = index_of(size);
	const bool is_empty = kept[i].first == NULL;
	struct slot *slot;

	if (evc_unlikely(is_empty) && !refill(&pools[i], &kept[i]))
		return NULL;
	slot = kept[i].first;
	kept[i].first = slot->next;
	kept[i].count--;
	if (evc_unlikely(is_empty) && !evc_tree_knows_thread())
		evc_tree_give_back();
	return slot;
}

void evc_tree_free(void *memory, size_t size)
{
	struct kept *to = &kept[index_of(size)];
	struct slot *slot = memory;

	if (evc_unlikely(!evc_tree_knows_thread())) {
		slot->next = NULL;
		give_back(&pools[index_of(size)], slot);
		return;
	}
	slot->next = to->first;
	to->first = slot;
	if (evc_likely(++to->count < 2 * EVC_TREE_BATCH))
		return;
	/* Those that were freed last stay: their lines are in this processor's caches. */
	for (uint32_t i = 1; i < EVC_TREE_BATCH; i++)
		slot = slot->next;
	to->count = EVC_TREE_BATCH;
	memory = slot->next;
	slot->next = NULL;
	give_back(&pools[index_of(size)], memory);
}
#endif
#endif
