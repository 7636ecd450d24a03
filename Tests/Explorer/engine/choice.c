/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * An execution is determined by its choices. 0 is what would happen on an idle machine with strong memory;
 * every other choice is a deviation. A search goes through all executions with a limited number of
 * deviations, deepest choice first.
 */
#include "engine.h"

#include <stdlib.h>

enum { RANDOM, SEARCH, REPLAY };

struct taken {
	uint32_t value;
	/* The number of alternatives that the search had; 1: none, since the deviations were used up. */
	uint32_t count;
};

static KEPT int mode;
static KEPT struct taken *taken;
static KEPT size_t count_taken, capacity;
/* In a search: the given choices, and how many deviations are left. */
static KEPT size_t given;
static KEPT unsigned depth, left;
static KEPT uint64_t random_state;
/* One in this many choices of a kind deviates. */
static KEPT unsigned rarity[CHOICE_KINDS];
/* A fiber that yields mostly goes on nevertheless. */
static KEPT bool is_stubborn;
/* For this many more loads and stores old stores are read, or preceded, often: an order was weakened here. */
static KEPT unsigned heat;
static KEPT uint32_t *replayed;
static KEPT size_t replayed_count;

void choice_heat(void)
{
	heat = 12;
}

static uint64_t draw(void)
{
	/* splitmix64 */
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void choice_begin_random(uint64_t seed)
{
	static const unsigned preempt[] = { 3, 6, 12, 25, 60, 150 }, load[] = { 2, 4, 10, 40 };

	mode = RANDOM;
	random_state = seed;
	count_taken = 0;
	heat = 0;
	rarity[CHOICE_PREEMPT] = preempt[draw() % 6];
	rarity[CHOICE_LOAD] = load[draw() % 4];
	rarity[CHOICE_PLACE] = 20;
	rarity[CHOICE_SPURIOUS] = 10;
	is_stubborn = draw() % 8 == 0;
}

void choice_begin_replay(const char *list)
{
	mode = REPLAY;
	count_taken = 0;
	replayed_count = 0;
	while (*list != '\0') {
		char *end;
		size_t index = strtoul(list, &end, 10);
		uint32_t value = *end == ':' ? (uint32_t)strtoul(end + 1, &end, 10) : 0;

		replayed = realloc(replayed, (index + 1) * sizeof(*replayed));
		while (replayed_count <= index)
			replayed[replayed_count++] = 0;
		replayed[index] = value;
		list = *end == ',' ? end + 1 : "";
	}
}

void choice_begin_search(unsigned new_depth)
{
	mode = SEARCH;
	depth = left = new_depth;
	given = count_taken = 0;
}

bool choice_next_search(void)
{
	while (count_taken > 0) {
		struct taken *last = &taken[count_taken - 1];

		if (last->value + 1 < last->count) {
			last->value++;
			given = count_taken;
			left = depth;
			count_taken = 0;
			return true;
		}
		count_taken--;
	}
	return false;
}

static unsigned choose_random(enum choice kind, unsigned count)
{
	if (kind == CHOICE_NEXT)
		return draw() % count;
	if (kind == CHOICE_AFTER_YIELD)
		return is_stubborn && draw() % 128 != 0 ? count - 1 : draw() % (count - 1);
	if (heat > 0 && (kind == CHOICE_LOAD || kind == CHOICE_PLACE)) {
		heat--;
		return draw() % 2 == 0 ? 1 + draw() % (count - 1) : 0;
	}
	return draw() % rarity[kind] == 0 ? 1 + draw() % (count - 1) : 0;
}

unsigned choose(enum choice kind, unsigned count)
{
	struct taken *this;

	if (count <= 1)
		return 0;
	if (count_taken == capacity) {
		capacity = capacity == 0 ? 1024 : capacity * 2;
		taken = realloc(taken, capacity * sizeof(*taken));
	}
	this = &taken[count_taken];
	if (mode == RANDOM) {
		this->value = choose_random(kind, count);
	} else if (mode == REPLAY) {
		this->value = count_taken < replayed_count ? replayed[count_taken] : 0;
		if (this->value >= count)
			this->value = count - 1;
	} else if (count_taken >= given) {
		this->value = 0;
		this->count = left > 0 ? count : 1;
	} else if (this->value >= count) {
		explorer_fail("the scenario does not do the same again: choice %zu of %u has %u ways",
			      count_taken, this->value, count);
	}
	if (this->value != 0 && left > 0)
		left--;
	count_taken++;
	return this->value;
}

static char *text_of(const uint32_t *values, size_t count)
{
	char *text = malloc(count * 16 + 1), *end = text;

	*end = '\0';
	for (size_t i = 0; i < count; i++)
		if (values[i] != 0)
			end += sprintf(end, "%s%zu:%u", end == text ? "" : ",", i, values[i]);
	return text;
}

static uint32_t *values_taken(size_t *count)
{
	uint32_t *values = malloc((count_taken + 1) * sizeof(*values));

	*count = count_taken;
	for (size_t i = 0; i < count_taken; i++)
		values[i] = taken[i].value;
	return values;
}

static bool fails_with(const uint32_t *values, size_t count, bool (*still_fails)(const char *list))
{
	char *text = text_of(values, count);
	bool fails = still_fails(text);

	free(text);
	return fails;
}

/* Sets sequences of choices to 0 that the failure does not need: long ones first, then shorter ones. */
char *choice_simplify(bool (*still_fails)(const char *list))
{
	size_t count;
	uint32_t *values = values_taken(&count);
	uint32_t *kept = malloc((count + 1) * sizeof(*kept));
	unsigned tries = 3000;
	char *text;

	for (size_t run = count; run >= 1 && tries > 0; run = run > 1 ? run / 2 : 0) {
		for (size_t end = count; end > 0 && tries > 0; end = end > run ? end - run : 0) {
			size_t begin = end > run ? end - run : 0;
			bool any = false;

			memcpy(kept, values, count * sizeof(*kept));
			for (size_t i = begin; i < end; i++) {
				any |= values[i] != 0;
				values[i] = 0;
			}
			if (!any)
				continue;
			tries--;
			if (!fails_with(values, count, still_fails))
				memcpy(values, kept, count * sizeof(*kept));
		}
	}
	text = text_of(values, count);
	free(values);
	free(kept);
	return text;
}
