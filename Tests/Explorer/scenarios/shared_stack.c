/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* The stack lane of a shared mailbox by itself: what a taker sees of an envelope that others take and put meanwhile. */
#include "explorer.h"

#include "lanes/shared_stack.h"
#include "platform/allocator.h"

static struct evc_shared_stack stack;
static struct evc_envelope *envelopes[2];
/* How often each is on the stack. */
static int there[2];

UNSEEN static void note(const struct evc_envelope *envelope, int change)
{
	there[envelope == envelopes[1]] += change;
}

static void put(struct evc_envelope *envelope)
{
	note(envelope, 1);
	evc_shared_stack_put(&stack, envelope, 1);
}

static void put_new(unsigned which)
{
	envelopes[which] = evc_allocate(sizeof(struct evc_envelope), EVC_CACHE_LINE);
	CHECK(envelopes[which] != NULL);
	put(envelopes[which]);
}

static struct evc_envelope *take(void)
{
	struct evc_envelope *envelope = evc_shared_stack_take(&stack);

	if (envelope != NULL)
		note(envelope, -1);
	return envelope;
}

static void *take_one(void *unused)
{
	(void)take();
	return unused;
}

static void take_rest(pthread_t other)
{
	explorer_join(other);
	for (unsigned i = 0; i < 2 && take() != NULL; i++)
		;
	for (unsigned i = 0; i < 2; i++) {
		if (there[i] != 0)
			explorer_fail("an envelope was put %d times more often than taken", there[i]);
		evc_deallocate(envelopes[i], sizeof(struct evc_envelope), EVC_CACHE_LINE);
	}
}

/* Two are taken, and the newer one is put again, without the other one below it, while a taker has read its link. */
SCENARIO(shared_stack_put_again)
{
	struct evc_envelope *newer;
	pthread_t other;

	put_new(0);
	put_new(1);
	other = explorer_start(take_one, NULL);
	newer = take();
	(void)take();
	if (newer != NULL)
		put(newer);
	take_rest(other);
}

/* The memory of what is put is new: whoever reads its link comes after that. */
SCENARIO(shared_stack_put_new)
{
	pthread_t other = explorer_start(take_one, NULL);

	put_new(0);
	put_new(1);
	take_rest(other);
}
