/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * An allocator that knows its blocks, and fails now and then. Three inputs in four begin with it. When it comes and
 * goes, it knows not all of them any more.
 */
#include "fuzz.h"

#include <pthread.h>

/* A power of two, of which few are in use at one time. */
enum { BLOCKS = 1 << 14 };

static struct block {
	void *memory;
	size_t size, alignment;
} blocks[BLOCKS];
static size_t block_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* How many allocations succeed before one fails; negative: all do. */
static int until_failure = -1;
static bool has_failed, was_replaced;

static struct block *find_block(const void *memory)
{
	size_t at = (uintptr_t)memory / 16 % BLOCKS;

	while (blocks[at].memory != NULL && blocks[at].memory != memory)
		at = (at + 1) % BLOCKS;
	return &blocks[at];
}

/* Moves up what would not be found behind an empty place. */
static void remove_block(struct block *block)
{
	size_t at = (size_t)(block - blocks);

	block->memory = NULL;
	block_count--;
	for (at = (at + 1) % BLOCKS; blocks[at].memory != NULL; at = (at + 1) % BLOCKS) {
		const struct block moved = blocks[at];

		blocks[at].memory = NULL;
		*find_block(moved.memory) = moved;
	}
}

static void *allocate(void *context, size_t size, size_t alignment)
{
	const struct evc_allocator *system = evc_allocator_default();
	void *memory = NULL;

	CHECK(context == blocks && alignment != 0 && (alignment & (alignment - 1)) == 0);
	pthread_mutex_lock(&mutex);
	if (until_failure == 0)
		has_failed = true;
	else if (size < (size_t)1 << 24)
		memory = system->allocate(system->context, size, alignment);
	if (until_failure >= 0)
		until_failure--;
	if (memory != NULL) {
		struct block *block = find_block(memory);

		/* There already: one that was freed while the default allocator was installed. */
		block_count += block->memory == NULL;
		CHECK((uintptr_t)memory % alignment == 0 && block_count < BLOCKS / 2);
		*block = (struct block){ memory, size, alignment };
	}
	pthread_mutex_unlock(&mutex);
	return memory;
}

static void deallocate(void *context, void *memory, size_t size, size_t alignment)
{
	const struct evc_allocator *system = evc_allocator_default();
	struct block *block;

	CHECK(context == blocks);
	pthread_mutex_lock(&mutex);
	block = find_block(memory);
	/* One of the default allocator otherwise. */
	if (block->memory != NULL && memory != NULL) {
		CHECK(was_replaced || (block->size == size && block->alignment == alignment));
		remove_block(block);
	} else {
		CHECK(was_replaced);
	}
	system->deallocate(system->context, memory, size, alignment);
	pthread_mutex_unlock(&mutex);
}

static const struct evc_allocator allocator = { blocks, allocate, deallocate };

void lack_memory(unsigned after)
{
	pthread_mutex_lock(&mutex);
	has_failed = false;
	until_failure = (int)(after % 16);
	pthread_mutex_unlock(&mutex);
}

bool memory_lacked(void)
{
	return has_failed;
}

bool is_status(enum evc_status status, enum evc_status expected)
{
	return status == expected || (status == EVC_OUT_OF_MEMORY && memory_lacked());
}

void have_memory(void)
{
	pthread_mutex_lock(&mutex);
	until_failure = -1;
	has_failed = false;
	pthread_mutex_unlock(&mutex);
}

void install_allocator(void)
{
	struct evc_allocator other = allocator;
	const unsigned way = draw() % 4;

	if (way == 0)
		other.allocate = NULL;
	if (way == 1)
		other.deallocate = NULL;
	if (way < 2) {
		CHECK(evc_allocator_install(&other) == EVC_INVALID_ARGUMENT);
		return;
	}
	was_replaced = true;
	CHECK(evc_allocator_install(way == 2 ? NULL : &allocator) == EVC_OK);
}

void begin_memory(void)
{
	was_replaced = draw() % 4 == 0;
	CHECK(evc_allocator_install(was_replaced ? NULL : &allocator) == EVC_OK);
}

void check_memory(void)
{
	CHECK(was_replaced || block_count == 0);
}

void end_memory(void)
{
	check_memory();
	if (block_count > 0)
		memset(blocks, 0, sizeof(blocks));
	block_count = 0;
}
