/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The <stdatomic.h> that the explorer compiles the core against: the same names; each operation goes to the
 * simulated memory (engine/memory.c) with its source location.
 *
 * Objects keep their type and layout; the simulation finds its data about an object by its address.
 */
#ifndef EXPLORER_STDATOMIC_H
#define EXPLORER_STDATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
	memory_order_relaxed = __ATOMIC_RELAXED,
	memory_order_consume = __ATOMIC_CONSUME,
	memory_order_acquire = __ATOMIC_ACQUIRE,
	memory_order_release = __ATOMIC_RELEASE,
	memory_order_acq_rel = __ATOMIC_ACQ_REL,
	memory_order_seq_cst = __ATOMIC_SEQ_CST
} memory_order;

enum explorer_operation {
	EXPLORER_LOAD,
	EXPLORER_STORE,
	EXPLORER_EXCHANGE,
	EXPLORER_ADD,
	EXPLORER_SUB,
	EXPLORER_AND,
	EXPLORER_OR,
	EXPLORER_XOR,
	EXPLORER_COMPARE_WEAK,
	EXPLORER_COMPARE_STRONG,
	EXPLORER_FENCE,
	EXPLORER_INIT
};

/*
 * One atomic operation in the source. All of them are in a section of their own, so that they can be listed.
 */
struct explorer_site {
	const char *file;
	int line;
	enum explorer_operation operation;
	/* The orders as written, if they are constants; [1]: the order of a failing compare-and-swap. */
	uint8_t literal[2];
	/* Bit n: it was executed with order n. */
	uint8_t orders[2];
	/* From the command line (--weaken): the order `from` becomes `to`. */
	bool is_weakened[2];
	uint8_t from[2], to[2];
	/* So that they are adjacent in their section, whatever alignment the compiler prefers. */
} __attribute__((aligned(32)));

uint64_t explorer_load(struct explorer_site *site, const volatile void *at, size_t size, int order);
void explorer_store(struct explorer_site *site, volatile void *at, size_t size, uint64_t value, int order);
uint64_t explorer_modify(struct explorer_site *site, volatile void *at, size_t size, uint64_t value,
			 int order);
bool explorer_compare(struct explorer_site *site, volatile void *at, size_t size, void *expected,
		      uint64_t value, int success, int failure);
void explorer_fence(struct explorer_site *site, int order);
void explorer_init(volatile void *at, size_t size, uint64_t value);

#define EXPLORER_VARIABLE 255
#define EXPLORER_LITERAL(order)                                                                    \
	__builtin_choose_expr(__builtin_constant_p(order), (order), EXPLORER_VARIABLE)
#define EXPLORER_SITE_OF_TWO(what, success, failure)                                               \
	static struct explorer_site explorer_site __attribute__((section("explorer_sites"))) = {   \
		__FILE__, __LINE__, (what),                                                        \
		{ EXPLORER_LITERAL(success), EXPLORER_LITERAL(failure) },                          \
		{ 0, 0 }, { false, false }, { 0, 0 }, { 0, 0 }                                     \
	}
#define EXPLORER_SITE(what, order) EXPLORER_SITE_OF_TWO(what, order, memory_order_relaxed)
/* The type of what `p` points to, without _Atomic. */
#define EXPLORER_TYPE(p) __typeof__((void)0, *(p))
#define EXPLORER_WORD(p, value)                                                                    \
	({                                                                                         \
		EXPLORER_TYPE(p) explorer_value = (value);                                         \
		(uint64_t)(uintptr_t)explorer_value;                                               \
	})

#define ATOMIC_VAR_INIT(value) (value)
#define atomic_init(p, value) explorer_init((p), sizeof(*(p)), EXPLORER_WORD(p, value))
#define atomic_load_explicit(p, order)                                                             \
	({                                                                                         \
		EXPLORER_SITE(EXPLORER_LOAD, order);                                                      \
		(EXPLORER_TYPE(p))(uintptr_t)explorer_load(&explorer_site, (p), sizeof(*(p)),      \
							   (order));                               \
	})
#define atomic_store_explicit(p, value, order)                                                     \
	({                                                                                         \
		EXPLORER_SITE(EXPLORER_STORE, order);                                                     \
		explorer_store(&explorer_site, (p), sizeof(*(p)), EXPLORER_WORD(p, value),         \
			       (order));                                                           \
	})
#define EXPLORER_MODIFY(what, p, word, order)                                                      \
	({                                                                                         \
		EXPLORER_SITE(what, order);                                                        \
		(EXPLORER_TYPE(p))(uintptr_t)explorer_modify(&explorer_site, (p), sizeof(*(p)),    \
							     (word), (order));                     \
	})
#define EXPLORER_COMPARE(what, p, expected, value, success, failure)                               \
	({                                                                                         \
		EXPLORER_SITE_OF_TWO(what, success, failure);                                      \
		explorer_compare(&explorer_site, (p), sizeof(*(p)), (expected),                    \
				 EXPLORER_WORD(p, value), (success), (failure));                   \
	})
#define atomic_exchange_explicit(p, value, order)                                                  \
	EXPLORER_MODIFY(EXPLORER_EXCHANGE, p, EXPLORER_WORD(p, value), order)
#define atomic_fetch_add_explicit(p, value, order)                                                 \
	EXPLORER_MODIFY(EXPLORER_ADD, p, (uint64_t)(value), order)
#define atomic_fetch_sub_explicit(p, value, order)                                                 \
	EXPLORER_MODIFY(EXPLORER_SUB, p, (uint64_t)(value), order)
#define atomic_fetch_and_explicit(p, value, order)                                                 \
	EXPLORER_MODIFY(EXPLORER_AND, p, (uint64_t)(value), order)
#define atomic_fetch_or_explicit(p, value, order)                                                  \
	EXPLORER_MODIFY(EXPLORER_OR, p, (uint64_t)(value), order)
#define atomic_fetch_xor_explicit(p, value, order)                                                 \
	EXPLORER_MODIFY(EXPLORER_XOR, p, (uint64_t)(value), order)
#define atomic_compare_exchange_weak_explicit(p, expected, value, success, failure)                \
	EXPLORER_COMPARE(EXPLORER_COMPARE_WEAK, p, expected, value, success, failure)
#define atomic_compare_exchange_strong_explicit(p, expected, value, success, failure)              \
	EXPLORER_COMPARE(EXPLORER_COMPARE_STRONG, p, expected, value, success, failure)
#define atomic_thread_fence(order)                                                                 \
	({                                                                                         \
		EXPLORER_SITE(EXPLORER_FENCE, order);                                                     \
		explorer_fence(&explorer_site, (order));                                           \
	})
/* Orders the compiler alone, which is not simulated. */
#define atomic_signal_fence(order) ((void)(order))

typedef _Atomic bool atomic_bool;
typedef _Atomic int atomic_int;
typedef _Atomic unsigned atomic_uint;
typedef _Atomic size_t atomic_size_t;
typedef _Atomic uintptr_t atomic_uintptr_t;

#endif
