/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file CEventCoreSuite.h
 * The tests of the C core as a table, so that any test runner can list and run them.
 */
#ifndef CEVENTCORE_SUITE_H
#define CEVENTCORE_SUITE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct evc_suite_test {
	/** A sentence that states what holds, with the letter of the guarantee. */
	const char *name;
	/**
	 * NULL if it holds, otherwise what was expected and what was found. The text belongs to the calling
	 * thread until its next test. Run one test at a time: some replace the allocator.
	 */
	const char *(*run)(void);
};

/** The table; empty if the core was built without liburcu. */
extern const struct evc_suite_test *evc_suite_tests(size_t *count);

#ifdef __cplusplus
}
#endif
#endif
