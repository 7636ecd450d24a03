/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * A plug-in that uses its host's core is unloaded as reclaim.h says, however the thread that has dispatched to it lets go
 * of it, and no function of its own is called later. Compiled twice: with PLUGIN it is the plug-in.
 */
#include <eventcore/eventcore.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY 1u
#define EVENTS 10u

#ifdef PLUGIN

static struct evc_mailbox *mailbox;
static struct evc_subscription *subscription;
static unsigned counted;

static bool count(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)context, (void)payload, (void)envelope, (void)owned;
	counted++;
	return false;
}

/* After the end of the plug-in this would be a call of nothing. */
static void finalize(void *context)
{
	(void)context;
	counted = 0;
}

bool plugin_begin(struct evc_router *router, void (*was_freed)(void *))
{
	struct evc_mailbox_options options = { .size = sizeof(options), .finalize = was_freed };
	struct evc_subscription_options handler = { .size = sizeof(handler), .deliver = count, .finalize = finalize };

	return evc_mailbox_create(&options, &mailbox) == EVC_OK &&
	       evc_mailbox_add_subscription(mailbox, &handler, &subscription) == EVC_OK &&
	       evc_router_subscribe(router, KEY, subscription, 0, false) == EVC_OK;
}

bool plugin_end(struct evc_router *router)
{
	bool is_complete = evc_mailbox_pump(mailbox, EVC_FOREVER) == EVC_EMPTY && counted == EVENTS;

	is_complete &= evc_router_unsubscribe(router, KEY, subscription) == EVC_OK;
	evc_mailbox_release(mailbox);
	return is_complete;
}

#else

#define ROUNDS 10u

static struct evc_router *router;
static atomic_bool is_freed;

static void was_freed(void *context)
{
	(void)context;
	atomic_store(&is_freed, true);
}

static void expect(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	exit(1);
}

static void *dispatch(void *unused)
{
	for (uint32_t i = 0; i < EVENTS; i++)
		expect(evc_dispatch_bytes(router, KEY, EVC_LANE_QUEUE_NORMAL, &i, sizeof(i), 4, NULL) == EVC_OK, "a dispatch");
	return unused;
}

static void reclaim(void)
{
	while (evc_reclaim(EVC_FOREVER) != EVC_OK)
		sched_yield();
}

static void dispatch_again(void)
{
	(void)dispatch(NULL);
}

static void unregister(void)
{
	expect(evc_unregister_thread() == EVC_OK, "this thread gives back what it has");
}

/* NULL: the thread that has dispatched has ended before. */
static void load_and_unload(const char *name, void (*let_go)(void))
{
	void *plugin = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	bool (*begin)(struct evc_router *, void (*)(void *)), (*end)(struct evc_router *);
	pthread_t thread;

	expect(plugin != NULL, "the plug-in is loaded");
	*(void **)&begin = dlsym(plugin, "plugin_begin");
	*(void **)&end = dlsym(plugin, "plugin_end");
	atomic_store(&is_freed, false);
	expect(begin(router, was_freed), "the plug-in begins");
	if (let_go != NULL) {
		(void)dispatch(NULL);
	} else {
		expect(pthread_create(&thread, NULL, dispatch, NULL) == 0, "a thread");
		pthread_join(thread, NULL);
	}
	expect(end(router), "the plug-in got all events, and ends");
	if (let_go != NULL) {
		reclaim();
		expect(!atomic_load(&is_freed), "the thread that has dispatched keeps the mailbox");
		let_go();
	}
	while (!atomic_load(&is_freed))
		reclaim();
	dlclose(plugin);
	expect(dlopen(name, RTLD_NOW | RTLD_NOLOAD) == NULL, "the plug-in is gone");
	(void)dispatch(NULL);
	reclaim();
}

int main(int argc, char **argv)
{
	expect(argc == 2, "the plug-in is named");
	for (unsigned i = 0; i < ROUNDS; i++) {
		/* With a thread that reclaims, and without it. */
		if (i % 2 != 0)
			evc_reclaimer_start();
		expect(evc_router_create(&router) == EVC_OK, "a router");
		load_and_unload(argv[1], dispatch_again);
		load_and_unload(argv[1], unregister);
		load_and_unload(argv[1], NULL);
		evc_router_destroy(router);
		expect(evc_shutdown() == EVC_OK, "everything was given back");
	}
	printf("a plug-in with the host's core %u times loaded and unloaded: ok\n", 3 * ROUNDS);
	return 0;
}
#endif
