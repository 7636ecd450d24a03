/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* For what no status can tell: the process ends, in every build, with a sentence for whoever has to mend it. */
#ifndef EVC_REQUIRE_H
#define EVC_REQUIRE_H

#include "platform/compiler.h"

#include <stddef.h>

/* Writes a sentence of `size` bytes to the standard error, and aborts. */
_Noreturn void evc_end_process(const char *sentence, size_t size);

/* `sentence` is a literal: the rule, what was found, and what to do. */
#define EVC_REQUIRE(condition, sentence)                                                           \
	do {                                                                                       \
		static const char sentence_[] = sentence "\n";                                     \
                                                                                                   \
		if (evc_unlikely(!(condition)))                                                    \
			evc_end_process(sentence_, sizeof(sentence_) - 1);                         \
	} while (0)

#endif
