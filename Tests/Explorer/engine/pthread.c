/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The system calls that the core makes, for fibers. The linker puts them in place of the system's (--wrap).
 * The state of a mutex, condition, once or key is found by its address.
 */
#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OBJECTS 64u
#define KEYS 16u
#define FOREVER UINT64_MAX

struct object {
	const void *address;
	bool is_taken;
	unsigned owner;
	struct clock clock;
};

static KEPT struct object objects[OBJECTS];
static KEPT unsigned object_count, key_count;
static KEPT void (*destructors[KEYS])(void *);
static KEPT const void *values[FIBERS][KEYS];

void pthread_reset(void)
{
	object_count = key_count = 0;
	memset(values, 0, sizeof(values));
}

static struct object *find(const void *address)
{
	for (unsigned i = 0; i < object_count; i++)
		if (objects[i].address == address)
			return &objects[i];
	if (object_count == OBJECTS)
		explorer_fail("more than %u mutexes", OBJECTS);
	objects[object_count] = (struct object){ .address = address };
	return &objects[object_count++];
}

static struct object *anew(const void *address)
{
	struct object *object = find(address);

	*object = (struct object){ .address = address };
	return object;
}

static void acquire(struct object *object)
{
	clock_join(fiber_clock(fiber_number()), &object->clock);
}

static void release(struct object *object)
{
	unsigned number = fiber_number();

	clock_join(&object->clock, fiber_clock(number));
	clock_tick(fiber_clock(number), number);
}

static uint64_t nanoseconds(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

#define WRAP(result, name, ...)                                                                    \
	result __wrap_##name(__VA_ARGS__);                                                         \
	result __wrap_##name(__VA_ARGS__)

WRAP(int, pthread_mutex_init, pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
	(void)attributes;
	anew(mutex);
	return 0;
}

WRAP(int, pthread_mutex_destroy, pthread_mutex_t *mutex)
{
	if (anew(mutex)->is_taken)
		explorer_fail("destroys a mutex that is locked");
	return 0;
}

WRAP(int, pthread_mutex_trylock, pthread_mutex_t *mutex)
{
	struct object *object;

	fiber_point();
	heap_check((uintptr_t)mutex, (uintptr_t)__builtin_return_address(0));
	object = find(mutex);
	if (object->is_taken)
		return EBUSY;
	object->is_taken = true;
	object->owner = fiber_number();
	acquire(object);
	trace("locks %p", (void *)mutex);
	return 0;
}

WRAP(int, pthread_mutex_lock, pthread_mutex_t *mutex)
{
	while (__wrap_pthread_mutex_trylock(mutex) != 0) {
		if (find(mutex)->owner == fiber_number())
			explorer_fail("locks a mutex that it has locked");
		fiber_sleep(mutex, FOREVER);
	}
	return 0;
}

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *mutex)
{
	struct object *object = find(mutex);

	if (!object->is_taken || object->owner != fiber_number())
		explorer_fail("unlocks a mutex that it has not locked");
	release(object);
	object->is_taken = false;
	trace("unlocks %p", (void *)mutex);
	fiber_wake(mutex, FIBERS);
	return 0;
}

WRAP(int, pthread_cond_init, pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
	(void)attributes;
	(void)condition;
	return 0;
}

WRAP(int, pthread_cond_destroy, pthread_cond_t *condition)
{
	(void)condition;
	return 0;
}

static int wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t end)
{
	bool is_woken;

	__wrap_pthread_mutex_unlock(mutex);
	is_woken = fiber_sleep(condition, end);
	__wrap_pthread_mutex_lock(mutex);
	return is_woken ? 0 : ETIMEDOUT;
}

WRAP(int, pthread_cond_wait, pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	return wait_until(condition, mutex, FOREVER);
}

WRAP(int, pthread_cond_timedwait, pthread_cond_t *condition, pthread_mutex_t *mutex,
     const struct timespec *end)
{
	return wait_until(condition, mutex, nanoseconds(end));
}

WRAP(int, pthread_cond_signal, pthread_cond_t *condition)
{
	fiber_point();
	fiber_wake(condition, 1);
	return 0;
}

WRAP(int, pthread_cond_broadcast, pthread_cond_t *condition)
{
	fiber_point();
	fiber_wake(condition, FIBERS);
	return 0;
}

WRAP(int, pthread_once, pthread_once_t *once, void (*function)(void))
{
	struct object *object;

	fiber_point();
	object = find(once);
	if (!object->is_taken) {
		object->is_taken = true;
		object->owner = fiber_number() + 1;
		function();
		object = find(once);
		release(object);
		object->owner = 0;
		fiber_wake(once, FIBERS);
	}
	while ((object = find(once))->owner != 0)
		fiber_sleep(once, FOREVER);
	acquire(object);
	return 0;
}

WRAP(int, pthread_key_create, pthread_key_t *key, void (*destructor)(void *))
{
	if (key_count == KEYS)
		return EAGAIN;
	destructors[key_count] = destructor;
	*key = key_count++;
	return 0;
}

WRAP(int, pthread_setspecific, pthread_key_t key, const void *value)
{
	values[fiber_number()][key] = value;
	return 0;
}

WRAP(void *, pthread_getspecific, pthread_key_t key)
{
	return (void *)values[fiber_number()][key];
}

void pthread_end_of_fiber(void)
{
	const void **mine = values[fiber_number()];
	bool any = true;

	for (unsigned round = 0; round < 4 && any; round++) {
		any = false;
		for (unsigned i = 0; i < key_count; i++) {
			void *value = (void *)mine[i];

			mine[i] = NULL;
			if (value == NULL || destructors[i] == NULL)
				continue;
			any = true;
			destructors[i](value);
		}
	}
}

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
     void *argument)
{
	(void)attributes;
	*thread = fiber_create(function, argument) + 1;
	trace("starts fiber %lu", *thread - 1);
	fiber_point();
	return 0;
}

WRAP(int, pthread_join, pthread_t thread, void **result)
{
	fiber_point();
	while (!fiber_has_ended((unsigned)thread - 1, result))
		fiber_sleep(fiber_clock((unsigned)thread - 1), FOREVER);
	return 0;
}

WRAP(pthread_t, pthread_self, void)
{
	return fiber_number() + 1;
}

WRAP(int, pthread_detach, pthread_t thread)
{
	(void)thread;
	return 0;
}

WRAP(int, pthread_atfork, void (*before)(void), void (*parent)(void), void (*child)(void))
{
	(void)before;
	(void)parent;
	(void)child;
	return 0;
}

WRAP(int, pthread_setname_np, pthread_t thread, const char *name)
{
	(void)thread;
	trace("is called %s", name);
	return 0;
}

WRAP(int, pthread_sigmask, int how, const sigset_t *set, sigset_t *before)
{
	(void)how;
	(void)set;
	(void)before;
	return 0;
}

WRAP(int, prctl, int option, ...)
{
	(void)option;
	return 0;
}

WRAP(int, sched_yield, void)
{
	fiber_yield();
	return 0;
}

WRAP(int, nanosleep, const struct timespec *time, struct timespec *rest)
{
	(void)rest;
	fiber_sleep(time, fiber_now(false) + nanoseconds(time));
	return 0;
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *time)
{
	uint64_t now = fiber_now(true);

	(void)clock;
	time->tv_sec = (time_t)(now / 1000000000u);
	time->tv_nsec = (long)(now % 1000000000u);
	return 0;
}

WRAP(long, sysconf, int name)
{
	if (name != _SC_NPROCESSORS_ONLN)
		explorer_fail("sysconf(%d) is not simulated", name);
	return 2;
}

/*
 * The kernel reads the word between two full barriers of its own: it sees the newest store. It orders nothing
 * else that the C standard knows of.
 */
static long futex(const uint32_t *word, int operation, uint32_t value, const struct timespec *limit)
{
	fiber_point();
	heap_check((uintptr_t)word, (uintptr_t)__builtin_return_address(0));
	if (operation == FUTEX_WAKE_PRIVATE) {
		trace("futex: wakes");
		return fiber_wake(word, value);
	}
	if (operation != FUTEX_WAIT_PRIVATE)
		explorer_fail("futex operation %d is not simulated", operation);
	if (*(const volatile uint32_t *)word != value)
		return -1;
	trace("futex: sleeps");
	return fiber_sleep(word, limit == NULL ? FOREVER : fiber_now(false) + nanoseconds(limit)) ? 0 : -1;
}

WRAP(long, syscall, long number, ...)
{
	va_list arguments;
	const uint32_t *word;
	const struct timespec *limit;
	int operation;
	uint32_t value;

	if (number != SYS_futex)
		explorer_fail("system call %ld is not simulated", number);
	va_start(arguments, number);
	word = va_arg(arguments, const uint32_t *);
	operation = va_arg(arguments, int);
	value = va_arg(arguments, uint32_t);
	limit = va_arg(arguments, const struct timespec *);
	va_end(arguments);
	return futex(word, operation, value, operation == FUTEX_WAIT_PRIVATE ? limit : NULL);
}

WRAP(_Noreturn void, __assert_fail, const char *text, const char *file, unsigned line, const char *function)
{
	(void)function;
	explorer_fail("%s:%u: assert(%s)", file, line, text);
}
