/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
/* One file, though long: it is one allocator, whose slabs nobody else knows. */
#include "tree/tree_memory.h"

#include "eventcore/base.h"
#include "platform/allocator.h"
#include "platform/compiler.h"

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

void evc_tree_memory_end(void)
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
	/* Slabs with free slots; those without a used slot are at the end. */
	struct slab *first, *last;
	/* How many of those have no used slot, and how many slots are in use. */
	size_t empty, used;
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
static _Thread_local bool will_give_back;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_available;

static_assert(sizeof(struct slab) <= EVC_TREE_SLAB_HEADER, "the first slot begins behind it");
static_assert(EVC_TREE_SMALL == 1 << 6 && EVC_TREE_LARGE == 1 << 7, "see pools");

static unsigned index_of(size_t size)
{
	return size <= EVC_TREE_SMALL ? 0 : 1;
}

static struct slab *slab_of(const void *slot)
{
	return (struct slab *)((uintptr_t)slot & ~(uintptr_t)(EVC_TREE_SLAB - 1));
}

static bool has_free(const struct pool *pool, const struct slab *slab)
{
	return slab->used < pool->slots;
}

static void unlink_slab(struct pool *pool, struct slab *slab)
{
	*(slab->previous != NULL ? &slab->previous->next : &pool->first) = slab->next;
	*(slab->next != NULL ? &slab->next->previous : &pool->last) = slab->previous;
}

static void link_first(struct pool *pool, struct slab *slab)
{
	slab->previous = NULL;
	slab->next = pool->first;
	*(slab->next != NULL ? &slab->next->previous : &pool->last) = slab;
	pool->first = slab;
}

static void link_last(struct pool *pool, struct slab *slab)
{
	slab->next = NULL;
	slab->previous = pool->last;
	*(slab->previous != NULL ? &slab->previous->next : &pool->first) = slab;
	pool->last = slab;
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

/* Takes up to a batch of slots from the first slab, in the order of their addresses. */
static void take(struct pool *pool, struct kept *to)
{
	struct slab *slab = pool->first;
	char *slots = (char *)slab + EVC_TREE_SLAB_HEADER;
	struct slot **end = &to->first;
	uint32_t count = 0;

	pool->empty -= slab->used == 0;
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
	if (!has_free(pool, slab))
		unlink_slab(pool, slab);
}

/* Marks a slot as free. */
static void give_slot(const struct pool *pool, struct slab *slab, const struct slot *slot)
{
	size_t offset = (size_t)((const char *)slot - (const char *)slab) - EVC_TREE_SLAB_HEADER;
	uint32_t index = (uint32_t)(offset >> pool->shift), word = index / 64;

	slab->free[word] |= UINT64_C(1) << (index % 64);
	if (word < slab->first)
		slab->first = word;
}

/* Gives slots back. Returns the slabs to be freed, linked by `next`. */
static struct slab *give(struct pool *pool, struct slot *slots)
{
	struct slab *dead = NULL;

	while (slots != NULL) {
		struct slot *slot = slots;
		struct slab *slab = slab_of(slot);

		slots = slot->next;
		if (!has_free(pool, slab))
			link_first(pool, slab);
		give_slot(pool, slab, slot);
		pool->used--;
		if (--slab->used > 0)
			continue;
		unlink_slab(pool, slab);
		if (pool->empty >= EVC_TREE_SPARE) {
			slab->next = dead;
			dead = slab;
		} else {
			pool->empty++;
			link_last(pool, slab);
		}
	}
	if (pool->used == 0) {
		while (pool->first != NULL) {
			struct slab *slab = pool->first;

			unlink_slab(pool, slab);
			slab->next = dead;
			dead = slab;
		}
		pool->empty = 0;
	}
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
	if (pool->first == NULL) {
		struct slab *slab;

		/* Not under the mutex: the allocator is the user's. */
		pthread_mutex_unlock(&pool->mutex);
		slab = evc_allocate(EVC_TREE_SLAB, EVC_TREE_SLAB);
		if (slab == NULL)
			return false;
		init_slab(pool, slab);
		pthread_mutex_lock(&pool->mutex);
		link_last(pool, slab);
		pool->empty++;
	}
	take(pool, to);
	pthread_mutex_unlock(&pool->mutex);
	return true;
}

void evc_tree_give_back(void)
{
	will_give_back = false;
	for (unsigned i = 0; i < SIZES; i++) {
		struct slot *slots = kept[i].first;

		kept[i] = (struct kept){ NULL, 0 };
		if (slots != NULL)
			give_back(&pools[i], slots);
	}
}

/* The thread ends. A later destructor may end nodes; then this one is called again. */
static void at_thread_end(void *unused)
{
	(void)unused;
	evc_tree_give_back();
}

void evc_tree_memory_end(void)
{
	if (key_available)
		pthread_key_delete(key);
	key_available = false;
	key_once = (pthread_once_t)PTHREAD_ONCE_INIT;
}

static void make_key(void)
{
	key_available = pthread_key_create(&key, at_thread_end) == 0;
}

/* True if the thread may keep slots: only if they are given back when it ends. */
static bool may_keep(void)
{
	if (evc_likely(will_give_back))
		return true;
	pthread_once(&key_once, make_key);
	will_give_back = key_available && pthread_setspecific(key, &will_give_back) == 0;
	return will_give_back;
}

void *evc_tree_allocate(size_t size)
{
	const unsigned i = index_of(size);
	struct slot *slot = kept[i].first;

	assert(size <= EVC_TREE_LARGE);
	if (evc_likely(slot != NULL)) {
		kept[i].first = slot->next;
		kept[i].count--;
		return slot;
	}
	if (!refill(&pools[i], &kept[i]))
		return NULL;
	slot = kept[i].first;
	kept[i].first = slot->next;
	kept[i].count--;
	if (evc_unlikely(!may_keep()))
		evc_tree_give_back();
	return slot;
}

void evc_tree_free(void *memory, size_t size)
{
	struct kept *to = &kept[index_of(size)];
	struct slot *slot = memory;

	if (evc_unlikely(!may_keep())) {
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
