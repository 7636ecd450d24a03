/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

#include "platform/domain.h"
#include "memory/subscription.h"
#include "memory/thread_record.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *suite_fail(const char *format, ...)
{
	static _Thread_local char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return text;
}

void suite_gate_open(struct suite_gate *gate)
{
	pthread_mutex_lock(&gate->mutex);
	gate->open = true;
	pthread_cond_broadcast(&gate->condition);
	pthread_mutex_unlock(&gate->mutex);
}

bool suite_gate_pass(struct suite_gate *gate)
{
	struct timespec end;
	bool open;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += (time_t)(SUITE_LIMIT_NS / 1000000000u);
	pthread_mutex_lock(&gate->mutex);
	while (!gate->open &&
	       pthread_cond_timedwait(&gate->condition, &gate->mutex, &end) == 0)
		;
	open = gate->open;
	pthread_mutex_unlock(&gate->mutex);
	return open;
}

bool suite_await(_Atomic uint64_t *counter, uint64_t least)
{
	uint64_t start = evc_clock_now();

	/* Acquire, pairs with the counting thread: what it did before. */
	while (atomic_load_explicit(counter, memory_order_acquire) < least) {
		if (evc_clock_now() - start > SUITE_LIMIT_NS)
			return false;
		sched_yield();
	}
	return true;
}

static bool deliver(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	struct suite_receiver *receiver = context;
	uint64_t value;

	(void)envelope, (void)owned;
	memcpy(&value, payload, sizeof(value));
	atomic_fetch_add_explicit(&receiver->sum, value, memory_order_relaxed);
	/* Release: pairs with suite_await. */
	atomic_fetch_add_explicit(&receiver->delivered, 1, memory_order_release);
	/* Reported as moved out, so that `drop` counts what was not handled. */
	return true;
}

static void drop(void *context, void *payload)
{
	(void)payload;
	atomic_fetch_add(&((struct suite_receiver *)context)->drops, 1);
}

static void finalize(void *context)
{
	atomic_fetch_add(&((struct suite_receiver *)context)->finalized, 1);
}

const char *suite_receiver_open(struct suite_receiver *receiver,
				const struct evc_mailbox_options *options)
{
	struct evc_subscription_options subscription = {
		.size = sizeof(subscription), .context = receiver, .deliver = deliver, .drop = drop, .finalize = finalize,
	};

	memset(receiver, 0, sizeof(*receiver));
	EXPECT_OK(evc_mailbox_create(options, &receiver->mailbox));
	EXPECT_OK(evc_mailbox_add_subscription(receiver->mailbox, &subscription,
					       &receiver->subscription));
	return NULL;
}

const char *suite_receiver_add(struct suite_receiver *receiver,
			       bool (*handler)(void *, void *, const struct evc_envelope *, bool),
			       void *context, struct evc_subscription **out)
{
	struct evc_subscription_options subscription = { .size = sizeof(subscription), .context = context, .deliver = handler };

	EXPECT_OK(evc_mailbox_add_subscription(receiver->mailbox, &subscription, out));
	return NULL;
}

const char *suite_receiver_make_plain(struct suite_receiver *receiver)
{
	return suite_receiver_add(receiver, deliver, receiver, &receiver->subscription);
}

const char *suite_receiver_latest(struct suite_receiver *receiver, struct evc_subscription **out)
{
	struct evc_subscription_options subscription = {
		.size = sizeof(subscription), .context = receiver, .deliver = deliver, .drop = drop, .finalize = finalize,
	};

	EXPECT_OK(evc_mailbox_add_latest_subscription(receiver->mailbox, &subscription, out));
	return NULL;
}

enum evc_status suite_append(struct evc_chain *chain, struct evc_subscription *subscription, unsigned lane,
			     uint64_t value)
{
	struct evc_envelope *envelope;
	enum evc_status status =
		evc_envelope_create(subscription, (enum evc_lane)lane, sizeof(value), _Alignof(uint64_t), &envelope);

	if (status != EVC_OK)
		return status;
	memcpy(evc_envelope_payload(envelope), &value, sizeof(value));
	evc_chain_append(chain, envelope);
	return EVC_OK;
}

enum evc_status suite_post(struct suite_receiver *receiver, unsigned lane, uint64_t value)
{
	struct evc_sink *sink = receiver->subscription->sink;
	struct evc_chain chain = EVC_CHAIN_EMPTY;
	enum evc_status status = suite_append(&chain, receiver->subscription, lane, value);

	if (status != EVC_OK)
		return status;
	status = sink->accept(sink, &chain);
	if (status != EVC_OK)
		evc_envelope_release(chain.first, true);
	return status;
}

enum evc_status suite_take(struct suite_receiver *receiver, unsigned *lane, uint64_t *value)
{
	struct evc_envelope *envelope;
	enum evc_status status = evc_mailbox_take(receiver->mailbox, &envelope);

	if (status != EVC_OK)
		return status;
	*lane = evc_envelope_lane(envelope);
	memcpy(value, evc_envelope_payload(envelope), sizeof(*value));
	evc_mailbox_recycle(receiver->mailbox, envelope, true);
	return EVC_OK;
}

const char *suite_prime(struct suite_receiver *receiver)
{
	unsigned lane;
	uint64_t value;

	for (unsigned i = 0; i < 40; i++)
		EXPECT_OK(suite_post(receiver, EVC_LANE_QUEUE_NORMAL, i));
	for (unsigned i = 0; i < 40; i++)
		EXPECT_OK(suite_take(receiver, &lane, &value));
	EXPECT_STATUS(suite_take(receiver, &lane, &value), EVC_EMPTY);
	return NULL;
}

uint64_t suite_seed(void)
{
	/* The seed from a failure message repeats its run as far as the threads' timing allows. */
	const char *text = getenv("EVENTCORE_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : evc_clock_now();

	return seed != 0 ? seed : 1;
}

uint64_t suite_random(uint64_t *state)
{
	/* xorshift64*, S. Vigna 2016: https://arxiv.org/abs/1402.6246 */
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717) >> 16;
}

struct quiesce {
	/* First, so that the head leads back to it. */
	struct evc_domain_head head;
	uint32_t turns;
	struct suite_gate gate;
};

/* So heavy that the callback thread does not wait for more. */
#define QUIESCE_BYTES ((size_t)1 << 20)

static void quiesced(struct evc_domain_head *head)
{
	struct quiesce *quiesce = (struct quiesce *)(void *)head;

	if (--quiesce->turns > 0)
		evc_domain_retire(head, QUIESCE_BYTES, quiesced);
	else
		suite_gate_open(&quiesce->gate);
}

bool suite_quiesce(void)
{
	/*
	 * What was retired before is taken by the turn after the first one at the latest, and reclaimed before
	 * the third. Static, as it may still be used after a time-out.
	 */
	static struct quiesce last;

	last = (struct quiesce){ .turns = 3, .gate = SUITE_GATE };
	evc_domain_retire(&last.head, QUIESCE_BYTES, quiesced);
	return suite_gate_pass(&last.gate);
}

bool suite_settle(void)
{
	if (evc_thread_record_current != NULL)
		evc_route_cache_clear(evc_thread_record_current);
	return suite_quiesce();
}

const char *suite_in_child(int (*run)(void *context), void *context, int *status, char said[SUITE_SAID])
{
	const struct rlimit no_core = { 0, 0 };
	ssize_t length = 0, more;
	char rest[256];
	int channel[2];
	pid_t child;

	EXPECT(pipe(channel) == 0, "pipe failed");
	child = fork();
	EXPECT(child >= 0, "fork failed");
	if (child == 0) {
		alarm(20);
		(void)setrlimit(RLIMIT_CORE, &no_core);
		/* Also under a sanitizer, which would report them. */
		(void)signal(SIGABRT, SIG_DFL);
		(void)signal(SIGSEGV, SIG_DFL);
		(void)signal(SIGBUS, SIG_DFL);
		(void)dup2(channel[1], STDERR_FILENO);
		_exit(run(context));
	}
	close(channel[1]);
	while (length < SUITE_SAID - 1 && (more = read(channel[0], said + length, SUITE_SAID - 1 - (size_t)length)) > 0)
		length += more;
	said[length] = '\0';
	/* The rest of a long report, at whose pipe the child would otherwise end. */
	while (read(channel[0], rest, sizeof(rest)) > 0)
		;
	close(channel[0]);
	EXPECT(waitpid(child, status, 0) == child, "waitpid failed");
	return NULL;
}

struct job {
	const char *(*run)(void);
	/* The message is the thread's own, and goes with it. */
	char message[256];
	bool failed;
};

static void *run_job(void *opaque)
{
	struct job *job = opaque;
	const char *message = job->run();

	job->failed = message != NULL;
	if (job->failed)
		snprintf(job->message, sizeof(job->message), "%s", message);
	return NULL;
}

const char *suite_alone(const char *(*run)(void))
{
	struct job job = { .run = run };
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, run_job, &job) == 0, "no thread");
	pthread_join(thread, NULL);
	EXPECT(suite_quiesce(), "the reclaimer got stuck");
	EXPECT(!job.failed, "%s", job.message);
	return NULL;
}
#endif
