/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* Conflation for tests: the key of a payload (a uint64_t) is what its low 32 bits leave when divided by `count`. */
#ifndef EVC_SUITE_KEYS_H
#define EVC_SUITE_KEYS_H

#include "suite.h"

struct keys {
	uint64_t count;
	/* How many hashes the keys have; 0: keys are integers and are not kept. */
	uint64_t hashes;
	_Atomic uint64_t kept, ended;
	_Atomic bool refuses;
};

static inline uint64_t keys_of(const struct keys *keys, const void *payload)
{
	return *(const uint64_t *)payload % (UINT64_C(1) << 32) % keys->count;
}

static inline uint64_t keys_number(void *context, const void *payload)
{
	const struct keys *keys = context;

	return keys->hashes > 0 ? keys_of(keys, payload) % keys->hashes : keys_of(keys, payload);
}

static inline bool keys_is_same(void *context, const void *key, const void *payload)
{
	return (uintptr_t)key - 1 == keys_of(context, payload);
}

static inline void *keys_keep(void *context, const void *payload)
{
	struct keys *keys = context;

	if (keys->refuses)
		return NULL;
	atomic_fetch_add(&keys->kept, 1);
	return (void *)(uintptr_t)(keys_of(keys, payload) + 1);
}

static inline void keys_let_go(void *context, void *key)
{
	(void)key;
	atomic_fetch_add(&((struct keys *)context)->ended, 1);
}

static inline struct evc_conflation keys_conflation(struct keys *keys)
{
	if (keys->hashes == 0)
		return (struct evc_conflation){ .context = keys, .number = keys_number };
	return (struct evc_conflation){ keys, keys_number, keys_is_same, keys_keep, keys_let_go };
}

#endif
