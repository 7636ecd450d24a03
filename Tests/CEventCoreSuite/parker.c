/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * The parker, over system calls that count and that let the test act while the thread "sleeps": every
 * interleaving of one sleeper and one waker is played on one thread.
 */
#include "platform/config.h"

#ifdef EVC_URCU
#include "suite.h"

static struct {
	unsigned waits, wakes, opens, closes;
	/* How often `wait` returns without a reason before it acts. */
	unsigned early;
	/* What happens while the thread sleeps; NULL: the time limit passes. */
	void (*while_asleep)(void);
	/* What happens while the first waker makes its system call, or is held up before it. */
	void (*while_waking)(void);
	struct evc_parker *parker;
	struct suite_receiver receiver;
	/* The longest time limit of a wait. */
	uint64_t longest;
} fake;

static void *fake_open(void)
{
	fake.opens++;
	return &fake;
}

static void fake_close(void *state)
{
	(void)state;
	fake.closes++;
}

static void fake_wait(void *state, const uint32_t *word, uint32_t expected, uint64_t timeout)
{
	(void)state;
	fake.waits++;
	if (timeout > fake.longest)
		fake.longest = timeout;
	/* Like a futex: no sleep if the word has changed already. */
	if (__atomic_load_n(word, __ATOMIC_RELAXED) != expected)
		return;
	if (fake.early > 0)
		fake.early--;
	else if (fake.while_asleep != NULL)
		fake.while_asleep();
}

static void fake_wake(void *state, const uint32_t *word)
{
	void (*meanwhile)(void) = fake.while_waking;

	(void)state, (void)word;
	fake.wakes++;
	fake.while_waking = NULL;
	if (meanwhile != NULL)
		meanwhile();
}

static const struct evc_parker_ops ops = { fake_open, fake_close, fake_wait, fake_wake };

static void wake_it(void)
{
	(void)evc_parker_wake(fake.parker);
}

static void post_one(void)
{
	(void)suite_post(&fake.receiver, 7, 1);
}

static const char *expect_calls(unsigned waits, unsigned wakes, const char *when)
{
	EXPECT(fake.waits == waits && fake.wakes == wakes,
	       "%s: expected %u waits and %u wakes, found %u and %u", when, waits, wakes, fake.waits,
	       fake.wakes);
	return NULL;
}

static const char *only_if_waiting(void)
{
	uint32_t ticket;

	__builtin_memset(&fake, 0, sizeof(fake));
	EXPECT_OK(evc_parker_create(&ops, &fake.parker));
	EXPECT(!evc_parker_wake(fake.parker), "a wake without a sleeper claims a system call");
	ticket = evc_parker_prepare(fake.parker);
	EXPECT(!evc_parker_wake(fake.parker), "a wake of a prepared thread claims a system call");
	EXPECT_OK(evc_parker_wait(fake.parker, ticket, EVC_FOREVER));
	EXPECT_NONE(expect_calls(0, 0, "woken between prepare and wait"));
	fake.while_asleep = wake_it;
	ticket = evc_parker_prepare(fake.parker);
	EXPECT_OK(evc_parker_wait(fake.parker, ticket, EVC_FOREVER));
	EXPECT_NONE(expect_calls(1, 1, "woken while asleep"));
	EXPECT(!evc_parker_wake(fake.parker), "a wake after the sleep claims a system call");
	fake.early = 3;
	ticket = evc_parker_prepare(fake.parker);
	EXPECT_OK(evc_parker_wait(fake.parker, ticket, EVC_FOREVER));
	EXPECT_NONE(expect_calls(5, 2, "asleep again after coming back for no reason"));
	evc_parker_destroy(fake.parker);
	EXPECT(fake.opens == 1 && fake.closes == 1, "opened %u times, closed %u times", fake.opens,
	       fake.closes);
	return NULL;
}

static const char *time_over(void)
{
	uint32_t ticket;

	__builtin_memset(&fake, 0, sizeof(fake));
	EXPECT_OK(evc_parker_create(&ops, &fake.parker));
	ticket = evc_parker_prepare(fake.parker);
	EXPECT_STATUS(evc_parker_wait(fake.parker, ticket, 0), EVC_TIMED_OUT);
	EXPECT_STATUS(evc_parker_wait(fake.parker, ticket, 1000), EVC_TIMED_OUT);
	fake.wakes = 0;
	EXPECT(!evc_parker_wake(fake.parker), "a wake after the time-out claims a system call");
	EXPECT_OK(evc_parker_wait(fake.parker, ticket, EVC_FOREVER));
	evc_parker_destroy(fake.parker);
	return NULL;
}

static const char *in_a_mailbox(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .parker = &ops };
	uint64_t value;
	unsigned lane;

	__builtin_memset(&fake, 0, sizeof(fake));
	EXPECT_NONE(suite_receiver_open(&fake.receiver, &options));
	for (unsigned i = 0; i < 1000; i++)
		EXPECT_OK(suite_post(&fake.receiver, i % 10, i));
	EXPECT_OK(evc_mailbox_wait(fake.receiver.mailbox, EVC_FOREVER));
	EXPECT_NONE(expect_calls(0, 0, "a thousand posts to a consumer that is awake"));
	while (suite_take(&fake.receiver, &lane, &value) == EVC_OK)
		;
	fake.while_asleep = post_one;
	EXPECT_OK(evc_mailbox_wait(fake.receiver.mailbox, EVC_FOREVER));
	EXPECT_NONE(expect_calls(1, 1, "a post to a sleeping consumer"));
	EXPECT_OK(suite_post(&fake.receiver, 7, 1));
	EXPECT_NONE(expect_calls(1, 1, "a post to a consumer that has woken"));
	while (suite_take(&fake.receiver, &lane, &value) == EVC_OK)
		;
	fake.while_asleep = NULL;
	EXPECT_STATUS(evc_mailbox_wait(fake.receiver.mailbox, 1000), EVC_TIMED_OUT);
	evc_mailbox_release(fake.receiver.mailbox);
	return NULL;
}

/* A waker that comes while another has not made its system call yet makes one of its own. */
static const char *held_up_waker(void)
{
	uint32_t ticket;

	__builtin_memset(&fake, 0, sizeof(fake));
	EXPECT_OK(evc_parker_create(&ops, &fake.parker));
	for (unsigned i = 1; i <= 3; i++) {
		fake.while_asleep = wake_it;
		fake.while_waking = wake_it;
		ticket = evc_parker_prepare(fake.parker);
		EXPECT_OK(evc_parker_wait(fake.parker, ticket, EVC_FOREVER));
		EXPECT_NONE(expect_calls(i, 2 * i, "two wake while asleep"));
		EXPECT(!evc_parker_wake(fake.parker), "a wake after the sleep claims a system call");
	}
	evc_parker_destroy(fake.parker);
	return NULL;
}

/* A consumer that has spun for half of its time sleeps for the other half at most, and not for all of it again. */
static const char *spun_before(void)
{
	struct evc_mailbox_options options = { .size = sizeof(options), .parker = &ops, .strategy = EVC_WAIT_SPIN_THEN_PARK,
					       .spin_ns = 20000 };

	__builtin_memset(&fake, 0, sizeof(fake));
	EXPECT_NONE(suite_receiver_open(&fake.receiver, &options));
	EXPECT_STATUS(evc_mailbox_wait(fake.receiver.mailbox, 40000), EVC_TIMED_OUT);
	EXPECT(fake.waits > 0 && fake.longest <= 20000, "asleep for up to %llu of 40000 ns",
	       (unsigned long long)fake.longest);
	evc_mailbox_release(fake.receiver.mailbox);
	return NULL;
}

static const struct evc_suite_test tests[] = {
	{ "D5 D10 no wake-up waits for a waker that is held up", held_up_waker },
	{ "D5 a wake makes no system call unless a thread sleeps", only_if_waiting },
	{ "a wait that times out leaves nothing for a wake to call", time_over },
	{ "a wait spins and sleeps within its one time limit", spun_before },
	{ "D5 a post makes no system call unless the consumer sleeps", in_a_mailbox },
};
SUITE_GROUP(suite_parker, tests);
#endif
