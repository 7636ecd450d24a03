/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * What keeps the deadlines in order: a heap of four children with back-pointers, or a hierarchical
 * timing wheel that is exact. Bare structures on one thread, intrusive nodes of 64 bytes, a million
 * pending, deadlines spread over 100 seconds. See Sources/CEventCore/scheduler/timer.heap.h.
 *
 *     fill ──► cancel and insert a million at random ──► fire all in order: the time of each step
 */
#include "check.h"

#define PENDING (1u << 20)
#define SPAN UINT64_C(100000000000)
#define LEVELS 11u
#define SLOTS 64u

struct node {
	uint64_t deadline;
	struct node *next, *previous;
	uint64_t number;
	uint32_t position;
	uint64_t unused[3];
};

struct order {
	void (*insert)(struct node *node);
	void (*remove)(struct node *node);
	/* The earliest, if it is due. */
	struct node *(*take)(uint64_t now);
};

static struct node *nodes;
static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(2685821657736338717) >> 16;
}

/* The heap. */

static struct entry {
	uint64_t deadline;
	struct node *node;
} *heap;
static uint32_t heap_last;
static uint64_t heap_number;

static bool is_before(struct entry a, struct entry b)
{
	return a.deadline != b.deadline ? a.deadline < b.deadline : a.node->number < b.node->number;
}

static void put(uint32_t position, struct entry entry)
{
	heap[position] = entry;
	entry.node->position = position;
}

static void sift_up(uint32_t position, struct entry entry)
{
	for (; position > 3 && is_before(entry, heap[position / 4 + 2]); position = position / 4 + 2)
		put(position, heap[position / 4 + 2]);
	put(position, entry);
}

static void sift_down(uint32_t position, struct entry entry)
{
	for (;;) {
		uint32_t child = 4 * position - 8, least = child;

		if (child > heap_last)
			break;
		for (uint32_t i = child + 1; i < child + 4 && i <= heap_last; i++)
			if (is_before(heap[i], heap[least]))
				least = i;
		if (!is_before(heap[least], entry))
			break;
		put(position, heap[least]);
		position = least;
	}
	put(position, entry);
}

static void heap_insert(struct node *node)
{
	node->number = ++heap_number;
	sift_up(++heap_last, (struct entry){ node->deadline, node });
}

static void heap_remove(struct node *node)
{
	uint32_t position = node->position;
	struct entry last = heap[heap_last--];

	if (last.node == node)
		return;
	if (position > 3 && is_before(last, heap[position / 4 + 2]))
		sift_up(position, last);
	else
		sift_down(position, last);
}

static struct node *heap_take(uint64_t now)
{
	struct node *node;

	if (heap_last < 3 || heap[3].deadline > now)
		return NULL;
	node = heap[3].node;
	heap_remove(node);
	return node;
}

/* The wheel: level l has slots of 64^l nanoseconds; a timer lies where it first differs from `elapsed`. */

static struct node wheel[LEVELS][SLOTS];
/* The least deadline in a slot, or less if that timer was cancelled. */
static uint64_t least[LEVELS][SLOTS];
static uint64_t used[LEVELS];
static uint64_t elapsed;

static void wheel_insert(struct node *node)
{
	uint64_t deadline = node->deadline < elapsed ? elapsed : node->deadline;
	uint64_t difference = deadline ^ elapsed;
	unsigned level = difference ? (63u - (unsigned)__builtin_clzll(difference)) / 6 : 0;
	unsigned slot = (deadline >> (6 * level)) & (SLOTS - 1);
	struct node *head = &wheel[level][slot];

	if (!(used[level] >> slot & 1)) {
		used[level] |= UINT64_C(1) << slot;
		least[level][slot] = deadline;
	} else if (deadline < least[level][slot]) {
		least[level][slot] = deadline;
	}
	node->previous = head->previous;
	node->next = head;
	head->previous->next = node;
	head->previous = node;
}

static void wheel_remove(struct node *node)
{
	struct node *next = node->next;

	node->previous->next = next;
	next->previous = node->previous;
	if (next == next->previous && next >= &wheel[0][0] && next <= &wheel[LEVELS - 1][SLOTS - 1]) {
		size_t index = (size_t)(next - &wheel[0][0]);

		used[index / SLOTS] &= ~(UINT64_C(1) << index % SLOTS);
	}
}

static struct node *wheel_take(uint64_t now)
{
	for (;;) {
		unsigned level = 0, slot;
		struct node *head, *node;

		while (level < LEVELS && used[level] == 0)
			level++;
		if (level == LEVELS)
			return NULL;
		slot = (unsigned)__builtin_ctzll(used[level]);
		if (least[level][slot] > now)
			return NULL;
		elapsed = least[level][slot];
		head = &wheel[level][slot];
		node = head->next;
		if (level == 0) {
			wheel_remove(node);
			return node;
		}
		/* Deals the slot to finer ones. */
		head->next = head->previous = head;
		used[level] &= ~(UINT64_C(1) << slot);
		while (node != head) {
			struct node *next = node->next;

			wheel_insert(node);
			node = next;
		}
	}
}

static void reset(uint64_t now)
{
	heap_last = 2;
	heap_number = 0;
	elapsed = now;
	for (unsigned l = 0; l < LEVELS; l++) {
		used[l] = 0;
		for (unsigned s = 0; s < SLOTS; s++)
			wheel[l][s].next = wheel[l][s].previous = &wheel[l][s];
	}
}

struct evb_timer_order evb_choice_timer_order(bool is_wheel)
{
	static const struct order heap_order = { heap_insert, heap_remove, heap_take };
	static const struct order wheel_order = { wheel_insert, wheel_remove, wheel_take };
	const struct order *order = is_wheel ? &wheel_order : &heap_order;
	const uint64_t begin = UINT64_C(1000000000000);
	struct evb_timer_order result = { 0 };
	uint64_t last, previous = 0, start;
	uint32_t fired = 0;

	nodes = aligned_alloc(64, PENDING * sizeof(*nodes));
	heap = aligned_alloc(64, (PENDING + 8) * sizeof(*heap));
	EVB_REQUIRE(nodes != NULL && heap != NULL, "no memory");
	random_state = 88172645463325252u;
	reset(begin);
	for (uint32_t i = 0; i < PENDING; i++) {
		nodes[i].deadline = begin + 1 + next_random() % SPAN;
		order->insert(&nodes[i]);
	}
	for (uint32_t round = 0; round < PENDING / 1024; round++) {
		/* Each node once: the stride is odd. */
		uint32_t base = round * 1024;

		start = evb_now();
		for (uint32_t i = 0; i < 1024; i++)
			order->remove(&nodes[(base + i) * 2654435761u % PENDING]);
		result.cancel += (double)(evb_now() - start) / PENDING;
		for (uint32_t i = 0; i < 1024; i++)
			nodes[(base + i) * 2654435761u % PENDING].deadline =
				begin + 1 + next_random() % SPAN;
		start = evb_now();
		for (uint32_t i = 0; i < 1024; i++)
			order->insert(&nodes[(base + i) * 2654435761u % PENDING]);
		result.insert += (double)(evb_now() - start) / PENDING;
	}
	start = last = evb_now();
	for (uint64_t now = begin; fired < PENDING; now += SPAN / PENDING * 100) {
		struct node *node;

		while ((node = order->take(now)) != NULL) {
			uint64_t time = evb_now();

			EVB_REQUIRE(node->deadline >= previous, "the wrong timer fired");
			previous = node->deadline;
			if ((double)(time - last) > result.longest)
				result.longest = (double)(time - last);
			last = time;
			fired++;
		}
	}
	result.fire = (double)(evb_now() - start) / PENDING;
	free(nodes);
	free(heap);
	return result;
}
