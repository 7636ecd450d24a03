/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Runs scenarios: first all schedules with no deviation, then with one, two ..., for half of the time; then
 * random schedules. A failure is simplified as far as possible, shown step by step, and ends the run.
 */
#include "engine.h"

#include <eventcore/reclaim.h>

#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

extern const struct scenario __start_explorer_scenarios[], __stop_explorer_scenarios[];
extern struct explorer_site __start_explorer_sites[], __stop_explorer_sites[];
extern char __data_start[], _end[];
extern char __start_explorer_kept[], __stop_explorer_kept[];

#define OUTCOMES 64u

KEPT char failure[1024];

static KEPT struct {
	double seconds;
	uint64_t seed;
	const char *replay;
	unsigned depth;
	bool quiet, random_only, first, processor_time;
} options = { .seconds = 5, .seed = 1, .depth = 6 };

static KEPT const struct scenario *scenario;
static KEPT char *image;
static KEPT uint64_t executions;
static KEPT char outcomes[OUTCOMES][32];
static KEPT uint64_t outcome_counts[OUTCOMES];
static KEPT unsigned outcome_count;

static double seconds(void)
{
	struct timespec now;
	int __real_clock_gettime(clockid_t clock, struct timespec *time);

	/* Processor time: the same search whatever else the machine does. */
	__real_clock_gettime(options.processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void explorer_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(failure, sizeof(failure), format, arguments);
	va_end(arguments);
	fiber_abandon();
}

static void on_signal(int number)
{
	if (!fiber_is_exploring()) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	explorer_fail("signal %d: %s", number, strsignal(number));
}

static void catch_signals(void)
{
	static KEPT char stack[65536];
	static const int numbers[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP };
	struct sigaction action = { .sa_flags = SA_ONSTACK | SA_NODEFER };

	action.sa_handler = on_signal;
	sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) }, NULL);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaction(numbers[i], &action, NULL);
}

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
		if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	return false;
}

void explorer_outcome(const char *format, ...)
{
	char text[32];
	va_list arguments;
	unsigned i;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	trace("the outcome is %s", text);
	if (scenario->outcomes[0] == '!')
		return;
	if (!has_word(scenario->outcomes, text))
		explorer_fail("the outcome %s is forbidden", text);
	for (i = 0; i < outcome_count && strcmp(outcomes[i], text) != 0; i++)
		;
	if (i == outcome_count) {
		memcpy(outcomes[i], text, sizeof(text));
		outcome_counts[i] = 0;
		outcome_count++;
	}
	outcome_counts[i]++;
}

/* The static variables before the first execution, without those of the engine. */
static void restore(void)
{
	/* Sites are in the kept sections, which the linker may or may not place side by side. */
	struct {
		char *from, *to;
	} keep[2] = { { __start_explorer_kept, __stop_explorer_kept },
		      { (char *)__start_explorer_sites, (char *)__stop_explorer_sites } };
	char *at = __data_start;

	if (keep[0].from > keep[1].from) {
		keep[0].from = (char *)__start_explorer_sites;
		keep[0].to = (char *)__stop_explorer_sites;
		keep[1].from = __start_explorer_kept;
		keep[1].to = __stop_explorer_kept;
	}
	for (unsigned i = 0; i < 3; i++) {
		char *end = i < 2 ? keep[i].from : _end;

		if (end > at)
			memcpy(at, image + (at - __data_start), (size_t)(end - at));
		if (i < 2 && keep[i].to > at)
			at = keep[i].to;
	}
}

static void run_whole(void)
{
	heap_install();
	evc_reclaimer_start();
	scenario->run();
}

static bool execute(void)
{
	restore();
	heap_reset();
	plain_reset();
	memory_reset();
	pthread_reset();
	domain_reset();
	failure[0] = '\0';
	executions++;
	fiber_run_all(run_whole);
	return failure[0] == '\0';
}

static bool fails_with(const char *list)
{
	choice_begin_replay(list);
	return !execute();
}

static void report(void)
{
	char *list;

	printf("%s: FAILED after %lu executions: %s\n", scenario->name, executions, failure);
	if (options.quiet)
		return;
	list = choice_simplify(fails_with);
	trace_is_on = true;
	fails_with(list);
	trace_is_on = false;
	printf("  %s\n  again: --scenario %s --replay '%s'\n", failure, scenario->name, list);
	free(list);
}

/* The deepest search that was completed, or -1; -2 if there was a failure. */
static int search(double until)
{
	for (unsigned depth = 0; depth <= options.depth; depth++) {
		choice_begin_search(depth);
		do {
			if (!execute())
				return -2;
			if (seconds() > until)
				return (int)depth - 1;
		} while (choice_next_search());
	}
	return (int)options.depth;
}

static bool draw(double until)
{
	for (uint64_t i = 0; seconds() < until; i++) {
		choice_begin_random(options.seed * 0x100000001b3u + i);
		if (!execute())
			return false;
	}
	return true;
}

static bool misses_outcomes(void)
{
	char text[256], *word, *rest;
	bool misses = false;

	if (scenario->outcomes == NULL)
		return false;
	snprintf(text, sizeof(text), "%s", scenario->outcomes);
	for (word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
		bool is_found = false;

		for (unsigned i = 0; i < outcome_count; i++)
			is_found |= strcmp(outcomes[i], word) == 0;
		if (!is_found)
			printf("%s: FAILED: the outcome %s is allowed, and was not found\n", scenario->name,
			       word);
		misses |= !is_found;
	}
	return misses;
}

/* A scenario that is wrong on purpose: the engine must find the error. */
static bool fails_as_it_should(void)
{
	const char *wanted = scenario->outcomes + 2;

	if (failure[0] == '\0' || strstr(failure, wanted) == NULL) {
		printf("%s: FAILED: \"%s\" was to be found, not \"%s\"\n", scenario->name, wanted, failure);
		return false;
	}
	printf("%s: found after %lu executions, as it should be: %s\n", scenario->name, executions, failure);
	return true;
}

static bool explore(void)
{
	double begin = seconds();
	int depth;
	uint64_t searched;

	executions = 0;
	outcome_count = 0;
	if (options.replay != NULL) {
		bool fails = (trace_is_on = true, fails_with(options.replay));

		trace_is_on = false;
		printf("%s: %s\n", scenario->name, fails ? failure : "no failure");
		return !fails;
	}
	depth = options.random_only ? -1 : search(begin + options.seconds / 2);
	searched = executions;
	if (depth != -2 && !draw(begin + options.seconds))
		depth = -2;
	if (scenario->outcomes != NULL && scenario->outcomes[0] == '!')
		return fails_as_it_should();
	if (depth == -2) {
		report();
		return false;
	}
	if (misses_outcomes())
		return false;
	printf("%s: holds; all of %lu with up to %d deviations, %lu drawn with seed %lu, %.1f s\n",
	       scenario->name, searched, depth, executions - searched, options.seed, seconds() - begin);
	return true;
}

/* FILE:LINE:WHICH:FROM:TO, numbers but for the file. */
static bool weaken(const char *text)
{
	char file[256];
	int line, which, from, to;
	bool any = false;

	if (sscanf(text, "%255[^:]:%d:%d:%d:%d", file, &line, &which, &from, &to) != 5)
		return false;
	for (struct explorer_site *site = __start_explorer_sites; site < __stop_explorer_sites; site++) {
		size_t length = strlen(site->file), wanted = strlen(file);

		if (site->line != line || length < wanted ||
		    strcmp(site->file + length - wanted, file) != 0)
			continue;
		site->is_weakened[which != 0] = any = true;
		site->from[which != 0] = (uint8_t)from;
		site->to[which != 0] = (uint8_t)to;
	}
	return any;
}

static void list_sites(void)
{
	for (struct explorer_site *site = __start_explorer_sites; site < __stop_explorer_sites; site++)
		for (unsigned which = 0; which < 2; which++)
			printf("site %s:%d %d %u %u %u\n", site->file, site->line, (int)site->operation,
			       which, site->literal[which], site->orders[which]);
}

static int usage(const char *name)
{
	fprintf(stderr,
		"%s [--scenario NAME]... [--seconds S] [--seed N] [--depth N] [--random-only] [--quiet] [--first]\n"
		"    [--processor-time] [--replay LIST] [--weaken FILE:LINE:WHICH:FROM:TO] [--sites] [--list]\n",
		name);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "scenario", required_argument, NULL, 's' }, { "seconds", required_argument, NULL, 't' },
		{ "seed", required_argument, NULL, 'r' },     { "depth", required_argument, NULL, 'd' },
		{ "replay", required_argument, NULL, 'p' },   { "weaken", required_argument, NULL, 'w' },
		{ "sites", no_argument, NULL, 'i' },	      { "list", no_argument, NULL, 'l' },
		{ "quiet", no_argument, NULL, 'q' },	      { "random-only", no_argument, NULL, 'n' },
		{ "first", no_argument, NULL, 'f' },	      { "processor-time", no_argument, NULL, 'c' },
		{ NULL, 0, NULL, 0 }
	};
	static KEPT char wanted[4096] = " ";
	static KEPT bool sites;
	int option, status = 0;
	unsigned ran = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (option) {
		case 's':
			snprintf(wanted + strlen(wanted), sizeof(wanted) - strlen(wanted), "%s ", optarg);
			break;
		case 't':
			options.seconds = atof(optarg);
			break;
		case 'r':
			options.seed = strtoull(optarg, NULL, 10);
			break;
		case 'd':
			options.depth = (unsigned)atoi(optarg);
			break;
		case 'p':
			options.replay = optarg;
			break;
		case 'w':
			if (!weaken(optarg)) {
				fprintf(stderr, "no such site: %s\n", optarg);
				return 2;
			}
			break;
		case 'i':
			sites = true;
			break;
		case 'l':
			for (const struct scenario *s = __start_explorer_scenarios;
			     s < __stop_explorer_scenarios; s++)
				printf("%s%s\n", s->name, s->outcomes != NULL ? " litmus" : "");
			return 0;
		case 'q':
			options.quiet = true;
			break;
		case 'f':
			options.first = true;
			break;
		case 'c':
			options.processor_time = true;
			break;
		case 'n':
			options.random_only = true;
			break;
		default:
			return usage(argv[0]);
		}
	}
	catch_signals();
	image = malloc((size_t)(_end - __data_start));
	memcpy(image, __data_start, (size_t)(_end - __data_start));
	for (scenario = __start_explorer_scenarios; scenario < __stop_explorer_scenarios; scenario++) {
		if (strcmp(wanted, " ") != 0 && !has_word(wanted, scenario->name))
			continue;
		ran++;
		if (!explore()) {
			status = 1;
			if (options.first)
				break;
		}
	}
	if (sites)
		list_sites();
	return ran > 0 ? status : usage(argv[0]);
}
