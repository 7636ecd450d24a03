/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Runs the tests of Tests/CEventCoreSuite without SwiftPM: under a sanitizer, or a debugger. An argument
 * selects the tests whose names contain it; with a leading - it excludes them.
 */
#include "CEventCoreSuite.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static bool is_picked(const char *name, const char *argument)
{
	if (argument == NULL)
		return true;
	return argument[0] == '-' ? strstr(name, argument + 1) == NULL : strstr(name, argument) != NULL;
}

int main(int argc, char **argv)
{
	size_t count, failed = 0, run = 0;
	const struct evc_suite_test *tests = evc_suite_tests(&count);

	for (size_t i = 0; i < count; i++) {
		struct timespec start, end;
		const char *message;

		if (!is_picked(tests[i].name, argc > 1 ? argv[1] : NULL))
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
	printf("%zu tests, %zu failed\n", run, failed);
	return failed != 0;
}
