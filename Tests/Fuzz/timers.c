/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A driven scheduler, whose time the input moves. A timer's context is freed once. */
#include "fuzz.h"

struct timer {
	uint64_t id;
	/* Only compared. */
	const struct evc_scheduler *of;
	struct timer *next;
};

static struct evc_scheduler *scheduler;
static uint64_t now;
static bool is_firing;
/* Those whose contexts the scheduler has, and how many. */
static struct timer *timers;
static size_t pending;

static void let_go(void *context)
{
	struct timer **at = &timers;

	while (*at != context)
		at = &(*at)->next;
	*at = (*at)->next;
	free(context);
	pending--;
}

static uint64_t fire(void *context, uint64_t deadline)
{
	CHECK(deadline <= now);
	act();
	if (draw() % 4 == 0)
		return deadline + 1 + draw();
	let_go(context);
	return draw() % 2 == 0 ? 0 : deadline;
}

static const struct evc_timer_ops operations[] = { { fire, let_go, false }, { fire, let_go, true } };

static uint64_t read_now(void *context)
{
	(void)context;
	return now;
}

static void make(void)
{
	const struct evc_scheduler_clock clock = { NULL, rarely() ? NULL : read_now, NULL };
	PADDED(struct evc_scheduler_options) options = { .known = { .clock = &clock, .driven = true } };
	enum evc_status expected = set_size(&options, sizeof(options.known), sizeof(options.known));

	if (expected == EVC_OK && clock.now == NULL)
		expected = EVC_INVALID_ARGUMENT;
	if (scheduler == NULL)
		CHECK(is_status(evc_scheduler_create(&options.known, &scheduler), expected));
}

static void add(void)
{
	const struct evc_timer_ops *ops = &operations[draw() % 2];
	const uint64_t deadline = rarely() ? EVC_FOREVER : now + draw();
	struct timer *timer = calloc(1, sizeof(*timer));
	enum evc_status status;

	timer->of = scheduler;
	timer->next = timers;
	timers = timer;
	pending++;
	status = evc_scheduler_add(scheduler, deadline, ops, timer, &timer->id);
	if (status == EVC_OK)
		return;
	CHECK(is_status(status, EVC_CLOSED) || (status == EVC_TIMED_OUT && !ops->takes_late && deadline <= now));
	let_go(timer);
}

/* One of those that are pending, or one that is not known. */
static void cancel(void)
{
	uint64_t id = draw();
	struct timer *timer = timers;

	for (unsigned i = draw() % 8; i > 0 && timer != NULL; i--)
		timer = timer->next;
	if (timer != NULL)
		id = timer->id;
	if (evc_scheduler_cancel(scheduler, id) != EVC_OK)
		return;
	for (timer = timers; timer != NULL && (timer->id != id || timer->of != scheduler); timer = timer->next)
		;
	CHECK(timer != NULL);
	let_go(timer);
}

static void end(void)
{
	evc_scheduler_release(scheduler);
	scheduler = NULL;
	CHECK(pending == 0);
	now = 0;
}

/* Also in a timer, whose scheduler goes on until that call returns; the time goes on with it. */
static void leave(void)
{
	if (draw() % 2 == 0 && scheduler != NULL)
		evc_scheduler_close(scheduler);
	evc_scheduler_release(scheduler);
	scheduler = NULL;
}

static void use(unsigned choice)
{
	struct evc_scheduler_statistics statistics;
	uint64_t next;

	switch (choice) {
	case 1:
	case 2:
		add();
		break;
	case 3:
		cancel();
		break;
	case 4: {
		/* A timer may end it. */
		struct evc_scheduler *running = scheduler;
		const bool was_firing = is_firing, keeps = draw() % 2 == 0;

		if (keeps)
			evc_scheduler_retain(running);
		if (!was_firing)
			now += draw();
		is_firing = true;
		(void)evc_scheduler_run_due(running, now, draw() % 2 == 0 ? &next : NULL);
		if (keeps)
			evc_scheduler_release(running);
		is_firing = was_firing;
		break;
	}
	default:
		evc_scheduler_read_statistics(scheduler, &statistics);
		CHECK(statistics.pending <= pending);
		CHECK(pending > 0 || evc_scheduler_next(scheduler) == EVC_FOREVER);
		if (rarely())
			evc_scheduler_close(scheduler);
	}
}

void call_timers(unsigned choice)
{
	if (choice == 0) {
		if (rarely() && !is_firing)
			end();
		else if (rarely())
			leave();
		return;
	}
	if (draw() % 16 == 0)
		lack_memory(draw());
	if (scheduler == NULL)
		make();
	else
		use(choice);
	have_memory();
}

void end_timers(void)
{
	end();
}
