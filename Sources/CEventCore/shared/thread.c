/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#define _GNU_SOURCE 1
#include "eventcore/shared_mailbox.h"

#include "mailbox/mailbox_private.h"
#include "platform/allocator.h"
#include "platform/own_thread.h"
#include "platform/options.h"
#include "shared/shared_mailbox_private.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

struct evc_thread {
	pthread_t handle;
	struct evc_mailbox *mailbox;
	/* The worker whose mailbox that is, or NULL. */
	struct evc_worker *worker;
	/* It has ended, or was detached: whichever comes second frees it. */
	_Atomic bool is_left;
	char name[16];
};

/* acq_rel, pairs with itself: what the first has done with the thread. */
static bool is_second(struct evc_thread *thread)
{
	return atomic_exchange_explicit(&thread->is_left, true, memory_order_acq_rel);
}

/* On the thread itself, which nobody joins by name. */
static void free_unjoined(struct evc_thread *thread)
{
	pthread_t last;

	/* User code. */
	evc_mailbox_release(thread->mailbox);
	last = evc_last_thread_become();
	evc_deallocate(thread, sizeof(*thread), _Alignof(struct evc_thread));
	evc_last_thread_join(last);
}

static void *run(void *opaque)
{
	struct evc_thread *thread = opaque;

	if (thread->name[0] != '\0')
		evc_own_thread_set_name(thread->name);
	if (thread->worker != NULL)
		(void)evc_worker_run_claimed(thread->worker);
	else
		(void)evc_mailbox_run_claimed(thread->mailbox);
	if (is_second(thread))
		free_unjoined(thread);
	return NULL;
}

static enum evc_status status_of(int error)
{
	switch (error) {
	case 0:
		return EVC_OK;
	case EPERM:
		return EVC_NOT_PERMITTED;
	case EINVAL:
		return EVC_INVALID_ARGUMENT;
	default:
		return EVC_OUT_OF_MEMORY;
	}
}

static int set_priority(pthread_attr_t *attributes, int priority)
{
	const struct sched_param parameter = { .sched_priority = priority };
	int error = pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);

	if (error == 0)
		error = pthread_attr_setschedpolicy(attributes, SCHED_FIFO);
	return error != 0 ? error : pthread_attr_setschedparam(attributes, &parameter);
}

static enum evc_status set_processor(pthread_attr_t *attributes, unsigned processor)
{
/* Not in musl, nor in Android's library. */
#if defined(__linux__) && defined(__GLIBC__)
	cpu_set_t set;

	if (processor > CPU_SETSIZE)
		return EVC_INVALID_ARGUMENT;
	CPU_ZERO(&set);
	CPU_SET(processor - 1, &set);
	return status_of(pthread_attr_setaffinity_np(attributes, sizeof(set), &set));
#else
	(void)attributes;
	(void)processor;
	return EVC_UNSUPPORTED;
#endif
}

static enum evc_status set_attributes(pthread_attr_t *attributes,
				      const struct evc_thread_options *options)
{
	enum evc_status status = EVC_OK;

	if (options->stack_size != 0)
		status = status_of(pthread_attr_setstacksize(attributes, options->stack_size));
	if (status == EVC_OK && options->realtime_priority != 0)
		status = status_of(set_priority(attributes, options->realtime_priority));
	if (status == EVC_OK && options->processor != 0)
		status = set_processor(attributes, options->processor);
	return status;
}

static enum evc_status start(const struct evc_thread_options *options, struct evc_mailbox *mailbox,
			     struct evc_worker *worker, struct evc_thread **out)
{
	struct evc_thread_options own;
	enum evc_status status = EVC_OPTIONS_READ(&own, struct evc_thread_options, options, stack_size);
	struct evc_thread *thread;
	pthread_attr_t attributes;

	if (status != EVC_OK)
		return status;
	/* Here and not in the thread: it is the consumer from now on, and a second one is told at once. */
	if (!evc_mailbox_claim(mailbox))
		return EVC_NOT_PERMITTED;
	status = EVC_OUT_OF_MEMORY;
	thread = evc_allocate(sizeof(*thread), _Alignof(struct evc_thread));
	if (thread == NULL)
		goto no_thread;
	*thread = (struct evc_thread){ .mailbox = mailbox, .worker = worker };
	if (pthread_attr_init(&attributes) != 0)
		goto no_attributes;
	/* The last byte stays 0. */
	if (own.name != NULL)
		strncpy(thread->name, own.name, sizeof(thread->name) - 1);
	status = set_attributes(&attributes, &own);
	evc_mailbox_retain(mailbox);
	if (status == EVC_OK)
		status = status_of(pthread_create(&thread->handle, &attributes, run, thread));
	pthread_attr_destroy(&attributes);
	if (status == EVC_OK) {
		*out = thread;
		return EVC_OK;
	}
	evc_mailbox_release(mailbox);

no_attributes:
	evc_deallocate(thread, sizeof(*thread), _Alignof(struct evc_thread));
no_thread:
	evc_mailbox_give_back(mailbox);
	return status;
}

enum evc_status evc_thread_start(const struct evc_thread_options *options,
				 struct evc_mailbox *mailbox, struct evc_thread **out)
{
	if (mailbox == NULL || out == NULL || !evc_mailbox_may_wait(mailbox))
		return EVC_INVALID_ARGUMENT;
	return start(options, mailbox, NULL, out);
}

enum evc_status evc_thread_start_worker(const struct evc_thread_options *options,
					struct evc_worker *worker, struct evc_thread **out)
{
	if (worker == NULL || out == NULL)
		return EVC_INVALID_ARGUMENT;
	return start(options, evc_worker_mailbox(worker), worker, out);
}

void evc_thread_cancel(struct evc_thread *thread)
{
	evc_mailbox_close(thread->mailbox);
}

enum evc_status evc_thread_join(struct evc_thread *thread)
{
	if (thread == NULL)
		return EVC_INVALID_ARGUMENT;
	if (pthread_equal(thread->handle, pthread_self()))
		return EVC_NOT_PERMITTED;
	if (pthread_join(thread->handle, NULL) != 0)
		return EVC_INVALID_ARGUMENT;
	evc_mailbox_release(thread->mailbox);
	evc_deallocate(thread, sizeof(*thread), _Alignof(struct evc_thread));
	return EVC_OK;
}

enum evc_status evc_thread_detach(struct evc_thread *thread)
{
	if (thread == NULL || thread->worker != NULL)
		return EVC_INVALID_ARGUMENT;
	if (!is_second(thread))
		return EVC_OK;
	/* In a destructor of the thread's own data, which runs after `run`. */
	if (pthread_equal(thread->handle, pthread_self())) {
		free_unjoined(thread);
		return EVC_OK;
	}
	return evc_thread_join(thread);
}
#endif
