/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The memory model of C11 in the words of C++20 (P0668) and C23, for executions in which nothing reads from what
 * is yet to come.
 *
 * Each atomic object keeps its stores in modification order. What an operation may not go behind is its floor: the
 * newest store which something that happens before it has read or written (coherence), or which the order S of
 * sequentially consistent operations shows it. S is the order of execution. [atomics.order] wants A before B in S
 * if A is coherence-ordered before B and both are sequentially consistent, or a sequentially consistent fence that
 * happens after B, or before A, stands for either. As B before A was executed, an operation A must not be
 * coherence-ordered before:
 *   1. B, if A and B are seq_cst and B came before A
 *   2. B, if A is seq_cst and B happens before a fence that came before A
 *   3. B, if a fence X happens before A, and B is seq_cst and came before X
 *   4. B, if a fence X happens before A, and B happens before a fence that came before X
 * For each fence `views` tells what happens before it or an earlier one: 2 is the last view, 4 that of X.
 *
 * A release sequence is a store and the read-modify-writes that follow it without a gap. A new store may be put before
 * others, down to its floor, but never between a read-modify-write and the store that it has read. What a
 * read-modify-write writes comes right after what it reads: it therefore reads the newest store, or an older one, behind
 * which there is such a place. That the stores behind it were executed before it contradicts nothing: what coherence
 * and S demand is its floor, as a reader's and a writer's.
 *
 * Left out: reading from a store that is executed later (load buffering, which release and acquire forbid as well
 * as the order of execution does), and executions in which S contradicts happens-before.
 */
#include "engine.h"

#include <stdlib.h>

#define TABLE 8192u

struct store {
	uint64_t value;
	/* What a fiber that acquires it learns. */
	struct clock released;
	uint32_t position;
	bool is_modify;
	uint8_t fiber;
};

/* From `time` on the object was seen with this store or a newer one. */
struct seen {
	uint32_t time;
	struct store *store;
};

struct seen_list {
	struct seen *items;
	uint32_t count, capacity;
};

struct object {
	uintptr_t address;
	uint32_t execution;
	uint32_t size;
	struct store **order;
	uint32_t count, capacity;
	/* By each fiber, at its ticks; and by seq_cst operations, at their places in S. */
	struct seen_list by[FIBERS], in_s;
};

/* What the fiber's fences will release, and what they have yet to acquire. */
struct pending {
	struct clock released, acquired;
};

struct view {
	struct clock before;
	uint32_t place;
};

static KEPT struct object table[TABLE];
static KEPT uint32_t execution;
static KEPT struct pending pending[FIBERS];
static KEPT struct view *views;
static KEPT uint32_t view_count, view_capacity;
/* The number of seq_cst operations so far: the next one's position in S. */
static KEPT uint32_t places;
/* Memory for one execution. */
static KEPT char *arena;
static KEPT size_t arena_used;
#define ARENA ((size_t)256 << 20)

static void *take(size_t size)
{
	void *memory = arena + arena_used;

	arena_used += (size + 15) & ~(size_t)15;
	if (arena_used > ARENA)
		explorer_fail("an execution of more stores than the engine has memory for");
	return memory;
}

void memory_reset(void)
{
	if (arena == NULL)
		arena = malloc(ARENA);
	arena_used = 0;
	execution++;
	memset(pending, 0, sizeof(pending));
	if (views == NULL)
		views = malloc((view_capacity = 64) * sizeof(*views));
	memset(&views[0], 0, sizeof(views[0]));
	view_count = 1;
	places = 0;
}

static void *grow(void *items, uint32_t *capacity, size_t size)
{
	uint32_t bigger = *capacity == 0 ? 4 : *capacity * 2;
	void *copy = take(bigger * size);

	memcpy(copy, items, *capacity * size);
	*capacity = bigger;
	return copy;
}

static void see(struct seen_list *list, uint32_t time, struct store *store)
{
	if (list->count > 0 && list->items[list->count - 1].store == store)
		return;
	if (list->count == list->capacity)
		list->items = grow(list->items, &list->capacity, sizeof(*list->items));
	list->items[list->count++] = (struct seen){ time, store };
}

/* The newest store that was seen up to `time`. */
static uint32_t seen_up_to(const struct seen_list *list, uint32_t time)
{
	for (uint32_t i = list->count; i > 0; i--)
		if (list->items[i - 1].time <= time)
			return list->items[i - 1].store->position;
	return 0;
}

static uint32_t seen_before(const struct object *object, const struct clock *clock)
{
	uint32_t floor = 0;

	for (unsigned i = 0; i < fiber_count(); i++) {
		uint32_t position = seen_up_to(&object->by[i], clock->at[i]);

		floor = position > floor ? position : floor;
	}
	return floor;
}

static uint32_t max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t floor_of(const struct object *object, bool is_seq_cst)
{
	const struct clock *clock = fiber_clock(fiber_number());
	uint32_t floor = seen_before(object, clock);

	if (is_seq_cst) {
		/* 1, 2. */
		floor = max(floor, seen_up_to(&object->in_s, UINT32_MAX));
		floor = max(floor, seen_before(object, &views[view_count - 1].before));
	}
	if (clock->fence != 0) {
		const struct view *view = &views[clock->fence];

		/* 3, 4. */
		floor = max(floor, seen_up_to(&object->in_s, view->place));
		floor = max(floor, seen_before(object, &view->before));
	}
	return floor;
}

static bool is_place(const struct object *object, uint32_t position)
{
	return position == object->count || !object->order[position]->is_modify;
}

/* Where a new store comes in the modification order: last, or before another store and behind the floor. */
static uint32_t choose_place(const struct object *object, uint32_t floor, enum choice kind)
{
	uint32_t count = 0, choice, position;

	for (position = object->count; position > floor; position--)
		count += is_place(object, position);
	choice = choose(kind, count);
	for (position = object->count; !is_place(object, position) || choice-- > 0; position--)
		;
	return position;
}

static uint64_t read_real(uintptr_t address, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, (const void *)address, size);
	return value;
}

static struct store *add(struct object *object, uint32_t position, uint64_t value)
{
	struct store *store = take(sizeof(*store));

	if (object->count == object->capacity)
		object->order = grow(object->order, &object->capacity, sizeof(*object->order));
	for (uint32_t i = object->count; i > position; i--) {
		object->order[i] = object->order[i - 1];
		object->order[i]->position = i;
	}
	memset(store, 0, sizeof(*store));
	store->value = value;
	store->position = position;
	store->fiber = (uint8_t)fiber_number();
	object->order[position] = store;
	object->count++;
	if (position + 1 == object->count)
		memcpy((void *)object->address, &value, object->size);
	return store;
}

static struct object *slot_of(uintptr_t address)
{
	uintptr_t at = address * 0x9e3779b97f4a7c15u >> 40;

	for (unsigned i = 0; i < TABLE; i++) {
		struct object *object = &table[(at + i) % TABLE];

		if (object->execution != execution || object->address == address)
			return object;
	}
	explorer_fail("more atomic objects than the engine has room for");
}

static void begin_anew(struct object *object, uintptr_t address, size_t size)
{
	memset(object, 0, sizeof(*object));
	object->address = address;
	object->size = (uint32_t)size;
	object->execution = execution;
	add(object, 0, read_real(address, size));
}

static struct object *find(uintptr_t address, size_t size)
{
	struct object *object = slot_of(address);

	/* Also after a plain write. */
	if (object->execution != execution || object->count == 0)
		begin_anew(object, address, size);
	else if (object->size != size)
		explorer_fail("an object of %u bytes is accessed with %zu", object->size, size);
	return object;
}

void memory_overwrite(uintptr_t address, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		struct object *object = slot_of(address + i);

		/* Its value is not known yet: it is read at the next access. */
		if (object->execution == execution)
			object->count = 0;
	}
}

static struct object *enter(const volatile void *at, size_t size, enum access access, uintptr_t pc)
{
	fiber_point();
	plain_access((uintptr_t)at, size, access | ACCESS_ATOMIC, pc);
	return find((uintptr_t)at, size);
}

/* After an operation: what follows is later than what it may have released. */
static void leave(void)
{
	unsigned number = fiber_number();

	clock_tick(fiber_clock(number), number);
}

static bool acquires(int order)
{
	return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
	       order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static void note(struct object *object, struct store *store, int order)
{
	unsigned number = fiber_number();

	see(&object->by[number], fiber_clock(number)->at[number], store);
	if (order == __ATOMIC_SEQ_CST)
		see(&object->in_s, places++, store);
}

static void read_from(struct object *object, struct store *store, int order)
{
	unsigned number = fiber_number();

	clock_join(acquires(order) ? fiber_clock(number) : &pending[number].acquired,
		   &store->released);
	note(object, store, order);
}

static void written(struct object *object, struct store *store, int order)
{
	unsigned number = fiber_number();

	clock_join(&store->released,
		   releases(order) ? fiber_clock(number) : &pending[number].released);
	note(object, store, order);
}

static bool is_weakened(const struct explorer_site *site, unsigned which, int order)
{
	return site->is_weakened[which] && site->from[which] == order;
}

static int order_of(struct explorer_site *site, unsigned which, int order)
{
	site->orders[which] |= (uint8_t)(1u << order);
	if (!is_weakened(site, which, order))
		return order;
	choice_heat();
	return site->to[which];
}

static void tell(const struct explorer_site *site, const char *what, const struct object *object,
		 const struct store *store, int order)
{
	if (!trace_is_on)
		return;
	trace("%s %s %s, object %lx = %lx (%u of %u)", trace_site(site), what, trace_order(order),
	      object->address, store->value, store->position + 1, object->count);
}

#define CALLER ((uintptr_t)__builtin_return_address(0))

uint64_t explorer_load(struct explorer_site *site, const volatile void *at, size_t size, int order)
{
	struct object *object = enter(at, size, ACCESS_READ, CALLER);
	uint32_t floor, choice;
	struct store *store;

	order = order_of(site, 0, order);
	floor = floor_of(object, order == __ATOMIC_SEQ_CST);
	choice = choose(CHOICE_LOAD, object->count - floor);
	store = object->order[object->count - 1 - choice];
	tell(site, "load", object, store, order);
	read_from(object, store, order);
	leave();
	return store->value;
}

void explorer_store(struct explorer_site *site, volatile void *at, size_t size, uint64_t value, int order)
{
	struct object *object = enter(at, size, ACCESS_WRITE, CALLER);
	struct store *store;
	uint32_t floor;

	order = order_of(site, 0, order);
	floor = floor_of(object, order == __ATOMIC_SEQ_CST);
	store = add(object, choose_place(object, floor, CHOICE_PLACE), value);
	tell(site, "store", object, store, order);
	written(object, store, order);
	leave();
}

/* The new store of a read-modify-write that has read `before`. */
static void modify(struct explorer_site *site, const char *what, struct object *object, struct store *before,
		   uint64_t value, int order)
{
	struct store *store;

	read_from(object, before, order);
	store = add(object, before->position + 1, value);
	store->is_modify = true;
	store->released = before->released;
	written(object, store, order);
	tell(site, what, object, store, order);
	leave();
}

static uint64_t modified(enum explorer_operation operation, uint64_t value, uint64_t operand)
{
	switch (operation) {
	case EXPLORER_ADD:
		return value + operand;
	case EXPLORER_SUB:
		return value - operand;
	case EXPLORER_AND:
		return value & operand;
	case EXPLORER_OR:
		return value | operand;
	case EXPLORER_XOR:
		return value ^ operand;
	default:
		return operand;
	}
}

static uint64_t cut(uint64_t value, size_t size)
{
	return size == 8 ? value : value & ((UINT64_C(1) << size * 8) - 1);
}

uint64_t explorer_modify(struct explorer_site *site, volatile void *at, size_t size, uint64_t operand,
			 int order)
{
	struct object *object = enter(at, size, ACCESS_WRITE, CALLER);
	struct store *before;
	uint32_t floor;

	order = order_of(site, 0, order);
	floor = floor_of(object, order == __ATOMIC_SEQ_CST);
	before = object->order[choose_place(object, floor, CHOICE_LOAD) - 1];
	modify(site, site->operation == EXPLORER_EXCHANGE ? "exchange" : "modify", object, before,
	       cut(modified(site->operation, before->value, operand), size), order);
	return before->value;
}

/*
 * A failed compare-and-swap is a load of any store that differs, a successful one a read-modify-write; each has a floor
 * of its own.
 */
static struct store *compared(struct object *object, uint64_t wanted, bool is_weak, bool *succeeds,
			      int success, int failure)
{
	uint32_t to_succeed = floor_of(object, success == __ATOMIC_SEQ_CST), count = 1;
	uint32_t to_fail = floor_of(object, failure == __ATOMIC_SEQ_CST);
	struct store *found[64];

	found[0] = object->order[object->count - 1];
	for (uint32_t i = object->count - 1; i > 0 && count < 64; i--) {
		struct store *store = object->order[i - 1];
		bool may_succeed = store->value == wanted && i > to_succeed && is_place(object, i);
		/* A weak one that fails for no reason may read what it could not replace. */
		bool may_fail = (store->value != wanted || is_weak) && i > to_fail;

		if (may_succeed || may_fail)
			found[count++] = store;
	}
	found[0] = found[choose(CHOICE_LOAD, count)];
	*succeeds = found[0]->value == wanted && found[0]->position + 1 > to_succeed &&
		    is_place(object, found[0]->position + 1) && !(is_weak && choose(CHOICE_SPURIOUS, 2) != 0);
	return found[0];
}

bool explorer_compare(struct explorer_site *site, volatile void *at, size_t size, void *expected,
		      uint64_t value, int success, int failure)
{
	struct object *object = enter(at, size, ACCESS_WRITE, CALLER);
	uint64_t wanted = read_real((uintptr_t)expected, size);
	struct store *store;
	bool succeeds;

	/*
	 * The order of the failure is weakened separately, and together with a success that would otherwise
	 * be weaker.
	 */
	store = compared(object, wanted, site->operation == EXPLORER_COMPARE_WEAK, &succeeds,
			 is_weakened(site, 0, success) ? site->to[0] : success, failure);
	success = order_of(site, 0, success);
	if (succeeds) {
		modify(site, "compare: succeeds", object, store, cut(value, size), success);
		return true;
	}
	failure = order_of(site, 1, failure);
	tell(site, "compare: fails", object, store, failure);
	read_from(object, store, failure);
	leave();
	memcpy(expected, &store->value, size);
	return false;
}

/* Two objects side by side that change as one: __sync_val_compare_and_swap of 16 bytes, as 16 does. */
bool explorer_compare_pair(struct explorer_site *site, void *at, uint64_t expected[2], const uint64_t value[2])
{
	struct object *objects[2];
	struct store *stores[2];
	bool succeeds = true;

	for (unsigned i = 0; i < 2; i++) {
		objects[i] = i == 0 ? enter(at, 8, ACCESS_WRITE, CALLER) : find((uintptr_t)at + 8, 8);
		stores[i] = objects[i]->order[objects[i]->count - 1];
		succeeds &= stores[i]->value == expected[i];
	}
	for (unsigned i = 0; i < 2; i++) {
		if (succeeds) {
			modify(site, "compare pair: succeeds", objects[i], stores[i], value[i],
			       __ATOMIC_SEQ_CST);
		} else {
			tell(site, "compare pair: fails", objects[i], stores[i], __ATOMIC_SEQ_CST);
			read_from(objects[i], stores[i], __ATOMIC_SEQ_CST);
			leave();
			expected[i] = stores[i]->value;
		}
	}
	return succeeds;
}

static void fence(unsigned number, int order)
{
	struct clock *clock = fiber_clock(number);

	if (acquires(order)) {
		struct clock acquired = pending[number].acquired;

		memset(acquired.unfenced, 0, sizeof(acquired.unfenced));
		clock_join(clock, &acquired);
	}
	if (order == __ATOMIC_SEQ_CST) {
		struct view *view;

		if (view_count == view_capacity)
			views = realloc(views, (view_capacity *= 2) * sizeof(*views));
		view = &views[view_count];
		*view = views[view_count - 1];
		clock_join(&view->before, clock);
		view->place = places;
		clock->fence = view_count++;
		/* `place` is compared with <=. */
		places++;
	}
	if (releases(order)) {
		pending[number].released = *clock;
		memset(pending[number].released.unfenced, 0, sizeof(clock->unfenced));
	}
	clock_tick(clock, number);
}

void memory_fence(int order)
{
	fence(fiber_number(), order);
}

void explorer_fence(struct explorer_site *site, int order)
{
	fiber_point();
	order = order_of(site, 0, order);
	if (trace_is_on)
		trace("%s fence %s", trace_site(site), trace_order(order));
	fence(fiber_number(), order);
}

void memory_fence_everywhere(void)
{
	unsigned self = fiber_number();

	fence(self, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < fiber_count(); i++)
		if (i != self)
			fence(i, __ATOMIC_SEQ_CST);
	fence(self, __ATOMIC_SEQ_CST);
}

void explorer_init(volatile void *at, size_t size, uint64_t value)
{
	/* By the standard not an atomic operation: a reader must come after it. */
	plain_access((uintptr_t)at, size, ACCESS_WRITE, CALLER);
	memcpy((void *)at, &value, size);
}
