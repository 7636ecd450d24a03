/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Fibers in place of threads, one at a time on one thread of the system, and the clock that they see.
 *
 * A fiber runs until it cannot go on, yields, or is preempted by a choice. Time passes with each look at the
 * clock, when no fiber can go on before some time limit, and by a choice: a thread may be preempted for long.
 */
#include "engine.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_SIZE ((size_t)256 * 1024)
#define FOREVER UINT64_MAX
/* A fiber that executes this many operations in a row is polling for another one. */
#define STEPS_IN_A_ROW 300u
#define STEPS_MAX 400000u
#define NANOSECONDS_A_LOOK 100u

enum state { READY, SLEEPING, ENDED };

struct fiber {
	enum state state;
	bool has_yielded, has_run, timed_out;
	const void *object;
	uint64_t deadline;
	jmp_buf context;
	void *(*function)(void *);
	void *argument, *result;
	struct clock clock;
	/* Its thread-local variables while another fiber runs. */
	char *locals;
	char *stack;
};

/* Thread-local variables: -D_Thread_local puts them into this section, and each fiber has a copy of it. */
extern char __start_explorer_locals[], __stop_explorer_locals[];
static int anchor __attribute__((section("explorer_locals"), used));

KEPT struct fiber *current;
static KEPT struct fiber fibers[FIBERS];
static KEPT unsigned count;
static KEPT uint64_t now;
static KEPT unsigned steps, in_a_row;
static KEPT uint64_t idle_limit;
static KEPT bool is_settling, has_jumped;
static KEPT char *first_locals;
static KEPT jmp_buf outside;

static size_t locals_size(void)
{
	return (size_t)(__stop_explorer_locals - __start_explorer_locals);
}

unsigned fiber_number(void)
{
	return (unsigned)(current - fibers);
}

struct clock *fiber_clock(unsigned number)
{
	return &fibers[number].clock;
}

unsigned fiber_count(void)
{
	return count;
}

bool fiber_is_exploring(void)
{
	return current != NULL;
}

uint64_t fiber_now(bool tick)
{
	return tick ? now += NANOSECONDS_A_LOOK : now;
}

static void count_step(void)
{
	if (++steps > STEPS_MAX)
		explorer_fail("no end: %u steps, and still no result", steps);
}

_Noreturn void fiber_abandon(void)
{
	_longjmp(outside, 1);
}

static void begin(void)
{
	current->result = current->function(current->argument);
	pthread_end_of_fiber();
	if (current == &fibers[0])
		fiber_abandon();
	current->state = ENDED;
	trace("ends");
	fiber_wake(&current->clock, FIBERS);
	fiber_yield();
	abort();
}

static __attribute__((noinline)) void switch_to(struct fiber *next)
{
	struct fiber *before = current;

	in_a_row = 0;
	if (before == next)
		return;
	memcpy(before->locals, __start_explorer_locals, locals_size());
	memcpy(__start_explorer_locals, next->locals, locals_size());
	current = next;
	if (_setjmp(before->context) != 0)
		return;
	if (next->has_run)
		_longjmp(next->context, 1);
	next->has_run = true;
	{
		ucontext_t context;

		getcontext(&context);
		context.uc_stack.ss_sp = next->stack;
		context.uc_stack.ss_size = STACK_SIZE;
		context.uc_link = NULL;
		makecontext(&context, begin, 0);
		setcontext(&context);
	}
}

static bool is_ready(const struct fiber *fiber)
{
	return fiber->state == READY || (fiber->state == SLEEPING && fiber->deadline <= now);
}

static void run(struct fiber *next)
{
	if (next->state == SLEEPING) {
		if (next->deadline > now)
			now = next->deadline;
		next->state = READY;
		next->timed_out = true;
	}
	if (next != current)
		trace("-> fiber %u goes on", (unsigned)(next - fibers));
	switch_to(next);
}

/*
 * The other fibers that can go on, from the next one on; with `sleepers`, those for which time would have to
 * pass.
 */
static unsigned others(struct fiber **found, bool sleepers, bool yielded)
{
	unsigned n = 0, self = fiber_number();

	for (unsigned i = 1; i < count; i++) {
		struct fiber *fiber = &fibers[(self + i) % count];

		if (sleepers ? fiber->state == SLEEPING && fiber->deadline > now &&
				       fiber->deadline != FOREVER
			     : is_ready(fiber) && (yielded || !fiber->has_yielded))
			found[n++] = fiber;
	}
	return n;
}

static struct fiber *earliest_sleeper(void)
{
	struct fiber *found = NULL;

	for (unsigned i = 0; i < count; i++)
		if (fibers[i].state == SLEEPING && fibers[i].deadline != FOREVER &&
		    (found == NULL || fibers[i].deadline < found->deadline))
			found = &fibers[i];
	return found;
}

static _Noreturn void fail_asleep(const char *what)
{
	char text[600];
	int length = snprintf(text, sizeof(text), "%s:", what);

	for (unsigned i = 0; i < count; i++)
		length += snprintf(text + length, sizeof(text) - (size_t)length, " fiber %u %s%s;", i,
				   fibers[i].state == ENDED	  ? "has ended"
				   : fibers[i].state == SLEEPING ? "sleeps"
								  : "is ready",
				   fibers[i].state == SLEEPING && fibers[i].deadline != FOREVER
					   ? " for a time"
					   : "");
	explorer_fail("%s", text);
}

/* This fiber sleeps or has ended: another one goes on. */
static void run_another(void)
{
	struct fiber *found[FIBERS], *next;
	unsigned n = others(found, false, true);

	if (n > 0) {
		run(found[choose(CHOICE_NEXT, n)]);
		return;
	}
	if (is_settling && (next = &fibers[0])->state == SLEEPING && earliest_sleeper() == NULL) {
		next->state = READY;
		run(next);
		return;
	}
	next = earliest_sleeper();
	if (next == NULL)
		fail_asleep("all sleep, for ever");
	/* If a choice let time pass, a fiber may sleep too long: it had looked at the clock before. */
	if (next->deadline > idle_limit && (idle_limit == 0 || !has_jumped))
		fail_asleep("all sleep until a time limit is over");
	run(next);
}

void fiber_point(void)
{
	struct fiber *found[2 * FIBERS];
	unsigned n, choice;

	count_step();
	if (++in_a_row > STEPS_IN_A_ROW) {
		fiber_yield();
		return;
	}
	n = others(found, false, true);
	n += others(found + n, true, true);
	choice = choose(CHOICE_PREEMPT, n + 1);
	if (choice > 0) {
		has_jumped |= !is_ready(found[choice - 1]);
		run(found[choice - 1]);
	}
	current->has_yielded = false;
}

void fiber_yield(void)
{
	struct fiber *found[FIBERS];
	unsigned n;

	if (current->state == ENDED) {
		run_another();
		return;
	}
	count_step();
	now += NANOSECONDS_A_LOOK;
	current->has_yielded = true;
	n = others(found, false, false);
	if (n == 0) {
		for (unsigned i = 0; i < count; i++)
			fibers[i].has_yielded = false;
		n = others(found, false, true);
	}
	/* The last alternative: no other fiber waits for a processor, and it goes on at once. */
	found[n] = current;
	run(found[choose(CHOICE_AFTER_YIELD, n + 1)]);
	in_a_row = 0;
	current->has_yielded = false;
}

bool fiber_sleep(const void *object, uint64_t deadline)
{
	/* A fiber that sleeps again and again for something that never happens must end too. */
	count_step();
	current->object = object;
	current->deadline = deadline;
	current->timed_out = false;
	current->state = SLEEPING;
	run_another();
	return !current->timed_out;
}

unsigned fiber_wake(const void *object, unsigned at_most)
{
	unsigned woken = 0;

	while (woken < at_most) {
		struct fiber *found[FIBERS];
		unsigned n = 0, which;

		for (unsigned i = 0; i < count; i++)
			if (fibers[i].state == SLEEPING && fibers[i].object == object &&
			    !fibers[i].timed_out)
				found[n++] = &fibers[i];
		if (n == 0)
			break;
		which = at_most < FIBERS ? choose(CHOICE_NEXT, n) : 0;
		found[which]->state = READY;
		woken++;
	}
	return woken;
}

unsigned fiber_create(void *(*function)(void *), void *argument)
{
	struct fiber *fiber = &fibers[count];

	if (count == FIBERS)
		explorer_fail("more than %u threads", FIBERS);
	if (fiber->stack == NULL) {
		/*
		 * At the same address in each run of the program, like everything that a schedule may depend
		 * on.
		 */
		void *place = (void *)(uintptr_t)(0x300000000000u + count * 2 * STACK_SIZE);

		fiber->stack = mmap(place, STACK_SIZE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (fiber->stack != place)
			abort();
		fiber->locals = malloc(locals_size());
	}
	*fiber = (struct fiber){ .stack = fiber->stack, .locals = fiber->locals, .state = READY,
				 .function = function, .argument = argument };
	memcpy(fiber->locals, first_locals, locals_size());
	if (current != NULL) {
		fiber->clock = current->clock;
		clock_tick(&current->clock, fiber_number());
	}
	clock_tick(&fiber->clock, count);
	return count++;
}

bool fiber_has_ended(unsigned number, void **result)
{
	if (fibers[number].state != ENDED)
		return false;
	if (result != NULL)
		*result = fibers[number].result;
	clock_join(&current->clock, &fibers[number].clock);
	return true;
}

static KEPT void (*scenario)(void);

static void *run_scenario(void *unused)
{
	(void)unused;
	scenario();
	return NULL;
}

void fiber_run_all(void (*function)(void))
{
	static KEPT struct fiber outer;

	if (first_locals == NULL) {
		first_locals = malloc(locals_size());
		memcpy(first_locals, __start_explorer_locals, locals_size());
		outer.locals = malloc(locals_size());
	}
	memcpy(__start_explorer_locals, first_locals, locals_size());
	count = 0;
	now = 1000000000;
	steps = in_a_row = 0;
	idle_limit = FOREVER;
	is_settling = has_jumped = false;
	scenario = function;
	current = NULL;
	fiber_create(run_scenario, NULL);
	if (_setjmp(outside) == 0) {
		current = &outer;
		switch_to(&fibers[0]);
	}
	current = NULL;
}

pthread_t explorer_start(void *(*function)(void *), void *argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, function, argument);
	return thread;
}

void explorer_join(pthread_t thread)
{
	pthread_join(thread, NULL);
}

void explorer_forbid_idling(bool forbid)
{
	idle_limit = forbid ? 0 : FOREVER;
}

void explorer_forbid_idling_past(uint64_t time)
{
	idle_limit = time;
}

void explorer_settle(void)
{
	is_settling = true;
	fiber_sleep(&is_settling, FOREVER);
	is_settling = false;
}

void explorer_pause(void)
{
	fiber_yield();
}
