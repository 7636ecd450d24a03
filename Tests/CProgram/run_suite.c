/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Runs the tests of Tests/CEventCoreSuite without SwiftPM: under a sanitizer, valgrind, or a debugger. Arguments select
 * the tests whose names contain one of them; those with a leading - exclude tests, also from what others select.
 */
#include "CEventCoreSuite.h"

#include <eventcore/eventcore.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static bool is_picked(const char *name, char **arguments)
{
	bool any_selects = false, selects = false;

	for (; *arguments != NULL; arguments++) {
		if ((*arguments)[0] != '-') {
			any_selects = true;
			selects |= strstr(name, *arguments) != NULL;
		} else if (strstr(name, *arguments + 1) != NULL) {
			return false;
		}
	}
	return selects || !any_selects;
}

int main(int argc, char **argv)
{
	size_t count, failed = 0, run = 0;
	const struct evc_suite_test *tests = evc_suite_tests(&count);

	for (size_t i = 0; i < count; i++) {
		struct timespec start, end;
		const char *message;

		if (!is_picked(tests[i].name, argv + (argc > 0)))
			continue;
		clock_gettime(CLOCK_MONOTONIC, &start);
		message = tests[i].run();
		clock_gettime(CLOCK_MONOTONIC, &end);
		run++;
		failed += message != NULL;
		printf("%s %6.2f s  %s%s%s\n", message == NULL ? "ok  " : "FAIL",
		       (double)(end.tv_sec - start.tv_sec) +
			       (double)(end.tv_nsec - start.tv_nsec) / 1e9,
		       tests[i].name, message == NULL ? "" : "\n      ",
		       message == NULL ? "" : message);
		fflush(stdout);
	}
	/* The tests have given everything back. One that has failed leaves its objects behind. */
	if (failed == 0 && evc_shutdown() != EVC_OK) {
		printf("FAIL  something of the core is in use after the tests\n");
		failed++;
	}
	printf("%zu tests, %zu failed\n", run, failed);
	return run == 0 || failed != 0;
}
