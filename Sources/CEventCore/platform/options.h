/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Reads an option structure of the caller, whose headers may be older or newer than this library.
 *
 * The structure opens with its size. What an older one lacks is zero here. What a newer one has beyond ours must be
 * zero too: it would ask for something that this library does not know. A new member goes to the end, at or behind
 * the old end of the structure: padding is not zero in callers that do not know it for a member. EVC_OPTIONS_READ
 * therefore refuses to compile if there is padding behind the last member of the first version.
 */
#ifndef EVC_OPTIONS_H
#define EVC_OPTIONS_H

#include "eventcore/base.h"

#include <assert.h>
#include <string.h>

/* A larger size is a structure that was not initialized. */
#define EVC_OPTIONS_SIZE_MAX 4096u

/* `least`: the size in the first version. `options` NULL: all zero. */
static inline enum evc_status evc_options_read(void *own, size_t own_size, const void *options, size_t least)
{
	const unsigned char *bytes = options;
	size_t size;

	if (options == NULL) {
		memset(own, 0, own_size);
		return EVC_OK;
	}
	memcpy(&size, options, sizeof(size));
	/* No version ends within a word, whose other half would be made up here. */
	if (size < least || size > EVC_OPTIONS_SIZE_MAX || size % _Alignof(size_t) != 0)
		return EVC_INVALID_ARGUMENT;
	for (size_t i = own_size; i < size; i++)
		if (bytes[i] != 0)
			return EVC_UNSUPPORTED;
	if (size < own_size)
		memset((unsigned char *)own + size, 0, own_size - size);
	memcpy(own, options, size < own_size ? size : own_size);
	return EVC_OK;
}

#define EVC_OPTIONS_LEAST(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/*
 * Fills `*own`, whose type is `type`, from `options`. `last`: the last member of the first version. The status is
 * EVC_INVALID_ARGUMENT for a size that no version had, EVC_UNSUPPORTED for an option from the future.
 */
#define EVC_OPTIONS_READ(own, type, options, last)                                                 \
	evc_options_read(own, sizeof(type), (const type *)(options),                               \
			 EVC_OPTIONS_LEAST(type, last) +                                           \
				 0 * sizeof(char[EVC_OPTIONS_LEAST(type, last) % _Alignof(type) == 0 ? 1 : -1]))

#endif
