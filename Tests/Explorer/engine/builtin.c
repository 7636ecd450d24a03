/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The compiler's own atomic operations (__atomic and __sync), which -fsanitize=thread turns into calls of
 * these functions. They have no source location: a trace looks it up by the caller's address, which is used
 * in place of the line.
 */
#include "engine.h"

#define SITE(what)                                                                                 \
	static KEPT struct explorer_site site = { .operation = (what) };                           \
	site.line = (int)(uintptr_t)__builtin_return_address(0)

#define MODIFY(bits, type, name, what)                                                             \
	type __tsan_atomic##bits##_##name(volatile type *at, type value, int order);               \
	type __tsan_atomic##bits##_##name(volatile type *at, type value, int order)                \
	{                                                                                          \
		SITE(what);                                                                        \
		return (type)explorer_modify(&site, at, sizeof(type), value, order);               \
	}

#define COMPARE(bits, type, name, what)                                                            \
	bool __tsan_atomic##bits##_compare_exchange_##name(volatile type *at, type *expected,      \
							   type value, int success, int failure);  \
	bool __tsan_atomic##bits##_compare_exchange_##name(volatile type *at, type *expected,      \
							   type value, int success, int failure)   \
	{                                                                                          \
		SITE(what);                                                                        \
		return explorer_compare(&site, at, sizeof(type), expected, value, success,         \
					failure);                                                  \
	}

#define ALL(bits, type)                                                                            \
	type __tsan_atomic##bits##_load(const volatile type *at, int order);                       \
	type __tsan_atomic##bits##_load(const volatile type *at, int order)                        \
	{                                                                                          \
		SITE(EXPLORER_LOAD);                                                               \
		return (type)explorer_load(&site, at, sizeof(type), order);                        \
	}                                                                                          \
	void __tsan_atomic##bits##_store(volatile type *at, type value, int order);                \
	void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                 \
	{                                                                                          \
		SITE(EXPLORER_STORE);                                                              \
		explorer_store(&site, at, sizeof(type), value, order);                             \
	}                                                                                          \
	MODIFY(bits, type, exchange, EXPLORER_EXCHANGE)                                            \
	MODIFY(bits, type, fetch_add, EXPLORER_ADD)                                                \
	MODIFY(bits, type, fetch_sub, EXPLORER_SUB)                                                \
	MODIFY(bits, type, fetch_and, EXPLORER_AND)                                                \
	MODIFY(bits, type, fetch_or, EXPLORER_OR)                                                  \
	MODIFY(bits, type, fetch_xor, EXPLORER_XOR)                                                \
	COMPARE(bits, type, weak, EXPLORER_COMPARE_WEAK)                                           \
	COMPARE(bits, type, strong, EXPLORER_COMPARE_STRONG)                                       \
	/* Clang knows no other. */                                                                \
	type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected,          \
							type value, int success, int failure);     \
	type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected,          \
							type value, int success, int failure)      \
	{                                                                                          \
		SITE(EXPLORER_COMPARE_STRONG);                                                     \
		(void)explorer_compare(&site, at, sizeof(type), &expected, value, success,         \
				       failure);                                                   \
		return expected;                                                                   \
	}

ALL(8, uint8_t)
ALL(16, uint16_t)
ALL(32, uint32_t)
ALL(64, uint64_t)

bool __tsan_atomic128_compare_exchange_strong(volatile __int128 *at, __int128 *expected, __int128 value,
					      int success, int failure);
bool __tsan_atomic128_compare_exchange_strong(volatile __int128 *at, __int128 *expected, __int128 value,
					      int success, int failure)
{
	uint64_t words[2], new[2];
	bool succeeds;

	SITE(EXPLORER_COMPARE_STRONG);
	(void)success;
	(void)failure;
	memcpy(words, expected, 16);
	memcpy(new, &value, 16);
	succeeds = explorer_compare_pair(&site, (void *)at, words, new);
	memcpy(expected, words, 16);
	return succeeds;
}

__int128 __tsan_atomic128_compare_exchange_val(volatile __int128 *at, __int128 expected, __int128 value,
					       int success, int failure);
__int128 __tsan_atomic128_compare_exchange_val(volatile __int128 *at, __int128 expected, __int128 value,
					       int success, int failure)
{
	(void)__tsan_atomic128_compare_exchange_strong(at, &expected, value, success, failure);
	return expected;
}
