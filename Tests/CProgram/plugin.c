/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A plug-in that contains or needs the core, and gives everything back before it is unloaded: host.c. */
#include <eventcore/eventcore.h>

static bool count(void *context, void *payload, const struct evc_envelope *envelope, bool owned)
{
	(void)payload, (void)envelope, (void)owned;
	++*(unsigned *)context;
	return false;
}

static uint64_t fire(void *context, uint64_t deadline)
{
	(void)context, (void)deadline;
	return 0;
}

/* Returns how many events came, 0 if anything failed. */
__attribute__((visibility("default"))) unsigned plugin_work(bool shares_thread)
{
	static const struct evc_timer_ops ops = { .fire = fire, .takes_late = true };
	unsigned counted = 0;
	struct evc_subscription_options options = { .size = sizeof(options), .context = &counted, .deliver = count };
	struct evc_subscription *subscription;
	struct evc_scheduler *scheduler;
	struct evc_mailbox *mailbox;
	struct evc_thread *thread;
	struct evc_router *router;

	if (!shares_thread)
		evc_reclaimer_start();
	if (evc_router_create(&router) != EVC_OK || evc_mailbox_create(NULL, &mailbox) != EVC_OK ||
	    evc_mailbox_add_subscription(mailbox, &options, &subscription) != EVC_OK ||
	    evc_router_subscribe(router, 1, subscription, 0, false) != EVC_OK ||
	    evc_thread_start(NULL, mailbox, &thread) != EVC_OK || evc_scheduler_create(NULL, &scheduler) != EVC_OK ||
	    evc_scheduler_add(scheduler, 0, &ops, NULL, NULL) != EVC_OK)
		return 0;
	for (uint32_t i = 0; i < 1000; i++)
		if (evc_dispatch_bytes(router, 1, EVC_LANE_QUEUE_NORMAL, &i, sizeof(i), 4, NULL) != EVC_OK)
			return 0;
	evc_mailbox_close_when_empty(mailbox);
	evc_scheduler_close(scheduler);
	if (evc_thread_join(thread) != EVC_OK || evc_scheduler_join(scheduler) != EVC_OK)
		return 0;
	evc_scheduler_release(scheduler);
	evc_router_destroy(router);
	evc_mailbox_release(mailbox);
	return evc_unregister_thread() == EVC_OK ? counted : 0;
}

/* True if the plug-in may be unloaded. */
__attribute__((visibility("default"))) bool plugin_end(void)
{
	return evc_shutdown() == EVC_OK;
}
